package gate_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/harness"
	"github.com/abhed/abhed/ahp/transport"
	"github.com/abhed/abhed/internal/agent"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/gate"
	"github.com/abhed/abhed/internal/strictjson"
)

// watched gives the rig one backend in this process, which intercepts and observes
// everything, under the failure policy.
func (r *rig) watched(failure string, judge ahptest.Judge) *ahptest.Fake {
	r.t.Helper()
	return r.subscribed(failure, `"*"`, judge)
}

// subscribed is watched for some events.
func (r *rig) subscribed(failure, events string, judge ahptest.Judge) *ahptest.Fake {
	r.t.Helper()
	fake := ahptest.NewFake(judge)
	reg, err := ahp.DecodeRegistration(fmt.Appendf(nil, `{"protocolVersion":"draft","hooks":[{"id":"org.test.one","transport":{"type":"stdio","command":"none","lifecycle":"persistent"},
		"subscriptions":[{"events":[%[2]s],"mode":"intercept","timeoutMs":5000,"failurePolicy":%[1]q,"content":{"default":"body"}},
		{"events":[%[2]s],"mode":"observe","content":{"default":"body"}}]}]}`, failure, events))
	if err != nil {
		r.t.Fatal(err)
	}
	h, err := harness.New(reg, harness.Options{Manifest: gate.Manifest(), Open: func(*ahp.Backend) (transport.Transport, error) { return fake, nil }})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = h.Close() })
	r.h = h
	r.opts.Backends = gate.NewBackends(h, gate.Identity{Source: "urn:abhed:test", Session: "s1", Workspace: r.dir, Roots: []string{r.dir}, Model: "p/m", Agent: "main", Version: "test", Mode: "default"}, nil)
	r.gate = gate.New(r.opts)
	return fake
}

// seen waits for the newest observed event of a type.
func seen(t *testing.T, fake *ahptest.Fake, typ ahp.EventType) *ahp.Event {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		list := fake.Observed()
		for i := len(list) - 1; i >= 0; i-- {
			if list[i].Type == typ {
				return list[i]
			}
		}
	}
	t.Fatalf("%s was not observed", typ)
	return nil
}

// beside is one of each moment beside a turn that backends are asked about.
func beside() []agent.Moment {
	return []agent.Moment{
		&agent.CompactBefore{Trigger: "overflow", Messages: conversation(), Instructions: "be brief", Before: 100},
		&agent.CompactAfter{Summary: "was said", Removed: []string{"m1", "m2"}, Before: 100, After: 10},
		&agent.ModelSwitchBefore{Current: "p/m", Proposed: "p/n", Reason: "user", Price: &agent.Price{Input: 0.25, Output: 10}},
		&agent.ModeChangeBefore{From: "auto", To: "default"},
		&agent.TaskBefore{ID: "1", Operation: "update", Change: []byte(`{"status":"done"}`), Prior: []byte(`{"status":"open"}`)},
		&agent.ElicitBefore{Server: "srv", Request: form},
	}
}

const form = `{"message":"which?","requestedSchema":{"type":"object","properties":{"name":{"type":"string","minLength":2}},"required":["name"]}}`

func text(id, s string) ahp.Raw {
	b, err := strictjson.Marshal([]ahp.Part{ahp.TextPart(id, s)})
	if err != nil {
		panic(err)
	}
	return b
}

func given(s string) []ahp.Message {
	return []ahp.Message{ahp.TextMessage("x", ahp.RoleUser, s)}
}

