package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// httpLink posts messages to the peer's URL.
type httpLink struct {
	env    *backendEnv
	p      *probe
	n      int
	client *http.Client
}

func (e *backendEnv) openHTTP(p *probe) *httpLink {
	base := &http.Transport{Proxy: http.ProxyFromEnvironment, DisableCompression: true, ForceAttemptHTTP2: true}
	p.atEnd(base.CloseIdleConnections)
	return &httpLink{env: e, p: p, n: p.connection(), client: &http.Client{
		Transport:     base,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// change alters a request before it is sent.
type change func(*http.Request)

// post sends m and returns the response, whatever its status.
func (l *httpLink) post(ctx context.Context, m message, changes ...change) (*answer, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, l.env.opts.Timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, l.env.target.URL, bytes.NewReader(m.raw))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	if l.env.target.Token != "" {
		r.Header.Set("Authorization", "Bearer "+l.env.target.Token)
	}
	for _, c := range changes {
		c(r)
	}
	l.p.record(l.n, ToPeer, m.raw)
	resp, err := l.client.Do(r)
	if err != nil {
		return nil, l.broken(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, l.broken(err)
	}
	l.p.happened(l.n, "status %d, %s", resp.StatusCode, resp.Header.Get("Content-Type"))
	a := &answer{status: resp.StatusCode, header: resp.Header}
	if len(bytes.TrimSpace(body)) > 0 {
		l.p.record(l.n, FromPeer, body)
		a.raw = bytes.TrimSpace(body)
	}
	return a, nil
}

// broken returns the finding that a request got no response.
func (l *httpLink) broken(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return l.p.failf("no response within %s", l.env.opts.Timeout)
	}
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("posting: %w", err)
	}
	return l.p.failf("no response: %v", err)
}

func (l *httpLink) ask(ctx context.Context, m message) (*answer, error) { return l.post(ctx, m) }

func (l *httpLink) tell(ctx context.Context, m message) ([][]byte, error) {
	a, err := l.post(ctx, m)
	if err != nil || a.raw == nil {
		return nil, err
	}
	return [][]byte{a.raw}, nil
}

func (*httpLink) drain(context.Context) [][]byte { return nil }
