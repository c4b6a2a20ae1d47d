package backend

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/abhed/abhed/ahp"
)

// Handlers is a Handler made of one function for each event type. It must not
// change while it serves.
type Handlers struct {
	// On judges events, by type.
	On map[ahp.EventType]Func
	// Else judges the events of types that On doesn't have; nil answers them with
	// unsupported_event, which is an operational failure for the harness: a
	// subscription to an event that nobody judges shows at its first event.
	Else Func
	// Seen takes note of the events that the backend is only told of, whatever their
	// type; nil ignores them. Calls are made one after the other.
	Seen func(ctx context.Context, e *ahp.Event)
}

var _ Observer = (*Handlers)(nil)

// Intercept calls the function for the event's type.
func (h *Handlers) Intercept(ctx context.Context, q *ahp.Intercept) ([]ahp.Effect, error) {
	f := h.On[q.Event.Type]
	if f == nil {
		f = h.Else
	}
	if f == nil {
		return nil, &ahp.RPCError{Code: ahp.CodeUnsupportedEvent, Message: fmt.Sprintf("unsupported_event: %s", q.Event.Type)}
	}
	return f(ctx, q)
}

// Observe calls Seen.
func (h *Handlers) Observe(ctx context.Context, e *ahp.Event) {
	if h.Seen != nil {
		h.Seen(ctx, e)
	}
}

// Manifest returns what h takes, as an answer to discovery: the event types of On,
// or all if there is an Else, for interception with every effect, and all for
// observation if there is a Seen. Main answers with it if it is given no other.
func (h *Handlers) Manifest() *ahp.Manifest {
	taken := slices.Collect(maps.Keys(h.On))
	if h.Else != nil {
		taken = ahp.EventTypes()
	}
	var rows []ahp.ManifestEvent
	for _, t := range ahp.EventTypes() {
		switch intercepts := t.Interceptable() && slices.Contains(taken, t); {
		case intercepts && h.Seen != nil:
			rows = append(rows, ahp.NewManifestEvent(t, ahp.ModeIntercept, ahp.ModeObserve))
		case intercepts:
			rows = append(rows, ahp.NewManifestEvent(t, ahp.ModeIntercept))
		case h.Seen != nil:
			rows = append(rows, ahp.NewManifestEvent(t, ahp.ModeObserve))
		}
	}
	return ahp.NewManifest(rows...)
}
