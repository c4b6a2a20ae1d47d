// Package roletest starts a test program again, as another process that plays a role in
// a test.
//
// It guarantees that such a process runs no test, and that it has ended when the test
// that started it has.
//
// Do not assume that a process ends well: wait for it.
package roletest

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// variable holds the role, one word a line.
const variable = "ABHED_TEST_ROLE"

// Main runs the tests, or in a process of Command and Start play, which returns the exit
// code. It is called by a package's TestMain.
func Main(m *testing.M, play func(role []string) int) {
	if role := os.Getenv(variable); role != "" {
		os.Exit(play(strings.Split(role, "\n")))
	}
	os.Exit(m.Run())
}

// Command returns a process that plays role, not yet started. Its words hold no line
// break.
func Command(role ...any) *exec.Cmd {
	words := make([]string, len(role))
	for i, w := range role {
		words[i] = fmt.Sprint(w)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), variable+"="+strings.Join(words, "\n"))
	return cmd
}

// Process is a process that runs.
type Process struct {
	Cmd *exec.Cmd
	// In is its standard input, and Lines are those of its standard output.
	In    io.WriteCloser
	Lines *bufio.Scanner
}

// Start starts a process that plays role. It is killed when the test ends.
func Start(t testing.TB, role ...any) *Process {
	t.Helper()
	cmd := Command(role...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	return &Process{cmd, in, bufio.NewScanner(out)}
}

// Next returns the next line that it prints.
func (p *Process) Next(t testing.TB) string {
	t.Helper()
	if !p.Lines.Scan() {
		t.Fatal("the process said nothing more")
	}
	return p.Lines.Text()
}
