package httptransport_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/backend"
	"github.com/abhed/abhed/ahp/backend/httpbackend"
	"github.com/abhed/abhed/ahp/transport/httptransport"
)

// relay passes connections on to a server, until cut: from then on those it has pass
// nothing more and stay open, like after a machine slept or moved to another network.
type relay struct {
	net.Listener
	to    string
	cut   atomic.Int32 // how many connections were accepted before the cut
	n     atomic.Int32
	wg    sync.WaitGroup
	mu    sync.Mutex
	conns []net.Conn
}

func newRelay(t *testing.T, to string) *relay {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{Listener: l, to: to}
	r.wg.Go(r.serve)
	t.Cleanup(func() {
		l.Close()
		r.mu.Lock()
		for _, c := range r.conns {
			c.Close()
		}
		r.mu.Unlock()
		r.wg.Wait()
	})
	return r
}

func (r *relay) serve() {
	for {
		here, err := r.Accept()
		if err != nil {
			return
		}
		there, err := net.Dial("tcp", r.to)
		if err != nil {
			here.Close()
			continue
		}
		id := r.n.Add(1)
		r.mu.Lock()
		r.conns = append(r.conns, here, there)
		r.mu.Unlock()
		r.wg.Go(func() { r.pass(there, here, id) })
		r.wg.Go(func() { r.pass(here, there, id) })
	}
}

func (r *relay) pass(to, from net.Conn, id int32) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			if id > r.cut.Load() {
				to.Close()
			}
			return
		}
		if id > r.cut.Load() {
			to.Write(buf[:n])
		}
	}
}

// TestDeadConnection holds that a kept connection which leads nowhere any more costs
// the call that meets it, and none after that, in both versions of HTTP.
func TestDeadConnection(t *testing.T) {
	for _, version := range []string{"HTTP/1.1", "HTTP/2.0"} {
		var proto atomic.Value
		h := httpbackend.Handler(backend.New(backend.Func(allowAll), backend.Options{}), httpbackend.Options{})
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			proto.Store(r.Proto)
			h.ServeHTTP(w, r)
		}))
		s.EnableHTTP2 = version == "HTTP/2.0"
		s.StartTLS()
		defer s.Close()
		between := newRelay(t, s.Listener.Addr().String())
		link := open(t, backendAt("https://"+between.Addr().String()+"/"), httptransport.Options{})
		httptransport.TrustForTest(link, s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs)
		if _, err := link.Exchange(t.Context(), message(t)); err != nil || proto.Load() != version {
			t.Fatalf("%v, %v", err, proto.Load())
		}
		between.cut.Store(between.n.Load())
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		_, err := link.Exchange(ctx, message(t))
		cancel()
		if f := ahp.AsFailure(err); f == nil || f.Class != ahp.FailDeadline {
			t.Errorf("%s: a dead connection: %v", version, err)
		}
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			out, err := link.Exchange(ctx, message(t))
			cancel()
			if err != nil || !strings.Contains(string(out), `"effects":[]`) {
				t.Errorf("%s: the next call: %s, %v", version, out, err)
			}
		}
		link.Close()
	}
}
