package harness_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/transport"
	"github.com/abhed/abhed/ahp/transport/httptransport"
)

// httpPeer is a server on loopback that answers when the row says so.
type httpPeer struct {
	t    *testing.T
	row  *lifecycle
	wire transport.Transport
	mu   sync.Mutex
	// came counts the requests of a key; news is closed at every one, and made anew.
	came  map[string]int
	news  chan struct{}
	gates map[string]chan struct{} // closed once the key is released
}

func newHTTPPeer(t *testing.T, row *lifecycle) *httpPeer {
	p := &httpPeer{t: t, row: row, came: map[string]int{}, news: make(chan struct{}), gates: map[string]chan struct{}{}}
	s := httptest.NewServer(p)
	t.Cleanup(s.Close)
	var err error
	p.wire, err = httptransport.New(&ahp.Backend{ID: "test.http", Transport: ahp.TransportConfig{Type: ahp.TransportHTTP, URL: s.URL}}, httptransport.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.wire.Close() })
	return p
}

// gate returns the channel of key; the caller holds p.mu.
func (p *httpPeer) gate(key string) chan struct{} {
	if p.gates[key] == nil {
		p.gates[key] = make(chan struct{})
	}
	return p.gates[key]
}

func (p *httpPeer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	msg, err := io.ReadAll(r.Body)
	if err != nil {
		p.t.Error(err)
	}
	key := keyOf(msg)
	p.mu.Lock()
	n := p.came[key]
	p.came[key]++
	close(p.news)
	p.news = make(chan struct{})
	gate := p.gate(key)
	p.mu.Unlock()
	select {
	case <-gate:
		w.Header().Set("Content-Type", "application/json")
		w.Write(p.row.response(key, n))
	case <-r.Context().Done(): // nobody waits any more
	}
}

func (p *httpPeer) link() transport.Transport { return p.wire }

func (p *httpPeer) wait(key string, n int) {
	awaitRequests(p.t, key, n, func() (int, <-chan struct{}) {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.came[key], p.news
	})
}

func (p *httpPeer) release(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.gate(key))
}

func (p *httpPeer) emit([]byte)  { p.t.Fatal("there is no stream to write to") }
func (p *httpPeer) ignored() int { return 0 }

// TestLifecyclesOverHTTP plays the rows that HTTP can have, several requests pending
// at once among them.
func TestLifecyclesOverHTTP(t *testing.T) {
	n := 0
	for _, s := range readLifecycles(t) {
		if s.chain != nil || s.Transports != nil && !slices.Contains(s.Transports, "http") {
			continue
		}
		n++
		t.Run(s.ID, func(t *testing.T) { playRow(t, &s, newHTTPPeer(t, &s), func() {}) })
	}
	if n < 13 {
		t.Errorf("only %d rows", n)
	}
}

// awaitRequests returns when look counts n requests; news is closed when there may
// be more.
func awaitRequests(t *testing.T, key string, n int, look func() (came int, news <-chan struct{})) {
	t.Helper()
	timeout := time.After(20 * time.Second)
	for {
		came, news := look()
		if came >= n {
			return
		}
		select {
		case <-news:
		case <-timeout:
			t.Fatalf("%d requests of %s, want %d", came, key, n)
		}
	}
}
