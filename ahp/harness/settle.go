package harness

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/run"
)

// Accept publishes the staged reply, all of it at once, and returns the outcome
// of the chain so far. Right before that it looks once more whether the call was
// cancelled or the deadline has passed. authorise may be nil; otherwise it is asked
// first, without any lock held, with a context that ends with the deadline and with
// what the outcome would be, which it must not change. If it returns an error,
// nothing is published, Accept returns that error, and the reply stays staged.
//
// Other errors are ErrNotStaged, *ahp.Failure for a reply that is too late by now,
// ErrInterrupted and ErrClosed.
func (x *Exchange) Accept(authorise func(ctx context.Context, o *ahp.Outcome) error) (*ahp.Outcome, error) {
	if authorise != nil {
		if err := x.authorise(authorise); err != nil {
			return nil, err
		}
	}
	x.mu.Lock()
	defer x.unlock()
	switch {
	case x.phase != phaseStaged && x.interrupted:
		return nil, x.why()
	case x.phase != phaseStaged:
		return nil, ErrNotStaged
	case x.gone():
		return nil, x.interrupt()
	case x.late():
		x.answer.Effects, x.answer.Changed = nil, false
		return nil, x.failed(lateFailure())
	}
	x.answer.Kind = ahp.AnswerEffects
	return x.settle(x.next, ends(x.answer.Effects)), nil
}

func (x *Exchange) authorise(ask func(context.Context, *ahp.Outcome) error) error {
	x.mu.Lock()
	if x.phase != phaseStaged {
		x.mu.Unlock()
		return nil // Accept says why
	}
	o := x.next.Outcome
	ctx, cancel := context.WithDeadline(x.ctx, x.deadline)
	x.cancel = cancel
	x.chain.waiting(cancel)
	x.mu.Unlock()
	defer cancel()
	defer context.AfterFunc(x.chain.h.ctx, cancel)()
	if err := run.Protect(func() error { return ask(ctx, &o) }); err != nil && ctx.Err() == nil {
		return fmt.Errorf("harness: the reply of backend %s was not authorised: %w", x.sub.id.Backend, err)
	} else if err != nil && !x.over() {
		return err
	}
	return nil // cancelled or too late: Accept says so
}

// over reports whether Accept is bound to fail.
func (x *Exchange) over() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.phase != phaseStaged || x.gone() || x.late()
}

// Fail settles an exchange that could not be completed, by the failure policy of
// its subscription, and returns the outcome of the chain so far: unchanged, or
// denied with SyntheticReason. err is what Send, Stage or Accept returned. An error
// that is no *ahp.Failure is a bug: no policy opens it, and the chain ends in it.
// Cancellation comes before the policy. The other errors are ErrSettled,
// ErrInterrupted and ErrClosed.
func (x *Exchange) Fail(err error) (*ahp.Outcome, error) {
	x.mu.Lock()
	defer x.unlock()
	f := ahp.AsFailure(err)
	switch {
	case x.phase == phaseSettled:
		return nil, x.why()
	case x.gone():
		return nil, x.interrupt()
	case f == nil && err == nil:
		return nil, x.bug(errors.New("harness: bug: an exchange failed for no reason"))
	case f == nil:
		return nil, x.bug(err)
	}
	return x.apply(f), nil
}

// FailOpen gives an exchange up and goes on without it, unchanged. It is for a
// subscription whose policy is fail-open, and an error for any other. The failure
// that Send, Stage or Accept returned is kept in the trace; if there was none, the
// request counts as not answered in time. Errors are those of Fail.
func (x *Exchange) FailOpen() (*ahp.Outcome, error) {
	x.mu.Lock()
	defer x.unlock()
	switch {
	case x.phase == phaseSettled:
		return nil, x.why()
	case x.gone():
		return nil, x.interrupt()
	case x.sub.cfg.FailurePolicy != ahp.FailOpen:
		return nil, fmt.Errorf("harness: subscription %d of backend %s is %s: it can't be given up", x.sub.id.Index, x.sub.id.Backend, x.sub.cfg.FailurePolicy)
	}
	f := x.answer.Failure
	if f == nil {
		f = &ahp.Failure{Class: ahp.FailDeadline, Detail: "the host waited no longer"}
	}
	return x.apply(f), nil
}

