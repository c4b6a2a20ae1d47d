package httpapi

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/abhed/abhed/internal/model"
)

const (
	maxErrorBody  = 64 << 10
	maxQuoted     = 240
	maxMessage    = 1000
	maxRetryAfter = 30 * 24 * time.Hour
	redacted      = "[redacted]"
	minSecret     = 4 // a shorter value isn't a secret, and would garble what is shown
)

// QuoteBytes returns b in quotes, escaped and cut to limit bytes, for an error.
// What came from the endpoint goes through API.Quoted, which hides secrets.
func QuoteBytes(b []byte, limit int) string {
	if len(b) <= limit {
		return strconv.Quote(string(b))
	}
	cut := limit
	for cut > limit-utf8.UTFMax && !utf8.RuneStart(b[cut]) {
		cut--
	}
	return fmt.Sprintf("%s… (%d bytes)", strconv.Quote(string(b[:cut])), len(b))
}

// redact removes the endpoint's credentials from text that came from outside.
func (a *API) redact(b []byte) []byte {
	s := string(b)
	for _, secret := range a.secrets {
		if len(secret) >= minSecret {
			s = strings.ReplaceAll(s, secret, redacted)
		}
	}
	return []byte(s)
}

// Quoted returns bytes that came from the endpoint in quotes, cut, without secrets.
func (a *API) Quoted(b []byte) string { return QuoteBytes(a.redact(b), maxQuoted) }

// said returns a server's message as one line of printable text.
func (a *API) said(message string) string {
	q := QuoteBytes(a.redact([]byte(message)), maxMessage)
	return strings.ReplaceAll(q, `\"`, `'`)
}

// Fail returns a failure of this endpoint. What the format is given must hold no
// secret.
func (a *API) Fail(kind model.ErrorKind, cause error, format string, args ...any) *model.Error {
	return &model.Error{Kind: kind, Endpoint: a.shown, Detail: fmt.Sprintf(format, args...), Err: cause}
}

// FrameError is the failure for an error object inside a reply; data is the whole
// frame.
func (a *API) FrameError(data []byte) *model.Error {
	e, ok := parseError(data)
	if !ok || e == (apiError{}) {
		return a.Fail(model.ErrServer, nil, "the endpoint sent an error inside its reply: %s", a.Quoted(data))
	}
	me := a.Fail(e.classify(), nil, "the endpoint sent an error inside its reply: %s", a.describe(e))
	me.RetryAfter = waitIn(e.message)
	return me
}

func (a *API) describe(e apiError) string {
	out := a.said(e.message)
	if e.kind != "" {
		out += ", type " + QuoteBytes(a.redact([]byte(e.kind)), 80)
	}
	if e.code != "" && e.code != e.kind {
		out += ", code " + QuoteBytes(a.redact([]byte(e.code)), 80)
	}
	return out
}

// statusError is the failure for an answer other than 2xx.
func (a *API) statusError(resp *http.Response, body []byte) *model.Error {
	message := "no message"
	said, ok := parseError(body)
	if ok {
		message = a.describe(said)
	} else if len(body) > 0 {
		message = a.Quoted(body)
		said.message = string(body)
	}
	var e *model.Error
	switch code := resp.StatusCode; {
	case code >= 300 && code < 400:
		e = a.Fail(model.ErrRequest, nil, "the endpoint redirects%s, which is never followed because the request carries credentials; set base_url to where the API is", a.target(resp))
	case code == 401 || code == 403 || code == 400 && said.badKey():
		e = a.Fail(model.ErrAuth, nil, "the endpoint refused the credentials: %s. %s", message, a.keyHint)
	case code == 404 || code == 405:
		e = a.Fail(model.ErrRequest, nil, "the endpoint does not know this: %s. Check base_url (%s) and the model name %q", message, a.words.BaseURL, a.model)
	case code == 407:
		e = a.Fail(model.ErrRequest, nil, "the proxy%s wants credentials: %s", a.proxy(resp.Request), message)
	case code == 429:
		e = a.Fail(model.ErrRateLimit, nil, "the endpoint limits the rate: %s", message)
	case code == 413 || said.overflow():
		e = a.Fail(model.ErrOverflow, nil, "the request does not fit the model's context window: %s", message)
	case code < 500 && said.replay():
		e = a.Fail(model.ErrReplay, nil, "the endpoint refused reasoning that was sent back: %s", message)
	case code >= 500 || said.overloaded():
		e = a.Fail(model.ErrServer, nil, "the endpoint failed: %s", message)
	default:
		e = a.Fail(model.ErrRequest, nil, "the endpoint refused the request: %s", message)
	}
	e.Status = resp.StatusCode
	e.RetryAfter = retryAfter(resp.Header, time.Now())
	if e.RetryAfter == 0 && e.Retryable() {
		e.RetryAfter = waitIn(said.message)
	}
	return e
}

