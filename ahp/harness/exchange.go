package harness

import (
	"context"
	"errors"
	"fmt"
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
	refs  refs              // the attachments of the request
	early *ahp.Failure      // why it is not to be asked, if it isn't
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
	ctx := x.ctx
	if x.chain.contents != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(h.ctx, cancel)()
	}
	s := h.show(ctx, x.sub, x.base.Event, x.chain.contents)
	seen := s.event
	x.caps = x.chain.narrow(x.base, seen, s.hidden)
	state, err := x.base.state(s.v)
	switch {
	case err != nil:
		return fmt.Errorf("harness: %w", err)
	case s.bug != nil:
		return s.bug
	}
	x.refs, x.answer.Content = s.refs, s.v.failure
	if x.sub.cfg.FailurePolicy != ahp.FailOpen {
		x.early = s.v.failure
	}
	q := &ahp.Intercept{Event: seen, Capabilities: *x.caps, State: state}
	if seen, more := h.extend(x.ctx, seen); more {
		with := *q
		with.Event = seen
		if x.msg, err = with.Encode(); err == nil {
			return nil
		}
		// What telemetry adds makes no message too large.
	}
	if seen == x.base.Event && x.base.text != nil {
		x.msg, err = q.EncodeText(x.base.text)
	} else {
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
	if x.early != nil {
		if x.gone() {
			return nil, nil, x.interrupt()
		}
		return nil, nil, x.failed(x.early)
	}
	ctx, cancel := context.WithDeadline(x.ctx, x.deadline)
	x.cancel = cancel
	x.chain.waiting(cancel)
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
	var panicked *run.PanicError
	switch {
	case errors.As(err, &panicked), f == nil && ctx.Err() == nil: // whatever the panic's value is
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
			next, changed, refused = x.base.stage(x.sub.id, effects, x.caps, x.refs, x.stopped)
		}
		return nil
	})
	tooLate := errors.Is(refused, errStopped)
	if bug == nil && !tooLate {
		x.sub.backend.judged(refused)
	}
	x.mu.Lock()
	defer x.unlock()
	switch {
	case x.phase != phaseSent: // another was quicker
		x.ignored++
		return ErrIgnored
	case bug != nil:
		return x.bug(fmt.Errorf("harness: backend %s: %w", x.sub.id.Backend, bug))
	case tooLate && x.gone():
		x.ignored++
		return x.interrupt()
	case tooLate:
		x.ignored++
		return x.failed(lateFailure())
	case refused != nil:
		return x.failed(replyFailure(reply, refused))
	}
	x.phase, x.next = phaseStaged, next
	x.answer.Effects, x.answer.Changed = effects, changed
	return nil
}

// errStopped is for a reply that is judged no further.
var errStopped = errors.New("harness: there is no time left to judge the reply")

// stopped reports whether to judge a reply of this exchange any further makes sense.
func (x *Exchange) stopped() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.phase != phaseSent || x.gone() || x.late() {
		return errStopped
	}
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
