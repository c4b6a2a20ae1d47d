package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/abhed/abhed/internal/proc"
	"github.com/abhed/abhed/internal/sandbox"
)

// worktree is a git worktree that a sub-agent has to itself.
type worktree struct {
	e *engine
	// from is the workspace, common the folder of its repository.
	from, common      string
	dir, branch, base string
	git               string
	// quiet are the options that keep git from running a program of the repository's.
	quiet []string
}

// newWorktree makes a worktree of the repository at from, at its HEAD.
func newWorktree(ctx context.Context, e *engine, from, id string) (*worktree, error) {
	git, err := exec.LookPath("git")
	if err != nil {
		return nil, errors.New("a worktree needs git, which isn't installed")
	}
	name := e.log.ID() + "-" + id
	t := &worktree{e: e, from: from, dir: filepath.Join(e.sys.stateDir(), "worktrees", name), branch: "abhed/" + name, git: git}
	if t.common, err = repositoryOf(from); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(t.dir), 0o700); err != nil {
		return nil, err
	}
	if t.quiet, err = t.silence(ctx); err != nil {
		return nil, err
	}
	if t.base, err = t.run(ctx, from, "rev-parse", "--verify", "HEAD^{commit}"); err != nil {
		return nil, fmt.Errorf("a worktree needs a git repository with a commit: %w", err)
	}
	if top, err := t.run(ctx, from, "rev-parse", "--show-toplevel"); err != nil || top != from {
		return nil, fmt.Errorf("the workspace %s is not the top of its repository, so there is no worktree for it alone", from)
	}
	if _, err = t.run(ctx, from, "worktree", "add", "-q", "-b", t.branch, t.dir, t.base); err == nil {
		t.dir, err = realDir(t.dir)
	}
	if err != nil { // half a worktree is none; what there was of it says more than what couldn't be removed
		_ = t.remove(ctx)
		return nil, fmt.Errorf("git made no worktree: %w", err)
	}
	return t, nil
}

// repositoryOf returns the folder of the repository whose files are at from. Where that
// lies elsewhere it must know of from: else a file in the workspace could name any
// repository of the person's, and an agent would get to see it.
func repositoryOf(from string) (string, error) {
	own := filepath.Join(from, ".git")
	if isDir(own) {
		return own, nil
	}
	elsewhere := fmt.Errorf("a worktree needs a git repository, and the one of %s isn't in its folder .git, nor is it one whose worktree this is", from)
	dir, ok := pointer(own, "gitdir: ", from)
	if !ok {
		return "", elsewhere
	}
	back, knows := pointer(filepath.Join(dir, "gitdir"), "", dir)
	common, ok := pointer(filepath.Join(dir, "commondir"), "", dir)
	if !knows || !ok || back != own || filepath.Dir(dir) != filepath.Join(common, "worktrees") {
		return "", elsewhere
	}
	return realDir(common)
}

