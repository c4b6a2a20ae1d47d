package main

import (
	"fmt"
	"strings"

	"github.com/abhed/abhed/ahp"
)

// code returns the exit code that s means.
func (s *sent) code() int {
	if s.Interrupted || s.Outcome != nil && s.Outcome.Interrupted {
		return exitFailed
	}
	if o := s.Outcome; o != nil {
		for _, d := range o.Denials {
			if !d.Synthetic {
				return exitNegative
			}
		}
		if o.Flow == ahp.FlowStateStop {
			return exitNegative
		}
	}
	for i := range s.Answers {
		if s.Answers[i].Failure != nil {
			return exitFailed
		}
	}
	for i := range s.Observations {
		if s.Observations[i].Failure != nil {
			return exitFailed
		}
	}
	return exitOK
}

// text returns s for people.
func (s *sent) text() string {
	var b strings.Builder
	for i := range s.Exchanges {
		x := &s.Exchanges[i]
		fmt.Fprintf(&b, "%s %s, %s, %d ms\n  > %s\n", x.At, x.Backend, x.Method, x.Milliseconds, x.Request)
		switch {
		case x.Failure != nil:
			fmt.Fprintf(&b, "  ! %s: %s\n", x.Failure.Class, x.Failure.Detail)
		case x.Answer != nil:
			fmt.Fprintf(&b, "  < %s\n", x.Answer)
		case x.AnswerText != "":
			fmt.Fprintf(&b, "  < %q\n", x.AnswerText)
		}
	}
	for i := range s.Answers {
		a := &s.Answers[i]
		fmt.Fprintf(&b, "%s, subscription %d: ", a.Backend, a.Subscription)
		switch {
		case a.Failure != nil:
			fmt.Fprintf(&b, "failed after %d ms, so %s applies: %s: %s\n", a.Milliseconds, a.Policy, a.Failure.Class, a.Failure.Detail)
		case a.Kind != ahp.AnswerEffects:
			fmt.Fprintf(&b, "%s after %d ms\n", a.Kind, a.Milliseconds)
		default:
			fmt.Fprintf(&b, "%d effects accepted after %d ms\n", len(a.Effects), a.Milliseconds)
		}
	}
	for i := range s.Observations {
		o := &s.Observations[i]
		fmt.Fprintf(&b, "%s, subscription %d: ", o.Backend, o.Subscription)
		if o.Failure != nil {
			fmt.Fprintf(&b, "not told after %d ms: %s: %s\n", o.Milliseconds, o.Failure.Class, o.Failure.Detail)
		} else {
			fmt.Fprintf(&b, "told after %d ms\n", o.Milliseconds)
		}
	}
	if len(s.Exchanges)+len(s.Answers)+len(s.Observations) == 0 {
		fmt.Fprintf(&b, "no subscription takes %s\n", s.Type)
	}
	s.Outcome.write(&b)
	return b.String()
}

// write adds what the chain came to; nil is an event that was only observed.
func (o *outcomeShown) write(b *strings.Builder) {
	if o == nil {
		b.WriteString("outcome: observed\n")
		return
	}
	fmt.Fprintf(b, "outcome: %s", o.Decision)
	if o.Interrupted {
		b.WriteString(", interrupted")
	}
	if o.Flow != "" {
		fmt.Fprintf(b, ", flow %s", o.Flow)
	}
	b.WriteByte('\n')
	for _, d := range o.Denials {
		who := d.Backend
		if d.Synthetic {
			who += " could not be asked"
		}
		fmt.Fprintf(b, "  denied: %s: %s\n", who, d.Reason)
	}
	if o.StopReason != "" {
		fmt.Fprintf(b, "  stopped: %s\n", o.StopReason)
	}
	for _, m := range o.Messages {
		fmt.Fprintf(b, "  message: %s\n", m)
	}
	if o.Input != nil {
		fmt.Fprintf(b, "  input: %s\n", o.Input)
	}
	if o.Result != nil {
		fmt.Fprintf(b, "  result: %s\n", o.Result)
	}
	for _, i := range o.Injections {
		fmt.Fprintf(b, "  injected: %s\n", i)
	}
	for _, i := range o.ContinuationInstructions {
		fmt.Fprintf(b, "  continue: %s\n", i)
	}
}
