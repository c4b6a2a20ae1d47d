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

// SyntheticReason is the reason of a denial that a fail-closed policy makes: it
// tells a model nothing of what went wrong (§14).
const SyntheticReason = "A required policy check of this operation could not be completed, so the operation was refused."

// DispatchOptions narrows one dispatch. The zero value asks every matching
// interceptor and lets the observers know at once.
type DispatchOptions struct {
	// Only, if not nil, names the interceptors to ask; order is still that of the
	// registration. Others count as not matching. An id of no interceptor is an
	// error.
	Only []ahp.SubscriptionID
	// NoObservers sends the event to no observer, not even in place of an
	// interceptor that was not asked.
	NoObservers bool
	// ObserveOnly asks nobody: the event is already refused, and every matching
	// interceptor gets it as an observation, as after an early end of the chain.
	ObserveOnly bool
	// HoldObservers keeps the observations until Outcome.Release; without that
	// call they are never sent.
	HoldObservers bool
}

// Outcome is what a dispatch came to, together with its observations.
type Outcome struct {
	ahp.Outcome
	harness *Harness
	// ctx has the values of the dispatch's context, and its end is none of theirs.
	ctx        context.Context
	held       []*subscription
	deliveries *Deliveries
}

// Dispatch asks the matching interceptors about e, one after the other, and
// returns what they came to. caps is what the harness can enforce for this very
// event: no more than the manifest says. st is what was decided before, or nil.
//
// Each interceptor has its own deadline, from when it is asked until its reply is
// accepted. ctx is the whole call's: when it ends the outcome is Interrupted, and
// no observation is sent. The decision doesn't wait for observers.
//
// A caller must take three things for a refusal: an error, an Outcome with
// Interrupted, and one with a Denial. A fail-closed policy denies at every event,
// those included that no effect can deny: what is then to be withheld, such as a
// result, is the caller's to know.
//
// An error is a bug here, in the caller or in a transport, or an event that can't
// be sent: it is invalid, too large or too deep, or not advertised; the
// capabilities go beyond the manifest; a transport failed in a way that its
// contract doesn't allow. No failure policy opens those. It is ErrClosed if Close
// came before the end. Operational failures of backends are no errors: see Outcome.Trace.
func (h *Harness) Dispatch(ctx context.Context, e *ahp.Event, caps *ahp.Capabilities, st *ahp.State, opts DispatchOptions) (*Outcome, error) {
	if err := h.checkDispatch(e, caps, st); err != nil {
		return nil, err
	}
	for _, id := range opts.Only {
		if !slices.ContainsFunc(h.subs, func(s *subscription) bool { return s.id == id && s.cfg.Mode == ahp.ModeIntercept }) {
			return nil, fmt.Errorf("harness: no interceptor %d of a backend %q", id.Index, id.Backend)
		}
	}
	start, err := begin(e, st)
	if err != nil {
		return nil, err
	}
	if err := h.enter(); err != nil {
		return nil, err
	}
	defer h.active.Done()
	ctx, end := h.tellDispatch(ctx, e)
	out, err := h.run(ctx, e, caps, start, opts)
	if err != nil {
		end(nil, err)
		return nil, err
	}
	end(&out.Outcome, nil)
	return out, nil
}

// run is Dispatch without its checks.
func (h *Harness) run(outer context.Context, e *ahp.Event, caps *ahp.Capabilities, start *settled, opts DispatchOptions) (*Outcome, error) {
	ctx, stop := context.WithCancel(outer)
	defer stop()
	defer context.AfterFunc(h.ctx, stop)()

	c := &chain{h: h, ctx: ctx, caps: caps, now: start, over: opts.ObserveOnly}
	var uncalled []*subscription
	for _, s := range h.subs {
		if !s.matches(e, ahp.ModeIntercept) || opts.Only != nil && !slices.Contains(opts.Only, s.id) {
			continue
		}
		if c.over {
			uncalled = append(uncalled, s)
		} else if err := c.ask(s); err != nil {
			return nil, err
		}
	}
	if ctx.Err() != nil && (!c.over || opts.ObserveOnly) {
		c.interrupt() // cancelled with nobody left to ask
	}
	if c.now.Interrupted && h.ctx.Err() != nil {
		return nil, ErrClosed
	}
	out := &Outcome{Outcome: c.now.Outcome, harness: h, ctx: context.WithoutCancel(outer), deliveries: newDeliveries()}
	if opts.NoObservers || out.Interrupted {
		return out, nil
	}
	out.held = append(uncalled, h.observers(e)...)
	if !opts.HoldObservers {
		if err := out.Release(nil); err != nil && !errors.Is(err, ErrClosed) {
			return nil, err
		}
	}
	return out, nil
}

func (h *Harness) checkDispatch(e *ahp.Event, caps *ahp.Capabilities, st *ahp.State) error {
	if err := e.Validate(); err != nil {
		return fmt.Errorf("harness: invalid event: %w", err)
	}
	row := h.opts.Manifest.Advertises(e.Type, ahp.ModeIntercept)
	switch {
	case row == nil:
		return fmt.Errorf("harness: unsupported_event: the manifest doesn't offer to intercept %s", e.Type)
	case caps == nil:
		return errors.New("harness: no capabilities")
	case !caps.Within(row.Capabilities):
		return fmt.Errorf("harness: the capabilities go beyond what the manifest offers for %s", e.Type)
	}
	if err := caps.Validate(e.Type); err != nil {
		return fmt.Errorf("harness: invalid capabilities: %w", err)
	}
	if st != nil {
		if err := st.Validate(); err != nil {
			return fmt.Errorf("harness: invalid state: %w", err)
		}
	}
	return nil
}