// TestEffectsBesideTurns holds each effect that is offered at each of these moments.
func TestEffectsBesideTurns(t *testing.T) {
	const by = "backend org.test.one"
	deny := &ahp.Deny{Reason: "no", Code: "org.test.no"}
	inject := &ahp.Inject{DeliverAt: ahp.DeliverNow, Messages: given("know this")}
	later := &ahp.Inject{DeliverAt: ahp.DeliverNextTurn, Messages: given("later")}
	edit := func(t ahp.Target, op ahp.Operation, v ahp.Raw) ahp.Effect {
		return &ahp.Modify{Target: t, Operation: op, Value: v}
	}
	refused := func(s *agent.Say, d *event.HooksDecided) bool {
		return s.Refusal != nil && s.Refusal.By == by && s.Refusal.Reason == "no" && d.Outcome == "denied" && d.Code == "org.test.no"
	}
	tests := []struct {
		name   string
		moment int
		effect ahp.Effect
		want   func(s *agent.Say, d *event.HooksDecided) bool
	}{
		{"compact, nothing", 0, nil, func(s *agent.Say, d *event.HooksDecided) bool {
			return s.Text == "be brief" && s.Summary == nil && d.Outcome == "none"
		}},
		{"compact, deny", 0, deny, refused},
		{"compact, other instructions", 0, edit(ahp.TargetInstructions, ahp.OpReplace, text("i", "keep names")), func(s *agent.Say, d *event.HooksDecided) bool {
			return s.Text == "keep names" && slices.Equal(s.By, []string{by}) && d.Outcome == "changed"
		}},
		{"compact, more instructions", 0, edit(ahp.TargetInstructions, ahp.OpMerge, text("i", "keep names")), func(s *agent.Say, d *event.HooksDecided) bool {
			return s.Text == "be brief\nkeep names"
		}},
		{"compact, a summary", 0, &ahp.Return{Value: text("s", "all is well")}, func(s *agent.Say, d *event.HooksDecided) bool {
			return s.Summary != nil && *s.Summary == "all is well" && d.Outcome == "supplied" && d.By == by
		}},
		{"compact, an empty summary", 0, &ahp.Return{Value: text("s", " ")}, func(s *agent.Say, d *event.HooksDecided) bool {
			return s.Refusal != nil && s.Summary == nil && d.Code == "invalid_rewrite"
		}},
		{"compact, context", 0, inject, func(s *agent.Say, d *event.HooksDecided) bool {
			return slices.Equal(s.Injected, []string{"know this"}) && slices.Equal(d.Injected, s.Injected)
		}},
		{"compacted, another summary", 1, edit(ahp.TargetSummary, ahp.OpReplace, text("s", "redacted")), func(s *agent.Say, d *event.HooksDecided) bool {
			return s.Text == "redacted" && d.Outcome == "changed" && len(d.OriginalHash) == 64 && d.Original == ""
		}},
		{"compacted, no summary", 1, edit(ahp.TargetSummary, ahp.OpReplace, text("s", "")), func(s *agent.Say, d *event.HooksDecided) bool {
			return s.Refusal != nil && d.Code == "invalid_rewrite"
		}},
		{"compacted, context", 1, later, func(s *agent.Say, d *event.HooksDecided) bool {
			return s.Text == "was said" && slices.Equal(s.Later, []string{"later"})
		}},
		{"model, deny", 2, deny, refused},
		{"model, stop", 2, &ahp.Flow{Operation: ahp.FlowStop, Reason: "enough"}, func(s *agent.Say, d *event.HooksDecided) bool {
			return s.Stop == by+": enough" && d.Outcome == "stopped"
		}},
		{"mode, deny", 3, deny, refused},
		{"task, deny", 4, deny, refused},
		{"elicitation, deny", 5, deny, refused},
		{"elicitation, an answer", 5, &ahp.Return{Value: ahp.Raw(`{"content":{"name":"ann"},"action":"accept"}`)}, func(s *agent.Say, d *event.HooksDecided) bool {
			return s.Text == `{"action":"accept","content":{"name":"ann"}}` && d.Outcome == "supplied"
		}},
	}
	for i, m := range beside() {
		tests = append(tests, struct {
			name   string
			moment int
			effect ahp.Effect
			want   func(s *agent.Say, d *event.HooksDecided) bool
		}{string(m.EventType()) + ", message", i, &ahp.Notice{Text: "hello"}, func(s *agent.Say, d *event.HooksDecided) bool {
			return s.Refusal == nil && slices.Equal(d.Messages, []string{"hello"})
		}})
	}
	for _, tt := range tests {
		r := newRig(t)
		r.watched("fail-closed", func(context.Context, *ahp.Intercept) ([]ahp.Effect, error) {
			if tt.effect == nil {
				return nil, nil
			}
			return []ahp.Effect{tt.effect}, nil
		})
		m := beside()[tt.moment]
		say := r.gate.Ask(t.Context(), agent.At{TurnID: "t", Turn: 2}, m)
		d := last[*event.HooksDecided](r.log)
		if d == nil || d.EventType != string(m.EventType()) || !tt.want(say, d) {
			t.Errorf("%s: %+v %+v, recorded %+v", tt.name, say, say.Refusal, d)
		}
	}
}

