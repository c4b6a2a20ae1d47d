package main

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/model/modeltest"
)

// command returns the command as a process in its own home.
func command(t *testing.T, home, url string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Env = []string{asCommand + "=1", "HOME=" + home, "PATH=" + os.Getenv("PATH"), "ABHED_BASE_URL=" + url, "ABHED_MODEL=test"}
	// A test that needs no endpoint gives none.
	if url == "" {
		cmd.Env = cmd.Env[:3]
	}
	return cmd
}

// TestKilledRunResumes kills whole runs with SIGKILL at random moments. Every
// event that was printed before the last one that had to be durable must be in the
// record, and the session must go on.
func TestKilledRunResumes(t *testing.T) {
	const kills = 12
	for i := range kills {
		home, dir := t.TempDir(), t.TempDir()
		var turns []modeltest.Turn
		for n := range 400 {
			turns = append(turns, modeltest.Turn{Text: "next", Calls: []modeltest.Call{{ID: fmt.Sprintf("c%d", n), Name: "write", Args: fmt.Sprintf(`{"path":"f%d","content":"x"}`, n)}}})
		}
		server := modeltest.Start(modeltest.Options{Turns: turns})
		cmd := command(t, home, server.URL, "-p", "work", "-C", dir, "--mode", "accept-edits", "--min-tier", "none", "--output", "stream-json")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		printed := make(chan [][]byte)
		go func() {
			var lines [][]byte
			s := bufio.NewScanner(out)
			s.Buffer(nil, 16<<20)
			for s.Scan() {
				lines = append(lines, bytes.Clone(s.Bytes()))
			}
			printed <- lines
		}()
		time.Sleep(time.Duration(60+rand.IntN(300)) * time.Millisecond)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		lines := <-printed
		_ = cmd.Wait()
		server.Close()
		if len(lines) == 0 {
			continue // killed before the first event
		}
		id := kept(t, home, lines)
		resumed := modeltest.Start(modeltest.Options{Turns: []modeltest.Turn{{Text: "done"}}})
		again, err := command(t, home, resumed.URL, "-p", "go on", "-C", dir, "--min-tier", "none", "--resume", id).CombinedOutput()
		if err != nil {
			t.Fatalf("kill %d: resume: %v\n%s", i, err, again)
		}
		if v := resumed.Violations(); len(v) > 0 {
			t.Errorf("kill %d: the resumed history is refused by a strict endpoint: %v", i, v)
		}
		resumed.Close()
		if verify, err := command(t, home, "http://127.0.0.1:1", "record", "verify", id).CombinedOutput(); err != nil {
			t.Errorf("kill %d: verify: %v\n%s", i, err, verify)
		}
	}
}

// kept checks that the record holds what was printed, and returns the session's
// id.
func kept(t *testing.T, home string, lines [][]byte) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(home, ".local/state/abhed/sessions/*/*.jsonl"))
	if err != nil || len(files) != 1 {
		t.Fatalf("records: %v, %v", files, err)
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	durable := 0
	for i, l := range lines {
		e, err := event.Decode(l)
		if err != nil {
			break // the kill cut the line
		}
		switch e.Payload.Type() {
		case event.TypeDecision, event.TypeUserMessage, event.TypeModelResponded, event.TypeToolStarted, event.TypeToolEnded:
			durable = i + 1
		}
	}
	for i, l := range lines[:durable] {
		if !bytes.Contains(data, append(l, '\n')) {
			t.Errorf("event %d of %d was printed and is not in the record: %.120s", i+1, durable, l)
		}
	}
	return strings.TrimSuffix(filepath.Base(files[0]), ".jsonl")
}
