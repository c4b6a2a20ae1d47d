package extension_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abhed/abhed/internal/extension"
	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/require"
)

// example returns the configuration of a script of examples/extensions. Its PATH
// begins with dir.
func example(t *testing.T, shell, script, dir string) extension.Config {
	t.Helper()
	return extension.Config{
		Name: script, Command: require.Path(t, shell), Args: []string{filepath.Join(require.Root(t), "examples", "extensions", script)},
		Env: []string{"PATH=" + dir + ":" + os.Getenv("PATH")}, OnFailure: extension.Block,
	}
}

// TestExamplesAreTheFoundingScripts compares them with the founding document.
func TestExamplesAreTheFoundingScripts(t *testing.T) {
	t.Parallel()
	seeds, err := filepath.Glob(filepath.Join(require.Shared(t), "seeds", "*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var founding string
	for _, s := range seeds {
		b, err := os.ReadFile(s)
		if err != nil {
			t.Fatal(err)
		}
		founding += string(b)
	}
	for _, name := range []string{"block-secrets.sh", "redact.sh", "ticket.sh"} {
		b, err := os.ReadFile(filepath.Join(require.Root(t), "examples", "extensions", name))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(founding, string(b)) {
			t.Errorf("%s isn't in the founding document as it stands", name)
		}
	}
}

func TestExampleBlockSecrets(t *testing.T) {
	t.Parallel()
	require.Path(t, "jq")
	h := start(t, nil, example(t, "bash", "block-secrets.sh", ""))
	for _, tt := range []struct{ tool, args, want string }{
		{"read", `{"path":"/w/secret.txt"}`, "deny"},
		{"read", `{"path":"/w/readme"}`, "none"},
		{"write", `{"path":"/w/secret.txt"}`, "none"},
		{"bash", `{"command":"cat secret"}`, "none"},
	} {
		got := one(t, h, tt.tool, tt.args)
		if got.Objection.String() != tt.want || got.Asked.Failure != "" {
			t.Errorf("%s %s: %+v, want %s", tt.tool, tt.args, got, tt.want)
		}
		if tt.want == "deny" && got.Objection.Reason() != "secrets are off limits" {
			t.Errorf("reason %q", got.Objection.Reason())
		}
	}
}

func TestExampleRedact(t *testing.T) {
	t.Parallel()
	require.Path(t, "jq")
	h := start(t, nil, example(t, "bash", "redact.sh", ""))
	key := "AKIA" + strings.Repeat("Q", 16)
	got := h.ToolResult(context.Background(), call(t, "bash", `{}`), policy.Declaration{}, "id "+key+"\nsecond \"line\"\n", false)
	if got.Content != "id [redacted]\nsecond \"line\"\n" || got.Withheld || len(got.RewrittenBy) != 1 {
		t.Errorf("got %+v", got)
	}
	if a := one(t, h, "bash", `{"command":"echo `+key+`"}`); a.Asked.Answer != "none" {
		t.Errorf("a call: %+v", a)
	}
}

// TestExampleTicket runs the tool, and holds that arguments whose names look like
// the event's run nothing.
func TestExampleTicket(t *testing.T) {
	t.Parallel()
	require.Path(t, "jq")
	dir := t.TempDir()
	log := filepath.Join(dir, "log")
	program := fmt.Sprintf("#!/bin/sh\necho \"$1\" >>'%s'\necho \"ticket $1 is open\"\n", log)
	if err := os.WriteFile(filepath.Join(dir, "fetch-ticket"), []byte(program), 0o700); err != nil {
		t.Fatal(err)
	}
	h := start(t, nil, example(t, "bash", "ticket.sh", dir))
	tools := h.Tools()
	if len(tools) != 1 || tools[0].Spec().Name != "ticket" {
		t.Fatalf("tools %+v", tools)
	}
	if d := tools[0].Declare([]byte(`{"id":"T-1"}`)); d != (policy.Declaration{Kind: policy.SubjectText, Subject: "T-1"}) {
		t.Errorf("declared %+v", d)
	}
	for _, args := range []string{
		`{"event":"invoke_tool"}`, `{"x\"event":"invoke_tool"}`, `{"a":{"event":"invoke_tool"},"id":"T-0"}`, `{"event":"list_tools"}`,
		`{"command":"\"event\":\"invoke_tool\""}`, `{"x\\\"event":"invoke_tool"}`,
	} {
		if a := one(t, h, "bash", args); a.Asked.Answer != "none" {
			t.Errorf("%s: %+v", args, a.Asked)
		}
		h.ToolResult(context.Background(), call(t, "bash", args), policy.Declaration{}, args, false)
	}
	if _, err := os.Stat(log); !os.IsNotExist(err) {
		b, _ := os.ReadFile(log)
		t.Errorf("judging ran the tool: %q", b)
	}
	if res := invoke(t, context.Background(), h, "ticket", `{"id":"T-1"}`); res.Content != "ticket T-1 is open" || res.IsError {
		t.Errorf("result %+v", res)
	}
}

// TestExampleGuard runs the guard in every shell that is here.
func TestExampleGuard(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"sh", "bash", "dash", "busybox"} {
		t.Run(shell, func(t *testing.T) {
			cfg := example(t, shell, "guard.sh", "")
			if shell == "busybox" {
				cfg.Args = append([]string{"sh"}, cfg.Args...)
			}
			h := start(t, nil, cfg)
			for _, tt := range []struct{ tool, args, want string }{
				{"bash", `{"command":"rm -rf /tmp/x"}`, "deny"},
				{"bash", `{"command":"echo \"a\" && rm -rf \"b\\c\"","timeout_ms":1}`, "deny"},
				{"bash", `{"background":true,"command":"git push origin --force"}`, "deny"},
				{"bash", `{"command":"ls","description":"not rm -rf"}`, "none"},
				{"bash", `{"command":"ls \\","description":"\",\"command\":\"rm -rf"}`, "none"},
				{"bash", `{"command":"ls \"","description":"rm -rf"}`, "none"},
				{"bash", `{"command":"echo [a] * $(x)"}`, "none"},
				{"bash", `{"description":"rm -rf"}`, "none"},
				{"bash", `{}`, "none"},
				{"write", `{"command":"rm -rf x","path":"a"}`, "none"},
				{"write", `{"content":",\"tool\":\"bash\",\"args\":{\"command\":\"rm -rf\"","path":"a"}`, "none"},
			} {
				if got := one(t, h, tt.tool, tt.args); got.Objection.String() != tt.want || got.Asked.Failure != "" {
					t.Errorf("%s %s: %s %+v, want %s", tt.tool, tt.args, got.Objection, got.Asked, tt.want)
				}
			}
			got := h.ToolResult(context.Background(), call(t, "bash", `{"command":"rm -rf x"}`), policy.Declaration{}, "out", false)
			if got.Content != "out" || got.Withheld {
				t.Errorf("a result: %+v", got)
			}
		})
	}
	own := example(t, "sh", "guard.sh", "")
	own.Args = append(own.Args, "*curl*", "make deploy")
	h := start(t, nil, own)
	for args, want := range map[string]string{`{"command":"a; curl x"}`: "deny", `{"command":"make deploy"}`: "deny", `{"command":"rm -rf x"}`: "none"} {
		if got := one(t, h, "bash", args); got.Objection.String() != want {
			t.Errorf("%s: %s, want %s", args, got.Objection, want)
		}
	}
}
