package app

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abhed/abhed/internal/event"
)

// shown is a demo in which everything happened, and its workspace.
func shown(t *testing.T) (*demo, string) {
	t.Helper()
	workspace := t.TempDir()
	for name, content := range map[string]string{"test.sh": "exit 0\n", "build/old.o": ""} {
		path := filepath.Join(workspace, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	d := &demo{ended: map[string]*event.ToolEnded{}}
	for _, name := range []string{"bash", "grep", "read", "edit"} {
		d.decisions = append(d.decisions, &event.Decision{CallID: name, Tool: name, Outcome: "run", Step: "rules"})
		d.ended[name] = &event.ToolEnded{CallID: name, Tool: name, Outcome: "ok"}
	}
	for step, subject := range map[string]string{"extension": "git push origin main", "backend": "release/NOTES", "headless": "rm -rf build"} {
		d.decisions = append(d.decisions, &event.Decision{CallID: step, Outcome: "deny", Step: step, Subject: subject})
	}
	return d, workspace
}

// decisionOn returns the demo's decision on a call.
func decisionOn(t *testing.T, d *demo, call string) *event.Decision {
	t.Helper()
	for _, p := range d.decisions {
		if p.CallID == call {
			return p
		}
	}
	t.Fatalf("no decision on %s", call)
	return nil
}

// TestDemoMissesNothing leaves out one thing at a time of what the demo shows.
func TestDemoMissesNothing(t *testing.T) {
	d, workspace := shown(t)
	if err := d.happened(t.Context(), workspace); err != nil {
		t.Fatalf("everything happened, and yet: %v", err)
	}
	tests := map[string]struct {
		without func(d *demo, workspace string)
		says    string
	}{
		"extension": {func(d *demo, _ string) { decisionOn(t, d, "extension").Outcome = "run" }, "git push"},
		"backend":   {func(d *demo, _ string) { decisionOn(t, d, "backend").Step = "rules" }, "release/NOTES"},
		"person":    {func(d *demo, _ string) { decisionOn(t, d, "headless").Subject = "rm -rf other" }, "rm -rf build"},
		"bash":      {func(d *demo, _ string) { delete(d.ended, "bash") }, "bash"},
		"grep":      {func(d *demo, _ string) { delete(d.ended, "grep") }, "grep"},
		"read":      {func(d *demo, _ string) { decisionOn(t, d, "read").Outcome = "supplied" }, "read"},
		"edit":      {func(d *demo, _ string) { decisionOn(t, d, "edit").Outcome = "deny" }, "edit"},
		"a trace":   {func(_ *demo, ws string) { _ = os.Mkdir(filepath.Join(ws, "release"), 0o700) }, "left a trace"},
		"removed":   {func(_ *demo, ws string) { _ = os.Remove(filepath.Join(ws, "build", "old.o")) }, "left a trace"},
		"not fixed": {func(_ *demo, ws string) {
			_ = os.WriteFile(filepath.Join(ws, "test.sh"), []byte("exit 1\n"), 0o600)
		}, "still fails"},
	}
	for name, tt := range tests {
		d, workspace := shown(t)
		tt.without(d, workspace)
		if err := d.happened(t.Context(), workspace); err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("without %s: %v, expected an error that names %q", name, err, tt.says)
		}
	}
}

// meddler is an output that spoils something when the demo's last words appear.
type meddler struct {
	text  strings.Builder
	spoil func(workspace string)
	done  bool
}

func (m *meddler) Write(p []byte) (int, error) {
	m.text.Write(p)
	if !m.done && strings.Contains(m.text.String(), "The greeting is fixed") {
		m.done = true
		_, after, _ := strings.Cut(m.text.String(), "works in ")
		workspace, _, _ := strings.Cut(after, ",")
		m.spoil(workspace)
	}
	return len(p), nil
}

// TestDemoFailsIfItIsSpoiled plays the demo whole, and spoils what it ends with.
func TestDemoFailsIfItIsSpoiled(t *testing.T) {
	tests := map[string]struct {
		spoil func(home, workspace string) error
		code  int
		says  string
	}{
		"nothing": {func(string, string) error { return nil }, ExitOK, ""},
		"workspace": {func(_, workspace string) error {
			return os.WriteFile(filepath.Join(workspace, "test.sh"), []byte("exit 1\n"), 0o600)
		}, ExitNegative, "still fails"},
		"record": {func(home, _ string) error {
			return filepath.WalkDir(home, func(path string, _ fs.DirEntry, err error) error {
				if err != nil || !strings.HasSuffix(path, ".jsonl") {
					return err
				}
				f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
				if err != nil {
					return err
				}
				_, err = f.WriteString("{}\n")
				return errors.Join(err, f.Close())
			})
		}, ExitNegative, "does not verify"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			out := &meddler{spoil: func(workspace string) {
				if err := tt.spoil(home, workspace); err != nil {
					t.Error(err)
				}
			}}
			var errs strings.Builder
			code := Demo(t.Context(), System{
				Stdin: strings.NewReader(""), Stdout: out, Stderr: &errs, Version: "test",
				Environ: []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")},
			}, false)
			if code != tt.code || !out.done || !strings.Contains(errs.String(), tt.says) {
				t.Errorf("exit %d, want %d: %s\n%s", code, tt.code, errs.String(), out.text.String())
			}
		})
	}
}
