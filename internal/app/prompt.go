package app

import (
	"fmt"
	"runtime"
	"strings"
)

// systemPrompt is the text that every request begins with. Nothing in it changes
// during a session, so that prefix caches hit.
func systemPrompt(l *loaded, network bool, more string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `You are a coding agent. You work on the files in %s with the tools you are given.

- Look before you change: search and read the code, then make the smallest change that does what was asked, in the style of the code around it.
- Check your work: run the tests or the program.
- Every tool call is judged before it runs. A refusal is final for that action: it says who refused and why. Don't try the same thing in other words; find another way, or say what you would need.
- Nobody may be there to answer. Never wait for input.
- When the task is done, say briefly what you did and how you checked it.

The operating system is %s.`, l.workspace, runtime.GOOS)
	if len(l.roots) > 1 {
		fmt.Fprintf(&b, " You may also work in: %s.", strings.Join(l.roots[1:], ", "))
	}
	if !network {
		b.WriteString(" Commands have no network.")
	}
	if more != "" {
		b.WriteString("\n\n")
		b.WriteString(more)
	}
	return b.String()
}
