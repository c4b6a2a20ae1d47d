// Package proc starts, feeds, reads, ends and reaps child processes.
//
// It guarantees:
//   - a program is run directly, never through a shell, with exactly the
//     environment given, in a session of its own without a controlling terminal;
//   - every wait is bounded by the caller's context, and an abandoned Read loses
//     no bytes;
//   - at most one pipe of the system and one chunk of output is held, so a child
//     that nobody reads is held back instead of filling memory;
//   - after Stop or Kill has returned there is no zombie, no goroutine and no
//     descriptor left, even where descendants still hold the pipes open, and
//     every descendant that could be found has been killed: the process group,
//     the session, the tree of children, and whoever holds the pipes.
//
// Every Child needs one Stop or Kill, also one that ended by itself.
//
// Do not assume that a descendant which left the session, was orphaned and closed
// its pipes is found: only a process namespace (package sandbox) bounds those. On
// macOS only the group and the tree of children are found. A child on Linux dies
// with this process; on macOS it may outlive a crash of it.
package proc

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
)

// Limits of the package. Sizes are in bytes.
const (
	// maxChunk is the most that one Read returns.
	maxChunk = 64 << 10
	// maxLine is where a line for OnStderr is cut.
	maxLine = 4 << 10
	// maxDrain is the most output kept for reading after Stop or Kill.
	maxDrain = 1 << 20
	// defaultTail is how much of standard error is kept for messages.
	defaultTail = 8 << 10
	// defaultGrace is how long Stop waits before it kills.
	defaultGrace = time.Second
	// reapLimit is how long a killed process may take to die.
	reapLimit = 5 * time.Second
)

// ErrBroken is what Write returns after an earlier write did not finish: the
// stream may hold half a message, so nothing more can be said on it.
var ErrBroken = errors.New("an earlier write did not finish, so the stream may hold half a message")

// ErrInputClosed is what Write returns after CloseInput, Stop or Kill, and for a
// child that was started with NoInput.
var ErrInputClosed = errors.New("the child's input is closed")

// Spec says what to run. It is copied by Start.
type Spec struct {
	// Name is what errors call the child; empty means the base name of Path.
	Name string
	// Path is the program. Without a slash it is looked up in the PATH of Env,
	// whose relative elements are skipped; with one, a relative path starts at Dir.
	Path string
	// Args are the arguments after the program's name.
	Args []string
	// Dir is the working directory; empty means that of this process.
	Dir string
	// Env is the complete environment, as NAME=value; nil means an empty one. Of
	// a name given twice the last counts.
	Env []string
	// StderrTail is how many of the last bytes of standard error StderrTail
	// returns; zero means 8 KiB.
	StderrTail int
	// OnStderr, if set, gets each line of standard error without its newline, cut
	// at 4 KiB, in order, from one goroutine. It must return soon and must not
	// call Stop or Kill.
	OnStderr func(line string)
	// MergeStderr sends standard error into the stream that Read returns, in the
	// order of the writes. OnStderr and StderrTail then see nothing.
	MergeStderr bool
	// Grace is how long Stop waits before it kills; zero means one second.
	Grace time.Duration
	// NoInput gives the child /dev/null as standard input.
	NoInput bool
	// Extra are files that the child gets as descriptors 3 and up. They stay the
	// caller's, who closes them after Start.
	Extra []*os.File
}

func (s *Spec) name() string {
	if s.Name != "" {
		return s.Name
	}
	return s.Path[strings.LastIndexByte(s.Path, '/')+1:]
}

// Exit says how a process ended. The zero value is an exit with code 0.
type Exit struct {
	// Code is the exit code, or -1 if there is none.
	Code int
	// Signal is what killed the process, or 0.
	Signal syscall.Signal
	// Err says why the end of the process could not be learned; else nil.
	Err error
}

// String returns the exit in words, as for the end of a sentence: "exit code 3",
// "killed by SIGKILL".
func (e Exit) String() string {
	switch {
	case e.Err != nil:
		return e.Err.Error()
	case e.Signal != 0:
		return "killed by " + signalName(e.Signal)
	default:
		return fmt.Sprintf("exit code %d", e.Code)
	}
}

// StartError says why a child could not be started. It is an operational failure.
type StartError struct {
	// Name is the child's name, Path the program as given.
	Name, Path string
	// Reason says what was wrong and what was expected.
	Reason string
	// Err is the cause, or nil.
	Err error
}

// Error returns the failure with the program and the reason.
func (e *StartError) Error() string {
	s := fmt.Sprintf("%s: cannot start %q: %s", e.Name, e.Path, e.Reason)
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the cause.
func (e *StartError) Unwrap() error { return e.Err }

func exitOf(state *os.ProcessState, err error) Exit {
	if err != nil {
		return Exit{Code: -1, Err: fmt.Errorf("how the process ended is not known: %w", err)}
	}
	status, ok := state.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() {
		return Exit{Code: -1, Signal: status.Signal()}
	}
	return Exit{Code: state.ExitCode()}
}
