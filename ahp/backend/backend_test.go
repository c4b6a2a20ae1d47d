package backend_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/backend"
	"github.com/abhed/abhed/internal/require"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "serve" {
		backend.Main(&judge{}, backend.Options{})
	}
	if len(os.Args) == 2 && os.Args[1] == "noisy" {
		backend.Main(backend.Func(noisy), backend.Options{})
	}
	goleak.VerifyTestMain(m)
}

// judge does what the command of a call says, and counts.
type judge struct {
	mu       sync.Mutex
	asked    int
	observed []string
}

func (j *judge) Intercept(_ context.Context, q *ahp.Intercept) ([]ahp.Effect, error) {
	j.mu.Lock()
	j.asked++
	j.mu.Unlock()
	switch input := string(q.Event.Tool.Input); {
	case strings.Contains(input, "deny"):
		return []ahp.Effect{&ahp.Deny{Reason: "told so"}}, nil
	case strings.Contains(input, "allow"):
		return []ahp.Effect{&ahp.Allow{}}, nil
	case strings.Contains(input, "malformed"):
		return []ahp.Effect{&ahp.Deny{}}, nil
	case strings.Contains(input, "nil"):
		return []ahp.Effect{(*ahp.Deny)(nil)}, nil
	case strings.Contains(input, "panic"):
		panic("secret-text")
	case strings.Contains(input, "unavailable"):
		return nil, fmt.Errorf("the database: %w", backend.ErrUnavailable)
	case strings.Contains(input, "own"):
		return nil, &ahp.RPCError{Code: -32099, Message: "own"}
	case strings.Contains(input, "fail"):
		return nil, errors.New("secret-text")
	}
	return nil, nil
}

func (j *judge) Observe(_ context.Context, e *ahp.Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.observed = append(j.observed, e.ID)
	if e.ID == "panic" {
		panic("observer")
	}
}

func (j *judge) count() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.asked
}

// request returns an intercept of tool.before that advertises everything but
// allow.
func request(t testing.TB, id, command string) []byte {
	t.Helper()
	q := &ahp.Intercept{Event: ahptest.ToolBefore(id, fmt.Sprintf(`{"command":%q}`, command)),
		Capabilities: *ahptest.Without(ahptest.FullCapabilities(ahp.ToolBefore), ahp.EffectAllow)}
	msg, err := q.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return msg
}

