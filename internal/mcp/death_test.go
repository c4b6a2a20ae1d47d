package mcp_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/abhed/abhed/internal/mcp"
	"github.com/abhed/abhed/internal/require"
)

func TestCrashInACall(t *testing.T) {
	t.Parallel()
	s := server(t, "s", script{Tools: named("crash", "echo")})
	s.Env = append(s.Env, "FAKE_TOKEN=very-secret-token")
	r := start(t, mcp.Options{}, s)
	first := r.States()[0].Pid
	r.fails("mcp__s__crash", `{}`, "ended during the call: the process ended: exit code 3", "not known", "started again")
	if st := r.States()[0]; st.State != mcp.StateEnded || st.Pid != 0 || !strings.Contains(st.Error, "out of luck") {
		t.Errorf("state %+v", st)
	}
	r.works("mcp__s__echo", `{}`, "echo")
	if st := r.States()[0]; st.State != mcp.StateReady || st.Pid == first || st.Restarts != 1 {
		t.Errorf("state %+v", st)
	}
	r.noticed("out of luck, token [secret]", "started again (1 of at most 3")
	r.fails("mcp__s__crash", `{}`, "exit code 3")
	r.fails("mcp__s__crash", `{}`, "exit code 3")
	r.fails("mcp__s__crash", `{}`, "exit code 3")
	r.fails("mcp__s__echo", `{}`, "stays down for the rest of the session", "exit code 3")
	if st := r.States()[0]; st.State != mcp.StateFailed || st.Restarts != 3 {
		t.Errorf("state %+v", st)
	}
	if strings.Contains(r.rec.text(), "very-secret") {
		t.Error("a secret is recorded")
	}
}

// TestRestartsAreForgiven: a server that worked for long may end as often as it likes.
func TestRestartsAreForgiven(t *testing.T) {
	t.Parallel()
	r := start(t, mcp.Options{}, server(t, "s", script{Tools: named("crash", "echo")}))
	for range 2 {
		r.fails("mcp__s__crash", `{}`, "exit code 3")
	}
	r.works("mcp__s__echo", `{}`, "echo")
	for range 4 {
		r.Age(10 * time.Minute)
		r.fails("mcp__s__crash", `{}`, "exit code 3")
		if st := r.States()[0]; st.State != mcp.StateEnded {
			t.Errorf("state %+v", st)
		}
		r.works("mcp__s__echo", `{}`, "echo")
	}
	if st := r.States()[0]; st.Restarts != 6 {
		t.Errorf("state %+v", st)
	}
	r.Age(9 * time.Minute)
	r.fails("mcp__s__crash", `{}`, "exit code 3")
	r.fails("mcp__s__crash", `{}`, "exit code 3")
	r.fails("mcp__s__crash", `{}`, "exit code 3")
	r.fails("mcp__s__echo", `{}`, "stays down for the rest of the session")
}

func TestTimeoutAndInterrupt(t *testing.T) {
	t.Parallel()
	log := logFile(t)
	s := server(t, "s", script{Tools: named("hang", "echo"), Log: log})
	s.CallTimeout = 200 * time.Millisecond
	r := start(t, mcp.Options{}, s)
	if res := r.fails("mcp__s__hang", `{}`, "did not answer within 200ms"); !res.TimedOut {
		t.Error("the result doesn't say that it timed out")
	}
	logHas(t, log, "notifications/cancelled")
	r.works("mcp__s__echo", `{}`, "echo")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if res := r.runCtx(ctx, "mcp__s__echo", `{}`); !res.IsError {
		t.Errorf("an interrupted call gave %+v", res)
	}
}

func TestInterruptIsFast(t *testing.T) {
	t.Parallel()
	log := logFile(t)
	r := start(t, mcp.Options{}, server(t, "s", script{Tools: named("hang", "echo"), Log: log}))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan time.Time, 1)
	go func() {
		logHas(t, log, "tools/call")
		ended <- time.Now()
		cancel()
	}()
	res := r.runCtx(ctx, "mcp__s__hang", `{}`)
	if since := time.Since(<-ended); !res.IsError || !strings.Contains(res.Content, "interrupted") || since > 2*time.Second {
		t.Errorf("got %+v after %v", res, since)
	}
	logHas(t, log, "notifications/cancelled")
	r.works("mcp__s__echo", `{}`, "echo")
}

