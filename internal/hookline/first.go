package hookline

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"time"
)

// Attempt is how far a hook got that could not be answered by the service.
type Attempt struct {
	// Call has its Data only if the event was read.
	Call Call
	// NoService tells that the line forbids to ask the service.
	NoService bool
	// Err, if set, leaves nothing to do but the answer by policy.
	Err error
	// Asked is why the service didn't judge, nil if it wasn't asked.
	Asked error
	// Program is this program's file.
	Program string
	// Until is when an answer must be given.
	Until time.Time
}

// userDatabase is where the home folders of accounts stand.
const userDatabase = "/etc/passwd"

// first is set while packages are initialised, and never changed. It is a variable so
// that a hook ends here, with the service's answer, before the packages that judge take
// the time to initialise: they are most of the program, and this call needs none.
var first = begin(os.Args)

// First returns what was done already, if this process is "ahp hook" and the service
// didn't answer for it; nil for any other process.
func First() *Attempt { return first }

// begin does what can be done of a hook. It returns if that isn't all.
func begin(argv []string) *Attempt {
	if len(argv) < 2 || argv[1] != "hook" || asksForHelp(argv[2:]) {
		return nil
	}
	a := &Attempt{}
	if answer := a.try(argv[2:]); answer != nil {
		os.Exit(answer.Deliver(a.Until))
	}
	runtime.GOMAXPROCS(1) // what is left is one thing after the other, and each thread costs its start
	return a
}

// asksForHelp reports whether a person asks what the command is. An installed line names
// a host, so it never does.
func asksForHelp(args []string) bool {
	return len(args) == 1 && (args[0] == "--help" || args[0] == "-h")
}

// Deliver writes the answer, and returns the exit code that says so: ExitNone for one
// that isn't complete, of which only standard error is written, for a person, or that
// could not be written whole.
func (a *Answer) Deliver(until time.Time) int {
	if !a.Complete() {
		_ = writeAll(2, a.Stderr, until)
		return ExitNone
	}
	if writeAll(1, a.Stdout, until) != nil || writeAll(2, a.Stderr, until) != nil {
		return ExitNone
	}
	return a.Code
}

// try returns the service's answer, or nil.
func (a *Attempt) try(args []string) (answer *Answer) {
	defer func() {
		if p := recover(); p != nil {
			answer, a.Err = nil, fmt.Errorf("bug: %v", p)
		}
	}()
	began := time.Now()
	var err error
	a.Call, a.NoService, a.Err = Parse(args)
	a.Until = began.Add(a.Call.Patience())
	if a.Err != nil {
		return nil
	}
	a.look()
	a.Call.Data, err = readAll(0, nil, MaxEvent, a.Until)
	if err != nil {
		if errors.Is(err, ErrTime) {
			err = errors.New("standard input didn't end in time: expected one JSON document and its end")
		}
		a.Call.Data, a.Err = nil, err
		return nil
	}
	read := time.Now()
	a.Call.Spend(read.Sub(began))
	if a.NoService || a.Program == "" {
		return nil
	}
	id, err := IdentityOf(a.Program)
	if err != nil {
		a.Asked = err
		return nil
	}
	state := stateOf(a.Call.Home, userDatabase)
	if state == "" {
		return nil
	}
	got, err := Ask(Socket(state), &a.Call, id, a.Until)
	if err == nil {
		return &got
	}
	if a.Asked = err; errors.Is(err, ErrTime) {
		a.Err = errors.New("the service didn't answer in time")
	}
	a.Call.Spend(time.Since(read))
	return nil
}

// look completes the call but for its event.
func (a *Attempt) look() {
	for _, name := range Markers() {
		if v, is := syscall.Getenv(name); is {
			if a.Call.Markers == nil {
				a.Call.Markers = map[string]string{}
			}
			a.Call.Markers[name] = v
		}
	}
	if dir, err := syscall.Getwd(); err == nil {
		a.Call.Dir = dir
	}
	a.Program, _ = os.Executable()
}
