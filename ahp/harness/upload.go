package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/run"
)

// contents is the attachment content of one event, on its way to subscriptions. Its
// goroutines end with the budgets of the uploads, with the harness, and with stop.
type contents struct {
	h     *Harness
	ctx   context.Context
	stop  context.CancelFunc // see end
	until time.Time          // the end of the whole call's budget, zero for none

	holders atomic.Int32
	tally   *tally

	mu    sync.Mutex
	snaps map[string]*snapshot // by the host's name
	sets  map[*subscription]*set
}

// tally counts the bytes of an event's snapshots. It is apart from contents, so that
// it outlives what nobody holds any more.
type tally struct{ own, all *atomic.Int64 }

// add counts n more bytes, unless that is too many.
func (t *tally) add(n, ownLimit, allLimit int64) error {
	own, all := t.own.Add(n), t.all.Add(n)
	if own <= ownLimit && all <= allLimit {
		return nil
	}
	t.own.Add(-n)
	t.all.Add(-n)
	if own > ownLimit {
		return fmt.Errorf("the attachments of the event have more than %d bytes", ownLimit)
	}
	return fmt.Errorf("more than %d bytes of attachments are on their way", allLimit)
}

func (t *tally) release() { t.all.Add(-t.own.Swap(0)) }

// snapshot is what an attachment held when it was read, once.
type snapshot struct {
	done    chan struct{} // closed when the rest is known
	body    []byte
	failure *ahp.Failure
	bug     error
}

// set is the uploads of one event to one subscription, with one budget.
type set struct {
	deadline time.Time
	uploads  map[string]*upload // by the host's name
}

// upload is one attachment on its way to one subscription.
type upload struct {
	done    chan struct{} // closed when the rest is known
	ref     string
	failure *ahp.Failure
	bug     error
}

// newContents returns what holds the content of one event. Of ctx only the values
// count: the uploads of a call may serve observations after it. until is the end of
// the whole call's budget, or zero.
func (h *Harness) newContents(ctx context.Context, until time.Time) *contents {
	c := &contents{h: h, until: until, tally: &tally{new(atomic.Int64), &h.held}, snaps: map[string]*snapshot{}, sets: map[*subscription]*set{}}
	c.ctx, c.stop = context.WithCancel(context.WithoutCancel(ctx))
	c.holders.Store(1)
	// For chains and outcomes that a host forgets.
	runtime.AddCleanup(c, (*tally).release, c.tally)
	return c
}

// end ends what goes on for a call that was given up. c may be nil.
func (c *contents) end() {
	if c != nil {
		c.stop()
	}
}

// hold and drop count who still needs c; whoever made it holds it. c may be nil.
func (c *contents) hold() {
	if c != nil {
		c.holders.Add(1)
	}
}

func (c *contents) drop() {
	if c == nil || c.holders.Add(-1) > 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.snaps = map[string]*snapshot{}
	c.tally.release()
}

// begin starts the uploads that s will need to see e, and reports whether there are
// any. Nothing waits for them yet.
func (c *contents) begin(s *subscription, e *ahp.Event) bool {
	any := false
	if c != nil && s.receiver != nil {
		v := c.h.viewer(s, e)
		v.meet = func(p *ahp.Part) {
			c.upload(s, e, p)
			any = true
		}
		v.view(e, false)
	}
	return any
}

// sight is an event as one subscription sees it.
type sight struct {
	event *ahp.Event
	// hidden tells that some of its content isn't shown.
	hidden bool
	// refs holds the attachments that are shown.
	refs refs
	bug  error
	// v shows what else there is in the same way; its failure says why content that was
	// asked for isn't shown.
	v *viewer
}

