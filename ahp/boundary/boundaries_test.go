package boundary_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/boundary"
	"github.com/abhed/abhed/ahp/elicitation"
)

// row is one way in which a call with an executor can end. before and after are
// judges of the two events.
type row struct {
	name string
	// judge may use cancel.
	judge  func(before, after ahp.EventType, cancel *context.CancelFunc) ahptest.Judge
	exec   error // what the executor returns
	status boundary.Status
	runs   bool
	// what is observed beside hook.failure
	before, after bool
}

func rows() []row {
	type ev = ahp.EventType
	none := func(ev, ev, *context.CancelFunc) ahptest.Judge { return nil }
	return []row{
		{"ran", none, nil, boundary.Ran, true, true, true},
		{"failed", none, errors.New("no"), boundary.Failed, true, true, false},
		{"the harness's own rules", none, &boundary.Refusal{Reason: "r"}, boundary.Refused, false, true, false},
		{"denied", func(b, _ ev, _ *context.CancelFunc) ahptest.Judge { return at(b, deny) }, nil, boundary.Denied, false, true, false},
		{"nobody to ask", func(b, _ ev, _ *context.CancelFunc) ahptest.Judge { return failsAt(b) }, nil, boundary.Denied, false, true, false},
		{"nobody to ask about the result", func(_, a ev, _ *context.CancelFunc) ahptest.Judge { return failsAt(a) }, nil, boundary.Withheld, true, true, true},
		{"cancelled before", func(b, _ ev, c *context.CancelFunc) ahptest.Judge { return cancelsAt(b, c) }, nil, boundary.Interrupted, false, false, false},
		{"cancelled after", func(_, a ev, c *context.CancelFunc) ahptest.Judge { return cancelsAt(a, c) }, nil, boundary.Interrupted, true, true, false},
	}
}

// play runs a row at a boundary. call makes the call with the error that its
// executor is to return, counts, and returns the verdict and whether there is a
// result.
func play(t *testing.T, before, after ahp.EventType, rows []row, call func(ctx context.Context, w *world, ran func() error) (boundary.Verdict, bool, error)) {
	t.Helper()
	for _, tt := range rows {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			w := newWorld(t, boundary.Options{}, tt.judge(before, after, &cancel))
			runs := 0
			v, result, err := call(ctx, w, func() error { runs++; return tt.exec })
			if err != nil {
				t.Fatal(err)
			}
			_, refusal := tt.exec.(*boundary.Refusal)
			called := tt.runs || refusal
			if v.Status != tt.status || v.Executed != tt.runs || (runs == 1) != called || runs > 1 {
				t.Errorf("status %s, executed %v, %d runs, want %s, %v", v.Status, v.Executed, runs, tt.status, tt.runs)
			}
			if result != v.OK() {
				t.Errorf("a result: %v with the status %s", result, v.Status)
			}
			if v.Reason == "" && !v.OK() {
				t.Error("no reason")
			}
			types, events := w.observed(t)
			if slices.Contains(types, before) != tt.before || slices.Contains(types, after) != tt.after {
				t.Errorf("observed %q", types)
			}
			for i, e := range events {
				if e.Type == after && e.ParentEventID != events[0].ID {
					t.Errorf("event %d names %q as its parent", i, e.ParentEventID)
				}
			}
		})
	}
}

// stopped and supplied are rows of boundaries that have those effects.
func stopped() row {
	return row{"stopped", func(b, _ ahp.EventType, _ *context.CancelFunc) ahptest.Judge { return at(b, stop) }, nil, boundary.Stopped, false, true, false}
}

func supplied(value string) row {
	return row{"supplied", func(b, _ ahp.EventType, _ *context.CancelFunc) ahptest.Judge { return at(b, returns(value)) }, nil, boundary.Supplied, false, true, true}
}

func modelCall() boundary.ModelCall {
	return boundary.ModelCall{Model: ahp.Model{ID: "m", Provider: "p"}, Messages: []ahp.Message{ahp.TextMessage("u", ahp.RoleUser, "hello")}}
}

