// Package hookd judges the native hook events of coding agents: it is what
// "ahp hook" does, in its own process or in a warm service of this account.
//
// It guarantees that every call gets exactly one answer, whatever is wrong with the
// event, the registrations or this package, and that an answer which nobody decided
// is what the installed line's policy says; that the verdict is the same in the
// service and without it; that an answer is given before the host's own limit; that
// a decision is in the log before it is told, or is a refusal; and that a call of one
// session never waits for another session's slow backend.
//
// Do not assume that a verdict holds when the host doesn't wait for it, or runs
// another hook after this one: package coverage says what each host can enforce.
package hookd

import (
	"errors"

	"github.com/abhed/abhed/ahp/adapter"
	"github.com/abhed/abhed/internal/hookline"
)

// The exit codes of "ahp hook": any other one is no answer.
const (
	ExitPass    = hookline.ExitPass
	ExitDeliver = hookline.ExitDeliver
	ExitDeny    = hookline.ExitDeny
)

// MaxEvent bounds a native event in bytes.
const MaxEvent = hookline.MaxEvent

// Call is one native event with what the installed line says.
type Call = hookline.Call

// Answer is what "ahp hook" prints and how it exits.
type Answer = hookline.Answer

// answer puts text on the stream that d names, for a refusal, and on standard output
// for anything else. A refusal that the host takes from standard output with exit code
// 0 is an answer to deliver, unless it takes every refusal so: the installed line knows
// one form of refusal per host.
func answer(h *adapter.Host, row *adapter.Row, deny bool, text []byte) (Answer, error) {
	switch {
	case !deny && len(text) == 0:
		return Answer{Code: ExitPass}, nil
	case !deny:
		return Answer{Code: ExitDeliver, Stdout: text}, nil
	case len(text) == 0:
		return Answer{}, errors.New("bug: a refusal without a text")
	}
	d := h.Delivery(row)
	a := Answer{Code: ExitDeny}
	if d != h.Deny {
		a.Code = ExitDeliver
	}
	if d.Stream == adapter.Stderr {
		a.Stderr = text
	} else {
		a.Stdout = text
	}
	return a, nil
}

// ByPolicy returns the answer to a call that could not be judged: a refusal with
// reason, or nothing where the line says that such calls pass or the host can't refuse
// this event. h may be nil for an unknown host.
func ByPolicy(h *adapter.Host, c *Call, native, reason string) Answer {
	if c.Open {
		return pass(h, native)
	}
	if h == nil { // no form of refusal is known: no answer at all is the wrapper's business
		return Answer{Code: 1, Stderr: []byte(reason)}
	}
	row := h.Row(native)
	if row == nil && len(h.Rows) > 0 { // unknown, so perhaps the one that matters
		row = &h.Rows[0]
	}
	if row == nil || !row.Denies() {
		return pass(h, native)
	}
	a, err := answer(h, row, true, h.Refusal(row.Native, adapter.Clean(reason)))
	if err != nil {
		return Answer{Code: 1, Stderr: []byte(reason)}
	}
	return a
}

// pass returns the answer that lets a call go on: some hosts need a document.
func pass(h *adapter.Host, native string) Answer {
	a := Answer{Code: ExitPass}
	if h != nil {
		a.Stdout = h.Blank(native)
	}
	return a
}
