package app_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/abhed/abhed/internal/agent"
	"github.com/abhed/abhed/internal/app"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/model/modeltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a home, a workspace and a model server for runs of the program.
type world struct {
	t      *testing.T
	home   string
	dir    string
	env    []string
	server *modeltest.Server
	opts   app.RunOptions
}

func newWorld(t *testing.T, turns ...modeltest.Turn) *world {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, home: filepath.Join(base, "home"), dir: filepath.Join(base, "ws")}
	for _, d := range []string{w.home, w.dir} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	w.server = modeltest.Start(modeltest.Options{Turns: turns})
	t.Cleanup(w.server.Close)
	w.env = []string{"HOME=" + w.home, "PATH=" + os.Getenv("PATH"), "ABHED_BASE_URL=" + w.server.URL, "ABHED_MODEL=test", "ABHED_API_KEY=key-for-tests"}
	w.opts = app.RunOptions{Prompt: "do it", PromptGiven: true, Output: "text"}
	w.opts.Dir, w.opts.MinTier = w.dir, "none"
	return w
}

// result is what a run of the program left.
type result struct {
	code     int
	out, err string
	record   string
}

// safeBuffer may be written by several goroutines.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func (w *world) system(out, errs *safeBuffer) app.System {
	return app.System{
		Stdin: strings.NewReader(""), Stdout: out, Stderr: errs, Environ: w.env, Version: "test",
		ManagedDir: filepath.Join(w.home, "managed"), Retry: agent.Retry{Attempts: 3, Base: time.Millisecond, Cap: 2 * time.Second},
	}
}

func (w *world) run(ctx context.Context) result {
	w.t.Helper()
	var out, errs safeBuffer
	code := app.Run(ctx, w.opts, w.system(&out, &errs))
	r := result{code: code, out: out.String(), err: errs.String()}
	if _, path, ok := strings.Cut(r.err, "record: "); ok {
		r.record, _, _ = strings.Cut(path, "\n")
	}
	return r
}

// events decodes a record.
func (w *world) events(r result) []event.Event {
	w.t.Helper()
	data, err := os.ReadFile(r.record)
	if err != nil {
		w.t.Fatalf("%v; stderr: %s", err, r.err)
	}
	var list []event.Event
	for line := range bytes.Lines(data) {
		e, err := event.Decode(bytes.TrimSuffix(line, []byte("\n")))
		if err != nil {
			w.t.Fatal(err)
		}
		list = append(list, e)
	}
	return list
}

func (w *world) write(name, content string) {
	w.t.Helper()
	p := filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(content), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// call is a turn that calls one tool.
func call(name, args string, faults ...modeltest.Fault) modeltest.Turn {
	return modeltest.Turn{Calls: []modeltest.Call{{ID: "call_1", Name: name, Args: args}}, Faults: faults}
}

// TestEndpoints lets the endpoint behave badly. marker is whether the call in the
// first reply may have run.
func TestEndpoints(t *testing.T) {
	write := `{"path":"marker","content":"x"}`
	done := modeltest.Turn{Text: "done"}
	tests := []struct {
		name   string
		turns  []modeltest.Turn
		code   int
		marker bool
		stderr string
	}{
		{"well", []modeltest.Turn{call("write", write), done}, 0, true, ""},
		{"401", []modeltest.Turn{call("write", write, modeltest.Status(401, `{"error":{"message":"bad key"}}`)), done}, 1, false, "ABHED_API_KEY"},
		{"429 with retry-after", []modeltest.Turn{call("write", write, modeltest.RateLimited(1)), call("write", write), done}, 0, true, "rate_limit"},
		{"429 for too long", []modeltest.Turn{call("write", write, modeltest.RateLimited(3600)), done}, 5, false, "asks to wait"},
		{"500 once", []modeltest.Turn{call("write", write, modeltest.Status(500, "oops")), call("write", write), done}, 0, true, "500"},
		{"500 always", []modeltest.Turn{call("write", write, modeltest.Status(500, "oops")), call("write", write, modeltest.Status(503, "oops")), call("write", write, modeltest.Status(500, "oops")), done}, 5, false, "3 attempts failed"},
		{"cut, then well", []modeltest.Turn{call("write", write, modeltest.CutAt(300)), done}, 0, false, "cut"},
		{"always cut", []modeltest.Turn{call("write", write, modeltest.CutAt(300)), call("write", write, modeltest.EndAt(310)), call("write", write, modeltest.CutAt(250))}, 5, false, "3 attempts failed"},
		{"split UTF-8", []modeltest.Turn{call("write", `{"path":"marker","content":"北🙂"}`, modeltest.SplitEvery(1)), done}, 0, true, ""},
		{"missing index", []modeltest.Turn{call("write", write, modeltest.MissingIndex()), done}, 0, true, ""},
		{"arguments in one piece", []modeltest.Turn{call("write", write, modeltest.WholeCalls()), done}, 0, true, ""},
		{"arguments as an object", []modeltest.Turn{call("write", write, modeltest.ArgsObject()), done}, 0, true, ""},
		{"truncated arguments", []modeltest.Turn{call("write", write, modeltest.TruncatedArgs()), done}, 0, false, ""},
		{"arguments that are no JSON", []modeltest.Turn{call("write", `{"path":"marker",`), done}, 0, false, "REFUSED"},
		{"error frame", []modeltest.Turn{call("write", write, modeltest.ErrorFrame(1, `{"error":{"message":"overloaded"}}`)), done}, 0, false, "overloaded"},
		{"JSON instead of a stream", []modeltest.Turn{call("write", write, modeltest.JSONBody()), done}, 0, true, ""},
		{"two final frames", []modeltest.Turn{call("write", write, modeltest.TwoFinals()), done}, 0, true, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, tt.turns...)
			w.opts.Mode = "accept-edits"
			r := w.run(t.Context())
			_, err := os.Stat(filepath.Join(w.dir, "marker"))
			if r.code != tt.code || (err == nil) != tt.marker || !strings.Contains(r.err, tt.stderr) {
				t.Errorf("exit %d, want %d; marker %t, want %t\nstderr: %s", r.code, tt.code, err == nil, tt.marker, r.err)
			}
			if strings.Contains(r.err+r.out, "key-for-tests") {
				t.Error("the API key was printed")
			}
			if v := w.server.Violations(); len(v) > 0 {
				t.Errorf("requests that a strict endpoint refuses: %v", v)
			}
			if data, err := os.ReadFile(r.record); err != nil || bytes.Contains(data, []byte("key-for-tests")) {
				t.Errorf("the record: %v, or it holds the API key", err)
			}
		})
	}
}

