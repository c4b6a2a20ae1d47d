package main

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/abhed/abhed/internal/hookd"
	"github.com/abhed/abhed/internal/hookline"
)

// status returns what the service says of itself, nil if there is none.
func (a *account) status() *hookd.Status {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	st, err := hookd.Control(ctx, a.socket, false)
	if err != nil {
		return nil
	}
	return st
}

// calls returns how many calls the service has judged.
func (a *account) calls() int64 {
	a.t.Helper()
	st := a.status()
	if st == nil {
		a.t.Fatal("no service runs")
	}
	return st.Calls
}

func TestVerdictWithAndWithoutService(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	a.wantVerdicts("--no-service")
	if st := a.status(); st != nil {
		t.Fatalf("--no-service started process %d", st.PID)
	}
	a.daemon(a.ahp)
	a.wantVerdicts()
	if got := a.calls(); got != 2 {
		t.Errorf("the service judged %d calls, expected both", got)
	}
	a.wantVerdicts("--no-service")
	if got := a.calls(); got != 2 {
		t.Errorf("the service judged %d calls, expected none with --no-service", got)
	}
}

// TestHookStartsTheService holds that the first hook starts the service, that no
// descriptor of the hook is open in it, and that it is in a session of its own: a host
// that waits for the end of the hook's output gets it.
func TestHookStartsTheService(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd := a.command(hookRun{stdin: strings.NewReader(bashCall("s", "ls", 1))})
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = w, w, []*os.File{w} // the third is one that the host left open
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	_ = r.SetReadDeadline(time.Now().Add(40 * time.Second))
	if n, err := r.Read(make([]byte, 10)); n != 0 || err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("found %d bytes, %v; expected the end", n, err)
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != hookline.ExitPass {
		t.Errorf("the hook: %v", err)
	}
	a.until("a service", func() bool { return a.status() != nil })
	st := a.status()
	if st.Program != a.ahp {
		t.Errorf("the service is %s, expected %s", st.Program, a.ahp)
	}
	if sid, _, e := syscall.RawSyscall(syscall.SYS_GETSID, uintptr(st.PID), 0, 0); e != 0 || int(sid) != st.PID {
		t.Errorf("the service is in session %d, %v; expected one of its own, %d", sid, e, st.PID)
	}
	a.wantVerdicts()
	if got := a.calls(); got != 2 {
		t.Errorf("the service judged %d calls, expected 2", got)
	}
}

// TestStrangeSockets holds that nobody is asked who could be somebody else, and that
// the verdict is the same then.
func TestStrangeSockets(t *testing.T) {
	t.Parallel()
	for name, arrange := range map[string]func(t *testing.T, a *account, listening string) error{
		"another account's": func(t *testing.T, a *account, l string) error {
			return errors.Join(os.Chown(l, 1, 1), os.Rename(l, a.socket))
		},
		"open to others": func(t *testing.T, a *account, l string) error {
			return errors.Join(os.Chmod(l, 0o660), os.Rename(l, a.socket))
		},
		"a link":   func(t *testing.T, a *account, l string) error { return os.Symlink(l, a.socket) },
		"a file":   func(t *testing.T, a *account, l string) error { return os.WriteFile(a.socket, nil, 0o600) },
		"a folder": func(t *testing.T, a *account, l string) error { return os.Mkdir(a.socket, 0o700) },
		"in another account's place": func(t *testing.T, a *account, l string) error {
			return errors.Join(os.Rename(l, a.socket), os.Chown(a.state, 1, 1))
		},
		"in a place open to others": func(t *testing.T, a *account, l string) error {
			return errors.Join(os.Rename(l, a.socket), os.Chmod(a.state, 0o755))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if strings.Contains(name, "account") && os.Getuid() != 0 {
				return // only root gives a file away
			}
			a := newAccount(t)
			if err := os.MkdirAll(a.state, 0o700); err != nil {
				t.Fatal(err)
			}
			asked := lurk(t, filepath.Join(a.dir, "l"))
			if err := arrange(t, a, filepath.Join(a.dir, "l")); err != nil {
				t.Fatal(err)
			}
			if got := a.judge("git push origin"); got.code != hookline.ExitDeny || got.stdout == "" {
				t.Errorf("found %+v, expected a refusal", got)
			}
			if !strings.Contains(name, "place") { // a folder that isn't the account's alone is refused for the state as well
				if got := a.judge("ls"); got.code != hookline.ExitPass {
					t.Errorf("found %+v, expected a pass", got)
				}
			}
			if n := asked.Load(); n != 0 {
				t.Errorf("it was asked %d times", n)
			}
		})
	}
}

// lurk listens and lets everything pass. It returns how often it was asked.
func lurk(t *testing.T, path string) *atomic.Int32 {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	t.Cleanup(func() { l.Close() })
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int32
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			asked.Add(1)
			_, _ = hookline.ReadFrame(c, hookline.MaxEvent)
			_, _ = c.Write(append([]byte{hookline.Taken}, hookline.EncodeAnswer(hookline.Answer{Code: hookline.ExitPass})...))
			c.Close()
		}
	}()
	return &asked
}

