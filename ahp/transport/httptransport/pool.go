package httptransport

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"syscall"
	"time"
)

// pool keeps the connections to one endpoint. It owns them: close ends them all. Its
// methods may be called from any goroutine.
type pool struct {
	secure bool
	tls    *tls.Config

	mu      sync.Mutex
	current *http.Transport // what new requests use
	conns   map[*conn]struct{}
	closed  bool
}

func newPool(secure bool) *pool {
	p := &pool{secure: secure, tls: &tls.Config{MinVersion: tls.VersionTLS12}, conns: map[*conn]struct{}{}}
	p.current = p.fresh()
	return p
}

// RoundTrip sends a request over a kept connection or a new one.
func (p *pool) RoundTrip(req *http.Request) (*http.Response, error) {
	p.mu.Lock()
	t := p.current
	p.mu.Unlock()
	return t.RoundTrip(req)
}

// renew has later requests use new connections. It is called when a request found no
// end in time: its connection may lead nowhere any more, as after a machine slept,
// and over HTTP/2 every later request would wait on it too. Requests that run are
// left alone; their connections are closed when they are idle.
func (p *pool) renew() {
	fresh := p.fresh()
	p.mu.Lock()
	old := p.current
	p.current = fresh
	p.mu.Unlock()
	old.CloseIdleConnections()
}

// close ends all connections. Requests must have ended.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	t, conns := p.current, make([]*conn, 0, len(p.conns))
	for c := range p.conns {
		conns = append(conns, c)
	}
	p.mu.Unlock()
	t.CloseIdleConnections()
	for _, c := range conns {
		c.Close()
	}
}

func (p *pool) fresh() *http.Transport {
	t := &http.Transport{
		DialContext: p.dial, DisableCompression: true, MaxIdleConnsPerHost: 8, IdleConnTimeout: 90 * time.Second,
		TLSHandshakeTimeout: 10 * time.Second, MaxResponseHeaderBytes: 64 << 10, ForceAttemptHTTP2: p.secure,
		TLSClientConfig: p.tls.Clone(),
	}
	if p.secure {
		t.Proxy = http.ProxyFromEnvironment
	}
	return t
}

// dial connects; for plain http to this machine only, whatever a name resolves to.
func (p *pool) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	if !p.secure {
		dialer.Control = onlyThisMachine
	}
	c, err := dialer.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	out := &conn{Conn: c, pool: p}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		c.Close()
		return nil, errors.New("the transport is closed")
	}
	p.conns[out] = struct{}{}
	return out, nil
}

// onlyThisMachine refuses an address elsewhere before a packet leaves.
func onlyThisMachine(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil || !at.Addr().Unmap().IsLoopback() {
		return errors.New("plain http, and the name doesn't lead to this machine")
	}
	return nil
}

// conn is a connection that its pool knows while it is open.
type conn struct {
	net.Conn
	pool *pool
}

// Close closes the connection.
func (c *conn) Close() error {
	c.pool.mu.Lock()
	delete(c.pool.conns, c)
	c.pool.mu.Unlock()
	return c.Conn.Close()
}
