package boundary

import (
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
)

// TestStepsAreSetAside: of calls at the same time one is offered the last step, and the
// others none, however many they are.
func TestStepsAreSetAside(t *testing.T) {
	turn := &Turn{id: "t", steps: &allowance{left: 1, max: 1}}
	caps := ahptest.FullCapabilities(ahp.ToolAfter)
	for call, want := range []int64{1, 0, 0, 0} {
		out, reserved := turn.capabilities(caps, nil)
		if got := *out.Flow.RemainingContinuations; got != want || reserved != (want > 0) {
			t.Errorf("call %d is offered %d steps, %v, want %d", call, got, reserved, want)
		}
	}
	turn.settle(false, true)
	turn.settle(true, false)
	if count, left := turn.Continuations(); count != 0 || left != 1 {
		t.Errorf("counted %d, %d left", count, left)
	}
}