// Cancel interrupts the call: a pending Send ends at once, nothing that is staged
// or late is ever applied, and the chain asks nobody else. What was accepted before
// stays, but must not be carried out. It may be repeated.
func (x *Exchange) Cancel() {
	x.mu.Lock()
	defer x.unlock()
	if x.phase != phaseSettled {
		x.interrupt()
		return
	}
	if !x.interrupted {
		x.interrupted = true
		x.chain.mu.Lock()
		x.chain.interrupt()
		x.chain.mu.Unlock()
	}
}

// settleInterrupted is interrupt for callers without the lock.
func (x *Exchange) settleInterrupted() error {
	x.mu.Lock()
	defer x.unlock()
	if x.phase == phaseSettled {
		return x.why()
	}
	return x.interrupt()
}

// The methods below want x.mu to be held.

func (x *Exchange) gone() bool { return x.chain.gone() }
func (x *Exchange) late() bool { return !x.deadline.IsZero() && !time.Now().Before(x.deadline) }

// why returns the error for who comes too late.
func (x *Exchange) why() error {
	switch {
	case x.interrupted && x.chain.h.ctx.Err() != nil:
		return ErrClosed
	case x.interrupted:
		return ErrInterrupted
	}
	return ErrSettled
}

// failed notes a failure whose policy is still to be applied, and returns it.
func (x *Exchange) failed(f *ahp.Failure) error {
	if x.budgeted && (f.Class == ahp.FailDeadline || f.Class == ahp.FailLate) {
		f = &ahp.Failure{Class: f.Class, Detail: "the budget of the whole call ran out: " + f.Detail, Err: f}
	}
	x.phase, x.next = phaseFailed, nil
	x.answer.Failure = f
	return f
}

// apply settles by the policy.
func (x *Exchange) apply(f *ahp.Failure) *ahp.Outcome {
	x.answer.Kind, x.answer.Failure, x.answer.Policy = ahp.AnswerFailure, f, x.sub.cfg.FailurePolicy
	x.answer.Effects, x.answer.Changed = nil, false
	next := x.base.clone()
	next.Expired = x.budgeted && (f.Class == ahp.FailDeadline || f.Class == ahp.FailLate)
	if x.answer.Policy == ahp.FailOpen {
		return x.settle(next, false)
	}
	next.raise(ahp.PermissionDeny)
	next.Denials = append(next.Denials, ahp.Denial{By: x.sub.id, Reason: SyntheticReason, Synthetic: true})
	next.dropCandidate()
	return x.settle(next, true)
}

// interrupt settles as cancelled: that beats the reply, the deadline and the
// policy (§14). What had been accepted before stays.
func (x *Exchange) interrupt() error {
	x.interrupted = true
	x.answer = ahp.Answer{By: x.answer.By, Kind: ahp.AnswerInterrupted, Failure: x.answer.Failure, Attempts: x.answer.Attempts, Earlier: x.answer.Earlier}
	next := x.base.clone()
	next.Interrupted = true
	next.Expired = next.Expired || errors.Is(x.chain.outer.Err(), context.DeadlineExceeded)
	x.settle(next, true)
	return x.why()
}

// bug settles without an outcome.
func (x *Exchange) bug(err error) error {
	x.phase = phaseSettled
	x.answer.Kind = ""
	x.finish()
	x.chain.fault(err)
	return err
}

// settle publishes next with the answer in its trace.
func (x *Exchange) settle(next *settled, over bool) *ahp.Outcome {
	x.phase, x.next = phaseSettled, nil
	x.finish()
	next.Trace = append(slices.Clip(x.base.Trace), x.answer)
	x.chain.publish(next, over)
	o := next.Outcome
	return &o
}

// finish ends what is in progress and sees to the report.
func (x *Exchange) finish() {
	if x.cancel != nil {
		x.cancel()
	}
	if !x.began.IsZero() {
		x.answer.Milliseconds = time.Since(x.began).Milliseconds()
	}
	if x.chain.h.opts.Telemetry != nil {
		a := x.answer
		x.report = &a
	}
}
