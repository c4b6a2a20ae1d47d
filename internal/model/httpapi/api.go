// Package httpapi holds what the clients of model APIs over HTTP share: transport,
// credentials, limits of time and size, failures, reading a streamed reply, and the
// parts of encoding that don't depend on the API.
//
// A client is written like this. New makes an API from a Config, once. For each
// call, the client lays the request out as slices (History and ToolList keep the
// encoded form of what was sent before), gives them to API.Post, and reads the
// Answer with an Assembler of its own:
//
//	ans, err := api.Post(ctx, parts)
//	if err != nil {
//		return nil, err // an *model.Error of the right kind, or ctx's error
//	}
//	defer ans.Close()
//	r := &reply{api: api, ans: ans, onDelta: onDelta}
//	if err := ans.Read(r); err != nil { // calls r.Frame for every event
//		return nil, err
//	}
//	return r.response()
//
// In Frame it decodes the event with internal/strictjson, after RepairHalves, hands
// text on, calls Answer.Progress for every event that carries something and
// Answer.Finishing once the reply has said how it ended. An error in the stream is
// API.FrameError(data); anything else that is wrong is API.Fail or a plain error,
// which Read completes with the place and the bytes.
//
// A client that sends seals back gives the errors of Post and Read to Seals.Refused.
//
// It guarantees that no redirect is followed, that the key goes only into the header
// named for it, that no error shows a credential, that every wait for a byte and
// every reply is bounded, and that a reply which ended without saying so is
// model.ErrCut. Do not assume that a frame is valid JSON, or that frames of unknown
// types don't come.
package httpapi

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/abhed/abhed/internal/model"
)

const (
	// DefaultStallTimeout is what a zero Config.StallTimeout means.
	DefaultStallTimeout = 60 * time.Second
	// DefaultMaxReply is what a zero Config.MaxReply means: 64 MiB.
	DefaultMaxReply = 64 << 20
	// keepAliveFactor times the stall limit is how long keep-alive traffic alone
	// counts as life.
	keepAliveFactor = 10
)

// Config says which endpoint to speak to and how. New copies it.
type Config struct {
	// BaseURL is the API's root; its query is kept, user information and a fragment
	// are refused. Required.
	BaseURL string
	// Path is added to it, as "chat/completions". It is not escaped.
	Path string
	// Query is added to the URL's query, as "alt=sse"; "" is none.
	Query string
	// Model is the model's name as the endpoint knows it. Required.
	Model string
	// Name is the provider's configured name. Required.
	Name string
	// APIKey is sent in KeyHeader and nowhere else; "" sends none.
	APIKey string
	// APIKeyEnv is the variable that the key came from, named in errors; "" is unknown.
	APIKeyEnv string
	// KeyHeader is the header for the key, as "x-api-key"; "" means a bearer token in
	// Authorization.
	KeyHeader string
	// Fixed are headers that the API wants, whose values are no secrets.
	Fixed map[string]string
	// Headers are sent with every request. Their values are taken for secrets.
	Headers map[string]string
	// StallTimeout is the longest wait for a byte, the first included; zero means
	// DefaultStallTimeout. Traffic without content counts for ten times as long.
	StallTimeout time.Duration
	// MaxReply bounds a whole reply, unpacked, in bytes; zero means DefaultMaxReply.
	MaxReply int
	// CAFile is a PEM file of authorities trusted besides the system's; "" is none. It
	// can't be combined with HTTPClient.
	CAFile string
	// HTTPClient, if set, is used instead of a client of the API's own, without its
	// redirect policy: redirects are never followed.
	HTTPClient *http.Client
	// Words are what errors call things.
	Words Words
}

// Words name, in errors, what an API has. All are required.
type Words struct {
	// API is what the endpoint should speak, as "chat completions".
	API string
	// End is what marks the end of a reply, as "a finish reason or [DONE]".
	End string
	// BaseURL is a hint on base_url, as "it usually ends in /v1".
	BaseURL string
}

