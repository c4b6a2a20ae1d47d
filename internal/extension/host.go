package extension

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/run"
	"github.com/abhed/abhed/internal/tool"
)

// Host owns the extensions of one session. Its methods may be called from any
// goroutine. Every Host needs a Close.
type Host struct {
	opts   Options
	exts   []*ext // in configuration order
	byName []*ext // sorted by name
	shown  shown
	once   sync.Once
}

// Start starts the extensions in the order of configs and asks all of them at
// once for their tools. ctx bounds the start, not the host's life.
//
// The error is a *StartError if the configuration or a tool's name is at fault,
// ctx's error, or *run.PanicError; then nothing is left running. An extension
// that can't start or doesn't answer is no error: it is dead, which is recorded.
func Start(ctx context.Context, configs []Config, opts Options) (*Host, error) {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	opts.Taken = slices.Clone(opts.Taken)
	h := &Host{opts: opts, shown: shown{limit: maxShown}}
	for _, c := range configs {
		c, err := c.withDefaults()
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(h.exts, func(e *ext) bool { return e.cfg.Name == c.Name }) {
			return nil, &StartError{Extension: c.Name, Msg: "two extensions have this name; rename one"}
		}
		e := &ext{cfg: c, opts: &h.opts, source: policy.Source{Kind: "extension", Name: c.Name}, warned: map[string]bool{}}
		e.invoke = newInvoker(e)
		h.exts = append(h.exts, e)
	}
	h.byName = slices.SortedFunc(slices.Values(h.exts), func(a, b *ext) int { return cmp.Compare(a.cfg.Name, b.cfg.Name) })
	if err := h.start(ctx); err != nil {
		h.Close()
		return nil, err
	}
	return h, nil
}

func (h *Host) start(ctx context.Context) error {
	digests := map[string][]byte{}
	for _, e := range h.exts {
		e.hash = e.cfg.hash(digests)
		e.start()
	}
	lists := make([]answer, len(h.exts))
	group := run.New(ctx)
	for i, e := range h.exts {
		group.Go(func(ctx context.Context) error {
			lists[i], _ = e.ask(ctx, newRequest(eventListTools, h.opts.SessionID))
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	for i, e := range h.exts {
		if lists[i].reply != nil {
			e.offer(lists[i].reply.tools)
		}
	}
	if err := h.checkNames(); err != nil {
		return err
	}
	for _, e := range h.exts {
		e.dropUnusable()
		if e.judging != nil && e.judging.failure() == nil {
			st := e.state()
			e.changed(&event.ExtensionChanged{Name: e.cfg.Name, State: StateStarted, Pid: st.Pid, Hash: e.hash, Tools: st.Tools})
		}
	}
	return nil
}

// start starts the judging process; a failure to do so is the extension's death.
func (e *ext) start() {
	spec, err := e.cfg.spec(e.opts.Confine, e.stderrSink())
	if err == nil {
		// The process may die before this goroutine has the stream.
		ready := make(chan struct{})
		e.judging, err = newStream(spec, e.opts.trace, func(f *failure) {
			<-ready
			e.died(f, e.judging.child.Pid(), e.judging.child.StderrTail())
		})
		close(ready)
	}
	if err != nil {
		e.unstarted = &failure{class: failStart, msg: err.Error()}
		e.died(e.unstarted, 0, "")
	}
}

// checkNames refuses tool names that are taken, reserved or offered twice.
func (h *Host) checkNames() error {
	owner := map[string]string{}
	for _, name := range h.opts.Taken {
		owner[name] = ""
	}
	for _, e := range h.exts {
		for _, t := range e.tools {
			name := t.spec.Name
			fail := func(format string, a ...any) error {
				return &StartError{Extension: e.cfg.Name, Msg: fmt.Sprintf("its tool %q ", name) + fmt.Sprintf(format, a...)}
			}
			if strings.HasPrefix(name, "mcp__") {
				return fail("has a name that is kept for MCP servers; rename the tool")
			}
			switch by, dup := owner[name]; {
			case dup && by == "":
				return fail("has the name of a tool that exists already; rename the extension's")
			case dup && by == e.cfg.Name:
				return fail("is offered twice in one list; remove one")
			case dup:
				return fail("is also provided by extension %q; rename one or remove one of the extensions", by)
			}
			owner[name] = e.cfg.Name
		}
	}
	return nil
}

// Close ends all processes at the same time: standard input is closed, and after
// a grace of one second the process group is killed. It returns when every
// process is reaped and every goroutine of the host has ended; calls in progress
// return as failed. Closing twice does nothing.
func (h *Host) Close() {
	h.once.Do(func() {
		group := run.New(context.Background())
		for _, e := range h.exts {
			group.Go(func(context.Context) error { e.close(); return nil })
			group.Go(func(context.Context) error { e.invoke.close(); return nil })
		}
		_ = group.Wait() // only a panic could be told, and there is nobody to tell
	})
}

func (e *ext) close() {
	if e.judging == nil {
		return
	}
	e.notices.drain(closeGrace)
	alive := e.judging.close(true)
	e.notices.wait()
	if !alive {
		return
	}
	e.changed(&event.ExtensionChanged{
		Name: e.cfg.Name, State: StateEnded, Pid: e.judging.child.Pid(), Hash: e.hash, Cause: e.judging.child.Exit().String(),
	})
}

// Tools returns the tools that the extensions provide, in configuration order and
// in that of their lists. They stay usable until Close.
func (h *Host) Tools() []tool.Tool {
	var out []tool.Tool
	for _, e := range h.exts {
		for _, t := range e.tools {
			out = append(out, t)
		}
	}
	return out
}

// Session describes the session that begins.
type Session struct {
	Workspace, Model, Mode string
}

// SessionStart tells the subscribed extensions that the session begins and waits
// for their replies, which can only hold a log line.
func (h *Host) SessionStart(ctx context.Context, s Session) {
	r := newRequest(eventSessionStart, h.opts.SessionID)
	r.str("workspace", s.Workspace)
	r.str("model", s.Model)
	r.str("mode", s.Mode)
	h.tell(ctx, r)
}

// SessionEnd tells the subscribed extensions why the session ends and waits for
// their replies. Close comes after it.
func (h *Host) SessionEnd(ctx context.Context, reason string) {
	r := newRequest(eventSessionEnd, h.opts.SessionID)
	r.str("reason", reason)
	h.tell(ctx, r)
}

// tell asks every subscribed extension at the same time and drops the answers.
func (h *Host) tell(ctx context.Context, r *request) {
	group := run.New(ctx)
	for _, e := range h.exts {
		if e.cfg.subscribes(r.event) {
			group.Go(func(ctx context.Context) error { e.ask(ctx, r); return nil })
		}
	}
	_ = group.Wait() // a panic costs the notice, nothing more
}
