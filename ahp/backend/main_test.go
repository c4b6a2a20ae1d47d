package backend_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/backend"
)

// noisy prints to standard output, in both ways that a handler can, and takes its
// time where the command says so.
func noisy(_ context.Context, q *ahp.Intercept) ([]ahp.Effect, error) {
	fmt.Println("a banner")
	fmt.Fprintln(os.Stdout, "another")
	if strings.Contains(string(q.Event.Tool.Input), "slow") {
		fmt.Fprintln(os.Stderr, "judging")
		time.Sleep(300 * time.Millisecond)
	}
	return backend.Reply(q).Deny("told so").Effects()
}

// serving starts the test's own binary as the noisy backend.
func serving(t *testing.T) (cmd *exec.Cmd, in io.WriteCloser, out, stderr *bufio.Reader) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	cmd = exec.CommandContext(ctx, exe, "noisy")
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
	in, err = cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	errs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, in, bufio.NewReader(stdout), bufio.NewReader(errs)
}

// TestPrintingHandler holds that what a handler prints never gets among the protocol
// lines (AHP-STDIO-001).
func TestPrintingHandler(t *testing.T) {
	cmd, in, out, stderr := serving(t)
	in.Write(append(request(t, "e", "ls"), '\n'))
	in.Close()
	lines, _ := io.ReadAll(out)
	if !strings.HasPrefix(string(lines), `{"jsonrpc":"2.0","id":"e","result"`) || strings.Count(string(lines), "\n") != 1 {
		t.Errorf("standard output is %q", lines)
	}
	diagnostics, _ := io.ReadAll(stderr)
	if !strings.Contains(string(diagnostics), "a banner\nanother\n") || !strings.Contains(string(diagnostics), `"msg":"answered"`) {
		t.Errorf("standard error is %q", diagnostics)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// TestSignalWaitsForTheAnswer holds that what was read is answered before a
// signalled backend ends, although its input stays open.
func TestSignalWaitsForTheAnswer(t *testing.T) {
	cmd, in, out, stderr := serving(t)
	defer in.Close()
	in.Write(append(request(t, "e1", "slow"), '\n'))
	for {
		line, err := stderr.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if line == "judging\n" {
			break
		}
	}
	go io.Copy(io.Discard, stderr)
	cmd.Process.Signal(syscall.SIGTERM)
	lines, _ := io.ReadAll(out)
	if !strings.Contains(string(lines), `"id":"e1","result"`) {
		t.Errorf("standard output is %q", lines)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// TestStopIsBounded holds that a handler which ignores the end of its context keeps
// ServeStdio for Grace and a second, and no longer; and that its context does end.
func TestStopIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		defer w.Close()
		entered, ended, release := make(chan struct{}), make(chan struct{}), make(chan struct{})
		s := backend.New(backend.Func(func(ctx context.Context, _ *ahp.Intercept) ([]ahp.Effect, error) {
			close(entered)
			<-ctx.Done()
			close(ended)
			<-release
			return nil, nil
		}), backend.Options{Grace: 3 * time.Second})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		var out strings.Builder
		go func() { done <- s.ServeStdio(ctx, r, &out) }()
		w.Write(append(request(t, "e", "ls"), '\n'))
		<-entered
		began := time.Now()
		cancel()
		<-ended
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("the context ended after %v", took)
		}
		if err := <-done; err == nil || errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("it took %v", took)
		}
		close(release)
		synctest.Wait()
		if out.Len() > 0 {
			t.Errorf("written after the end: %s", out.String())
		}
	})
}

// TestWhatWasReadIsAnswered holds that messages which had arrived when the context
// ended are answered, observations included.
func TestWhatWasReadIsAnswered(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	j := &judge{}
	s := backend.New(&backend.Handlers{
		Else: func(c context.Context, q *ahp.Intercept) ([]ahp.Effect, error) {
			cancel()
			return j.Intercept(c, q)
		},
		Seen: j.Observe,
	}, backend.Options{})
	var in strings.Builder
	for _, m := range [][]byte{request(t, "e1", "ls"), notification(t, "n1"), request(t, "e2", "deny")} {
		in.Write(append(m, '\n'))
	}
	var out strings.Builder
	s.ServeStdio(ctx, strings.NewReader(in.String()), &out)
	if strings.Count(out.String(), "\n") != 2 || len(j.observed) != 1 {
		t.Errorf("%q, observed %q", out.String(), j.observed)
	}
}
