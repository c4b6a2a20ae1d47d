package conformance_test

import (
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/abhed/abhed/ahp/conformance"
	"github.com/abhed/abhed/ahp/conformance/brokenbackend"
)

// TestGoodBackend: what keeps every rule passes every check, and each check has
// something to say of it over some binding.
func TestGoodBackend(t *testing.T) {
	said := map[string]bool{}
	for _, binding := range bindings() {
		if raceEnabled && binding == conformance.StdioPerEvent {
			continue // hundreds of processes, one after the other
		}
		t.Run(string(binding), func(t *testing.T) {
			r := run(t, "none", binding, options())
			proven(t, r)
			for _, res := range r.Results {
				switch res.Verdict {
				case conformance.Pass:
					said[res.ID] = true
				case conformance.NotApplicable:
				default:
					t.Errorf("%s: %s: %s %v", res.ID, res.Verdict, res.Reason, res.Proven())
				}
			}
			if !r.Claim.Holds || !r.OK() {
				t.Errorf("claim %+v", r.Claim)
			}
		})
	}
	for _, c := range conformance.Checks(conformance.RoleBackend) {
		if !said[c.ID] && !raceEnabled {
			t.Errorf("%s passed over no binding", c.ID)
		}
	}
}

// TestEachCheckCanFail is the mutation test of the suite: for each check there is
// a backend which fails that check and nothing but what depends on it.
//
// Both tests of this kind show "nothing but" over HTTP, and over stdio and with a
// process per event too with ABHED_CONFORM_ALL=1, which takes four minutes of two
// processors (eight where others work there): run it after a change of a check, of
// what it depends on or of a broken peer. It was last green on 2026-11-30.
func TestEachCheckCanFail(t *testing.T) {
	type pair struct {
		check   conformance.Check
		about   string
		binding conformance.Binding
		target  conformance.Target
		opts    conformance.Options
		report  *conformance.Report
		err     error
	}
	var pairs []*pair
	for i, c := range conformance.Checks(conformance.RoleBackend) {
		m, ok := brokenbackend.Find(c.ID)
		if !ok {
			t.Errorf("%s has no backend that fails it", c.ID)
			continue
		}
		if !sampled(i, c.ID) {
			continue
		}
		for _, binding := range c.Bindings {
			// That nothing else fails is shown over HTTP, where it can be: with a process
			// per check, or per message, it takes minutes. There the check itself is
			// tried, unless all is asked for.
			opts := options()
			if binding != conformance.HTTP && slices.Contains(c.Bindings, conformance.HTTP) && os.Getenv("ABHED_CONFORM_ALL") == "" {
				opts.Only = []string{c.ID}
			}
			// The race detector sees nothing new in all the other checks.
			if raceEnabled {
				opts.Only = []string{c.ID}
			}
			if stateful := c.ID == "duplicate" || c.ID == "discovery.independent"; stateful && binding == conformance.StdioPerEvent {
				continue // a mutation that needs a memory
			}
			pairs = append(pairs, &pair{check: c, about: m.About, binding: binding, target: target(t, c.ID, binding), opts: opts})
		}
	}
	// The runs mostly wait for processes, so that more of them at a time than there
	// are processors is faster.
	var all sync.WaitGroup
	slots := make(chan struct{}, 4)
	for _, p := range slices.Backward(pairs) { // the slowest is among the last
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			p.report, p.err = conformance.Backend(t.Context(), p.target, p.opts)
		})
	}
	all.Wait()
	for _, p := range pairs {
		t.Run(p.check.ID+"/"+string(p.binding), func(t *testing.T) {
			if p.err != nil {
				t.Fatal(p.err)
			}
			failsExactly(t, p.report, p.check, p.about)
		})
	}
}

// TestInnocent: a backend that is unlike ours and keeps the rules isn't accused.
func TestInnocent(t *testing.T) {
	for _, m := range brokenbackend.Unusual() {
		for _, binding := range []conformance.Binding{conformance.StdioPersistent, conformance.HTTP} {
			if raceEnabled && binding != conformance.HTTP {
				continue // the detector sees nothing new there
			}
			t.Run(m.Check+"/"+string(binding), func(t *testing.T) {
				t.Parallel()
				r, err := conformance.Backend(t.Context(), target(t, m.Check, binding), options())
				conforms(t, r, err)
			})
		}
	}
}

// TestGrease: once the peer has shown that it ignores unknown members, every
// valid request has some.
func TestGrease(t *testing.T) {
	with := func(r *conformance.Report, id string) bool {
		for _, l := range r.Find(id).Transcript {
			if strings.Contains(l.Text, `"x-conform"`) {
				return true
			}
		}
		return false
	}
	good, bad := run(t, "none", conformance.HTTP, options()), run(t, "grease.params", conformance.HTTP, options())
	if with(good, "answer") || !with(good, "http.status") || with(bad, "http.status") {
		t.Errorf("unknown members: %v, %v, %v", with(good, "answer"), with(good, "http.status"), with(bad, "http.status"))
	}
}

// failsExactly holds that the check failed, with a proof, and that nothing did but
// what depends on it.
func failsExactly(t *testing.T, r *conformance.Report, c conformance.Check, about string) {
	t.Helper()
	proven(t, r)
	want := conformance.Fail
	if c.Level == conformance.Should {
		want = conformance.Warn
	}
	res := r.Find(c.ID)
	if res.Verdict != want || len(res.Proof) == 0 {
		t.Errorf("a backend that %s: %s is %s (%s), expected %s with a proof", about, c.ID, res.Verdict, res.Reason, want)
	}
	for _, other := range r.Results {
		depends := dependsOn(c.Role, other.ID, c.ID)
		switch {
		case other.ID == c.ID:
		case depends && other.Verdict != conformance.Blocked && other.Verdict != conformance.NotApplicable:
			t.Errorf("a backend that %s: %s is %s, expected blocked", about, other.ID, other.Verdict)
		case !depends && other.Verdict != conformance.Pass && other.Verdict != conformance.NotApplicable:
			t.Errorf("a backend that %s: %s is %s too: %s %v", about, other.ID, other.Verdict, other.Reason, other.Proven())
		}
	}
}

// dependsOn reports whether a check depends on another, directly or not.
func dependsOn(role conformance.Role, id, on string) bool {
	for _, c := range conformance.Checks(role) {
		if c.ID != id {
			continue
		}
		for _, d := range c.DependsOn {
			if d == on || dependsOn(role, d, on) {
				return true
			}
		}
	}
	return false
}

// TestMutationsAreOfChecks: no mutation is for a check that isn't there, or for
// one that has two.
func TestMutationsAreOfChecks(t *testing.T) {
	known := map[string]bool{}
	for _, c := range conformance.Checks(conformance.RoleBackend) {
		known[c.ID] = true
	}
	seen := map[string]bool{}
	for _, m := range brokenbackend.Mutations() {
		if !known[m.Check] || seen[m.Check] || m.About == "" {
			t.Errorf("mutation %q is for no check, there twice, or says nothing", m.Check)
		}
		seen[m.Check] = true
	}
}
