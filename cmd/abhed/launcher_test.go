package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/abhed/abhed/internal/model/modeltest"
	"github.com/abhed/abhed/internal/require"
)

// launched starts the command with an MCP server behind a shell that runs the script, and
// returns it with the processes below it, which no sandbox holds, once the model has begun to answer. The model
// goes on when release is called.
func launched(t *testing.T, turn modeltest.Turn, home, script string) (cmd *exec.Cmd, children []process, release func()) {
	t.Helper()
	sh, there, goOn := require.Path(t, "sh"), make(chan struct{}), make(chan struct{})
	release = sync.OnceFunc(func() { close(goOn) })
	turn.Before = func(i int) {
		if i == 0 {
			close(there)
			<-goOn
		}
	}
	server := modeltest.Start(modeltest.Options{Turns: []modeltest.Turn{turn}})
	t.Cleanup(func() { release(); server.Close() })
	settings := filepath.Join(home, "settings.json")
	text := fmt.Sprintf(`{"mcp":{"srv":{"command":%q,"args":["-c",%q,"sh",%q,%q]}}}`, sh, script, self(t), slowServer)
	if err := os.WriteFile(settings, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd = command(t, home, server.URL, "-p", "work", "-C", t.TempDir(), "--config", settings, "--mode", "bypass", "--min-tier", "none")
	cmd.Stderr = &bytes.Buffer{}
	bin := t.TempDir() // without bwrap, which would end all of it
	for _, program := range []string{"sh", "sleep"} {
		if err := os.Symlink(require.Path(t, program), filepath.Join(bin, program)); err != nil {
			t.Fatal(err)
		}
	}
	cmd.Env = append(cmd.Env, "PATH="+bin)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	<-there
	children = below(t, cmd.Process.Pid)
	for _, want := range []string{sh + " -c", self(t) + " " + slowServer} {
		if !slices.ContainsFunc(children, func(p process) bool { return strings.HasPrefix(p.command, want) }) {
			t.Errorf("no process %q among %+v", want, children)
		}
	}
	return cmd, children, release
}

// TestLaunchedServerEndsWithTheCommand has an MCP server behind a launcher (I185):
// whether the command ends by itself, by SIGTERM or by SIGKILL, neither the shell nor the
// server is left, nor what else the shell started, where the command could end it. The
// sibling case ends by SIGINT, in a call to the server.
func TestLaunchedServerEndsWithTheCommand(t *testing.T) {
	t.Parallel()
	call := modeltest.Turn{Calls: []modeltest.Call{{ID: "c", Name: "mcp__srv__wait", Args: "{}"}}}
	for name, how := range map[string]struct {
		turn   modeltest.Turn
		signal syscall.Signal // 0 for none
		code   int            // -1: killed
	}{
		"by itself": {modeltest.Turn{Text: "done"}, 0, 0}, "SIGTERM": {modeltest.Turn{}, syscall.SIGTERM, 143},
		"SIGKILL": {modeltest.Turn{}, syscall.SIGKILL, -1}, "SIGINT in a call": {call, syscall.SIGINT, 130},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			script := `"$@"; exit $?`
			if how.code >= 0 { // neither the end of its input nor SIGTERM ends the sleeper
				script = "(trap '' TERM; exec sleep " + mark() + `) & "$@"; wait`
			}
			cmd, children, release := launched(t, how.turn, home, script)
			if how.code >= 0 && !slices.ContainsFunc(children, func(p process) bool { return strings.HasPrefix(p.command, "sleep ") }) {
				t.Errorf("nothing sleeps among %+v", children)
			}
			if how.signal == 0 || how.turn.Calls != nil {
				release()
			}
			if how.turn.Calls != nil {
				within(t, "the call to start", func() bool {
					records, _ := filepath.Glob(filepath.Join(home, ".local/state/abhed/sessions/*/*.jsonl"))
					if len(records) != 1 {
						return false
					}
					data, err := os.ReadFile(records[0])
					return err == nil && bytes.Contains(data, []byte(`"tool.started"`))
				})
			}
			if how.signal != 0 {
				if err := cmd.Process.Signal(how.signal); err != nil {
					t.Fatal(err)
				}
			}
			_ = cmd.Wait() // its code is looked at
			if code := cmd.ProcessState.ExitCode(); code != how.code {
				t.Errorf("exit %d, want %d: %s", code, how.code, cmd.Stderr)
			}
			gone(t, children)
		})
	}
}
