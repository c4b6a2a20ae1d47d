package harness

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/run"
)

// What the methods of an Exchange return besides *ahp.Failure and bugs.
var (
	// ErrIgnored is for a reply that nobody waits for: it came twice, or after the
	// exchange was settled. It changed nothing but Exchange.Ignored.
	ErrIgnored = errors.New("harness: the reply is ignored, because nobody waits for it")
	// ErrInterrupted is for a call that was cancelled (§14).
	ErrInterrupted = errors.New("harness: the call was interrupted")
	// ErrNotStaged is for accepting what isn't there yet, or is settled.
	ErrNotStaged = errors.New("harness: no staged reply to accept")
	// ErrSettled is for failing an exchange that was accepted or has failed.
	ErrSettled = errors.New("harness: the exchange is settled")
)

type phase int

const (
	phaseNew    phase = iota
	phaseSent         // the reply is awaited, and no other was staged
	phaseStaged       // a valid reply waits for Accept
	phaseFailed       // the policy is still to be applied
	phaseSettled
)

// Exchange is one interception under way: one subscription is asked about one
// event. It goes from Send over Stage to Accept, or ends by Fail, FailOpen or
// Cancel; whatever settles it first wins, and then nothing changes the outcome.
// Exchanges of different chains are independent, and several may be pending at one
// backend where its transport can: a persistent process is asked one at a time, and
// waiting for it counts against the deadline. All methods may be called from any
// goroutine.
type Exchange struct {
	chain *Chain
	sub   *subscription
	base  *settled          // what the chain had come to before
	caps  *ahp.Capabilities // as the request has them
	msg   []byte
	ctx   context.Context // the call's
	end   func(ahp.Answer)

	mu              sync.Mutex
	phase           phase
	began, deadline time.Time
	budgeted        bool               // the deadline is that of the whole call's budget
	cancel          context.CancelFunc // ends what is in progress, if anything
	next            *settled           // with phaseStaged
	answer          ahp.Answer         // as far as it is known
	interrupted     bool
	ignored         int
	report          *ahp.Answer // for telemetry, once the lock is free
}

// prepare makes the message. An error is a bug, or an event that can't be sent.
func (x *Exchange) prepare() error {
	c := x.chain
	x.ctx, x.end = c.h.tellAsk(c.outer, x.base.Event, x.sub.id)
	err := x.encode()
	if err != nil {
		x.end(x.answer)
	}
	return err
}

func (x *Exchange) encode() error {
	h := x.chain.h
	seen, hidden := view(x.base.Event, x.sub.cfg)
	x.caps = x.chain.narrow(x.base, seen, hidden)
	state, err := x.base.state()
	if err != nil {
		return fmt.Errorf("harness: %w", err)
	}
	q := &ahp.Intercept{Event: seen, Capabilities: *x.caps, State: state}
	plain := seen.Extensions
	h.extend(x.ctx, seen)
	if x.msg, err = q.Encode(); err != nil {
		seen.Extensions = plain // what telemetry adds makes no message too large
		x.msg, err = q.Encode()
	}
	if err != nil {
		return fmt.Errorf("harness: the request can't be encoded: %w", err)
	}
	return nil
}

// By returns the subscription that is asked.
func (x *Exchange) By() ahp.SubscriptionID { return x.sub.id }

// Message returns the request as it is sent. It must not be changed.
func (x *Exchange) Message() []byte { return x.msg }

// Ignored returns how many replies came that nobody waited for.
func (x *Exchange) Ignored() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.ignored
}

// unlock frees x.mu and then tells telemetry what there is to tell.
func (x *Exchange) unlock() {
	report := x.report
	x.report = nil
	x.mu.Unlock()
	if report != nil {
		x.end(*report)
	}
}

// Send sends the request and returns the reply, undecoded, for Stage. The deadline
// of the subscription starts here; it is absolute, and it spans queueing, retries,
// staging and acceptance (§14). What Options.Retries allows is sent again in the
// same bytes. An exchange is sent once.
//
// An error is an *ahp.Failure, for Fail; ErrInterrupted or ErrClosed, if the call
// ended first, which settles the exchange; ErrSettled, if Fail or FailOpen did;
// anything else is a bug, which no failure policy opens.
func (x *Exchange) Send() ([]byte, error) {
	h := x.chain.h
	ctx, cancel, err := x.start()
	if err != nil {
		return nil, err
	}
	defer cancel()
	if err := h.enter(); err != nil {
		return nil, x.settleInterrupted()
	}
	defer h.active.Done()
	defer context.AfterFunc(h.ctx, cancel)()
	for {
		reply, err := x.attempt(ctx)
		again, err := x.received(ctx, reply, err)
		if !again {
			return reply, err
		}
	}
}

