package app

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/policy"
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

// maxHidden bounds the files that are looked at to find what must be hidden from
// commands.
const maxHidden = 200_000

// builtinNames are the names that no extension may take.
func builtinNames() []string { return []string{"read", "write", "edit", "glob", "grep", "bash"} }

// builtins makes the built-in tools of a session, in the order of builtinNames.
func (e *engine) builtins() ([]tool.Tool, error) {
	e.lookForSettings()
	shell, err := bash.New(e.plan, bash.Options{Policy: e.sandboxPolicy(), Hidden: e.hiddenPaths, After: e.removeSettings})
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

// sandboxPolicy is what commands may do.
func (e *engine) sandboxPolicy() sandbox.Policy {
	l := e.o.loaded
	p := sandbox.Policy{Roots: l.roots, HomePaths: l.Sandbox.HomePaths, Network: l.Sandbox.Network, TmpDir: e.tmp}
	guarded := protected(l, e.registrations(), e.sys)
	for _, path := range guarded.Write {
		if inRoots(path, l.roots) && exists(path) {
			p.Protected = append(p.Protected, path)
		}
	}
	for _, root := range l.roots {
		// A repository may lack the folder of hooks; one that a command makes would
		// run outside the sandbox at the person's next commit.
		hooks := filepath.Join(root, ".git", "hooks")
		if exists(filepath.Dir(hooks)) && !exists(hooks) {
			p.Protected = append(p.Protected, hooks+"/")
		}
	}
	for _, path := range guarded.Read {
		if exists(path) {
			p.Hidden = append(p.Hidden, path)
		}
	}
	return p
}

// hiddenPaths lists what the deny rules of read forbid as it is now, so that a
// command can't read it either.
func (e *engine) hiddenPaths() []string {
	l := e.o.loaded
	var lists policy.RuleLists
	for _, r := range ruleTexts(l.Permissions.Deny) {
		if strings.HasPrefix(r.Text, "read(") || strings.HasPrefix(r.Text, "*(") {
			lists.Deny = append(lists.Deny, r)
		}
	}
	set, _ := policy.Compile(lists, policy.Known{Tools: map[string]policy.SubjectKind{"read": policy.SubjectPath}})
	if set == nil {
		return nil // makeRules reports what is wrong, and nothing runs
	}
	paths, complete := set.Hidden(l.roots, e.sys.home(), maxHidden)
	if !complete && !e.warnedHidden {
		e.warnedHidden = true
		_, _ = e.log.Append(system(&event.Notice{Level: "warning", Text: "the workspace has too many files to hide from commands everything that deny rules of read match; the tools read, glob, grep and edit refuse it all the same"}))
	}
	return paths
}

// settingsNames are what in a workspace decides about agents, or makes a person's
// own git run something.
func settingsNames() []string {
	return []string{".abhed", ".ahp", ".git/commondir", ".git/config.worktree"}
}

// lookForSettings notes which of settingsNames a root lacks: what isn't there
// can't be mounted read-only, so a command could make it.
func (e *engine) lookForSettings() {
	for _, root := range e.o.loaded.roots {
		for _, name := range settingsNames() {
			if parent := filepath.Dir(filepath.Join(root, name)); isDir(parent) && !exists(filepath.Join(root, name)) {
				e.missing = append(e.missing, [2]string{root, name})
			}
		}
	}
}

// removeSettings removes what a command made in place of a missing setting, and
// says so.
func (e *engine) removeSettings() string {
	var removed []string
	for _, m := range e.missing {
		if !exists(filepath.Join(m[0], m[1])) {
			continue
		}
		root, err := os.OpenRoot(m[0]) // so that no link leads elsewhere
		if err == nil {
			err = root.RemoveAll(m[1])
			root.Close()
		}
		if err != nil {
			removed = append(removed, m[1]+" (could not be removed: "+err.Error()+")")
			continue
		}
		removed = append(removed, m[1])
	}
	if len(removed) == 0 {
		return ""
	}
	return "removed, because it is protected: " + strings.Join(removed, ", ")
}

func isDir(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.IsDir()
}

func inRoots(path string, roots []string) bool {
	for _, r := range roots {
		if rel, err := filepath.Rel(r, path); err == nil && filepath.IsLocal(rel) {
			return true
		}
	}
	return false
}