// TestOffersBesideTurns holds that no other effect is offered there.
func TestOffersBesideTurns(t *testing.T) {
	want := map[ahp.EventType]string{
		ahp.ContextCompactBefore: "[deny modify return inject message]", ahp.ContextCompactAfter: "[inject modify message]", ahp.ModelSwitchBefore: "[deny flow message]",
		ahp.ConfigChangeBefore: "[deny message]", ahp.TaskChangeBefore: "[deny message]", ahp.UserElicitationRequest: "[deny return message]", ahp.UserElicitationResult: "[modify message]",
	}
	for _, row := range gate.Manifest().Events {
		if w, ok := want[row.Event]; ok {
			if got := fmt.Sprint(row.Capabilities.Effects); got != w {
				t.Errorf("%s: %s, want %s", row.Event, got, w)
			}
			delete(want, row.Event)
		}
		if e := row.Capabilities; e != nil && e.Elicitation != nil && (e.Elicitation.Form == nil || e.Elicitation.URL != nil) {
			t.Errorf("%s: %+v", row.Event, e.Elicitation)
		}
	}
	if len(want) > 0 {
		t.Errorf("not in the manifest: %v", want)
	}
	if _, err := gate.Manifest().Encode(); err != nil {
		t.Error(err)
	}
	for _, g := range gate.Manifest().Gaps {
		for _, gone := range []string{"doesn't change within", "aren't compacted", "no task lists", "no MCP servers"} {
			if strings.Contains(g.Reason, gone) {
				t.Errorf("the gap %s says %q", g.Path, g.Reason)
			}
		}
	}
}

// TestWhatBackendsReadBesideTurns holds the members of these events.
func TestWhatBackendsReadBesideTurns(t *testing.T) {
	r := newRig(t)
	fake := r.watched("fail-closed", nil)
	at := agent.At{TurnID: "t", Turn: 2, WorkDir: r.dir}
	start := r.gate.Ask(t.Context(), at, &agent.TurnStart{Item: "m1", Text: "go"})
	if start.Refusal != nil {
		t.Fatal(start.Refusal)
	}
	for _, m := range beside() {
		r.gate.Ask(t.Context(), at, m)
	}
	got := map[ahp.EventType]*ahp.Event{}
	for _, q := range fake.Requests() {
		got[q.Event.Type] = q.Event
	}
	turn := got[ahp.TurnStart].ID
	c := got[ahp.ContextCompactBefore]
	if c.Trigger != "auto" || len(c.Items.Messages) != 5 || c.Items.Messages[2].ID != "c1:result" || *c.Instructions[0].Text != "be brief" || *c.TokenCounts.Before != 100 || c.ParentEventID != turn {
		t.Errorf("%+v", c)
	}
	a := got[ahp.ContextCompactAfter]
	if *a.Summary[0].Text != "was said" || len(a.Removed) != 2 || a.Removed[1].ID != "m2" || a.Execution.Status != "executed" || *a.TokenCounts.After != 10 || a.ParentEventID != c.ID {
		t.Errorf("%+v", a)
	}
	s := got[ahp.ModelSwitchBefore]
	if *s.Current != (ahp.Model{ID: "m", Provider: "p"}) || *s.Proposed != (ahp.Model{ID: "n", Provider: "p"}) || s.Reason != "user" || s.Pricing.Currency != "USD" || string(s.Pricing.InputPerMillionTokens) != "0.25" || string(s.Pricing.OutputPerMillionTokens) != "10" {
		t.Errorf("%+v %+v", s, s.Pricing)
	}
	k := got[ahp.ConfigChangeBefore].Change
	if k.Source != "user" || k.Scope != "session" || !slices.Equal(k.Settings, []string{"permissions.mode"}) || k.Summary != "permissions.mode changes from auto to default" {
		t.Errorf("%+v", k)
	}
	if w := got[ahp.TaskChangeBefore].Task; w.ID != "1" || w.Operation != "update" || string(w.Change) != `{"status":"done"}` || string(w.Prior) != `{"status":"open"}` {
		t.Errorf("%+v", w)
	}
	if e := got[ahp.UserElicitationRequest].Elicitation; e.Server != "srv" || e.Mode != "form" || *e.Request.Text != form {
		t.Errorf("%+v", e)
	}
	supplied := r.gate.Ask(t.Context(), agent.At{}, &agent.CompactAfter{Summary: "given", Supplied: true})
	list := fake.Requests()
	e := list[len(list)-1].Event
	if supplied.Text != "given" || e.Execution.Reason != "supplied_result" || e.ParentEventID != "" || e.Turn != nil {
		t.Errorf("%+v %+v", supplied, e)
	}
}

