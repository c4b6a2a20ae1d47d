package app

import (
	"path/filepath"

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
	ignore := e.globalIgnore()
	return []tool.Tool{
		read.New(tracker, read.Options{}), write.New(tracker), edit.New(tracker),
		glob.New(glob.Options{Denied: e.readDenied, GlobalIgnore: ignore}), grep.New(grep.Options{Denied: e.readDenied, GlobalIgnore: ignore}), shell,
	}, nil
}

// globalIgnore returns the person's own ignore file, where git looks for it unless
// told otherwise; "" if there is none.
func (e *engine) globalIgnore() string {
	dir := e.sys.dir("XDG_CONFIG_HOME", ".config")
	if dir == "" {
		return ""
	}
	data, err := readBounded(filepath.Join(dir, "git", "ignore"), 1<<20)
	if err != nil {
		return ""
	}
	return string(data)
}

// readDenied reports whether a search must leave the path out. The rules are
// compiled after the tools are made, and before any of them runs.
func (e *engine) readDenied(path string) bool { return e.denied != nil && e.denied(path) }
