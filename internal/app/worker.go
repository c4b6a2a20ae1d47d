package app

import (
	"strings"
	"time"

	"github.com/abhed/abhed/internal/agent"
	"github.com/abhed/abhed/internal/control"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/extension"
	"github.com/abhed/abhed/internal/gate"
	"github.com/abhed/abhed/internal/memory"
	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/tool"
)

// worker is one agent: the main one, or a sub-agent.
type worker struct {
	e        *engine
	id       policy.Agent
	parent   *worker // nil for the main agent
	call     string  // the parent's call that it works for
	scope    *scope
	readOnly bool
	tools    *tool.Registry
	specs    func() []model.ToolSpec
	gate     *gate.Gate
	loop     *agent.Loop
	system   string
}

// agentID is the id in the record: the main agent's is "".
func (w *worker) agentID() string {
	if w.parent == nil {
		return ""
	}
	return w.id.ID
}

// worker returns the agent of that id, nil if there is none.
func (e *engine) worker(id string) *worker {
	if id == mainAgent || id == "" {
		return e.main
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.workers[id]
}

// stamped is the record as a sub-agent writes it.
type stamped struct {
	agent.Log
	id string
}

func (s stamped) Append(d event.Draft) (event.Event, error) {
	event.SetAgent(d.Payload, s.id)
	return s.Log.Append(d)
}

func (s stamped) AppendDurable(d event.Draft) (event.Event, error) {
	event.SetAgent(d.Payload, s.id)
	return s.Log.AppendDurable(d)
}

func (w *worker) log() agent.Log {
	if w.parent == nil {
		return w.e.log
	}
	return stamped{w.e.log, w.id.ID}
}

// makeGate makes the agent's gate. A sub-agent's shares what its parent's has.
func (w *worker) makeGate() {
	e := w.e
	o := gate.Options{
		Tools: w.tools, Minter: e.minter, Rules: w.scope.rules.Load, Log: w.log(),
		Extensions: e.ext, Backends: e.backends, Hooks: e.o.hooks, Approver: e.o.approver, Session: e.log.ID(), Agent: w.id, Roots: w.scope.roots, Model: e.model.Client.Name(),
	}
	if w.parent != nil {
		o.Parent, o.ParentCall = w.parent.gate, w.call
	}
	w.gate = gate.New(o)
}

// loopState is what a loop begins with.
type loopState struct {
	workDir string
	history []*model.Message
	later   []string
	stubbed map[string]string
	// first and newest are what the person said first and last, which stays.
	first, newest *model.Message
	turn          int
	budget        *agent.Budget
	model         agent.Model
}

// makeLoop makes the agent's loop.
func (w *worker) makeLoop(st loopState) error {
	e, l := w.e, w.e.o.loaded
	o := agent.Options{
		Model: st.model, Gate: w.gate, Exec: tool.NewExecutor(w.tools, e.verifier), Log: w.log(), System: w.system, Tools: w.specs,
		Limits: limits(l), Budget: st.budget, Retry: e.retry(), Context: contextOf(l),
		OnDelta: w.delta, HoldOutput: e.ext != nil && e.ext.WatchesResults(),
		Memory: w.memory, Keep: w.keep, IDs: e.ids, Serial: e.serial,
		WorkDir: st.workDir, History: st.history, First: st.first, Newest: st.newest, Later: st.later, Stubbed: st.stubbed, Turn: st.turn,
	}
	if e.backends != nil { // else nil, so that the loop builds nothing for them
		o.Hooks = w.gate
	}
	if e.ext != nil {
		o.Extensions = w.gate
	}
	if w.parent == nil {
		o.Notes = e.jobs.Ended
		if len(e.o.output) > 0 {
			check, err := answerCheck(e.o.output)
			if err != nil {
				return err
			}
			o.Output, o.CheckOutput = e.o.output, check
		}
	}
	w.loop = agent.New(o)
	return nil
}

func limits(l *loaded) agent.Limits {
	return agent.Limits{Turns: int(l.Limits.MaxTurns), Tokens: l.Limits.MaxTokens, CostUSD: l.Limits.MaxCostUSD, Time: time.Duration(l.Limits.MaxSeconds) * time.Second}
}

func contextOf(l *loaded) agent.Context {
	c := l.Context
	return agent.Context{Auto: c.Compaction != "off", Threshold: c.Threshold, KeepResults: int(c.KeepResults), StubBytes: int(c.StubBytes)}
}

// delta passes on a piece of text.
func (w *worker) delta(d control.Delta) {
	d.AgentID = w.agentID()
	w.e.ear.delta(d)
}

// memory returns the instructions that belong to places that the agent touched.
func (w *worker) memory(paths []string) []string {
	var out []string
	for _, p := range paths {
		files, warnings := w.e.instructions.Below(w.id.ID, p)
		w.e.warn(warnings)
		for _, f := range files {
			out = append(out, instruction(f))
		}
	}
	return out
}

// keep returns the instructions of sub-folders that the agent has, which a summary
// must not lose.
func (w *worker) keep() []string {
	var out []string
	for _, f := range w.e.instructions.Given(w.id.ID) {
		if text := instruction(f); !strings.Contains(w.system, text) {
			out = append(out, text)
		}
	}
	return out
}

// instruction words one instruction file for the model.
func instruction(f memory.File) string {
	text := event.HarnessMark + "Instructions from " + f.Path + ", which hold for the files below its folder:\n\n" + f.Text
	if f.Note != "" {
		text += "\n" + event.HarnessMark + f.Note
	}
	return text
}

// warn records warnings.
func (e *engine) warn(warnings []string) {
	for _, w := range warnings {
		_, _ = e.log.Append(system(&event.Notice{Level: "warning", Text: w})) // the next durable write fails too
	}
}

// extensionSession describes the session to extensions.
func (e *engine) extensionSession() extension.Session {
	return extension.Session{Workspace: e.o.loaded.workspace, Model: e.model.Client.Name(), Mode: e.mode().String()}
}
