package backend

import (
	"context"
	"crypto/sha256"
	"sync"

	"github.com/abhed/abhed/ahp"
)

// Bounds of what is remembered for repeated requests.
const (
	maxRemembered      = 1024
	maxRememberedBytes = 8 << 20
)

// key identifies a request: the event by source and id, and the content, because
// two subscriptions of one backend may be asked about the same event with
// different effective values (§14).
type key struct {
	source, id string
	content    [sha256.Size]byte
}

func keyOf(e *ahp.Event, msg []byte) key {
	return key{source: e.Source, id: e.ID, content: sha256.Sum256(msg)}
}

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

func newMemory() *memory { return &memory{entries: map[key]*entry{}} }

// once returns the remembered answer for k, or calls f. A failure isn't
// remembered beyond those who wait for it.
func (m *memory) once(ctx context.Context, k key, f func() ([]byte, error)) ([]byte, error) {
	m.mu.Lock()
	if e, ok := m.entries[k]; ok {
		m.mu.Unlock()
		select {
		case <-e.done:
			return e.reply, e.err
		case <-ctx.Done():
			return encodeError(ahp.StringID(k.id), &ahp.RPCError{Code: ahp.CodeUnavailable, Message: "backend_unavailable"}), ctx.Err()
		}
	}
	e := &entry{done: make(chan struct{})}
	m.entries[k] = e
	m.mu.Unlock()

	e.reply, e.err = f()
	close(e.done)

	m.mu.Lock()
	defer m.mu.Unlock()
	if e.err != nil {
		delete(m.entries, k)
		return e.reply, e.err
	}
	m.order = append(m.order, k)
	m.bytes += len(e.reply)
	for len(m.order) > maxRemembered || m.bytes > maxRememberedBytes && len(m.order) > 1 {
		oldest := m.order[0]
		m.order = m.order[1:]
		m.bytes -= len(m.entries[oldest].reply)
		delete(m.entries, oldest)
	}
	return e.reply, e.err
}
