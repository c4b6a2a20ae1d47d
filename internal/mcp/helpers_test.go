package mcp_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/mcp"
	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/tool"
)

// raceEnv spares a program with the race detector the second that it waits at its end.
const raceEnv = "GORACE=atexit_sleep_ms=0"

// open is a schema that takes everything.
const open = `"inputSchema":{"type":"object"}`

func named(names ...string) []string {
	var out []string
	for _, n := range names {
		out = append(out, fmt.Sprintf(`{"name":%q,"description":"does %s",%s}`, n, n, open))
	}
	return out
}

// server returns a server that plays a script.
func server(t testing.TB, name string, s script) mcp.Server {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	arg := s.arg()
	if len(arg) > 64<<10 {
		file := filepath.Join(t.TempDir(), "script")
		if err := os.WriteFile(file, []byte(arg), 0o600); err != nil {
			t.Fatal(err)
		}
		arg = "@" + file
	}
	return mcp.Server{Name: name, Command: self, Args: []string{serverArg, arg}, Env: []string{raceEnv}}
}

// rig is a host with what is needed to run its tools.
type rig struct {
	*mcp.Host
	t   testing.TB
	reg *tool.Registry
	m   *tool.Minter
	x   *tool.Executor
	rec *recorder
}

// recorder keeps the notices.
type recorder struct {
	mu  sync.Mutex
	all []string
}

func (r *recorder) record(d event.Draft) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, d.Payload.(*event.Notice).Text)
	return nil
}

func (r *recorder) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.all, "\n")
}

func start(t testing.TB, opts mcp.Options, servers ...mcp.Server) *rig {
	t.Helper()
	rec := &recorder{}
	opts.Record = rec.record
	h, err := mcp.Start(t.Context(), servers, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	reg, err := tool.NewRegistry(h.Tools()...)
	if err != nil {
		t.Fatal(err)
	}
	m, v := tool.NewAuthority()
	return &rig{Host: h, t: t, reg: reg, m: m, x: tool.NewExecutor(reg, v), rec: rec}
}

// run calls a tool as the loop does.
func (r *rig) run(name, args string) tool.Result { return r.runCtx(r.t.Context(), name, args) }

func (r *rig) runCtx(ctx context.Context, name, args string) tool.Result {
	canon, err := r.reg.Check(name, []byte(args))
	if err != nil {
		r.t.Errorf("arguments of %s: %v", name, err)
		return tool.Result{}
	}
	res, err := r.x.Run(ctx, r.m.Mint(policy.Call{ID: "c", Tool: name, Args: canon}, nil), nil)
	if err != nil {
		r.t.Errorf("%s is broken: %v", name, err)
	}
	return res
}

// works checks that a call succeeds with a text.
func (r *rig) works(name, args, want string) {
	r.t.Helper()
	if res := r.run(name, args); res.IsError || !strings.Contains(res.Content, want) {
		r.t.Errorf("%s gave %+v, expected a success with %q", name, res, want)
	}
}

// fails checks that a call fails with a text.
func (r *rig) fails(name, args string, want ...string) tool.Result {
	r.t.Helper()
	res := r.run(name, args)
	for _, w := range want {
		if !res.IsError || !strings.Contains(res.Content, w) {
			r.t.Errorf("%s gave %+v, expected a failure with %q", name, res, w)
		}
	}
	return res
}

// noticed checks that something was recorded.
func (r *rig) noticed(want ...string) {
	r.t.Helper()
	for _, w := range want {
		r.t.Helper()
		if !eventually(func() bool { return strings.Contains(r.rec.text(), w) }) {
			r.t.Errorf("nothing recorded with %q; recorded was:\n%s", w, r.rec.text())
		}
	}
}

func (r *rig) names() []string {
	var out []string
	for _, t := range r.Tools() {
		out = append(out, t.Spec().Name)
	}
	return out
}

func (r *rig) wantNames(want ...string) {
	r.t.Helper()
	if got := r.names(); !slices.Equal(got, want) {
		r.t.Errorf("tools are %q, expected %q\nrecorded: %s", got, want, r.rec.text())
	}
}

// eventually polls with a deadline.
func eventually(is func() bool) bool {
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if is() {
			return true
		}
	}
	return is()
}

// logHas waits until the log of a fake server holds a text.
func logHas(t testing.TB, file, want string) {
	t.Helper()
	read := func() string {
		data, err := os.ReadFile(file)
		if err != nil {
			return ""
		}
		return string(data)
	}
	if !eventually(func() bool { return strings.Contains(read(), want) }) {
		t.Errorf("the server's log lacks %q:\n%s", want, read())
	}
}

func logFile(t testing.TB) string { return filepath.Join(t.TempDir(), "log") }
