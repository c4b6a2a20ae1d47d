package agent_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/agent"
	"github.com/abhed/abhed/internal/control"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/tool"
)

// fakeHooks say what ask returns, nil for nothing, and note what they are told.
type fakeHooks struct {
	wants func(t ahp.EventType, m ahp.Mode) bool
	ask   func(at agent.At, m agent.Moment) *agent.Say
	asked []agent.Moment
	told  []agent.Moment
}

func (h *fakeHooks) Wants(t ahp.EventType, m ahp.Mode) bool { return h.wants == nil || h.wants(t, m) }

func (h *fakeHooks) Ask(_ context.Context, at agent.At, m agent.Moment) *agent.Say {
	h.asked = append(h.asked, m)
	if h.ask != nil {
		if say := h.ask(at, m); say != nil {
			return say
		}
	}
	switch m := m.(type) {
	case *agent.Inbound:
		return &agent.Say{Text: m.Text}
	case *agent.TurnStart:
		return &agent.Say{Text: m.Text}
	case *agent.Outbound:
		return &agent.Say{Text: m.Text}
	}
	return &agent.Say{}
}

func (h *fakeHooks) Tell(_ context.Context, _ agent.At, m agent.Moment) { h.told = append(h.told, m) }

func types(moments []agent.Moment) string {
	var out []string
	for _, m := range moments {
		out = append(out, string(m.EventType()))
	}
	return strings.Join(slices.Compact(out), " ")
}

// TestOrderOfMoments holds what is asked in a run, and in which order.
func TestOrderOfMoments(t *testing.T) {
	h := &fakeHooks{}
	b := setup(t, nil, calls("read", "{}"), says("done"))
	b.opts.Hooks = h
	want(t, b.run(t.Context()), agent.ReasonCompleted)
	const asked = "user.message.inbound turn.start model.request.before model.response.after tool.batch.after " +
		"model.request.before model.response.after turn.finish.before user.message.outbound"
	if got := types(h.asked); got != asked {
		t.Errorf("asked %s", got)
	}
	if got := types(h.told); got != "turn.progress turn.end" {
		t.Errorf("told %s", got)
	}
}

// TestNothingIsBuiltForNobody holds that hooks that want nothing are never called.
func TestNothingIsBuiltForNobody(t *testing.T) {
	h := &fakeHooks{wants: func(ahp.EventType, ahp.Mode) bool { return false }}
	failed := &model.Error{Kind: model.ErrServer, Status: 500}
	run := func(_ context.Context, g tool.Grant) tool.Result {
		g.Output("piece")
		return tool.Result{Content: "ok", WorkDir: "/other"}
	}
	b := setup(t, run, calls("write", "{}"), failed, says("done"))
	b.opts.Hooks = h
	want(t, b.run(t.Context()), agent.ReasonCompleted)
	if len(h.asked)+len(h.told) != 0 {
		t.Errorf("asked %s, told %s", types(h.asked), types(h.told))
	}
}

// TestContinuationsAreBounded lets somebody ask for one more step for ever.
func TestContinuationsAreBounded(t *testing.T) {
	for _, limit := range []int{0, 3} {
		var left []int
		h := &fakeHooks{ask: func(_ agent.At, m agent.Moment) *agent.Say {
			if f, ok := m.(*agent.TurnFinish); ok {
				left = append(left, f.Remaining)
				if f.Remaining > 0 {
					return &agent.Say{Continue: true, Instructions: []string{"again"}}
				}
			}
			return nil
		}}
		var replies []any
		for range 20 {
			replies = append(replies, says("done"))
		}
		b := setup(t, nil, replies...)
		b.opts.Hooks, b.opts.Limits.Turns = h, limit
		res := b.run(t.Context())
		want(t, res, agent.ReasonCompleted)
		steps := agent.MaxContinuations + 1
		if limit > 0 {
			steps = limit
		}
		if len(b.model.asked) != steps || left[0] != steps-1 || left[len(left)-1] != 0 || res.Text != "done" {
			t.Errorf("limit %d: %d requests, %v left, text %q", limit, len(b.model.asked), left, res.Text)
		}
		end, ok := h.told[len(h.told)-1].(*agent.TurnEnd)
		if !ok || end.Continuations != steps-1 {
			t.Errorf("the turn ended with %+v", end)
		}
	}
}

