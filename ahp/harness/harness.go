// Package harness is the harness's side of the Agent Hooks Protocol: it takes a
// registration, asks the interceptors about an event one after the other, and
// comes to one outcome.
//
// It guarantees the composition rules of the protocol (§11 to §14): interceptors
// are asked in registration order, each within one absolute deadline from dispatch
// to acceptance; a reply counts as a whole or not at all, and only with effects
// that this request advertised; an operational failure is answered by the
// subscription's own policy, leaves a trace, and is never taken for a decision; a
// deny wins over everything; nothing accepted makes a permission less strict, but
// that a changed input drops an earlier allow; cancellation beats all of it, and
// starts nothing new. Observers never delay a decision and can't change it. Every
// goroutine and process that a Harness starts ends with Close, and a session that
// waits for nobody has none.
//
// Dispatch is the whole of it in one call. A host that owns its loop, or that has to
// authorise what a backend wants before it counts, plays a Chain of Exchanges, which
// is what Dispatch does.
//
// Do not assume that an outcome without a denial permits anything: the harness's
// own rules, approvals and sandbox still apply. Do not assume that an observation
// arrived.
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
	"github.com/abhed/abhed/ahp/elicitation"
	"github.com/abhed/abhed/ahp/transport"
	"github.com/abhed/abhed/internal/run"
)

// Options tunes a Harness. Manifest is required.
type Options struct {
	// Manifest is what the harness promises: which events it sends in which modes,
	// and which effects it can enforce. It must not change afterwards.
	Manifest *ahp.Manifest
	// ManifestChecked tells that Manifest is known to be valid, as one is that was
	// decoded, or that a test encodes: New doesn't check it again.
	ManifestChecked bool
	// Open connects to a backend; the harness closes what it returns. Nil opens
	// stdio backends with transport.Stdio, and refuses HTTP ones. A transport with
	// a method Ready(context.Context) error is asked whether its credential is
	// there.
	Open func(b *ahp.Backend) (transport.Transport, error)
	// ObserveTimeout bounds the delivery of one observation, from when it was
	// queued; zero means 5 s. The time of uploads at the same backend comes on top.
	ObserveTimeout time.Duration
	// CloseTimeout is how long Close waits for queued observations; zero means 2 s.
	CloseTimeout time.Duration
	// OnDelivery, if set, is told how each observation ended. It is called from
	// several goroutines and must return soon.
	OnDelivery func(Delivery)
	// Retries is how often a request is sent again after a failure that may pass: a
	// connection that is refused or lost, a process that ends before it replied, an
	// HTTP status 408, 425, 429 or 5xx. An answer is never asked for again, and no
	// retry goes beyond the subscription's deadline. Zero means once, a negative
	// number never; at most 16. The pause before the first is 50 ms, and it doubles.
	Retries int
	// Content lends backends what attachments hold, and says who may have which
	// content. Nil lends nothing, and refuses registrations with uploads.
	Content *Content
	// Telemetry, if set, is told of dispatches, of each interception and of each
	// observation. Nil means none, and costs nothing.
	Telemetry Telemetry
}

// maxTimeout stands for every longer timeoutMs, to which the protocol sets no
// bound: the clock's arithmetic does.
const maxTimeout = 10 * 365 * 24 * time.Hour

// ErrClosed is what calls return after Close.
var ErrClosed = errors.New("harness: closed")

// Harness asks the backends of one registration. Its methods may be called from
// any goroutine; dispatches run independently of each other.
type Harness struct {
	opts Options
	subs []*subscription // registration order
	// backends holds what was opened, in registration order.
	backends []*backend

	ctx    context.Context // ends when Close begins: dispatches stop
	cancel context.CancelFunc
	// deliver ends when Close gives up on observations.
	deliver       context.Context
	cancelDeliver context.CancelFunc

	content Content
	uploads bool // some subscription has uploads
	// uploading and reading have room for what goes on at a time; held counts the
	// bytes of all snapshots.
	uploading, reading chan struct{}
	held               atomic.Int64

	elicitations *elicitation.Pending // nil unless results are intercepted

	mu     sync.Mutex // orders Close against new calls
	closed bool
	active sync.WaitGroup // dispatches and mailboxes
	done   chan struct{}  // closed when Close is complete
}

