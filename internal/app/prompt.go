package app

import (
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/abhed/abhed/internal/memory"
	"github.com/abhed/abhed/internal/tool/task"
)

// systemPrompt is the text that every request of the main agent begins with. Nothing
// in it changes during a session, so that prefix caches hit.
func (e *engine) systemPrompt() string {
	text := basePrompt(e.main) + e.projectText(e.main)
	if e.o.systemAppend != "" {
		text += "\n\n" + e.o.systemAppend
	}
	return text
}

// subPrompt is the text that a sub-agent's requests begin with.
func subPrompt(w *worker, r task.Request) string {
	text := basePrompt(w) + "\n\nYou are a sub-agent: another agent gave you one task. Do it, and end with a report that says what you found or did, with paths; that report is all that it gets of your work."
	if r.ReadOnly || w.readOnly {
		text += " You have only tools that change nothing."
	}
	return text + w.e.projectText(w)
}

func basePrompt(w *worker) string {
	e, roots := w.e, w.scope.roots
	var b strings.Builder
	fmt.Fprintf(&b, `You are a coding agent. You work on the files in %s with the tools you are given.

- Look before you change: search and read the code, then make the smallest change that does what was asked, in the style of the code around it.
- Check your work: run the tests or the program.
- Every tool call is judged before it runs. A refusal is final for that action: it says who refused and why. Don't try the same thing in other words; find another way, or say what you would need.
- Nobody may be there to answer. Never wait for input.
- When the task is done, say briefly what you did and how you checked it.

The operating system is %s.`, roots[0], runtime.GOOS)
	if len(roots) > 1 {
		fmt.Fprintf(&b, " You may also work in: %s.", strings.Join(roots[1:], ", "))
	}
	if !e.network() {
		b.WriteString(" Commands have no network.")
	}
	return b.String()
}

// projectText is what the workspace and the person say to every agent: instruction
// files, and the list of skills.
func (e *engine) projectText(w *worker) string {
	var b strings.Builder
	files, warnings := e.instructions.Root(w.id.ID)
	if w.parent == nil {
		e.warnings = append(e.warnings, warnings...) // which recordStart records
	} else {
		e.warn(warnings)
	}
	for _, f := range files {
		b.WriteString("\n\n" + instruction(f))
	}
	if w.parent == nil {
		e.memoryFiles = paths(files)
	}
	if _, ok := w.tools.Lookup("skill"); ok {
		b.WriteString("\n\nSkills are instructions for a kind of work; read one with the tool skill before you do such work:\n" + memory.ListSkills(e.skills))
	}
	return b.String()
}

func paths(files []memory.File) []string {
	var out []string
	for _, f := range files {
		out = append(out, f.Path)
	}
	return slices.Clip(out)
}
