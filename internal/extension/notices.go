package extension

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/abhed/abhed/internal/run"
)

// maxNotices is how many notices may wait for one extension.
const maxNotices = 1000

// TurnEnd tells the subscribers of turn_end that a turn of the main agent has
// ended; content is its answer. It waits for nobody: what is told goes out in a
// goroutine of the host, to each extension in the order in which the host was
// called, before anything that it is asked later. The end of ctx takes nothing back.
// When 1,000 notices wait for one extension, further ones are dropped for it, with a
// warning in the record. SessionEnd waits for what was told before it; Close does so
// for a second at most. What an extension answers is only logged.
func (h *Host) TurnEnd(ctx context.Context, at At, content string) {
	r := newRequest(eventTurnEnd, h.opts.SessionID)
	r.at(at)
	r.str("content", content)
	h.notify(ctx, r)
}

// SubagentEnd tells the subscribers of subagent_end that a sub-agent, at.Agent, has
// ended; content is its answer. See TurnEnd.
func (h *Host) SubagentEnd(ctx context.Context, at At, content string) {
	r := newRequest(eventSubagentEnd, h.opts.SessionID)
	r.at(at)
	r.str("content", content)
	h.notify(ctx, r)
}

// Notification tells the subscribers of notification what a person is told;
// content is the text, tool what it is about, "" if no tool. See TurnEnd.
func (h *Host) Notification(ctx context.Context, at At, content, tool string) {
	r := newRequest(eventNotification, h.opts.SessionID)
	r.at(at)
	r.str("content", content)
	if tool != "" {
		r.str("tool", tool)
	}
	h.notify(ctx, r)
}

func (h *Host) notify(ctx context.Context, r *request) {
	ctx = context.WithoutCancel(ctx)
	for _, e := range h.exts {
		if e.cfg.subscribes(r.event) && e.alive() {
			e.notices.add(ctx, e, r)
		}
	}
}

// notices is what waits to be told to one extension. The zero notices is ready.
type notices struct {
	mu      sync.Mutex
	work    *run.Group // nil until the first notice
	waiting []notice
	running bool
	closed  bool
	// last is closed when the newest notice was answered; nil if there was none.
	last    chan struct{}
	dropped int
}

type notice struct {
	ctx  context.Context
	req  *request
	done chan struct{}
}

// add puts r into the queue.
func (n *notices) add(ctx context.Context, e *ext, r *request) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return
	}
	if len(n.waiting) == maxNotices {
		if n.dropped++; n.dropped == 1 {
			e.logged("warning", fmt.Sprintf("%d notices wait for it already; further ones are dropped until it has caught up", maxNotices))
		}
		return
	}
	n.last = make(chan struct{})
	n.waiting = append(n.waiting, notice{ctx, r, n.last})
	if n.running {
		return
	}
	n.running = true
	if n.work == nil {
		n.work = run.New(context.Background())
	}
	n.work.Go(func(context.Context) error { n.send(e); return nil })
}

// send tells what waits, until nothing does.
func (n *notices) send(e *ext) {
	for {
		n.mu.Lock()
		if len(n.waiting) == 0 {
			n.running, n.dropped = false, 0
			n.mu.Unlock()
			return
		}
		next := n.waiting[0]
		n.waiting[0] = notice{} // what was told need not be held
		n.waiting = n.waiting[1:]
		n.mu.Unlock()
		_ = run.Protect(func() error { e.tell(next.ctx, next.req); return nil }) // a panic costs the notice
		close(next.done)
	}
}

// settle waits until the notices before this moment were answered, or ctx ends.
func (n *notices) settle(ctx context.Context) {
	n.mu.Lock()
	last := n.last
	n.mu.Unlock()
	if last == nil {
		return
	}
	select {
	case <-last:
	case <-ctx.Done():
	}
}

// drain takes no more notices and gives those that wait the given time.
func (n *notices) drain(limit time.Duration) {
	n.mu.Lock()
	n.closed = true
	n.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	n.settle(ctx)
}

// wait returns when the goroutine has ended, which the end of the stream brings
// about. drain comes before it.
func (n *notices) wait() {
	n.mu.Lock()
	work := n.work
	n.mu.Unlock()
	if work != nil {
		_ = work.Wait() // its functions return nil
	}
}
