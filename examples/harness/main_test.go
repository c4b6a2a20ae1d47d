package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/backend"
	"github.com/abhed/abhed/ahp/backend/httpbackend"
)

// TestMain lets the test binary be the harness, and a stdio backend that appends
// what it sees to a file.
func TestMain(m *testing.M) {
	switch {
	case os.Getenv("EXAMPLE_HARNESS") != "":
		main()
	case len(os.Args) == 3 && os.Args[1] == "backend":
		backend.Main(&judge{log: os.Args[2]}, backend.Options{})
	}
	os.Exit(m.Run())
}

// judge has one answer per word of a command.
type judge struct {
	log string // a file; "" is none
	mu  sync.Mutex
	// seen holds the types of events, those that were only observed in brackets.
	seen []string
}

func (j *judge) note(s string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.seen = append(j.seen, s)
	if j.log != "" {
		if err := os.WriteFile(j.log, []byte(strings.Join(j.seen, " ")), 0o600); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
}

func (j *judge) Observe(_ context.Context, e *ahp.Event) { j.note("(" + string(e.Type) + ")") }

func (j *judge) Intercept(_ context.Context, q *ahp.Intercept) ([]ahp.Effect, error) {
	j.note(string(q.Event.Type))
	if q.Event.Type != ahp.ToolBefore {
		return nil, nil
	}
	has := func(word string) bool { return strings.Contains(string(q.Event.Tool.Input), word) }
	switch {
	case has("denied"):
		return []ahp.Effect{&ahp.Deny{Reason: "not here"}}, nil
	case has("asked"):
		return []ahp.Effect{&ahp.Ask{}}, nil
	case has("supplied"):
		return []ahp.Effect{&ahp.Return{Value: ahp.Raw(`"given"`)}}, nil
	case has("rewritten"):
		return []ahp.Effect{&ahp.Modify{Target: ahp.TargetInput, Operation: ahp.OpReplace, Value: ahp.Raw(`{"command":"touch effective"}`)}}, nil
	case has("broken"):
		return []ahp.Effect{&ahp.Modify{Target: ahp.TargetInput, Operation: ahp.OpReplace, Value: ahp.Raw(`{"other":1}`)}}, nil
	case has("unanswered"):
		return nil, errors.New("no")
	case has("stopped"):
		return []ahp.Effect{&ahp.Flow{Operation: ahp.FlowStop, Reason: "enough"}}, nil
	}
	return nil, nil
}

// harnessIn returns the harness as a process that runs in dir.
func harnessIn(t *testing.T, dir, transport string, calls ...string) *exec.Cmd {
	t.Helper()
	doc := `{"protocolVersion":"draft","hooks":[{"id":"test.judge","transport":` + transport + `,"subscriptions":[
		{"events":["*"],"mode":"intercept","timeoutMs":20000,"failurePolicy":"fail-closed","content":{"default":"body"}},
		{"events":["session.end","hook.failure"],"mode":"observe","content":{"default":"body"}}]}]}`
	for name, text := range map[string]string{"registration.json": doc, "calls.jsonl": strings.Join(calls, "\n") + "\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, "registration.json", "calls.jsonl")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "EXAMPLE_HARNESS=1")
	return cmd
}

func command(text string) string { return `{"name":"bash","input":{"command":"` + text + `"}}` }

func stdioTransport(t *testing.T, dir string) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(`{"type":"stdio","command":%q,"args":["backend",%q],"lifecycle":"persistent"}`, exe, filepath.Join(dir, "log"))
}

// TestCalls runs the program against a real process and a real server.
func TestCalls(t *testing.T) {
	calls := []string{command("touch ran"), command("touch denied"), command("touch asked"), command("touch supplied"), command("touch rewritten"),
		command("touch broken"), command("exit 3"), command("touch unanswered"), "", command("touch stopped"), command("touch late")}
	const want = `{"call":0,"status":"ran","reason":""}
{"call":1,"status":"denied","reason":"not here"}
{"call":2,"status":"refused","reason":"The operation needs an approval that was not given."}
{"call":3,"status":"supplied","reason":""}
{"call":4,"status":"ran","reason":""}
{"call":5,"status":"refused","reason":"The input must be {\"command\": \"...\"}."}
{"call":6,"status":"failed","reason":"The operation failed."}
{"call":7,"status":"denied","reason":"A required policy check of this operation could not be completed, so the operation was refused."}
{"call":8,"status":"stopped","reason":"enough"}
{"call":9,"status":"stopped","reason":"enough"}
`
	pair := "tool.before tool.after "
	events := "session.start " + strings.Repeat(pair, 8) + "tool.before (session.end)"
	for _, carrier := range []string{"stdio", "http"} {
		t.Run(carrier, func(t *testing.T) {
			dir := t.TempDir()
			j := &judge{}
			transport := stdioTransport(t, dir)
			if carrier == "http" {
				server := httptest.NewServer(httpbackend.Handler(backend.New(j, backend.Options{}), httpbackend.Options{}))
				defer server.Close()
				transport = `{"type":"http","url":"` + server.URL + `"}`
			}
			cmd := harnessIn(t, dir, transport, calls...)
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			if err := cmd.Run(); err != nil {
				t.Fatalf("%v\n%s", err, stderr.String())
			}
			if stdout.String() != want {
				t.Errorf("printed\n%s\nwant\n%s", stdout.String(), want)
			}
			seen := strings.Join(j.seen, " ")
			if carrier == "stdio" {
				data, err := os.ReadFile(filepath.Join(dir, "log"))
				if err != nil {
					t.Fatal(err)
				}
				seen = string(data)
			}
			if seen != events {
				t.Errorf("seen\n%s\nwant\n%s", seen, events)
			}
			for name, there := range map[string]bool{"ran": true, "effective": true, "denied": false, "asked": false, "supplied": false, "rewritten": false, "broken": false, "unanswered": false, "stopped": false, "late": false} {
				if _, err := os.Stat(filepath.Join(dir, name)); (err == nil) != there {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
}

// TestInterrupt sends a signal while a command runs: it ends with its children, and
// the session still ends in order.
func TestInterrupt(t *testing.T) {
	dir := t.TempDir()
	cmd := harnessIn(t, dir, stdioTransport(t, dir), command("touch begun; sleep 600 & sleep 600; touch never"), command("touch late"))
	var stdout bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(20 * time.Second)
	for {
		if _, err := os.Stat(filepath.Join(dir, "begun")); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the command didn't begin")
		}
		time.Sleep(5 * time.Millisecond) // polls another process
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	const line = `{"call":%d,"status":"interrupted","reason":"The call was interrupted."}` + "\n"
	if want := fmt.Sprintf(line+line, 0, 1); stdout.String() != want {
		t.Errorf("printed %s, want %s", stdout.String(), want)
	}
	data, err := os.ReadFile(filepath.Join(dir, "log"))
	if err != nil || !strings.HasSuffix(string(data), "(session.end)") || !strings.Contains(string(data), "tool.before") {
		t.Errorf("seen %q, %v", data, err)
	}
}

func TestWrongUse(t *testing.T) {
	for name, tt := range map[string]struct {
		transport string
		calls     string
		code      int
	}{
		"a transport that isn't there": {`{"type":"carrier-pigeon"}`, command("true"), 2},
		"plain http to the world":      {`{"type":"http","url":"http://policy.example.com/"}`, command("true"), 2},
		"a call that can't be read":    {stdioTransport(t, t.TempDir()), `{"name":"bash","input":[]}`, 1},
		"a backend that isn't there":   {`{"type":"stdio","command":"/nonexistent/backend","lifecycle":"persistent"}`, command("touch ran"), 1},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			cmd := harnessIn(t, dir, tt.transport, tt.calls)
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			var exit *exec.ExitError
			if err := cmd.Run(); !errors.As(err, &exit) || exit.ExitCode() != tt.code || stderr.Len() == 0 {
				t.Errorf("got %v, %s, want exit code %d", err, stderr.String(), tt.code)
			}
			if _, err := os.Stat(filepath.Join(dir, "ran")); err == nil {
				t.Error("a command ran")
			}
		})
	}
}
