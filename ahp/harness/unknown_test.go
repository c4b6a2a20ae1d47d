package harness_test

import (
	"testing"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/harness"
)

// TestUnknownMembersGoAlong holds that a dispatched event keeps the members that
// nobody here knows, but for a backend from which content is hidden: they may
// repeat it (§7).
func TestUnknownMembersGoAlong(t *testing.T) {
	for sel, kept := range map[ahp.Selection]bool{ahp.SelectBody: true, ahp.SelectMetadata: false, ahp.SelectOmit: false} {
		fake := ahptest.NewFake(nil)
		sub := ahptest.Intercept(ahp.FailClosed, time.Minute, "tool.*")
		sub.Content = map[string]ahp.Selection{"default": sel}
		h := newHarness(t, harness.Options{}, party{link: fake, subs: []ahp.Subscription{sub}})
		e := ahptest.ToolAfter("e", "visible")
		e.Unknown = ahp.Unknown{"copyOfOutput": ahp.Raw(`"visible"`)}
		out, err := h.Dispatch(t.Context(), e, ahptest.FullCapabilities(ahp.ToolAfter), nil, harness.DispatchOptions{})
		if err != nil || out.Trace[0].Failure != nil {
			t.Fatal(err, out.Trace)
		}
		if got := string(fake.Requests()[0].Event.Unknown["copyOfOutput"]); (got == `"visible"`) != kept {
			t.Errorf("with selection %s the backend sees %q", sel, got)
		}
	}
}
