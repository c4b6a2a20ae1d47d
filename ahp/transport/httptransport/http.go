// Package httptransport carries AHP messages to a backend over HTTP (§17). It is
// apart from package transport because linking net/http costs every start of a
// program more than a millisecond; it implements that package's interface.
//
// It guarantees one POST per message over connections that are kept, exact statuses
// and media types, no followed redirect, no cookie, no compression, bodies of at most
// 16 MiB, TLS 1.2 or newer with validation for every https URL, plain http to this
// machine only, and that a credential goes to the configured URL only and into no
// error. A registered credential that is refused is a failure of class auth: no other
// kind of credential, identity or issuer is tried (§18). A token of OAuth that the
// backend used to accept is replaced once per call. Without a registered credential
// a 401 is a failure too, unless Options.Trust has a client for the endpoint. An
// Uploader sends the bytes of attachments (§19) with a credential of its own.
//
// Do not assume that a notification was processed: 202 and 204 say that it
// arrived. Do not assume that https goes straight to the backend: the proxy of the
// environment is used, for https alone, and sees no more than the host. Do not assume
// that nothing is logged: net/http writes to package log what a server sends unasked,
// so a command whose standard error means something discards that.
package httptransport

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/oauth"
)

const mediaType = "application/json"

// Options tunes a transport. The zero value is right for most uses.
type Options struct {
	// LookupEnv finds the variable that holds a bearer token; nil means
	// os.LookupEnv. It is asked for each message, so a token may be renewed.
	LookupEnv func(name string) (value string, ok bool)
	// ResolveRef finds the token that a tokenRef refers to; nil means that
	// references can't be resolved, and New refuses them.
	ResolveRef func(ctx context.Context, ref string) (string, error)
	// OAuth is what the host lends to authentication of type "oauth" and to Trust;
	// its zero ResolveSecret means ResolveRef. Its requests never use Client.
	OAuth oauth.Options
	// Trust is the local policy for backends without registered authentication:
	// clients that may be used where a backend refuses a request with a challenge,
	// the challenge leads to metadata of the client's resource, and that names the
	// client's issuer. Clients whose resource doesn't cover the backend's URL are
	// ignored. Empty means that nothing is discovered.
	Trust []oauth.Client
	// Client, if set, is used instead of a client of the transport's own; its
	// redirect policy and cookie jar are not. Its proxies, its compression, its
	// idea of a valid certificate, and where it finds "localhost" are the caller's
	// to answer for, and it is the caller's to close.
	Client *http.Client
}

// Transport is a connection pool to one backend. Its methods are those of
// transport.Transport and may be called from any goroutine.
type Transport struct {
	url    string
	cred   credential
	client http.Client
	own    *pool           // nil with a client of the caller
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	mu     sync.Mutex // orders Close against new calls
	closed bool
	calls  sync.WaitGroup
}

// New returns a transport to the URL of a backend. It refuses plain http to
// another machine, and authentication that can't work here: a reference that nothing
// resolves, a flow that needs a person whom nothing can ask, a resource that isn't
// the URL's. Whether the credential is there is not checked before the first message
// (see Ready and Login).
func New(b *ahp.Backend, opts Options) (*Transport, error) {
	if b.Transport.Type != ahp.TransportHTTP || b.Transport.URL == "" {
		return nil, fmt.Errorf("backend %s: not an http configuration with a URL", b.ID)
	}
	t, err := newTransport(b.Transport.URL, b.Authentication, opts)
	if err != nil {
		return nil, fmt.Errorf("backend %s: %w", b.ID, err)
	}
	return t, nil
}

// newTransport returns a transport to a URL, with a credential of its own.
func newTransport(endpoint string, auth *ahp.Authentication, opts Options) (*Transport, error) {
	scheme, _, _ := strings.Cut(endpoint, "://")
	secure := strings.EqualFold(scheme, "https")
	switch {
	case hasUserinfo(endpoint):
		return nil, errors.New("the URL holds a user's name; leave it out, and name a token under authentication")
	case !secure && !ahp.IsLoopbackURL(endpoint):
		return nil, errors.New("plain http is allowed to this machine only; use https")
	}
	cred, err := newCredential(auth, endpoint, opts)
	if err != nil {
		return nil, err
	}
	t := &Transport{url: endpoint, cred: cred}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	if opts.Client != nil {
		t.client = *opts.Client
	} else {
		t.own = newPool(secure)
		t.client.Transport = t.own
	}
	t.client.Jar = nil
	t.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return t, nil
}

// hasUserinfo reports whether there is user information in a URL: the client would
// send it as Basic authentication, which isn't portable (AHP-AUTH-001).
func hasUserinfo(s string) bool {
	u, err := url.Parse(s)
	return err != nil || u.User != nil
}

// Ready reports why the configured credential can't be had now, or nil: an
// *ahp.Failure of class auth.
func (t *Transport) Ready(ctx context.Context) error { return t.cred.ready(ctx) }

// Login obtains the token of a registered OAuth client now, so that no call has to
// wait for a person, and even if an earlier failure holds the next try back. It does
// nothing for other credentials. Its errors are those of Exchange.
func (t *Transport) Login(ctx context.Context) error {
	tokens, ok := t.cred.(*tokens)
	if !ok {
		return nil
	}
	return t.call(ctx, tokens.source.Login)
}

