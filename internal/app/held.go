package app

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/abhed/abhed/internal/agent"
	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/tool/bash"
)

// maxHidden bounds the files that are looked at to find what must be hidden from a
// command.
const maxHidden = 2_000_000

// holding is what of a session's roots commands may not make or change, because it
// decides about agents, or makes a person's own git run something (gate.md §3
// "Protected").
type holding struct {
	roots []string
	// places are folders that didn't exist when the session began, and whose names a
	// mount takes while a command runs. The sandbox leaves them behind empty.
	places []string
}

func newHolding(roots []string) *holding {
	h := &holding{roots: roots}
	for _, root := range roots {
		names := []string{".abhed", ".ahp", ".git"}
		for _, name := range folders() {
			names = append(names, filepath.Join(".git", name))
		}
		for _, name := range names {
			if path := filepath.Join(root, name); !exists(path) {
				h.places = append(h.places, path)
			}
		}
	}
	return h
}

// held lists what can't be changed by the next command. A path that ends in a
// slash is a folder that doesn't exist.
func (h *holding) held() []string {
	var out []string
	add := func(path string, folder bool) {
		switch {
		case exists(path):
			out = append(out, path)
		case folder:
			out = append(out, path+"/")
		}
	}
	for _, root := range h.roots {
		add(filepath.Join(root, ".abhed"), true)
		add(filepath.Join(root, ".ahp"), true)
		git := filepath.Join(root, ".git")
		if !isDir(git) {
			add(git, true) // missing, or the file of a work tree
			continue
		}
		for _, name := range folders() {
			add(filepath.Join(git, name), true)
		}
		for _, name := range append(watched(), "config") {
			add(filepath.Join(git, name), false)
		}
	}
	return out
}

// folders are those in .git from which git runs something, or which lead it to settings:
// hooks of its own, and those of submodules, which git uses if they are there already.
func folders() []string { return []string{"hooks", "modules", "worktrees"} }

// watched are the files in .git that usually don't exist, where nothing may stand in
// their place either: git reads an empty one as a fault.
func watched() []string { return []string{"commondir", "config.worktree"} }

// missing lists the watched files that don't exist.
func (h *holding) missing() []string {
	var out []string
	for _, root := range h.roots {
		git := filepath.Join(root, ".git")
		for _, name := range watched() {
			if path := filepath.Join(git, name); isDir(git) && !exists(path) {
				out = append(out, path)
			}
		}
	}
	return out
}

// setAside renames what a command made in a place of missing, so that git doesn't
// see it. Nothing is deleted: a person may have made it at the same time.
func setAside(missing []string) (moved []string, err error) {
	for _, path := range missing {
		if !exists(path) {
			continue
		}
		aside := path + ".set-aside"
		for n := 2; exists(aside); n++ { // what a command put there is no way to keep the place
			aside = fmt.Sprintf("%s.set-aside-%d", path, n)
		}
		rename := os.Rename(path, aside)
		if errors.Is(rename, os.ErrPermission) {
			rename = errors.Join(os.Chmod(filepath.Dir(path), 0o700), os.Rename(path, aside))
		}
		if rename != nil {
			return moved, rename
		}
		moved = append(moved, path+" was made, which is protected; it is now "+aside)
	}
	return moved, nil
}

// clear removes the empty folders that the sandbox left behind.
func (h *holding) clear() error {
	for _, path := range h.places {
		_ = unix.Rmdir(path) // what isn't an empty folder is somebody's
	}
	return nil
}

// beforeCommand says what the next command may not read and not change.
func (s *scope) beforeCommand() (hidden, held []string, err error) {
	s.absent = s.holding.missing()
	return s.kept()
}

// guardJob says what a command in the background may not touch while it lives. What it
// makes in a watched place is found whatever other commands begin meanwhile, for which
// that was there already.
func (s *scope) guardJob() (bash.Guard, error) {
	absent := s.holding.missing()
	hidden, held, err := s.kept()
	return bash.Guard{Hidden: hidden, Protected: held, Check: func() string { return s.takeAway(absent) }}, err
}

// kept lists what a command that starts now may not read and not change.
func (s *scope) kept() (hidden, held []string, err error) {
	guarded := s.e.protected(s.roots)
	held = s.holding.held()
	for _, path := range guarded.Write {
		if inRoots(path, s.roots) && exists(path) && filepath.Base(path) != ".git" {
			held = append(held, path)
		}
	}
	for _, path := range guarded.Read {
		if exists(path) {
			hidden = append(hidden, path)
		}
	}
	unread, unwritten, err := forbidden(s.e.ruleset, s.roots, s.e.sys.home())
	return append(hidden, unread...), append(held, unwritten...), err
}

// forbidden lists what the deny rules of read and of write forbid as it is now, so
// that a command can't do it either.
func forbidden(rules *policy.Ruleset, roots []string, home string) (unread, unwritten []string, err error) {
	unread, all := rules.Hidden(roots, home, maxHidden)
	frozen, more := rules.Frozen(roots, home, maxHidden)
	if !all || !more {
		return nil, nil, fmt.Errorf("a deny rule of read or write has wildcards and the workspace has more than %d files, so not everything that it forbids could be held; write the rule with a folder at its start", maxHidden)
	}
	for _, path := range frozen {
		if inRoots(path, roots) { // elsewhere nothing can be written anyway
			unwritten = append(unwritten, path)
		}
	}
	return unread, unwritten, nil
}

// afterCommand looks for what a command made in a watched place. If it can't be
// taken away the run ends.
func (s *scope) afterCommand() string { return s.takeAway(s.absent) }

// takeAway sets aside what is in places of absent.
func (s *scope) takeAway(absent []string) string {
	moved, err := setAside(absent)
	if err != nil {
		s.e.stop(&agent.Interrupted{Reason: agent.ReasonError, Detail: "a command made a protected file, which could not be taken away: " + err.Error()})
	}
	return strings.Join(moved, "; ")
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
