package bash_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/abhed/abhed/internal/sandbox"
	"github.com/abhed/abhed/internal/tool/bash"
)

// onTerminal is set for the part of TestNoTerminal that has a controlling terminal.
const onTerminal = "ABHED_TEST_ON_TERMINAL"

// TestNoTerminal: I125. A program that wants to ask on the terminal fails at once, and
// nothing comes on the screen, although there is one: the test runs itself with a
// terminal of its own, from which a command would have it.
func TestNoTerminal(t *testing.T) {
	if os.Getenv(onTerminal) != "" {
		asksOnTheTerminal(t)
		return
	}
	screen, terminal := pair(t)
	cmd := exec.Command(os.Args[0], "-test.run=^TestNoTerminal$", "-test.v")
	cmd.Env = append(os.Environ(), onTerminal+"=1")
	cmd.Stdin = terminal
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	err := cmd.Run()
	terminal.Close()
	if err != nil || !strings.Contains(said.String(), "--- PASS: TestNoTerminal/") {
		t.Errorf("with a terminal: %v\n%s", err, said.String())
	}
	var shown bytes.Buffer
	shown.ReadFrom(screen) // ends with an error, when nobody has the terminal any more
	if shown.String() != "seen" {
		t.Errorf("on the screen: %q, want what the test itself wrote", shown.String())
	}
}

// asksOnTheTerminal tries it from a process that has a terminal.
func asksOnTheTerminal(t *testing.T) {
	own, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		t.Fatalf("the test itself should have a terminal: %v", err)
	}
	fmt.Fprint(own, "seen")
	own.Close()
	commands := []string{
		`sh -c "read x </dev/tty"`,
		`exec 3<>/dev/tty && echo asked >&3`, // beside: who opens it to write
		`tty`, `sh -c 'echo no >/dev/tty'`,
	}
	if _, err := exec.LookPath("ssh"); err == nil {
		commands = append(commands, "ssh -o ConnectTimeout=1 nohost.invalid")
	}
	both(t, func(t *testing.T, p sandbox.Plan) {
		for _, command := range commands {
			begin := time.Now()
			res := run(t, p, bash.Options{}, realDir(t), m{"command": command, "timeout_ms": 10_000})
			if !res.IsError || res.TimedOut || time.Since(begin) > 3*time.Second {
				t.Errorf("%s after %v: %+v", command, time.Since(begin), res)
			}
		}
	})
}

// pair returns the two ends of a new terminal.
func pair(t *testing.T) (screen, terminal *os.File) {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { screen.Close() })
	n, err := unix.IoctlGetInt(int(screen.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(screen.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	return screen, terminal
}
