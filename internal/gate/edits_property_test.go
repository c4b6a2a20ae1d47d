package gate_test

import (
	"context"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/agent"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/model/script"
	"github.com/abhed/abhed/internal/strictjson"
)

// drawMessages makes up messages from what was sent and from nothing: parts with
// known and new ids, categories and texts, in any order, in messages of any role.
func drawMessages(t *rapid.T, sent []ahp.Message) []ahp.Message {
	var known []ahp.Part
	for _, m := range sent {
		known = append(known, m.Parts...)
	}
	var out []ahp.Message
	for i := range rapid.IntRange(0, 4).Draw(t, "messages") {
		m := ahp.Message{ID: fmt.Sprintf("new%d", i), Parts: []ahp.Part{}}
		m.Role = rapid.SampledFrom([]ahp.Role{ahp.RoleAssistant, ahp.RoleAssistant, ahp.RoleAssistant, ahp.RoleTool, ahp.RoleUser, ahp.RoleSystem}).Draw(t, "role")
		if rapid.Bool().Draw(t, "known message") {
			m.ID = rapid.SampledFrom(sent).Draw(t, "message").ID
		}
		for j := range rapid.IntRange(0, 4).Draw(t, "parts") {
			p := rapid.SampledFrom(known).Draw(t, "part")
			if rapid.IntRange(0, 3).Draw(t, "id") == 0 {
				p.ID = fmt.Sprintf("%s:p%d", m.ID, j)
			}
			if rapid.IntRange(0, 3).Draw(t, "category") == 0 {
				p.Category = rapid.SampledFrom([]string{"", "text", "reasoning", "tool_call"}).Draw(t, "new category")
			}
			if rapid.IntRange(0, 3).Draw(t, "text") == 0 {
				text := rapid.SampledFrom([]string{"", "words", `{"id":"c1","name":"bash","arguments":"{}"}`, `{"id":"c9","name":"bash","arguments":"{}"}`}).Draw(t, "new text")
				p.Text = &text
			}
			m.Parts = append(m.Parts, p)
		}
		out = append(out, m)
	}
	return out
}

// TestNoEditMakesACall holds that whatever a backend makes of a reply or a request,
// the calls in it are calls that the model made, as it made them, each at most once;
// and that a request which is sent is one that a strict endpoint takes.
func TestNoEditMakesACall(t *testing.T) {
	r := newRig(t)
	var draw *rapid.T
	r.hooked(func(_ context.Context, q *ahp.Intercept) ([]ahp.Effect, error) {
		value, err := strictjson.Marshal(drawMessages(draw, q.Event.Items.Messages))
		op := rapid.SampledFrom([]ahp.Operation{ahp.OpReplace, ahp.OpMerge}).Draw(draw, "op")
		return []ahp.Effect{&ahp.Modify{Target: q.Event.Type.Target(), Operation: op, Value: value}}, err
	})
	history := conversation()
	was := map[string]string{}
	for _, c := range history[1].ToolCalls() {
		was[c.ID] = c.Name + c.Args
	}
	a := agent.Attempt{ID: "a", Number: 1}
	edited := 0
	rapid.Check(t, func(rt *rapid.T) {
		draw = rt
		moment := rapid.SampledFrom([]agent.Moment{
			&agent.ResponseAfter{Attempt: a, Item: "m2", Response: &model.Response{Message: history[1], Finish: model.FinishToolCalls}},
			&agent.TurnFinish{Item: "m2", Reply: history[1], Remaining: 1},
			&agent.RequestBefore{Attempt: a, System: "sys", Messages: history},
		}).Draw(rt, "moment")
		say := r.gate.Ask(t.Context(), agent.At{TurnID: "t"}, moment)
		var messages []*event.Message
		if say.Reply != nil {
			messages = append(messages, say.Reply)
		}
		if say.Request != nil {
			messages = append(messages, say.Request.Messages...)
		}
		if say.Refusal == nil {
			edited += len(messages)
		}
		if say.Refusal != nil && len(messages) > 0 {
			rt.Fatalf("refused, and yet there is %+v", messages)
		}
		if say.Request != nil { // a strict endpoint takes it
			if _, err := script.New([]script.Step{{Text: "ok"}}).Stream(t.Context(), say.Request, nil); err != nil {
				rt.Fatalf("%v\n%s", err, show1(say.Request))
			}
		}
		seen := map[string]bool{}
		for _, m := range messages {
			for _, c := range m.ToolCalls() {
				if m.Role != event.RoleAssistant || seen[c.ID] || was[c.ID] != c.Name+c.Args {
					rt.Fatalf("a message of %s has the call %+v, seen before %t", m.Role, c, seen[c.ID])
				}
				seen[c.ID] = true
			}
		}
	})
	if edited == 0 {
		t.Error("no edit was ever accepted")
	}
}
