package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/abhed/abhed/internal/app"
	"github.com/abhed/abhed/internal/model/modeltest"
	"github.com/abhed/abhed/internal/require"
)

// shell runs lines of a page as they stand there; abhed is the command under test.
func (s *stage) shell(lines string, environ ...string) (out string, code int) {
	s.t.Helper()
	bin := s.t.TempDir()
	if err := os.Symlink(self(s.t), filepath.Join(bin, "abhed")); err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), patient)
	defer cancel()
	cmd := exec.CommandContext(ctx, require.Path(s.t, "sh"), "-eu")
	cmd.Stdin = strings.NewReader(lines)
	cmd.Env = append(s.command().Env, append(environ, "PATH="+bin+":"+os.Getenv("PATH"))...)
	cmd.Dir = s.dir
	b, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		s.t.Fatalf("%v\n%s", err, b)
	}
	return string(b), cmd.ProcessState.ExitCode()
}

// TestReadmeFirstRun runs the README's first runs and what it says to do afterwards,
// against a server that is asked in the provider's place.
func TestReadmeFirstRun(t *testing.T) {
	t.Parallel()
	readme := page(t, "README.md")
	s := newStage(t,
		asked("a", "write", `{"path":"fixed","content":"x"}`), modeltest.Turn{Text: "it is fixed"}, modeltest.Turn{Text: "the linter too"},
		modeltest.Turn{Text: "it says hello"}, modeltest.Turn{Text: "gone on"}, modeltest.Turn{Text: "otherwise"})
	s.settings(`{"sandbox":{"min_tier":"none"},"custom_providers":[{"name":"here","api":"anthropic","base_url":%q,"api_key_env":"ANTHROPIC_API_KEY"}]}`, s.server.URL)
	first := strings.NewReplacer("anthropic/", "here/", "…", "a-key-of-a-test").Replace(block(t, readme, "", "ANTHROPIC_API_KEY"))
	var runs []string
	for line := range strings.Lines(first) {
		if strings.HasPrefix(line, "abhed doctor") {
			s.doctor(line)
			continue
		}
		runs = append(runs, line)
	}
	out, code := s.shell(strings.Join(runs, ""))
	if code != 0 || !strings.Contains(out, "it is fixed") || !strings.Contains(out, "the linter too") || !exists(s.in("fixed")) {
		t.Fatalf("exit %d\n%s", code, out)
	}
	if n := len(s.said(2)); n < 5 {
		t.Errorf("--continue sent %d messages", n)
	}
	own := strings.ReplaceAll(block(t, readme, "", "ABHED_BASE_URL"), "http://localhost:11434/v1", s.server.URL)
	if out, code = s.shell(own); code != 0 || !strings.Contains(out, "it says hello") {
		t.Fatalf("exit %d\n%s", code, out)
	}
	out, _ = s.shell("abhed sessions")
	id, _, _ := strings.Cut(out, " ")
	later := strings.ReplaceAll(block(t, readme, "", "abhed sessions"), " ID", " "+id[:len(id)-4])
	out, code = s.shell(later)
	for _, want := range []string{id, "gone on", "otherwise", "verified", "forced push"} {
		if !strings.Contains(out, want) {
			t.Errorf("nothing says %q", want)
		}
	}
	if code != 0 || t.Failed() {
		t.Errorf("exit %d\n%s", code, out)
	}
	if html, err := os.ReadFile(s.in("session.html")); err != nil || !strings.Contains(string(html), "<html") {
		t.Errorf("the export: %v %.100s", err, html)
	}
}

// doctor runs the README's line with a server of its own, which answers the doctor's
// questions in some way.
func (s *stage) doctor(line string) {
	s.t.Helper()
	d := newStage(s.t, slices.Repeat([]modeltest.Turn{{Text: "ok"}}, 20)...)
	d.settings(`{"sandbox":{"min_tier":"none"},"custom_providers":[{"name":"here","api":"anthropic","base_url":%q,"api_key_env":"ANTHROPIC_API_KEY"}]}`, d.server.URL)
	out, code := d.shell(line, "ANTHROPIC_API_KEY=a-key-of-a-test")
	if code > 1 || !strings.Contains(out, "ok    settings") || !strings.Contains(out, "here/claude-sonnet-4-5") {
		s.t.Errorf("exit %d\n%s", code, out)
	}
}

