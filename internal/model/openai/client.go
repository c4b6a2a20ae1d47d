// Package openai speaks the chat completions API over plain HTTP, as OpenAI
// defines it and as the many servers that imitate it really answer.
//
// A Client makes one attempt per call, follows no redirect, sends the key only in
// the Authorization header and shows it in no error. It sends a parameter only if
// it was configured. Every text delta is handed on as soon as its bytes have
// arrived. A request's history is encoded once: a turn costs the encoding of what
// is new plus the bytes that must be sent.
//
// A tool call is returned only from a reply that said it was complete, by a
// finish reason or by [DONE]. A reply that was cut, by the connection or by the
// output limit, yields none.
//
// Replies are read tolerantly (spec: Providers); what had to be repaired is said
// in Response.Note, and what can't be understood is an error that quotes the
// bytes. Do not assume that a call's arguments are valid JSON: they are passed on
// as the model wrote them.
//
// Messages must be immutable once sent: they are recognised by their address.
package openai

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/abhed/abhed/internal/model"
)

// Client is a model behind a chat completions endpoint. Like every model.Client
// it is used by one goroutine at a time.
type Client struct {
	name, model string
	url, shown  string
	header      http.Header
	secrets     []string
	keyHint     string
	http        *http.Client
	own         *http.Transport // nil if the HTTP client came from outside
	stall       time.Duration
	prefix      []byte
	maxReply    int // bytes of a whole reply, unpacked
	noReasoning bool
	enc         encoder
}

var _ model.Client = (*Client)(nil)

// New returns a client for the endpoint in cfg. It connects to nothing. Errors
// name the setting at fault and show no secret.
func New(cfg Config) (*Client, error) {
	if cfg.BaseURL == "" || cfg.Model == "" {
		return nil, fmt.Errorf("a chat completions endpoint needs base_url and a model (base_url %q, model %q)", cfg.BaseURL, cfg.Model)
	}
	if cfg.StallTimeout < 0 {
		return nil, fmt.Errorf("the stall limit is %v; expected a positive duration, or 0 for %v", cfg.StallTimeout, DefaultStallTimeout)
	}
	c := &Client{name: cfg.Name, model: cfg.Model, stall: cfg.StallTimeout, maxReply: defaultMaxReply, noReasoning: cfg.NoReasoning}
	if c.name == "" {
		c.name = "openai"
	}
	if c.stall == 0 {
		c.stall = DefaultStallTimeout
	}
	var err error
	if c.url, c.shown, err = endpointURL(cfg.BaseURL); err != nil {
		return nil, err
	}
	if c.header, c.secrets, err = cfg.headers(); err != nil {
		return nil, err
	}
	if c.prefix, err = cfg.prefix(); err != nil {
		return nil, err
	}
	c.keyHint = keyHint(&cfg)
	if !cfg.NoReasoning {
		c.enc.field = fieldReasoningContent
	}
	if err := c.setHTTP(&cfg); err != nil {
		return nil, err
	}
	return c, nil
}

// keyHint says what to do about refused credentials.
func keyHint(cfg *Config) string {
	switch {
	case cfg.APIKey == "" && cfg.APIKeyEnv != "":
		return fmt.Sprintf("No key was sent: set $%s", cfg.APIKeyEnv)
	case cfg.APIKey == "":
		return "No key was sent: name its variable in api_key_env"
	case cfg.APIKeyEnv == "":
		return "Check that the configured key is valid for this endpoint and model"
	default:
		return fmt.Sprintf("Check that the key in $%s is valid for this endpoint and model", cfg.APIKeyEnv)
	}
}