// pointer reads the path that one of git's small files holds, which is relative to dir.
func pointer(file, before, dir string) (string, bool) {
	if info, err := os.Lstat(file); err != nil || !info.Mode().IsRegular() {
		return "", false
	}
	data, err := readBounded(file, maxGit)
	path, ok := strings.CutPrefix(strings.TrimSuffix(string(data), "\n"), before)
	if err != nil || !ok || path == "" {
		return "", false
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	return filepath.Clean(path), true
}

// silence returns options under which git runs no program that the repository's own
// settings name: hooks, monitors of the file system, filters. The person's and the
// machine's settings are theirs, and stay.
func (t *worktree) silence(ctx context.Context) ([]string, error) {
	options := []string{"-c", "core.hooksPath=" + os.DevNull, "-c", "core.fsmonitor=false", "-c", "core.pager=cat", "-c", "submodule.recurse=false"}
	t.quiet = options
	out, err := t.list(ctx, t.from, "config", "--list", "--includes", "--show-scope", "--name-only", "-z")
	if err != nil {
		return nil, fmt.Errorf("the settings of the repository can't be read: %w", err)
	}
	for i := 0; i+1 < len(out); i += 2 {
		scope, name := out[i], out[i+1]
		if !strings.HasPrefix(name, "filter.") || scope == "system" || scope == "global" {
			continue
		}
		if strings.ContainsAny(name, "=\n") {
			return nil, fmt.Errorf("the settings of the repository have a filter of an odd name, %q, so there is no worktree of it", name)
		}
		value := "" // which is no program
		if strings.HasSuffix(name, ".required") {
			value = "false"
		}
		options = append(options, "-c", name+"="+value)
	}
	return options, nil
}

const (
	// maxGit bounds what is kept of git's output, in bytes, and maxGitList a list that
	// must be complete.
	maxGit     = 8 << 10
	maxGitList = 64 << 20
	// gitLimit bounds one command of git.
	gitLimit = 10 * time.Minute
)

// run runs git and returns what it said, without the end if that was long.
func (t *worktree) run(ctx context.Context, dir string, args ...string) (string, error) {
	out, err := t.output(ctx, dir, maxGit, args)
	return strings.TrimSpace(string(out[:min(len(out), maxGit)])), err
}

// list runs git and returns the strings that it wrote, each with a NUL at its end.
func (t *worktree) list(ctx context.Context, dir string, args ...string) ([]string, error) {
	out, err := t.output(ctx, dir, maxGitList, args)
	if err == nil && len(out) > maxGitList {
		err = fmt.Errorf("git %s: it said more than %d bytes", args[0], maxGitList)
	}
	if err != nil || len(out) == 0 {
		return nil, err
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"), nil
}

// output runs git, in the sandbox if there is one: what is in the repository, and in
// the worktree, is not the person's work alone. What git says is cut after limit bytes
// and one more.
func (t *worktree) output(ctx context.Context, dir string, limit int, args []string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, gitLimit)
	defer cancel()
	env := proc.Environ([]string{"HOME=" + t.e.sys.home(), "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0", "GIT_ALLOW_PROTOCOL=none"})
	spec, err := t.e.plan.Confine(proc.Spec{
		Name: "git", Path: t.git, Args: slices.Concat([]string{"-C", dir}, t.quiet, args), Dir: t.from, Env: env, MergeStderr: true, NoInput: true,
	}, sandbox.Policy{
		Roots: []string{t.from, t.common, filepath.Dir(t.dir)}, HomePaths: t.e.o.loaded.Sandbox.HomePaths,
		Protected: []string{filepath.Join(t.common, "hooks") + "/", filepath.Join(t.common, "config")},
	})
	if err != nil {
		return nil, err
	}
	child, err := proc.Start(spec)
	if err != nil {
		return nil, err
	}
	defer child.Kill()
	var out []byte
	for err == nil {
		var b []byte
		b, err = child.Read(ctx)
		out = append(out, b[:min(len(b), limit+1-len(out))]...)
	}
	if err != io.EOF {
		return nil, fmt.Errorf("git %s: %w", args[0], err)
	}
	if exit := child.Stop(); exit != (proc.Exit{}) {
		return nil, fmt.Errorf("git %s: %s: %s", args[0], exit, strings.TrimSpace(string(out[:min(len(out), maxGit)])))
	}
	return out, nil
}

// finish says what is in the worktree, and removes it if nothing is.
func (t *worktree) finish(ctx context.Context) string {
	head, status, err := t.changes(ctx)
	if err == nil && status == "" && head == t.base {
		if err = t.remove(ctx); err == nil {
			return "Nothing was changed in its worktree, which is removed."
		}
	}
	place := fmt.Sprintf("the worktree %s (branch %s, from %s)", t.dir, t.branch, t.base[:12])
	switch {
	case err != nil:
		return fmt.Sprintf("Its work is in %s; %v", place, err)
	case head != t.base && status == "":
		return fmt.Sprintf("Its changes are in %s, committed up to %s.", place, head)
	case head != t.base:
		return fmt.Sprintf("Its changes are in %s, committed up to %s, and uncommitted:\n%s", place, head, status)
	}
	return fmt.Sprintf("Its changes are in %s, uncommitted:\n%s", place, status)
}

// changes returns the commit that the worktree is at, and what is there beside it. What
// is ignored is told, too: it was made here, since nothing of it was there at the start.
func (t *worktree) changes(ctx context.Context) (head, status string, err error) {
	if head, err = t.run(ctx, t.dir, "rev-parse", "HEAD"); err != nil {
		return "", "", err
	}
	// In a submodule git would go by what the settings in there say.
	status, err = t.run(ctx, t.dir, "status", "--porcelain", "--untracked-files=all", "--ignored", "--ignore-submodules=dirty")
	if err != nil || status != "" {
		return head, status, err
	}
	entries, err := t.list(ctx, t.dir, "ls-tree", "-r", "-z", t.base)
	if err != nil {
		return "", "", err
	}
	var filled []string // folders of submodules, which were empty, and which git doesn't look into
	for _, entry := range entries {
		what, path, _ := strings.Cut(entry, "\t")
		if !strings.HasPrefix(what, "160000 ") {
			continue
		}
		if files, err := os.ReadDir(filepath.Join(t.dir, path)); err == nil && len(files) > 0 {
			filled = append(filled, "?? "+path+"/")
		}
	}
	status = strings.Join(filled, "\n")
	return head, status[:min(len(status), maxGit)], nil
}

// remove takes the worktree and its branch away, unless the branch has got more than it
// began with. A nil worktree has none.
func (t *worktree) remove(ctx context.Context) error {
	if t == nil {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	if _, err := t.run(ctx, t.from, "worktree", "remove", "--force", t.dir); err != nil {
		return err
	}
	_, err := t.run(ctx, t.from, "update-ref", "-d", "refs/heads/"+t.branch, t.base)
	return err
}
