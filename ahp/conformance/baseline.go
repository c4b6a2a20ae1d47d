package conformance

import (
	"fmt"
	"strings"
)

// Baseline holds the failures that are known: the reason by the check's id.
type Baseline map[string]string

// ParseBaseline reads a baseline: a check id and the reason for its failure on
// each line. Empty lines and those that start with "#" are left out. An id without
// a reason, or one that is there twice, is an error; whether a check of that id
// exists is judged when the baseline is used.
func ParseBaseline(text string) (Baseline, error) {
	out := Baseline{}
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		id, reason, _ := strings.Cut(line, " ")
		if tab, rest, is := strings.Cut(line, "\t"); is && len(tab) < len(id) {
			id, reason = tab, rest
		}
		reason = strings.TrimSpace(reason)
		if reason == "" {
			return nil, fmt.Errorf("conformance: line %d of the baseline: %q has no reason; write the check's id, a space, and why it fails", i+1, id)
		}
		if _, twice := out[id]; twice {
			return nil, fmt.Errorf("conformance: line %d of the baseline: %s is there twice", i+1, id)
		}
		out[id] = reason
	}
	return out, nil
}

// check refuses ids that no check of the role has: a baseline that names nothing
// hides a typing error.
func (b Baseline) check(role Role) error {
	known := map[string]bool{}
	for _, c := range Checks(role) {
		known[c.ID] = true
	}
	for id := range b {
		if !known[id] {
			return fmt.Errorf("conformance: the baseline names %q, which is no check of a %s; \"ahp conform list\" prints them", id, role)
		}
	}
	return nil
}

// apply sets the outcomes. What is blocked by an expected failure is expected too.
func (b Baseline) apply(results []Result) {
	outcomes := map[string]Outcome{}
	for i := range results {
		r := &results[i]
		reason, listed := b[r.ID]
		r.Expected = reason
		switch {
		case listed && r.Verdict == Pass:
			r.Outcome = OutcomeStale
		case listed && (r.Failed() || r.Verdict == Warn || r.Verdict == Blocked):
			r.Outcome = OutcomeExpectedFail
		case r.Failed() && r.Verdict == Blocked && outcomes[r.BlockedBy] == OutcomeExpectedFail:
			r.Outcome = OutcomeExpectedFail
		case r.Failed():
			r.Outcome = OutcomeUnexpectedFail
		default:
			r.Outcome = OutcomePass
		}
		outcomes[r.ID] = r.Outcome
	}
}
