package openai

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

	"github.com/go-json-experiment/json/jsontext"

	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/strictjson"
)

const (
	maxErrorBody  = 64 << 10
	maxQuoted     = 240
	maxMessage    = 1000
	maxRetryAfter = 30 * 24 * time.Hour
	redacted      = "[redacted]"
	minSecret     = 4 // a shorter value isn't a secret, and would garble what is shown
)

// quoteBytes returns b in quotes, escaped and cut to limit bytes, for an error.
func quoteBytes(b []byte, limit int) string {
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
func (c *Client) redact(b []byte) []byte {
	s := string(b)
	for _, secret := range c.secrets {
		if len(secret) >= minSecret {
			s = strings.ReplaceAll(s, secret, redacted)
		}
	}
	return []byte(s)
}

func (c *Client) quoted(b []byte) string { return quoteBytes(c.redact(b), maxQuoted) }

// said returns a server's message as one line of printable text.
func (c *Client) said(message string) string {
	q := quoteBytes(c.redact([]byte(message)), maxMessage)
	return strings.ReplaceAll(q, `\"`, `'`)
}

func (c *Client) fail(kind model.ErrorKind, cause error, format string, args ...any) *model.Error {
	return &model.Error{Kind: kind, Endpoint: c.shown, Detail: fmt.Sprintf(format, args...), Err: cause}
}

// apiError is an error as servers write it.
type apiError struct{ message, kind, code string }

// parseError finds the error in a body or a frame; ok is false if there is none.
func parseError(data []byte) (e apiError, ok bool) {
	var list []jsontext.Value
	if strictjson.Unmarshal(data, &list, strictjson.Options{}) == nil && len(list) == 1 {
		data = list[0]
	}
	var m map[string]jsontext.Value
	if strictjson.Unmarshal(data, &m, strictjson.Options{}) != nil {
		return apiError{}, false
	}
	if inner := m["error"]; !none(inner) {
		if inner.Kind() != '{' {
			return apiError{message: text(inner), code: text(m["code"])}, true
		}
		if strictjson.Unmarshal(inner, &m, strictjson.Options{}) != nil {
			return apiError{}, false
		}
		return apiError{message: text(m["message"]), kind: text(m["type"]), code: text(m["code"])}, true
	}
	for _, name := range []string{"message", "detail"} {
		if v := m[name]; !none(v) {
			msg := text(v)
			if msg == "" {
				msg = string(v)
			}
			return apiError{message: msg, kind: text(m["type"]), code: text(m["code"])}, true
		}
	}
	return apiError{}, false
}

// classify sorts an error inside a stream, which has no status of its own.
func (e apiError) classify() model.ErrorKind {
	words := strings.ToLower(e.kind + " " + e.code)
	has := func(subs ...string) bool {
		for _, s := range subs {
			if strings.Contains(words, s) {
				return true
			}
		}
		return false
	}
	switch {
	case has("auth", "permission", "api_key", "401", "403"):
		return model.ErrAuth
	case has("rate_limit", "ratelimit", "too_many_requests", "quota", "429"):
		return model.ErrRateLimit
	case has("invalid_request", "badrequest", "bad_request", "context_length", "not_found", "unprocessable", "400", "404", "413", "422"):
		return model.ErrRequest
	default:
		return model.ErrServer
	}
}

// frameError is the failure for an error object inside a reply.
func (c *Client) frameError(data []byte) *model.Error {
	e, ok := parseError(data)
	if !ok || e.message == "" && e.kind == "" && e.code == "" {
		return c.fail(model.ErrServer, nil, "the endpoint sent an error inside its reply: %s", c.quoted(data))
	}
	return c.fail(e.classify(), nil, "the endpoint sent an error inside its reply: %s", c.describe(e))
}

func (c *Client) describe(e apiError) string {
	out := c.said(e.message)
	if e.kind != "" {
		out += ", type " + quoteBytes(c.redact([]byte(e.kind)), 80)
	}
	if e.code != "" && e.code != e.kind {
		out += ", code " + quoteBytes(c.redact([]byte(e.code)), 80)
	}
	return out
}

// statusError is the failure for an answer other than 2xx.
func (c *Client) statusError(resp *http.Response, body []byte) *model.Error {
	message := "no message"
	if e, ok := parseError(body); ok {
		message = c.describe(e)
	} else if len(body) > 0 {
		message = c.quoted(body)
	}
	var e *model.Error
	switch code := resp.StatusCode; {
	case code >= 300 && code < 400:
		e = c.fail(model.ErrRequest, nil, "the endpoint redirects%s, which is never followed because the request carries credentials; set base_url to where the API is", c.target(resp))
	case code == 401 || code == 403:
		e = c.fail(model.ErrAuth, nil, "the endpoint refused the credentials: %s. %s", message, c.keyHint)
	case code == 404 || code == 405:
		e = c.fail(model.ErrRequest, nil, "the endpoint does not know this: %s. Check base_url (it usually ends in /v1) and the model name %q", message, c.model)
	case code == 407:
		e = c.fail(model.ErrRequest, nil, "the proxy%s wants credentials: %s", c.proxy(resp.Request), message)
	case code == 429:
		e = c.fail(model.ErrRateLimit, nil, "the endpoint limits the rate: %s", message)
	case code >= 500:
		e = c.fail(model.ErrServer, nil, "the endpoint failed: %s", message)
	default:
		e = c.fail(model.ErrRequest, nil, "the endpoint refused the request: %s", message)
	}
	e.Status = resp.StatusCode
	e.RetryAfter = retryAfter(resp.Header, time.Now())
	return e
}

// target names where a redirect points, without its query.
func (c *Client) target(resp *http.Response) string {
	u, err := resp.Location()
	if err != nil {
		return ""
	}
	return " to " + string(c.redact([]byte(u.Scheme+"://"+u.Host+u.EscapedPath())))
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

func clampWait(seconds float64) time.Duration {
	if !(seconds > 0) { // also not a number
		return 0
	}
	return time.Duration(min(seconds, maxRetryAfter.Seconds()) * float64(time.Second))
}

// proxy names the proxy for req for an error, by scheme and host alone: anything
// else in the variable may be a password.
func (c *Client) proxy(req *http.Request) string {
	if c.own == nil || req == nil {
		return ""
	}
	u, err := c.own.Proxy(req)
	if err != nil || u == nil {
		return ""
	}
	return " " + u.Scheme + "://" + u.Host
}

// connectError is the failure of a request that got no answer.
func (c *Client) connectError(req *http.Request, err error) *model.Error {
	var ue *url.Error
	if errors.As(err, &ue) {
		err = ue.Err // the outer error repeats the URL with its query
	}
	via := ""
	if p := c.proxy(req); p != "" {
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
		return c.fail(model.ErrTLS, err, "the server's certificate was not accepted: %v%s. If the endpoint is yours, trust its authority with ca_file", err, via)
	case errors.As(err, &record), errors.Is(err, http.ErrSchemeMismatch):
		return c.fail(model.ErrConnect, err, "the server does not speak TLS%s; if it is meant to be plain, write http:// in base_url", via)
	case errors.As(err, &dns):
		return c.fail(model.ErrConnect, err, "the host name could not be resolved: %v%s. Check base_url and the network", dns, via)
	case errors.Is(err, syscall.ECONNREFUSED):
		return c.fail(model.ErrConnect, err, "the connection was refused: %v%s. Check that the server is running there and that base_url names its port", err, via)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return c.fail(model.ErrCut, err, "the server closed the connection without an answer%s", via)
	case strings.Contains(err.Error(), "malformed HTTP"):
		return c.fail(model.ErrMalformed, err, "the server does not answer in HTTP: %s%s. Check base_url", c.quoted([]byte(err.Error())), via)
	default:
		return c.fail(model.ErrConnect, err, "the request could not be made: %s%s. Check base_url and the network", c.quoted([]byte(err.Error())), via)
	}
}

// stallError is the failure for a request on which nothing happened.
func (c *Client) stallError(cause error, phase string) *model.Error {
	wait := c.stall
	if cause == errNoContent {
		wait *= keepAliveFactor
	}
	return c.fail(model.ErrStalled, cause, "%v for %v %s; the connection was closed. A slow model may need a higher stall limit", cause, wait, phase)
}

// ended returns ctx's error if it ended, else the watch's, else nil.
func (c *Client) ended(ctx context.Context, w *watch, phase string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if cause := w.stalled(); cause != nil {
		return c.stallError(cause, phase)
	}
	return nil
}
