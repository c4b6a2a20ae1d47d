package app

import (
	"github.com/abhed/abhed/internal/sandbox"
	"github.com/abhed/abhed/internal/tool"
	"github.com/abhed/abhed/internal/tool/bash"
	"github.com/abhed/abhed/internal/tool/edit"
	"github.com/abhed/abhed/internal/tool/glob"
	"github.com/abhed/abhed/internal/tool/grep"
	"github.com/abhed/abhed/internal/tool/read"
	"github.com/abhed/abhed/internal/tool/write"
	"github.com/abhed/abhed/internal/workspace"
)

// builtinNames are the names that no extension may take.
func builtinNames() []string { return []string{"read", "write", "edit", "glob", "grep", "bash"} }

// builtins makes the built-in tools of a session, in the order of builtinNames.
func (e *engine) builtins() ([]tool.Tool, error) {
	l := e.o.loaded
	e.holding = newHolding(l.roots)
	shell, err := bash.New(e.plan, bash.Options{
		Policy: sandbox.Policy{Roots: l.roots, HomePaths: l.Sandbox.HomePaths, Network: l.Sandbox.Network, TmpDir: e.tmp},
		Before: e.beforeCommand, After: e.afterCommand,
	})
	if err != nil {
		return nil, err
	}
	tracker := workspace.NewTracker()
	return []tool.Tool{
		read.New(tracker, read.Options{}), write.New(tracker), edit.New(tracker),
		glob.New(glob.Options{Denied: e.readDenied}), grep.New(grep.Options{Denied: e.readDenied}), shell,
	}, nil
}

// readDenied reports whether a search must leave the path out. The rules are
// compiled after the tools are made, and before any of them runs.
func (e *engine) readDenied(path string) bool { return e.denied != nil && e.denied(path) }
