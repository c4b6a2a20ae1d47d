package transport

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/proc"
)

// StdioOptions tunes a stdio transport. The zero value is right for most uses.
type StdioOptions struct {
	// Name is what messages call the backend; empty means the command.
	Name string
	// Dir is the working directory where the registration names none, and what a
	// relative one starts at; empty means that of this process.
	Dir string
	// Env holds NAME=value entries beyond the small environment that every
	// backend gets: PATH, HOME, LANG, LC_*, TMPDIR, USER, XDG_*.
	Env []string
	// OnStderr, if set, gets each line of the backend's standard error. It must
	// return soon.
	OnStderr func(line string)
	// Grace is how long the process may take to end after Close; zero means one
	// second.
	Grace time.Duration
	// Backoff is the first pause before a process that died without having
	// answered is started again; it doubles up to 64 times that. Zero means 100 ms.
	Backoff time.Duration
}

// Stdio returns a transport to the command of a registration: to a process that
// stays, or to one per message, as its lifecycle says (§16). Nothing is started
// before the first message. It refuses a configuration of another type. A transport
// to a process that stays has two methods more: Ignored() int, how many of its lines
// answered nothing that was still waited for, and Judged(valid bool), by which
// whoever decodes a reply tells whether it was a valid message, so that a process
// which writes no others is ended (§16).
func Stdio(cfg ahp.TransportConfig, opts StdioOptions) (Transport, error) {
	if cfg.Type != ahp.TransportStdio {
		return nil, fmt.Errorf("transport: found the type %q, expected stdio; package httptransport connects over http", cfg.Type)
	}
	if cfg.Command == "" {
		return nil, errors.New("transport: found no command, expected the program of a stdio backend")
	}
	if opts.Backoff == 0 {
		opts.Backoff = 100 * time.Millisecond
	}
	if opts.Name == "" {
		opts.Name = cfg.Command
	}
	spec := proc.Spec{
		Name: opts.Name, Path: cfg.Command, Args: cfg.Args, Dir: cfg.Cwd,
		Env: proc.Environ(opts.Env), OnStderr: opts.OnStderr, Grace: opts.Grace,
	}
	if !filepath.IsAbs(spec.Dir) {
		spec.Dir = filepath.Join(opts.Dir, spec.Dir)
	}
	switch cfg.Lifecycle {
	case ahp.LifecyclePersistent:
		return newPersistent(spec, opts.Backoff), nil
	case ahp.LifecyclePerEvent:
		return newPerEvent(spec), nil
	}
	return nil, errors.New("transport: the lifecycle is neither persistent nor per_event")
}

// launchFailure returns the failure for a process that could not be started.
func launchFailure(err error) *ahp.Failure {
	return &ahp.Failure{Class: ahp.FailLaunch, Detail: err.Error(), Err: err}
}

// maxLastLines bounds what is told of a backend's standard error, in bytes.
const maxLastLines = 400

// lastLines returns the last whole lines, as many as fit: where a program says why it
// ends. Of one that is too long it returns the beginning, as the place stands there.
func lastLines(tail string) string {
	tail = strings.TrimSpace(tail)
	from := strings.LastIndexByte(tail, '\n') + 1
	if len(tail)-from > maxLastLines {
		return tail[from:from+maxLastLines] + "…"
	}
	for from > 0 {
		before := strings.LastIndexByte(tail[:from-1], '\n') + 1
		if len(tail)-before > maxLastLines {
			break
		}
		from = before
	}
	return tail[from:]
}

// exitFailure returns the failure for a process that ended too early.
func exitFailure(child *proc.Child, what string) *ahp.Failure {
	detail := what
	select {
	case <-child.Done():
		detail += ": " + child.Exit().String()
	default:
		detail += ": it closed its output"
	}
	if why := lastLines(child.StderrTail()); why != "" {
		detail += fmt.Sprintf("; its standard error ends with %q", why)
	}
	return &ahp.Failure{Class: ahp.FailExit, Detail: detail}
}