// start begins the deadline.
func (x *Exchange) start() (context.Context, context.CancelFunc, error) {
	x.mu.Lock()
	defer x.unlock()
	switch {
	case x.phase == phaseSettled:
		return nil, nil, x.why()
	case x.phase != phaseNew:
		return nil, nil, errors.New("harness: bug: the exchange was sent before")
	}
	x.phase, x.began = phaseSent, time.Now()
	x.deadline = x.began.Add(x.sub.timeout)
	if until := x.chain.until; !until.IsZero() && until.Before(x.deadline) {
		x.deadline, x.budgeted = until, true
	}
	if x.late() {
		return nil, nil, x.failed(&ahp.Failure{Class: ahp.FailDeadline, Detail: "there was no time left to ask"})
	}
	ctx, cancel := context.WithDeadline(x.ctx, x.deadline)
	x.cancel = cancel
	return ctx, cancel, nil
}

// attempt sends the message once.
func (x *Exchange) attempt(ctx context.Context) (reply []byte, err error) {
	x.mu.Lock()
	x.answer.Attempts++
	x.mu.Unlock()
	err = run.Protect(func() (err error) {
		reply, err = x.sub.backend.link.Exchange(ctx, x.msg)
		return err
	})
	return reply, err
}

// received judges one attempt, and waits where another is to follow.
func (x *Exchange) received(ctx context.Context, reply []byte, err error) (again bool, _ error) {
	retry, err := x.judge(ctx, reply, err)
	if !retry {
		return false, err
	}
	f := ahp.AsFailure(err)
	x.mu.Lock()
	n, deadline := x.answer.Attempts, x.deadline
	x.mu.Unlock()
	more := pause(ctx, deadline, n)
	x.mu.Lock()
	defer x.unlock()
	switch {
	case x.phase != phaseSent:
		return false, x.why()
	case x.gone():
		return false, x.interrupt()
	case !more:
		return false, x.failed(f)
	}
	x.answer.Earlier = append(x.answer.Earlier, f)
	return true, nil
}

// judge says what an attempt means: no error, one to return, or one to retry.
func (x *Exchange) judge(ctx context.Context, reply []byte, err error) (retry bool, _ error) {
	x.mu.Lock()
	defer x.unlock()
	if x.phase != phaseSent || x.gone() {
		if err == nil {
			x.ignored++
		}
		if x.phase != phaseSent {
			return false, x.why()
		}
		x.answer.Failure = ahp.AsFailure(err)
		return false, x.interrupt()
	}
	if err == nil {
		return false, nil
	}
	f := ahp.AsFailure(err)
	switch {
	case f == nil && ctx.Err() == nil:
		return false, x.bug(fmt.Errorf("harness: backend %s: the transport failed in no known way: %w", x.sub.id.Backend, err))
	case f == nil:
		f = &ahp.Failure{Class: ahp.FailDeadline, Detail: err.Error(), Err: err}
	case retryable(f) && x.answer.Attempts <= x.chain.h.opts.Retries:
		return true, f
	}
	return false, x.failed(f)
}

// Stage decodes a reply and checks it as a whole, and publishes nothing (§11, 2).
// The first reply decides, a bad one too: every other gets ErrIgnored and counts
// as ignored, as does one that comes after the end. Any other error is an
// *ahp.Failure, for Fail, ErrInterrupted, ErrClosed, or a bug.
func (x *Exchange) Stage(reply []byte) error {
	if err := x.awaited(); err != nil {
		return err
	}
	var (
		effects []ahp.Effect
		next    *settled
		changed bool
		refused error
	)
	bug := run.Protect(func() error {
		if effects, refused = ahp.DecodeEffectsReply(reply, ahp.StringID(x.base.Event.ID)); refused == nil {
			next, changed, refused = x.base.stage(x.sub.id, effects, x.caps)
		}
		return nil
	})
	x.mu.Lock()
	defer x.unlock()
	switch {
	case x.phase != phaseSent: // another was quicker
		x.ignored++
		return ErrIgnored
	case bug != nil:
		return x.bug(fmt.Errorf("harness: backend %s: %w", x.sub.id.Backend, bug))
	case refused != nil:
		return x.failed(ahp.ReplyFailure(refused))
	}
	x.phase, x.next = phaseStaged, next
	x.answer.Effects, x.answer.Changed = effects, changed
	return nil
}

// awaited reports why a reply is not to be looked at.
func (x *Exchange) awaited() error {
	x.mu.Lock()
	defer x.unlock()
	switch {
	case x.phase == phaseNew:
		return errors.New("harness: bug: a reply to a request that was not sent")
	case x.phase != phaseSent:
		x.ignored++
		return ErrIgnored
	case x.gone():
		x.ignored++
		return x.interrupt()
	case x.late():
		x.ignored++
		return x.failed(lateFailure())
	}
	return nil
}

func lateFailure() *ahp.Failure {
	return &ahp.Failure{Class: ahp.FailLate, Detail: "the reply came after the deadline", Err: context.DeadlineExceeded}
}

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
	a := x.answer
	x.report = &a
}
