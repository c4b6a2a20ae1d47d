package proc_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/abhed/abhed/internal/proc"
	"github.com/abhed/abhed/internal/require"
)

func TestMain(m *testing.M) {
	// The runtime's poller opens descriptors of its own at the first pipe; they would
	// count as a child's.
	if r, w, err := os.Pipe(); err == nil {
		r.SetReadDeadline(time.Now())
		r.Close()
		w.Close()
	}
	goleak.VerifyTestMain(m)
}

// start runs a shell script as a child that ends with the test, and checks that
// no descriptor is left behind.
func start(t *testing.T, script string, change ...func(*proc.Spec)) *proc.Child {
	t.Helper()
	spec := proc.Spec{Name: "child", Path: "sh", Args: []string{"-c", script}, Env: proc.Environ(nil)}
	for _, f := range change {
		f(&spec)
	}
	before := openFiles(t)
	c, err := proc.Start(spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Kill()
		if after := openFiles(t); after > before {
			t.Errorf("%d descriptors before the child, %d after", before, after)
		}
	})
	return c
}

func openFiles(t *testing.T) int {
	t.Helper()
	names, err := os.ReadDir("/dev/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}

func limit(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func readAll(t *testing.T, c *proc.Child) string {
	t.Helper()
	ctx := limit(t, 10*time.Second)
	var all []byte
	for {
		p, err := c.Read(ctx)
		all = append(all, p...)
		if err == io.EOF {
			return string(all)
		}
		if err != nil {
			t.Fatalf("after %d bytes: %v", len(all), err)
		}
	}
}

func readLine(t *testing.T, c *proc.Child) string {
	t.Helper()
	ctx := limit(t, 10*time.Second)
	var all []byte
	for !bytes.HasSuffix(all, []byte("\n")) {
		p, err := c.Read(ctx)
		if err != nil {
			t.Fatalf("after %q: %v", all, err)
		}
		all = append(all, p...)
	}
	return strings.TrimSpace(string(all))
}

func pids(t *testing.T, line string) []int {
	t.Helper()
	var list []int
	for _, f := range strings.Fields(line) {
		n, err := strconv.Atoi(f)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, n)
	}
	return list
}

// mustEnd fails unless the process ends (or is a zombie of someone else's) soon.
func mustEnd(t *testing.T, pid int) {
	t.Helper()
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err == nil && !bytes.Contains(data, []byte(") Z ")) {
			continue
		}
		if err == nil || syscall.Kill(pid, 0) == syscall.ESRCH {
			return
		}
	}
	syscall.Kill(pid, syscall.SIGKILL)
	t.Errorf("process %d outlived the child", pid)
}

func TestEchoAndExitCode(t *testing.T) {
	c := start(t, `read a; echo "got $a"; echo oops >&2; exit 3`)
	if err := c.Write(limit(t, time.Second), []byte("hello\n")); err != nil {
		t.Fatal(err)
	}
	if out := readAll(t, c); out != "got hello\n" {
		t.Errorf("output %q", out)
	}
	<-c.Done()
	if e := c.Exit(); e.Code != 3 || e.Signal != 0 || e.Err != nil || e.String() != "exit code 3" {
		t.Errorf("exit %+v, %s", e, e)
	}
	if e := c.Stop(); e.Code != 3 {
		t.Errorf("Stop = %v, want the exit code of the process that had ended", e)
	}
	if tail := c.StderrTail(); tail != "oops\n" {
		t.Errorf("tail of standard error %q", tail)
	}
}

func TestExitBySignal(t *testing.T) {
	c := start(t, `kill -SEGV $$`)
	<-c.Done()
	if e := c.Exit(); e.Signal != syscall.SIGSEGV || e.Code != -1 || e.String() != "killed by SIGSEGV" {
		t.Errorf("exit %+v, %s", e, e)
	}
}

func TestExitWhileRunningSaysSo(t *testing.T) {
	c := start(t, `read x`)
	if e := c.Exit(); e.Err == nil {
		t.Errorf("exit of a running process: %v", e)
	}
}

func TestStartErrors(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "plain")
	if err := os.WriteFile(file, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	env := []string{"PATH=/usr/bin:/bin"}
	for _, tt := range []struct {
		about string
		spec  proc.Spec
		want  string
	}{
		{"no program", proc.Spec{}, "no program given"},
		{"not in PATH", proc.Spec{Path: "no-such-thing", Env: env}, "no such program in the 2 folders of PATH"},
		{"no PATH", proc.Spec{Path: "sh"}, "0 folders of PATH"},
		{"relative PATH", proc.Spec{Path: "plain", Env: []string{"PATH=."}, Dir: dir}, "no such program"},
		{"not executable", proc.Spec{Path: file}, "permission denied"},
		{"missing", proc.Spec{Path: dir + "/none"}, "no such file"},
		{"no folder", proc.Spec{Path: "/bin/sh", Dir: dir + "/none"}, "working directory"},
		{"folder is a file", proc.Spec{Path: "/bin/sh", Dir: file}, "not a folder"},
		{"bad environment", proc.Spec{Path: "/bin/sh", Env: []string{"A=1", "secret"}}, "environment entry 1"},
		{"NUL in value", proc.Spec{Path: "/bin/sh", Env: []string{"A=se\x00cret"}}, `"A" holds a NUL`},
		{"NUL in argument", proc.Spec{Path: "/bin/sh", Args: []string{"a\x00b"}}, "NUL byte in an argument"},
	} {
		t.Run(tt.about, func(t *testing.T) {
			before := openFiles(t)
			_, err := proc.Start(tt.spec)
			var start *proc.StartError
			if !errors.As(err, &start) || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("error %v, want a *StartError with %q", err, tt.want)
			}
			if strings.Contains(err.Error(), "cret") && !strings.Contains(tt.want, "cret") {
				t.Errorf("the error shows a value: %v", err)
			}
			if after := openFiles(t); after != before {
				t.Errorf("%d descriptors before, %d after", before, after)
			}
		})
	}
}

