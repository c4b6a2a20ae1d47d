package hookd_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/abhed/abhed/ahp/adapter/hosts"
	"github.com/abhed/abhed/internal/hookd"
	"github.com/abhed/abhed/internal/hookline"
)

// service runs a service in this process, at a short path. end ends it and returns its
// error.
func service(t *testing.T, o hookd.ServeOptions) (socket string, end func() error) {
	t.Helper()
	home, err := os.MkdirTemp("", "ahp")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	o.Judge.Home, o.Judge.Managed = home, filepath.Join(home, "managed.json")
	return serveAt(t, o)
}

func serveAt(t *testing.T, o hookd.ServeOptions) (socket string, end func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan struct{}), make(chan error, 1)
	o.Ready = func() { close(ready) }
	go func() { ended <- hookd.Serve(ctx, o) }()
	select {
	case <-ready:
	case err := <-ended:
		cancel()
		t.Fatal(err)
	}
	return hookline.Socket(filepath.Join(o.Judge.Home, ".local/state/ahp")), func() error {
		cancel()
		select {
		case err := <-ended:
			return err
		case <-time.After(20 * time.Second):
			return errors.New("the service didn't end")
		}
	}
}

func identity(t *testing.T) hookline.Identity {
	t.Helper()
	id, err := hookline.IdentityOf(exe(t))
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// TestMarkers holds that a hook passes on every variable by which a host is recognised:
// what forwards a call knows no host.
func TestMarkers(t *testing.T) {
	if got, want := hookline.Markers(), hosts.Markers(); !slices.Equal(got, want) {
		t.Errorf("a hook passes on %q, the adapters look at %q", got, want)
	}
}

// TestServeEnds holds that a service which is told to end leaves nothing, and that
// another can start at once.
func TestServeEnds(t *testing.T) {
	socket, end := service(t, hookd.ServeOptions{})
	home := strings.TrimSuffix(socket, "/.local/state/ahp/hook.sock")
	err := hookd.Serve(t.Context(), hookd.ServeOptions{Judge: hookd.Options{Home: home}})
	if !errors.Is(err, hookd.ErrRunning) {
		t.Errorf("a second service: %v", err)
	}
	info, err := os.Lstat(socket)
	if err != nil || info.Mode().Perm() != 0o600 || info.Mode().Type() != fs.ModeSocket {
		t.Errorf("the socket is %v, %v", info, err)
	}
	if err := end(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(socket); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket is there still: %v", err)
	}
	_, end = serveAt(t, hookd.ServeOptions{Judge: hookd.Options{Home: home}})
	if err := end(); err != nil {
		t.Error(err)
	}
}

// TestServeSparesAStrangersSocket holds that a service doesn't remove at its end what
// isn't its own.
func TestServeSparesAStrangersSocket(t *testing.T) {
	socket, end := service(t, hookd.ServeOptions{})
	if err := errors.Join(os.Remove(socket), os.WriteFile(socket, []byte("mine"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := end(); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(socket); err != nil || string(text) != "mine" {
		t.Errorf("found %q, %v", text, err)
	}
}

// TestPanicIsAnswered holds that a fault of this program's own is an answer, in words.
func TestPanicIsAnswered(t *testing.T) {
	w := newWorld(t, hookd.Options{LookupEnv: func(string) (string, bool) { panic("a broken table") }})
	w.register(`{"protocolVersion":"draft","hooks":[{"id":"com.example.b","transport":{"type":"http","url":"https://127.0.0.1:9/x"},"authentication":{"type":"bearer","tokenEnv":"ANY_TOKEN"},
"subscriptions":[{"events":["tool.before"],"mode":"intercept","timeoutMs":2000,"failurePolicy":"fail-closed","content":{"default":"body"}}]}]}`)
	a := w.do(hookd.Call{Data: bash("s", "t", "/tmp", "ls")})
	if text := said(a); a.Code != hookd.ExitDeny || strings.Contains(text, "goroutine ") || strings.Contains(text, ".go:") {
		t.Errorf("found %d\n%s", a.Code, text)
	}
	if e := w.last(); !strings.Contains(e.Problem+e.Reason, "a broken table") {
		t.Errorf("found %+v, expected what failed", e)
	}
}

// TestCallsWaitForTheirTurn holds that more calls than the bound wait, and are judged.
func TestCallsWaitForTheirTurn(t *testing.T) {
	socket, end := service(t, hookd.ServeOptions{MaxCalls: 1})
	home := strings.TrimSuffix(socket, "/.local/state/ahp/hook.sock")
	rules := filepath.Join(home, "rules.json")
	write(t, rules, `{"rules":{"deny":["bash(git push*)"]}}`)
	write(t, filepath.Join(home, ".config/ahp/registration.json"), fmt.Sprintf(`{"protocolVersion":"draft","hooks":[{"id":"com.example.rules","transport":{"type":"stdio","lifecycle":"per_event","command":%q,"args":["backend","rules","--rules",%q]},
"subscriptions":[{"events":["tool.before"],"mode":"intercept","timeoutMs":9000,"failurePolicy":"fail-closed","content":{"default":"body"}}]}]}`, exe(t), rules))
	done := make(chan error, 20)
	id := identity(t)
	for range cap(done) {
		go func() {
			a, err := hookline.Ask(socket, &hookline.Call{Host: "claude-code", Home: home, Data: bash("s", "t", "/tmp", "ls")}, id, time.Now().Add(20*time.Second))
			if err == nil && a.Code != hookd.ExitPass {
				err = fmt.Errorf("exit %d %s%s", a.Code, a.Stdout, a.Stderr)
			}
			done <- err
		}()
	}
	for range cap(done) {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if err := end(); err != nil {
		t.Error(err)
	}
}
