package backend

import (
	"context"
	"crypto/sha256"
	"errors"
	"sync"
)

// Bounds of what is remembered for repeated requests.
const (
	maxRemembered      = 1024
	maxRememberedBytes = 8 << 20
)

// key identifies a request by the hash of the whole message: source and id are not
// enough, because two subscriptions of one backend may be asked about the same
// event with different effective values (§14).
type key [sha256.Size]byte

// memory keeps the latest answers, so that a repeated request is answered alike
// and isn't judged twice, not even while the first is being judged.
type memory struct {
	mu      sync.Mutex
	entries map[key]*entry
	order   []key // oldest first
	bytes   int
}

type entry struct {
	done  chan struct{} // closed when the rest is set
	reply []byte
	err   error
	left  bool // whoever asked first had gone away
}

// errUnanswered is what those who wait are told of a judgement that has ended
// without a result.
var errUnanswered = errors.New("the handler left its goroutine")

func newMemory() *memory { return &memory{entries: map[key]*entry{}} }

// once returns the remembered answer for k, or calls f. A failure isn't
// remembered beyond those who wait for it, nor for those if it came of the first
// caller's having gone away: a repeat is often sent because of just that. A nil reply
// is that of a wait in vain.
func (m *memory) once(ctx context.Context, k key, f func() ([]byte, error)) ([]byte, error) {
	for {
		m.mu.Lock()
		e, ok := m.entries[k]
		if !ok {
			e = &entry{done: make(chan struct{}), err: errUnanswered}
			m.entries[k] = e
			m.mu.Unlock()
			return m.first(ctx, k, e, f)
		}
		m.mu.Unlock()
		select {
		case <-e.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if e.err == nil || !e.left {
			return e.reply, e.err
		}
	}
}

// first calls f for all who wait for e.
func (m *memory) first(ctx context.Context, k key, e *entry, f func() ([]byte, error)) ([]byte, error) {
	// However f ends, nobody waits for ever.
	defer m.settle(k, e)
	e.reply, e.err = f()
	e.left = ctx.Err() != nil
	return e.reply, e.err
}

// settle ends the wait for e, and forgets it or what is oldest.
func (m *memory) settle(k key, e *entry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer close(e.done) // when it is forgotten, so that nobody meets it again
	if e.err != nil {
		delete(m.entries, k)
		return
	}
	m.order = append(m.order, k)
	m.bytes += len(e.reply)
	for len(m.order) > maxRemembered || m.bytes > maxRememberedBytes && len(m.order) > 1 {
		oldest := m.order[0]
		m.order = m.order[1:]
		m.bytes -= len(m.entries[oldest].reply)
		delete(m.entries, oldest)
	}
}