func TestRelativePathStartsAtDir(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink("/bin/sh", filepath.Join(dir, "shell")); err != nil {
		t.Fatal(err)
	}
	c := start(t, `pwd`, func(s *proc.Spec) { s.Path, s.Dir = "./shell", dir })
	if out := readAll(t, c); strings.TrimSpace(out) != dir {
		t.Errorf("ran in %q, want %q", out, dir)
	}
}

func TestEnviron(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "sk-1")
	t.Setenv("ABHED_MODEL", "m")
	t.Setenv("LC_ALL", "C")
	t.Setenv("XDG_CACHE_HOME", "/c")
	env := proc.Environ([]string{"A=1", "A=2", "LC_ALL=C.UTF-8", "LANGUAGE=x"})
	joined := "\n" + strings.Join(env, "\n") + "\n"
	for _, want := range []string{"\nA=2\n", "\nLC_ALL=C.UTF-8\n", "\nXDG_CACHE_HOME=/c\n", "\nLANGUAGE=x\n", "\nPATH="} {
		if !strings.Contains(joined, want) {
			t.Errorf("%q is missing in %q", want, env)
		}
	}
	for _, bad := range []string{"sk-1", "ABHED_", "A=1"} {
		if strings.Contains(joined, bad) {
			t.Errorf("%q got through: %q", bad, env)
		}
	}
	if !slices.IsSorted(env) {
		t.Errorf("not sorted: %q", env)
	}
	c := start(t, `env`, func(s *proc.Spec) { s.Env = []string{"PATH=/usr/bin:/bin", "ONLY=1"} })
	if out := readAll(t, c); !strings.Contains(out, "ONLY=1") || strings.Contains(out, "HOME=") {
		t.Errorf("the child's environment is not the given one: %q", out)
	}
}

func TestReadWaitIsAbandonedWithoutLoss(t *testing.T) {
	c := start(t, `read a; printf 'abc'; read b; printf 'def'`)
	for range 20 {
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		if p, err := c.Read(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Read = %q, %v", p, err)
		}
		cancel()
	}
	ctx := limit(t, 5*time.Second)
	if err := c.Write(ctx, []byte("\n\n")); err != nil {
		t.Fatal(err)
	}
	if out := readAll(t, c); out != "abcdef" {
		t.Errorf("output %q", out)
	}
}

func TestWriteThatDoesNotFinishBreaksTheChild(t *testing.T) {
	c := start(t, `sleep 60`)
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	err := c.Write(ctx, make([]byte, 1<<20))
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "of 1048576 bytes written") {
		t.Fatalf("first write: %v", err)
	}
	if err := c.Write(context.Background(), []byte("x")); !errors.Is(err, proc.ErrBroken) {
		t.Fatalf("second write: %v", err)
	}
}

func TestWriteWithDeadContextDoesNoHarm(t *testing.T) {
	c := start(t, `cat`)
	dead, cancel := context.WithCancel(context.Background())
	cancel()
	if err := c.Write(dead, []byte("lost")); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if err := c.Write(limit(t, time.Second), []byte("kept")); err != nil {
		t.Fatal(err)
	}
	c.CloseInput()
	if out := readAll(t, c); out != "kept" {
		t.Errorf("output %q", out)
	}
	if err := c.Write(context.Background(), []byte("x")); !errors.Is(err, proc.ErrInputClosed) {
		t.Errorf("write after CloseInput: %v", err)
	}
}

