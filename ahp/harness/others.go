package harness

import (
	"context"
	"fmt"
	"time"

	"github.com/abhed/abhed/ahp"
)

// ObserveOthers is Observe for every backend but the one with the given id: news
// of a backend's failure must not depend on that backend (§14).
func (h *Harness) ObserveOthers(ctx context.Context, e *ahp.Event, but string) (*Deliveries, error) {
	if err := e.Validate(); err != nil {
		return nil, fmt.Errorf("harness: invalid event: %w", err)
	}
	if h.opts.Manifest.Advertises(e.Type, ahp.ModeObserve) == nil {
		return nil, fmt.Errorf("harness: unsupported_event: the manifest doesn't offer to observe %s", e.Type)
	}
	if err := h.enter(); err != nil {
		return nil, err
	}
	defer h.active.Done()
	var to []*subscription
	for _, s := range h.observers(e) {
		if s.id.Backend != but {
			to = append(to, s)
		}
	}
	d := newDeliveries()
	return d, h.send(context.WithoutCancel(ctx), e, to, time.Time{}, nil, d)
}
