package bash

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/abhed/abhed/internal/proc"
	"github.com/abhed/abhed/internal/sandbox"
	"github.com/abhed/abhed/internal/tool"
)

const (
	// quiet is how long nothing may come after the shell has ended before the output
	// counts as complete although somebody holds it open.
	quiet = 50 * time.Millisecond
	// lingering bounds that wait for a process that keeps writing.
	lingering = 300 * time.Millisecond
	// maxReport bounds what the shell reports about itself, in bytes.
	maxReport = 64 << 10
)

// script runs the command, its first argument, in the shell itself, so that cd has an
// effect, and reports on descriptor 3 the working directory and the jobs that
// still run. The command doesn't see that descriptor, so its output can't pass for
// the report. The trap reports where the command exits; the last line where it
// has set a trap of its own. Tracing is turned off first, else it would show.
//
// It is one line, so that the line numbers in messages are the command's.
const script = `__abhed_report() { { command pwd -P; printf '\0'; jobs %s; printf '\0'; } >&3 2>/dev/null; }; ` +
	`trap '{ set +x; __abhed_report; } 2>/dev/null' EXIT; ` +
	`eval "$1" 3>&-; ` +
	`{ __abhed_status=$?; set +x; } 2>/dev/null; __abhed_report; exit $__abhed_status`

// running is one command.
type running struct {
	tool   *Tool
	grant  tool.Grant
	dir    string
	limit  time.Duration
	policy sandbox.Policy

	keep  keeper
	clean cleaner
}

func (r *running) run(ctx context.Context, command string) (tool.Result, error) {
	if ctx.Err() != nil {
		return tool.Fail("The command was not started: the call was interrupted."), nil
	}
	child, report, err := r.start(command)
	if err != nil {
		return tool.Fail(fmt.Sprintf("The command was not started: %v.", err)), nil
	}
	defer report.Close()
	defer child.Kill()
	r.keep = keeper{headMax: r.tool.o.Head, tailMax: r.tool.o.Tail, dir: r.tool.o.OutputDir}
	r.clean.emit = func(p []byte) {
		r.keep.write(p)
		r.grant.Output(string(p))
	}
	r.clean.over = r.keep.overwritten
	limited, cancel := context.WithTimeout(ctx, r.limit)
	defer cancel()
	out := stream{r.clean.write}
	how := out.follow(limited, child)
	if how == timedOut && ctx.Err() != nil {
		how = interrupted
	}
	exit := out.end(child, how)
	r.clean.flush()
	return r.result(how, exit, readReport(report)), nil
}

// start starts the shell. report is what it says about itself.
func (r *running) start(command string) (child *proc.Child, report *os.File, err error) {
	jobs, flags := "-p", []string{"-c"}
	if r.tool.bash {
		jobs, flags = "-rp", []string{"--noprofile", "--norc", "-c"}
	}
	report, shellEnd, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer shellEnd.Close()
	spec, err := r.confine(r.dir, append(flags, fmt.Sprintf(script, jobs), filepath.Base(r.tool.shell), command))
	if err == nil {
		spec.Extra = []*os.File{shellEnd}
		child, err = proc.Start(spec)
	}
	if err != nil {
		report.Close()
		return nil, nil, err
	}
	return child, report, nil
}

func (r *running) confine(dir string, args []string) (proc.Spec, error) {
	return r.tool.plan.Confine(proc.Spec{
		Name: "bash", Path: r.tool.shell, Args: args, Dir: dir, Env: r.tool.o.Env,
		MergeStderr: true, NoInput: true, Grace: r.tool.o.Grace,
	}, r.policy)
}

// report is what the shell said about itself.
type report struct {
	dir  string // "" if it didn't say
	jobs bool   // jobs were still running
}

// readReport reads what is in the pipe, without waiting for who may hold it.
func readReport(f *os.File) report {
	f.SetReadDeadline(time.Now().Add(quiet))
	data, err := io.ReadAll(io.LimitReader(f, maxReport))
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		return report{}
	}
	parts := bytes.Split(data, []byte{0})
	if len(parts) < 3 {
		return report{}
	}
	parts = parts[len(parts)-3:] // the newest report, and nothing after it
	return report{dir: strings.TrimSuffix(string(parts[0]), "\n"), jobs: len(bytes.TrimSpace(parts[1])) > 0}
}

// result puts everything in words.
func (r *running) result(how ending, exit proc.Exit, rep report) tool.Result {
	text, note := r.keep.end()
	var notes []string
	res := tool.Result{}
	switch {
	case how == timedOut:
		res.IsError, res.TimedOut = true, true
		notes = append(notes, fmt.Sprintf("timed out after %v: the command and everything it started were ended", r.limit))
	case how == interrupted:
		res.IsError = true
		notes = append(notes, "interrupted: the command and everything it started were ended")
	case exit != (proc.Exit{}):
		res.IsError = true
		notes = append(notes, exitNote(exit))
	case text == "":
		notes = append(notes, "no output; exit code 0")
	}
	if r.tool.plan.Tier() == sandbox.TierProcess && rep.dir == "" && strings.HasPrefix(text, "bwrap: ") {
		notes = append(notes, "the sandbox could not be set up; this is not the command's failure")
	}
	if (how == held || rep.jobs) && how <= held {
		notes = append(notes, "a process was still running in the background; it was ended with the command")
	}
	if note != "" {
		notes = append(notes, note)
	}
	if said := r.tool.after(); said != "" {
		notes = append(notes, said)
	}
	if moved, why := r.moved(rep.dir); moved != "" {
		res.WorkDir = moved
		notes = append(notes, "the working directory is now "+moved)
	} else if why != "" {
		notes = append(notes, why)
	}
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	for _, n := range notes {
		text += "(" + n + ")\n"
	}
	res.Content = text
	return res
}

// exitNote says how the shell ended. The shell, like the sandbox, turns the signal
// that ended a command into an exit code.
func exitNote(exit proc.Exit) string {
	if sig := syscall.Signal(exit.Code - 128); exit.Signal == 0 && exit.Code > 128 && exit.Code <= 128+64 && unix.SignalName(sig) != "" {
		return fmt.Sprintf("exit code %d, as after %s", exit.Code, unix.SignalName(sig))
	}
	return exit.String()
}

// moved returns the new working directory, or "" and, if there is something to say,
// why it is not kept.
func (r *running) moved(dir string) (moved, why string) {
	if dir == "" || !filepath.IsAbs(dir) {
		return "", ""
	}
	_, err := r.confine(dir, nil)
	// Inside the sandbox the temporary folder has a second name.
	if rest, ok := strings.CutPrefix(dir+"/", "/tmp/"); ok && err != nil && r.policy.TmpDir != "" {
		dir = filepath.Join(r.policy.TmpDir, rest)
		_, err = r.confine(dir, nil)
	}
	if old, bad := filepath.EvalSymlinks(r.dir); bad == nil && old == dir {
		return "", ""
	}
	if err != nil || !exists(dir) {
		return "", fmt.Sprintf("the working directory stays %s: %s is not there outside this command", r.dir, dir)
	}
	return dir, ""
}

func exists(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && info.IsDir()
}