// chain is one dispatch in progress.
type chain struct {
	h    *Harness
	ctx  context.Context
	caps *ahp.Capabilities
	now  *settled
	// over tells that nobody else is asked.
	over bool
}

func (c *chain) interrupt() {
	c.now.Interrupted = true
	c.over = true
}

// ask asks one interceptor and settles its answer. An error is a bug, or an event
// that can't be sent.
func (c *chain) ask(s *subscription) error {
	if c.ctx.Err() != nil {
		c.interrupt()
		return nil
	}
	outer, end := c.h.tellAsk(c.ctx, c.now.Event, s.id)
	answer := ahp.Answer{By: s.id}
	defer func() { end(answer) }()
	began := time.Now()
	ctx, cancel := context.WithDeadline(outer, began.Add(s.timeout))
	defer cancel()
	seen, hidden := view(c.now.Event, s.cfg)
	caps := narrow(c.caps, seen.Type, hidden)
	plain := seen.Extensions
	c.h.extend(ctx, seen)
	state, err := c.now.state()
	if err != nil {
		return fmt.Errorf("harness: %w", err)
	}
	msg, err := (&ahp.Intercept{Event: seen, Capabilities: *caps, State: state}).Encode()
	if err != nil {
		seen.Extensions = plain // what telemetry adds makes no message too large
		msg, err = (&ahp.Intercept{Event: seen, Capabilities: *caps, State: state}).Encode()
	}
	if err != nil {
		return fmt.Errorf("harness: the request can't be encoded: %w", err)
	}
	var (
		next *settled
		got  ahp.Answer
	)
	err = run.Protect(func() (err error) {
		next, got, err = c.answer(ctx, s, msg, caps)
		return err
	})
	if err != nil {
		return fmt.Errorf("harness: backend %s: %w", s.id.Backend, err)
	}
	got.By, got.Milliseconds = s.id, time.Since(began).Milliseconds()
	c.publish(ctx, s, next, got)
	answer = c.now.Trace[len(c.now.Trace)-1]
	return nil
}

// answer exchanges one message and stages the reply; next is nil unless it can be
// accepted. The error is a bug, to which no policy applies.
func (c *chain) answer(ctx context.Context, s *subscription, msg []byte, caps *ahp.Capabilities) (next *settled, a ahp.Answer, bug error) {
	a.Kind = ahp.AnswerFailure
	reply, err := s.backend.link.Exchange(ctx, msg)
	if err != nil {
		a.Failure = ahp.AsFailure(err)
		switch {
		case a.Failure != nil:
		case ctx.Err() == nil:
			return nil, a, fmt.Errorf("the transport failed in no known way: %w", err)
		default:
			a.Failure = &ahp.Failure{Class: ahp.FailDeadline, Detail: err.Error(), Err: err}
		}
		return nil, a, nil
	}
	effects, err := ahp.DecodeEffectsReply(reply, ahp.StringID(c.now.Event.ID))
	if err == nil {
		next, a.Changed, err = c.now.stage(s.id, effects, caps)
	}
	if err != nil {
		a.Failure = ahp.ReplyFailure(err)
		return nil, a, nil
	}
	a.Kind, a.Effects = ahp.AnswerEffects, effects
	return next, a, nil
}

// publish makes next the state of the chain, unless the call was cancelled or the
// deadline has passed meanwhile; a failure is met by the subscription's policy.
func (c *chain) publish(ctx context.Context, s *subscription, next *settled, a ahp.Answer) {
	if c.ctx.Err() != nil {
		// Cancellation beats the reply, the deadline and the policy (§14). What had
		// been accepted before stays.
		a = ahp.Answer{By: a.By, Kind: ahp.AnswerInterrupted, Milliseconds: a.Milliseconds, Failure: a.Failure}
		c.now = c.now.clone()
		c.now.Trace = append(slices.Clip(c.now.Trace), a)
		c.interrupt()
		return
	}
	if next != nil && ctx.Err() != nil {
		next = nil
		a.Kind, a.Effects, a.Changed = ahp.AnswerFailure, nil, false
		a.Failure = &ahp.Failure{Class: ahp.FailLate, Detail: "the reply came after the deadline", Err: ctx.Err()}
	}
	if next != nil {
		c.over = ends(a.Effects)
	} else {
		next = c.now.clone()
		a.Policy = s.cfg.FailurePolicy
		if a.Policy != ahp.FailOpen {
			next.raise(ahp.PermissionDeny)
			next.Denials = append(next.Denials, ahp.Denial{By: s.id, Reason: SyntheticReason, Synthetic: true})
			next.dropCandidate()
			c.over = true
		}
	}
	next.Trace = append(slices.Clip(c.now.Trace), a)
	c.now = next
}

// Release sends the observations that HoldObservers kept, with final as the event,
// or the outcome's own event where final is nil. final must have the same type, id
// and source. A second call does nothing.
func (o *Outcome) Release(final *ahp.Event) error {
	if final == nil {
		final = o.Event
	} else if final.ID != o.Event.ID || final.Source != o.Event.Source || final.Type != o.Event.Type {
		return errors.New("harness: the released event is another one")
	} else if err := final.Validate(); err != nil {
		return fmt.Errorf("harness: invalid event: %w", err)
	}
	held := o.held
	o.held = nil
	return o.harness.send(o.ctx, final, held, o.deliveries)
}

// Wait returns when every observation of this outcome that was sent has been
// delivered or has failed, or with ctx's error.
func (o *Outcome) Wait(ctx context.Context) error { return o.deliveries.Wait(ctx) }
