//go:build unix

package policy

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/abhed/abhed/internal/require"
	"pgregory.net/rapid"
)

// TestRealBashFindsAnotherProgram runs command lines in a real bash whose
// workspace holds a program named "ls", and holds that whenever that one ran the
// line wasn't covered by allow rules for "ls" and the builtins.
func TestRealBashFindsAnotherProgram(t *testing.T) {
	bash := require.Path(t, "bash")
	w := newWorld(t)
	mark := filepath.Join(w.base, "ran")
	script := "#!" + bash + "\n: >> '" + mark + "'\n"
	// A number as a directory, because arithmetic can set nothing else.
	for _, p := range []string{"bin/ls", "1/ls", "5/ls", "ls"} {
		p = filepath.Join(w.root, p)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(w.root+"/x", []byte("PATH=5\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	lines := []string{"allow bash(ls*)"}
	for _, p := range []string{"echo", "read", "printf", "export", "declare", "set", "unset", "getopts", "mapfile", "let", "test", "[", "exec", "shopt", "local", "wait", ":", "true", "typeset", "readonly", "shift", "eval", "builtin", "command"} {
		lines = append(lines, "allow bash("+p+" *)", "allow bash("+p+")")
	}
	rs := rules(t, lines...)
	run := func(command string) bool {
		_ = os.Remove(mark)
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		cmd := exec.CommandContext(ctx, bash, "-c", command)
		cmd.Dir, cmd.WaitDelay = w.root, 200*time.Millisecond
		cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + w.home}
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
		_ = cmd.Run() // whether it succeeds doesn't matter, only what ran
		if cmd.Process != nil {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		}
		_, err := os.Stat(mark)
		return err == nil
	}
	hold := func(t interface{ Errorf(string, ...any) }, command string) bool {
		allowed := rs.Evaluate(w.bash(ModeDefault, command)).Verdict == Allow
		ran := run(command)
		if ran && allowed {
			t.Errorf("bash ran the workspace's program in %q, which was allowed", command)
		}
		return ran
	}
	ran := 0
	for _, list := range [...][]string{turnsOfPath, otherVariables} {
		for _, c := range list {
			if hold(t, c) {
				ran++
			}
		}
	}
	if ran < len(turnsOfPath)/3 {
		t.Errorf("only %d of %d lines ran the workspace's program", ran, len(turnsOfPath))
	}
	soup := []string{"PATH", "PATH", "PATH=", "=", "./bin", "5", "ls", "; ls", "\nls", " ", " ", "for ", " in ", "; do ", "; done", "((", "))", "$((", "${", "}", ":=", "read ", "printf -v ", "let ", "export ", "declare ", "unset ", "[[ ", " -eq ", " ]]", "a[", "]", "echo ", "'", "\"", "<<<", "x", "$x", "=x", "-i ", "-n ", "set -- ", "$1", "mapfile ", "-t ", "<x", "{", "getopts x ", "++", "?", ":", "exec ", "; ", "test -v ", "wait -p "}
	rapid.Check(t, func(rt *rapid.T) {
		c := strings.Join(rapid.SliceOfN(rapid.SampledFrom(soup), 2, 12).Draw(rt, "soup"), "") + "; ls"
		if rs.Evaluate(w.bash(ModeDefault, c)).Verdict == Allow {
			hold(rt, c)
		}
	})
}