// target names where a redirect points, without its query.
func (a *API) target(resp *http.Response) string {
	u, err := resp.Location()
	if err != nil {
		return ""
	}
	return " to " + string(a.redact([]byte(u.Scheme+"://"+u.Host+u.EscapedPath())))
}

// retryAfter reads the headers that ask to wait, 0 if none does.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil {
		return clampWait(ms / 1000)
	}
	v := strings.TrimSpace(h.Get("Retry-After"))
	if s, err := strconv.ParseFloat(v, 64); err == nil {
		return clampWait(s)
	}
	if t, err := http.ParseTime(v); err == nil {
		return clampWait(t.Sub(now).Seconds())
	}
	return 0
}

// waitIn reads what a message asks to wait, as "please try again in 1m2.5s", where
// servers have no header for it; 0 if it doesn't.
func waitIn(message string) time.Duration {
	message = strings.ToLower(message)
	for _, lead := range []string{"try again in ", "retry in "} {
		_, rest, found := strings.Cut(message, lead)
		if !found {
			continue
		}
		end := strings.IndexFunc(rest, func(r rune) bool { return !strings.ContainsRune("0123456789.hms", r) })
		if end < 0 {
			end = len(rest)
		}
		amount := strings.TrimRight(rest[:end], ".")
		if d, err := time.ParseDuration(amount); err == nil {
			return clampWait(d.Seconds())
		}
		if s, err := strconv.ParseFloat(amount, 64); err == nil && strings.HasPrefix(rest[end:], " second") {
			return clampWait(s)
		}
	}
	return 0
}

func clampWait(seconds float64) time.Duration {
	if !(seconds > 0) { // also not a number
		return 0
	}
	return time.Duration(min(seconds, maxRetryAfter.Seconds()) * float64(time.Second))
}

// proxy names the proxy for req for an error, by scheme and host alone: anything
// else in the variable may be a password.
func (a *API) proxy(req *http.Request) string {
	if a.own == nil || req == nil {
		return ""
	}
	u, err := a.own.Proxy(req)
	if err != nil || u == nil {
		return ""
	}
	return " " + u.Scheme + "://" + u.Host
}

// connectError is the failure of a request that got no answer.
func (a *API) connectError(req *http.Request, err error) *model.Error {
	var ue *url.Error
	if errors.As(err, &ue) {
		err = ue.Err // the outer error repeats the URL with its query
	}
	via := ""
	if p := a.proxy(req); p != "" {
		via = fmt.Sprintf(" (through the proxy%s, set by the environment)", p)
	}
	var (
		dns     *net.DNSError
		unknown x509.UnknownAuthorityError
		verify  *tls.CertificateVerificationError
		record  tls.RecordHeaderError
	)
	switch {
	case errors.As(err, &verify), errors.As(err, &unknown):
		return a.Fail(model.ErrTLS, err, "the server's certificate was not accepted: %v%s. If the endpoint is yours, trust its authority with ca_file", err, via)
	case errors.As(err, &record), errors.Is(err, http.ErrSchemeMismatch):
		return a.Fail(model.ErrConnect, err, "the server does not speak TLS%s; if it is meant to be plain, write http:// in base_url", via)
	case errors.As(err, &dns):
		return a.Fail(model.ErrConnect, err, "the host name could not be resolved: %v%s. Check base_url and the network", dns, via)
	case errors.Is(err, syscall.ECONNREFUSED):
		return a.Fail(model.ErrConnect, err, "the connection was refused: %v%s. Check that the server is running there and that base_url names its port", err, via)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return a.Fail(model.ErrCut, err, "the server closed the connection without an answer%s", via)
	case strings.Contains(err.Error(), "malformed HTTP"):
		return a.Fail(model.ErrMalformed, err, "the server does not answer in HTTP: %s%s. Check base_url", a.Quoted([]byte(err.Error())), via)
	default:
		return a.Fail(model.ErrConnect, err, "the request could not be made: %s%s. Check base_url and the network", a.Quoted([]byte(err.Error())), via)
	}
}

// stallError is the failure for a request on which nothing happened.
func (a *API) stallError(cause error, phase string) *model.Error {
	wait := a.stall
	if cause == errNoContent {
		wait *= keepAliveFactor
	}
	return a.Fail(model.ErrStalled, cause, "%v for %v %s; the connection was closed. A slow model may need a higher stall limit", cause, wait, phase)
}

// ended returns ctx's error if it ended, else the watch's, else nil.
func (a *API) ended(ctx context.Context, w *watch, phase string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if cause := w.stalled(); cause != nil {
		return a.stallError(cause, phase)
	}
	return nil
}
