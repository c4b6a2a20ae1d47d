package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/model/modeltest"
	"github.com/abhed/abhed/internal/require"
)

// TestRPCClients has the clients of examples/rpc drive a whole session.
func TestRPCClients(t *testing.T) {
	for program, script := range map[string]string{"python3": "session.py", "node": "session.mjs"} {
		t.Run(program, func(t *testing.T) {
			t.Parallel()
			interpreter := require.Path(t, program)
			s := newStage(t,
				asked("c1", "bash", `{"command":"while [ ! -e go ]; do sleep 0.05; done; echo gone"}`),
				modeltest.Turn{Text: "it is there \u2028 now"},
				modeltest.Turn{Text: strings.Repeat("hm ", 1000), Faults: []modeltest.Fault{modeltest.StallAt(4000)}},
				asked("c2", "bash", `{"command":"sleep 600","background":true}`),
				modeltest.Turn{Text: "it runs"},
				modeltest.Turn{Text: "the other one"},
				modeltest.Turn{Text: "gone on"},
				modeltest.Turn{Text: "what happened so far"},
			)
			s.settings(`{"custom_providers":[{"name":"other","api":"openai","base_url":%q}]}`, s.server.URL)
			service := s.command("rpc", "--min-tier", "none")
			ctx, cancel := context.WithTimeout(t.Context(), 2*patient)
			defer cancel()
			file := filepath.Join(require.Root(t), "examples/rpc/testdata", script)
			cmd := exec.CommandContext(ctx, interpreter, append([]string{file, s.dir}, service.Args...)...)
			cmd.Env = service.Env
			out, err := cmd.CombinedOutput()
			ids := strings.Fields(string(out))
			if err != nil || len(ids) != 3 || ids[0] != "ok" {
				t.Fatalf("%v\n%s", err, out)
			}
			for _, id := range ids[1:] {
				s.verified(id)
			}
			if n := len(s.server.Requests()); n != 8 {
				t.Errorf("the model was asked %d times", n)
			}
			if m := s.server.Requests()[5].Model; m != "large" {
				t.Errorf("after set_model the model %q was asked", m)
			}
			var comments []string
			for _, e := range s.recorded(ids[1]) {
				if a, is := e.Payload.(*event.Approval); is {
					comments = append(comments, a.By+": "+a.Reason)
				}
			}
			if !slices.Equal(comments, []string{"rpc client: go on", "rpc client: go on"}) {
				t.Errorf("approvals in the record: %q", comments)
			}
		})
	}
}

// TestRPCSnippet runs the smallest client, the founding document's snippet, as it is:
// the command is the abhed that the path has.
func TestRPCSnippet(t *testing.T) {
	t.Parallel()
	python := require.Path(t, "python3")
	file := filepath.Join(require.Root(t), "examples/rpc/snippet.py")
	text := page(t, "examples/rpc/snippet.py")
	for _, line := range []string{
		`p = subprocess.Popen(["abhed", "rpc"], stdin=PIPE, stdout=PIPE, text=True)`, `send(method="start", mode="auto")`,
		`send(method="prompt", prompt="fix the failing tests")`, `# every event the agent records arrives as {"type":"event", ...} while it works`,
	} {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("snippet.py lacks the line %s", line)
		}
	}
	s := newStage(t, asked("c1", "write", `{"path":"fixed","content":"x"}`), modeltest.Turn{Text: "fixed"})
	out, err := s.withAbhed(python, file).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	last := lines[len(lines)-1]
	if !strings.HasPrefix(last, "answer {") || !strings.Contains(last, "'answer': 'fixed'") || !slices.Contains(lines, "tool.ended") || !exists(s.in("fixed")) {
		t.Errorf("the snippet printed\n%s", out)
	}
}

// withAbhed returns a program in the workspace, in whose path abhed is.
func (s *stage) withAbhed(program string, args ...string) *exec.Cmd {
	s.t.Helper()
	bin := s.t.TempDir()
	if err := os.Symlink(self(s.t), filepath.Join(bin, "abhed")); err != nil {
		s.t.Fatal(err)
	}
	cmd := exec.CommandContext(s.t.Context(), program, args...)
	cmd.Env = append(s.command().Env, "PATH="+bin+":"+os.Getenv("PATH"))
	cmd.Dir = s.dir
	return cmd
}

// TestRPCClientPrograms runs the clients as programs: they ask on standard input, and
// print the answer.
func TestRPCClientPrograms(t *testing.T) {
	t.Parallel()
	for program, args := range map[string][]string{"python3": {"client.py", "--mode", "default", "work"}, "node": {"client.mjs", "default", "work"}} {
		t.Run(program, func(t *testing.T) {
			t.Parallel()
			interpreter := require.Path(t, program)
			for said, made := range map[string]bool{"y\n": true, "n\n": false} {
				s := newStage(t, touch("c1", "one"), modeltest.Turn{Text: "it is done"})
				cmd := s.withAbhed(interpreter, append([]string{filepath.Join(require.Root(t), "examples/rpc", args[0])}, args[1:]...)...)
				cmd.Stdin = strings.NewReader(said)
				var errs strings.Builder
				cmd.Stderr = &errs
				out, err := cmd.Output()
				if err != nil || !strings.HasSuffix(string(out), "it is done\n") || !strings.Contains(errs.String(), "touch one") || exists(s.in("one")) != made {
					t.Errorf("%s, %q: %v, made %v\n%s\n%s", args[0], said, err, exists(s.in("one")), out, errs.String())
				}
			}
		})
	}
}
