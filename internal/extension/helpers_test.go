package extension_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/extension"
	"github.com/abhed/abhed/internal/policy"
)

// actions maps an event to the fake's action for it; "start" is the one before
// the first read.
type actions map[string]string

// fakeExt returns the configuration of a fake extension.
func fakeExt(t testing.TB, name string, on actions) extension.Config {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// Without the second, a binary built with -race sleeps for a second at its end.
	env := []string{fakeEnv + "=1", "GORACE=atexit_sleep_ms=0"}
	for ev, action := range on {
		if ev == "start" {
			env = append(env, fakeStart+"="+action)
			continue
		}
		env = append(env, fakeOn+ev+"="+action)
	}
	// A busy machine must not make a test fail; tests of the time-out set their own.
	return extension.Config{Name: name, Command: self, Env: env, Timeout: 30 * time.Second}
}

// with returns c changed by f.
func with(c extension.Config, f func(*extension.Config)) extension.Config {
	f(&c)
	return c
}

// record collects what a host records.
type record struct {
	mu     sync.Mutex
	drafts []event.Draft
}

func (r *record) add(d event.Draft) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drafts = append(r.drafts, d)
	return nil
}

// changes returns what was recorded of an extension's life with the given state.
func (r *record) changes(name, state string) []event.ExtensionChanged {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []event.ExtensionChanged
	for _, d := range r.drafts {
		if c, ok := d.Payload.(*event.ExtensionChanged); ok && c.Name == name && c.State == state {
			out = append(out, *c)
		}
	}
	return out
}

// lines returns the logged lines of a level.
func (r *record) lines(name, level string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, d := range r.drafts {
		if l, ok := d.Payload.(*event.ExtensionLogged); ok && l.Name == name && l.Level == level {
			out = append(out, l.Line)
		}
	}
	return out
}

// start starts a host that ends with the test.
func start(t testing.TB, rec *record, configs ...extension.Config) *extension.Host {
	t.Helper()
	opts := extension.Options{SessionID: "s-1"}
	if rec != nil {
		opts.Record = rec.add
	}
	h, err := extension.Start(context.Background(), configs, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return h
}

// call returns a call of a tool.
func call(t testing.TB, tool, args string) policy.Call {
	t.Helper()
	c, err := policy.Call{ID: "c-1", Tool: tool, Turn: 3, Agent: policy.Agent{ID: "main"}}.WithArgs([]byte(args))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// hook asks about a call in round 1.
func hook(t testing.TB, h *extension.Host, tool, args string) []extension.Answer {
	t.Helper()
	return h.PolicyHook(context.Background(), extension.ToolCall{Call: call(t, tool, args), Round: 1})
}

// one asks a host of one extension.
func one(t testing.TB, h *extension.Host, tool, args string) extension.Answer {
	t.Helper()
	answers := hook(t, h, tool, args)
	if len(answers) != 1 {
		t.Fatalf("%d answers, want 1: %+v", len(answers), answers)
	}
	return answers[0]
}

// objections returns the objections of answers.
func objections(answers []extension.Answer) []policy.Objection {
	var out []policy.Objection
	for _, a := range answers {
		out = append(out, a.Objection)
	}
	return out
}

// state returns the state of the named extension.
func state(t testing.TB, h *extension.Host, name string) extension.State {
	t.Helper()
	states := h.States()
	i := slices.IndexFunc(states, func(s extension.State) bool { return s.Name == name })
	if i < 0 {
		t.Fatalf("no extension %q in %+v", name, states)
	}
	return states[i]
}

// eventually waits until ok holds, for what another process or goroutine brings
// about; the bound only ends a failing test.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("did not happen within 10 s: %s", what)
}

// fifo makes a FIFO for the action @wait; release lets one waiter go on.
func fifo(t testing.TB) (path string, release func()) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path, func() {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			t.Error(err)
			return
		}
		f.Close()
	}
}

// logLines returns the requests that a fake logged.
func logLines(t testing.TB, path string) []string {
	t.Helper()
	b, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return strings.SplitAfter(strings.TrimSuffix(string(b), "\n"), "\n")
}

// gone reports whether no process of that id lives; an orphan that waits for the
// system to reap it doesn't.
func gone(pid int) bool {
	if syscall.Kill(pid, 0) == syscall.ESRCH {
		return true
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(stat), ") Z ")
}