// TestReadmeExtension runs the README's guard with its line of "ext test".
func TestReadmeExtension(t *testing.T) {
	t.Parallel()
	readme := page(t, "README.md")
	s := newStage(t)
	guard := s.in("guard.sh")
	write(t, guard, block(t, readme, "sh", "guard.sh"))
	s.settings("%s", strings.Replace(block(t, readme, "json", `"extensions"`), "/opt/abhed/guard.sh", guard, 1))
	line := regexp.MustCompile("`(abhed ext test [^`]*)`").FindStringSubmatch(readme)
	if line == nil {
		t.Fatal("the README has no line of ext test")
	}
	out, code := s.shell(line[1] + " --min-tier none")
	if code != 0 || !strings.Contains(out, `← {"block":true,"reason":"a person pushes"}`) {
		t.Errorf("exit %d\n%s", code, out)
	}
}

// TestReadmeRPC runs the README's client of rpc.
func TestReadmeRPC(t *testing.T) {
	t.Parallel()
	require.Path(t, "python3")
	s := newStage(t, asked("c1", "write", `{"path":"fixed","content":"x"}`), modeltest.Turn{Text: "it is fixed"})
	s.settings(`{"sandbox":{"min_tier":"none"}}`)
	s.put(s.in("client.py"), block(t, page(t, "README.md"), "python", "rpc"))
	out, code := s.shell("python3 client.py")
	if code != 0 || !strings.Contains(out, "'type': 'answer'") || !strings.Contains(out, "it is fixed") || !exists(s.in("fixed")) {
		t.Errorf("exit %d\n%s", code, out)
	}
}

// TestReadmeEmbedding builds the README's lines into a program and runs it: the hook
// holds, and the answer comes.
func TestReadmeEmbedding(t *testing.T) {
	t.Parallel()
	s := newStage(t, asked("c1", "bash", `{"command":"touch ran"}`), modeltest.Turn{Expect: "this program runs no commands", Text: "it is fixed"})
	s.settings(`{"sandbox":{"min_tier":"none"},"permissions":{"allow":["bash(touch *)"]}}`)
	lines := block(t, page(t, "README.md"), "go", "abhed.New")
	s.put(s.in("main.go"), "package main\n\nimport (\n\"context\"\n\"fmt\"\n\n\"github.com/abhed/abhed\"\n)\n\nfunc run(ctx context.Context) error {\n"+lines+
		"fmt.Println(answer.Reason, answer.Text)\nreturn err\n}\n\nfunc main() {\nif err := run(context.Background()); err != nil {\npanic(err)\n}\n}\n")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", s.in("program"), s.in("main.go"))
	build.Dir = require.Root(t)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("the README's lines don't build: %v\n%s", err, out)
	}
	out, code := s.shell("./program")
	if code != 0 || out != "completed it is fixed\n" || exists(s.in("ran")) {
		t.Errorf("exit %d\n%s", code, out)
	}
}

// TestGuideRuns runs the guide's examples of a run, and that of an answer of a given form.
func TestGuideRuns(t *testing.T) {
	t.Parallel()
	guide := page(t, "docs/guide.md")
	misfit := modeltest.Turn{Text: `{"licence":"MIT"}`}
	s := newStage(t, modeltest.Turn{Text: "it is fixed"}, modeltest.Turn{Text: "the docs too"}, modeltest.Turn{Text: "it greets"},
		misfit, modeltest.Turn{Expect: "doesn't fit the JSON Schema", Text: `{"name":"MIT"}`}, misfit, misfit, misfit)
	s.settings(`{"sandbox":{"min_tier":"none"}}`)
	s.put(s.in("question.txt"), "what does it do?")
	out, code := s.shell(block(t, guide, "", "question.txt"))
	if code != 0 || !strings.Contains(out, "it is fixed") || !strings.Contains(out, "the docs too") || !strings.HasSuffix(out, "it greets\n") {
		t.Errorf("exit %d\n%s", code, out)
	}
	if said := s.said(2); len(said) != 1 || !strings.Contains(said[0], "what does it do?") {
		t.Errorf("the prompt of standard input arrived as %q", said)
	}
	schema := regexp.MustCompile("`(\\{\"type\": \"object\"[^`]*)`").FindStringSubmatch(guide)
	if schema == nil {
		t.Fatal("the guide has no schema of an answer")
	}
	s.put(s.in("licence.json"), schema[1])
	line, _, _ := strings.Cut(block(t, guide, "", "--json-schema"), "|")
	if out, code = s.shell(line); code != 0 || out != "{\"name\":\"MIT\"}\n" {
		t.Errorf("exit %d\n%s", code, out)
	}
	if out, code = s.shell(line); code != 1 || !strings.Contains(out, "3 answers in a row") {
		t.Errorf("answers that don't fit: exit %d\n%s", code, out)
	}
}