// TestToldBesideTurns holds what observers are told, and which proposal it came from.
func TestToldBesideTurns(t *testing.T) {
	r := newRig(t)
	fake := r.watched("fail-closed", nil)
	g, at := r.gate, agent.At{TurnID: "t", Turn: 2}
	asked := func(m agent.Moment) string {
		g.Ask(t.Context(), at, m)
		list := fake.Requests()
		return list[len(list)-1].Event.ID
	}
	before := asked(&agent.ModelSwitchBefore{Current: "p/m", Proposed: "q/n", Reason: "user"})
	g.Tell(t.Context(), at, &agent.ModelSwitch{Previous: "p/m", Current: "q/n", Reason: "user"})
	if e := seen(t, fake, ahp.ModelSwitchAfter); *e.Previous != (ahp.Model{ID: "m", Provider: "p"}) || *e.Current != (ahp.Model{ID: "n", Provider: "q"}) || e.ParentEventID != before || e.Session.Model != "q/n" {
		t.Errorf("%+v", e)
	}
	before = asked(&agent.ModeChangeBefore{From: "auto", To: "plan"})
	g.Tell(t.Context(), at, &agent.ModeChange{From: "auto", To: "plan"})
	if e := seen(t, fake, ahp.ConfigChangeAfter); e.Change.Summary != "permissions.mode changes from auto to plan" || e.ParentEventID != before {
		t.Errorf("%+v", e)
	}
	g.Tell(t.Context(), at, &agent.TaskChange{ID: "0", Operation: "update", Change: []byte(`{"a":1}`), Prior: []byte(`{ "a":1 }`)}) // nothing changed
	before = asked(&agent.TaskBefore{ID: "1", Operation: "remove"})
	g.Tell(t.Context(), at, &agent.TaskChange{ID: "1", Operation: "remove", Prior: []byte(`{"a":1}`)})
	if e := seen(t, fake, ahp.TaskChangeAfter); e.Task.ID != "1" || e.Task.Operation != "remove" || e.ParentEventID != before {
		t.Errorf("%+v", e)
	}
	g.Tell(t.Context(), at, &agent.Attention{Kind: "idle", Title: "Done", Message: "It is your turn"})
	if e := seen(t, fake, ahp.UserAttention); e.Attention.Kind != "idle" || *e.Attention.Title[0].Text != "Done" || *e.Attention.Message[0].Text != "It is your turn" {
		t.Errorf("%+v", e)
	}
	n := 0
	for _, e := range fake.Observed() {
		if e.Type == ahp.TaskChangeAfter {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d changes of tasks", n)
	}
	if b := last[*event.Notice](r.log); b != nil {
		t.Errorf("the record has %q", b.Text)
	}
}

// TestUnrecordedBesideTurnsRefuses is TestUnrecordedDecisionRefuses for these moments.
func TestUnrecordedBesideTurnsRefuses(t *testing.T) {
	r := newRig(t)
	r.watched("fail-closed", ahptest.Says(&ahp.Notice{Text: "x"}))
	r.log.fail = func(p event.Payload) error {
		if p.Type() == event.TypeHooksDecided {
			return fmt.Errorf("disk full")
		}
		return nil
	}
	for _, m := range beside() {
		if say := r.gate.Ask(t.Context(), agent.At{}, m); say.Refusal == nil || say.Refusal.Err == nil || say.Text != "" || say.Summary != nil {
			t.Errorf("%s: %+v", m.EventType(), say)
		}
	}
}

// TestNothingChangesWithoutBackends holds that every moment stays as it is then, and
// that nothing is recorded.
func TestNothingChangesWithoutBackends(t *testing.T) {
	r := newRig(t)
	g := gate.New(r.opts)
	want := map[ahp.EventType]string{
		ahp.UserMessageInbound: "said", ahp.TurnStart: "said", ahp.UserMessageOutbound: "said", ahp.ContextCompactBefore: "be brief",
		ahp.ContextCompactAfter: "was said", ahp.UserElicitationResult: "{}",
	}
	for _, m := range append(append(moments(), beside()...), &agent.ElicitResult{Result: "{}"}) {
		if say := g.Ask(t.Context(), here, m); say.Text != want[m.EventType()] || say.Refusal != nil || say.Request != nil || say.Reply != nil {
			t.Errorf("%s: %+v", m.EventType(), say)
		}
		delete(want, m.EventType())
	}
	for _, m := range []agent.Moment{&agent.ModelSwitch{}, &agent.ModeChange{}, &agent.TaskChange{}, &agent.Attention{}, &agent.TurnEnd{}} {
		g.Tell(t.Context(), here, m)
	}
	if len(want) > 0 || len(r.log.events) > 0 {
		t.Errorf("not asked: %v, recorded %v", want, r.log.events)
	}
}
