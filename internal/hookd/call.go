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
	"bytes"
	"fmt"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter"
	"github.com/abhed/abhed/internal/hookline"
)

// The exit codes of "ahp hook": any other one is no answer.
const (
	ExitPass    = hookline.ExitPass
	ExitDeliver = hookline.ExitDeliver
	ExitDeny    = hookline.ExitDeny
)

// Call is one native event with what the installed line says.
type Call = hookline.Call

// Answer is what "ahp hook" prints and how it exits.
type Answer = hookline.Answer

// answer puts the text of h's answer where a line that was installed for named delivers
// it. Such a line knows one form of refusal, that of named at this event: a refusal which
// h takes from standard output with exit code 0 is, for another's line, an answer to
// deliver, and any other is left to the exit code.
func answer(named, h *adapter.Host, row *adapter.Row, v *adapter.Verdict, text []byte) (Answer, error) {
	switch {
	case v.Deny == "" && v.Silent():
		return Answer{Code: ExitPass, Stdout: text}, nil
	case len(text) == 0:
		return Answer{}, fmt.Errorf("bug: the verdict for %s has an effect, and the adapter of %s said nothing", row.Native, h.Name)
	case v.Deny == "":
		return Answer{Code: ExitDeliver, Stdout: text}, nil
	}
	d := h.Delivery(row)
	line := named.Deny
	if r := named.Row(row.Native); r != nil {
		line = named.Delivery(r)
	}
	a := Answer{Code: ExitDeny}
	if d != line && d.Exit == 0 && d.Stream == adapter.Stdout {
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
// this event. The line was installed for named; h is the host that really runs it, or
// nil for named. named may be nil for an unknown host.
func ByPolicy(named, h *adapter.Host, c *Call, native, reason string) Answer {
	if h == nil {
		h = named
	}
	if h == nil { // no form of refusal is known: no answer at all is the wrapper's business
		return Answer{Code: 1, Stderr: []byte(reason)}
	}
	row := likely(h, native, c.Data)
	if c.Open || row == nil || !row.Denies() {
		return pass(h, row)
	}
	v := &adapter.Verdict{Deny: adapter.Clean(reason)}
	a, err := answer(named, h, row, v, h.Refusal(row.Native, v.Deny))
	if err != nil {
		return Answer{Code: 1, Stderr: []byte(reason)}
	}
	return a
}

// likely returns the row of an event that could not be read: the one that is named, or
// else the only one whose name the data holds, as a string, near its start. It is the
// first before a call, or else at all, that can refuse where that doesn't tell: the event
// may be the one that matters, and some hosts refuse another with another document.
func likely(h *adapter.Host, native string, data []byte) *adapter.Row {
	if row := h.Row(native); row != nil {
		return row
	}
	var found, gate *adapter.Row
	several := false
	head := data[:min(len(data), 64<<10)]
	for i := range h.Rows {
		r := &h.Rows[i]
		if r.Denies() && (gate == nil || gate.Type != ahp.ToolBefore && r.Type == ahp.ToolBefore) {
			gate = r
		}
		if bytes.Contains(head, []byte(`"`+r.Native+`"`)) {
			several = several || found != nil
			found = r
		}
	}
	if found != nil && !several {
		return found
	}
	return gate
}

// pass returns the answer that lets a call go on: some hosts need a document.
func pass(h *adapter.Host, row *adapter.Row) Answer {
	a := Answer{Code: ExitPass}
	if row != nil {
		a.Stdout = h.Blank(row.Native)
	}
	return a
}