// viewer returns what shows e to s, without any attachment.
func (h *Harness) viewer(s *subscription, e *ahp.Event) *viewer {
	v := &viewer{content: s.cfg.Content}
	if h.content.Authorize != nil {
		// Bytes that s has no way to get are withheld for that reason, which is no failure.
		v.permits = func(p *ahp.Part) bool { return p.Body != nil && s.receiver == nil || h.permits(s, e, p) }
	}
	v.meet = func(p *ahp.Part) { v.withhold(p, gapNoUpload) }
	return v
}

// show returns what s sees of e, once the uploads for it have ended. c is nil where
// no subscription has uploads.
func (h *Harness) show(ctx context.Context, s *subscription, e *ahp.Event, c *contents) *sight {
	v := h.viewer(s, e)
	out := &sight{v: v}
	if c != nil && s.receiver != nil {
		v.meet = func(p *ahp.Part) {
			name := p.Body.Ref
			ref, f, bug := c.upload(s, e, p).wait(ctx, p)
			switch {
			case bug != nil || f != nil:
				v.withhold(p, gapUnavailable)
				if out.bug == nil {
					out.bug = bug
				}
				if v.failure == nil {
					v.failure = f
				}
				return
			}
			v.changed = true
			p.Body = &ahp.BodyRef{Ref: ref}
			if out.refs == nil {
				out.refs = refs{}
			}
			out.refs[ref] = append(out.refs[ref], shown{*p, name})
		}
	}
	out.event = v.view(e, s.cfg.IncludeNative)
	out.hidden = v.hidden
	return out
}

// upload returns the upload of p to s, which it starts unless it was started before.
func (c *contents) upload(s *subscription, e *ahp.Event, p *ahp.Part) *upload {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.sets[s]
	if b == nil {
		b = &set{deadline: time.Now().Add(s.uploadTimeout), uploads: map[string]*upload{}}
		if !c.until.IsZero() && c.until.Before(b.deadline) {
			b.deadline = c.until
		}
		c.sets[s] = b
	}
	name := p.Body.Ref
	if u := b.uploads[name]; u != nil {
		return u
	}
	u := &upload{done: make(chan struct{})}
	if len(b.uploads) >= maxAttachments {
		u.failure = contentFailure(p, fmt.Errorf("an event has at most %d attachments that are uploaded", maxAttachments))
		close(u.done)
		return u
	}
	b.uploads[name] = u
	if err := c.h.enter(); err != nil {
		u.failure = contentFailure(p, err)
		close(u.done)
		return u
	}
	snap := c.snapshot(e, p)
	go func() {
		defer c.h.active.Done()
		defer close(u.done)
		ctx, cancel := context.WithDeadline(c.ctx, b.deadline)
		defer cancel()
		defer context.AfterFunc(c.h.deliver, cancel)()
		u.ref, u.failure, u.bug = c.send(ctx, s, snap, p)
	}()
	return u
}

// send uploads a snapshot once it is there.
func (c *contents) send(ctx context.Context, s *subscription, snap *snapshot, p *ahp.Part) (ref string, f *ahp.Failure, bug error) {
	select {
	case <-snap.done:
	case <-ctx.Done():
		return "", contentFailure(p, ended(ctx, "it was read")), nil
	}
	switch {
	case snap.bug != nil || snap.failure != nil:
		return "", snap.failure, snap.bug
	case int64(len(snap.body)) > s.cfg.Upload.MaxBytes:
		return "", contentFailure(p, fmt.Errorf("it has %d bytes, the receiver takes %d", len(snap.body), s.cfg.Upload.MaxBytes)), nil
	}
	select {
	case c.h.uploading <- struct{}{}:
		defer func() { <-c.h.uploading }()
	case <-ctx.Done():
		return "", contentFailure(p, ended(ctx, "its turn came")), nil
	}
	var receipt *ahp.Receipt
	err := run.Protect(func() (err error) {
		receipt, err = s.receiver.Upload(ctx, snap.body)
		return err
	})
	var panicked *run.PanicError
	switch {
	case err == nil && (receipt == nil || receipt.Ref == ""):
		return "", nil, fmt.Errorf("harness: bug: the receiver of subscription %d of backend %s confirmed nothing", s.id.Index, s.id.Backend)
	case err == nil:
		return receipt.Ref, nil, nil
	case errors.As(err, &panicked), ahp.AsFailure(err) == nil && ctx.Err() == nil:
		return "", nil, fmt.Errorf("harness: the receiver of subscription %d of backend %s failed in no known way: %w", s.id.Index, s.id.Backend, err)
	case ctx.Err() != nil:
		return "", contentFailure(p, ended(ctx, "the upload was confirmed")), nil
	}
	return "", contentFailure(p, err), nil
}