// tableOf returns what the first column of a table of a page sets as code, and the
// second column as it is.
func tableOf(t *testing.T, text, header string) map[string]string {
	t.Helper()
	_, body, found := strings.Cut(text, "\n"+header+"\n")
	if !found {
		t.Fatalf("no table with the header %s", header)
	}
	out := map[string]string{}
	for line := range strings.Lines(body) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) < 4 {
			break
		}
		for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[1], -1) {
			out[m[1]] = strings.TrimSpace(cells[2])
		}
	}
	return out
}

// TestGuideNamesCommandsAndFlags holds the guide's tables of commands, flags and exit
// codes against the command.
func TestGuideNamesCommandsAndFlags(t *testing.T) {
	guide, root := page(t, "docs/guide.md"), newRoot(app.System{Version: "1"})
	commands := tableOf(t, guide, "| command | what it does |")
	var walk func(c *cobra.Command)
	seen := map[string]bool{}
	walk = func(c *cobra.Command) {
		if c.Hidden {
			return
		}
		if c.Runnable() && !c.HasSubCommands() {
			name := c.CommandPath()
			seen[name] = true
			if _, there := commands[name]; !there {
				t.Errorf("the guide has no %q", name)
			}
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(root)
	for name := range commands {
		if name != "abhed -p" && !seen[name] {
			t.Errorf("the guide has %q, which there is not", name)
		}
	}
	page := tableOf(t, guide, "| flag | meaning |")
	for _, name := range flagsOf(root) {
		if _, there := page[name]; !there {
			t.Errorf("the guide has no flag %s", name)
		}
		delete(page, name)
	}
	for name := range page {
		t.Errorf("the guide has the flag %s, which there is not", name)
	}
	codes := tableOf(t, guide, "| code | a run ended |")
	for _, m := range regexp.MustCompile(`(?:^|, |\n)(\d+) `).FindAllStringSubmatch(root.Long[strings.Index(root.Long, "Exit codes:")+len("Exit codes:"):], -1) {
		if _, there := codes[m[1]]; !there {
			t.Errorf("the guide has no exit code %s", m[1])
		}
	}
}

// flagsOf lists the flags of a command as they are written.
func flagsOf(c *cobra.Command) []string {
	var out []string
	c.InitDefaultHelpFlag()
	c.InitDefaultVersionFlag()
	for line := range strings.Lines(c.LocalFlags().FlagUsages()) {
		if m := regexp.MustCompile(`--[a-z-]+`).FindString(line); m != "" {
			out = append(out, m)
		}
	}
	return out
}

// TestPagesOnExtensions runs the examples of docs/extensions.md through "ext test".
func TestPagesOnExtensions(t *testing.T) {
	t.Parallel()
	require.Path(t, "python3")
	text := page(t, "docs/extensions.md")
	s := newStage(t)
	s.put(s.in("abhed_ext.py"), page(t, "examples/extensions/abhed_ext.py"))
	s.put(s.in("team.py"), block(t, text, "python", "abhed_ext"))
	settings := strings.ReplaceAll(block(t, text, "json", "team.py"), "/opt/abhed/", s.dir+"/")
	s.settings("%s", strings.Replace(settings, "{", `{"sandbox":{"min_tier":"none"},`, 1))
	out, code := s.shell(block(t, text, "", "abhed ext test team"))
	if code != 0 {
		t.Errorf("exit %d\n%s", code, out)
	}
	for _, want := range []string{
		`← {"system": "Tickets are looked up with the tool owner_of."}`, `← {"block": true, "reason": "the release is on hold"}`,
		`← {"result": "sample belongs to the platform team"}`, "team: nothing is wrong", "tools       owner_of", "when it fails: block",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("nothing says %s\n%s", want, out)
		}
	}
}
