package gate_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/harness"
	"github.com/abhed/abhed/ahp/transport"
	"github.com/abhed/abhed/internal/agent"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/gate"
	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/strictjson"
)

// hooked gives the rig one backend in this process, which intercepts everything.
func (r *rig) hooked(judge ahptest.Judge) *ahptest.Fake {
	r.t.Helper()
	fake := ahptest.NewFake(judge)
	reg, err := ahp.DecodeRegistration([]byte(`{"protocolVersion":"draft","hooks":[{"id":"org.test.one","transport":{"type":"stdio","command":"none","lifecycle":"persistent"},
		"subscriptions":[{"events":["*"],"mode":"intercept","timeoutMs":5000,"failurePolicy":"fail-closed","content":{"default":"body"}}]}]}`))
	if err != nil {
		r.t.Fatal(err)
	}
	h, err := harness.New(reg, harness.Options{Manifest: gate.Manifest(), Open: func(*ahp.Backend) (transport.Transport, error) { return fake, nil }})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = h.Close() })
	r.opts.Backends = gate.NewBackends(h, gate.Identity{Source: "urn:abhed:test", Session: "s1", Workspace: r.dir, Model: "p/m", Agent: "main", Version: "test", Mode: "default"}, nil)
	r.gate = gate.New(r.opts)
	return fake
}

func says(role event.Role, parts ...model.Part) *model.Message {
	return &model.Message{Role: role, Parts: parts}
}

// conversation is a short history with two calls.
func conversation() []*model.Message {
	call := func(id string) model.Part {
		return model.Part{ToolCall: &model.ToolCall{ID: id, Name: "read", Args: `{"path":"a"}`}}
	}
	result := func(id string) model.Part {
		return model.Part{ToolResult: &model.ToolResult{CallID: id, Name: "read", Content: "result of " + id}}
	}
	thought := "hm"
	return []*model.Message{
		says(event.RoleUser, event.TextPart("do it")),
		says(event.RoleAssistant, model.Part{Reasoning: &thought}, event.TextPart("I look"), call("c1"), call("c2")),
		says(event.RoleTool, result("c1")), says(event.RoleTool, result("c2")),
		says(event.RoleUser, event.TextPart("go on")),
	}
}

// moments is one of each that backends are asked about.
func moments() []agent.Moment {
	reply := &model.Response{Message: says(event.RoleAssistant, event.TextPart("said")), Finish: model.FinishStop}
	return []agent.Moment{
		&agent.Inbound{Item: "m1", Text: "said"}, &agent.TurnStart{Item: "m1", Text: "said"},
		&agent.RequestBefore{Attempt: agent.Attempt{ID: "a", Number: 1}, System: "sys", Messages: conversation()},
		&agent.ResponseAfter{Attempt: agent.Attempt{ID: "a", Number: 1}, Item: "m6", Response: reply},
		&agent.BatchAfter{Batch: &agent.Batch{ID: "b", CallIDs: []string{"c1"}}, Outcomes: []agent.Outcome{{Kind: "ok", Ran: true, Call: policy.Call{ID: "c1", Tool: "read", Args: []byte(`{}`)}}}},
		&agent.TurnFinish{Item: "m6", Reply: reply.Message, Remaining: 1}, &agent.Outbound{Item: "m6", Text: "said"},
	}
}

// TestUnrecordedDecisionRefuses lets the record fail where a decision is to be
// written: whatever the backend said, nothing may go on.
func TestUnrecordedDecisionRefuses(t *testing.T) {
	r := newRig(t)
	fake := r.hooked(nil)
	r.log.fail = func(p event.Payload) error {
		if _, is := p.(*event.HooksDecided); is {
			return errors.New("disk full")
		}
		return nil
	}
	for _, m := range moments() {
		say := r.gate.Ask(t.Context(), agent.At{TurnID: "t", Turn: 1}, m)
		if say.Refusal == nil || say.Refusal.Err == nil || say.Text != "" || say.Reply != nil || say.Request != nil {
			t.Errorf("%s: %+v", m.EventType(), say)
		}
	}
	if _, err := r.gate.Start(t.Context(), "startup", "", "sys"); err == nil {
		t.Error("a session starts whose decision is not in the record")
	}
	if n := len(fake.Requests()); n != len(moments())+1 {
		t.Errorf("asked %d times", n)
	}
}