func TestConcurrentWritesStayWhole(t *testing.T) {
	c := start(t, `cat`)
	ctx := limit(t, 20*time.Second)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			line := append(bytes.Repeat([]byte{byte('a' + i)}, 100_000), '\n')
			for range 5 {
				if err := c.Write(ctx, line); err != nil {
					t.Error(err)
				}
			}
		})
	}
	go func() { wg.Wait(); c.CloseInput() }()
	lines := strings.Split(strings.TrimSuffix(readAll(t, c), "\n"), "\n")
	if len(lines) != 40 {
		t.Fatalf("%d lines, want 40", len(lines))
	}
	for _, l := range lines {
		if len(l) != 100_000 || strings.Trim(l, l[:1]) != "" {
			t.Fatal("two writes were mixed")
		}
	}
}

func TestUnreadChildIsHeldBack(t *testing.T) {
	c := start(t, `i=0; while :; do echo "line $i"; i=$((i+1)); done`)
	if p, err := c.Read(limit(t, 5*time.Second)); err != nil || len(p) > 64<<10 {
		t.Fatalf("%d bytes, %v", len(p), err)
	}
	if e := c.Kill(); e.Signal != syscall.SIGKILL {
		t.Fatalf("Kill = %v", e)
	}
	if rest := readAll(t, c); len(rest) > 1<<20 {
		t.Errorf("%d bytes were held", len(rest))
	}
}

func TestOutputStaysReadableAfterKill(t *testing.T) {
	c := start(t, `echo last words; echo done >&2; sleep 60`)
	for c.StderrTail() == "" {
		time.Sleep(time.Millisecond)
	}
	c.Kill()
	if out := readAll(t, c); out != "last words\n" {
		t.Errorf("output %q", out)
	}
}

func TestStderrLinesAndTail(t *testing.T) {
	var lines []string
	c := start(t, `printf 'a\r\n' >&2; head -c 10000 /dev/zero | tr '\0' x >&2; printf '\nlast\377' >&2`, func(s *proc.Spec) {
		s.OnStderr = func(l string) { lines = append(lines, l) }
		s.StderrTail = 8
	})
	readAll(t, c)
	c.Stop()
	if len(lines) != 3 || lines[0] != "a" || !strings.HasPrefix(lines[1], strings.Repeat("x", 4096)+" …") || lines[2] != "last\uFFFD" {
		t.Errorf("%d lines: %.20q", len(lines), lines)
	}
	if tail := c.StderrTail(); tail != "xx\nlast\uFFFD" {
		t.Errorf("tail %q, want the last 8 bytes", tail)
	}
}

func TestMergeStderrKeepsOrder(t *testing.T) {
	c := start(t, `echo 1; echo 2 >&2; echo 3`, func(s *proc.Spec) { s.MergeStderr, s.NoInput = true, true })
	if out := readAll(t, c); out != "1\n2\n3\n" {
		t.Errorf("output %q", out)
	}
}

func TestNoInputAndNoTerminal(t *testing.T) {
	c := start(t, `read x || echo eof; (exec </dev/tty) 2>/dev/null || echo no tty`, func(s *proc.Spec) { s.NoInput = true })
	if out := readAll(t, c); out != "eof\nno tty\n" {
		t.Errorf("output %q", out)
	}
}

func TestExtraFiles(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	c := start(t, `echo extra >&3; echo plain`, func(s *proc.Spec) { s.Extra = []*os.File{w} })
	w.Close()
	if out := readAll(t, c); out != "plain\n" {
		t.Errorf("output %q", out)
	}
	if data, err := io.ReadAll(r); err != nil || string(data) != "extra\n" {
		t.Errorf("descriptor 3 got %q, %v", data, err)
	}
}

func TestStopIsPolite(t *testing.T) {
	c := start(t, `while read x; do :; done; exit 7`)
	if e := c.Stop(); e.Code != 7 {
		t.Errorf("Stop = %v, want the exit code that follows the end of input", e)
	}
	c = start(t, `trap 'exit 5' TERM; while :; do sleep 0.01; done`, func(s *proc.Spec) { s.NoInput = true; s.Grace = 5 * time.Second })
	time.Sleep(50 * time.Millisecond) // let the trap be set: no sign of it can be seen
	if e := c.Stop(); e.Code != 5 && e.Signal != syscall.SIGTERM {
		t.Errorf("Stop = %v, want SIGTERM to have been handled", e)
	}
}

func TestStopKillsTheStubborn(t *testing.T) {
	c := start(t, `trap '' TERM; echo ready; while :; do sleep 60; done`, func(s *proc.Spec) { s.Grace = 100 * time.Millisecond })
	readLine(t, c)
	begin := time.Now()
	if e := c.Stop(); e.Signal != syscall.SIGKILL {
		t.Errorf("Stop = %v", e)
	}
	if took := time.Since(begin); took > 2*time.Second {
		t.Errorf("took %v", took)
	}
}

