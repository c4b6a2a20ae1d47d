package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/abhed/abhed/internal/strictjson"
)

// system is what a command has of the world, so that a test can stand in for it.
type system struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	// environ holds NAME=VALUE, as os.Environ has it.
	environ []string
	// dir is the project's folder, "" for none.
	dir string
}

// lookupEnv returns the value of a variable, the last one if it is repeated.
func (s system) lookupEnv(name string) (value string, is bool) {
	for i := len(s.environ) - 1; i >= 0; i-- {
		if v, is := strings.CutPrefix(s.environ[i], name+"="); is {
			return v, true
		}
	}
	return "", false
}

// getenv returns the value of a variable, and "" if it isn't set.
func (s system) getenv(name string) string {
	v, _ := s.lookupEnv(name)
	return v
}

// printJSON writes v as one line of JSON to standard output.
func (s system) printJSON(v any) error {
	b, err := strictjson.Marshal(v)
	if err != nil {
		return err
	}
	return s.print(string(b) + "\n")
}

// print writes to standard output.
func (s system) print(text string) error {
	if _, err := io.WriteString(s.stdout, text); err != nil {
		return failWith(exitFailed, fmt.Errorf("writing standard output: %w", err))
	}
	return nil
}

// The exit codes of every command but "ahp hook".
const (
	exitOK       = 0 // done, or valid
	exitNegative = 1 // the question was answered with no: invalid, denied, not conforming
	exitUsage    = 2 // wrong use, or wrong configuration
	exitFailed   = 3 // an operational failure: a file or a peer could not be read
)

// exitError is a command's result that isn't exitOK. An err of nil means that
// the command has said everything already.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// failWith makes err end the command with the exit code; any other error that a
// command returns ends it with exitUsage.
func failWith(code int, err error) error { return &exitError{code, err} }

// done turns the exit code of a command that has printed its result into what it
// returns.
func done(code int) error {
	if code == exitOK {
		return nil
	}
	return &exitError{code: code}
}

// findings is what a command found: as text, as JSON, and as an exit code.
type findings interface {
	text() string
	code() int
}

// conclude prints what was found and turns its exit code into what the command returns.
func (s system) conclude(f findings, asJSON bool) error {
	var err error
	if asJSON {
		err = s.printJSON(f)
	} else {
		err = s.print(f.text())
	}
	if err != nil {
		return err
	}
	return done(f.code())
}

// report prints why a command ended and returns its exit code.
func (s system) report(err error) int {
	if err == nil {
		return exitOK
	}
	code := exitUsage
	var exit *exitError
	if errors.As(err, &exit) {
		code = exit.code
		if exit.err == nil {
			return code
		}
	}
	fmt.Fprintf(s.stderr, "ahp: %s\n", strings.TrimPrefix(err.Error(), "ahp: "))
	if exit == nil {
		fmt.Fprintln(s.stderr, "See ahp --help.")
	}
	return code
}
