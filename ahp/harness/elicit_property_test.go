package harness_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/elicitation"
	"github.com/abhed/abhed/ahp/harness"
)

// TestElicitationEditsKeepTheForm draws responses to an accepted form: whatever is
// answered, the effective result satisfies the form, and it is the old one exactly
// where the response was refused as a whole.
func TestElicitationEditsKeepTheForm(t *testing.T) {
	q, err := elicitation.ParseRequest([]byte(formText))
	if err != nil {
		t.Fatal(err)
	}
	const given = `{"action":"accept","content":{"name":"old","n":1}}`
	rapid.Check(t, func(rt *rapid.T) {
		var effects []ahp.Effect
		for range rapid.IntRange(1, 3).Draw(rt, "edits") {
			effects = append(effects, content(rapid.SampledFrom([]ahp.Operation{ahp.OpMerge, ahp.OpReplace}).Draw(rt, "operation"),
				rapid.SampledFrom([]string{`{"name":"a"}`, `{"name":"too long"}`, `{"n":2}`, `{}`, `{"name":1}`, `{"o":{}}`, `[]`, `{"name":"b","l":["x"]}`}).Draw(rt, "value")))
		}
		p := party{link: rawLink(perType(nil, effects)), subs: []ahp.Subscription{ahptest.Intercept(ahp.FailOpen, 1<<40, "user.*")}}
		h := newHarness(t, harness.Options{}, p)
		defer h.Close()
		send(t, h, askEvent("q", formText), nil)
		out := send(t, h, answerEvent("q", "form", "accept", given), nil)
		if err := out.Event.Validate(); err != nil {
			rt.Error(err)
		}
		if _, err := elicitation.OfResult(out.Event, q); err != nil {
			rt.Errorf("%s: %v", *out.Event.Elicitation.Result.Text, err)
		}
		refused := out.Trace[0].Kind == ahp.AnswerFailure
		want, fits := []byte(given), true
		for _, e := range effects {
			m := e.(*ahp.Modify)
			if want, err = elicitation.Edit(want, m.Operation, m.Value, q); err != nil {
				fits = false
				break
			}
		}
		if fits == refused || !fits && *out.Event.Elicitation.Result.Text != given || fits && !ahp.Raw(want).Equal(ahp.Raw(*out.Event.Elicitation.Result.Text)) {
			rt.Errorf("%s after %v, refused %v", *out.Event.Elicitation.Result.Text, effects, refused)
		}
	})
}
