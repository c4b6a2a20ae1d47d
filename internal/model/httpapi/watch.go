package httpapi

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"time"
)

var (
	errNoByte    = errors.New("no byte came")
	errNoContent = errors.New("only keep-alive traffic came")
)

// watch ends a request on which nothing happens. Its timers restart with every
// byte (idle) and every event that carries something (empty).
type watch struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	limit  atomic.Int64 // nanoseconds
	idle   *time.Timer
	empty  *time.Timer
}

// newWatch starts the timers. The caller must call stop.
func newWatch(parent context.Context, stall time.Duration) *watch {
	w := &watch{}
	w.ctx, w.cancel = context.WithCancelCause(parent)
	w.limit.Store(int64(stall))
	w.idle = time.AfterFunc(stall, func() { w.cancel(errNoByte) })
	w.empty = time.AfterFunc(keepAliveFactor*stall, func() { w.cancel(errNoContent) })
	return w
}

// byteMoved restarts the wait for a byte. It may be called by any goroutine.
func (w *watch) byteMoved() { w.idle.Reset(time.Duration(w.limit.Load())) }

// progress restarts the wait for content.
func (w *watch) progress() { w.empty.Reset(keepAliveFactor * time.Duration(w.limit.Load())) }

// tighten lowers the limit to d, if it is higher, and restarts both waits.
func (w *watch) tighten(d time.Duration) {
	if d < time.Duration(w.limit.Load()) {
		w.limit.Store(int64(d))
	}
	w.byteMoved()
	w.progress()
}

// stalled returns what ended the request if it was the watch, else nil.
func (w *watch) stalled() error {
	if cause := context.Cause(w.ctx); cause == errNoByte || cause == errNoContent {
		return cause
	}
	return nil
}

func (w *watch) stop() {
	w.idle.Stop()
	w.empty.Stop()
	w.cancel(context.Canceled)
}

// watchedReader restarts the watch with every byte that is read.
type watchedReader struct {
	r io.Reader
	w *watch
}

func (r watchedReader) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	if n > 0 {
		r.w.byteMoved()
	}
	return n, err
}

// joined reads parts one after the other as if they were one: a read returns as much as
// there is room for, so that a request isn't sent in as many pieces as it was made of.
type joined struct{ parts [][]byte }

// Read fills p as far as there is something left.
func (j *joined) Read(p []byte) (n int, err error) {
	for n < len(p) && len(j.parts) > 0 {
		c := copy(p[n:], j.parts[0])
		n += c
		if j.parts[0] = j.parts[0][c:]; len(j.parts[0]) == 0 {
			j.parts = j.parts[1:]
		}
	}
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}