// TestDecisionsAtMomentsAreOnDisk holds that the loop acts on nothing that is in
// memory only.
func TestDecisionsAtMomentsAreOnDisk(t *testing.T) {
	r := newRig(t)
	log := &diskLog{memLog: r.log, t: t}
	r.opts.Log = log
	r.hooked(ahptest.Says(&ahp.Notice{Text: "hello"}))
	for _, m := range moments() {
		r.gate.Ask(t.Context(), agent.At{TurnID: "t", Turn: 3}, m)
		d, durable := newest[*event.HooksDecided](log)
		if d == nil || !durable || d.EventType != string(m.EventType()) || d.Turn != 3 || d.TurnID != "t" || d.Outcome != "none" ||
			!slices.Equal(d.Messages, []string{"hello"}) || len(d.Asked) != 1 || d.Asked[0].EventID != d.EventID || d.Asked[0].Answer != "message" {
			t.Errorf("%s: on disk %t: %+v", m.EventType(), durable, d)
		}
	}
}

// TestBackendsThatCantBeAddressedRefuse closes the harness: that is no backend's
// failure, so no policy opens it, and nobody's refusal.
func TestBackendsThatCantBeAddressedRefuse(t *testing.T) {
	r := newRig(t)
	fake := ahptest.NewFake(nil)
	reg, err := ahp.DecodeRegistration([]byte(`{"protocolVersion":"draft","hooks":[{"id":"org.test.one","transport":{"type":"stdio","command":"none","lifecycle":"persistent"},
		"subscriptions":[{"events":["*"],"mode":"intercept","timeoutMs":5000,"failurePolicy":"fail-open","content":{"default":"body"}}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	h, err := harness.New(reg, harness.Options{Manifest: gate.Manifest(), Open: func(*ahp.Backend) (transport.Transport, error) { return fake, nil }})
	if err != nil {
		t.Fatal(err)
	}
	r.opts.Backends = gate.NewBackends(h, gate.Identity{Source: "urn:abhed:test", Session: "s1", Model: "p/m"}, nil)
	g := gate.New(r.opts)
	_ = h.Close()
	for _, m := range moments() {
		if say := g.Ask(t.Context(), agent.At{TurnID: "t"}, m); say.Refusal == nil || !say.Refusal.Interrupted || say.Text != "" {
			t.Errorf("%s: %+v", m.EventType(), say)
		}
	}
	// An event that the protocol doesn't allow is a defect of ours, which refuses too.
	if say := g.Ask(t.Context(), agent.At{}, &agent.TurnStart{Item: "m1", Text: "said"}); say.Refusal == nil || say.Refusal.Reason != harness.SyntheticReason {
		t.Errorf("%+v", say)
	}
}

// edit asks about a request with the messages changed by f.
func edit(t *testing.T, f func(list []ahp.Message) []ahp.Message) (*agent.Say, *event.HooksDecided) {
	t.Helper()
	r := newRig(t)
	r.hooked(func(_ context.Context, q *ahp.Intercept) ([]ahp.Effect, error) {
		value, err := strictjson.Marshal(f(slices.Clone(q.Event.Items.Messages)))
		if err != nil {
			return nil, err
		}
		return []ahp.Effect{&ahp.Modify{Target: ahp.TargetRequest, Operation: ahp.OpReplace, Value: value}}, nil
	})
	m := &agent.RequestBefore{Attempt: agent.Attempt{ID: "a", Number: 1}, System: "sys", Messages: conversation()}
	return r.gate.Ask(t.Context(), agent.At{TurnID: "t"}, m), last[*event.HooksDecided](r.log)
}

// show1 is a request in short.
func show1(req *model.Request) string {
	out := req.System
	for _, m := range req.Messages {
		out += fmt.Sprintf("\n%s:", m.Role)
		for _, p := range m.Parts {
			switch {
			case p.Text != nil:
				out += " " + *p.Text
			case p.Reasoning != nil:
				out += " (" + *p.Reasoning + ")"
			case p.ToolCall != nil:
				out += " [" + p.ToolCall.ID + " " + p.ToolCall.Args + "]"
			case p.ToolResult != nil:
				out += " <" + p.ToolResult.CallID + " " + p.ToolResult.Content + ">"
			}
		}
	}
	return out
}

const whole = "sys\nuser: do it\nassistant: (hm) I look [c1 {\"path\":\"a\"}] [c2 {\"path\":\"a\"}]\ntool: <c1 result of c1>\ntool: <c2 result of c2>\nuser: go on"

// TestRequestsAreEdited holds what a backend can make of a request.
func TestRequestsAreEdited(t *testing.T) {
	set := func(i, j int, text string) func([]ahp.Message) []ahp.Message {
		return func(list []ahp.Message) []ahp.Message {
			list[i].Parts = slices.Clone(list[i].Parts)
			list[i].Parts[j].Text = &text
			return list
		}
	}
	without := func(drop ...int) func([]ahp.Message) []ahp.Message {
		return func(list []ahp.Message) []ahp.Message {
			var out []ahp.Message
			for i := range list {
				if !slices.Contains(drop, i) {
					out = append(out, list[i])
				}
			}
			return out
		}
	}
	part := func(category string) func(list []ahp.Message) []ahp.Message {
		return func(list []ahp.Message) []ahp.Message {
			p := ahp.TextPart("new", `{"id":"c9","name":"bash","arguments":"{}"}`)
			p.Category = category
			list[2].Parts = append(slices.Clone(list[2].Parts), p)
			return list
		}
	}
	tests := []struct {
		name string
		f    func([]ahp.Message) []ahp.Message
		want string // what is sent, or "!" and a part of the refusal
	}{
		{"a prompt", set(1, 0, "do that"), strings.Replace(whole, "do it", "do that", 1)},
		{"the system prompt", set(0, 0, "be brief"), strings.Replace(whole, "sys", "be brief", 1)},
		{"a result", set(3, 0, "clean"), strings.Replace(whole, "result of c1", "clean", 1)},
		{"the thoughts", set(2, 0, "redacted"), strings.Replace(whole, "(hm)", "(redacted)", 1)},
		{"a text to nothing", set(2, 1, ""), strings.Replace(whole, " I look", "", 1)},
		{"the calls and their results left out", without(2, 3, 4), "sys\nuser: do it\nuser: go on"},
		{"the system prompt left out", without(0), strings.TrimPrefix(whole, "sys")},
		{"a call", set(2, 2, `{"id":"c1","name":"bash","arguments":"{}"}`), "!not changed or added"},
		{"a new call", part("tool_call"), "!not changed or added"},
		{"a call left without its result", without(3), "!no result"},
		{"a result without its call", without(2), "!answer a call"},
		{"everything left out", without(0, 1, 2, 3, 4, 5), "!no message left"},
		{"the model's own words last", without(3, 4, 5), "!no result"},
		{"a call twice", func(list []ahp.Message) []ahp.Message { return slices.Insert(list, 3, list[2]) }, "!twice"},
		{"a call in a user's message", func(list []ahp.Message) []ahp.Message { list[2].Role = ahp.RoleUser; return list }, "!can't be in a message"},
		{"a result in a user's message", func(list []ahp.Message) []ahp.Message { list[3].Role = ahp.RoleUser; return list }, "!can't be in a message"},
	}
	for _, tt := range tests {
		say, d := edit(t, tt.f)
		if want, refused := strings.CutPrefix(tt.want, "!"); refused {
			if say.Refusal == nil || !strings.Contains(say.Refusal.Reason, want) || say.Request != nil || d.Outcome != "denied" || d.Code != "invalid_rewrite" || say.Refusal.By != "backend org.test.one" {
				t.Errorf("%s: %+v, recorded %+v", tt.name, say.Refusal, d)
			}
			continue
		}
		if say.Request == nil || show1(say.Request) != tt.want {
			t.Errorf("%s: %+v\n%s\nwant\n%s", tt.name, say.Refusal, show1(say.Request), tt.want)
			continue
		}
		if d.Outcome != "changed" || !slices.Equal(say.By, []string{"backend org.test.one"}) || len(d.Request) == 0 {
			t.Errorf("%s: recorded %+v", tt.name, d)
		}
	}
}

// TestOnlyWhatChangedIsRecorded holds that a changed request doesn't put the whole
// conversation into the record once more, and that what stays is the same value,
// which the clients of models know by.
func TestOnlyWhatChangedIsRecorded(t *testing.T) {
	say, d := edit(t, func(list []ahp.Message) []ahp.Message {
		return append(list, ahp.TextMessage("extra", ahp.RoleDeveloper, "be brief"))
	})
	var ids []string
	for _, item := range d.Request {
		id := item.ID
		if item.Message != nil {
			id += " " + string(item.Message.Role) + " " + item.Message.Text()
		}
		ids = append(ids, id)
	}
	if want := []string{"system", "m1", "m2", "c1:result", "c2:result", "m5", "extra user be brief"}; !slices.Equal(ids, want) {
		t.Errorf("recorded %q, want %q", ids, want)
	}
	if n := len(say.Request.Messages); n != 6 {
		t.Errorf("%d messages", n)
	}
}

// TestRepliesAreEdited holds what a backend can make of a reply.
func TestRepliesAreEdited(t *testing.T) {
	reply := conversation()[1]
	tests := []struct {
		name string
		f    func(m *ahp.Message)
		want string
	}{
		{"a call left out", func(m *ahp.Message) { m.Parts = m.Parts[:3] }, "\nassistant: (hm) I look [c1 {\"path\":\"a\"}]"},
		{"all calls left out", func(m *ahp.Message) { m.Parts = m.Parts[:2] }, "\nassistant: (hm) I look"},
		{"the text", func(m *ahp.Message) { text := "I see"; m.Parts[1].Text = &text }, "\nassistant: (hm) I see [c1 {\"path\":\"a\"}] [c2 {\"path\":\"a\"}]"},
		{"a call", func(m *ahp.Message) {
			text := strings.Replace(*m.Parts[2].Text, "read", "bash", 1)
			m.Parts[2].Text = &text
		}, "!not changed or added"},
		{"a call renamed", func(m *ahp.Message) { m.Parts[2].ID = "new" }, "!not changed or added"},
		{"a call that is text", func(m *ahp.Message) { m.Parts[2].Category = "" }, "!not changed or added"},
		{"another role", func(m *ahp.Message) { m.Role = ahp.RoleUser }, "!role user"},
	}
	for _, tt := range tests {
		r := newRig(t)
		r.hooked(func(_ context.Context, q *ahp.Intercept) ([]ahp.Effect, error) {
			m := q.Event.Items.Messages[0]
			tt.f(&m)
			value, err := strictjson.Marshal([]ahp.Message{m})
			return []ahp.Effect{&ahp.Modify{Target: ahp.TargetResponse, Operation: ahp.OpReplace, Value: value}}, err
		})
		m := &agent.ResponseAfter{Attempt: agent.Attempt{ID: "a", Number: 1}, Item: "m2", Response: &model.Response{Message: reply, Finish: model.FinishToolCalls}}
		say := r.gate.Ask(t.Context(), agent.At{TurnID: "t"}, m)
		if want, refused := strings.CutPrefix(tt.want, "!"); refused {
			if say.Refusal == nil || !strings.Contains(say.Refusal.Reason, want) || say.Reply != nil {
				t.Errorf("%s: %+v", tt.name, say)
			}
			continue
		}
		if say.Reply == nil || show1(&model.Request{Messages: []*model.Message{say.Reply}}) != tt.want {
			t.Errorf("%s: %+v %+v", tt.name, say.Refusal, say.Reply)
			continue
		}
		left := len(reply.ToolCalls()) - len(say.Reply.ToolCalls())
		if d := last[*event.HooksDecided](r.log); len(d.LeftOut) != left || left > 0 && d.LeftOut[left-1] != "c2 read" {
			t.Errorf("%s: the record has left out %q", tt.name, d.LeftOut)
		}
	}
}