func (c *Client) setHTTP(cfg *Config) error {
	hc := &http.Client{}
	if cfg.HTTPClient != nil {
		if cfg.CAFile != "" {
			return fmt.Errorf("ca_file and a ready HTTP client can't be combined")
		}
		*hc = *cfg.HTTPClient
	} else {
		conf := &tls.Config{MinVersion: tls.VersionTLS12}
		if cfg.CAFile != "" {
			pem, err := os.ReadFile(cfg.CAFile)
			if err != nil {
				return fmt.Errorf("ca_file: %w", err)
			}
			pool, err := x509.SystemCertPool()
			if err != nil {
				return fmt.Errorf("the system's certificate authorities can't be read: %w", err)
			}
			if !pool.AppendCertsFromPEM(pem) {
				return fmt.Errorf("ca_file %s holds no PEM certificate", cfg.CAFile)
			}
			conf.RootCAs = pool
		}
		c.own = &http.Transport{
			Proxy:                  http.ProxyFromEnvironment,
			DialContext:            (&net.Dialer{Timeout: 30 * time.Second}).DialContext,
			TLSClientConfig:        conf,
			TLSHandshakeTimeout:    15 * time.Second,
			ForceAttemptHTTP2:      true,
			IdleConnTimeout:        90 * time.Second,
			MaxResponseHeaderBytes: 1 << 20,
			// A compressed stream may hold tokens back, so none is asked for.
			DisableCompression: true,
		}
		hc.Transport = c.own
	}
	hc.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c.http = hc
	return nil
}

// Name returns "provider/model" as configured.
func (c *Client) Name() string { return c.name + "/" + c.model }

// Close closes the connections that are kept for the next call. The client stays
// usable.
func (c *Client) Close() {
	if c.own != nil {
		c.own.CloseIdleConnections()
	}
}

// body lays the request out as slices that are sent one after the other.
func (c *Client) body(req *model.Request) ([][]byte, error) {
	tools, err := c.enc.toolList(req.Tools)
	if err != nil {
		return nil, c.fail(model.ErrRequest, err, "%v", err)
	}
	system, messages := c.enc.messages(req)
	return [][]byte{c.prefix, tools, []byte(`"messages":[`), system, messages, []byte(`]}`)}, nil
}

// Stream sends req and returns the whole reply (see model.Client).
func (c *Client) Stream(ctx context.Context, req *model.Request, onDelta func(model.Delta)) (*model.Response, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	parts, err := c.body(req)
	if err != nil {
		return nil, err
	}
	w := newWatch(ctx, c.stall)
	defer w.stop()
	hreq, err := c.newRequest(w, parts)
	if err != nil {
		return nil, c.fail(model.ErrRequest, err, "the request could not be built: %v", err)
	}
	resp, err := c.http.Do(hreq)
	if err != nil {
		if ended := c.ended(ctx, w, "while waiting for the answer to begin"); ended != nil {
			return nil, ended
		}
		return nil, c.connectError(hreq, err)
	}
	defer resp.Body.Close()
	w.byteMoved()
	raw := watchedReader{resp.Body, w}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		body, _ := io.ReadAll(io.LimitReader(raw, maxErrorBody)) // what came is enough for the message
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		return nil, c.statusError(resp, body)
	}
	r := newReply(c, w, onDelta)
	if err := r.read(ctx, resp, raw); err != nil {
		return nil, err
	}
	return r.response()
}

func (c *Client) newRequest(w *watch, parts [][]byte) (*http.Request, error) {
	var size int64
	for _, p := range parts {
		size += int64(len(p))
	}
	open := func() (io.ReadCloser, error) {
		rs := make([]io.Reader, len(parts))
		for i, p := range parts {
			rs[i] = bytes.NewReader(p)
		}
		return io.NopCloser(watchedReader{io.MultiReader(rs...), w}), nil
	}
	body, err := open()
	if err != nil {
		return nil, err
	}
	hreq, err := http.NewRequestWithContext(w.ctx, http.MethodPost, c.url, body)
	if err != nil {
		return nil, err
	}
	hreq.ContentLength = size
	// Lets the transport use a fresh connection when a kept one turns out closed
	// before anything was sent on it.
	hreq.GetBody = open
	hreq.Header = maps.Clone(c.header)
	for name, values := range hreq.Header {
		hreq.Header[name] = slices.Clone(values)
	}
	return hreq, nil
}
