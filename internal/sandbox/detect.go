package sandbox

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/abhed/abhed/internal/proc"
)

// tryLimit bounds how long the trial of a back end may take.
const tryLimit = 10 * time.Second

// Status is what was found about one back end.
type Status struct {
	// Tier is what the back end holds.
	Tier Tier
	// Backend is its name.
	Backend string
	// Reason says why it can't be used here; "" means that it can.
	Reason string
}

// Report is what Detect found, the strongest tier first.
type Report struct {
	Statuses []Status
	plans    []Plan // those that work, the strongest first
}

// Memory keeps that a back end worked, so that it isn't tried again as long as nothing
// has changed that it depends on. Only success is kept: what is wrong about it makes
// commands fail, and none runs outside the sandbox because of it. The zero Memory keeps
// nothing.
type Memory struct {
	// Known reports whether a trial of that mark succeeded; nil knows none.
	Known func(mark string) bool
	// Worked is told of a success; nil drops it.
	Worked func(mark string)
}

// Detect tries every back end by running a harmless command in it, unless memory has
// that it worked, and reports which work and why others don't. It takes some 20 ms and
// at most about 10 s or until ctx ends.
func Detect(ctx context.Context, memory Memory) Report {
	r := Report{Statuses: []Status{{TierContainer, "container", "this program has no container back end"}}}
	plan, reason := tryBubblewrap(ctx, memory)
	r.Statuses = append(r.Statuses, Status{TierProcess, "bubblewrap", reason})
	if reason == "" {
		r.plans = append(r.plans, plan)
	}
	r.Statuses = append(r.Statuses, Status{Tier: TierNone, Backend: "none"})
	r.plans = append(r.plans, Plan{tier: TierNone})
	return r
}

// Plan returns the strongest plan that holds at least tier. If there is none, the
// error is an *UnavailableError.
func (r Report) Plan(tier Tier) (Plan, error) {
	if tier < TierNone || tier > TierContainer {
		return Plan{}, &PolicyError{What: "tier", Reason: "none was given; use none, process or container"}
	}
	for _, p := range r.plans {
		if p.tier >= tier {
			return p, nil
		}
	}
	err := &UnavailableError{Tier: tier}
	for _, s := range r.Statuses {
		if s.Tier >= tier && s.Reason != "" {
			err.Tried = append(err.Tried, s.Backend+": "+s.Reason)
		}
	}
	if len(err.Tried) == 0 {
		err.Tried = []string{"nothing was tried"}
	}
	return Plan{}, err
}

// tryBubblewrap runs a command that does nothing under the full profile.
func tryBubblewrap(ctx context.Context, memory Memory) (Plan, string) {
	bwrap, err := exec.LookPath("bwrap")
	if err != nil {
		return Plan{}, "the program bwrap is not in PATH (package bubblewrap)"
	}
	plan := Plan{tier: TierProcess, bwrap: bwrap, root: os.Geteuid() == 0}
	if path, err := exec.LookPath("prlimit"); err == nil {
		plan.prlimit = path
	}
	spec, err := plan.Confine(proc.Spec{Name: "bwrap", Path: "true", Dir: "/", Env: proc.Environ(nil), NoInput: true}, Policy{})
	if err != nil {
		return Plan{}, err.Error()
	}
	mark := plan.mark(spec)
	if mark != "" && memory.Known != nil && memory.Known(mark) {
		return plan, ""
	}
	ctx, cancel := context.WithTimeout(ctx, tryLimit)
	defer cancel()
	exit, said, err := runToEnd(ctx, spec)
	if err != nil {
		return Plan{}, err.Error()
	}
	if exit != (proc.Exit{}) {
		if strings.Contains(said, "disable-userns") {
			said += " (bubblewrap 0.8.0 or later is needed)"
		}
		return Plan{}, fmt.Sprintf("a trial run failed with %v: %s", exit, said)
	}
	if mark != "" && memory.Worked != nil {
		memory.Worked(mark)
	}
	return plan, ""
}

func runToEnd(ctx context.Context, spec proc.Spec) (proc.Exit, string, error) {
	child, err := proc.Start(spec)
	if err != nil {
		return proc.Exit{}, "", err
	}
	defer child.Kill()
	for {
		if _, err = child.Read(ctx); err != nil {
			break
		}
	}
	if err != io.EOF {
		return proc.Exit{}, "", fmt.Errorf("a trial run did not end: %w", err)
	}
	select {
	case <-child.Done():
	case <-ctx.Done():
		return proc.Exit{}, "", fmt.Errorf("a trial run did not end: %w", ctx.Err())
	}
	exit := child.Stop()
	return exit, strings.TrimSpace(child.StderrTail()), nil
}
