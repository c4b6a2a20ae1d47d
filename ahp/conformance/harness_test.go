package conformance_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/conformance"
	"github.com/abhed/abhed/internal/require"
)

// over is a target that runs a shell script, over HTTP, which takes no relay.
func over(script string) conformance.HarnessTarget {
	return conformance.HarnessTarget{Command: []string{"sh", "-c", script}, Binding: conformance.HTTP}
}

func TestHarnessArguments(t *testing.T) {
	web := over("true")
	for name, tt := range map[string]struct {
		target conformance.HarnessTarget
		opts   conformance.HarnessOptions
		want   string
	}{
		"no command":          {conformance.HarnessTarget{Binding: conformance.HTTP}, conformance.HarnessOptions{}, "no command"},
		"no binding":          {conformance.HarnessTarget{Command: []string{"true"}}, conformance.HarnessOptions{}, "no binding"},
		"no relay":            {conformance.HarnessTarget{Command: []string{"true"}, Binding: conformance.StdioPersistent}, conformance.HarnessOptions{}, "relay"},
		"a relative relay":    {conformance.HarnessTarget{Command: []string{"true"}, Binding: conformance.StdioPerEvent}, conformance.HarnessOptions{Relay: []string{"./relay"}}, "relay"},
		"an input that isn't": {web, conformance.HarnessOptions{RefusedInput: ahp.Raw(`[]`)}, "JSON object"},
		"an input unseen":     {web, conformance.HarnessOptions{RefusedInput: ahp.Raw(`{"command":"x"}`)}, "no {}"},
		"a profile":           {web, conformance.HarnessOptions{Profiles: []conformance.Profile{"cook"}}, "profile"},
		"a check":             {web, conformance.HarnessOptions{Only: []string{"no.such"}}, "no.such"},
		"a baseline":          {web, conformance.HarnessOptions{Baseline: conformance.Baseline{"id.text": "a check of a backend"}}, "id.text"},
	} {
		r, err := conformance.Harness(t.Context(), tt.target, tt.opts)
		if err == nil || r != nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
	var peer *conformance.PeerError
	if _, err := conformance.Harness(t.Context(), conformance.HarnessTarget{Command: []string{"./no-such-harness"}, Binding: conformance.HTTP}, conformance.HarnessOptions{}); !errors.As(err, &peer) {
		t.Errorf("a program that isn't there: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := conformance.Harness(ctx, web, conformance.HarnessOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestNoHarness: a command that is no harness fails the first check, with what it
// did, and blocks all others; nothing else is tried.
func TestNoHarness(t *testing.T) {
	for name, tt := range map[string]struct{ script, want string }{
		"does nothing":     {"true", "no message came"},
		"fails":            {"exit 7", "exit code 7"},
		"asks nobody":      {`while read -r line; do sh -c "$(printf %s "$line" | sed 's/.*"command":"//; s/".*//')"; done <"$AHP_CONFORM_CALLS"`, "no message came"},
		"hangs":            {"sleep 600", "did not end in time"},
		"leaves a process": {"sleep 600 & exit 7", "exit code 7"},
	} {
		began := time.Now()
		r, err := conformance.Harness(t.Context(), over(tt.script), conformance.HarnessOptions{Limit: 700 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		first := r.Results[0]
		if first.ID != "asked" || first.Verdict != conformance.Fail || !strings.Contains(first.Reason, tt.want) || len(first.Proof) == 0 {
			t.Errorf("%s: %s %s (%s)", name, first.ID, first.Verdict, first.Reason)
		}
		for _, res := range r.Results[1:] {
			if res.Verdict != conformance.Blocked && res.Verdict != conformance.NotApplicable {
				t.Errorf("%s: %s is %s", name, res.ID, res.Verdict)
			}
		}
		if took := time.Since(began); r.OK() || r.Claim.Holds || took > 20*time.Second {
			t.Errorf("%s: passes, or took %s", name, took)
		}
	}
}

// TestHarnessSecrets: no token and no value of the environment is in a report.
func TestHarnessSecrets(t *testing.T) {
	target := over(`echo "$MINE $AHP_CONFORM_TOKEN" >&2; exit 7`)
	target.Env = []string{"MINE=do-not-print-me"}
	r, err := conformance.Harness(t.Context(), target, conformance.HarnessOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(r.Stderr, "[redacted] [redacted]") {
		t.Errorf("standard error: %q", r.Stderr)
	}
	token := regexp.MustCompile("conform-[0-9a-f]{24}")
	for _, f := range []conformance.Format{conformance.FormatText, conformance.FormatJSON, conformance.FormatJUnit, conformance.FormatMarkdown} {
		var b bytes.Buffer
		if err := r.Write(&b, f); err != nil || strings.Contains(b.String(), "do-not-print-me") || token.MatchString(b.String()) {
			t.Errorf("%s: %v\n%s", f, err, b.String())
		}
	}
}

// TestRelay: it says how it is meant to be used, and ends where there is no suite.
func TestRelay(t *testing.T) {
	for name, args := range map[string][]string{"no arguments": nil, "no suite": {"127.0.0.1:1", "key"}} {
		var stderr bytes.Buffer
		if code := conformance.Relay(args, strings.NewReader(""), &stderr, &stderr); code == 0 || stderr.Len() == 0 {
			t.Errorf("%s: code %d, %q", name, code, stderr.String())
		}
	}
}

// TestHarnessRequirementsHaveChecks: a requirement that binds harnesses alone is
// looked at by some check.
func TestHarnessRequirementsHaveChecks(t *testing.T) {
	met := map[string]bool{}
	for _, c := range conformance.Checks(conformance.RoleHarness) {
		for _, id := range c.Requirements {
			whole, _, _ := strings.Cut(id, ".")
			met[id], met[whole] = true, true
		}
	}
	for _, r := range conformance.Requirements(ahp.Version) {
		if r.Role == string(conformance.RoleHarness) && !met[r.ID] {
			t.Errorf("%s has no check: %s", r.ID, r.Text)
		}
	}
}

// TestWrapper runs the wrapper of the documentation, as it stands there.
func TestWrapper(t *testing.T) {
	if raceEnabled {
		t.Skip("the programs are built without the race detector: the run without it has them")
	}
	require.Path(t, "jq")
	page, err := os.ReadFile(filepath.Join(require.Root(t), "docs", "protocol", "conformance.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), "```sh\n")
	script, _, ends := strings.Cut(rest, "```\n")
	if !found || !ends {
		t.Fatal("the page has no wrapper")
	}
	bin := t.TempDir()
	build := exec.Command("go", "build", "-o", bin, "./cmd/abhed")
	build.Dir = require.Root(t)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	wrapper := filepath.Join(bin, "abhed.sh")
	if err := os.WriteFile(wrapper, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	r, err := conformance.Harness(t.Context(), conformance.HarnessTarget{
		Command: []string{wrapper}, Binding: conformance.HTTP, Env: []string{"PATH=" + bin + ":" + os.Getenv("PATH")},
	}, conformance.HarnessOptions{
		RefusedInput: ahp.Raw(`{"command":"touch '{}' refused"}`), Only: []string{"own-rules", "deny.reason", "edit.replace", "registration.version"}, Limit: 2 * time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"asked", "own-rules", "deny.reason", "edit.replace", "registration.version"} {
		if res := r.Find(id); res.Verdict != conformance.Pass {
			t.Errorf("%s: %s %s %v", id, res.Verdict, res.Reason, res.Proven())
		}
	}
}
