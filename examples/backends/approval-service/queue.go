package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/backend"
)

// maxPending is how many calls may wait; one more is denied.
const maxPending = 64

// queue holds the calls that wait for a decision, oldest first.
type queue struct {
	wait time.Duration

	mu      sync.Mutex
	pending []*pending
	changed chan struct{} // closed and replaced with each change
}

// pending is one call. An approval is for exactly this event.
type pending struct {
	id      string // random, so that it can't be guessed or meant for another call
	event   *ahp.Event
	decided chan decision // has room for one
}

type decision struct {
	deny   bool
	reason string
}

func newQueue(wait time.Duration) *queue { return &queue{wait: wait, changed: make(chan struct{})} }

// judge waits for a person. Approval is no objection, and no permission: the
// harness's own rules still hold. When ctx ends the harness has given up, and what
// is answered doesn't matter any more.
func (q *queue) judge(ctx context.Context, r *ahp.Intercept) ([]ahp.Effect, error) {
	answer := backend.Reply(r)
	p := &pending{id: rand.Text(), event: r.Event, decided: make(chan decision, 1)}
	if !q.add(p) {
		return answer.Deny(fmt.Sprintf("%d calls wait for a person already.", maxPending)).Effects()
	}
	defer q.remove(p)
	limit := time.NewTimer(q.wait)
	defer limit.Stop()
	select {
	case d := <-p.decided:
		if d.deny {
			answer.Deny(strings.TrimSuffix("A person refused this: "+d.reason, ": "))
		}
		return answer.Effects()
	case <-limit.C:
		return answer.Deny(fmt.Sprintf("Nobody decided about this within %v.", q.wait)).Effects()
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", backend.ErrUnavailable, ctx.Err())
	}
}

func (q *queue) add(p *pending) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.pending) >= maxPending {
		return false
	}
	q.pending = append(q.pending, p)
	q.change()
	return true
}

func (q *queue) remove(p *pending) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.pending = slices.DeleteFunc(q.pending, func(o *pending) bool { return o == p })
	q.change()
}

func (q *queue) change() {
	close(q.changed)
	q.changed = make(chan struct{})
}

// list returns what waits, and a channel that is closed when that changes.
func (q *queue) list() ([]*pending, <-chan struct{}) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.pending), q.changed
}

// decide settles one call and reports whether it was waiting: the first decision
// counts.
func (q *queue) decide(id string, d decision) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.IndexFunc(q.pending, func(p *pending) bool { return p.id == id })
	if i < 0 {
		return false
	}
	q.pending[i].decided <- d
	q.pending = slices.Delete(q.pending, i, i+1)
	q.change()
	return true
}
