package extension_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/extension"
	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/require"
)

// languages returns, for each language, what makes the configuration of its example.
func languages() map[string]func(testing.TB) extension.Config {
	script := func(program, file string) func(testing.TB) extension.Config {
		return func(t testing.TB) extension.Config {
			if program == "bash" {
				require.Path(t, "jq")
			}
			return extension.Config{
				Command: require.Path(t, program), Args: []string{filepath.Join(examplesDir(t), file)},
				Env: []string{"PYTHONDONTWRITEBYTECODE=1"},
			}
		}
	}
	return map[string]func(testing.TB) extension.Config{
		"bash": script("bash", "example.bash"), "python": script("python3", "example.py"), "node": script("node", "example.mjs"),
		"go": func(t testing.TB) extension.Config {
			out := filepath.Join(t.TempDir(), "goextension")
			cmd := exec.Command("go", "build", "-o", out, ".")
			cmd.Dir = filepath.Join(examplesDir(t), "goextension")
			cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
			if b, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, b)
			}
			return extension.Config{Command: out}
		},
	}
}

func examplesDir(t testing.TB) string {
	return filepath.Join(require.Root(t), "examples", "extensions")
}

// TestLanguages runs the example of each language against the host: all do the same.
func TestLanguages(t *testing.T) {
	t.Parallel()
	for name, configure := range languages() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := configure(t)
			cfg.Name, cfg.OnFailure, cfg.Timeout = name, extension.Block, 30*time.Second
			rec := &record{}
			h := start(t, rec, cfg)
			judges(t, h)
			moments(t, h)
			tools(t, h)
			staysInStep(t, h)
			h.TurnEnd(context.Background(), main1(), "answer")
			h.SessionEnd(context.Background(), "completed")
			if l := rec.lines(name, "log"); !slices.Contains(l, "a turn has ended") {
				t.Errorf("log %q", l)
			}
			h.Close()
			if w := rec.lines(name, "warning"); len(w) > 0 {
				t.Errorf("warnings %q", w)
			}
			if d := rec.changes(name, "dead"); len(d) > 0 {
				t.Errorf("dead: %+v", d)
			}
			if e := rec.changes(name, "ended"); len(e) != 1 || e[0].Cause != "exit code 0" {
				t.Errorf("ended %+v", e)
			}
			rep := try(t, cfg, extension.TestOptions{Args: []byte(`{"command":"curl http://a http://b","n":1.50}`)})
			if len(rep.Findings) > 0 {
				t.Errorf("findings %+v", rep.Findings)
			}
			if n := len(rep.Exchanges); n != len(sessionOrder())+2 { // the call and the result are rewritten
				t.Errorf("%d exchanges: %v", n, eventsOf(rep))
			}
		})
	}
}

// judges checks calls and results.
func judges(t *testing.T, h *extension.Host) {
	t.Helper()
	for _, tt := range []struct{ tool, args, objection, rewritten string }{
		{"bash", `{"command":"ls","description":"not rm -rf"}`, "none", ""},
		{"bash", `{}`, "none", ""},
		{"write", `{"command":"rm -rf x","content":"git push","path":"a"}`, "none", ""},
		{"bash", `{"command":"rm -rf x","event":"invoke_tool"}`, "deny", ""},
		{"bash", `{"command":"git push origin \"ä\\n\u2028\""}`, "ask", ""},
		{"bash", `{"command":"curl 'http://a'\n","event":["x"]}`, "none", `{"command":"curl 'https://a'\n","event":["x"]}`},
	} {
		a := one(t, h, tt.tool, tt.args)
		if a.Objection.String() != tt.objection || string(a.Args) != tt.rewritten || a.Asked.Failure != "" {
			t.Errorf("%s %s: %s, arguments %s, asked %+v", tt.tool, tt.args, a.Objection, a.Args, a.Asked)
		}
		if want := map[string]string{"deny": "rm -rf isn't run here; name what is to go", "ask": "it publishes"}[tt.objection]; a.Objection.Reason() != want {
			t.Errorf("%s: reason %q", tt.args, a.Objection.Reason())
		}
	}
	key := "AKIA" + strings.Repeat("Q", 16)
	for in, want := range map[string]string{
		"a " + key + "\n\"b\" ü \u2028\n\n": "a [redacted]\n\"b\" ü \u2028\n\n", "": "", "nothing\n": "nothing\n", key: "[redacted]",
	} {
		got := h.ToolResult(context.Background(), call(t, "bash", `{}`), policy.Declaration{}, in, true)
		if got.Content != want || !got.IsError || got.Withheld || (len(got.RewrittenBy) > 0) != (in != want) {
			t.Errorf("result %q: %+v", in, got)
		}
	}
}

