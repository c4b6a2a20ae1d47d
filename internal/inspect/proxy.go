package inspect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/backend"
	"github.com/abhed/abhed/ahp/harness"
	"github.com/abhed/abhed/internal/strictjson"
)

// judge answers for the backends behind.
type judge struct{ *Inspector }

// Intercept asks them, one after the other.
func (j judge) Intercept(ctx context.Context, q *ahp.Intercept) ([]ahp.Effect, error) {
	if j.chain == nil {
		return nil, nil
	}
	if q.Event.Type == ahp.UserElicitationResult && !j.chain.Subscribed(q.Event.Type, ahp.ModeIntercept) {
		return nil, nil // a chain of nobody would still want the request before it
	}
	j.limitElicitations(q.Event)
	opts := harness.DispatchOptions{HoldObservers: true}
	got, err := j.chain.Dispatch(withRequest(ctx, q), q.Event, &q.Capabilities, q.State, opts)
	if err != nil {
		return nil, err
	}
	// Also where the answer is an error: who was asked isn't to be told again.
	j.told.hold(keyOf(q.Event), got, weigh(ctx))
	effects, err := combined(&got.Outcome, &q.Capabilities)
	if err == nil && thereAndBack(q, &got.Outcome) {
		err = fmt.Errorf("%w: backends changed the event and changed it back, so what was decided before this one no longer counts, and no effect can say so", backend.ErrUnavailable)
	}
	return effects, err
}

// combined returns the accepted effects of all backends as one list, which makes of
// the event what they made of it one after the other (§11). Within one answer edits
// come before everything else, so an allow or a result that was about a value which
// a later backend changed has to be left out: the chain dropped it.
//
// A denial because a required backend could not be asked is an effect where that is
// advertised. Elsewhere it is an error, to which the harness's own failure policy
// for this backend applies.
func combined(o *ahp.Outcome, caps *ahp.Capabilities) ([]ahp.Effect, error) {
	if o.Interrupted {
		return nil, backend.ErrUnavailable
	}
	var out []ahp.Effect
	for i := range o.Trace {
		a := &o.Trace[i]
		if a.Changed {
			out = slices.DeleteFunc(out, func(e ahp.Effect) bool {
				return e.EffectType() == ahp.EffectAllow || e.EffectType() == ahp.EffectReturn
			})
		}
		out = append(out, a.Effects...)
	}
	for _, d := range o.Denials {
		if !d.Synthetic {
			continue
		}
		if !caps.Has(ahp.EffectDeny) {
			return nil, backend.ErrUnavailable
		}
		out = append(out, &ahp.Deny{Reason: d.Reason})
	}
	return out, nil
}

// thereAndBack reports whether the backends changed the event, came back to what it
// was, and by that took back an allow or a result that stands since before (§11, 5):
// the harness would see no change, and keep it.
func thereAndBack(q *ahp.Intercept, o *ahp.Outcome) bool {
	if !o.Changed || q.State == nil || q.State.Candidate == nil && q.State.Permission != ahp.PermissionAllow {
		return false
	}
	was, err := q.Event.Encode()
	is, bad := o.Event.Encode()
	return err != nil || bad != nil || strictjson.Equal(was, is)
}

// Observe tells the backends behind. An event about which they were asked goes to
// its observers as the harness has it at last, and to those who weren't asked
// because an answer ended the chain; one about which nobody was asked, to all. A
// harness may tell the same event twice, once for each subscription: they are told
// once.
func (j judge) Observe(ctx context.Context, e *ahp.Event) {
	if j.chain == nil {
		return
	}
	j.limitElicitations(e)
	var err error
	switch o, known := j.told.take(keyOf(e)); {
	case !e.Type.Interceptable():
		_, err = j.chain.Observe(ctx, e)
	case o != nil:
		err = o.Release(e)
	case known:
	case e.Type == ahp.UserElicitationResult: // its request may never have come
		_, err = j.chain.Observe(ctx, e)
	default:
		_, err = j.chain.Dispatch(context.WithoutCancel(ctx), e, &ahp.Capabilities{Effects: []ahp.EffectType{}}, nil, harness.DispatchOptions{ObserveOnly: true})
	}
	if err != nil && !errors.Is(err, harness.ErrClosed) {
		j.log.note(ctx, "not passed on: "+err.Error())
	}
}

// limitElicitations forgets the oldest requests of elicitations: nobody tells a
// backend that no answer will come.
func (j judge) limitElicitations(e *ahp.Event) {
	if e.Type != ahp.UserElicitationRequest {
		return
	}
	j.told.mu.Lock()
	defer j.told.mu.Unlock()
	t := &j.told
	if t.elicitations = append(t.elicitations, keyOf(e)); len(t.elicitations) > maxElicitations {
		j.chain.Elicitations().Drop(t.elicitations[0].source, t.elicitations[0].id)
		t.elicitations = slices.Delete(t.elicitations, 0, 1)
	}
}

// Bounds of what is remembered of events: their identities, the observations that
// wait for the harness to tell that the event is decided, and the elicitations that
// wait for their results.
const (
	maxElicitations = 512

	maxTold      = 4096
	maxHeld      = 256
	maxHeldBytes = 64 << 20
)

// key identifies an event (§5).
type key struct{ source, id string }

func keyOf(e *ahp.Event) key { return key{e.Source, e.ID} }

// told remembers the latest events. The zero value is ready.
type told struct {
	mu    sync.Mutex
	known map[key]bool
	order []key // of known, oldest first
	held  []heldOutcome
	bytes int

	elicitations []key // oldest first
}

type heldOutcome struct {
	key     key
	outcome *harness.Outcome
	bytes   int
}

// hold keeps the observations of an outcome until take. Those of an earlier outcome
// of the same event, or beyond the bounds, are never sent.
func (t *told) hold(k key, o *harness.Outcome, bytes int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.remember(k)
	t.remove(k)
	t.held = append(t.held, heldOutcome{k, o, bytes})
	t.bytes += bytes
	for len(t.held) > maxHeld || t.bytes > maxHeldBytes {
		t.bytes -= t.held[0].bytes
		t.held = slices.Delete(t.held, 0, 1)
	}
}

// take returns the outcome held for k, nil for none, and whether k was known.
func (t *told) take(k key) (*harness.Outcome, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	known := t.known[k]
	t.remember(k)
	return t.remove(k), known
}

func (t *told) remove(k key) *harness.Outcome {
	for i, h := range t.held {
		if h.key == k {
			t.held = slices.Delete(t.held, i, i+1)
			t.bytes -= h.bytes
			return h.outcome
		}
	}
	return nil
}

func (t *told) remember(k key) {
	if t.known == nil {
		t.known = map[key]bool{}
	}
	if t.known[k] {
		return
	}
	t.known[k] = true
	if t.order = append(t.order, k); len(t.order) > maxTold {
		delete(t.known, t.order[0])
		t.order = slices.Delete(t.order, 0, 1)
	}
}
