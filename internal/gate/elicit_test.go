package gate_test

import (
	"context"
	"strings"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/control"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/gate"
)

// atResult answers with the effects to the result of an elicitation, with none else.
func atResult(effects ...ahp.Effect) func(context.Context, *ahp.Intercept) ([]ahp.Effect, error) {
	return func(_ context.Context, q *ahp.Intercept) ([]ahp.Effect, error) {
		if q.Event.Type == ahp.UserElicitationResult {
			return effects, nil
		}
		return nil, nil
	}
}

func TestServersAskPeople(t *testing.T) {
	const ann = `{"action":"accept","content":{"name":"ann"}}`
	for _, backends := range []bool{false, true} {
		r := newRig(t)
		g := gate.New(r.opts)
		if backends {
			r.watched("fail-closed", nil)
			g = r.gate
		}
		a := replies(`{"name":"x"}`, `no`, ` {"name":"ann"}`)
		result, err := g.Elicit(t.Context(), here, "srv", form, a)
		if err != nil || result != ann || len(a.asked) != 3 {
			t.Fatalf("%s %v, asked %d times", result, err, len(a.asked))
		}
		q := a.asked[0]
		if q.From != "mcp srv" || q.Text != "which?" || !strings.HasPrefix(string(q.Schema), `{"type":"object"`) {
			t.Errorf("%+v", q)
		}
		if !strings.Contains(a.asked[1].Text, "at least 2") || !strings.Contains(a.asked[2].Text, "does not fit") {
			t.Errorf("asked again with %q and %q", a.asked[1].Text, a.asked[2].Text)
		}
		if p := last[*event.QuestionRequested](r.log); p.From != "mcp srv" || string(p.Schema) != string(q.Schema) {
			t.Errorf("%+v", p)
		}
		a = replies("1", "2", "3", "4")
		if result, err := g.Elicit(t.Context(), here, "srv", form, a); err != nil || result != `{"action":"cancel"}` || len(a.asked) != 3 {
			t.Errorf("%s %v, asked %d times", result, err, len(a.asked))
		}
		if result, err := g.Elicit(t.Context(), here, "srv", form, nil); err != nil || result != `{"action":"decline"}` {
			t.Errorf("with nobody there: %s %v", result, err)
		}
		for _, params := range []string{`{"mode":"url","message":"m","url":"https://x.test/","elicitationId":"1"}`, `{"message":"m"}`, `{`} {
			if result, err := g.Elicit(t.Context(), here, "srv", params, replies("x")); err == nil || result != "" {
				t.Errorf("%s: %s", params, result)
			}
		}
	}
}