func TestKillCutsStopShort(t *testing.T) {
	c := start(t, `trap '' TERM; echo ready; while :; do sleep 60; done`, func(s *proc.Spec) { s.Grace = time.Minute })
	readLine(t, c)
	begin := time.Now()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() { c.Stop() })
	}
	wg.Go(func() { c.Kill() })
	wg.Wait()
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
}

// TestNoDescendantSurvives is about children that try to get away.
func TestNoDescendantSurvives(t *testing.T) {
	for _, tt := range []struct {
		about, script string
		setsid        bool
	}{
		{"background child", `sleep 300 & echo $!; sleep 300`, false},
		{"group leader gone", `sleep 300 & echo $!`, false},
		{"ignores TERM", `(trap '' TERM; while :; do sleep 300; done) & echo $!; wait`, false},
		{"own session", `setsid sh -c 'echo $$; sleep 300' & wait`, true},
		{"own session, orphaned, keeps the pipe", `setsid sh -c 'echo $$; exec sleep 300' & exit 0`, true},
		{"own session, orphaned, keeps the error pipe", `setsid sh -c 'echo $$; exec sleep 300 >/dev/null' & exit 0`, true},
		{"session in a session", `setsid sh -c 'setsid sh -c "echo \$\$; sleep 300"; :' & wait`, true},
		{"job control group, pipes closed", `set -m; sleep 300 >/dev/null 2>&1 & echo $!`, false},
	} {
		t.Run(tt.about, func(t *testing.T) {
			if tt.setsid {
				require.Path(t, "setsid")
			}
			c := start(t, tt.script, func(s *proc.Spec) { s.Grace = 50 * time.Millisecond })
			list := pids(t, readLine(t, c))
			if len(list) != 1 || syscall.Kill(list[0], 0) != nil {
				t.Fatalf("the descendant %v is not there to begin with", list)
			}
			c.Stop()
			mustEnd(t, list[0])
			mustEnd(t, c.Pid())
		})
	}
}

func TestForkingTreeIsKilled(t *testing.T) {
	marker := fmt.Sprintf("%d.5", 100000+os.Getpid())
	c := start(t, `spawn() { while :; do sleep `+marker+` & sleep 0.01; done; }; spawn & spawn & echo ready; wait`)
	readLine(t, c)
	c.Kill()
	for end := time.Now().Add(3 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		left := 0
		files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, f := range files {
			if data, err := os.ReadFile(f); err == nil && bytes.Contains(data, []byte(marker)) {
				left++
			}
		}
		if left == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d processes of the tree live on", left)
		}
	}
}

func TestOthersAreLeftAlone(t *testing.T) {
	other := start(t, `sleep 300`)
	victim := start(t, `sleep 300 & wait`)
	victim.Kill()
	if err := syscall.Kill(other.Pid(), 0); err != nil || other.Exit().Err == nil {
		t.Error("a child that has nothing to do with the killed one is gone")
	}
	if e := other.Exit(); e.Err == nil {
		t.Errorf("other ended: %v", e)
	}
}

// TestParentDeath runs this test binary as the parent of a sleeping child and kills it.
func TestParentDeath(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("the death signal of a parent is Linux's")
	}
	if os.Getenv("PROC_TEST_PARENT") != "" {
		c, err := proc.Start(proc.Spec{Path: "/bin/sleep", Args: []string{"300"}})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println("child", c.Pid())
		time.Sleep(time.Minute)
		return
	}
	c, err := proc.Start(proc.Spec{Path: os.Args[0], Args: []string{"-test.run=^TestParentDeath$"},
		Env: append(os.Environ(), "PROC_TEST_PARENT=1")})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Kill()
	line := readLine(t, c)
	list := pids(t, strings.TrimPrefix(line, "child "))
	syscall.Kill(c.Pid(), syscall.SIGKILL)
	mustEnd(t, list[0])
}

func BenchmarkRoundTrip(b *testing.B) {
	c, err := proc.Start(proc.Spec{Path: "cat", Env: proc.Environ(nil)})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Kill()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for b.Loop() {
		if err := c.Write(ctx, []byte("{}\n")); err != nil {
			b.Fatal(err)
		}
		if _, err := c.Read(ctx); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkStartStop(b *testing.B) {
	for b.Loop() {
		c, err := proc.Start(proc.Spec{Path: "/bin/true", NoInput: true})
		if err != nil {
			b.Fatal(err)
		}
		<-c.Done()
		c.Stop()
	}
}
