package harness

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/abhed/abhed/ahp"
)

// Chain is one event on its way through the interceptors that match it: one after
// the other, in registration order (§11). Dispatch plays a chain to its end. A
// host that owns its loop plays it itself, and may have other chains in progress
// meanwhile:
//
//	c, err := h.Begin(ctx, e, caps, st, opts)
//	for x := c.Next(); x != nil; x = c.Next() {
//		reply, err := x.Send()
//		if err == nil {
//			err = x.Stage(reply)
//		}
//		if err == nil {
//			_, err = x.Accept(nil)
//		}
//		if err != nil {
//			_, _ = x.Fail(err)
//		}
//	}
//	out, err := c.Finish()
//
// Its methods may be called from any goroutine. A chain needs no closing: what it
// starts, which is uploads alone (see Content), ends with their own time, and an
// elicitation waits no longer when ctx ends before Finish.
type Chain struct {
	h     *Harness
	outer context.Context // the caller's, with what telemetry added
	end   func(*ahp.Outcome, error)
	opts  DispatchOptions
	event *ahp.Event // as it was dispatched: subscriptions are matched by it
	caps  *ahp.Capabilities
	until time.Time // the end of the budget, zero for none
	// contents is nil where no subscription has uploads.
	contents *contents
	// cancelled tells that an exchange was cancelled, by which the whole call is.
	cancelled atomic.Bool

	mu   sync.Mutex
	now  *settled
	left []*subscription // matching interceptors that were not asked, in order
	open *Exchange       // the one in progress
	// over tells that nobody else is asked; finished, that Finish was called.
	over, finished bool
	bug            error
	stop           context.CancelFunc // ends what the exchange in progress waits for
	unwatch        func() bool        // nil unless an elicitation ends with outer
}

// Begin starts a chain. Arguments and errors are those of Dispatch. ctx is the
// whole call's: its end interrupts the chain wherever it is.
func (h *Harness) Begin(ctx context.Context, e *ahp.Event, caps *ahp.Capabilities, st *ahp.State, opts DispatchOptions) (*Chain, error) {
	text, err := h.checkDispatch(e, caps, st, opts.Prepared)
	if err != nil {
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
	start.text = text
	if h.ctx.Err() != nil {
		return nil, ErrClosed
	}
	if err := h.enterElicitation(start); err != nil {
		return nil, err
	}
	c := &Chain{h: h, opts: opts, event: e, caps: caps, now: start, over: opts.ObserveOnly}
	if opts.Budget != 0 {
		c.until = time.Now().Add(opts.Budget)
	}
	for _, s := range h.subs {
		if s.matches(e, ahp.ModeIntercept) && (opts.Only == nil || slices.Contains(opts.Only, s.id)) {
			c.left = append(c.left, s)
		}
	}
	c.outer, c.end = h.tellDispatch(ctx, e)
	c.watchElicitation()
	if h.uploads {
		c.contents = h.newContents(c.outer, c.until)
		for _, s := range c.left {
			if !c.over {
				c.contents.begin(s, e)
			}
		}
	}
	return c, nil
}

// gone reports whether the call was interrupted, by its caller or by Close.
func (c *Chain) gone() bool {
	return c.cancelled.Load() || c.outer.Err() != nil || c.h.ctx.Err() != nil
}

// interrupt ends the chain; the caller holds c.mu.
func (c *Chain) interrupt() {
	c.cancelled.Store(true)
	if c.stop != nil {
		c.stop()
	}
	c.contents.end()
	c.now = c.now.clone()
	c.now.Interrupted, c.over = true, true
	c.now.Expired = c.now.Expired || errors.Is(c.outer.Err(), context.DeadlineExceeded)
}

// Next returns the exchange with the next interceptor, or nil when nobody else is
// to be asked: all have been, the chain was ended by an answer (§11, 10) or was
// interrupted. It is nil as well while the exchange before it isn't settled. It
// waits for the uploads of what the interceptor is to see, for at most their time.
func (c *Chain) Next() *Exchange {
	c.mu.Lock()
	if c.finished || c.over || c.bug != nil || c.open != nil || len(c.left) == 0 {
		c.mu.Unlock()
		return nil
	}
	if c.gone() {
		c.interrupt()
		c.mu.Unlock()
		return nil
	}
	x := &Exchange{chain: c, sub: c.left[0], base: c.now, answer: ahp.Answer{By: c.left[0].id}}
	c.left, c.open = c.left[1:], x
	c.mu.Unlock()
	if err := x.prepare(); err != nil {
		c.fault(err)
		return nil
	}
	return x
}

// fault records a bug: the chain comes to no outcome.
func (c *Chain) fault(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open = nil
	if c.bug == nil {
		c.bug = err
	}
}

// waiting notes how to end what the exchange in progress waits for.
func (c *Chain) waiting(stop context.CancelFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stop = stop; c.now.Interrupted {
		stop()
	}
}

// publish makes next the state of the chain.
func (c *Chain) publish(next *settled, over bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now.Interrupted && !next.Interrupted { // an interruption stays one
		next = next.clone()
		next.Interrupted, next.Expired = true, next.Expired || c.now.Expired
	}
	c.now, c.open, c.stop = next, nil, nil
	c.over = c.over || over
	if next.Interrupted {
		c.contents.end()
	}
}

// Finish returns what the chain came to, once, and sends or holds its observations
// as the options say. It is an error to finish while an exchange isn't settled, or
// while somebody is left to ask: what wasn't asked didn't pass.
func (c *Chain) Finish() (*Outcome, error) {
	out, err := c.finish()
	if err != nil {
		c.end(nil, err)
		return nil, err
	}
	c.end(&out.Outcome, nil)
	return out, nil
}

func (c *Chain) finish() (out *Outcome, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone() && (!c.over || c.opts.ObserveOnly) {
		c.interrupt() // cancelled with nobody left to ask, or before
	}
	again := c.finished
	c.finished = true
	if !again {
		defer c.contents.drop() // an outcome that needs it holds it too
		defer func() { c.leaveElicitation(out) }()
	}
	switch {
	case again:
		return nil, errors.New("harness: bug: the chain was finished before")
	case c.bug != nil:
		return nil, c.bug
	case c.open != nil && !c.now.Interrupted:
		return nil, errors.New("harness: bug: the chain was finished during an exchange; accept, fail or cancel it first")
	case !c.over && len(c.left) > 0:
		return nil, fmt.Errorf("harness: bug: the chain was finished with %d interceptors left to ask", len(c.left))
	case c.now.Interrupted && c.h.ctx.Err() != nil:
		return nil, ErrClosed
	}
	out = &Outcome{Outcome: c.now.Outcome, harness: c.h, ctx: context.WithoutCancel(c.outer), until: c.until, deliveries: newDeliveries()}
	if d, ok := c.outer.Deadline(); ok && (out.until.IsZero() || d.Before(out.until)) {
		out.until = d
	}
	if c.opts.NoObservers || out.Interrupted {
		return out, nil
	}
	out.held = append(slices.Clip(c.left), c.h.observers(c.event)...)
	out.contents = c.contents
	c.contents.hold()
	if !c.opts.HoldObservers {
		if err := out.Release(nil); err != nil && !errors.Is(err, ErrClosed) {
			return nil, err
		}
	}
	return out, nil
}