// snapshot returns the snapshot of p, whose reading it starts unless that was done;
// the caller holds c.mu. It goes on when a receiver's time is over: others may have
// more.
func (c *contents) snapshot(e *ahp.Event, p *ahp.Part) *snapshot {
	name := p.Body.Ref
	if s := c.snaps[name]; s != nil {
		return s
	}
	s := &snapshot{done: make(chan struct{})}
	c.snaps[name] = s
	part := *p
	c.h.active.Add(1) // the caller is counted, so Close is still waiting
	go func() {
		defer c.h.active.Done()
		defer close(s.done)
		ctx, cancel := context.WithCancel(c.ctx)
		defer cancel()
		defer context.AfterFunc(c.h.deliver, cancel)()
		select {
		case c.h.reading <- struct{}{}:
			defer func() { <-c.h.reading }()
		case <-ctx.Done():
			s.failure = contentFailure(&part, ended(ctx, "it was read"))
			return
		}
		ctx, stop := context.WithTimeout(ctx, c.h.content.OpenTimeout)
		defer stop()
		var err error
		bug := run.Protect(func() error {
			s.body, err = c.read(ctx, e, &part)
			return nil
		})
		switch {
		case bug != nil:
			s.bug = fmt.Errorf("harness: Content.Open: %w", bug)
		case err != nil && ctx.Err() != nil:
			s.failure = contentFailure(&part, ended(ctx, "it was read"))
		case err != nil:
			s.failure = contentFailure(&part, err)
		}
	}()
	return s
}

// read reads an attachment within the bounds.
func (c *contents) read(ctx context.Context, e *ahp.Event, p *ahp.Part) ([]byte, error) {
	in, err := c.h.content.Open(ctx, e, p)
	if err != nil {
		return nil, fmt.Errorf("it can't be opened: %w", err)
	}
	if in == nil {
		return nil, errors.New("it can't be opened: bug: Open returned neither a reader nor an error")
	}
	defer in.Close()
	limit := c.h.content.MaxBytes
	body, err := io.ReadAll(io.LimitReader(in, limit+1))
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, fmt.Errorf("it can't be read: %w", err)
	case int64(len(body)) > limit:
		return nil, fmt.Errorf("it has more than %d bytes", limit)
	}
	if err := c.tally.add(int64(len(body)), c.h.content.MaxEventBytes, c.h.content.MaxHeldBytes); err != nil {
		return nil, err
	}
	return body, nil
}

// wait returns the ref of u, or why there is none. The bug is no failure of the
// receiver's.
func (u *upload) wait(ctx context.Context, p *ahp.Part) (ref string, f *ahp.Failure, bug error) {
	select {
	case <-u.done:
		return u.ref, u.failure, u.bug
	case <-ctx.Done():
		return "", contentFailure(p, ended(ctx, "the upload was confirmed")), nil
	}
}

// ended says what a deadline or a cancellation came before.
func ended(ctx context.Context, before string) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("the time ran out before %s: %w", before, ctx.Err())
	}
	return fmt.Errorf("the call ended before %s: %w", before, ctx.Err())
}

func contentFailure(p *ahp.Part, err error) *ahp.Failure {
	return &ahp.Failure{Class: ahp.FailContent, Detail: fmt.Sprintf("attachment %.60q: %v", p.ID, err), Err: err}
}