type backend struct {
	id   string
	link transport.Transport
	mail mailbox
}

// judged tells the link whether the last reply was a valid message, if it wants to
// know: a process that writes no others is to be ended (§16). An error reply is
// valid, and so is an effect that may not be returned.
func (b *backend) judged(refused error) {
	link, ok := b.link.(interface{ Judged(valid bool) })
	if !ok {
		return
	}
	valid := true
	if refused != nil {
		class := ahp.ReplyFailure(refused).Class
		valid = class != ahp.FailMalformed && class != ahp.FailIDMismatch
	}
	link.Judged(valid)
}

type subscription struct {
	id      ahp.SubscriptionID
	cfg     *ahp.Subscription
	backend *backend
	timeout time.Duration
	// receiver takes its uploads, each event's within uploadTimeout; nil without.
	receiver      Receiver
	uploadTimeout time.Duration
	// takes holds the event types that it selects and the manifest offers in its
	// mode.
	takes map[ahp.EventType]bool
	// pathsKnown and kindsKnown tell that this filter is certain.
	pathsKnown, kindsKnown bool
}

// New validates the registration against the manifest, as §15 asks, and opens
// every backend; a stdio process isn't started before its first message. On an
// error nothing stays open. reg must not change afterwards.
func New(reg *ahp.Registration, opts Options) (*Harness, error) {
	if opts.Manifest == nil {
		return nil, errors.New("harness: no manifest")
	}
	if !opts.ManifestChecked {
		if _, err := opts.Manifest.Encode(); err != nil {
			return nil, fmt.Errorf("harness: the manifest is invalid: %w", err)
		}
	}
	if _, err := reg.Encode(); err != nil {
		return nil, fmt.Errorf("harness: the registration is invalid: %w", err)
	}
	if err := checkRegistration(reg, opts.Manifest); err != nil {
		return nil, err
	}
	if opts.ObserveTimeout == 0 {
		opts.ObserveTimeout = 5 * time.Second
	}
	if opts.CloseTimeout == 0 {
		opts.CloseTimeout = 2 * time.Second
	}
	if opts.Retries == 0 {
		opts.Retries = 1
	}
	opts.Retries = min(opts.Retries, maxRetries)
	if opts.Open == nil {
		opts.Open = openStdio
	}
	h := &Harness{opts: opts, done: make(chan struct{})}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	if opts.Manifest.Advertises(ahp.UserElicitationResult, ahp.ModeIntercept) != nil {
		h.elicitations = elicitation.NewPending(0)
	}
	h.deliver, h.cancelDeliver = context.WithCancel(context.Background())
	if err := h.lendContent(reg); err != nil {
		return nil, err
	}
	for i := range reg.Hooks {
		if err := h.open(&reg.Hooks[i]); err != nil {
			h.Close()
			return nil, err
		}
	}
	return h, nil
}

func openStdio(b *ahp.Backend) (transport.Transport, error) {
	if b.Transport.Type != ahp.TransportStdio {
		return nil, fmt.Errorf("found the transport %q, expected stdio, since Options.Open is nil; give one that calls httptransport.New", b.Transport.Type)
	}
	return transport.Stdio(b.Transport, transport.StdioOptions{Name: b.ID})
}

func (h *Harness) open(cfg *ahp.Backend) error {
	var link transport.Transport
	err := run.Protect(func() (err error) {
		link, err = h.opts.Open(cfg)
		return err
	})
	if err == nil && link == nil {
		err = errors.New("bug: Open returned neither a transport nor an error")
	}
	if err != nil {
		return fmt.Errorf("harness: backend %s: %w", cfg.ID, err)
	}
	b := &backend{id: cfg.ID, link: link}
	h.backends = append(h.backends, b)
	if r, ok := link.(interface{ Ready(context.Context) error }); ok {
		ctx, cancel := context.WithTimeout(h.ctx, h.opts.ObserveTimeout)
		defer cancel()
		if err := r.Ready(ctx); err != nil {
			return fmt.Errorf("harness: backend %s: %w", cfg.ID, err)
		}
	}
	for i := range cfg.Subscriptions {
		s := &subscription{id: ahp.SubscriptionID{Backend: cfg.ID, Index: i}, cfg: &cfg.Subscriptions[i], backend: b, takes: map[ahp.EventType]bool{}}
		if s.cfg.TimeoutMs != nil {
			s.timeout = time.Duration(min(*s.cfg.TimeoutMs, maxTimeout.Milliseconds())) * time.Millisecond
		}
		for _, e := range h.opts.Manifest.Events {
			if slices.Contains(e.Modes, s.cfg.Mode) && s.cfg.Selects(e.Event) {
				s.takes[e.Event] = true
			}
		}
		if u := s.cfg.Upload; u != nil {
			h.uploads = true
			s.uploadTimeout = time.Duration(min(u.TimeoutMs, maxTimeout.Milliseconds())) * time.Millisecond
		}
		s.learn(h.opts.Manifest)
		h.subs = append(h.subs, s)
		if err := h.openReceiver(s); err != nil {
			return fmt.Errorf("harness: backend %s, the upload of subscription %d: %w", cfg.ID, i, err)
		}
	}
	return nil
}

