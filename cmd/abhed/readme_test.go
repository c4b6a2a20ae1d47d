package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/conformance"
	"github.com/abhed/abhed/internal/model/modeltest"
	"github.com/abhed/abhed/internal/require"
)

// block returns the first fenced block of a page that starts with a language and
// contains a text.
func block(t *testing.T, page, lang, contains string) string {
	t.Helper()
	var body *strings.Builder // nil outside of a block
	is := ""
	for line := range strings.Lines(page) {
		switch fence, found := strings.CutPrefix(line, "```"); {
		case !found && body != nil:
			body.WriteString(line)
		case found && body == nil:
			body, is = &strings.Builder{}, strings.TrimSpace(fence)
		case found:
			if is == lang && strings.Contains(body.String(), contains) {
				return body.String()
			}
			body = nil
		}
	}
	t.Fatalf("no %s block with %q", lang, contains)
	return ""
}

func page(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(require.Root(t), name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestReadmeDemo holds that the demo says what the README shows.
func TestReadmeDemo(t *testing.T) {
	// The demo starts itself as its backend, so it has to be the real command.
	program := filepath.Join(t.TempDir(), "abhed")
	build := exec.Command("go", "build", "-o", program, "./cmd/abhed")
	build.Dir = require.Root(t)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	demo := exec.Command(program, "demo")
	demo.Env = []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}
	out, err := demo.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	shown := block(t, page(t, "README.md"), "", "A scripted model works")
	skip := regexp.MustCompile(`A scripted model works|^ *…$|^record|^signed`)
	for line := range strings.Lines(shown) {
		line = strings.TrimRight(line, "\n")
		if line != "" && !skip.MatchString(line) && !strings.Contains(string(out), line) {
			t.Errorf("the demo doesn't print %q\n%s", line, out)
		}
	}
}

// TestReadmeGuardAndBackend runs the README's guard and its backend, as they stand
// there, in one session.
func TestReadmeGuardAndBackend(t *testing.T) {
	readme := page(t, "README.md")
	dir, home, ws := t.TempDir(), t.TempDir(), t.TempDir()
	guard := filepath.Join(dir, "guard.sh")
	write(t, guard, block(t, readme, "sh", "guard.sh"))
	settings := strings.Replace(block(t, readme, "json", `"extensions"`), "/opt/abhed/guard.sh", guard, 1)
	write(t, filepath.Join(dir, "config.json"), settings)
	write(t, filepath.Join(dir, "main.go"), block(t, readme, "go", "backend.Main"))
	freeze := filepath.Join(dir, "freeze")
	build := exec.Command("go", "build", "-o", freeze, filepath.Join(dir, "main.go"))
	build.Dir = require.Root(t)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("the README's backend doesn't build: %v\n%s", err, out)
	}
	report, err := conformance.Backend(t.Context(), conformance.Target{Command: []string{freeze}},
		conformance.Options{Sequence: 100, Timeout: 20 * time.Second, Grace: 20 * time.Second})
	if err != nil || !report.OK() {
		t.Errorf("the README's backend doesn't conform: %v %+v", err, report)
	}
	write(t, filepath.Join(dir, "registration.json"), strings.Replace(block(t, readme, "json", "protocolVersion"), "/opt/freeze", freeze, 1))
	server := modeltest.New(t,
		modeltest.Turn{Calls: []modeltest.Call{{ID: "a", Name: "bash", Args: `{"command":"git push"}`}}},
		modeltest.Turn{Expect: "a person pushes", Calls: []modeltest.Call{{ID: "b", Name: "write", Args: `{"path":"x","content":""}`}}},
		modeltest.Turn{Expect: "this tree is frozen", Text: "done"})
	cmd := command(t, home, server.URL, "-p", "go", "-C", ws, "--mode", "bypass", "--min-tier", "none",
		"--config", filepath.Join(dir, "config.json"), "--ahp", filepath.Join(dir, "registration.json"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// TestGuideExamples holds that the settings of the guide are settings.
func TestGuideExamples(t *testing.T) {
	guide := page(t, "docs/guide.md")
	dir, home := t.TempDir(), t.TempDir()
	for i, contains := range []string{"custom_providers", `"match"`} {
		file := filepath.Join(dir, "config.json")
		write(t, file, block(t, guide, "json", contains))
		cmd := command(t, home, "", "policy", "explain", "--config", file, "-C", dir, "--min-tier", "none", "bash", `{"command":"git push"}`)
		if out, err := cmd.CombinedOutput(); err != nil || i == 0 && !strings.Contains(string(out), "deny rule bash(git push*)") {
			t.Errorf("%v\n%s", err, out)
		}
	}
	if _, err := ahp.DecodeRegistration([]byte(block(t, page(t, "README.md"), "json", "protocolVersion"))); err != nil {
		t.Error(err)
	}
}
