package harness_test

import (
	"context"
	"errors"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/harness"
)

// TestNothingSuppliedOutlivesARefusal: a result that the host already had goes with the
// host's own refusal or stop, before anybody is asked and where nobody can be.
func TestNothingSuppliedOutlivesARefusal(t *testing.T) {
	for name, st := range map[string]ahp.State{
		"refused": {Permission: ahp.PermissionDeny},
		"stopped": {Permission: ahp.PermissionNone, Flow: ahp.FlowStateStop},
	} {
		for backend, fake := range map[string]*ahptest.Fake{"says nothing": ahptest.NewFake(nil), "fails": ahptest.NewFake(func(context.Context, *ahp.Intercept) ([]ahp.Effect, error) {
			return nil, errors.New("unreachable")
		})} {
			st.Candidate = &ahp.Candidate{Value: ahp.Raw(`"given"`)}
			h := newHarness(t, harness.Options{}, intercepts(fake, ahp.FailOpen))
			out, err := h.Dispatch(t.Context(), ahptest.ToolBefore("e", `{}`), ahptest.FullCapabilities(ahp.ToolBefore), &st, harness.DispatchOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if out.Candidate != nil || out.CandidateBy != (ahp.SubscriptionID{}) || out.MayExecute() {
				t.Errorf("%s, the backend %s: %+v", name, backend, out.Outcome)
			}
			if q := fake.Requests(); len(q) != 1 || q[0].State == nil || q[0].State.Candidate != nil {
				t.Errorf("%s, the backend %s: it was asked %+v", name, backend, q)
			}
		}
	}
}
