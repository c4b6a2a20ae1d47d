package rpcmode

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"github.com/abhed/abhed/internal/control"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/roletest"
)

// play is the service as a process of its own, with an engine that says on standard
// error what becomes of its session.
func play([]string) int {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	err := Serve(context.Background(), telling{&fakeEngine{}}, Options{In: os.Stdin, Out: os.Stdout, Signals: signals})
	fmt.Fprintf(os.Stderr, "ended: %v\n", err)
	return ExitCode(err)
}

// telling is a fakeEngine whose sessions say when they are closed.
type telling struct{ *fakeEngine }

func (e telling) Start(ctx context.Context, o control.Start) (control.Session, error) {
	s, err := e.fakeEngine.Start(ctx, o)
	if err != nil {
		return nil, err
	}
	return tellingSession{s.(*fakeSession)}, nil
}

type tellingSession struct{ *fakeSession }

func (s tellingSession) Close() error {
	last, _ := s.events()[len(s.events())-1].Payload.(*event.SessionEnded)
	if last != nil {
		fmt.Fprintln(os.Stderr, "closed after", last.Reason)
	}
	return s.fakeSession.Close()
}

// process is a service in a process of its own.
type process struct {
	*roletest.Process
	out  io.Closer
	errs chan string
}

func (p *process) closeOutput(t *testing.T) {
	t.Helper()
	if err := p.out.Close(); err != nil {
		t.Fatal(err)
	}
}

func startProcess(t *testing.T) *process {
	t.Helper()
	errR, errW := pipe(t)
	cmd := roletest.Command("serve")
	cmd.Stderr = errW
	p := &process{Process: &roletest.Process{Cmd: cmd}, errs: make(chan string, 1)}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	errW.Close()
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	go func() {
		var all strings.Builder
		for s := bufio.NewScanner(errR); s.Scan(); {
			all.WriteString(s.Text() + "\n")
		}
		p.errs <- all.String()
	}()
	p.In, p.out, p.Lines = in, out, bufio.NewScanner(out)
	return p
}

func (p *process) send(t *testing.T, lines ...string) {
	t.Helper()
	if _, err := p.In.Write([]byte(strings.Join(lines, "\n") + "\n")); err != nil {
		t.Fatal(err)
	}
}

func (p *process) until(t *testing.T, text string) {
	t.Helper()
	for !strings.Contains(p.Next(t), text) {
	}
}

// end returns the exit code, and what was said on standard error.
func (p *process) end(t *testing.T) (int, string) {
	t.Helper()
	said := <-p.errs
	_ = p.Cmd.Wait()
	return p.Cmd.ProcessState.ExitCode(), said
}

// TestSignals: the run ends first, then its session, and the exit code tells which
// signal it was.
func TestSignals(t *testing.T) {
	t.Parallel()
	for sig, want := range map[syscall.Signal]struct {
		code   int
		reason string
	}{syscall.SIGTERM: {143, "shutdown"}, syscall.SIGINT: {130, "user_interrupt"}} {
		p := startProcess(t)
		p.send(t, `{"method":"start"}`, `{"method":"prompt","id":1,"prompt":"hang"}`)
		p.until(t, "hanging")
		if err := p.Cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		p.until(t, `"reason":"`+want.reason+`"`)
		p.until(t, `{"type":"error","id":1`)
		for p.Lines.Scan() {
			if strings.Contains(p.Lines.Text(), "bye") {
				t.Error("bye without quit")
			}
		}
		if code, said := p.end(t); code != want.code || !strings.Contains(said, "closed after "+want.reason) {
			t.Errorf("%v: exit %d, %q", sig, code, said)
		}
	}
}

// TestClientDies: a service whose reader is gone ends its run and its session, and
// isn't ended by the system while it does. It may be noticed by the output alone.
func TestClientDies(t *testing.T) {
	t.Parallel()
	p := startProcess(t)
	p.send(t, `{"method":"start"}`, `{"method":"prompt","id":1,"prompt":"hang"}`, `{"method":"prompt","id":2,"prompt":"say more"}`)
	p.until(t, "hanging")
	p.closeOutput(t)
	p.send(t, `{"method":"usage"}`)
	if code, said := p.end(t); code != 1 || !strings.Contains(said, "closed after shutdown") || !strings.Contains(said, "the reader of the replies is gone") {
		t.Errorf("exit %d, %q", code, said)
	}

	// With its input ended first, this is the end of input, and it ended well.
	p = startProcess(t)
	p.send(t, `{"method":"start"}`, `{"method":"prompt","id":1,"prompt":"hang"}`)
	p.until(t, "hanging")
	p.In.Close()
	p.until(t, `"reason":"shutdown"`)
	p.closeOutput(t)
	if code, said := p.end(t); code != 0 || !strings.Contains(said, "closed after shutdown") {
		t.Errorf("exit %d, %q", code, said)
	}
}