// TestLurk holds that the test above would notice: such a listener is asked where it is
// this account's own.
func TestLurk(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	if err := os.MkdirAll(a.state, 0o700); err != nil {
		t.Fatal(err)
	}
	asked := lurk(t, a.socket)
	if got := a.judge("git push origin"); got.code != hookline.ExitPass || asked.Load() != 1 {
		t.Errorf("found %+v after %d questions", got, asked.Load())
	}
}

// TestStaleSocket holds that a socket of a service that was killed leads to a new one.
func TestStaleSocket(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	old := a.daemon(a.ahp)
	a.wantVerdicts()
	if err := errors.Join(old.Process.Kill(), waitKilled(old)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(a.socket); err != nil {
		t.Fatalf("a killed service took its socket along: %v", err)
	}
	a.wantVerdicts()
	a.until("a new service", func() bool { return a.status() != nil })
	a.wantVerdicts()
	if st := a.status(); st == nil || st.PID == old.Process.Pid || st.Calls < 2 {
		t.Errorf("found %+v, expected a new service that judges", st)
	}
}

// waitKilled waits for a process that was killed.
func waitKilled(c *exec.Cmd) error {
	err := c.Wait()
	if s, is := c.ProcessState.Sys().(syscall.WaitStatus); is && s.Signaled() {
		return nil
	}
	return err
}

// TestKilledDuringACall holds that a hook whose service dies comes to the verdict by
// itself.
func TestKilledDuringACall(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	reg := a.script("hangs-once", "persistent", `while IFS= read -r line; do
	if mkdir "$dir/hung" 2>/dev/null; then exec sleep 1000; fi
	answer '{"type":"deny","reason":"second"}'
done`)
	service := a.daemon(a.ahp)
	cmd := a.command(hookRun{registration: reg, stdin: strings.NewReader(bashCall("s", "ls", 1))})
	var errs strings.Builder
	cmd.Stdout, cmd.Stderr = &errs, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	a.until("the backend hangs", func() bool { _, err := os.Stat(filepath.Join(a.dir, "hung")); return err == nil })
	if err := errors.Join(service.Process.Kill(), waitKilled(service)); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if cmd.ProcessState.ExitCode() != hookline.ExitDeny || !strings.Contains(errs.String(), "second") {
		t.Errorf("found exit %d\n%s", cmd.ProcessState.ExitCode(), &errs)
	}
}

func TestOneServiceAtATime(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	a.daemon(a.ahp)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, a.ahp, "daemon", "run", "--home", a.home).CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != exitFailed || !strings.Contains(string(out), "another service runs already") {
		t.Errorf("found %v\n%s", err, out)
	}
	a.wantVerdicts()
	if got := a.calls(); got != 2 {
		t.Errorf("the first service judged %d calls, expected 2", got)
	}
}

// TestIdleEnd holds that nothing stays: no process of the service or of a backend, no
// socket.
func TestIdleEnd(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	reg := a.script("stays", "persistent", `echo $$ >"$dir/pid"
while IFS= read -r line; do answer; done`)
	service := a.daemon(a.ahp, "--idle", "700ms")
	if got := a.hook(hookRun{registration: reg, stdin: strings.NewReader(bashCall("s", "ls", 1))}); got.code != hookline.ExitPass {
		t.Fatalf("found %+v", got)
	}
	pid := a.pid("pid")
	if err := service.Wait(); err != nil {
		t.Errorf("the service ended with %v", err)
	}
	if _, err := os.Lstat(a.socket); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket is there still: %v", err)
	}
	if err := syscall.Kill(pid, 0); err != syscall.ESRCH {
		t.Errorf("the backend is there still: %v", err)
	}
}

func TestStop(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	reg := a.script("stays", "persistent", `echo $$ >"$dir/pid"
while IFS= read -r line; do answer; done`)
	service := a.daemon(a.ahp)
	if got := a.hook(hookRun{registration: reg, stdin: strings.NewReader(bashCall("s", "ls", 1))}); got.code != hookline.ExitPass {
		t.Fatalf("found %+v", got)
	}
	pid := a.pid("pid")
	if out, err := exec.Command(a.ahp, "daemon", "stop", "--home", a.home).CombinedOutput(); err != nil || !strings.Contains(string(out), "it ends now") {
		t.Errorf("found %v\n%s", err, out)
	}
	if err := service.Wait(); err != nil {
		t.Errorf("the service ended with %v", err)
	}
	if err := syscall.Kill(pid, 0); err != syscall.ESRCH {
		t.Errorf("the backend is there still: %v", err)
	}
	out, err := exec.Command(a.ahp, "daemon", "status", "--home", a.home).CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != exitNegative || !strings.Contains(string(out), "no service runs") {
		t.Errorf("found %v\n%s", err, out)
	}
}
