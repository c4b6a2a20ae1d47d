package mcp

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"
)

// roundTripper sends the requests of one HTTP session. It adds the configured
// headers, screens and bounds what comes back, and ends everything with the
// session.
type roundTripper struct {
	base    *http.Transport
	origin  *url.URL
	headers map[string]string
	hear    func([]byte) []byte
	// live ends with the session, and with it every request.
	live context.Context
	// send makes room for one message: see link.send.
	send func() (sent func(), err error)
	// broken notes that there is no going on and ends the session.
	broken func(error) error
	// status is that of the last response to a message if it was an error, else 0.
	status *atomic.Int64
	// sideWait bounds the wait for an event stream to open, endWait that for a
	// goodbye: for neither does anybody wait with a time-out of their own.
	sideWait, endWait time.Duration
}

// lostKey is the key of an *atomic.Bool in the context of a call. It becomes true if
// the server answered that it doesn't know the session, so that it has not looked at
// the call.
type lostKey struct{}

// errTooLarge is the fault of a message that is past the bound, on either transport.
var errTooLarge = fmt.Errorf("it wrote a message of more than %d bytes", maxMessage)

// newHTTPTransport returns a transport that trusts the authorities in caFile
// besides the system's.
func newHTTPTransport(caFile string) (*http.Transport, error) {
	t := &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, TLSHandshakeTimeout: 10 * time.Second,
		MaxIdleConns: 8, IdleConnTimeout: 90 * time.Second, ExpectContinueTimeout: time.Second,
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12},
	}
	if caFile == "" {
		return t, nil
	}
	pem, err := os.ReadFile(caFile)
	if err != nil {
		return nil, &StartError{Msg: "ca_file: " + err.Error()}
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		return nil, &StartError{Msg: "the system's certificate authorities can't be read: " + err.Error()}
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, &StartError{Msg: fmt.Sprintf("ca_file %s holds no PEM certificate", caFile)}
	}
	t.TLSClientConfig.RootCAs = pool
	return t, nil
}

// checkURL returns the endpoint, or what is wrong with it. The text isn't quoted:
// it may hold a secret.
func checkURL(s string) (*url.URL, string) {
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return nil, "its url can't be read"
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, "its url is not one of http or https with a host"
	case u.Fragment != "":
		return nil, "its url has a fragment, which no server gets to see; remove it"
	}
	return u, ""
}

// urlSecrets returns the parts of a URL that may be secret.
func urlSecrets(s string) []string {
	u, err := url.Parse(s)
	if err != nil {
		return []string{s}
	}
	var out []string
	if pass, ok := u.User.Password(); ok {
		out = append(out, pass)
	}
	for _, values := range u.Query() {
		out = append(out, values...)
	}
	return out
}

// client returns the HTTP client of the session. Redirects are not followed: the
// headers are for the configured endpoint.
func (rt *roundTripper) client() *http.Client {
	return &http.Client{Transport: rt, CheckRedirect: func(*http.Request, []*http.Request) error {
		return errors.New("the server redirects; configure the address that it redirects to")
	}}
}

// RoundTrip sends one request.
func (rt *roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme != rt.origin.Scheme || req.URL.Host != rt.origin.Host {
		return nil, errors.New("a request to another server was asked for and not sent")
	}
	if req.Method == http.MethodPost {
		sent, err := rt.send()
		if err != nil {
			return nil, err
		}
		defer sent()
	}
	ctx, cancel := context.WithCancel(req.Context())
	stop := context.AfterFunc(rt.live, cancel)
	end := func() { stop(); cancel() }
	out := req.Clone(ctx)
	for name, value := range rt.headers {
		out.Header.Set(name, value)
	}
	var late atomic.Bool
	switch req.Method {
	case http.MethodGet:
		defer time.AfterFunc(rt.sideWait, func() { late.Store(true); cancel() }).Stop()
	case http.MethodDelete:
		defer time.AfterFunc(rt.endWait, cancel).Stop()
	}
	resp, err := rt.base.RoundTrip(out)
	if err != nil {
		end()
		if late.Load() && req.Context().Err() == nil && rt.live.Err() == nil {
			// A server that doesn't open the stream is one that has none.
			return &http.Response{StatusCode: http.StatusMethodNotAllowed, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Body: http.NoBody, Request: req}, nil
		}
		return nil, err
	}
	if req.Method == http.MethodPost { // a server without a stream of its own refuses GET, which is no fault
		code := int64(resp.StatusCode)
		if code < 400 {
			code = 0
		}
		rt.status.Store(code)
	}
	if mark, ok := req.Context().Value(lostKey{}).(*atomic.Bool); ok && resp.StatusCode == http.StatusNotFound {
		mark.Store(true)
	}
	resp.Body = &body{ReadCloser: resp.Body, end: end, from: rt.screened(resp)}
	return resp, nil
}

