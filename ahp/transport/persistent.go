package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/proc"
)

const (
	// maxAbandoned is how many replies may be outstanding of requests that nobody
	// waits for any more, before the process counts as hung and is ended.
	maxAbandoned = 64
	// maxStrays is how many unusable lines a process may write between two good
	// replies before it is ended (§16).
	maxStrays = 16
	// maxInvalid is how many replies in a row may be no valid messages, by Judged,
	// before the process is ended (§16).
	maxInvalid = 8
	// maxSettled is how many ids of replies are remembered, so that the same reply
	// once more is told from one that nobody asked for.
	maxSettled = 64
	// maxBackoffSteps bounds the pause between starts to 2^6 times the first.
	maxBackoffSteps = 6
)

// persistent talks to one process, with one request outstanding at a time. It
// starts the process when it is needed, and again after it died.
type persistent struct {
	spec    proc.Spec
	backoff time.Duration
	turn    chan struct{} // holds one token: whoever has it may have a request out
	ending  chan struct{} // closed by Close
	ignored atomic.Int64

	mu     sync.Mutex
	closed bool
	conn   *conn
	// deaths counts the starts since the last good reply; notBefore is when the
	// next one may be made.
	deaths    int
	notBefore time.Time
}

func newPersistent(spec proc.Spec, backoff time.Duration) *persistent {
	t := &persistent{spec: spec, backoff: backoff, turn: make(chan struct{}, 1), ending: make(chan struct{})}
	t.turn <- struct{}{}
	return t
}

func (t *persistent) Exchange(ctx context.Context, msg []byte) ([]byte, error) {
	if err := checkMessage(msg); err != nil {
		return nil, err
	}
	id, ok := ahp.MessageID(msg)
	if !ok {
		return nil, errors.New("bug: a request without an id")
	}
	select {
	case <-t.turn:
	case <-t.ending:
		return nil, closedFailure()
	case <-ctx.Done():
		return nil, ended(ctx, "waiting for an earlier request to the backend")
	}
	defer func() { t.turn <- struct{}{} }()
	reply, err := t.attempt(ctx, id, msg)
	if errors.Is(err, proc.ErrBroken) {
		// An abandoned write had spoilt the stream: that process is gone now.
		reply, err = t.attempt(ctx, id, msg)
	}
	return reply, err
}

// attempt makes one exchange with the present process, or a new one.
func (t *persistent) attempt(ctx context.Context, id ahp.ID, msg []byte) ([]byte, error) {
	c, err := t.connection(ctx)
	if err != nil {
		return nil, err
	}
	p := c.expect(id, msg)
	if err := t.write(ctx, c, msg); err != nil {
		c.forget(p)
		return nil, err
	}
	select {
	case a := <-p.done:
		if a.err == nil && a.own {
			t.mu.Lock()
			t.deaths, t.notBefore = 0, time.Time{}
			t.mu.Unlock()
		}
		return a.reply, a.err
	case <-ctx.Done():
		c.abandon(p)
		return nil, ended(ctx, "waiting for a reply")
	}
}

// write sends one line. An error other than the end of ctx ends the process.
func (t *persistent) write(ctx context.Context, c *conn, msg []byte) error {
	err := c.child.Write(ctx, append(bytes.Clone(msg), '\n'))
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ended(ctx, "sending the message")
	}
	c.end(nil)
	if errors.Is(err, proc.ErrBroken) {
		return err
	}
	return c.why()
}

func (t *persistent) Notify(ctx context.Context, msg []byte) error {
	if err := checkMessage(msg); err != nil {
		return err
	}
	for first := true; ; first = false {
		c, err := t.connection(ctx)
		if err != nil {
			return err
		}
		if err = t.write(ctx, c, msg); !first || !errors.Is(err, proc.ErrBroken) {
			return err
		}
	}
}

// connection returns the running process, starting one if there is none and the
// pause after the last death is over.
func (t *persistent) connection(ctx context.Context) (*conn, error) {
	for {
		t.mu.Lock()
		if t.closed {
			t.mu.Unlock()
			return nil, closedFailure()
		}
		if t.conn != nil && !t.conn.dead() {
			c := t.conn
			t.mu.Unlock()
			return c, nil
		}
		wait := time.Until(t.notBefore)
		if wait <= 0 {
			c, err := t.start()
			t.mu.Unlock()
			return c, err
		}
		t.mu.Unlock()
		if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < wait {
			return nil, &ahp.Failure{Class: ahp.FailExit, Detail: fmt.Sprintf("the backend died and is started again in %v, after the deadline", wait.Round(time.Millisecond))}
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-t.ending:
			timer.Stop()
		case <-ctx.Done():
			timer.Stop()
			return nil, ended(ctx, "waiting to start the backend again")
		}
	}
}

// start starts the process; the caller holds t.mu.
func (t *persistent) start() (*conn, error) {
	// The pause is set now and cleared by the first good reply, so it counts for a
	// process that fails to start as well as for one that dies. A process that
	// had answered is replaced at once.
	t.notBefore = time.Now().Add(t.backoff << min(t.deaths, maxBackoffSteps))
	t.deaths++
	child, err := proc.Start(t.spec)
	if err != nil {
		return nil, launchFailure(err)
	}
	t.conn = newConn(child, &t.ignored)
	return t.conn, nil
}

// Ignored returns how many lines of output went to nobody: replies that came late
// or twice, and what came while nothing was asked.
func (t *persistent) Ignored() int { return int(t.ignored.Load()) }

// Judged is told by whoever asked whether the last reply was a valid message. A
// process that gives eight in a row that aren't is ended; the next request starts
// another.
func (t *persistent) Judged(valid bool) {
	t.mu.Lock()
	c := t.conn
	t.mu.Unlock()
	if c != nil {
		c.judged(valid)
	}
}

// Close closes the input of the process, waits for it for the grace, and kills it.
func (t *persistent) Close() error {
	t.mu.Lock()
	if !t.closed {
		close(t.ending)
	}
	t.closed = true
	c := t.conn
	t.mu.Unlock()
	if c != nil {
		c.close()
	}
	return nil
}
