package extension

import (
	"slices"
	"time"
)

// The states of an extension, as event.ExtensionChanged holds them.
const (
	StateStarted = "started"
	StateDead    = "dead"
	StateEnded   = "ended"
)

// State is what there is to know of one extension at one moment.
type State struct {
	Name string
	// State is StateStarted, StateDead or StateEnded.
	State string
	// Pid is the judging process's id while it lives, else 0; ToolPid that of the
	// process that runs the tools.
	Pid, ToolPid int
	// Events is its subscription; nil means all.
	Events []string
	// OnFailure is what its death means.
	OnFailure OnFailure
	// Tools are the names of the tools that it provides.
	Tools []string
	// Calls counts the requests to the judging process, list_tools included, ToolCalls
	// those to the process that runs the tools.
	Calls, ToolCalls int
	// Median and Worst are latencies of the last 1,024 requests.
	Median, Worst time.Duration
	// LastError is the cause of its death, else the last failure of a tool; "" if none.
	LastError string
}

// maxSamples is how many latencies are kept.
const maxSamples = 1024

// stats counts the requests to one extension.
type stats struct {
	calls   int
	samples []time.Duration // a ring once it has maxSamples
	last    string
	tools   int // the calls of its tools
}

func (s *stats) add(took time.Duration, f *failure) {
	if len(s.samples) < maxSamples {
		s.samples = append(s.samples, took)
	} else {
		s.samples[s.calls%maxSamples] = took
	}
	s.calls++
	if f != nil && !f.ours() {
		s.last = f.msg
	}
}

// addTool counts the call of a tool.
func (s *stats) addTool(f *failure) {
	s.tools++
	if f != nil && !f.ours() {
		s.last = f.msg
	}
}

func (s *stats) latencies() (median, worst time.Duration) {
	if len(s.samples) == 0 {
		return 0, 0
	}
	sorted := slices.Sorted(slices.Values(s.samples))
	return sorted[len(sorted)/2], sorted[len(sorted)-1]
}

// States returns the state of every extension in configuration order.
func (h *Host) States() []State {
	out := make([]State, 0, len(h.exts))
	for _, e := range h.exts {
		out = append(out, e.state())
	}
	return out
}

func (e *ext) state() State {
	st := State{
		Name: e.cfg.Name, State: StateDead, ToolPid: e.invoke.pid(), Events: slices.Clone(e.cfg.Events), OnFailure: e.cfg.OnFailure,
	}
	for _, t := range e.tools {
		st.Tools = append(st.Tools, t.spec.Name)
	}
	e.mu.Lock()
	st.Calls, st.ToolCalls, st.LastError = e.stats.calls, e.stats.tools, e.stats.last
	st.Median, st.Worst = e.stats.latencies()
	e.mu.Unlock()
	f := e.unstarted
	if e.judging != nil {
		f = e.judging.failure()
	}
	switch {
	case f == nil:
		st.State, st.Pid = StateStarted, e.judging.child.Pid()
	case f.class == failClosed:
		st.State = StateEnded
	default:
		st.LastError = f.msg
	}
	return st
}
