package extension

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/tool"
)

const (
	// maxLogged is how many bytes of one log line of an extension are kept.
	maxLogged = 64 << 10
	// maxReason is how many bytes of a reason are kept.
	maxReason = 8 << 10
	// maxStderrLines is how many lines of standard error of one process are recorded.
	maxStderrLines = 10_000
	// maxWarned is how many different fields an extension is warned about.
	maxWarned = 64
)

// ext is one extension: its judging process, the process that runs its tools, and
// what is known of it.
type ext struct {
	cfg    Config
	opts   *Options
	source policy.Source
	// judging is nil if the process could not be started; unstarted says why.
	judging   *stream
	unstarted *failure
	// hash and tools are set by Start and then only read.
	hash   string
	tools  []*provided
	invoke *invoker
	// notices wait to be told; whatever it is asked comes after those before it.
	notices notices

	mu     sync.Mutex // guards what follows
	warned map[string]bool
	stats  stats
}

// ask sends r to the judging process after the notices that wait, and returns its
// answer with the time taken, of which waiting is a part.
func (e *ext) ask(ctx context.Context, r *request) (answer, time.Duration) {
	begin := e.opts.Now()
	e.notices.settle(ctx)
	a := e.tell(ctx, r)
	return a, e.opts.Now().Sub(begin)
}

// tell sends r to the judging process now and records what its answer says besides.
func (e *ext) tell(ctx context.Context, r *request) answer {
	if e.judging == nil {
		return answer{fail: e.unstarted}
	}
	begin := e.opts.Now()
	a := e.judging.request(ctx, r, e.cfg.Timeout)
	took := e.opts.Now().Sub(begin)
	e.mu.Lock()
	e.stats.add(took, a.fail)
	e.mu.Unlock()
	e.heed(r.event, a.reply)
	return a
}

// heed records what a reply says besides its answer.
func (e *ext) heed(ev string, r *reply) {
	if r == nil {
		return
	}
	if r.log != "" {
		e.logged("log", cut(r.log, maxLogged))
	}
	if names := e.fresh("", r.unknown); len(names) > 0 {
		e.logged("warning", unknownFields(names))
	}
	var idle []string
	for _, name := range r.set {
		if !slices.Contains(effects(ev), name) {
			idle = append(idle, name)
		}
	}
	if names := e.fresh(ev, idle); len(names) > 0 {
		e.logged("warning", fmt.Sprintf("a reply to %s has %s, which has no effect there", ev, quoted(names)))
	}
}

// effects returns the fields that do something in a reply to the event.
func effects(ev string) []string {
	always := []string{"log", "seq", "reason"}
	switch ev {
	case eventListTools:
		return append(always, "tools")
	case eventToolCall:
		return append(always, "block", "ask", "args")
	case eventPermission:
		return append(always, "block")
	case eventToolResult:
		return append(always, "content", "is_error")
	case eventInvokeTool:
		return append(always, "result", "content", "is_error")
	case eventPrompt:
		return append(always, "block")
	case eventAgentStart:
		return append(always, "system")
	case eventContext:
		return append(always, "keep")
	case eventCompact:
		return append(always, "cancel", "summary")
	default:
		return always
	}
}

// fresh returns the names that the extension wasn't yet warned about.
func (e *ext) fresh(scope string, names []string) []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var out []string
	for _, n := range names {
		key := scope + "\x00" + n
		if e.warned[key] || len(e.warned) >= maxWarned {
			continue
		}
		e.warned[key] = true
		out = append(out, cut(n, 100))
	}
	return out
}

// unknownFields warns about fields that the protocol doesn't have.
func unknownFields(names []string) string {
	msg := "unknown fields in its replies are ignored: " + quoted(names)
	known := make([]string, 0, len(replyFields))
	for k := range replyFields {
		known = append(known, k)
	}
	slices.Sort(known)
	for _, n := range names {
		inside, isTool := strings.CutPrefix(n, "tools/")
		near := nearest(n, known)
		if isTool {
			near = nearest(inside, toolFields)
		}
		switch {
		case near != "":
			msg += fmt.Sprintf("; %q is one edit away from %q", n, near)
		case n == "allow":
			msg += "; an extension may veto, never permit, so there is no \"allow\""
		}
	}
	return msg
}

func quoted(names []string) string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = fmt.Sprintf("%q", n)
	}
	return strings.Join(out, ", ")
}

// cut bounds a text that goes into the record or to the model.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + fmt.Sprintf(" …(%d bytes cut)", len(s)-limit)
}

// stderrSink returns what records the lines of standard error of one process.
func (e *ext) stderrSink() func(string) {
	lines := 0 // only touched by the one goroutine that reads the stream
	return func(line string) {
		switch lines++; {
		case lines <= maxStderrLines:
			e.logged("log", line)
		case lines == maxStderrLines+1:
			e.logged("warning", fmt.Sprintf("more than %d lines on standard error; the rest is not recorded", maxStderrLines))
		}
	}
}

// died records the death of the judging process.
func (e *ext) died(f *failure, pid int, stderr string) {
	e.changed(&event.ExtensionChanged{
		Name: e.cfg.Name, State: StateDead, Cause: f.class + ": " + f.msg, OnFailure: string(e.cfg.OnFailure),
		Stderr: tool.Clean(stderr), Pid: pid, Hash: e.hash,
	})
}

func (e *ext) changed(p *event.ExtensionChanged) {
	e.record(event.Draft{Actor: event.ActorSystem, Trust: event.TrustHarness, Payload: p})
}

func (e *ext) logged(level, line string) {
	e.record(event.Draft{Actor: event.ActorSystem, Trust: event.TrustUntrusted,
		Payload: &event.ExtensionLogged{Name: e.cfg.Name, Level: level, Line: tool.Clean(line)}})
}

func (e *ext) record(d event.Draft) {
	if e.opts.Record != nil {
		_ = e.opts.Record(d) // see Options.Record
	}
}