// moments checks what is no call.
func moments(t *testing.T, h *extension.Host) {
	t.Helper()
	ctx, at := context.Background(), main1()
	if got := h.PromptSubmit(ctx, at, "my key is AKIA"); !got.Refused || got.Reason != "the message holds an access key; take it out and send it again" {
		t.Errorf("a prompt with a key: %+v", got)
	}
	if got := h.PromptSubmit(ctx, at, "fix it"); got.Refused {
		t.Errorf("a prompt: %+v", got)
	}
	if got := h.AgentStart(ctx, at, "You are."); got.System("You are.") != "You are.\n\nRun the tests before you say that you are done." {
		t.Errorf("system: %+v", got)
	}
	if got := h.Context(ctx, at, history()); got.Keep != nil || got.Refused {
		t.Errorf("a conversation: %+v", got)
	}
	secret := history()
	secret[3] = &event.Message{Role: event.RoleTool, Parts: []event.Part{{ToolResult: &event.ToolResult{CallID: "c2", Name: "bash", Content: "-----BEGIN PRIVATE KEY-----\n"}}}}
	if got := h.Context(ctx, at, secret); !slices.Equal(indices(got.Keep, 6), []int{0, 4, 5}) || got.Refused {
		t.Errorf("a conversation with a key: %+v", got)
	}
	if got := h.BeforeCompact(ctx, at, history()); got.Cancel || got.Summary == nil || *got.Summary != "What the person asked for:\n- begin\n- go on" {
		t.Errorf("compaction: %+v", got)
	}
	if got := h.BeforeCompact(ctx, at, append(history(), &event.Message{Role: event.RoleUser, Parts: []event.Part{event.TextPart("keep the history")}})); !got.Cancel {
		t.Errorf("compaction: %+v", got)
	}
}

// tools checks the tool, its error, and that it has a process of its own.
func tools(t *testing.T, h *extension.Host) {
	t.Helper()
	list := h.Tools()
	if len(list) != 1 || list[0].Spec().Description != "Count the words of a text" {
		t.Fatalf("tools %+v", list)
	}
	if d := list[0].Declare([]byte(`{"text":"a"}`)); d.Mutates || d.Subject != "a" {
		t.Errorf("declared %+v", d)
	}
	if got := invoke(t, context.Background(), h, "word_count", `{"text":" one two\nthrée "}`); got.Content != "3" || got.IsError {
		t.Errorf("result %+v", got)
	}
	if got := invoke(t, context.Background(), h, "word_count", `{"text":""}`); !strings.Contains(got.Content, "there is no text to count in") || !got.IsError {
		t.Errorf("an error: %+v", got)
	}
	if s := h.States()[0]; s.ToolPid == 0 || s.Pid == s.ToolPid {
		t.Errorf("state %+v", s)
	}
}

// staysInStep asks and turns away at once, again and again: whatever comes late
// answers nothing else.
func staysInStep(t *testing.T, h *extension.Host) {
	t.Helper()
	for i := range 10 {
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(i)*200*time.Microsecond)
		h.PolicyHook(ctx, extension.ToolCall{Call: call(t, "bash", `{"command":"rm -rf x"}`)})
		cancel()
		if a := one(t, h, "bash", `{"command":"ls"}`); a.Objection.Denies() || a.Asked.Failure != "" {
			t.Fatalf("after an interrupted question: %+v", a)
		}
	}
	if s := h.States()[0]; s.State != extension.StateStarted {
		t.Errorf("state %+v", s)
	}
}

// careless are extensions whose handlers print, start a program that reads standard
// input and prints, and fail at a result.
func careless(dir string) map[string]string {
	return map[string]string{
		"bash": fmt.Sprintf(`source %q/extension.bash
on_tool_call() { echo "by accident"; cat; printf '{}\n'; block seen; }
on_tool_result() { die "I can't go on"; }
extension_run
`, dir),
		"python3": fmt.Sprintf(`import sys, subprocess
sys.path.insert(0, %q)
sys.dont_write_bytecode = True
from abhed_ext import Extension
ext = Extension()
@ext.on("tool_call")
def call(request):
    print("by accident")
    subprocess.run(["sh", "-c", "cat; echo {}"], check=True)
    return {"block": True, "reason": "seen"}
@ext.on("tool_result")
def result(request):
    raise RuntimeError("I can't go on")
ext.run()
`, dir),
		"node": fmt.Sprintf(`import { Extension } from %q;
import { execFileSync } from "node:child_process";
const ext = new Extension();
ext.on("tool_call", () => {
  console.log("by accident");
  console.log(execFileSync("sh", ["-c", "cat; echo {}"], { encoding: "utf8" }));
  return { block: true, reason: "seen" };
});
ext.on("tool_result", async () => { throw new Error("I can't go on"); });
await ext.run();
`, filepath.Join(dir, "abhed_ext.mjs")),
	}
}

