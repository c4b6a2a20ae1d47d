package hookd_test

import (
	"strings"
	"testing"

	"github.com/abhed/abhed/internal/hookd"
)

// TestACheckThatFailsAgain holds that a call which is repeated while its check fails
// isn't told as one that the policy refuses: the model could do nothing about it.
func TestACheckThatFailsAgain(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string]string{"crash": "the check by com.example.b0 still fails", "deny": "not in this house"} {
		w := newWorld(t, hookd.Options{})
		w.register(w.document(hook{mode: mode, policy: "fail-closed"}))
		var a hookd.Answer
		for _, id := range []string{"a", "b", "c"} {
			a = w.do(hookd.Call{Data: bash("s", id, w.home, "make")})
		}
		if text := said(a); a.Code != hookd.ExitDeny || !strings.HasPrefix(text, "Refused again (3rd time, the same call)") || !strings.Contains(text, want) {
			t.Errorf("%s: %d %q, want %q", mode, a.Code, text, want)
		}
	}
}
