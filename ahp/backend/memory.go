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
	done  chan struct{} // closed when reply and err are set
	reply []byte
	err   error
}

// errUnanswered is what those who wait are told of a judgement that has ended
// without a result.
var errUnanswered = errors.New("the handler left its goroutine")

func newMemory() *memory { return &memory{entries: map[key]*entry{}} }

// once returns the remembered answer for k, or calls f. A failure isn't
// remembered beyond those who wait for it. A nil reply is that of a wait in vain.
func (m *memory) once(ctx context.Context, k key, f func() ([]byte, error)) ([]byte, error) {
	m.mu.Lock()
	if e, ok := m.entries[k]; ok {
		m.mu.Unlock()
		select {
		case <-e.done:
			return e.reply, e.err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	e := &entry{done: make(chan struct{}), err: errUnanswered}
	m.entries[k] = e
	m.mu.Unlock()
	// However f ends, nobody waits for ever.
	defer m.settle(k, e)
	e.reply, e.err = f()
	return e.reply, e.err
}

// settle ends the wait for e, and forgets it or what is oldest.
func (m *memory) settle(k key, e *entry) {
	close(e.done)
	m.mu.Lock()
	defer m.mu.Unlock()
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