func TestEndpointRefusesConnections(t *testing.T) {
	w := newWorld(t)
	w.env = append(w.env, "ABHED_BASE_URL="+modeltest.RefusedURL(t))
	w.env = w.env[len(w.env)-1:]
	w.env = append(w.env, "HOME="+w.home, "ABHED_MODEL=test", "PATH="+os.Getenv("PATH"))
	r := w.run(t.Context())
	if r.code != 5 || !strings.Contains(r.err, "connect") {
		t.Errorf("exit %d, stderr: %s", r.code, r.err)
	}
}

// TestMarkerOnlyAfterCompleteCall checks the file against the whole text, so that
// half a call can't have run.
func TestSplitTextArrivesWhole(t *testing.T) {
	w := newWorld(t, call("write", `{"path":"m","content":"北🙂"}`, modeltest.SplitEvery(1)), modeltest.Turn{Text: "北🙂 done", Faults: []modeltest.Fault{modeltest.SplitEvery(1)}})
	w.opts.Mode = "accept-edits"
	r := w.run(t.Context())
	data, err := os.ReadFile(filepath.Join(w.dir, "m"))
	if err != nil || string(data) != "北🙂" || r.out != "北🙂 done\n" {
		t.Errorf("file %q, output %q, %v", data, r.out, err)
	}
}

func TestLimitsAndTheirExitCodes(t *testing.T) {
	read := call("read", `{"path":"a"}`)
	turns := func() []modeltest.Turn { return []modeltest.Turn{read, read, read, read, read, {Text: "done"}} }
	w := newWorld(t, turns()...)
	w.opts.MaxTurns = 2
	if r := w.run(t.Context()); r.code != 3 || !strings.Contains(r.err, "max_turns") {
		t.Errorf("max_turns: exit %d, %s", r.code, r.err)
	}
	w = newWorld(t, turns()...)
	w.opts.MaxTokens = 1
	if r := w.run(t.Context()); r.code != 3 || !strings.Contains(r.err, "max_tokens") {
		t.Errorf("max_tokens: exit %d, %s", r.code, r.err)
	}
	w = newWorld(t, modeltest.Turn{Text: "x", Faults: []modeltest.Fault{modeltest.StallHeaders()}})
	w.opts.MaxTime = time.Second
	if r := w.run(t.Context()); r.code != 3 || !strings.Contains(r.err, "max_time") {
		t.Errorf("max_time: exit %d, %s", r.code, r.err)
	}
	refused := call("write", `{"path":"a","content":""}`)
	w = newWorld(t, refused, refused, refused, modeltest.Turn{Text: "done"})
	if r := w.run(t.Context()); r.code != 4 || !strings.Contains(r.err, "denied_loop") {
		t.Errorf("denied_loop: exit %d, %s", r.code, r.err)
	}
}

func TestInterruptExitCodes(t *testing.T) {
	for reason, code := range map[agent.Reason]int{agent.ReasonUserInterrupt: 130, agent.ReasonShutdown: 143} {
		ctx, cancel := context.WithCancelCause(t.Context())
		w := newWorld(t, modeltest.Turn{Text: "hello", Faults: []modeltest.Fault{modeltest.StallAt(200)}})
		timer := time.AfterFunc(300*time.Millisecond, func() { cancel(&agent.Interrupted{Reason: reason}) })
		r := w.run(ctx)
		timer.Stop()
		if r.code != code {
			t.Errorf("%s: exit %d, want %d; %s", reason, r.code, code, r.err)
		}
		last := w.events(r)
		ended := false
		for _, e := range last {
			if p, ok := e.Payload.(*event.SessionEnded); ok && p.Reason == string(reason) {
				ended = true
			}
		}
		if !ended {
			t.Errorf("%s: the record has no end", reason)
		}
	}
}
