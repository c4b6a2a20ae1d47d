package main

import (
	"bufio"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/model/modeltest"
	"github.com/abhed/abhed/internal/require"
)

// busy starts a service with an extension, an MCP server, a command in the background
// and a prompt whose command runs, and returns the session, the prompt's id and every
// process below the service.
func (s *stage) busy(t *testing.T, mark string) (c *service, session, prompt string, children []process) {
	t.Helper()
	s.slowParts(t, mark, "")
	c = s.serve("--mode", "bypass")
	session = c.begin("")
	prompt = c.prompt("work")
	c.asleep(mark, 3)
	children = below(t, c.cmd.Process.Pid)
	for _, part := range []string{"slow.sh", slowServer, "sleep " + mark} {
		if !slices.ContainsFunc(children, func(p process) bool { return strings.Contains(p.command, part) }) {
			t.Fatalf("no process with %s among those of the service", part)
		}
	}
	return c, session, prompt, children
}

// busyTurns are the model's turns for busy.
func busyTurns(mark string) []modeltest.Turn {
	return []modeltest.Turn{
		asked("b1", "bash", `{"command":"sleep `+mark+`","background":true}`),
		asked("b2", "bash", `{"command":"sleep `+mark+` & sleep `+mark+`; wait"}`),
	}
}

// endings returns the outcome of the call that ran, and the reasons of the prompt and
// of the session.
func endings(t *testing.T, record []event.Event) (out [3]string) {
	t.Helper()
	for _, e := range record {
		switch p := e.Payload.(type) {
		case *event.ToolEnded:
			out[0] = p.Outcome
		case *event.RunEnded:
			out[1] = p.Reason
		case *event.SessionEnded:
			out[2] = p.Reason
		}
	}
	return out
}

// TestRPCSignals: a signal ends the prompt, the session and every child; the exit code
// says which one it was.
func TestRPCSignals(t *testing.T) {
	t.Parallel()
	for sig, reason := range map[syscall.Signal]string{syscall.SIGTERM: "shutdown", syscall.SIGINT: "user_interrupt", syscall.SIGHUP: "shutdown"} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			mark := mark()
			s := newStage(t, busyTurns(mark)...)
			c, session, prompt, children := s.busy(t, mark)
			if err := c.cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			if l := c.reply(prompt, "error"); l.member("reason") != reason {
				t.Errorf("%s", l.text)
			}
			if code := c.exit(); code != 128+int(sig) || !strings.Contains(c.errs.String(), "ended by the signal "+sig.String()) {
				t.Errorf("exit %d: %s", code, c.errs)
			}
			gone(t, children)
			if got := endings(t, s.recorded(session)); got != [3]string{"cancelled", reason, reason} {
				t.Errorf("in the record: %q", got)
			}
			s.verified(session)
		})
	}
}

// TestRPCSignalWhenIdle: without a prompt, or without a session, it is no different.
func TestRPCSignalWhenIdle(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	c := s.serve()
	c.do("providers", "", "providers")
	_ = c.cmd.Process.Signal(syscall.SIGHUP)
	if code := c.exit(); code != 129 {
		t.Errorf("exit %d: %s", code, c.errs)
	}
	c = s.serve()
	session := c.begin("")
	_ = c.cmd.Process.Signal(syscall.SIGTERM)
	if code := c.exit(); code != 143 {
		t.Errorf("exit %d: %s", code, c.errs)
	}
	s.verified(session)
}

// TestRPCEndOfInput: the end of standard input in the middle of a prompt is a good
// end, and what was said by then is answered.
func TestRPCEndOfInput(t *testing.T) {
	t.Parallel()
	mark := mark()
	s := newStage(t, busyTurns(mark)...)
	c, session, prompt, children := s.busy(t, mark)
	waiting := c.prompt("and then this")
	c.in.Close()
	if l := c.reply(prompt, "error"); l.member("reason") != "shutdown" || l.member("code") != "closed" {
		t.Errorf("%s", l.text)
	}
	if l := c.reply(waiting, "error"); l.member("reason") != "shutdown" {
		t.Errorf("%s", l.text)
	}
	if code := c.exit(); code != 0 {
		t.Errorf("exit %d: %s", code, c.errs)
	}
	gone(t, children)
	if got := endings(t, s.recorded(session)); got != [3]string{"cancelled", "shutdown", "shutdown"} {
		t.Errorf("in the record: %q", got)
	}
	s.verified(session)
}

// clientArg is the argument with which this binary is a client that starts the
// service, says a few things and waits to be killed.
const clientArg = "rpc-client-that-dies"

func init() {
	if len(os.Args) > 1 && os.Args[1] == clientArg {
		dyingClient(os.Args[2:])
		os.Exit(1)
	}
}

func dyingClient(args []string) {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), asCommand+"=1")
	cmd.Stderr = os.Stderr
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err1 != nil || err2 != nil || cmd.Start() != nil {
		return
	}
	if _, err := in.Write([]byte(`{"method":"start"}` + "\n" + `{"method":"prompt","prompt":"work"}` + "\n")); err != nil {
		return
	}
	os.Stdout.WriteString(strconv.Itoa(cmd.Process.Pid) + "\n")
	for lines := bufio.NewScanner(out); lines.Scan(); {
		os.Stdout.WriteString(lines.Text() + "\n")
	}
}

// TestRPCClientKilled kills the client with SIGKILL: the service notices, ends all that
// it started, closes the record and ends.
func TestRPCClientKilled(t *testing.T) {
	t.Parallel()
	mark := mark()
	s := newStage(t, busyTurns(mark)...)
	s.slowParts(t, mark, "")
	client := s.command(clientArg, "rpc", "-C", s.dir, "--min-tier", "none", "--mode", "bypass")
	client.Env = client.Env[1:] // the client isn't the command
	out, err := client.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Process.Kill(); _ = client.Wait() })
	lines := bufio.NewReader(out)
	first, err := lines.ReadString('\n')
	pid, _ := strconv.Atoi(strings.TrimSpace(first))
	if err != nil || pid == 0 {
		t.Fatalf("%q, %v", first, err)
	}
	go func() {
		for {
			if _, err := lines.ReadString('\n'); err != nil {
				return
			}
		}
	}()
	var children []process
	within(t, "the command to run", func() bool {
		children = below(t, client.Process.Pid)
		n := 0
		for _, p := range children {
			if strings.HasPrefix(p.command, "sleep "+mark) {
				n++
			}
		}
		return n == 3
	})
	if !slices.ContainsFunc(children, func(p process) bool { return p.pid == pid }) {
		t.Fatalf("the service %d is not below the client", pid)
	}
	if err := client.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	gone(t, children)
	record := s.recorded("*")
	if got := endings(t, record); got != [3]string{"cancelled", "shutdown", "shutdown"} {
		t.Errorf("in the record: %q", got)
	}
	s.verified(record[0].SessionID)
}

// TestRPCKilled kills the service itself with SIGKILL: the sandbox ends with it, and
// extensions and servers notice the end of their input. Commands without a sandbox
// would live on.
func TestRPCKilled(t *testing.T) {
	t.Parallel()
	require.Path(t, "bwrap")
	mark := mark()
	s := newStage(t, busyTurns(mark)...)
	c, session, _, children := s.busy(t, mark)
	if err := c.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	c.exit()
	gone(t, children)
	s.verified(session)
}
