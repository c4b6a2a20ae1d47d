package gate_test

import (
	"context"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/agent"
	"github.com/abhed/abhed/internal/control"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/extension"
	"github.com/abhed/abhed/internal/gate"
	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/policy"
)

// diskLog is a log that knows what of it is on disk: everything up to the last
// durable event. A decision may follow an approval only once that is on disk,
// because the decision is what the gate made of it.
type diskLog struct {
	*memLog
	t      *testing.T
	onDisk int
}

func (l *diskLog) Append(d event.Draft) (event.Event, error) {
	if _, ok := d.Payload.(*event.Decision); ok {
		l.needApproval("the gate decided")
	}
	return l.memLog.Append(d)
}

func (l *diskLog) AppendDurable(d event.Draft) (event.Event, error) {
	e, err := l.Append(d)
	if err == nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.onDisk = len(l.events)
	}
	return e, err
}

// needApproval fails the test if an approval is in memory only.
func (l *diskLog) needApproval(what string) {
	l.t.Helper()
	if p, durable := newest[*event.Approval](l); p != nil && !durable {
		l.t.Errorf("%s on an approval that wasn't on disk", what)
	}
}

// newest returns the last payload of a type and whether it is on disk.
func newest[P event.Payload](l *diskLog) (P, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := len(l.events) - 1; i >= 0; i-- {
		if p, ok := l.events[i].(P); ok {
			return p, i < l.onDisk
		}
	}
	var none P
	return none, false
}

// answers is a person who gives one answer.
func answers(allow bool, scope string) *person {
	return &person{answer: func(q control.Question) (control.Decision, error) {
		return control.Decision{Hash: q.Hash, Allow: allow, Scope: scope, By: "ann"}, nil
	}}
}

// TestDecisionsAreOnDiskBeforeAnybodyActs judges one call for each way in which a
// judgement can end; the loop acts as soon as the gate returns.
func TestDecisionsAreOnDiskBeforeAnybodyActs(t *testing.T) {
	asks := func(r *rig, allow bool, scope string) { r.opts.Approver = answers(allow, scope) }
	tests := []struct {
		name, tool, args string
		outcome, step    string
		set              func(r *rig)
	}{
		{"allowed by the rules", "read", `{"path":"a"}`, "run", "rules", nil},
		{"allowed by mode", "bash", `{"command":"ls"}`, "run", "rules", func(r *rig) { r.env.Mode = policy.ModeBypass }},
		{"approved once", "bash", `{"command":"ls"}`, "run", "approval", func(r *rig) { asks(r, true, event.ScopeOnce) }},
		{"approved for the session", "bash", `{"command":"ls"}`, "run", "approval", func(r *rig) { asks(r, true, event.ScopeSession) }},
		{"refused by the person", "bash", `{"command":"ls"}`, "deny", "approval", func(r *rig) { asks(r, false, "") }},
		{"nobody to ask", "bash", `{"command":"ls"}`, "deny", "headless", nil},
		{"refused by a rule", "bash", `{"command":"ls"}`, "deny", "rules", func(r *rig) { r.rules.Deny = rules("bash(ls)") }},
		{"bad arguments", "bash", `{"command":7}`, "deny", "args", nil},
		{"refused by a backend", "bash", `{"command":"ls"}`, "deny", "backend", func(r *rig) {
			r.serve("fail-closed", on("one", ahp.ToolBefore, `{"type":"deny","reason":"no"}`))
		}},
		{"stopped by a backend", "bash", `{"command":"ls"}`, "stopped", "stop", func(r *rig) {
			r.serve("fail-closed", on("one", ahp.ToolBefore, `{"type":"flow","operation":"stop","reason":"no more"}`))
		}},
		{"supplied by a backend", "bash", `{"command":"ls"}`, "supplied", "rules", func(r *rig) {
			r.env.Mode = policy.ModeBypass
			r.serve("fail-closed", on("one", ahp.ToolBefore, `{"type":"return","value":"as if"}`))
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			log := &diskLog{memLog: r.log, t: t}
			r.opts.Log = log
			current := r.opts.Rules
			r.opts.Rules = func() *gate.Rules { // what the gate does first on a yes
				log.needApproval("the rules were asked again")
				return current()
			}
			if tt.set != nil {
				tt.set(r)
			}
			ruling := r.judge(tt.tool, tt.args)
			d, durable := newest[*event.Decision](log)
			if d == nil || d.Outcome != tt.outcome || d.Step != tt.step {
				t.Fatalf("%s, decision %+v; want %s at step %s", show(ruling), d, tt.outcome, tt.step)
			}
			if !durable {
				t.Errorf("%s was returned while its decision was in memory only", show(ruling))
			}
			if a, durable := newest[*event.Approval](log); (r.opts.Approver != nil) != (a != nil) || a != nil && !durable {
				t.Errorf("approval %+v, on disk %t", a, durable)
			}
		})
	}
}

// TestACancelledCallIsOnDisk ends the turn while a person is asked.
func TestACancelledCallIsOnDisk(t *testing.T) {
	r := newRig(t)
	log := &diskLog{memLog: r.log, t: t}
	r.opts.Log = log
	ctx, cancel := context.WithCancel(t.Context())
	r.opts.Approver = &person{answer: func(q control.Question) (control.Decision, error) {
		cancel()
		return yes(q)
	}}
	ruling := gate.New(r.opts).Judge(ctx, agent.Proposal{Turn: 1, WorkDir: r.dir, Call: &model.ToolCall{ID: "c1", Name: "bash", Args: `{"command":"ls"}`}})
	if _, ok := ruling.(*agent.Cancelled); !ok {
		t.Fatalf("got %s", show(ruling))
	}
	if d, durable := newest[*event.Decision](log); d == nil || d.Outcome != "cancelled" || !durable {
		t.Errorf("decision %+v, on disk %t", d, durable)
	}
}

// TestOutcomesAreOnDiskBeforeOthersHearOfThem finishes calls where there are extensions;
// where there are none the end of the turn takes outcomes to the disk, which the loop's
// tests hold.
func TestOutcomesAreOnDiskBeforeOthersHearOfThem(t *testing.T) {
	r := newRig(t)
	r.opts.Extensions = &extension.Host{}
	log := &diskLog{memLog: r.log, t: t}
	r.opts.Log = log
	g := gate.New(r.opts)
	for _, kind := range []string{"ok", "error", "denied", "cancelled", "supplied", "timeout", "stopped"} {
		f, err := g.Finish(t.Context(), agent.Outcome{Turn: 1, Call: policy.Call{ID: kind, Tool: "read", Args: []byte(`{"path":"a"}`)}, Kind: kind, Content: "text", Ran: kind == "ok"})
		if err != nil || f.Content != "text" {
			t.Fatalf("%s: %+v, %v", kind, f, err)
		}
		if e, durable := newest[*event.ToolEnded](log); e == nil || e.CallID != kind || !durable {
			t.Errorf("%s: recorded %+v, on disk %t", kind, e, durable)
		}
	}
}