// TestLaterWaitsForTheNextPrompt runs two prompts in one loop.
func TestLaterWaitsForTheNextPrompt(t *testing.T) {
	h := &fakeHooks{ask: func(_ agent.At, m agent.Moment) *agent.Say {
		if s, ok := m.(*agent.TurnStart); ok && s.Text == "go" {
			return &agent.Say{Text: s.Text, Later: []string{"one", "two"}}
		}
		return nil
	}}
	b := setup(t, nil, says("first"), says("second"))
	b.opts.Hooks = h
	l := agent.New(b.opts)
	want(t, l.Run(t.Context(), agent.Prompt{Text: "go"}), agent.ReasonCompleted)
	want(t, l.Run(t.Context(), agent.Prompt{Text: "more"}), agent.ReasonCompleted)
	var texts []string
	for _, m := range b.model.asked[1].Messages {
		texts = append(texts, m.Text())
	}
	if w := []string{"go", "first", "one", "two", "more"}; !slices.Equal(texts, w) {
		t.Errorf("the model was sent %q, want %q", texts, w)
	}
	deferred := 0
	for _, p := range of[*event.UserMessage](b.log) {
		if p.Deferred {
			deferred++
		}
	}
	if deferred != 2 {
		t.Errorf("%d messages are marked as having waited", deferred)
	}
}

// TestProgressIsJoined lets a tool write a piece every millisecond for a second.
func TestProgressIsJoined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &fakeHooks{}
		run := func(_ context.Context, g tool.Grant) tool.Result {
			for i := range 1000 {
				g.Output(fmt.Sprintf("%d\n", i))
				time.Sleep(time.Millisecond)
			}
			g.Output(strings.Repeat("x", 100<<10))
			return tool.OK("")
		}
		b := setup(t, run, calls("write", "{}"), says("done"))
		b.opts.Hooks = h
		want(t, b.run(t.Context()), agent.ReasonCompleted)
		var sent []string
		for _, m := range h.told {
			if p, ok := m.(*agent.ToolProgress); ok {
				sent = append(sent, p.Text)
			}
		}
		if n := len(sent); n < 5 || n > 6 || sent[0] != "0\n" || !strings.Contains(sent[1], "\n249\n") {
			t.Fatalf("%d observations: %.40q", n, sent)
		}
		last := sent[len(sent)-1]
		if len(last) > 65<<10 || !strings.Contains(last, "bytes are left out") {
			t.Errorf("the last has %d bytes", len(last))
		}
	})
}

// TestRefusedPromptIsNotSaid holds that a refused prompt enters nothing.
func TestRefusedPromptIsNotSaid(t *testing.T) {
	for _, at := range []ahp.EventType{ahp.UserMessageInbound, ahp.TurnStart} {
		h := &fakeHooks{ask: func(_ agent.At, m agent.Moment) *agent.Say {
			if m.EventType() == at {
				return &agent.Say{Refusal: &agent.Refusal{By: "backend x", Reason: "no"}}
			}
			return nil
		}}
		b := setup(t, nil, says("never"))
		b.opts.Hooks = h
		res := b.run(t.Context())
		want(t, res, agent.ReasonPromptRefused)
		if len(b.model.asked) != 0 || len(of[*event.UserMessage](b.log)) != 0 || types(h.told) != "" || !strings.Contains(res.Detail, "backend x: no") {
			t.Errorf("%s: %d requests, told %q, %q", at, len(b.model.asked), types(h.told), res.Detail)
		}
	}
}