// Manifest returns what New was given.
func (h *Harness) Manifest() *ahp.Manifest { return h.opts.Manifest }

// Subscribed reports whether any subscription takes events of type t in mode m,
// so that a harness can skip building what nobody wants. It is false for what the
// manifest doesn't offer.
func (h *Harness) Subscribed(t ahp.EventType, m ahp.Mode) bool {
	return slices.ContainsFunc(h.subs, func(s *subscription) bool { return s.cfg.Mode == m && s.takes[t] })
}

// enter counts a call, unless the harness is closed.
func (h *Harness) enter() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return ErrClosed
	}
	h.active.Add(1)
	return nil
}

// Close ends pending dispatches with ErrClosed, waits for queued observations for at
// most CloseTimeout, drops the rest, and closes the backends. It may be repeated;
// all calls return when the first is done.
//
// It is bounded even where a transport breaks its contract: a call or a Close of
// one that still runs after another 30 seconds is left to that transport's author,
// and named in the error.
func (h *Harness) Close() error {
	h.mu.Lock()
	first := !h.closed
	h.closed = true
	h.cancel() // with the lock, so that who is refused knows why
	h.mu.Unlock()
	if !first {
		<-h.done
		return nil
	}
	defer close(h.done)
	idle := make(chan struct{})
	go func() {
		h.active.Wait()
		close(idle)
	}()
	within(idle, h.opts.CloseTimeout)
	h.cancelDeliver()
	closed := make(chan error, 1)
	go func() { closed <- h.closeBackends() }()
	bound := time.NewTimer(closeBound)
	defer bound.Stop()
	select {
	case err := <-closed:
		if !within(idle, closeBound) {
			err = errors.Join(err, fmt.Errorf("harness: calls of a transport still run %v after it was closed", closeBound))
		}
		return err
	case <-bound.C:
		return fmt.Errorf("harness: a backend's transport isn't closed after %v", closeBound)
	}
}

// closeBound is how long Close waits for a transport that breaks its contract.
const closeBound = 30 * time.Second

// within reports whether done is closed within d.
func within(done <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

func (h *Harness) closeBackends() error {
	var closing sync.WaitGroup
	errs := make([]error, len(h.backends)+len(h.subs))
	for i, s := range h.subs {
		if s.receiver == nil {
			continue
		}
		closing.Go(func() {
			if err := run.Protect(s.receiver.Close); err != nil {
				errs[len(h.backends)+i] = fmt.Errorf("harness: backend %s, the receiver of subscription %d: %w", s.id.Backend, s.id.Index, err)
			}
		})
	}
	for i, b := range h.backends {
		closing.Go(func() {
			if err := run.Protect(b.link.Close); err != nil {
				errs[i] = fmt.Errorf("harness: backend %s: %w", b.id, err)
			}
		})
	}
	closing.Wait()
	return errors.Join(errs...)
}

// Discover asks the endpoint at the other end of t for its manifest.
func Discover(ctx context.Context, t transport.Transport) (*ahp.Manifest, error) {
	id := ahp.StringID("discover")
	msg, err := (&ahp.Discover{ID: id}).Encode()
	if err != nil {
		return nil, err
	}
	reply, err := t.Exchange(ctx, msg)
	if err != nil {
		return nil, err
	}
	m, err := ahp.DecodeManifestReply(reply, id)
	if err != nil {
		return nil, replyFailure(reply, err)
	}
	return m, nil
}
