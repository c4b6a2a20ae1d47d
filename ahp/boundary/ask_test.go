package boundary_test

import (
	"context"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/boundary"
)

// TestNoBackendGivesThePersonsWord: about to prompt, the harness offers no backend to
// allow; one that says it nevertheless has broken the protocol, and under fail-open the
// person's word still decides.
func TestNoBackendGivesThePersonsWord(t *testing.T) {
	for _, policy := range []ahp.FailurePolicy{ahp.FailClosed, ahp.FailOpen} {
		offered, prompted := false, false
		judge := both(at(ahp.ToolBefore, &ahp.Ask{}), func(_ context.Context, q *ahp.Intercept) ([]ahp.Effect, error) {
			if q.Event.Type != ahp.ToolPermissionRequest {
				return nil, nil
			}
			offered = offered || q.Capabilities.Has(ahp.EffectAllow)
			return []ahp.Effect{&ahp.Allow{}}, nil
		})
		w := newWorldOf(t, boundary.Options{Approve: func(context.Context, boundary.Approval) (bool, error) {
			prompted = true
			return false, nil
		}}, ahptest.Manifest(), policy, judge)
		r, err := w.Tool(t.Context(), boundary.ToolCall{Name: "bash", Input: ahp.Raw(input)}, func(context.Context, ahp.Raw) (boundary.ToolOutput, error) {
			t.Errorf("%s: it ran", policy)
			return boundary.ToolOutput{}, nil
		})
		want := map[ahp.FailurePolicy]boundary.Status{ahp.FailClosed: boundary.Denied, ahp.FailOpen: boundary.Refused}[policy]
		if err != nil || r.Status != want || offered || prompted != (policy == ahp.FailOpen) {
			t.Errorf("%s: %s, %v; allow was offered: %v; a person was asked: %v", policy, r.Status, err, offered, prompted)
		}
	}
}
