package conformance

import (
	"time"
)

// Verdict is what one check came to.
type Verdict string

// The verdicts.
const (
	Pass Verdict = "pass"
	Fail Verdict = "fail"
	// Warn is a SHOULD that the peer doesn't follow.
	Warn Verdict = "warn"
	// NotApplicable tells that the check has no meaning for this peer; see Reason.
	NotApplicable Verdict = "not-applicable"
	// Blocked is a failure: a check that this one depends on failed.
	Blocked Verdict = "blocked"
	// SuiteError is a fault of the suite, which says nothing of the peer.
	SuiteError Verdict = "suite-error"
)

// Outcome is a verdict in the light of a baseline.
type Outcome string

// The outcomes.
const (
	// OutcomePass: passed or not applicable, as it should.
	OutcomePass Outcome = "pass"
	// OutcomeExpectedFail: failed, as the baseline says.
	OutcomeExpectedFail Outcome = "expected-fail"
	// OutcomeUnexpectedFail: failed, and the baseline doesn't say so.
	OutcomeUnexpectedFail Outcome = "unexpected-fail"
	// OutcomeStale: the baseline says that it fails, and it passed.
	OutcomeStale Outcome = "stale"
)

// Direction says which way a line of a transcript went.
type Direction string

// The directions.
const (
	ToPeer   Direction = "to-peer"
	FromPeer Direction = "from-peer"
	// Happened marks what is no message: a process that ended, an HTTP status.
	Happened Direction = "happened"
)

// Line is one line of a transcript.
type Line struct {
	// Number counts from 1 within the check, lines that were left out included.
	Number int `json:"number"`
	// Connection tells the processes or connections of one check apart, from 1.
	Connection int       `json:"connection"`
	Direction  Direction `json:"direction"`
	// Text is the message as valid UTF-8 on one line, without secrets. Beyond 1 KiB
	// it ends with an ellipsis.
	Text string `json:"text"`
	// Bytes is the whole message's length.
	Bytes int `json:"bytes"`
}

// Result is what one check came to, and why.
type Result struct {
	Check
	Verdict Verdict `json:"verdict"`
	Outcome Outcome `json:"outcome"`
	// Reason says what was found and what was expected; for a pass it is empty or a
	// remark.
	Reason string `json:"reason,omitempty"`
	// BlockedBy is the check that failed before.
	BlockedBy string `json:"blockedBy,omitempty"`
	// Expected is the baseline's reason.
	Expected string `json:"expected,omitempty"`
	// Proof holds the numbers of the lines of Transcript that prove the verdict: at
	// most 12 of a failure or a warning, and at most 24 of a pass, which are the first
	// and the last ones of what was tried, or some of each session of a harness. What
	// wasn't tried has none.
	Proof []int `json:"proof,omitempty"`
	// Transcript holds at most 120 lines of what was said: the first and the last ones
	// with a backend; with a harness those around the proof, 40 where it passes.
	Transcript []Line        `json:"transcript,omitempty"`
	Elapsed    time.Duration `json:"-"`
}

// Failed reports whether the verdict counts as a failure of the peer: what breaks
// or blocks a SHOULD doesn't.
func (r *Result) Failed() bool {
	return r.Verdict == Fail || r.Verdict == Blocked && r.Level != Should
}

// Proven returns the lines that prove the verdict.
func (r *Result) Proven() []Line {
	var out []Line
	for _, l := range r.Transcript {
		for _, n := range r.Proof {
			if l.Number == n {
				out = append(out, l)
			}
		}
	}
	return out
}
