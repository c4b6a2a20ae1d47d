package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// refusal is what the hook of these tests says, and the model must hear.
const refusal = "refused-by-the-test"

// nativeDeny is a hook command that denies in the host's own dialect.
func nativeDeny(host string) string {
	answer := "echo " + refusal + " >&2; exit 2"
	switch host {
	case "gemini":
		answer = `echo '{"decision":"deny","reason":"` + refusal + `"}'; ` + answer
	case "copilot":
		answer = `echo '{"permissionDecision":"deny","permissionDecisionReason":"` + refusal + `"}'; exit 0`
	case "cline":
		answer = `printf 'HOOK_CONTROL\t{"cancel":true,"errorMessage":"` + refusal + `"}\n'; exit 0`
	}
	return "cat >/dev/null; " + answer
}

// TestNative is what makes the other tests mean something: without a hook the
// agent does what the model says, and a hook in its own configuration and
// dialect stops it.
func TestNative(t *testing.T) {
	for _, a := range chosen(t) {
		for _, hook := range []string{"none", "deny"} {
			t.Run(a.name+"/"+hook, func(t *testing.T) {
				t.Parallel()
				s := newStage(t, a)
				if hook == "deny" {
					s.hook = nativeDeny(a.host)
				}
				res := s.play(nil)
				t.Logf("%s %s: ran %t in %s, exit %d", a.host, s.version(), res.ran, res.took, res.code)
				switch {
				case !res.called:
					t.Fatalf("the agent never asked its model: %s", res)
				case res.ran != (hook == "none"):
					t.Fatalf("the tool call: %s", res)
				case hook == "deny" && a.host != "cline" && !strings.Contains(strings.Join(res.told, "\n"), refusal):
					t.Fatalf("the model was not told why: %s", res)
				}
			})
		}
	}
}

// unpacked is a cache that runs of Copilot share: it unpacks 235 MB of itself
// there at the first start, and takes it from there at the next.
func unpacked(s *stage) string {
	dir := filepath.Join(os.TempDir(), "abhed-e2e-copilot")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		s.t.Error(err)
	}
	return dir
}
