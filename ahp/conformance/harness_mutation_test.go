package conformance_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/conformance"
	"github.com/abhed/abhed/ahp/conformance/brokenharness"
)

// The arguments that mark a run of the test binary as one of the programs of a run
// of the suite for harnesses.
const (
	asHarness = "conformance-harness"
	asRelay   = "conformance-relay"
	asMangler = "conformance-mangler"
)

// Harnesses that break more than one check.
const (
	faithless = "faithless"
	refusing  = "refusing"
)

// harnessChild runs such a program; is reports whether the arguments are of one.
func harnessChild(args []string) (code int, is bool) {
	if len(args) < 3 {
		return 0, false
	}
	switch args[1] {
	case asHarness:
		d, known := brokenharness.Find(args[2])
		switch {
		case args[2] == faithless || args[2] == refusing:
			d = brokenharness.Faithless(args[2] == refusing)
		case !known && args[2] != "none":
			return 70, true
		}
		return brokenharness.Main(d, []string{args[0], asMangler}), true
	case asRelay:
		return conformance.Relay(args[2:], os.Stdin, os.Stdout, os.Stderr), true
	case asAbhed:
		return wrapAbhed(args[2], args[3]), true
	case asMangler:
		return brokenharness.Mangle(args[2:]), true
	}
	return 0, false
}

// programs returns the file of the programs of a run: this one or, where the race
// detector would make thousands of short runs slow, its double without that.
func programs(t *testing.T) string {
	t.Helper()
	exe, err := double()
	if err != nil {
		t.Fatal(err)
	}
	return exe
}

// doubleDir is the folder of the double, which TestMain makes and removes.
var doubleDir string

// double builds the double, once.
var double = sync.OnceValues(func() (string, error) {
	if !raceEnabled {
		return os.Executable()
	}
	exe := filepath.Join(doubleDir, "programs")
	if out, err := exec.Command("go", "test", "-c", "-o", exe, ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return exe, nil
})

// judged runs the suite over the small harness with the defect for a check; exe is
// what programs returned.
func judged(t *testing.T, exe, check string, binding conformance.Binding, only ...string) (*conformance.Report, error) {
	t.Helper()
	return conformance.Harness(t.Context(), conformance.HarnessTarget{
		Command: []string{exe, asHarness, check}, Binding: binding,
	}, conformance.HarnessOptions{
		Relay: []string{exe, asRelay}, RefusedInput: ahp.Raw(brokenharness.RefusedInput), Only: only,
		Deadline: 900 * time.Millisecond, Grace: 3 * time.Second, Limit: 40 * time.Second,
	})
}

// TestGoodHarness: what keeps every rule passes every check, and each check has
// something to say of it over some binding.
func TestGoodHarness(t *testing.T) {
	exe := programs(t)
	said := map[string]bool{}
	for _, binding := range bindings() {
		if raceEnabled && binding == conformance.StdioPerEvent {
			continue // hundreds of processes, which differ in nothing that the detector sees
		}
		t.Run(string(binding), func(t *testing.T) {
			r, err := judged(t, exe, "none", binding)
			conforms(t, r, err)
			proven(t, r)
			for _, res := range r.Results {
				if res.Verdict == conformance.Pass {
					said[res.ID] = true
				}
			}
		})
	}
	for _, c := range conformance.Checks(conformance.RoleHarness) {
		if !said[c.ID] && !raceEnabled {
			t.Errorf("%s passed over no binding", c.ID)
		}
	}
}

// TestEachHarnessCheckCanFail is the mutation test of the suite for harnesses: for
// each check there is a harness which fails that check and nothing but what depends
// on it.
func TestEachHarnessCheckCanFail(t *testing.T) {
	type pair struct {
		check   conformance.Check
		about   string
		binding conformance.Binding
		only    []string
		report  *conformance.Report
		took    time.Duration
		err     error
	}
	exe := programs(t)
	var pairs []*pair
	for i, c := range conformance.Checks(conformance.RoleHarness) {
		d, known := brokenharness.Find(c.ID)
		if !known {
			t.Errorf("%s has no harness that fails it", c.ID)
			continue
		}
		if !sampled(i, c.ID) {
			continue
		}
		for _, binding := range c.Bindings {
			p := &pair{check: c, about: d.About, binding: binding}
			if !triedOver(c, binding) {
				continue
			}
			// That nothing else fails is shown over HTTP, where it can be: there it takes
			// no process per backend. Elsewhere the check itself is tried.
			switch {
			case raceEnabled:
				p.only = []string{c.ID}
			case os.Getenv("ABHED_CONFORM_ALL") != "":
			case binding != conformance.HTTP && slices.Contains(c.Bindings, conformance.HTTP):
				p.only = []string{c.ID}
			case !strings.HasPrefix(c.ID, "registration."):
				p.only = withoutRegistrations()
			}
			pairs = append(pairs, p)
		}
	}
	var all sync.WaitGroup
	// The runs mostly wait for deadlines.
	slots := make(chan struct{}, 8)
	for _, p := range pairs {
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			started := time.Now()
			p.report, p.err = judged(t, exe, p.check.ID, p.binding, p.only...)
			p.took = time.Since(started)
		})
	}
	all.Wait()
	for _, p := range pairs {
		t.Run(p.check.ID+"/"+string(p.binding), func(t *testing.T) {
			if p.err != nil {
				t.Fatal(p.err)
			}
			t.Logf("took %s", p.took)
			failsExactly(t, p.report, p.check, p.about)
			for _, name := range conformance.MisfitNames(p.check.ID, p.binding) {
				if reason := p.report.Find(p.check.ID).Reason; !strings.Contains(reason, name+":") {
					t.Errorf("nothing is said of %s: %s", name, reason)
				}
			}
		})
	}
}