// TestTextWaitsForWhoMayChangeIt holds that text is shown as it comes where nobody
// may change it, and after everybody had a say where somebody may.
func TestTextWaitsForWhoMayChangeIt(t *testing.T) {
	for _, intercepted := range []ahp.EventType{"", ahp.ModelResponseAfter, ahp.TurnFinishBefore, ahp.UserMessageOutbound} {
		var order []string
		h := &fakeHooks{wants: func(t ahp.EventType, m ahp.Mode) bool {
			return m == ahp.ModeObserve || t == intercepted
		}, ask: func(_ agent.At, m agent.Moment) *agent.Say {
			switch m.EventType() {
			case ahp.ModelResponseAfter, ahp.TurnFinishBefore, ahp.UserMessageOutbound:
				order = append(order, string(m.EventType()))
			}
			return nil
		}}
		b := setup(t, nil, says("hello"))
		b.opts.Hooks = h
		b.opts.OnDelta = func(d control.Delta) { order = append(order, d.Text) }
		want(t, b.run(t.Context()), agent.ReasonCompleted)
		moments := []string{"model.response.after", "turn.finish.before", "user.message.outbound"}
		w := append([]string{"hello"}, moments...)
		if intercepted != "" {
			w = append(moments, "hello")
		}
		if !slices.Equal(order, w) {
			t.Errorf("with %q intercepted: %q, want %q", intercepted, order, w)
		}
	}
}

// TestTurnsWithoutAnAnswerEndOnce holds what is asked and told where a turn ends
// without an answer.
func TestTurnsWithoutAnAnswerEndOnce(t *testing.T) {
	tests := []struct {
		name   string
		reason agent.Reason
		ask    func(at agent.At, m agent.Moment) *agent.Say
		set    func(b *bench)
		asked  bool
	}{
		{"a limit", agent.ReasonMaxTurns, nil, func(b *bench) { b.opts.Limits.Turns = 1 }, true},
		{"a failure", agent.ReasonError, nil, func(b *bench) { b.model.replies = []any{&model.Error{Kind: model.ErrAuth, Status: 401}} }, true},
		{"a stop", agent.ReasonStopped, func(_ agent.At, m agent.Moment) *agent.Say {
			if _, is := m.(*agent.BatchAfter); is {
				return &agent.Say{Stop: "x: enough"}
			}
			return nil
		}, nil, true},
		{"a refused answer", agent.ReasonStopped, func(_ agent.At, m agent.Moment) *agent.Say {
			if f, is := m.(*agent.TurnFinish); is && f.Reply != nil {
				return &agent.Say{Refusal: &agent.Refusal{By: "x", Reason: "no"}}
			}
			return nil
		}, nil, false},
		{"an answer", agent.ReasonCompleted, nil, nil, false},
	}
	for _, tt := range tests {
		h := &fakeHooks{ask: tt.ask}
		b := setup(t, nil, calls("read", "{}"), says("done"))
		b.opts.Hooks = h
		if tt.set != nil {
			tt.set(b)
		}
		want(t, b.run(t.Context()), tt.reason)
		var finish []*agent.TurnFinish
		for _, m := range h.asked {
			if f, is := m.(*agent.TurnFinish); is {
				finish = append(finish, f)
			}
		}
		end, ok := h.told[len(h.told)-1].(*agent.TurnEnd)
		if len(finish) != 1 || (finish[0].Reply == nil) != tt.asked || tt.asked && finish[0].Reason != tt.reason || !ok || end.Reason != tt.reason {
			t.Errorf("%s: asked %+v, told %+v", tt.name, finish, end)
		}
	}
	// An interrupted turn isn't asked about any more.
	ctx, cancel := context.WithCancel(t.Context())
	h := &fakeHooks{}
	b := setup(t, func(context.Context, tool.Grant) tool.Result { cancel(); return tool.OK("") }, calls("write", "{}"))
	b.opts.Hooks = h
	want(t, b.run(ctx), agent.ReasonUserInterrupt)
	if got := types(h.asked); strings.Contains(got, "turn.finish.before") || types(h.told[len(h.told)-1:]) != "turn.end" {
		t.Errorf("asked %s, told %s", got, types(h.told))
	}
}
