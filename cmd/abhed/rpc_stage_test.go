package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/model/modeltest"
)

// stage is a home, a workspace and a model server for a service.
type stage struct {
	t                testing.TB
	home, dir, state string
	server           *modeltest.Server
}

// newStage sets up what a service finds. The server is strict: a history that a
// careful endpoint would refuse fails the test.
func newStage(t testing.TB, turns ...modeltest.Turn) *stage {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{t: t, home: filepath.Join(base, "home"), dir: filepath.Join(base, "ws"), state: filepath.Join(base, "state"), server: modeltest.New(t, turns...)}
	for _, d := range []string{s.home, s.dir} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// settings writes the user's settings file.
func (s *stage) settings(format string, a ...any) {
	s.t.Helper()
	s.put(filepath.Join(s.home, ".config/abhed/config.json"), fmt.Sprintf(format, a...))
}

func (s *stage) put(file, content string) {
	s.t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// in returns the path of a file of the workspace.
func (s *stage) in(name string) string { return filepath.Join(s.dir, name) }

// exists reports whether there is the file.
func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// asked is a turn with one call.
func asked(id, tool, args string) modeltest.Turn {
	return modeltest.Turn{Calls: []modeltest.Call{{ID: id, Name: tool, Args: args}}}
}

// said is what the model was sent in request n, counted from 0: role and text of each
// message but the system's, and the calls of the assistant.
func (s *stage) said(n int) []string {
	s.t.Helper()
	list := s.server.Requests()
	if n >= len(list) {
		s.t.Fatalf("the model was asked %d times, want more than %d", len(list), n)
	}
	var out []string
	for _, m := range list[n].Messages {
		if m.Role == "system" {
			continue
		}
		text := m.Role + ": " + m.Text()
		for _, c := range m.ToolCalls {
			text += " " + c.ID
		}
		out = append(out, text)
	}
	return out
}

// reached waits until the model was asked n times. That a request is in the record
// doesn't mean yet that it has arrived.
func (s *stage) reached(n int) {
	s.t.Helper()
	within(s.t, fmt.Sprintf("request %d", n), func() bool { return len(s.server.Requests()) >= n })
}

// command returns the command as a process in the stage's home, which a sandbox
// hides.
func (s *stage) command(args ...string) *exec.Cmd {
	cmd := exec.Command(self(s.t), args...)
	cmd.Dir = s.home
	cmd.Env = []string{asCommand + "=1", "HOME=" + s.home, "PATH=" + os.Getenv("PATH"), "XDG_STATE_HOME=" + s.state, "ABHED_BASE_URL=" + s.server.URL, "ABHED_MODEL=test"}
	return cmd
}

// verified fails the test unless the record of a session verifies.
func (s *stage) verified(session string) {
	s.t.Helper()
	if out, err := s.command("record", "verify", session).CombinedOutput(); err != nil {
		s.t.Errorf("record verify %s: %v\n%s", session, err, out)
	}
}

// record returns the file of a session, "*" for the only one.
func (s *stage) record(session string) string {
	s.t.Helper()
	files, err := filepath.Glob(filepath.Join(s.state, "abhed/sessions/*", session+".jsonl"))
	if err != nil || len(files) != 1 {
		s.t.Fatalf("records of %s: %v, %v", session, files, err)
	}
	return files[0]
}

// recorded returns the events of a session's record.
func (s *stage) recorded(session string) []event.Event {
	s.t.Helper()
	data, err := os.ReadFile(s.record(session))
	if err != nil {
		s.t.Fatal(err)
	}
	var list []event.Event
	for l := range bytes.Lines(data) {
		e, err := event.Decode(bytes.TrimSuffix(l, []byte("\n")))
		if err != nil {
			s.t.Fatal(err)
		}
		list = append(list, e)
	}
	return list
}

func self(t testing.TB) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return self
}
