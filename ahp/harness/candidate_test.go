package harness_test

import (
	"testing"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/harness"
)

// TestSuppliedContentIsSelected holds that what one backend supplied is shown to the
// next one by its selection, as the event's own content is: omit shows no text, and
// that there is a candidate.
func TestSuppliedContentIsSelected(t *testing.T) {
	compact := ahptest.ToolAfter("e", "")
	compact = &ahp.Event{ID: "e", Source: compact.Source, Type: ahp.ContextCompactBefore, Time: compact.Time, Trigger: "auto", Items: ahp.MessageItems()}
	const part = `{"id":"p","kind":"text","mediaType":"text/plain","selection":"body","text":"secret"}`
	for _, tt := range []struct {
		event          *ahp.Event
		supplied, omit string
	}{
		{compact, `[` + part + `]`, `[]`},
		{askEvent("e", formText), `{"action":"accept","content":{"name":"me"}}`, `{"action":"accept"}`},
		{ahptest.ToolBefore("e", `{}`), `"any"`, `"any"`},
	} {
		for _, sees := range []ahp.Selection{ahp.SelectBody, ahp.SelectOmit} {
			first, second := ahptest.NewFake(ahptest.Says(&ahp.Return{Value: ahp.Raw(tt.supplied)})), ahptest.NewFake(nil)
			sub := ahptest.Intercept(ahp.FailClosed, time.Minute, "*")
			blind := ahptest.Intercept(ahp.FailClosed, time.Minute, "*")
			blind.Content["default"] = sees
			h := newHarness(t, harness.Options{}, party{link: first, subs: []ahp.Subscription{sub}}, party{link: second, subs: []ahp.Subscription{blind}})
			out := send(t, h, tt.event, nil)
			want := tt.supplied
			if sees == ahp.SelectOmit {
				want = tt.omit
			}
			if got := second.Requests()[0].State; got == nil || got.Candidate == nil || !got.Candidate.Value.Equal(ahp.Raw(want)) {
				t.Errorf("%s, %s: shown %v, want %s", tt.event.Type, sees, got, want)
			}
			if out.Candidate == nil || !out.Candidate.Value.Equal(ahp.Raw(tt.supplied)) {
				t.Errorf("%s, %s: the candidate became %v", tt.event.Type, sees, out.Candidate)
			}
		}
	}
}
