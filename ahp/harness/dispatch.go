package harness

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/abhed/abhed/ahp"
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
	// Budget bounds the whole call, observations included, from when it starts; zero
	// means no bound but ctx and the deadlines of the subscriptions, and less that
	// there is no time left. At its end everybody who has not answered counts as failed
	// under its own policy, and the Outcome is Expired; the end of ctx, in contrast,
	// interrupts the call.
	Budget time.Duration
	// Prepared, if it is of the event that is dispatched, saves encoding it again.
	Prepared *Prepared
}

// Outcome is what a dispatch came to, together with its observations.
type Outcome struct {
	ahp.Outcome
	harness *Harness
	// ctx has the values of the dispatch's context, and its end is none of theirs.
	ctx context.Context
	// until is when ordinary work for this call must be over; zero for no bound.
	until      time.Time
	contents   *contents // nil where no subscription has uploads
	held       []*subscription
	deliveries *Deliveries
}

// Dispatch asks the matching interceptors about e, one after the other, and
// returns what they came to. caps is what the harness can enforce for this very
// event: no more than the manifest says. st is what was decided before, or nil.
//
// Each interceptor has its own deadline, from when it is asked until its reply is
// accepted. ctx is the whole call's: when it ends the outcome is Interrupted, and
// no observation is sent; its deadline, if it has one, bounds the observations as
// well. The decision doesn't wait for observers: Outcome.Wait does.
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
	c, err := h.Begin(ctx, e, caps, st, opts)
	if err != nil {
		return nil, err
	}
	for x := c.Next(); x != nil; x = c.Next() {
		x.run()
	}
	return c.Finish()
}

// run plays an exchange to its end. Its errors are the chain's to report.
func (x *Exchange) run() {
	reply, err := x.Send()
	if err == nil {
		err = x.Stage(reply)
	}
	if err == nil {
		_, err = x.Accept(nil)
	}
	if err != nil {
		_, _ = x.Fail(err)
	}
}

// checkDispatch checks the arguments of Dispatch, and returns the event's text.
func (h *Harness) checkDispatch(e *ahp.Event, caps *ahp.Capabilities, st *ahp.State, made *Prepared) (ahp.Raw, error) {
	text, err := made.textOf(e)
	if err != nil {
		return nil, err
	}
	return text, h.checkAdvertised(e, caps, st)
}

func (h *Harness) checkAdvertised(e *ahp.Event, caps *ahp.Capabilities, st *ahp.State) error {
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
	held, contents := o.held, o.contents
	o.held, o.contents = nil, nil
	defer contents.drop()
	return o.harness.send(o.ctx, final, held, o.until, contents, o.deliveries)
}

// Wait returns when every observation of this outcome that was sent has been
// delivered or has failed, or with ctx's error.
func (o *Outcome) Wait(ctx context.Context) error { return o.deliveries.Wait(ctx) }
