package main

import (
	"context"
	"errors"
	"runtime/debug"
	"sync"
	"time"

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
	made := make(chan hookd.Answer, 1)
	policy := byPolicyOnce(h)
	go owned.Deep(func() { made <- resume(ctx, h, policy) }) // it ends with the process
	spare := h.Call.HostLimit() / 50
	var a hookd.Answer
	select {
	case a = <-made:
	case <-time.After(time.Until(h.Until) + spare): // what doesn't end in time by itself doesn't hold the answer up
		a = unended(h, policy, spare)
	}
	return a.Deliver(h.Until.Add(3 * spare))
}

// unended is the answer to a call whose judgement is still under way. Writing that down
// may last at most patience: what holds the judgement up may hold this up as well.
func unended(h *hookline.Attempt, policy func(error) hookd.Answer, patience time.Duration) hookd.Answer {
	why := errors.New("the check didn't end in time")
	noted := make(chan hookd.Answer, 1)
	go func() { noted <- policy(why) }() // it ends with the process
	select {
	case a := <-noted:
		return a
	case <-time.After(patience):
		return unnoted(h, why)
	}
}

// resume returns the answer to h.
func resume(ctx context.Context, h *hookline.Attempt, policy func(error) hookd.Answer) (a hookd.Answer) {
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
		return policy(err)
	}
	return a
}

// byPolicyOnce is byPolicy for the first that calls it; who comes later gets the same.
func byPolicyOnce(h *hookline.Attempt) func(error) hookd.Answer {
	var once sync.Once
	var a hookd.Answer
	return func(why error) hookd.Answer {
		once.Do(func() { a = byPolicy(h, why) })
		return a
	}
}

// byPolicy returns the answer to what could not be judged, and has it in the log if that
// can be.
func byPolicy(h *hookline.Attempt, why error) (a hookd.Answer) {
	if err := owned.Protect(func() error {
		j, err := hookd.New(judgeOptions(h.Call.Home))
		if err != nil {
			return err
		}
		defer j.Close()
		a = j.ByPolicy(&h.Call, why)
		return nil
	}); err != nil {
		return unnoted(h, why)
	}
	return a
}

// unnoted is byPolicy without a log.
func unnoted(h *hookline.Attempt, why error) hookd.Answer {
	named := hosts.Lookup(h.Call.Host)
	return hookd.ByPolicy(named, hosts.Recognise(named, h.Call.Data, h.Call.Markers), &h.Call, h.Call.Native, "Refused: this call could not be checked: "+adapter.Clean(why.Error()))
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
	if err := hookd.CloseOnExec(); err != nil {
		return hookd.Answer{}, err
	}
	if hookline.Absent(h.Asked) {
		_ = hookd.Start(h.Program, h.Call.Home) // for the next call; this one doesn't depend on it
	}
	o := judgeOptions(h.Call.Home)
	o.Executable = h.Program
	o.CloseTimeout = min(300*time.Millisecond, h.Call.HostLimit()/50) // the host waits for the process
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