// triedOver reports whether the defect for a check is tried over a binding.
func triedOver(c conformance.Check, binding conformance.Binding) bool {
	elsewhere := binding != conformance.HTTP && slices.Contains(c.Bindings, conformance.HTTP)
	switch {
	case !elsewhere:
		return true
	case c.ID == "chain.serial":
		return false // our transports ask one thing at a time of a process
	case strings.HasPrefix(c.ID, "closed.") || strings.HasPrefix(c.ID, "open."):
		return false // see TestEachFaultCounts
	case os.Getenv("ABHED_CONFORM_ALL") != "":
		return true
	}
	// Where a check looks at the same over both kinds of processes one of them does.
	return binding == conformance.StdioPersistent
}

// withoutRegistrations returns all checks but those of registrations that must be
// refused: where nothing is sent and nothing is run, no other defect can show.
func withoutRegistrations() []string {
	var out []string
	for _, c := range conformance.Checks(conformance.RoleHarness) {
		if !strings.HasPrefix(c.ID, "registration.") || c.ID == "registration.unknown" {
			out = append(out, c.ID)
		}
	}
	return out
}

// TestEachFaultCounts: the checks of failure policies look at each fault of their
// group, over each binding that can have it. A harness without policies fails all
// of those checks, and each of them names its faults.
func TestEachFaultCounts(t *testing.T) {
	exe := programs(t)
	everywhere := []string{"never", "late", "garbage", "bad_utf8", "batch", "no_effects", "result_and_error", "old_jsonrpc", "duplicate_keys", "lone_surrogate",
		"byte_order_mark", "stray", "huge_line", "wrong_id", "rpc_error", "version_error", "event_error", "other_version", "unknown_effect", "malformed_effect",
		"extra_effect_member", "edits_nothing", "unoffered_effect", "half_line", "dies_during", "can't be reached"}
	for name, policy := range map[string]string{faithless: "closed.", refusing: "open."} {
		if raceEnabled && name != faithless {
			continue // the same code of ours
		}
		for _, binding := range bindings() {
			t.Run(name+"/"+string(binding), func(t *testing.T) {
				var only []string
				for _, c := range conformance.Checks(conformance.RoleHarness) {
					if strings.HasPrefix(c.ID, policy) && slices.Contains(c.Bindings, binding) {
						only = append(only, c.ID)
					}
				}
				r, err := judged(t, exe, name, binding, only...)
				if err != nil {
					t.Fatal(err)
				}
				said := ""
				for _, id := range only {
					res := r.Find(id)
					if res.Verdict != conformance.Fail && res.Verdict != conformance.Warn || len(res.Proof) == 0 {
						t.Errorf("%s is %s: %s", id, res.Verdict, res.Reason)
					}
					said += res.Reason + "; "
				}
				want := everywhere
				switch binding {
				case conformance.HTTP:
					want = append(slices.Clone(want), "status_500", "status_201", "status_204", "status_401", "media_type", "event_stream", "twice")
				case conformance.StdioPerEvent:
					want = append(slices.Clone(want), "dies_after", "twice")
				}
				for _, fault := range want {
					if !strings.Contains(said, fault) {
						t.Errorf("no check noticed %s: %s", fault, said)
					}
				}
			})
		}
	}
}

// TestDefectsAreOfChecks: no defect is for a check that isn't there, or for one
// that has two.
func TestDefectsAreOfChecks(t *testing.T) {
	known := map[string]bool{}
	for _, c := range conformance.Checks(conformance.RoleHarness) {
		known[c.ID] = true
	}
	seen := map[string]bool{}
	for _, d := range brokenharness.Defects() {
		if !known[d.Check] || seen[d.Check] || d.About == "" {
			t.Errorf("defect %q is for no check, there twice, or says nothing", d.Check)
		}
		seen[d.Check] = true
	}
}
