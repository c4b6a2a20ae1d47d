package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/abhed/abhed/internal/hookline"
)

// pid reads a number that a script has written.
func (a *account) pid(name string) int {
	a.t.Helper()
	text, err := os.ReadFile(filepath.Join(a.dir, name))
	if err != nil {
		a.t.Fatal(err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		a.t.Fatal(err)
	}
	return n
}

// waits is a script that says when it was asked, and answers what is slow only once the
// test has opened the gate.
const waits = `while IFS= read -r line; do
	case $line in *slow*)
		echo asked >>"$dir/asked"
		read -r _ <"$dir/gate" ;;
	esac
	answer
done`

// gate makes what the script waits at, and returns what opens it.
func (a *account) gate() (open func()) {
	a.t.Helper()
	path := filepath.Join(a.dir, "gate")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		a.t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(func() { f.Close() })
	return func() { fmt.Fprintln(f, "go on") }
}

func (a *account) asked() bool {
	_, err := os.Stat(filepath.Join(a.dir, "asked"))
	return err == nil
}

// start starts a hook and returns what waits for its end.
func (a *account) start(h hookRun) (wait func() result) {
	a.t.Helper()
	cmd := a.command(h)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		a.t.Fatal(err)
	}
	return sync.OnceValue(func() result {
		_ = cmd.Wait()
		return result{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
	})
}

// TestSessionsDontWait holds that a session with a slow backend holds no other up: the
// other's call comes to its end while the first is asked still.
func TestSessionsDontWait(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	reg, open := a.script("waits", "persistent", waits), a.gate()
	a.daemon(a.ahp)
	first := a.start(hookRun{registration: reg, stdin: strings.NewReader(bashCall("one", "slow", 1))})
	a.until("the backend is asked", a.asked)
	for n := range 3 {
		if got := a.hook(hookRun{registration: reg, stdin: strings.NewReader(bashCall("two", "ls", n))}); got.code != hookline.ExitPass {
			t.Errorf("another session: %+v", got)
		}
	}
	if st := a.status(); st == nil || st.Active != 1 || st.Calls != 3 {
		t.Errorf("found %+v, expected the first call under way and three judged", st)
	}
	open()
	if got := first(); got.code != hookline.ExitPass {
		t.Errorf("the first session: %+v", got)
	}
}

// TestHandover holds that a newer program takes the service over: the call that is
// under way gets its answer from the old one, which ends then.
func TestHandover(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	reg, open := a.script("waits", "persistent", waits), a.gate()
	newer := program(t, filepath.Join(a.dir, "newer", "ahp"))
	if err := os.Remove(a.ahp); err != nil {
		t.Fatal(err)
	}
	program(t, a.ahp) // a file of its own, whose time can be changed
	if err := os.Chtimes(a.ahp, time.Time{}, time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	old := a.daemon(a.ahp)
	first := a.start(hookRun{registration: reg, stdin: strings.NewReader(bashCall("one", "slow", 1))})
	a.until("the backend is asked", a.asked)

	call := hookRun{program: newer, registration: reg, stdin: strings.NewReader(bashCall("two", "ls", 2))}
	if got := a.hook(call); got.code != hookline.ExitPass {
		t.Errorf("the newer program's call: %+v", got)
	}
	if st := a.status(); st != nil && st.PID == old.Process.Pid {
		t.Error("the old service takes calls still")
	}
	call.stdin = strings.NewReader(bashCall("two", "ls", 3))
	if got := a.hook(call); got.code != hookline.ExitPass {
		t.Errorf("the newer program's next call: %+v", got)
	}
	a.until("the newer service", func() bool { st := a.status(); return st != nil && st.Program == newer })
	if err := syscall.Kill(old.Process.Pid, 0); err != nil {
		t.Errorf("the old service ended during a call: %v", err)
	}
	open()
	if got := first(); got.code != hookline.ExitPass {
		t.Errorf("the call under way: %+v", got)
	}
	if err := old.Wait(); err != nil {
		t.Errorf("the old service ended with %v", err)
	}

	before := a.status()
	call = hookRun{registration: reg, stdin: strings.NewReader(bashCall("three", "ls", 4))} // of the older program
	if got := a.hook(call); got.code != hookline.ExitPass {
		t.Errorf("the older program's call: %+v", got)
	}
	if after := a.status(); after == nil || after.PID != before.PID || after.Calls != before.Calls {
		t.Errorf("an older program's call: found %+v, expected %+v as it was", after, before)
	}
}

// TestFrames holds that nothing which a connection brings keeps the service from
// judging.
func TestFrames(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	service := a.daemon(a.ahp)
	id, err := hookline.IdentityOf(a.ahp)
	if err != nil {
		t.Fatal(err)
	}
	whole := hookline.EncodeCall(&hookline.Call{Host: "claude-code", Data: []byte("{}")}, id)
	huge := hookline.AppendFrame(nil, []byte("ahp-hook 3"), make([]byte, 2<<20))
	for name, sent := range map[string][]byte{
		"nothing": nil, "garbage": []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), "zeros": make([]byte, 4096), "truncated": whole[:len(whole)-1],
		"a huge length": {0, 0, 0, 1, 255, 255, 255, 255}, "many fields": {255, 255, 255, 255}, "a huge field": huge,
		"another control": hookline.AppendFrame(nil, []byte("ahp-control 1")), "half a call": hookline.AppendFrame(nil, []byte("ahp-hook 3"), []byte("1 2 3 /x")),
	} {
		c, err := net.Dial("unix", a.socket)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = c.Write(sent)
		_ = c.(*net.UnixConn).CloseWrite()
		_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
		if n, err := c.Read(make([]byte, 1)); n != 0 || os.IsTimeout(err) {
			t.Errorf("%s: found %d bytes, %v; expected the end", name, n, err)
		}
		c.Close()
	}
	slow, err := net.Dial("unix", a.socket) // it says nothing more for the whole test
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	if _, err := slow.Write(whole[:10]); err != nil {
		t.Fatal(err)
	}
	a.wantVerdicts()
	if st := a.status(); st == nil || st.PID != service.Process.Pid || st.Calls != 2 {
		t.Errorf("found %+v, expected process %d with two calls", st, service.Process.Pid)
	}
}

// TestManyClients holds that each of many callers at a time gets its own answer.
func TestManyClients(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	a.daemon(a.ahp)
	id, err := hookline.IdentityOf(a.ahp)
	if err != nil {
		t.Fatal(err)
	}
	const n = 300
	var all sync.WaitGroup
	begin := make(chan struct{})
	for i := range n {
		all.Go(func() {
			command, want := "ls", hookline.ExitPass
			if i%3 == 0 {
				command, want = fmt.Sprintf("git push number-%d", i), hookline.ExitDeny
			}
			c := &hookline.Call{Host: "claude-code", Home: a.home, Registration: a.registration, Dir: "/tmp", Limit: time.Minute, Data: []byte(bashCall(fmt.Sprint("s", i%7), command, i))}
			<-begin
			got, err := hookline.Ask(a.socket, c, id, time.Now().Add(time.Minute))
			if err != nil || got.Code != want || want == hookline.ExitDeny && !strings.Contains(string(got.Stdout), "git push") {
				t.Errorf("%s: found %d with %.300s, %v; expected %d", command, got.Code, got.Stdout, err, want)
			}
		})
	}
	close(begin)
	all.Wait()
	if got := a.calls(); got != n {
		t.Errorf("the service judged %d calls, expected %d", got, n)
	}
}

// TestNothingLargeIsInitialised holds that a hook which the service answers ends before
// the packages that judge are initialised.
func TestNothingLargeIsInitialised(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	a.daemon(a.ahp)
	run := func(args ...string) string {
		cmd := a.command(hookRun{stdin: strings.NewReader(bashCall("s", "ls", 1)), args: args, env: []string{"GODEBUG=inittrace=1"}})
		var errs bytes.Buffer
		cmd.Stderr = &errs
		if _, is := cmd.Run().(*exec.ExitError); !is || cmd.ProcessState.ExitCode() != hookline.ExitPass {
			t.Fatalf("exit %d\n%s", cmd.ProcessState.ExitCode(), &errs)
		}
		return errs.String()
	}
	warm, own := run(), run("--no-service")
	for _, name := range []string{"net/http", "github.com/abhed/abhed/ahp", "github.com/abhed/abhed/internal/policy", "mvdan.cc/sh/v3/fileutil", "github.com/go-json-experiment/json"} {
		if strings.Contains(warm, "init "+name+" @") {
			t.Errorf("%s is initialised before the service is asked", name)
		}
		if !strings.Contains(own, "init "+name+" @") {
			t.Errorf("%s isn't initialised at all: this test would not notice", name)
		}
	}
}
