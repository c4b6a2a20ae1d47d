package harness

import (
	"context"
	"maps"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/run"
)

// maxTelemetryBytes bounds what Telemetry.Extensions may add to one message.
const maxTelemetryBytes = 8 << 10

// Telemetry is told what a Harness does while it does it, for spans and metrics.
// It can change no decision. Its methods and the functions that they return are
// called from several goroutines and must return soon: a dispatch waits for them.
// A panic in one is contained, and counts as if it had done nothing.
type Telemetry interface {
	// Dispatch is called at the start of a dispatch, or of a Chain, that was not
	// refused for a bug of its caller. The context that it returns takes the place of
	// ctx, from which it must be made. The function is called once with what Dispatch
	// or Chain.Finish returns: one of the two is nil. Nil stands for nothing to do.
	Dispatch(ctx context.Context, e *ahp.Event) (context.Context, func(*ahp.Outcome, error))
	// Ask is called before one interceptor is asked, e being the effective event,
	// and like Dispatch returns a context and what to call at the end, when the answer
	// is settled. All attempts of one request are one Ask. The answer's Kind is empty where the asking ended
	// with a bug instead of an answer. The transport sees the context.
	Ask(ctx context.Context, e *ahp.Event, by ahp.SubscriptionID) (context.Context, func(ahp.Answer))
	// Extensions returns what is added to the extensions of the event as it is sent,
	// such as "org.w3c.trace_context". ctx is that of Ask, for an observation that of
	// Dispatch or of Observe. It is called once per message, so that a retry has the
	// same bytes. A key that the event already has is left alone, and neither the
	// effective event nor what a backend edits ever holds what is added. All of it
	// is left out where it isn't valid or has more than 8 KiB.
	Extensions(ctx context.Context) ahp.Extensions
	// Delivered is called when an observation has ended, like Options.OnDelivery,
	// with the values of the context that Extensions had. That context may be over.
	Delivered(ctx context.Context, d Delivery)
}

// contained calls f, which belongs to a Telemetry, and keeps its panics in.
func contained(f func()) {
	_ = run.Protect(func() error { f(); return nil })
}

// tellDispatch tells the telemetry of a dispatch; end is never nil.
func (h *Harness) tellDispatch(ctx context.Context, e *ahp.Event) (_ context.Context, end func(*ahp.Outcome, error)) {
	t := h.opts.Telemetry
	if t == nil {
		return ctx, func(*ahp.Outcome, error) {}
	}
	inner, told := ctx, (func(*ahp.Outcome, error))(nil)
	contained(func() { inner, told = t.Dispatch(ctx, e) })
	if inner == nil {
		inner = ctx
	}
	return inner, func(o *ahp.Outcome, err error) {
		if told != nil {
			contained(func() { told(o, err) })
		}
	}
}

// tellAsk tells the telemetry that by is asked; end is never nil.
func (h *Harness) tellAsk(ctx context.Context, e *ahp.Event, by ahp.SubscriptionID) (_ context.Context, end func(ahp.Answer)) {
	t := h.opts.Telemetry
	if t == nil {
		return ctx, func(ahp.Answer) {}
	}
	inner, told := ctx, (func(ahp.Answer))(nil)
	contained(func() { inner, told = t.Ask(ctx, e, by) })
	if inner == nil {
		inner = ctx
	}
	return inner, func(a ahp.Answer) {
		if told != nil {
			contained(func() { told(a) })
		}
	}
}

// extend returns seen, an event that is about to be sent, with what the telemetry
// wants to add to it, if there is anything. seen isn't changed.
func (h *Harness) extend(ctx context.Context, seen *ahp.Event) (_ *ahp.Event, more bool) {
	t := h.opts.Telemetry
	if t == nil {
		return seen, false
	}
	var add ahp.Extensions
	contained(func() { add = maps.Clone(t.Extensions(ctx)) })
	if len(add) == 0 {
		return seen, false
	}
	// An effect has extensions by the same rules, so encoding one checks them.
	b, err := ahp.EncodeEffect(&ahp.Deny{Reason: "-", Extensions: add})
	if err != nil || len(b) > maxTelemetryBytes {
		return seen, false
	}
	maps.Copy(add, seen.Extensions)
	out := *seen
	out.Extensions = add
	return &out, true
}