// Exchange posts a request and returns the body of a 200.
func (t *Transport) Exchange(ctx context.Context, msg []byte) ([]byte, error) {
	var reply []byte
	err := t.post(ctx, msg, func(resp *http.Response) error {
		if resp.StatusCode != http.StatusOK {
			return statusFailure(resp, "200")
		}
		if err := checkMediaType(resp.Header.Values("Content-Type")); err != nil {
			return err
		}
		if enc := resp.Header.Get("Content-Encoding"); enc != "" && enc != "identity" {
			return &ahp.Failure{Class: ahp.FailMalformed, Detail: fmt.Sprintf("content encoding %.40q, expected none", enc)}
		}
		body, err := readBody(resp.Body, ahp.MaxMessageBytes)
		reply = body
		return err
	})
	return reply, err
}

// Notify posts a notification and expects 202 or 204 without a body.
func (t *Transport) Notify(ctx context.Context, msg []byte) error {
	return t.post(ctx, msg, func(resp *http.Response) error {
		if resp.StatusCode != http.StatusAccepted && resp.StatusCode != http.StatusNoContent {
			return statusFailure(resp, "202 or 204")
		}
		n, err := io.CopyN(io.Discard, resp.Body, 1)
		// The body of a 204 isn't read, but it is announced.
		announced := resp.Header.Get("Content-Length")
		if n > 0 || announced != "" && announced != "0" {
			return &ahp.Failure{Class: ahp.FailMalformed, Detail: "a notification was answered with a body"}
		}
		if err != nil && err != io.EOF {
			return connectFailure(err)
		}
		return nil
	})
}

// post sends msg and hands the response to use while it can be read.
func (t *Transport) post(ctx context.Context, msg []byte, use func(*http.Response) error) error {
	if len(msg) > ahp.MaxMessageBytes {
		return &ahp.Failure{Class: ahp.FailMalformed, Detail: fmt.Sprintf("the message has %d bytes, the limit is %d", len(msg), ahp.MaxMessageBytes)}
	}
	return t.call(ctx, func(ctx context.Context) error { return t.send(ctx, msg, use) })
}

// call runs do with a context that ends with ctx and with the transport, and says
// in the error which of them ended it.
func (t *Transport) call(ctx context.Context, do func(context.Context) error) error {
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return closedFailure()
	}
	t.calls.Add(1)
	t.mu.Unlock()
	defer t.calls.Done()
	callCtx, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(t.ctx, stop)()

	err := do(callCtx)
	switch {
	case err == nil:
		return nil
	case t.ctx.Err() != nil:
		return closedFailure()
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		if t.own != nil {
			t.own.renew()
		}
		return &ahp.Failure{Class: ahp.FailDeadline, Detail: "the deadline passed before the response was complete", Err: ctx.Err()}
	case ctx.Err() != nil:
		return fmt.Errorf("cancelled while waiting for the response: %w", ctx.Err())
	}
	return err
}

func (t *Transport) send(ctx context.Context, msg []byte, use func(*http.Response) error) error {
	resp, err := sendAs(ctx, &t.client, t.cred, func(ctx context.Context) (*http.Request, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.url, bytes.NewReader(msg))
		if err != nil {
			return nil, err
		}
		req.Header.Set("Content-Type", mediaType)
		req.Header.Set("Accept", mediaType)
		req.Header.Set("User-Agent", "ahp")
		return req, nil
	})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return use(resp)
}

func checkMediaType(headers []string) error {
	header := strings.Join(headers, ", ")
	got, params, err := mime.ParseMediaType(header)
	charset, has := params["charset"]
	if err != nil || len(headers) != 1 || got != mediaType || has && !strings.EqualFold(charset, "utf-8") {
		return &ahp.Failure{Class: ahp.FailMalformed, Detail: fmt.Sprintf("content type %.60q, expected %q", header, mediaType)}
	}
	return nil
}

func readBody(r io.Reader, limit int64) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, connectFailure(err)
	}
	if int64(len(body)) > limit {
		return nil, &ahp.Failure{Class: ahp.FailMalformed, Detail: "the response is larger than the limit"}
	}
	return body, nil
}

func statusFailure(resp *http.Response, expected string) error {
	f := &ahp.Failure{Class: ahp.FailHTTPStatus, Status: resp.StatusCode, Detail: fmt.Sprintf("HTTP status %d, expected %s", resp.StatusCode, expected)}
	switch resp.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired:
		f.Class, f.Status = ahp.FailAuth, 0
	}
	return f
}

// connectFailure leaves the URL out of the message: its query may hold a secret.
func connectFailure(err error) error {
	var e *url.Error
	if errors.As(err, &e) {
		err = e.Err
	}
	return &ahp.Failure{Class: ahp.FailConnect, Detail: err.Error(), Final: misconfigured(err), Err: err}
}

// misconfigured reports whether a connection failed because the two sides don't
// agree on TLS: a certificate that isn't valid here or there, or no TLS at all.
func misconfigured(err error) bool {
	var (
		certificate *tls.CertificateVerificationError
		notTLS      tls.RecordHeaderError
		alert       tls.AlertError // the server's word
	)
	return errors.As(err, &certificate) || errors.As(err, &notTLS) || errors.As(err, &alert) || errors.Is(err, http.ErrSchemeMismatch)
}

func closedFailure() error {
	return &ahp.Failure{Class: ahp.FailShutdown, Detail: "the transport is closed"}
}

// Close cancels what is pending, waits for it and closes the connections.
func (t *Transport) Close() error {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.cancel()
	t.calls.Wait()
	t.cred.close()
	if t.own != nil {
		t.own.close()
	}
	return nil
}