// TestBackendsJudgeElicitations holds what they can make of a question and its answer.
func TestBackendsJudgeElicitations(t *testing.T) {
	says := func(e ahp.Effect) func(context.Context, *ahp.Intercept) ([]ahp.Effect, error) {
		return func(_ context.Context, q *ahp.Intercept) ([]ahp.Effect, error) {
			if q.Event.Type == ahp.UserElicitationRequest {
				return []ahp.Effect{e}, nil
			}
			return nil, nil
		}
	}
	tests := []struct {
		name   string
		judge  func(context.Context, *ahp.Intercept) ([]ahp.Effect, error)
		want   string
		asked  int
		result bool // backends are shown the answer
	}{
		{"no opinion", atResult(), `{"action":"accept","content":{"name":"ann"}}`, 1, true},
		{"denied", says(&ahp.Deny{Reason: "no"}), `{"action":"decline"}`, 0, false},
		{"answered", says(&ahp.Return{Value: ahp.Raw(`{"action":"accept","content":{"name":"bot"}}`)}), `{"action":"accept","content":{"name":"bot"}}`, 0, true},
		{"declined", says(&ahp.Return{Value: ahp.Raw(`{"action":"decline"}`)}), `{"action":"decline"}`, 0, true},
		{"answered with what doesn't fit", says(&ahp.Return{Value: ahp.Raw(`{"action":"accept","content":{}}`)}), `{"action":"decline"}`, 0, false},
		{"the answer changed", atResult(&ahp.Modify{Target: ahp.TargetContent, Operation: ahp.OpMerge, Value: ahp.Raw(`{"name":"eve"}`)}), `{"action":"accept","content":{"name":"eve"}}`, 1, true},
		{"the answer made unfit", atResult(&ahp.Modify{Target: ahp.TargetContent, Operation: ahp.OpReplace, Value: ahp.Raw(`{}`)}), `{"action":"cancel"}`, 1, true},
		{"the answer not reviewed", atResult(&ahp.Deny{Reason: "not offered"}), `{"action":"cancel"}`, 1, true},
	}
	for _, tt := range tests {
		r := newRig(t)
		fake := r.watched("fail-closed", tt.judge)
		a := replies(`{"name":"ann"}`)
		result, err := r.gate.Elicit(t.Context(), here, "srv", form, a)
		if err != nil || result != tt.want || len(a.asked) != tt.asked {
			t.Errorf("%s: %s %v, asked %d times", tt.name, result, err, len(a.asked))
		}
		if n := r.h.Elicitations().Len(); n != 0 {
			t.Errorf("%s: %d questions still wait", tt.name, n)
		}
		request, shown := "", false
		for _, q := range fake.Requests() {
			switch q.Event.Type {
			case ahp.UserElicitationRequest:
				request = q.Event.ID
			case ahp.UserElicitationResult:
				shown = true
				if q.Event.ParentEventID != request || q.Event.Elicitation.Server != "srv" {
					t.Errorf("%s: %+v", tt.name, q.Event)
				}
			}
		}
		if request == "" || shown != tt.result {
			t.Errorf("%s: request %q, the answer was shown: %t", tt.name, request, shown)
		}
		if d := last[*event.HooksDecided](r.log); d == nil || !strings.HasPrefix(d.EventType, "user.elicitation") {
			t.Errorf("%s: recorded %+v", tt.name, d)
		}
	}
}

// TestInterruptedElicitations holds that nothing reaches the server then, and that
// the next one of the same server is a fresh one.
func TestInterruptedElicitations(t *testing.T) {
	r := newRig(t)
	r.watched("fail-closed", nil)
	ctx, cancel := context.WithCancel(t.Context())
	a := &asker{answer: func(context.Context, int, control.Inquiry) (control.Reply, error) {
		cancel()
		return control.Reply{Text: `{"name":"ann"}`}, nil
	}}
	if result, err := r.gate.Elicit(ctx, here, "srv", form, a); err == nil || result != "" {
		t.Errorf("%s %v", result, err)
	}
	if n := r.h.Elicitations().Len(); n != 0 {
		t.Errorf("%d questions still wait", n)
	}
	if result, err := r.gate.Elicit(ctx, here, "srv", form, a); err == nil || result != "" || len(a.asked) != 1 {
		t.Errorf("%s %v, asked %d times", result, err, len(a.asked))
	}
	if result, err := r.gate.Elicit(t.Context(), here, "srv", form, replies(`{"name":"ann"}`)); err != nil || !strings.Contains(result, "ann") {
		t.Errorf("%s %v", result, err)
	}
}

// TestOnlyTheAnswerIsReviewed holds that a backend which takes answers alone gets them.
func TestOnlyTheAnswerIsReviewed(t *testing.T) {
	r := newRig(t)
	fake := r.subscribed("fail-closed", `"user.elicitation.result"`, atResult(&ahp.Modify{Target: ahp.TargetContent, Operation: ahp.OpMerge, Value: ahp.Raw(`{"name":"eve"}`)}))
	result, err := r.gate.Elicit(t.Context(), here, "srv", form, replies(`{"name":"ann"}`))
	if err != nil || result != `{"action":"accept","content":{"name":"eve"}}` || len(fake.Requests()) != 1 {
		t.Errorf("%s %v, asked %d times", result, err, len(fake.Requests()))
	}
}
