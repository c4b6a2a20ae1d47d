package gate_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/agent"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/gate"
	"github.com/abhed/abhed/internal/policy"
)

// asked is what a test's backends were asked, as "backend type command".
type asked struct {
	mu   sync.Mutex
	list []string
	last *ahp.Intercept
}

// serve connects two backends that answer with the effects that reply returns; a
// nil list is a lost connection.
func (r *rig) serve(failure string, reply func(backend string, q *ahp.Intercept) *string) *asked {
	r.t.Helper()
	a := &asked{}
	closeAll := r.backends(r.t, func(_ context.Context, backend string, q *ahp.Intercept) ([]byte, error) {
		a.mu.Lock()
		a.list = append(a.list, fmt.Sprintf("%s %s %s", strings.TrimPrefix(backend, "org.test."), q.Event.Type, q.Event.Tool.Input))
		a.last = q
		a.mu.Unlock()
		effects := reply(strings.TrimPrefix(backend, "org.test."), q)
		if effects == nil {
			return nil, &ahp.Failure{Class: ahp.FailConnect, Detail: "gone"}
		}
		return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%q,"result":{"protocolVersion":"draft","effects":[%s]}}`, q.Event.ID, *effects), nil
	}, failure)
	r.t.Cleanup(closeAll)
	return a
}

func effects(list ...string) *string {
	s := strings.Join(list, ",")
	return &s
}

// on answers with the effects for one backend and event type, and with none else.
func on(backend string, t ahp.EventType, list ...string) func(string, *ahp.Intercept) *string {
	return func(b string, q *ahp.Intercept) *string {
		if b == backend && q.Event.Type == t {
			return effects(list...)
		}
		return effects()
	}
}

const modifyGood = `{"type":"modify","target":"input","operation":"merge","value":{"command":"good"}}`

func TestBackendDenies(t *testing.T) {
	r := newRig(t)
	r.env.Mode = policy.ModeBypass
	a := r.serve("fail-closed", on("one", ahp.ToolBefore, `{"type":"deny","reason":"not on Fridays","code":"org.test.friday"}`))
	r.refused("backend", "refused by backend org.test.one. Reason: not on Fridays.", "bash", `{"command":"ls"}`)
	d := last[*event.Decision](r.log)
	if d.Code != "org.test.friday" || len(d.Asked) != 1 || d.Asked[0].Answer != "deny" || d.Asked[0].Name != "org.test.one#0" {
		t.Errorf("decision %+v", d)
	}
	if want := []string{`one tool.before {"command":"ls"}`}; !slices.Equal(a.list, want) {
		t.Errorf("asked %v, want %v", a.list, want)
	}
}

func TestBackendFailure(t *testing.T) {
	for failure, step := range map[string]string{"fail-closed": "backend", "fail-open": "rules"} {
		r := newRig(t)
		r.env.Mode = policy.ModeBypass
		r.serve(failure, func(b string, _ *ahp.Intercept) *string {
			if b == "one" {
				return nil
			}
			return effects()
		})
		ruling := r.judge("bash", `{"command":"ls"}`)
		d := last[*event.Decision](r.log)
		if d.Step != step || (d.Outcome == "run") != (failure == "fail-open") {
			t.Errorf("%s: %s at step %s", failure, show(ruling), d.Step)
		}
		f := last[*event.BackendFailed](r.log)
		if f == nil || f.Class != "connect" || f.Policy != failure || f.EventType != "tool.before" {
			t.Errorf("%s: recorded failure %+v", failure, f)
		}
		if refused, ok := ruling.(*agent.Refused); ok && strings.Contains(refused.Text, "gone") {
			t.Errorf("the model reads the detail of the failure: %s", refused.Text)
		}
	}
}

func TestUnadvertisedAllowIsAFailure(t *testing.T) {
	r := newRig(t)
	a := r.serve("fail-closed", on("two", ahp.ToolBefore, `{"type":"allow"}`))
	r.refused("backend", "required policy check", "bash", `{"command":"ls"}`)
	if f := last[*event.BackendFailed](r.log); f == nil || f.Class != "effect" {
		t.Errorf("recorded failure %+v", f)
	}
	for _, row := range gate.Manifest().Events {
		if row.Capabilities.Has(ahp.EffectAllow) {
			t.Errorf("%s offers allow", row.Event)
		}
	}
	if len(a.list) != 2 {
		t.Errorf("asked %v", a.list)
	}
}

func TestBackendAsksAndPersonAnswers(t *testing.T) {
	r := newRig(t)
	r.env.Mode = policy.ModeBypass
	p := &person{answer: yes}
	r.opts.Approver = p
	a := r.serve("fail-closed", on("one", ahp.ToolBefore, `{"type":"ask"}`, `{"type":"message","text":"costs money"}`))
	r.runs("bash", `{"command":"ls"}`)
	if len(p.asked) != 1 || p.asked[0].SessionOffered || !strings.Contains(p.asked[0].Why[0], "backend org.test.one: costs money") {
		t.Errorf("asked %+v", p.asked)
	}
	want := []string{`one tool.before {"command":"ls"}`, `two tool.before {"command":"ls"}`, `one tool.permission.request {"command":"ls"}`, `two tool.permission.request {"command":"ls"}`}
	if !slices.Equal(a.list, want) {
		t.Errorf("asked %v, want %v", a.list, want)
	}
	if a.last.State == nil || a.last.State.Permission != ahp.PermissionAsk || a.last.Capabilities.Has(ahp.EffectModify) {
		t.Errorf("the permission request came with state %+v and capabilities %+v", a.last.State, a.last.Capabilities)
	}
}

func TestBackendRewrites(t *testing.T) {
	r := newRig(t)
	r.env.Mode = policy.ModeBypass
	r.rules.Deny = rules("bash(bad)")
	r.extensions(r.script("watch", `*odd*'"final":true'*) echo '{"block":true,"reason":"no good"}' ;;`))
	a := r.serve("fail-closed", func(b string, q *ahp.Intercept) *string {
		if b == "two" && len(q.Capabilities.Modify) > 0 {
			return effects(modifyGood)
		}
		return effects()
	})
	r.runs("bash", `{"command":"ls","n":1}`)
	if got := r.ran[0]; got != `bash {"command":"good","n":1}` {
		t.Errorf("what ran is %s", got)
	}
	want := []string{`one tool.before {"command":"ls","n":1}`, `two tool.before {"command":"ls","n":1}`, `one tool.before {"command":"good","n":1}`}
	if !slices.Equal(a.list, want) {
		t.Errorf("asked %v, want %v", a.list, want)
	}
	if a.last.Capabilities.Has(ahp.EffectReturn) || !a.last.Capabilities.Has(ahp.EffectDeny) {
		t.Errorf("asked once more with %v", a.last.Capabilities.Effects)
	}
	r.refused("rules", "deny rule", "bash", `{"command":"bad"}`)
	r.refused("extension", "no good", "bash", `{"command":"odd"}`)
}

// TestEarlierBackendMayRefuseTheRewrite holds that a backend which had no
// objection to the original judges the final input too.
func TestEarlierBackendMayRefuseTheRewrite(t *testing.T) {
	r := newRig(t)
	r.env.Mode = policy.ModeBypass
	r.serve("fail-closed", func(b string, q *ahp.Intercept) *string {
		switch {
		case b == "two":
			return effects(modifyGood)
		case strings.Contains(string(q.Event.Tool.Input), "good"):
			return effects(`{"type":"deny","reason":"not good"}`)
		}
		return effects()
	})
	r.refused("backend", "not good", "bash", `{"command":"ls"}`)
}

func TestBackendRewriteMustFitTheSchema(t *testing.T) {
	r := newRig(t)
	r.env.Mode = policy.ModeBypass
	r.serve("fail-closed", on("one", ahp.ToolBefore, `{"type":"modify","target":"input","operation":"replace","value":{"cmd":"x"}}`))
	r.refused("args", "rewritten by backend org.test.one", "bash", `{"command":"ls"}`)
}

func TestSuppliedResult(t *testing.T) {
	for value, want := range map[string]string{`"as if"`: "as if", `{"b":1,"a":[null]}`: `{"a":[null],"b":1}`, `null`: "null", `""`: ""} {
		r := newRig(t)
		r.env.Mode = policy.ModeBypass
		r.serve("fail-closed", on("one", ahp.ToolBefore, `{"type":"return","value":`+value+`}`))
		s, ok := r.judge("bash", `{"command":"ls"}`).(*agent.Supplied)
		if !ok || s.Content != want || s.By != "backend org.test.one" {
			t.Errorf("return %s: got %+v", value, s)
		}
	}
	// A supplied result permits nothing: the rules and questions stand.
	r := newRig(t)
	r.rules.Deny = rules("bash(ls)")
	r.serve("fail-closed", on("one", ahp.ToolBefore, `{"type":"return","value":"x"}`))
	r.refused("rules", "deny rule", "bash", `{"command":"ls"}`)
	r.refused("headless", "", "bash", `{"command":"make"}`)
	// It is dropped when the input changed after it.
	r = newRig(t)
	r.env.Mode = policy.ModeBypass
	r.serve("fail-closed", func(b string, q *ahp.Intercept) *string {
		switch {
		case b == "two":
			return effects(modifyGood)
		case q.Capabilities.Has(ahp.EffectReturn):
			return effects(`{"type":"return","value":"x"}`)
		}
		return effects()
	})
	if ruling := r.judge("bash", `{"command":"ls"}`); show(ruling)[:10] != "*agent.Run" {
		t.Errorf("got %s", show(ruling))
	}
}

func TestBackendStops(t *testing.T) {
	r := newRig(t)
	r.env.Mode = policy.ModeBypass
	r.serve("fail-closed", on("two", ahp.ToolBefore, `{"type":"flow","operation":"stop","reason":"budget spent"}`))
	s, ok := r.judge("bash", `{"command":"ls"}`).(*agent.Stopped)
	if !ok || s.Reason != "budget spent" || s.By != "backend org.test.two" {
		t.Errorf("got %+v", s)
	}
	if d := last[*event.Decision](r.log); d.Outcome != "stopped" {
		t.Errorf("outcome %s", d.Outcome)
	}
}

func TestBlockedCallIsOnlyShown(t *testing.T) {
	r := newRig(t)
	r.extensions(r.script("guard", `*'"tool_call"'*) echo '{"block":true}' ;;`))
	a := r.serve("fail-closed", func(string, *ahp.Intercept) *string { return effects(`{"type":"deny","reason":"x"}`) })
	r.refused("extension", "", "bash", `{"command":"ls"}`)
	if len(a.list) != 0 {
		t.Errorf("backends were asked about a call that was refused already: %v", a.list)
	}
}

func TestBackendsSeeResults(t *testing.T) {
	const text = `[{"id":"m","role":"tool","parts":[{"id":"p","kind":"text","mediaType":"text/plain","selection":"body","text":"clean"}]}]`
	o := agent.Outcome{Call: policy.Call{ID: "c", Tool: "read", Agent: policy.Agent{ID: "main"}, Args: []byte(`{"path":"x"}`)}, Kind: "ok", Content: "dirty", Ran: true}
	tests := []struct {
		name    string
		failure string
		effects *string
		content string
		check   func(agent.Final) bool
	}{
		{"no opinion", "fail-closed", effects(), "dirty", func(f agent.Final) bool { return !f.IsError }},
		{"rewrite", "fail-closed", effects(`{"type":"modify","target":"output","operation":"replace","value":` + text + `}`), "clean", func(f agent.Final) bool { return !f.IsError }},
		{"stop", "fail-closed", effects(`{"type":"flow","operation":"stop","reason":"enough"}`), "dirty", func(f agent.Final) bool { return strings.Contains(f.Stop, "enough") }},
		{"inject", "fail-closed", effects(`{"type":"inject","target":"context","operation":"append","deliverAt":"now","value":` + text + `}`), "dirty", func(f agent.Final) bool { return slices.Equal(f.Injected, []string{"clean"}) }},
		{"failed closed", "fail-closed", nil, "The result was withheld", func(f agent.Final) bool { return f.IsError }},
		{"failed open", "fail-open", nil, "dirty", func(f agent.Final) bool { return !f.IsError }},
		{"a deny isn't offered here", "fail-closed", effects(`{"type":"deny","reason":"x"}`), "The result was withheld", func(f agent.Final) bool { return f.IsError }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			r.serve(tt.failure, func(b string, _ *ahp.Intercept) *string {
				if b == "one" {
					return tt.effects
				}
				return effects()
			})
			f, err := gate.New(r.opts).Finish(t.Context(), o)
			if err != nil || !strings.HasPrefix(f.Content, tt.content) || !tt.check(f) {
				t.Errorf("got %+v, %v", f, err)
			}
			if strings.Contains(f.Content, "dirty") && tt.content != "dirty" {
				t.Errorf("the model reads %q", f.Content)
			}
		})
	}
}

// TestFailedResultIsContent holds that what a tool said when it failed is sent as
// content and nowhere else: reviewed by the extensions, and by each selection.
func TestFailedResultIsContent(t *testing.T) {
	r := newRig(t)
	r.extensions(r.script("redact", `*'"tool_result"'*) echo '{"content":"clean"}' ;;`))
	a := r.serve("fail-closed", func(string, *ahp.Intercept) *string { return effects() })
	o := agent.Outcome{Call: policy.Call{ID: "c", Tool: "bash", Agent: policy.Agent{ID: "main"}, Args: []byte(`{"command":"x"}`)}, Kind: "error", Content: "dirty", IsError: true, Ran: true}
	if _, err := gate.New(r.opts).Finish(t.Context(), o); err != nil || a.last == nil {
		t.Fatal(err)
	}
	text, err := a.last.Event.Encode()
	if err != nil || strings.Contains(string(text), "dirty") || a.last.Event.Error == nil {
		t.Errorf("%s, %v", text, err)
	}
}

// TestRefusalsCantBeRewritten holds that a backend can't turn the text of a
// refusal into another one.
func TestRefusalsCantBeRewritten(t *testing.T) {
	r := newRig(t)
	a := r.serve("fail-open", func(string, *ahp.Intercept) *string { return effects() })
	for _, kind := range []string{"denied", "stopped", "cancelled"} {
		_, err := gate.New(r.opts).Finish(t.Context(), agent.Outcome{Call: policy.Call{ID: "c", Tool: "read", Agent: policy.Agent{ID: "main"}, Args: []byte(`{}`)}, Kind: kind, Content: "no", IsError: true})
		if err != nil || a.last == nil || a.last.Capabilities.Has(ahp.EffectModify) {
			t.Errorf("%s: %v, offered %+v", kind, err, a.last)
		}
	}
}

// TestLongFailureGoesOn holds that a backend which fails at length is only a failure:
// the policy applies, and what the record has of it is short.
func TestLongFailureGoesOn(t *testing.T) {
	long := strings.Repeat("x", 4<<20)
	for name, fail := range map[string]func(q *ahp.Intercept) ([]byte, error){
		"an error reply": func(q *ahp.Intercept) ([]byte, error) {
			return ahp.EncodeError(ahp.StringID(q.Event.ID), &ahp.RPCError{Code: 1, Message: long})
		},
		"a transport": func(*ahp.Intercept) ([]byte, error) {
			return nil, &ahp.Failure{Class: ahp.FailConnect, Detail: long}
		},
	} {
		r := newRig(t)
		r.env.Mode = policy.ModeBypass
		closeAll := r.backends(t, func(_ context.Context, _ string, q *ahp.Intercept) ([]byte, error) { return fail(q) }, "fail-open")
		t.Cleanup(closeAll)
		r.runs("bash", `{"command":"ls"}`)
		d := last[*event.Decision](r.log)
		if f := last[*event.BackendFailed](r.log); len(f.Detail) > 5000 || len(d.Asked) == 0 || len(d.Asked[0].Reason) > 5000 {
			t.Errorf("%s: %d bytes of detail, %d of a reason", name, len(f.Detail), len(d.Asked[0].Reason))
		}
	}
}