// API is one endpoint. Like a model.Client it is used by one goroutine at a time.
type API struct {
	name, model string
	url, shown  string
	header      http.Header
	secrets     []string
	keyHint     string
	words       Words
	http        *http.Client
	own         *http.Transport // nil if the HTTP client came from outside
	files       authorities
	trusting    bool // the files have been read
	stall       time.Duration
	maxReply    int
}

// New returns the endpoint in cfg. It connects to nothing. Errors name the setting
// at fault and show no secret.
func New(cfg Config) (*API, error) {
	if cfg.BaseURL == "" || cfg.Model == "" {
		return nil, fmt.Errorf("an endpoint for %s needs base_url and a model (base_url %q, model %q)", cfg.Words.API, cfg.BaseURL, cfg.Model)
	}
	if cfg.StallTimeout < 0 {
		return nil, fmt.Errorf("the stall limit is %v; expected a positive duration, or 0 for %v", cfg.StallTimeout, DefaultStallTimeout)
	}
	a := &API{name: cfg.Name, model: cfg.Model, stall: cfg.StallTimeout, maxReply: cfg.MaxReply, words: cfg.Words}
	if a.stall == 0 {
		a.stall = DefaultStallTimeout
	}
	if a.maxReply <= 0 {
		a.maxReply = DefaultMaxReply
	}
	var err error
	if a.url, a.shown, err = cfg.endpoint(); err != nil {
		return nil, err
	}
	if a.header, a.secrets, err = cfg.headers(); err != nil {
		return nil, err
	}
	a.keyHint = keyHint(&cfg)
	if err := a.setHTTP(&cfg); err != nil {
		return nil, err
	}
	return a, nil
}

// Name returns "provider/model" as configured.
func (a *API) Name() string { return a.name + "/" + a.model }

// Close closes the connections that are kept for the next call. The API stays
// usable.
func (a *API) Close() {
	if a.own != nil {
		a.own.CloseIdleConnections()
	}
}

// Post sends a request whose body is parts, one after the other; they are not
// copied and must not be written to any more. It returns the answer if its status
// is 2xx; the caller must Close it. Every failure is an *model.Error, or ctx's error
// if ctx ended first.
func (a *API) Post(ctx context.Context, parts [][]byte) (*Answer, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	w := newWatch(ctx, a.stall)
	ans, err := a.post(ctx, w, parts)
	if err != nil {
		w.stop()
		return nil, err
	}
	return ans, nil
}

func (a *API) post(ctx context.Context, w *watch, parts [][]byte) (*Answer, error) {
	if err := a.trust(); err != nil {
		return nil, a.Fail(model.ErrTLS, err, "the certificate authorities could not be read: %v", err)
	}
	hreq, err := a.newRequest(w, parts)
	if err != nil {
		return nil, a.Fail(model.ErrRequest, err, "the request could not be built: %v", err)
	}
	resp, err := a.http.Do(hreq)
	if err != nil {
		if ended := a.ended(ctx, w, "while waiting for the answer to begin"); ended != nil {
			return nil, ended
		}
		return nil, a.connectError(hreq, err)
	}
	w.byteMoved()
	raw := watchedReader{resp.Body, w}
	if resp.StatusCode >= 200 && resp.StatusCode <= 299 {
		return &Answer{api: a, ctx: ctx, w: w, resp: resp, raw: raw}, nil
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(raw, maxErrorBody)) // what came is enough for the message
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return nil, a.statusError(resp, body)
}

func (a *API) newRequest(w *watch, parts [][]byte) (*http.Request, error) {
	var size int64
	for _, p := range parts {
		size += int64(len(p))
	}
	open := func() (io.ReadCloser, error) {
		return io.NopCloser(watchedReader{&joined{slices.Clone(parts)}, w}), nil
	}
	body, err := open()
	if err != nil {
		return nil, err
	}
	hreq, err := http.NewRequestWithContext(w.ctx, http.MethodPost, a.url, body)
	if err != nil {
		return nil, err
	}
	hreq.ContentLength = size
	// Lets the transport use a fresh connection when a kept one turns out closed
	// before anything was sent on it.
	hreq.GetBody = open
	hreq.Header = maps.Clone(a.header)
	for name, values := range hreq.Header {
		hreq.Header[name] = slices.Clone(values)
	}
	return hreq, nil
}
