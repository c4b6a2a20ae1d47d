package app_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/model/modeltest"
	"github.com/abhed/abhed/internal/require"
)

// repository makes the workspace a repository with what is in it as its one commit.
func (w *world) repository() {
	w.t.Helper()
	w.git("init", "-q")
	w.git("config", "user.name", "n")
	w.git("config", "user.email", "e@x")
	w.git("add", ".")
	w.git("commit", "-qm", "first")
}

// git runs git in the workspace.
func (w *world) git(args ...string) string {
	w.t.Helper()
	cmd := exec.Command(require.Path(w.t, "git"), args...)
	cmd.Dir = w.dir
	cmd.Env = append(os.Environ(), "HOME="+w.home)
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// inTree lets a sub-agent run one command in a worktree of its own, and returns what its
// parent reads of it.
func (w *world) inTree(t *testing.T, command string) (report string, events []event.Event) {
	t.Helper()
	w.opts.Mode = "bypass"
	w.plays("", fmt.Sprintf(`{"steps":[{"calls":[{"id":"t","name":"task","args":{"description":"change","prompt":"p","worktree":true}}]},{"text":"done"}],
		"agents":{"change":[{"calls":[{"id":"b","name":"bash","args":{"command":%q}}]},{"text":"changed"}]}}`, command))
	r := w.run(t.Context())
	if r.code != 0 {
		t.Fatalf("exit %d: %s", r.code, r.err)
	}
	events = w.events(r)
	return outcome(events, "t"), events
}

// TestWorktreeRunsNothingOfTheRepository has programs in the settings of a repository,
// and in those that a sub-agent makes where the repository has a submodule. None is run
// when a worktree is made, looked at and removed.
func TestWorktreeRunsNothingOfTheRepository(t *testing.T) {
	w := newWorld(t)
	w.write("a.txt", "one\n")
	w.write(".gitattributes", "*.txt filter=evil\n*.dat filter=other\n")
	w.write("b.dat", "b\n")
	w.write("evil.sh", `git init -q sub; cd sub; git config user.name n; git config user.email e@x
git config filter.sub.clean "touch `+w.home+`/sub; cat"; echo 1 >f; git add f; git commit -qm x; echo "* filter=sub" >.gitattributes; echo 2 >f
cd ..; echo two >>a.txt; echo three >>b.dat`)
	w.repository()
	w.git("update-index", "--add", "--cacheinfo", "160000,"+w.git("rev-parse", "HEAD")+",sub")
	w.git("commit", "-qm", "second")
	for _, place := range []string{w.home, w.dir} { // outside the sandbox, and in it
		mark := "touch " + place + "/"
		w.git("config", "--add", "filter.evil.smudge", mark+"smudge; cat")
		w.git("config", "filter.evil.clean", mark+"clean; cat")
		w.git("config", "filter.other.process", mark+"process")
		w.git("config", "filter.other.required", "true")
		w.git("config", "core.fsmonitor", mark+"fsmonitor")
		w.git("config", "core.hooksPath", "hooks")
		w.write("hooks/post-checkout", "#!/bin/sh\n"+mark+"hook\n")
		if err := os.Chmod(filepath.Join(w.dir, "hooks", "post-checkout"), 0o755); err != nil {
			t.Fatal(err)
		}
		report, events := w.inTree(t, "sh evil.sh")
		if !strings.Contains(report, "a.txt") || !strings.Contains(report, "b.dat") || !strings.Contains(report, "sub") {
			t.Errorf("the report: %s; the command: %s", report, outcome(events, "b"))
		}
		for _, name := range []string{"smudge", "clean", "process", "fsmonitor", "hook", "sub"} {
			if _, err := os.Stat(filepath.Join(place, name)); err == nil && filepath.Join(place, name) != filepath.Join(w.dir, "sub") {
				t.Errorf("%s of the repository ran and wrote in %s", name, place)
			}
		}
	}
	w.git("config", "filter.a=b.clean", "true")
	if report, _ := w.inTree(t, "true"); !strings.Contains(report, "odd name") {
		t.Errorf("a filter whose name can't be told to git: %s", report)
	}
}

// TestWorktreeIsOfTheWorkspace makes none of another repository that a file in the
// workspace names, but one where the workspace is a worktree itself.
func TestWorktreeIsOfTheWorkspace(t *testing.T) {
	w := newWorld(t)
	w.write("private.txt", "private\n")
	w.repository()
	other := w.dir
	w.git("worktree", "add", "-q", filepath.Join(w.home, "linked"))
	w.dir = filepath.Join(w.home, "linked")
	w.opts.Dir = w.dir
	if report, events := w.inTree(t, "cat private.txt; echo x >new"); !strings.Contains(report, "?? new") {
		t.Errorf("a worktree of a worktree: %s; %s", report, outcome(events, "b"))
	}
	pointed, err := os.ReadFile(filepath.Join(w.dir, ".git"))
	if err != nil {
		t.Fatal(err)
	}
	w.dir = filepath.Join(w.home, "hostile")
	w.opts.Dir = w.dir
	for _, text := range []string{"gitdir: " + other + "/.git\n", string(pointed)} {
		w.write(".git", text)
		if report, events := w.inTree(t, "cat private.txt"); !strings.Contains(report, "a worktree needs a git repository") {
			t.Errorf("%q: %s; %s", text, report, outcome(events, "b"))
		}
	}
}

// TestWorkInAWorktreeIsKept holds that a worktree is only removed if nothing at all was
// done in it.
func TestWorkInAWorktreeIsKept(t *testing.T) {
	git := require.Path(t, "git")
	bin := t.TempDir() // without the sandbox, in which a sub-agent can't commit
	for _, name := range []string{"bash", "sh", "mkdir", "touch"} {
		if err := os.Symlink(require.Path(t, name), filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(git, filepath.Join(bin, "git")); err != nil {
		t.Fatal(err)
	}
	for command, want := range map[string]string{
		"echo new >a.txt; git -c user.name=n -c user.email=e@x commit -qam mine; git status --short": "committed up to",
		"echo output >ignored.txt":                      "!! ignored.txt",
		"mkdir -p sub; echo mine >sub/new":              "?? sub/",
		"mkdir .abhed .ahp empty; touch -c nothing.txt": "removed",
	} {
		t.Run(command, func(t *testing.T) {
			t.Setenv("PATH", bin)
			w := newWorld(t)
			w.write("a.txt", "one\n")
			w.write(".gitignore", "ignored.txt\n.abhed/\n")
			w.repository()
			w.git("update-index", "--add", "--cacheinfo", "160000,"+w.git("rev-parse", "HEAD")+",sub")
			w.git("commit", "-qm", "second")
			report, events := w.inTree(t, command)
			if !strings.Contains(report, want) {
				t.Errorf("the report: %s; the command: %s", report, outcome(events, "b"))
			}
			left := payloads[*event.AgentStarted](events)[0].Worktree
			if _, err := os.Stat(left); (err == nil) != (want != "removed") {
				t.Errorf("%s: %v", left, err)
			}
			if branches := w.git("branch", "--list", "abhed/*"); (branches != "") != (want != "removed") {
				t.Errorf("branches: %q", branches)
			}
		})
	}
}

// TestJobsOfAWorktreeAreHeld lets a sub-agent's command in the background try what one
// in the foreground can't do.
func TestJobsOfAWorktreeAreHeld(t *testing.T) {
	require.Path(t, "bwrap")
	w := newWorld(t)
	w.opts.Mode, w.opts.MinTier = "bypass", "process"
	w.opts.Deny = []string{"read(**/.env)"}
	w.write("evil.sh", "mv .git away; rm -f .git; echo 'gitdir: evil' >.git; mkdir .abhed; echo '{}' >.abhed/config.json; cat .env; cat .git; ls .abhed; echo tried")
	w.write(".env", "hunter2\n")
	w.repository()
	w.plays("", `{"steps":[{"calls":[{"id":"t","name":"task","args":{"description":"change","prompt":"p","worktree":true}}]},{"text":"done"}],"agents":{"change":[
		{"calls":[{"id":"b","name":"bash","args":{"command":"sh evil.sh","background":true}}]},{"calls":[{"id":"r","name":"jobs","args":{"action":"read","id":"job1","wait_ms":5000}}]},{"text":"changed"}]}}`)
	r := w.run(t.Context())
	events := w.events(r)
	said := outcome(events, "b") + outcome(events, "r")
	if r.code != 0 || !strings.Contains(said, "tried") || strings.Contains(said, "evil\n") || strings.Contains(said, "hunter2") || strings.Contains(said, "config.json\n") {
		t.Errorf("exit %d, the job: %s", r.code, said)
	}
	if report := outcome(events, "t"); !strings.Contains(report, "removed") {
		t.Errorf("the report: %s", report)
	}
}

// TestJobsLeaveNothingBehind lets a command in the background make a file that decides
// for a person's git, at a moment when no other runs, and others begin after that.
func TestJobsLeaveNothingBehind(t *testing.T) {
	require.Path(t, "bwrap")
	w := newWorld(t)
	w.opts.Mode, w.opts.MinTier = "bypass", "process"
	w.write("evil.sh", "mkdir -p .git/commondir.set-aside/full; echo ../evil >.git/commondir; sleep 600")
	w.repository()
	var list []modeltest.Turn
	list = append(list, modeltest.Turn{Calls: []modeltest.Call{{ID: "job", Name: "bash", Args: `{"command":"sh evil.sh","background":true}`}}})
	list = append(list, bash("other", "true"), modeltest.Turn{Calls: []modeltest.Call{{ID: "read", Name: "jobs", Args: `{"action":"read","id":"job1","wait_ms":5000}`}}}, modeltest.Turn{Text: "done"})
	w2 := newWorld(t, list...)
	w2.dir, w2.opts = w.dir, w.opts
	r := w2.run(t.Context())
	if r.code != 0 {
		t.Fatalf("exit %d: %s", r.code, r.err)
	}
	if w.has(".git/commondir") {
		t.Errorf(".git/commondir is there after the session; the job: %s", outcome(w2.events(r), "read"))
	}
}

// TestFilesOfAPersonOutliveTheSession makes, during a session, a file where the sandbox
// leaves an empty folder.
func TestFilesOfAPersonOutliveTheSession(t *testing.T) {
	w := newWorld(t, bash("b", "true"), modeltest.Turn{Text: "done"})
	w.opts.Mode = "bypass"
	made := filepath.Join(w.dir, ".git")
	w.extension("", `while IFS= read -r r; do case $r in *'"turn_end"'*) rmdir `+made+` 2>/dev/null; [ -e `+made+` ] || echo "gitdir: elsewhere" >`+made+` ;; esac; echo '{}'; done`)
	r := w.run(t.Context())
	if data, err := os.ReadFile(made); err != nil || string(data) != "gitdir: elsewhere\n" {
		t.Errorf("exit %d, the file: %q, %v: %s", r.code, data, err, r.err)
	}
}

// TestNoWorktreeWhereNothingMayChange asks for one in plan mode, for a sub-agent that
// can change nothing, and by one.
func TestNoWorktreeWhereNothingMayChange(t *testing.T) {
	for name, tt := range map[string]struct{ mode, more, want string }{
		"plan mode":         {"plan", `,"worktree":true`, "in plan mode nothing may change"},
		"read-only":         {"bypass", `,"worktree":true,"read_only":true`, "can change nothing"},
		"below a read-only": {"bypass", `,"read_only":true`, "can change nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write("a.txt", "one\n")
			w.repository()
			w.opts.Mode = tt.mode
			w.plays("", fmt.Sprintf(oneTask, tt.more, "", `{"calls":[{"id":"u","name":"task","args":{"description":"deeper","prompt":"p","worktree":true}}]},{"text":"reported"}],"deeper":[{"text":"never"}`))
			r := w.run(t.Context())
			events := w.events(r)
			if got := outcome(events, "t") + outcome(events, "u"); r.code != 0 || !strings.Contains(got, tt.want) {
				t.Errorf("exit %d: %s%s", r.code, got, r.err)
			}
			if trees := w.git("worktree", "list"); strings.Contains(trees, "abhed") || w.git("branch", "--list", "abhed/*") != "" {
				t.Errorf("worktrees: %s", trees)
			}
		})
	}
}