func TestModelStatuses(t *testing.T) {
	all := append(rows(), stopped(), supplied(messageValue(ahp.RoleAssistant, "given")))
	play(t, ahp.ModelRequestBefore, ahp.ModelResponseAfter, all, func(ctx context.Context, w *world, ran func() error) (boundary.Verdict, bool, error) {
		r, err := w.Model(ctx, modelCall(), func(context.Context, ahp.Raw, []ahp.Message) (boundary.ModelOutput, error) {
			return boundary.ModelOutput{Messages: []ahp.Message{ahp.TextMessage("a", ahp.RoleAssistant, "out")}, FinishReason: "stop"}, ran()
		})
		return r.Verdict, r.Messages != nil, err
	})
}

// TestModelEdits holds that the executor gets the effective messages with what was
// injected behind them, and the caller the effective response.
func TestModelEdits(t *testing.T) {
	more := func(role ahp.Role, target ahp.Target, text string) *ahp.Modify {
		return &ahp.Modify{Target: target, Operation: ahp.OpMerge, Value: ahp.Raw(messageValue(role, text))}
	}
	inject := func(at ahp.Delivery) *ahp.Inject {
		return &ahp.Inject{DeliverAt: at, Messages: []ahp.Message{ahp.TextMessage("i", ahp.RoleDeveloper, string(at))}}
	}
	w := newWorld(t, boundary.Options{}, both(at(ahp.ModelRequestBefore, more(ahp.RoleUser, ahp.TargetRequest, "too"), inject(ahp.DeliverNow), inject(ahp.DeliverNextTurn)),
		at(ahp.ModelResponseAfter, more(ahp.RoleAssistant, ahp.TargetResponse, "checked"))))
	call := modelCall()
	call.Params = ahp.Raw(`{"temperature":0.5}`)
	r, err := w.Model(t.Context(), call, func(_ context.Context, params ahp.Raw, messages []ahp.Message) (boundary.ModelOutput, error) {
		wantTexts(t, messages, "hello", "too", "now")
		if string(params) != `{"temperature":0.5}` {
			t.Errorf("params %s", params)
		}
		n := int64(3)
		return boundary.ModelOutput{Messages: []ahp.Message{ahp.TextMessage("a", ahp.RoleAssistant, "out")}, FinishReason: "stop",
			Usage: &ahp.Usage{Kind: "amount", Scope: "attempt", Completeness: "partial", Provenance: "provider", OutputTokens: &n}}, nil
	})
	if err != nil || r.FinishReason != "stop" || r.Usage == nil {
		t.Errorf("%+v, %v", r, err)
	}
	wantTexts(t, r.Messages, "out", "checked")
	wantTexts(t, r.Injected(ahp.DeliverNextTurn), "next_turn")
	_, events := w.observed(t)
	if a, b := events[0].Attempt, events[1].Attempt; *a != *b || a.Number != 1 || !a.Synthesized {
		t.Errorf("attempts %v, %v", a, b)
	}
}

func TestModelErrorIsObserved(t *testing.T) {
	w := newWorld(t, boundary.Options{}, nil)
	r, err := w.Model(t.Context(), modelCall(), func(context.Context, ahp.Raw, []ahp.Message) (boundary.ModelOutput, error) {
		return boundary.ModelOutput{}, errors.New("overloaded")
	})
	if err != nil || r.Err == nil || r.Status != boundary.Failed {
		t.Errorf("%+v, %v", r, err)
	}
	types, events := w.observed(t)
	if !slices.Equal(types, []ahp.EventType{ahp.ModelRequestBefore, ahp.ModelErrorEvent}) || events[1].Error.Message != "overloaded" {
		t.Errorf("observed %q", types)
	}
}