func TestCarelessHandlers(t *testing.T) {
	t.Parallel()
	for program, text := range careless(examplesDir(t)) {
		t.Run(program, func(t *testing.T) {
			t.Parallel()
			require.Path(t, "jq")
			file := filepath.Join(t.TempDir(), "careless.mjs")
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			rec := &record{}
			h := start(t, rec, extension.Config{
				Name: "a", Command: require.Path(t, program), Args: []string{file}, Timeout: 30 * time.Second, OnFailure: extension.Block,
			})
			for range 3 {
				if a := one(t, h, "bash", `{}`); a.Objection.Reason() != "seen" || a.Asked.Failure != "" {
					t.Fatalf("got %+v", a)
				}
			}
			got := h.ToolResult(context.Background(), call(t, "bash", `{}`), policy.Declaration{}, "out", false)
			if !got.Withheld {
				t.Errorf("a handler failed, and the result is %+v", got)
			}
			d := rec.changes("a", "dead")
			if len(d) != 1 || !strings.Contains(d[0].Stderr, "I can't go on") || !strings.HasPrefix(d[0].Cause, "exit: the process ended") {
				t.Errorf("dead: %+v", d)
			}
			accidents := 0
			for _, l := range rec.lines("a", "log") {
				if l == "by accident" {
					accidents++
				}
			}
			if accidents != 3 {
				t.Errorf("log %q", rec.lines("a", "log"))
			}
		})
	}
}

// TestBashTakesLargeTexts: more than an argument of a program may have.
func TestBashTakesLargeTexts(t *testing.T) {
	t.Parallel()
	require.Path(t, "jq")
	file := filepath.Join(t.TempDir(), "large.bash")
	text := fmt.Sprintf(`source %q/extension.bash
on_tool_call() { replace_args "$(field '.args | .command += "y" | tojson')"; log_line "$(field .args.command)"; }
on_tool_result() { result "$(field .content)y"; }
extension_run
`, examplesDir(t))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	rec := &record{}
	h := start(t, rec, extension.Config{Name: "a", Command: require.Path(t, "bash"), Args: []string{file}, Timeout: 30 * time.Second})
	large := strings.Repeat("x", 300<<10)
	if a := one(t, h, "bash", `{"command":"`+large+`"}`); string(a.Args) != `{"command":"`+large+`y"}` {
		t.Errorf("arguments of %d bytes, asked %+v", len(a.Args), a.Asked)
	}
	if l := rec.lines("a", "log"); len(l) != 1 || !strings.HasPrefix(l[0], "xxx") {
		t.Errorf("%d lines in the log", len(l))
	}
	if got := h.ToolResult(context.Background(), call(t, "bash", `{}`), policy.Declaration{}, large, false); got.Content != large+"y" {
		t.Errorf("a result of %d bytes, asked %+v", len(got.Content), got.Asked)
	}
}

// TestMisspeltHandlers: a handler that would never be called ends the extension at
// its start.
func TestMisspeltHandlers(t *testing.T) {
	t.Parallel()
	dir := examplesDir(t)
	for program, text := range map[string]string{
		"bash":    fmt.Sprintf("source %q/extension.bash\non_tool_cal() { block; }\nextension_run\n", dir),
		"python3": fmt.Sprintf("import sys\nsys.path.insert(0, %q)\nsys.dont_write_bytecode = True\nfrom abhed_ext import Extension\nExtension().on('tool_cal')\n", dir),
		"node":    fmt.Sprintf("import { Extension } from %q;\nnew Extension().on('tool_cal', () => ({}));\n", filepath.Join(dir, "abhed_ext.mjs")),
	} {
		t.Run(program, func(t *testing.T) {
			t.Parallel()
			require.Path(t, "jq")
			file := filepath.Join(t.TempDir(), "misspelt.mjs")
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			rec := &record{}
			start(t, rec, extension.Config{Name: "a", Command: require.Path(t, program), Args: []string{file}, Timeout: 30 * time.Second})
			d := rec.changes("a", "dead")
			if len(d) != 1 || !strings.Contains(d[0].Stderr, "there is no event") || !strings.Contains(d[0].Stderr, "tool_cal") {
				t.Errorf("dead: %+v", d)
			}
		})
	}
}

// TestExamplesAreDescribed: the page names every file of the folder.
func TestExamplesAreDescribed(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(examplesDir(t), "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(examplesDir(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !strings.Contains(string(page), "`"+f.Name()+"`") && f.Name() != "README.md" {
			t.Errorf("README.md doesn't name %s", f.Name())
		}
	}
}

// TestFoundingScriptsPassTheTrial: the scripts of the founding document and the
// guard have nothing that Test could find.
func TestFoundingScriptsPassTheTrial(t *testing.T) {
	t.Parallel()
	require.Path(t, "jq")
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "fetch-ticket"), []byte("#!/bin/sh\necho \"ticket $1\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for script, twice := range map[string]string{"block-secrets.sh": "", "redact.sh": "tool_result", "ticket.sh": "", "guard.sh": ""} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			cfg := example(t, "bash", script, dir)
			cfg.Timeout = 30 * time.Second
			rep := try(t, cfg, extension.TestOptions{})
			if len(rep.Findings) > 0 {
				t.Errorf("findings %+v", rep.Findings)
			}
			want := sessionOrder()
			if i := slices.Index(want, twice); i >= 0 {
				want = slices.Insert(want, i, twice)
			}
			if d := cmp.Diff(want, eventsOf(rep)); d != "" {
				t.Errorf("events (-want +got):\n%s", d)
			}
		})
	}
}
