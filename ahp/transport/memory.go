package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/run"
)

// Handler answers messages inside the program. For a request it returns the
// reply; what it returns for a notification is ignored. It must return soon after
// ctx ends. An error, or a panic, means that it can't answer: the caller of the
// transport gets it as an *ahp.Failure, of class connect if it is none itself.
type Handler func(ctx context.Context, msg []byte) (reply []byte, err error)

// handlerGrace is how long Close waits for handlers after their contexts ended.
const handlerGrace = 2 * time.Second

// InProcess returns a transport to h. Each message is handled in a goroutine of
// its own, so that a deadline holds even while h works; nothing is handled whose
// context is over. Close waits for the handlers, for at most two seconds: what then
// still runs, whose context ended long ago, belongs to the author of h, and Close
// returns an error that says how many there are. Its result goes nowhere.
func InProcess(h Handler) Transport {
	m := &memory{handler: h, idle: make(chan struct{})}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	return m
}

type memory struct {
	handler Handler
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	mu      sync.Mutex // orders Close against new calls
	closed  bool
	calls   int
	idle    chan struct{} // closed once closed is set and no call is left
}

// leave ends a call.
func (m *memory) leave() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.calls--; m.closed && m.calls == 0 {
		close(m.idle)
	}
}

type answer struct {
	reply []byte
	err   error
	own   bool // the reply names the request, as a line of a process may not
}

func (m *memory) Exchange(ctx context.Context, msg []byte) ([]byte, error) {
	if err := checkMessage(msg); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, ended(ctx, "starting the handler")
	}
	done := make(chan answer, 1)
	callCtx, stop := context.WithCancel(ctx)
	defer context.AfterFunc(m.ctx, stop)()
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		stop()
		return nil, closedFailure()
	}
	m.calls++
	m.mu.Unlock()
	own := bytes.Clone(msg)
	go func() {
		defer m.leave()
		defer stop()
		a := answer{err: errors.New("the handler left its goroutine")}
		defer func() { done <- a }()
		a.err = run.Protect(func() (err error) {
			a.reply, err = m.handler(callCtx, own)
			return err
		})
	}()
	select {
	case a := <-done:
		if a.err == nil && len(a.reply) > ahp.MaxMessageBytes {
			a.err = &ahp.Failure{Class: ahp.FailMalformed, Detail: "the reply is larger than the limit"}
		}
		if a.err != nil {
			if m.ctx.Err() != nil {
				return nil, closedFailure()
			}
			if ctx.Err() != nil && ahp.AsFailure(a.err) == nil {
				return nil, ended(ctx, "waiting for a reply")
			}
			if ahp.AsFailure(a.err) == nil {
				a.err = &ahp.Failure{Class: ahp.FailConnect, Detail: a.err.Error(), Err: a.err}
			}
			return nil, a.err
		}
		return bytes.Clone(a.reply), nil
	case <-ctx.Done():
		return nil, ended(ctx, "waiting for a reply")
	case <-m.ctx.Done():
		stop() // here, since leaving keeps AfterFunc from doing it if it hasn't begun
		return nil, closedFailure()
	}
}

func (m *memory) Notify(ctx context.Context, msg []byte) error {
	_, err := m.Exchange(ctx, msg)
	return err
}

// Close ends the context of every call and waits for the handlers.
func (m *memory) Close() error {
	m.mu.Lock()
	if !m.closed && m.calls == 0 {
		close(m.idle)
	}
	m.closed = true
	m.mu.Unlock()
	m.cancel()
	grace := time.NewTimer(handlerGrace)
	defer grace.Stop()
	select {
	case <-m.idle:
		return nil
	case <-grace.C:
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.calls == 0 {
		return nil
	}
	return fmt.Errorf("transport: %d calls of a handler still run %v after their contexts ended; a handler must return soon after that", m.calls, handlerGrace)
}