func notification(t testing.TB, id string) []byte {
	t.Helper()
	msg, err := (&ahp.Observe{Event: ahptest.ToolBefore(id, `{}`)}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	return msg
}

func TestHandlerAnswers(t *testing.T) {
	tests := map[string]struct {
		command string
		effects int
		code    int64
	}{
		"no objection":         {"ls", 0, 0},
		"a denial":             {"deny", 1, 0},
		"an unadvertised":      {"allow", 0, ahp.CodeInternal},
		"a malformed":          {"malformed", 0, ahp.CodeInternal},
		"a nil effect":         {"nil", 0, ahp.CodeInternal},
		"a panic":              {"panic", 0, ahp.CodeInternal},
		"unavailable":          {"unavailable", 0, ahp.CodeUnavailable},
		"an error of its own":  {"own", 0, -32099},
		"an error of any kind": {"fail", 0, ahp.CodeInternal},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var reported error
			s := backend.New(&judge{}, backend.Options{OnError: func(err error) { reported = err }})
			reply, err := s.Handle(t.Context(), request(t, "e", tt.command))
			if (err != nil) != (tt.code != 0) || (reported != nil) != (tt.code != 0) {
				t.Errorf("error %v, reported %v", err, reported)
			}
			effects, err := ahp.DecodeEffectsReply(reply, ahp.StringID("e"))
			var rpc *ahp.RPCError
			if errors.As(err, &rpc) != (tt.code != 0) || rpc != nil && rpc.Code != tt.code || len(effects) != tt.effects {
				t.Errorf("%d effects, %v", len(effects), err)
			}
			if bytes.Contains(reply, []byte("secret-text")) {
				t.Errorf("the reply gives away the handler's error: %s", reply)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	good := string(request(t, "e", "ls"))
	note := string(notification(t, "e"))
	change := func(s, from, to string) string {
		if !strings.Contains(s, from) {
			t.Fatalf("no %q in %s", from, s)
		}
		return strings.Replace(s, from, to, 1)
	}
	tests := map[string]struct {
		msg  string
		code int64 // 0: no reply
		id   string
	}{
		"not JSON":                 {"what?", ahp.CodeParse, "null"},
		"a batch":                  {"[" + good + "]", ahp.CodeInvalidRequest, "null"},
		"another revision":         {change(good, `"draft"`, `"2031-01-01"`), ahp.CodeUnsupportedVersion, `"e"`},
		"another revision's shape": {`{"jsonrpc":"2.0","id":7,"method":"hooks/intercept","params":{"protocolVersion":"2031-01-01","x":1}}`, ahp.CodeUnsupportedVersion, "7"},
		"an unknown method":        {change(good, "hooks/intercept", "hooks/undo"), ahp.CodeMethodNotFound, `"e"`},
		"an unknown event":         {change(good, `"tool.before"`, `"tool.imagined"`), ahp.CodeUnsupportedEvent, `"e"`},
		"an observed event":        {change(good, `"tool.before"`, `"session.end"`), ahp.CodeInvalidParams, `"e"`},
		"another id":               {change(good, `"id":"e"`, `"id":"f"`), ahp.CodeInvalidParams, `"f"`},
		"no path":                  {change(good, `"path":"native"`, `"lane":"native"`), ahp.CodeInvalidParams, `"e"`},
		"no manifest":              {`{"jsonrpc":"2.0","id":"d","method":"hooks/capabilities","params":{"protocolVersion":"draft"}}`, ahp.CodeMethodNotFound, `"d"`},
		"a bad notification":       {change(note, `"path":"native"`, `"lane":"native"`), 0, ""},
		"a notification with id":   {change(note, `"method"`, `"id":"x","method"`), 0, ""},
		"a notification of old":    {change(note, `"draft"`, `"2031-01-01"`), 0, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			j := &judge{}
			reply, err := backend.New(j, backend.Options{}).Handle(t.Context(), []byte(tt.msg))
			if err == nil && name != "no manifest" {
				t.Error("no error")
			}
			if tt.code == 0 {
				if reply != nil {
					t.Errorf("a notification was answered: %s", reply)
				}
			} else if want := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,`, tt.id, tt.code); !strings.HasPrefix(string(reply), want) {
				t.Errorf("reply %s, want %s…", reply, want)
			}
			if j.count()+len(j.observed) != 0 {
				t.Error("the handler was called")
			}
		})
	}
}

func TestEventsAndManifest(t *testing.T) {
	j := &judge{}
	s := backend.New(j, backend.Options{Events: []ahp.EventType{ahp.ToolAfter}, Manifest: ahptest.Manifest()})
	reply, _ := s.Handle(t.Context(), request(t, "e", "ls"))
	if !bytes.Contains(reply, []byte("-32002")) || j.count() != 0 {
		t.Errorf("reply %s", reply)
	}
	id := ahp.IntID(7)
	msg, err := (&ahp.Discover{ID: id}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	reply, err = s.Handle(t.Context(), msg)
	if err != nil {
		t.Fatal(err)
	}
	m, err := ahp.DecodeManifestReply(reply, id)
	if err != nil || len(m.Events) != 32 {
		t.Errorf("%v, %v", m, err)
	}
}

func TestRepeatsAreAnsweredOnce(t *testing.T) {
	j := &judge{}
	s := backend.New(j, backend.Options{})
	first, _ := s.Handle(t.Context(), request(t, "e", "deny"))
	again, _ := s.Handle(t.Context(), request(t, "e", "deny"))
	if j.count() != 1 || !bytes.Equal(first, again) {
		t.Errorf("asked %d times, %s and %s", j.count(), first, again)
	}
	// The same event with other content is another subscription's question.
	if other, _ := s.Handle(t.Context(), request(t, "e", "ls")); j.count() != 2 || bytes.Equal(first, other) {
		t.Errorf("asked %d times, %s", j.count(), other)
	}
	for range 2 { // a failure isn't remembered
		s.Handle(t.Context(), request(t, "f", "fail"))
	}
	if j.count() != 4 {
		t.Errorf("asked %d times", j.count())
	}
	for i := range 3000 { // the memory is bounded: the first answer is forgotten
		s.Handle(t.Context(), request(t, fmt.Sprint(i), "ls"))
	}
	before := j.count()
	s.Handle(t.Context(), request(t, "e", "deny"))
	if j.count() != before+1 {
		t.Error("still remembered")
	}
}

func TestRepeatWhileJudging(t *testing.T) {
	release, entered := make(chan struct{}), make(chan struct{}, 2)
	s := backend.New(backend.Func(func(context.Context, *ahp.Intercept) ([]ahp.Effect, error) {
		entered <- struct{}{}
		<-release
		return nil, nil
	}), backend.Options{})
	var wg sync.WaitGroup
	wg.Go(func() { s.Handle(t.Context(), request(t, "e", "ls")) })
	<-entered
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if reply, err := s.Handle(ctx, request(t, "e", "ls")); !errors.Is(err, context.Canceled) || !bytes.Contains(reply, []byte("-32003")) {
		t.Errorf("%s, %v", reply, err)
	}
	wg.Go(func() { s.Handle(t.Context(), request(t, "e", "ls")) })
	close(release)
	wg.Wait()
	if len(entered) != 0 {
		t.Error("judged twice")
	}
}

// TestRepeatAfterTheFirstLeft holds that who repeats a request because its connection
// was lost gets an answer, and not the failure of the first try.
func TestRepeatAfterTheFirstLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		s := backend.New(backend.Func(func(ctx context.Context, q *ahp.Intercept) ([]ahp.Effect, error) {
			if calls++; calls == 1 {
				<-ctx.Done()
				time.Sleep(time.Second)
				return nil, ctx.Err()
			}
			return backend.Reply(q).Deny("no").Effects()
		}), backend.Options{})
		first, leave := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { s.Handle(first, request(t, "e", "ls")) })
		synctest.Wait()
		leave()
		reply, err := s.Handle(t.Context(), request(t, "e", "ls"))
		if err != nil || !bytes.Contains(reply, []byte(`"deny"`)) || calls != 2 {
			t.Errorf("%s, %v, asked %d times", reply, err, calls)
		}
		wg.Wait()
	})
}

func TestServeStdio(t *testing.T) {
	j := &judge{}
	var in, out bytes.Buffer
	for _, line := range [][]byte{notification(t, "n1"), request(t, "e1", "deny"), {}, notification(t, "panic"), []byte("garbage"), request(t, "e2", "ls")} {
		in.Write(append(line, '\n'))
	}
	in.Write(bytes.Repeat([]byte("x"), ahp.MaxMessageBytes+10))
	in.WriteString("\n")
	in.Write(request(t, "e3", "ls")) // without a line feed
	if err := backend.New(j, backend.Options{}).ServeStdio(t.Context(), &in, &out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	want := []string{`"id":"e1","result"`, `"id":null,"error":{"code":-32700`, `"id":"e2","result"`, `"id":null,"error":{"code":-32700`, `"id":"e3","result"`}
	if len(lines) != len(want) {
		t.Fatalf("%d replies: %q", len(lines), lines)
	}
	for i := range want {
		if !strings.Contains(lines[i], want[i]) {
			t.Errorf("reply %d is %s", i, lines[i])
		}
	}
	if strings.Join(j.observed, " ") != "n1 panic" {
		t.Errorf("observed %q", j.observed)
	}
}

func TestServeStdioEndsWithContext(t *testing.T) {
	r, w := io.Pipe()
	defer w.Close()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- backend.New(&judge{}, backend.Options{}).ServeStdio(ctx, r, io.Discard) }()
	w.Write(append(request(t, "e", "ls"), '\n'))
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// failingWriter can't be written to.
type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestServeStdioWithoutReader(t *testing.T) {
	err := backend.New(&judge{}, backend.Options{}).ServeStdio(t.Context(), bytes.NewReader(append(request(t, "e", "ls"), '\n')), failingWriter{})
	if !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("got %v", err)
	}
}

func TestMainProcess(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(require.Shared(t), "fixtures", "ahp", "stdio", "intercept-request.valid.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, exe, "serve")
	cmd.Stdin = bytes.NewReader(data)
	out, err := cmd.Output()
	if err != nil || string(out) != `{"jsonrpc":"2.0","id":"evt_stdio_001","result":{"protocolVersion":"draft","effects":[]}}`+"\n" {
		t.Errorf("%s, %v", out, err)
	}
	// SIGTERM ends it although its input is open.
	cmd = exec.CommandContext(ctx, exe, "serve")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	in.Write(data)
	stdout.Read(make([]byte, 1)) // it serves, so it has its signal handler
	cmd.Process.Signal(os.Interrupt)
	io.Copy(io.Discard, stdout)
	if err := cmd.Wait(); err != nil {
		t.Errorf("after the signal: %v", err)
	}
}
