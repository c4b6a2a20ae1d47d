package policy

import (
	"fmt"
	"strings"
)

// describe fills in the parts of a command when no step needed them.
func (e *evaluation) describe() {
	if e.shell == nil || e.result.Parts != nil {
		return
	}
	e.result.Parts = make([]Part, len(e.shell.parts))
	for i, p := range e.shell.parts {
		p.fill(&e.result.Parts[i])
	}
}

// Explain returns the result as text for people, in several lines: what was
// judged, each step, what matched and where it was written, and the verdict.
func (r Result) Explain() string {
	var b strings.Builder
	for _, p := range r.Paths {
		fmt.Fprintf(&b, "path     %s\n", quoted(p.Given))
		if p.Absolute != p.Given {
			fmt.Fprintf(&b, "         is %s\n", quoted(p.Absolute))
		}
		if p.Place.Path != p.Absolute {
			fmt.Fprintf(&b, "         lands at %s\n", quoted(p.Place.Path))
		}
	}
	for i, p := range r.Parts {
		fmt.Fprintf(&b, "part %-3d %s\n", i+1, quoted(p.Text))
		if p.Via != "" {
			fmt.Fprintf(&b, "         run by %s\n", quoted(p.Via))
		}
		if p.Wrapper {
			b.WriteString("         runs a further part, and needs a rule of its own\n")
		}
		if p.Program != "" {
			fmt.Fprintf(&b, "         found at %s\n", quoted(p.Program))
		}
		if p.Rule != nil {
			fmt.Fprintf(&b, "         covered by %s\n", p.Rule)
		}
		if p.Note != "" {
			fmt.Fprintf(&b, "         not covered: %s\n", p.Note)
		}
	}
	for _, t := range r.Trace {
		mark := " "
		if t.Matched {
			mark = ">"
		}
		fmt.Fprintf(&b, "%s %-12s %s\n", mark, t.Step, t.Note)
	}
	if r.Rule != nil {
		fmt.Fprintf(&b, "rule     %s\n", r.Rule)
	}
	fmt.Fprintf(&b, "verdict  %s\n", r.Verdict)
	fmt.Fprintf(&b, "reason   %s\n", r.Reason)
	return b.String()
}

// quoted returns s in quotes in which every invisible character is an escape.
func quoted(s string) string {
	if !printable(strings.ReplaceAll(s, " ", "")) {
		return fmt.Sprintf("%+q", s)
	}
	return fmt.Sprintf("%q", s)
}
