package hookd_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abhed/abhed/internal/hookd"
	"github.com/abhed/abhed/internal/require"
	"github.com/abhed/abhed/internal/trust"
)

// TestProjects holds which project's registration counts, wherever the agent goes.
func TestProjects(t *testing.T) {
	w := newWorld(t, hookd.Options{})
	w.register(w.document(hook{mode: "allow", policy: "fail-closed"}))
	repo := filepath.Join(w.home, "it's a repo; $(touch x)")
	file := filepath.Join(repo, ".ahp", "registration.json")
	document := strings.Replace(w.document(hook{mode: "deny", policy: "fail-closed"}), "com.example.b0", "com.example.project", 1)
	write(t, file, document)
	store := trust.Open(filepath.Join(w.judge.StateDir(), "trust.json"))

	id := 0
	asks := func(name, session, dir, denial string) {
		t.Helper()
		id++
		want := hookd.ExitPass
		if denial != "" {
			want = hookd.ExitDeny
		}
		if a := w.do(hookd.Call{Data: bash(session, string(rune('a'+id)), dir, "echo hi")}); a.Code != want || !strings.Contains(said(a), denial) {
			t.Errorf("%s: %d %q, want %d %q", name, a.Code, said(a), want, denial)
		}
	}
	asks("not trusted yet", "s0", repo, "")
	if e := w.last(); len(e.Untrusted) != 1 || e.Untrusted[0] != file {
		t.Errorf("the log doesn't name what isn't trusted: %+v", e.Untrusted)
	}
	if err := store.Add(file, []byte(document)); err != nil {
		t.Fatal(err)
	}
	sub := filepath.Join(repo, "a", "b")
	write(t, filepath.Join(sub, "x"), "")
	asks("trusted", "s1", repo, "not in this house")
	asks("a folder below", "s2", sub, "not in this house")
	link := filepath.Join(w.home, "link")
	if err := os.Symlink(sub, link); err != nil {
		t.Fatal(err)
	}
	asks("a link to a folder below", "s3", link, "not in this house")
	asks("the session has left the project", "s1", os.TempDir(), "not in this house")
	asks("a session that was never in the project", "s4", os.TempDir(), "")
	// What an agent may put between itself and the project's registration.
	write(t, filepath.Join(sub, ".git", "HEAD"), "ref: refs/heads/main\n")
	asks("behind a repository of its own", "s5", sub, "not in this house")
	write(t, filepath.Join(sub, ".ahp", "registration.json"), w.document(hook{mode: "allow", policy: "fail-open"}))
	asks("behind a registration of its own", "s6", sub, "not in this house")

	write(t, file, document+"\n")
	asks("changed", "s7", repo, "was trusted with other content: read it, and run \"ahp trust\"")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	asks("removed", "s8", repo, "was trusted, and can't be read now")
	if was, err := store.Remove(file); err != nil || !was {
		t.Fatal(was, err)
	}
	asks("no longer trusted", "s9", repo, "")
}

func TestWorktree(t *testing.T) {
	require.Path(t, "git")
	w := newWorld(t, hookd.Options{})
	w.register(w.document(hook{mode: "allow", policy: "fail-closed"}))
	repo, tree := filepath.Join(w.home, "repo"), filepath.Join(w.home, "elsewhere", "tree")
	file := filepath.Join(repo, ".ahp", "registration.json")
	document := strings.Replace(w.document(hook{mode: "deny", policy: "fail-closed"}), "com.example.b0", "com.example.project", 1)
	write(t, file, document)
	for _, args := range [][]string{{"init", "-q", repo}, {"-C", repo, "-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-q", "--allow-empty", "-m", "x"}, {"-C", repo, "worktree", "add", "-q", tree}} {
		if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	if err := trust.Open(filepath.Join(w.judge.StateDir(), "trust.json")).Add(file, []byte(document)); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{tree, filepath.Join(tree, "deeper")} {
		if a := w.do(hookd.Call{Data: bash("s"+dir, "t1", dir, "echo hi")}); a.Code != hookd.ExitDeny || !strings.Contains(said(a), "not in this house") {
			t.Errorf("%s: %d %q", dir, a.Code, said(a))
		}
	}
}

// TestHomeIsTheProject: the user's own registration is no project's.
func TestHomeIsTheProject(t *testing.T) {
	w := newWorld(t, hookd.Options{})
	w.register(w.document(hook{mode: "deny", policy: "fail-closed"}))
	a := w.do(hookd.Call{Data: bash("s", "t1", w.home, "echo hi")})
	if a.Code != hookd.ExitDeny || strings.Count(w.noted(), "asked") != 1 {
		t.Errorf("%d %q, asked: %s", a.Code, a.Stderr, w.noted())
	}
}
