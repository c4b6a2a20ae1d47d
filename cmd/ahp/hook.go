package main

import (
	"context"
	"errors"
	"runtime/debug"

	"github.com/abhed/abhed/ahp/adapter"
	"github.com/abhed/abhed/ahp/adapter/hosts"
	"github.com/abhed/abhed/internal/hookd"
	"github.com/abhed/abhed/internal/hookline"
	"github.com/abhed/abhed/internal/hooklog"
	owned "github.com/abhed/abhed/internal/run"
)

// continued is the rest of "ahp hook", which the service could not answer: the event is
// judged in this process. It returns the exit code. Whatever goes wrong is answered by
// policy.
func continued(h *hookline.Attempt) int {
	debug.SetTraceback("none") // standard error is the host's
	ctx, cancel := context.WithDeadline(context.Background(), h.Until)
	defer cancel()
	a := resume(ctx, h)
	return a.Deliver(h.Until.Add(h.Call.HostLimit() / 20))
}

// resume returns the answer to h.
func resume(ctx context.Context, h *hookline.Attempt) (a hookd.Answer) {
	err := h.Err
	if err == nil {
		if bad := owned.Protect(func() error {
			a, err = here(ctx, h)
			return nil
		}); bad != nil {
			err = bad
		}
	}
	if err != nil {
		return hookd.ByPolicy(hosts.Lookup(h.Call.Host), nil, &h.Call, h.Call.Native, "Refused: this call could not be checked. "+adapter.Clean(err.Error()))
	}
	return a
}

// here judges in this process.
func here(ctx context.Context, h *hookline.Attempt) (hookd.Answer, error) {
	if h.Asked == nil && !h.NoService { // the account isn't in the file that hookline reads
		a, err := ask(h)
		if err == nil || !errors.Is(err, hookline.ErrNoService) {
			return a, err
		}
		h.Asked = err
	}
	if hookline.Absent(h.Asked) {
		_ = hookd.Start(h.Program, h.Call.Home) // for the next call; this one doesn't depend on it
	}
	o := judgeOptions(h.Call.Home)
	o.Executable = h.Program
	j, err := hookd.New(o)
	if err != nil {
		return hookd.Answer{}, err
	}
	defer j.Close()
	return j.Do(ctx, &h.Call)
}

// ask has the service judge, at the place that the system's user database leads to.
func ask(h *hookline.Attempt) (hookd.Answer, error) {
	state, err := hooklog.StateDir(h.Call.Home)
	if err != nil {
		return hookd.Answer{}, err
	}
	id, err := hookline.IdentityOf(h.Program)
	if err != nil {
		return hookd.Answer{}, err
	}
	return hookline.Ask(hookline.Socket(state), &h.Call, id, h.Until)
}

// judgeOptions is what this program judges with, in a hook and in the service alike.
func judgeOptions(home string) hookd.Options { return hookd.Options{Home: home} }
