package oauth

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/abhed/abhed/ahp"
)

const (
	// maxRequests bounds the requests of one acquisition: two for the resource's
	// metadata, three for the issuer's, a refresh and a token, and one to spare.
	maxRequests = 8
	// maxBodyBytes bounds each document and token response.
	maxBodyBytes = 64 << 10
	// requestTimeout bounds one request.
	requestTimeout = 10 * time.Second
)

// session makes the requests of one acquisition. It is used by one goroutine, and
// end closes its connections.
type session struct {
	rules rules
	guard guard
	opts  *Options
	left  int
	pools []*http.Transport
}

func newSession(o *Options, local bool) *session {
	return &session{rules: rules{local}, guard: guard{local, o.AllowAddress}, opts: o, left: maxRequests}
}

func (s *session) end() {
	for _, p := range s.pools {
		p.CloseIdleConnections()
	}
}

// answer is the response to one request.
type answer struct {
	status int
	json   bool // the media type is application/json
	body   []byte
}

// do sends one request to a URL that rules.parse accepted, and reads the response
// within the bounds. A redirect is an answer like any other.
func (s *session) do(ctx context.Context, req *http.Request) (*answer, error) {
	if s.left--; s.left < 0 {
		return nil, failure("the server leads to more than %d requests", maxRequests)
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	pool, err := s.pool(ctx, req)
	if err != nil {
		return nil, unreachable(req.URL, err)
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "ahp")
	resp, err := pool.RoundTrip(req.WithContext(ctx)) // a RoundTripper follows no redirect and keeps no cookie
	if err != nil {
		return nil, unreachable(req.URL, err)
	}
	defer resp.Body.Close()
	if enc := resp.Header.Get("Content-Encoding"); enc != "" && enc != "identity" {
		return nil, failure("%s answers in a content encoding, expected none", req.URL.Host)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBodyBytes+1))
	if err != nil {
		return nil, unreachable(req.URL, err)
	}
	if len(body) > maxBodyBytes {
		return nil, failure("%s answers with more than %d bytes", req.URL.Host, maxBodyBytes)
	}
	return &answer{resp.StatusCode, isJSON(resp.Header.Values("Content-Type")), body}, nil
}

// pool returns a connection pool for one request: to this machine for plain http,
// through the proxy where there is one for the URL, else to a checked address.
func (s *session) pool(ctx context.Context, req *http.Request) (*http.Transport, error) {
	if req.URL.Scheme == "http" {
		return s.newPool(onlyLoopback, nil), nil
	}
	find := s.opts.Proxy
	if find == nil {
		find = http.ProxyFromEnvironment
	}
	proxy, err := find(req)
	switch {
	case err != nil:
		return nil, errors.New("the settings of the proxy can't be read")
	case proxy == nil:
		return s.newPool(s.guard.check, nil), nil
	}
	if err := s.guard.checkName(ctx, req.URL.Hostname()); err != nil {
		return nil, err
	}
	return s.newPool(func(netip.Addr) error { return nil }, proxy), nil
}

func (s *session) newPool(check func(netip.Addr) error, proxy *url.URL) *http.Transport {
	p := &http.Transport{
		DialContext: dialer(check).DialContext, DisableCompression: true, DisableKeepAlives: true, MaxResponseHeaderBytes: maxBodyBytes,
		TLSHandshakeTimeout: requestTimeout, ForceAttemptHTTP2: true,
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: s.opts.RootCAs},
	}
	if proxy != nil {
		p.Proxy = http.ProxyURL(proxy)
	}
	s.pools = append(s.pools, p)
	return p
}

func isJSON(headers []string) bool {
	if len(headers) != 1 {
		return false
	}
	media, params, err := mime.ParseMediaType(headers[0])
	charset, has := params["charset"]
	return err == nil && media == "application/json" && (!has || strings.EqualFold(charset, "utf-8"))
}

// failure returns an operational failure of class auth.
func failure(format string, args ...any) error {
	return &ahp.Failure{Class: ahp.FailAuth, Detail: fmt.Sprintf(format, args...)}
}

// unreachable names the host and why, without the URL, whose query may hold what
// isn't for a log.
func unreachable(u *url.URL, err error) error {
	var refused *errAddress
	var dns *net.DNSError
	var cert *tls.CertificateVerificationError
	var op *net.OpError
	why := "the connection failed"
	switch {
	case errors.As(err, &refused):
		why = refused.Error()
	case errors.Is(err, context.DeadlineExceeded):
		why = "no answer in time"
	case errors.As(err, &dns):
		why = "the name can't be resolved"
	case errors.As(err, &cert):
		why = "the certificate isn't valid: " + cert.Err.Error()
	case errors.As(err, &op):
		why = op.Op + ": " + op.Err.Error()
	}
	return &ahp.Failure{Class: ahp.FailAuth, Detail: fmt.Sprintf("OAuth: %.100s can't be asked: %s", u.Host, why), Err: err}
}
