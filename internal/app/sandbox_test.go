package app_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/model/modeltest"
	"github.com/abhed/abhed/internal/require"
)

// bash is a turn that runs a command.
func bash(id, command string) modeltest.Turn {
	return modeltest.Turn{Calls: []modeltest.Call{{ID: id, Name: "bash", Args: fmt.Sprintf(`{"command":%q}`, command)}}}
}

// outcome returns what the model read of a call.
func outcome(events []event.Event, id string) string {
	for _, e := range events {
		if p, ok := e.Payload.(*event.ToolEnded); ok && p.CallID == id {
			return p.Content
		}
	}
	return "(no such call)"
}

// TestCommandsAreConfined runs commands in the sandbox of a real session, in the
// mode that asks least.
func TestCommandsAreConfined(t *testing.T) {
	require.Path(t, "bwrap")
	w := newWorld(t,
		bash("own", "echo mine > own.txt && cat own.txt"),
		bash("etc", "touch /etc/abhed-was-here; ls /etc/abhed-was-here"),
		bash("home", "cat ~/private"),
		bash("key", `grep -c "" "$HOME/.local/state/abhed/key"`),
		bash("env", "sh env.sh"),
		bash("hook", "cp own.txt .git/hooks/pre-commit; ls .git/hooks"),
		bash("config", "cp own.txt .git/config; cat .git/config"),
		bash("net", "exec 3<>/dev/tcp/"+"127.0.0.1/9 || echo no network"),
		bash("vars", "env"),
		bash("moved", "sh moved.sh"),
		bash("later", "sh later.sh"),
		bash("made", "mkdir .abhed .ahp; cp own.txt .abhed/config.json; cp own.txt .git/commondir; ls -a . .git"),
		bash("after", "ls -a . .git"),
		bash("frozen", "sh frozen.sh"),
		modeltest.Turn{Text: "done"})
	w.opts.MinTier, w.opts.Mode = "process", "bypass"
	w.opts.Deny = []string{"read(**/.env)", "write(prod/**)"}
	w.write("prod/x", "as it was\n")
	// In scripts, where no rule sees the words.
	w.write("env.sh", "cat .env sub/.env; echo read")
	w.write("moved.sh", "mv sub sub2; cat sub2/.env; echo moved")
	w.write("later.sh", "ls sub2; cat sub2/.env sub/.env; echo later")
	w.write("frozen.sh", "cp own.txt prod/x; cp own.txt prod/y; mv prod prod2; cat prod/x; ls prod")
	w.write(".env", "SECRET-1\n")
	w.write("sub/.env", "SECRET-2\n")
	w.write(".git/config", "[core]\n")
	if err := os.WriteFile(filepath.Join(w.home, "private"), []byte("PRIVATE\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.env = append(w.env, "LEAK_API_KEY=do-not-leak")
	r := w.run(t.Context())
	if r.code != 0 {
		t.Fatalf("exit %d: %s", r.code, r.err)
	}
	events := w.events(r)
	if got := outcome(events, "own"); !strings.Contains(got, "mine") {
		t.Errorf("the workspace can't be written: %s", got)
	}
	for id, forbidden := range map[string]string{
		"home": "PRIVATE", "env": "SECRET", "hook": "pre-commit\n", "config": "mine", "vars": "do-not-leak",
		"moved": "SECRET", "later": "SECRET", "after": "commondir\n",
	} {
		if got := outcome(events, id); strings.Contains(strings.ReplaceAll(got, "own.txt .git", ""), forbidden) {
			t.Errorf("%s: %q", id, got)
		}
	}
	if got := outcome(events, "vars"); strings.Contains(got, "key-for-tests") || !strings.Contains(got, "PATH=") {
		t.Errorf("the environment of commands: %s", got)
	}
	if got := outcome(events, "made"); !strings.Contains(got, "Read-only file system") || !strings.Contains(got, "commondir was made, which is protected") {
		t.Errorf("made: %s", got)
	}
	for id, said := range map[string]string{"env": "read", "moved": "moved", "later": "later"} {
		if got := outcome(events, id); !strings.Contains(got, said+"\n") {
			t.Errorf("%s didn't run: %s", id, got)
		}
	}
	if got := outcome(events, "frozen"); !strings.HasSuffix(got, "as it was\nx\n") {
		t.Errorf("frozen: %s", got)
	}
	for _, name := range []string{".abhed", ".ahp", ".git/commondir"} {
		if _, err := os.Lstat(filepath.Join(w.dir, name)); err == nil {
			t.Errorf("%s is there after the session", name)
		}
	}
	if got := outcome(events, "net"); !strings.Contains(got, "no network") {
		t.Errorf("net: %s", got)
	}
	if _, err := os.Stat("/etc/abhed-was-here"); err == nil {
		os.Remove("/etc/abhed-was-here")
		t.Error("a command wrote to the system")
	}
	if data, err := os.ReadFile(filepath.Join(w.dir, ".git", "config")); err != nil || string(data) != "[core]\n" {
		t.Errorf(".git/config: %q, %v", data, err)
	}
}

// TestNoRepositoryIsMadeForThePerson holds that an agent can't make the repository
// in whose folder a person's git will run.
func TestNoRepositoryIsMadeForThePerson(t *testing.T) {
	require.Path(t, "bwrap")
	w := newWorld(t,
		bash("init", "mkdir -p .git/hooks; cp /bin/true .git/hooks/pre-commit; git init -q . ; ls -A .git"),
		modeltest.Turn{Calls: []modeltest.Call{{ID: "file", Name: "write", Args: `{"path":".git","content":"gitdir: evil\n"}`}, {ID: "head", Name: "write", Args: `{"path":".git/HEAD","content":"x"}`}}},
		modeltest.Turn{Text: "done"})
	w.opts.MinTier, w.opts.Mode = "process", "bypass"
	r := w.run(t.Context())
	if r.code != 0 {
		t.Fatalf("exit %d: %s", r.code, r.err)
	}
	for _, id := range []string{"file", "head"} {
		if got := outcome(w.events(r), id); !strings.Contains(got, "protected from writing") {
			t.Errorf("%s: %s", id, got)
		}
	}
	if entries, err := os.ReadDir(filepath.Join(w.dir, ".git")); err == nil {
		t.Errorf(".git was made: %v", entries)
	}
}

// TestWorkTreesKeepTheirGit holds a .git that is a file.
func TestWorkTreesKeepTheirGit(t *testing.T) {
	require.Path(t, "bwrap")
	w := newWorld(t, bash("swap", "mv .git x; echo gitdir: evil > y; cp y .git"), modeltest.Turn{Text: "done"})
	w.opts.MinTier, w.opts.Mode = "process", "bypass"
	w.write(".git", "gitdir: /elsewhere\n")
	if got := outcome(w.events(w.run(t.Context())), "swap"); !strings.Contains(got, "cannot move") {
		t.Errorf("the command said %q", got)
	}
	if data, err := os.ReadFile(filepath.Join(w.dir, ".git")); err != nil || string(data) != "gitdir: /elsewhere\n" {
		t.Errorf(".git is %q, %v", data, err)
	}
}

// TestSearchesLeaveOutWhatIsDenied holds that no tool shows a file that deny rules
// of read forbid.
func TestSearchesLeaveOutWhatIsDenied(t *testing.T) {
	w := newWorld(t,
		modeltest.Turn{Calls: []modeltest.Call{
			{ID: "grep", Name: "grep", Args: `{"pattern":"SECRET"}`}, {ID: "direct", Name: "grep", Args: `{"pattern":"SECRET","path":"conf/secret.txt"}`},
			{ID: "glob", Name: "glob", Args: `{"pattern":"**/*.txt"}`}, {ID: "read", Name: "read", Args: `{"path":"conf/secret.txt"}`},
			{ID: "list", Name: "read", Args: `{"path":"conf"}`},
		}}, modeltest.Turn{Text: "done"})
	w.opts.Deny = []string{"read(**/secret.txt)"}
	w.write("conf/secret.txt", "SECRET\n")
	w.write("conf/open.txt", "open\n")
	r := w.run(t.Context())
	events := w.events(r)
	for _, id := range []string{"grep", "direct", "read"} {
		if got := outcome(events, id); strings.Contains(got, "SECRET\n") {
			t.Errorf("%s shows %q", id, got)
		}
	}
	if got := outcome(events, "glob"); strings.Contains(got, "secret.txt") || !strings.Contains(got, "open.txt") {
		t.Errorf("glob shows %q", got)
	}
}

// TestNoSandboxNoStart hides bubblewrap from the program.
func TestNoSandboxNoStart(t *testing.T) {
	w := newWorld(t, modeltest.Turn{Text: "never"})
	w.opts.MinTier = ""
	t.Setenv("PATH", t.TempDir())
	r := w.run(t.Context())
	if r.code != 2 || !strings.Contains(r.err, "bwrap is not in PATH") || !strings.Contains(r.err, "--min-tier") {
		t.Errorf("exit %d: %s", r.code, r.err)
	}
	if len(w.server.Requests()) != 0 {
		t.Error("the model was asked")
	}
}

// TestSandboxedExtension runs a guard that tries to write where it may not.
func TestSandboxedExtension(t *testing.T) {
	require.Path(t, "bwrap")
	w := newWorld(t, call("write", `{"path":"x","content":""}`), modeltest.Turn{Text: "done"})
	dir := filepath.Join(w.home, "guard")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	script := `while IFS= read -r r; do case $r in
*'"tool_call"'*) touch inside; touch ` + w.dir + `/outside; echo '{"block":true,"reason":"confined"}' ;;
*) echo '{}' ;; esac; done`
	if err := os.WriteFile(filepath.Join(dir, "guard.sh"), []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	w.settings(`{"permissions":{"mode":"accept-edits"},"extensions":[{"name":"guard","command":"sh","args":["guard.sh"],"cwd":` + fmt.Sprintf("%q", dir) + `,"sandbox":true}]}`)
	w.opts.MinTier = "process"
	r := w.run(t.Context())
	if !strings.Contains(r.err, "VETOED by extension guard: confined") {
		t.Errorf("exit %d: %s", r.code, r.err)
	}
	if _, err := os.Stat(filepath.Join(dir, "inside")); err != nil {
		t.Errorf("the extension can't write in its own folder: %v", err)
	}
	if _, err := os.Stat(filepath.Join(w.dir, "outside")); err == nil {
		t.Error("the extension wrote outside its folder")
	}
}

// settings writes the user's settings file.
func (w *world) settings(text string) {
	w.t.Helper()
	file := filepath.Join(w.home, "config.json")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	w.opts.ConfigFile = file
}
