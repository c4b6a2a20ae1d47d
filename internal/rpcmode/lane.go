package rpcmode

import (
	"context"
	"sync"

	"github.com/abhed/abhed/internal/run"
)

// maxQueued is how many jobs of a lane may wait.
const maxQueued = 256

// job is something that a lane does in its turn.
type job struct {
	// work does it, and answers its request. Its context may have ended before.
	work func(ctx context.Context)
	// after ends when the job may begin; nil is at once.
	after <-chan struct{}
	// size is what the job keeps in memory while it waits.
	size int64

	ctx    context.Context
	cancel context.CancelCauseFunc
	done   chan struct{}
}

// lane does jobs one by one, in their order.
type lane struct {
	mu     sync.Mutex
	more   *sync.Cond
	jobs   []*job
	active *job
	bytes  int64
	closed bool
	// bug hears of a job that panicked. The others are answered all the same.
	bug func(error)
}

func newLane(bug func(error)) *lane {
	l := &lane{bug: bug}
	l.more = sync.NewCond(&l.mu)
	return l
}

// add puts a job at the end and returns what ends with it, or nil if there is no
// room for it.
func (l *lane) add(ctx context.Context, j *job) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.jobs) >= maxQueued || l.bytes+j.size > maxWaiting && len(l.jobs) > 0 {
		return nil
	}
	j.ctx, j.cancel = context.WithCancelCause(ctx)
	j.done = make(chan struct{})
	l.bytes += j.size
	l.jobs = append(l.jobs, j)
	l.more.Signal()
	return j.done
}

// loop does jobs until close.
func (l *lane) loop(context.Context) error {
	for {
		j := l.begin()
		if j == nil {
			return nil
		}
		if j.after != nil {
			<-j.after
		}
		err := run.Protect(func() error { j.work(j.ctx); return nil })
		j.cancel(nil)
		close(j.done)
		if err != nil {
			l.bug(err)
		}
	}
}

func (l *lane) begin() *job {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.active = nil
	for len(l.jobs) == 0 {
		if l.closed {
			return nil
		}
		l.more.Wait()
	}
	l.active, l.jobs = l.jobs[0], l.jobs[1:]
	l.bytes -= l.active.size
	return l.active
}

// idle reports whether there is nothing to do.
func (l *lane) idle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.active == nil && len(l.jobs) == 0
}

// interrupt ends the job that is being done, or if there is none the one that comes
// first, and reports whether there was one.
func (l *lane) interrupt(cause error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.active != nil:
		l.active.cancel(cause)
	case len(l.jobs) > 0:
		l.jobs[0].cancel(cause)
	default:
		return false
	}
	return true
}

// close ends every job, and the loop once they are answered. No job may be added any
// more.
func (l *lane) close(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.active != nil {
		l.active.cancel(cause)
	}
	for _, j := range l.jobs {
		j.cancel(cause)
	}
	l.more.Broadcast()
}
