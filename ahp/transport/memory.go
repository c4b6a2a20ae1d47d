package transport

import (
	"bytes"
	"context"
	"errors"
	"sync"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/run"
)

// Handler answers messages inside the program. For a request it returns the
// reply; what it returns for a notification is ignored. It must return soon after
// ctx ends. An error, or a panic, means that it can't answer: the caller of the
// transport gets it as an *ahp.Failure, of class connect if it is none itself.
type Handler func(ctx context.Context, msg []byte) (reply []byte, err error)

// InProcess returns a transport to h. Each message is handled in a goroutine of
// its own, so that a deadline holds even while h works; Close waits for them.
func InProcess(h Handler) Transport {
	m := &memory{handler: h}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	return m
}

type memory struct {
	handler Handler
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	mu      sync.Mutex // orders Close against new calls
	closed  bool
	calls   sync.WaitGroup
}

type answer struct {
	reply []byte
	err   error
}

func (m *memory) Exchange(ctx context.Context, msg []byte) ([]byte, error) {
	if err := checkMessage(msg); err != nil {
		return nil, err
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
	m.calls.Add(1)
	m.mu.Unlock()
	own := bytes.Clone(msg)
	go func() {
		defer m.calls.Done()
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
	m.closed = true
	m.mu.Unlock()
	m.cancel()
	m.calls.Wait()
	return nil
}