// TestModelIsObservedAfterCancellation: nobody judges a response that came after the
// call was given up, but it did come, and cost something.
func TestModelIsObservedAfterCancellation(t *testing.T) {
	w := newWorld(t, boundary.Options{}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := w.Model(ctx, modelCall(), func(context.Context, ahp.Raw, []ahp.Message) (boundary.ModelOutput, error) {
		cancel()
		return boundary.ModelOutput{Messages: []ahp.Message{ahp.TextMessage("a", ahp.RoleAssistant, "out")}, FinishReason: "stop"}, nil
	})
	if err != nil || r.Status != boundary.Interrupted || !r.Executed || r.Messages != nil {
		t.Errorf("%+v, %v", r, err)
	}
	if types, _ := w.observed(t); !slices.Equal(types, []ahp.EventType{ahp.ModelRequestBefore, ahp.ModelResponseAfter}) {
		t.Errorf("observed %q", types)
	}
}

func TestCompactStatuses(t *testing.T) {
	all := append(rows(), supplied(`[{"id":"p","kind":"text","mediaType":"text/plain","selection":"body","text":"given"}]`))
	play(t, ahp.ContextCompactBefore, ahp.ContextCompactAfter, all, func(ctx context.Context, w *world, ran func() error) (boundary.Verdict, bool, error) {
		n := int64(100)
		r, err := w.Compact(ctx, boundary.CompactCall{Trigger: "auto", Messages: []ahp.Message{ahp.TextMessage("u", ahp.RoleUser, "hello")}, TokensBefore: &n,
			Removed: []ahp.Ref{{ID: "u"}}}, func(context.Context, []ahp.Message, []ahp.Part) (string, error) { return "short", ran() })
		return r.Verdict, r.Summary != nil && len(r.Removed) == 1, err
	})
}

func TestCompactEdits(t *testing.T) {
	part := func(target ahp.Target, text string) *ahp.Modify {
		return &ahp.Modify{Target: target, Operation: ahp.OpReplace, Value: ahp.Raw(`[{"id":"p","kind":"text","mediaType":"text/plain","selection":"body","text":"` + text + `"}]`)}
	}
	w := newWorld(t, boundary.Options{}, both(at(ahp.ContextCompactBefore, part(ahp.TargetInstructions, "shorter")), at(ahp.ContextCompactAfter, part(ahp.TargetSummary, "edited"))))
	r, err := w.Compact(t.Context(), boundary.CompactCall{Trigger: "manual", Messages: []ahp.Message{ahp.TextMessage("u", ahp.RoleUser, "hello")}}, func(_ context.Context, m []ahp.Message, i []ahp.Part) (string, error) {
		wantTexts(t, m, "hello")
		return "by: " + *i[0].Text, nil
	})
	if err != nil || len(r.Summary) != 1 || *r.Summary[0].Text != "edited" {
		t.Errorf("%+v, %v", r, err)
	}
	_, events := w.observed(t)
	if got := *events[1].Summary[0].Text; got != "edited" {
		t.Errorf("observed %q", got)
	}
	if got := *w.fakes[0].Requests()[1].Event.Summary[0].Text; got != "by: shorter" {
		t.Errorf("the summary was made %q", got)
	}
}

const (
	question = `{"message":"m","requestedSchema":{"type":"object","required":["name"],"properties":{"name":{"type":"string","maxLength":5}}}}`
	answer   = `{"action":"accept","content":{"name":"me"}}`
)

func TestElicitStatuses(t *testing.T) {
	all := append(rows(), supplied(`{"action":"accept","content":{"name":"bot"}}`))
	play(t, ahp.UserElicitationRequest, ahp.UserElicitationResult, all, func(ctx context.Context, w *world, ran func() error) (boundary.Verdict, bool, error) {
		r, err := w.Elicit(ctx, boundary.Elicitation{Server: "srv", Request: ahp.Raw(question)}, func(_ context.Context, q *elicitation.Request) (ahp.Raw, error) {
			if q.Form == nil {
				t.Error("no form")
			}
			return ahp.Raw(answer), ran()
		})
		accepted := r.Result.Action == elicitation.Accept
		if accepted != strings.Contains(string(r.Answer), `"accept"`) {
			t.Errorf("answer %s, result %v", r.Answer, r.Result)
		}
		if want := map[boundary.Status]elicitation.Action{boundary.Denied: "decline", boundary.Refused: "decline"}[r.Status]; !accepted && want != "" && want != r.Result.Action {
			t.Errorf("%s answers %s", r.Status, r.Answer)
		}
		if n := w.h.Elicitations().Len(); n != 0 {
			t.Errorf("%d requests wait", n)
		}
		return r.Verdict, accepted, err
	})
}

func TestElicitEdits(t *testing.T) {
	w := newWorld(t, boundary.Options{}, at(ahp.UserElicitationResult, &ahp.Modify{Target: ahp.TargetContent, Operation: ahp.OpMerge, Value: ahp.Raw(`{"name":"you"}`)}))
	r, err := w.Elicit(t.Context(), boundary.Elicitation{Server: "srv", Request: ahp.Raw(question)}, func(context.Context, *elicitation.Request) (ahp.Raw, error) {
		return ahp.Raw(answer), nil
	})
	if err != nil || string(r.Answer) != `{"action":"accept","content":{"name":"you"}}` || string(r.Result.Content) != `{"name":"you"}` {
		t.Errorf("%s, %v", r.Answer, err)
	}
	_, events := w.observed(t)
	if got := *events[1].Elicitation.Result.Text; got != string(r.Answer) {
		t.Errorf("observed %s", got)
	}
}

// TestElicitMisfits: what breaks MCP is shown to nobody, and an answer that the form
// refuses goes nowhere.
func TestElicitMisfits(t *testing.T) {
	for _, w := range []*world{newWorld(t, boundary.Options{}, nil), newWorld(t, boundary.Options{})} {
		var fault *ahp.Error
		r, err := w.Elicit(t.Context(), boundary.Elicitation{Server: "srv", Request: ahp.Raw(`{"message":"m"}`)}, func(context.Context, *elicitation.Request) (ahp.Raw, error) {
			t.Error("asked")
			return nil, nil
		})
		if !errors.As(err, &fault) || r.Status != boundary.None || r.Result.Action != elicitation.Cancel {
			t.Errorf("%+v, %v", r, err)
		}
		r, err = w.Elicit(t.Context(), boundary.Elicitation{Server: "srv", Request: ahp.Raw(question)}, func(context.Context, *elicitation.Request) (ahp.Raw, error) {
			return ahp.Raw(`{"action":"accept","content":{"name":"too long"}}`), nil
		})
		if !errors.As(r.Err, &fault) || fault.Pointer != "/content/name" || err != nil || r.Status != boundary.Failed || r.Result.Action != elicitation.Cancel {
			t.Errorf("%+v, %v", r, err)
		}
		if types, _ := w.observed(t); !slices.Equal(types, []ahp.EventType{ahp.UserElicitationRequest}) {
			t.Errorf("observed %q", types)
		}
	}
}

func TestBugsOfExecutors(t *testing.T) {
	w := newWorld(t, boundary.Options{}, nil)
	m, err1 := w.Model(t.Context(), modelCall(), func(context.Context, ahp.Raw, []ahp.Message) (boundary.ModelOutput, error) { panic("x") })
	c, err2 := w.Compact(t.Context(), boundary.CompactCall{Trigger: "auto"}, func(context.Context, []ahp.Message, []ahp.Part) (string, error) { panic("x") })
	e, err3 := w.Elicit(t.Context(), boundary.Elicitation{Server: "srv", Request: ahp.Raw(question)}, func(context.Context, *elicitation.Request) (ahp.Raw, error) { panic("x") })
	for i, err := range []error{err1, err2, err3} {
		if err == nil {
			t.Errorf("%d: no error", i)
		}
	}
	for _, v := range []boundary.Verdict{m.Verdict, c.Verdict, e.Verdict} {
		if v.Status != boundary.Failed || !v.Executed {
			t.Errorf("%s", v.Status)
		}
	}
	if e.Result.Action != elicitation.Cancel {
		t.Errorf("%s", e.Answer)
	}
}
