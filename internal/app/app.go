// Package app puts the program together: the one place where settings, rules,
// sandbox, tools, extensions, backends, record, gate and loop meet.
//
// It guarantees that the minter of permits is handed to the gate alone, that
// everything it started has ended when a function here returns, and that a
// configuration that can't be understood in full starts nothing.
//
// Do not assume that a function here is quiet: they write to the streams of
// System and return an exit code.
package app

import (
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"strings"

	"github.com/abhed/abhed/internal/agent"
)

// Exit codes of the commands (abhed.md).
const (
	ExitOK       = 0
	ExitNegative = 1
	ExitUsage    = 2
	ExitFailure  = 3
)

// System is what the program sees of the machine.
type System struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// TerminalOut says that Stdout is a terminal, which would obey escape sequences.
	TerminalOut bool
	// Environ holds the variables as NAME=value.
	Environ []string
	Version string
	// StateDir holds records and keys; "" means the account's place.
	StateDir string
	// ManagedDir holds the managed settings; "" means /etc/abhed, and the AHP
	// registration /etc/ahp.
	ManagedDir string
	// Retry bounds the repetition of failed model calls; zero members mean the
	// loop's own.
	Retry agent.Retry
}

// Getenv returns the value of a variable, "" if it isn't set.
func (s System) Getenv(name string) string {
	for i := len(s.Environ) - 1; i >= 0; i-- {
		if k, v, ok := strings.Cut(s.Environ[i], "="); ok && k == name {
			return v
		}
	}
	return ""
}

// home returns the home directory that HOME names, or else the one of the account;
// "" if neither is absolute.
func (s System) home() string {
	if h := s.Getenv("HOME"); filepath.IsAbs(h) {
		return filepath.Clean(h)
	}
	return accountHome()
}

// accountHome returns the home directory of the account, whatever HOME says, or "".
func accountHome() string {
	u, err := user.Current()
	if err != nil || !filepath.IsAbs(u.HomeDir) {
		return ""
	}
	return filepath.Clean(u.HomeDir)
}

// dir returns the XDG directory of variable, or its default below home.
func (s System) dir(variable, below string) string {
	if d := s.Getenv(variable); filepath.IsAbs(d) {
		return d
	}
	if s.home() == "" {
		return ""
	}
	return filepath.Join(s.home(), below)
}

// configDir is where the user's settings are.
func (s System) configDir() string {
	d := s.dir("XDG_CONFIG_HOME", ".config")
	if d == "" {
		return ""
	}
	return filepath.Join(d, "abhed")
}

// stateDir is where records and keys are; "" if there is no home.
func (s System) stateDir() string {
	if s.StateDir != "" {
		return s.StateDir
	}
	d := s.dir("XDG_STATE_HOME", ".local/state")
	if d == "" {
		return ""
	}
	return filepath.Join(d, "abhed")
}

func (s System) managedFile() string {
	if s.ManagedDir != "" {
		return filepath.Join(s.ManagedDir, "config.json")
	}
	return "/etc/abhed/config.json"
}

// fail prints an error for a person and returns code.
func (s System) fail(code int, err error) int {
	fmt.Fprintf(s.Stderr, "abhed: %s\n", strings.TrimSpace(err.Error()))
	return code
}

// exitCode maps the reason of a run's end to the exit code of -p (abhed.md
// "Loop").
func exitCode(r agent.Reason) int {
	switch r {
	case agent.ReasonCompleted:
		return 0
	case agent.ReasonMaxTurns, agent.ReasonMaxTokens, agent.ReasonMaxCost, agent.ReasonMaxTime:
		return 3
	case agent.ReasonDeniedLoop:
		return 4
	case agent.ReasonRetryExhausted:
		return 5
	case agent.ReasonStalled:
		return 6
	case agent.ReasonPromptRefused:
		return 7
	case agent.ReasonStopped:
		return 8
	case agent.ReasonUserInterrupt:
		return 130
	case agent.ReasonShutdown:
		return 143
	default:
		return 1
	}
}

// realDir returns dir as an absolute path with all links resolved; it must be a
// directory.
func realDir(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return "", fmt.Errorf("%s: %w", dir, err)
	}
	info, err := os.Stat(real)
	if err != nil {
		return "", err
	}
	if !info.IsDir() {
		return "", fmt.Errorf("%s is not a directory", dir)
	}
	return real, nil
}