func TestCloseInACall(t *testing.T) {
	t.Parallel()
	log := logFile(t)
	r := start(t, mcp.Options{}, server(t, "s", script{Tools: named("hang"), Log: log, Stubborn: true}))
	go func() {
		logHas(t, log, "tools/call")
		r.Close()
	}()
	r.fails("mcp__s__hang", `{}`, "interrupted")
	r.Close()
	gone(t, pids(t, log)...)
	if strings.Contains(r.rec.text(), "ended") {
		t.Errorf("an ordinary end is recorded as a death: %s", r.rec.text())
	}
}

// TestLauncher is I185: nothing is left of a server that was started through a
// launcher, also if it ignores the end of its input.
func TestLauncher(t *testing.T) {
	t.Parallel()
	require.Path(t, "sh")
	for _, stubborn := range []bool{false, true} {
		t.Run(fmt.Sprintf("I185 stubborn %v", stubborn), func(t *testing.T) {
			t.Parallel()
			log := logFile(t)
			r := start(t, mcp.Options{}, launched(server(t, "s", script{Tools: named("echo"), Log: log, Stubborn: stubborn})))
			r.works("mcp__s__echo", `{}`, "echo")
			grandchild := pids(t, log)
			if len(grandchild) != 1 || grandchild[0] == r.States()[0].Pid {
				t.Fatalf("the server %v is no grandchild", grandchild)
			}
			r.Close()
			gone(t, grandchild...)
		})
	}
}

// TestLauncherDies is the sibling: the launcher ends, the server behind it goes on
// holding the pipes.
func TestLauncherDies(t *testing.T) {
	t.Parallel()
	require.Path(t, "sh")
	log := logFile(t)
	r := start(t, mcp.Options{}, launched(server(t, "s", script{Tools: named("echo"), Log: log, Stubborn: true})))
	pid := r.States()[0].Pid
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	gone(t, append(pids(t, log), pid)...)
	r.noticed("killed by SIGKILL")
	r.works("mcp__s__echo", `{}`, "echo")
}

// TestKilledParent is I185 for the harness itself: it gets SIGTERM or SIGKILL and no
// process of a server is left.
func TestKilledParent(t *testing.T) {
	t.Parallel()
	require.Path(t, "sh")
	if runtime.GOOS != "linux" {
		require.Missing(t, "procsys", "the death signal of a parent is a thing of Linux")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		t.Run("I185 "+sig.String(), func(t *testing.T) {
			t.Parallel()
			log := logFile(t)
			parent := exec.Command(self, parentArg, log)
			if err := parent.Start(); err != nil {
				t.Fatal(err)
			}
			logHas(t, log, "tools/list")
			var servers []int
			if !eventually(func() bool { servers = pids(t, log); return len(servers) == 2 }) {
				t.Errorf("servers %v, expected two", servers)
			}
			if err := parent.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			_ = parent.Wait() // it was killed
			gone(t, servers...)
		})
	}
}

// playParent is a harness that dies with its servers running.
func playParent(log string) {
	self, err := os.Executable()
	if err != nil {
		os.Exit(1)
	}
	direct := mcp.Server{Name: "direct", Command: self, Args: []string{serverArg, script{Tools: named("x"), Log: log, Stubborn: true}.arg()}}
	behind := launched(mcp.Server{Name: "behind", Command: self, Args: []string{serverArg, script{Tools: named("x"), Log: log}.arg()}, Env: []string{raceEnv}})
	if _, err := mcp.Start(context.Background(), []mcp.Server{direct, behind}, mcp.Options{}); err != nil {
		os.Exit(1)
	}
	for {
		time.Sleep(time.Hour)
	}
}

// launched starts a server through a shell that stays between.
func launched(s mcp.Server) mcp.Server {
	s.Args = append([]string{"-c", `"$@"; exit $?`, "sh", s.Command}, s.Args...)
	s.Command = "sh"
	return s
}

// pids returns the process ids that fake servers wrote into their log.
func pids(t testing.TB, log string) []int {
	t.Helper()
	data, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	var out []int
	for line := range strings.Lines(string(data)) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), "pid "); ok {
			if pid, err := strconv.Atoi(text); err == nil {
				out = append(out, pid)
			}
		}
	}
	if len(out) == 0 {
		t.Fatalf("no process id in the log %s", data)
	}
	return out
}

// gone waits until the processes are no more, zombies aside that somebody else has
// to reap.
func gone(t testing.TB, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		if !eventually(func() bool {
			stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
			if err != nil {
				return syscall.Kill(pid, 0) == syscall.ESRCH
			}
			return strings.Contains(string(stat), ") Z ")
		}) {
			t.Errorf("process %d still runs", pid)
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}
