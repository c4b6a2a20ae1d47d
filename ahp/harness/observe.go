package harness

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/run"
)

// maxQueued and maxQueuedBytes bound the observations that wait for one backend;
// more are dropped, and reported so.
const (
	maxQueued      = 256
	maxQueuedBytes = 64 << 20
)

// Delivery tells how one observation ended.
type Delivery struct {
	By      ahp.SubscriptionID
	EventID string
	Type    ahp.EventType
	// Milliseconds is how long it took, from when it was queued.
	Milliseconds int64
	// Failure is nil if the message was handed over.
	Failure *ahp.Failure
}

// Deliveries are the observations of one event.
type Deliveries struct {
	mu   sync.Mutex
	left int
	done chan struct{} // closed when none is left; nil before the first
}

func newDeliveries() *Deliveries { return &Deliveries{} }

func (d *Deliveries) add(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.left == 0 && n > 0 {
		d.done = make(chan struct{})
	}
	d.left += n
	if d.left == 0 && n < 0 {
		close(d.done)
	}
}

// Wait returns when every delivery has ended, or with ctx's error.
func (d *Deliveries) Wait(ctx context.Context) error {
	d.mu.Lock()
	done := d.done
	d.mu.Unlock()
	if done == nil {
		return nil
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Observe sends e to every subscription that observes it, best effort and in the
// background. It is for events that aren't intercepted, or were not this time. The
// observations of one backend are sent in the order of the calls. An error means
// that e is invalid or not advertised, or that the harness is closed. What is too
// large to be sent is reported to OnDelivery.
//
// Of ctx only the values count, for the telemetry: a call that was cancelled may
// still be observed, if its host says so.
func (h *Harness) Observe(ctx context.Context, e *ahp.Event) (*Deliveries, error) {
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
	if err := h.observeElicitation(e); err != nil {
		return nil, err
	}
	d := newDeliveries()
	return d, h.send(context.WithoutCancel(ctx), e, h.observers(e), time.Time{}, nil, d)
}

// observers returns the subscriptions that observe e.
func (h *Harness) observers(e *ahp.Event) []*subscription {
	var out []*subscription
	for _, s := range h.subs {
		if s.matches(e, ahp.ModeObserve) {
			out = append(out, s)
		}
	}
	return out
}

// send queues e for each of the subscriptions, as each may see it, to be delivered
// by until, if that isn't zero, and within the bound of one observation. c has the
// uploads of the call, nil for none so far. Uploads have their own time, and end
// before the observation that refers to them.
func (h *Harness) send(ctx context.Context, e *ahp.Event, to []*subscription, until time.Time, c *contents, d *Deliveries) error {
	now := time.Now()
	if c == nil && h.uploads {
		c = h.newContents(ctx, until)
		defer c.drop()
	}
	for _, s := range to {
		l := letter{ctx: ctx, queued: now, limit: until, until: h.observeBy(now, until), report: Delivery{By: s.id, EventID: e.ID, Type: e.Type}, group: d}
		d.add(1)
		if c.begin(s, e) {
			c.hold()
			l.contents, l.write = c, func() ([]byte, error) { return h.note(ctx, s, e, c) }
		} else if msg, err := h.note(ctx, s, e, nil); err == nil {
			l.msg = msg
		} else {
			// The event is valid, so it is beyond a bound. No decision depends on that.
			h.delivered(l, asDelivery(err))
			continue
		}
		if err := h.post(s.backend, l); err != nil {
			l.contents.drop()
			d.add(-1)
			return err
		}
	}
	return nil
}

// observeBy returns when an observation that can be sent now is late.
func (h *Harness) observeBy(now, limit time.Time) time.Time {
	if own := now.Add(h.opts.ObserveTimeout); limit.IsZero() || own.Before(limit) {
		return own
	}
	return limit
}

// note returns the notification of e for s, once the uploads for it have ended.
func (h *Harness) note(ctx context.Context, s *subscription, e *ahp.Event, c *contents) ([]byte, error) {
	wait, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(h.deliver, cancel)()
	seen := h.show(wait, s, e, c)
	if seen.bug != nil {
		return nil, seen.bug
	}
	with, more := h.extend(ctx, seen.event)
	msg, err := (&ahp.Observe{Event: with}).Encode()
	if err != nil && more {
		msg, err = (&ahp.Observe{Event: seen.event}).Encode()
	}
	return msg, err
}

// asDelivery returns the failure of an observation that could not be written.
func asDelivery(err error) *ahp.Failure {
	return &ahp.Failure{Class: ahp.FailMalformed, Detail: err.Error(), Err: err}
}

// letter is one observation on its way.
type letter struct {
	ctx context.Context // for its values
	// limit is the end of the whole call's budget, zero for none, and until that of
	// the delivery.
	limit, until time.Time
	msg          []byte
	// write makes msg when its uploads have ended, which is within their own time; nil
	// where there are none.
	write    func() ([]byte, error)
	contents *contents
	queued   time.Time
	report   Delivery
	group    *Deliveries
}

// mailbox sends the observations of one backend one after the other; it has a
// goroutine only while there are any.
type mailbox struct {
	mu      sync.Mutex
	queue   []letter
	bytes   int // of the messages in queue
	running bool
}

// wait gives what is queued behind an upload the time that this took.
func (m *mailbox) wait(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.queue {
		l := &m.queue[i]
		if l.until = l.until.Add(d); !l.limit.IsZero() && l.limit.Before(l.until) {
			l.until = l.limit
		}
	}
}

func (h *Harness) post(b *backend, l letter) error {
	if err := h.enter(); err != nil {
		return err
	}
	b.mail.mu.Lock()
	full := len(b.mail.queue) >= maxQueued || b.mail.bytes+len(l.msg) > maxQueuedBytes
	start := !b.mail.running
	if !full {
		b.mail.queue = append(b.mail.queue, l)
		b.mail.bytes += len(l.msg)
		b.mail.running = true
	}
	b.mail.mu.Unlock()
	switch {
	case full:
		h.delivered(l, &ahp.Failure{Class: ahp.FailDeadline, Detail: "too many observations wait for the backend; this one was dropped"})
		h.active.Done()
	case start:
		go func() {
			defer h.active.Done()
			h.empty(b)
		}()
	default:
		h.active.Done() // the goroutine that empties the mailbox counts for it
	}
	return nil
}

// empty sends what is queued until nothing is.
func (h *Harness) empty(b *backend) {
	for {
		b.mail.mu.Lock()
		if len(b.mail.queue) == 0 {
			b.mail.running = false
			b.mail.queue = nil
			b.mail.mu.Unlock()
			return
		}
		l := b.mail.queue[0]
		b.mail.queue = b.mail.queue[1:]
		b.mail.bytes -= len(l.msg)
		b.mail.mu.Unlock()

		if l.write != nil {
			began := time.Now()
			msg, err := l.write()
			b.mail.wait(time.Since(began))
			if err != nil {
				h.delivered(l, asDelivery(err))
				continue
			}
			l.msg, l.until = msg, h.observeBy(time.Now(), l.limit)
		}
		ctx, cancel := context.WithDeadline(l.ctx, l.until)
		stop := context.AfterFunc(h.deliver, cancel)
		err := run.Protect(func() error { return b.link.Notify(ctx, l.msg) })
		stop()
		cancel()
		var failure *ahp.Failure
		if err != nil {
			if failure = ahp.AsFailure(err); failure == nil {
				failure = &ahp.Failure{Class: ahp.FailShutdown, Detail: err.Error(), Err: err}
			}
		}
		h.delivered(l, failure)
	}
}

// delivered reports the end of an observation. Nobody's outcome depends on it.
func (h *Harness) delivered(l letter, failure *ahp.Failure) {
	l.report.Failure, l.report.Milliseconds = failure, time.Since(l.queued).Milliseconds()
	if h.opts.OnDelivery != nil {
		h.opts.OnDelivery(l.report)
	}
	if t := h.opts.Telemetry; t != nil {
		contained(func() { t.Delivered(l.ctx, l.report) })
	}
	l.contents.drop()
	l.group.add(-1)
}
