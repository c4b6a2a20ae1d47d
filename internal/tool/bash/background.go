package bash

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/abhed/abhed/internal/proc"
	"github.com/abhed/abhed/internal/sandbox"
	"github.com/abhed/abhed/internal/tool"
)

// early is how long the call that starts a job waits for one that fails at once.
const early = 250 * time.Millisecond

// background starts a command as a job and says which one it is.
func (t *Tool) background(ctx context.Context, g tool.Grant, a args) tool.Result {
	if ctx.Err() != nil {
		return tool.Fail("The command was not started: the call was interrupted.")
	}
	guard, last, err := t.guard()
	if err != nil {
		return tool.Fail(fmt.Sprintf("The command was not started: %v.", err))
	}
	r := &running{tool: t, grant: g, dir: g.Call().WorkDir, policy: t.policy(g)}
	r.policy.Hidden = slices.Concat(r.policy.Hidden, guard.Hidden)
	r.policy.Protected = slices.Concat(r.policy.Protected, guard.Protected)
	limit := time.Duration(a.TimeoutMS) * time.Millisecond
	j := newJob(a.Command, g.Call().Agent, t.o.Jobs.o)
	j.check, j.last = guard.Check, last
	err = t.o.Jobs.add(j, func() error {
		flags := []string{"-c"}
		if t.bash {
			flags = []string{"--noprofile", "--norc", "-c"}
		}
		spec, err := r.confine(r.dir, append(flags, a.Command, filepath.Base(t.shell)))
		if err != nil {
			return err
		}
		child, err := proc.Start(spec)
		if err == nil {
			j.begin(child, limit)
		}
		return err
	})
	if err != nil {
		return tool.Fail(fmt.Sprintf("The command was not started: %v.", err))
	}
	timer := time.NewTimer(early)
	defer timer.Stop()
	select {
	case <-j.done:
	case <-timer.C:
	case <-ctx.Done():
	}
	info := j.info()
	text := fmt.Sprintf("(%s was started in the background; read its output or kill it with the tool jobs. It ends with the session.)\n", j.id)
	if !info.Running() {
		text = j.report(t.o.Head, t.o.Tail)
	}
	res := tool.OK(text)
	res.IsError = !info.Running() && info.Exit != proc.Exit{}.String()
	return res
}

// guard returns what holds for a job, and what looks after its end. Without a guard
// of its own that is what holds for every command.
func (t *Tool) guard() (g Guard, last func() string, err error) {
	if t.o.Guard != nil {
		g, err = t.o.Guard()
		return g, g.Check, err
	}
	g.Hidden, g.Protected, err = t.before()
	return g, t.after, err
}

// before and after ask what the options have for that, one at a time.
func (t *Tool) before() (hidden, protected []string, err error) {
	if t.o.Before == nil {
		return nil, nil, nil
	}
	t.asking.Lock()
	defer t.asking.Unlock()
	return t.o.Before()
}

func (t *Tool) after() string {
	if t.o.After == nil {
		return ""
	}
	t.asking.Lock()
	defer t.asking.Unlock()
	return t.o.After()
}

// policy returns what a call's command may do but for what is asked before each.
func (t *Tool) policy(g tool.Grant) sandbox.Policy {
	p := t.o.Policy
	p.Roots = slices.Concat(t.o.Policy.Roots, g.Call().Roots)
	return p
}
