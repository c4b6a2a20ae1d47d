package harness_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/transport"
)

// memoryPeer answers inside the program.
type memoryPeer struct {
	t        *testing.T
	row      *lifecycle
	wire     transport.Transport
	mu       sync.Mutex
	came     map[string]int
	gates    map[string]chan struct{}
	released map[string]bool
}

func newMemoryPeer(t *testing.T, row *lifecycle) *memoryPeer {
	p := &memoryPeer{t: t, row: row, came: map[string]int{}, gates: map[string]chan struct{}{}, released: map[string]bool{}}
	p.wire = transport.InProcess(p.handle)
	t.Cleanup(func() { p.wire.Close() })
	return p
}

// gate is closed once key is released; the caller holds p.mu.
func (p *memoryPeer) gate(key string) chan struct{} {
	if p.gates[key] == nil {
		p.gates[key] = make(chan struct{})
	}
	return p.gates[key]
}

func (p *memoryPeer) handle(ctx context.Context, msg []byte) ([]byte, error) {
	key := keyOf(msg)
	p.mu.Lock()
	n := p.came[key]
	p.came[key]++
	gate := p.gate(key)
	p.mu.Unlock()
	select {
	case <-gate:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return p.row.response(key, n), nil
}

// keyOf returns the key of a request: its id is that of the row and the key.
func keyOf(msg []byte) string {
	id, _ := ahp.MessageID(msg)
	s, _ := id.Value()
	return s[strings.LastIndexByte(s, ':')+1:]
}

// response returns what the nth request of key is answered with.
func (s *lifecycle) response(key string, n int) ahp.Raw {
	if list := s.Sequences[key]; n < len(list) {
		return list[n]
	}
	return s.Responses[key]
}

func (p *memoryPeer) link() transport.Transport { return p.wire }

func (p *memoryPeer) wait(key string, n int) {
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.came[key] != n {
		p.t.Fatalf("%d requests of %s, want %d", p.came[key], key, n)
	}
}

func (p *memoryPeer) release(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.released[key] {
		close(p.gate(key))
	}
	p.released[key] = true
}

func (p *memoryPeer) emit([]byte)  { p.t.Fatal("there is no stream to write to") }
func (p *memoryPeer) ignored() int { return 0 }