// screened returns what the SDK reads instead of the response's body.
func (rt *roundTripper) screened(resp *http.Response) io.Reader {
	kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case err == nil && kind == "text/event-stream" && resp.StatusCode < 300:
		return &eventScreen{from: bufio.NewReaderSize(resp.Body, 32<<10), hear: rt.hear, broken: rt.broken}
	case err == nil && kind == "application/json":
		return &bodyScreen{from: resp.Body, hear: rt.hear, broken: rt.broken}
	default:
		return io.LimitReader(resp.Body, 64<<10)
	}
}

// body is a response's body that ends its request when it is closed.
type body struct {
	io.ReadCloser
	end  func()
	from io.Reader
}

func (b *body) Read(p []byte) (int, error) { return b.from.Read(p) }

func (b *body) Close() error {
	err := b.ReadCloser.Close()
	b.end()
	return err
}

// bodyScreen screens a body that is one message.
type bodyScreen struct {
	from   io.Reader
	hear   func([]byte) []byte
	broken func(error) error
	out    *bytes.Reader
}

func (b *bodyScreen) Read(p []byte) (int, error) {
	if b.out == nil {
		data, err := io.ReadAll(io.LimitReader(b.from, maxMessage+1))
		if err != nil {
			return 0, err
		}
		if len(data) > maxMessage {
			return 0, b.broken(errTooLarge)
		}
		b.out = bytes.NewReader(b.hear(data))
	}
	return b.out.Read(p)
}

// eventScreen screens a stream of server-sent events.
type eventScreen struct {
	from   *bufio.Reader
	hear   func([]byte) []byte
	broken func(error) error
	out    []byte
	err    error
}

func (s *eventScreen) Read(p []byte) (int, error) {
	for len(s.out) == 0 {
		if s.err != nil {
			return 0, s.err
		}
		s.next()
	}
	n := copy(p, s.out)
	s.out = s.out[n:]
	return n, nil
}

// next reads one event, up to the empty line behind it. An event that the end of
// the stream cuts short is dropped.
func (s *eventScreen) next() {
	var other, data []byte
	hasData := false
	for size := 0; ; {
		line, err := readLine(s.from, maxMessage-size)
		if err == errTooLarge {
			err = s.broken(err)
		}
		if err != nil {
			s.err = err
			return
		}
		if len(line) == 0 {
			break
		}
		size += len(line)
		if text, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			data, hasData = append(append(data, ' '), bytes.TrimPrefix(text, []byte(" "))...), true
			continue
		}
		other = append(append(other, line...), '\n')
	}
	if hasData && len(bytes.TrimSpace(data)) > 0 {
		out := s.hear(data)
		if out == nil && len(other) == 0 {
			return
		}
		other = append(append(append(other, "data: "...), out...), '\n')
	}
	s.out = append(other, '\n')
}

// readLine returns a line without its end, LF or CR LF.
func readLine(r *bufio.Reader, limit int) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) > limit {
			return nil, errTooLarge
		}
		line = append(line, part...)
		if err == nil {
			return bytes.TrimRight(line, "\r\n"), nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}
	}
}

// describeURL returns an endpoint without what may be secret.
func describeURL(u *url.URL) string {
	return strings.TrimSuffix((&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String(), "/")
}
