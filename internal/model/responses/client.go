// Package responses speaks OpenAI's responses API over plain HTTP, without storing
// anything at the provider: every request holds the whole conversation, and the
// model's reasoning travels encrypted in seals.
//
// It guarantees what package openai does: one attempt per call, no redirect, no
// credential in an error, no parameter that wasn't configured, every delta handed on
// as it arrives, a history that is encoded once. A tool call is returned only from a
// response that the endpoint called completed. A reply that was cut, by the
// connection or by the output limit, yields none.
//
// Encrypted reasoning is sent back unchanged, in the place in which it came, and
// only to the provider and model that made it. If the endpoint refuses it, it is
// dropped for good (model.ErrReplay).
//
// Do not assume that a call's arguments are valid JSON, or that every endpoint with
// this API encrypts reasoning: one that doesn't gets none back.
//
// Messages must be immutable once sent: they are recognised by their address.
package responses

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/model/httpapi"
)

// Config says which endpoint to speak to and how. New copies it.
type Config struct {
	// BaseURL is the API's root, to which /responses is added; a query is kept, user
	// information and a fragment are refused. Required.
	BaseURL string
	// Model is the model's name as the endpoint knows it. Required.
	Model string
	// APIKey is sent as a bearer token and nowhere else; "" sends none.
	APIKey string
	// APIKeyEnv is the variable that the key came from, named in errors; "" is
	// unknown.
	APIKeyEnv string
	// Name is the provider's configured name; "" means "openai-responses".
	Name string
	// Sampling holds the parameters to send, by their names in the configuration
	// (spec: Providers). What is absent is never sent; what the API doesn't have is
	// an error.
	Sampling map[string]any
	// Summary asks for summaries of the reasoning, as "auto"; "" doesn't, because not
	// every account may.
	Summary string
	// CacheKey groups the requests of a session for the provider's prompt cache; ""
	// sends none.
	CacheKey string
	// NoReasoning neither asks for encrypted reasoning nor sends any, for models and
	// endpoints that refuse it.
	NoReasoning bool
	// Headers are sent with every request. Their values are taken for secrets.
	Headers map[string]string
	// StallTimeout is the longest wait for a byte, the first included; zero means
	// httpapi.DefaultStallTimeout. Traffic without content counts for ten times as
	// long.
	StallTimeout time.Duration
	// MaxReply bounds a whole reply, unpacked, in bytes; zero means
	// httpapi.DefaultMaxReply.
	MaxReply int
	// CAFile is a PEM file of authorities trusted besides the system's; "" is none.
	// It can't be combined with HTTPClient.
	CAFile string
	// HTTPClient, if set, is used instead of a client of the Client's own, without
	// its redirect policy: redirects are never followed.
	HTTPClient *http.Client
}

// Client is a model behind an endpoint of the responses API. Like every
// model.Client it is used by one goroutine at a time.
type Client struct {
	api       *httpapi.API
	prefix    []byte
	include   bool  // ask for encrypted reasoning
	maxOutput int64 // as configured, 0 for none
	enc       *encoder
}

var _ model.Client = (*Client)(nil)

// New returns a client for the endpoint in cfg. It connects to nothing. Errors name
// the setting at fault and show no secret.
func New(cfg Config) (*Client, error) {
	name := cfg.Name
	if name == "" {
		name = "openai-responses"
	}
	api, err := httpapi.New(httpapi.Config{
		BaseURL: cfg.BaseURL, Path: "responses", Model: cfg.Model, Name: name,
		APIKey: cfg.APIKey, APIKeyEnv: cfg.APIKeyEnv, Headers: cfg.Headers,
		StallTimeout: cfg.StallTimeout, MaxReply: cfg.MaxReply, CAFile: cfg.CAFile, HTTPClient: cfg.HTTPClient,
		Words: httpapi.Words{API: "the responses API", End: "response.completed, response.incomplete or response.failed", BaseURL: "it usually ends in /v1"},
	})
	if err != nil {
		return nil, err
	}
	c := &Client{api: api, include: !cfg.NoReasoning}
	if c.prefix, c.maxOutput, err = cfg.prefix(); err != nil {
		return nil, err
	}
	c.enc = newEncoder("openai-responses:"+api.Name(), !cfg.NoReasoning)
	return c, nil
}

// paramNames maps the sampling names that the API has to their members.
func paramNames() map[string]string {
	return map[string]string{
		"temperature": "temperature", "top_p": "top_p", "max_tokens": "max_output_tokens", "effort": "reasoning.effort",
	}
}

// prefix returns the start of every request body, up to and including a comma, and
// the configured limit of the output, which is not in it.
func (cfg *Config) prefix() (out []byte, maxOutput int64, err error) {
	out = append([]byte(`{"model":`), httpapi.Quote(cfg.Model)...)
	out = append(out, `,"stream":true,"store":false,`...)
	if cfg.CacheKey != "" {
		out = append(httpapi.AppendQuote(append(out, `"prompt_cache_key":`...), cfg.CacheKey), ',')
	}
	params, err := httpapi.Params(cfg.Sampling, paramNames(), nil)
	if err != nil {
		return nil, 0, err
	}
	var reasoning []byte
	for _, p := range params {
		switch p.Name {
		case "effort":
			reasoning = append([]byte(`"effort":`), p.Value...)
		case "max_tokens":
			n, ok := httpapi.Integer(p.Value)
			if !ok || n <= 0 {
				return nil, 0, errors.New("sampling parameter \"max_tokens\" is " + string(p.Value) + "; expected a positive whole number")
			}
			maxOutput = n
		default:
			out = append(append(append(httpapi.AppendQuote(out, p.Member), ':'), p.Value...), ',')
		}
	}
	if cfg.Summary != "" {
		if reasoning != nil {
			reasoning = append(reasoning, ',')
		}
		reasoning = httpapi.AppendQuote(append(reasoning, `"summary":`...), cfg.Summary)
	}
	if reasoning != nil {
		out = append(append(append(out, `"reasoning":{`...), reasoning...), "},"...)
	}
	return out, maxOutput, nil
}

// Name returns "provider/model" as configured.
func (c *Client) Name() string { return c.api.Name() }

// Close closes the connections that are kept for the next call. The client stays
// usable.
func (c *Client) Close() { c.api.Close() }

// body lays the request out as slices that are sent one after the other.
func (c *Client) body(req *model.Request) ([][]byte, error) {
	tools, err := c.enc.tools.Encode(req.Tools)
	if err != nil {
		return nil, c.api.Fail(model.ErrRequest, err, "%v", err)
	}
	var once []byte
	if c.include {
		once = append(once, `"include":["reasoning.encrypted_content"],`...)
	}
	if n := httpapi.Smaller(c.maxOutput, req.MaxOutput); n > 0 {
		once = append(strconv.AppendInt(append(once, `"max_output_tokens":`...), n, 10), ',')
	}
	if req.Output != nil {
		strict := strconv.FormatBool(httpapi.StrictSchema(req.Output))
		once = append(append(append(once, `"text":{"format":{"type":"json_schema","name":"answer","strict":`+strict+`,"schema":`...), req.Output...), "}},"...)
	}
	return [][]byte{c.prefix, once, c.enc.instructions(req.System), tools, []byte(`"input":[`), c.enc.history.Encode(req.Messages), []byte(`]}`)}, nil
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
	ans, err := c.api.Post(ctx, parts)
	if err != nil {
		return nil, c.refused(err, req)
	}
	defer ans.Close()
	r := newReply(c, ans, onDelta)
	if err := ans.Read(r); err != nil {
		return nil, c.refused(err, req)
	}
	return r.response()
}

// refused stops sending what the endpoint doesn't take back.
func (c *Client) refused(err error, req *model.Request) error {
	var me *model.Error
	if c.include && errors.As(err, &me) && me.Kind == model.ErrReplay && strings.Contains(me.Detail, "not supported") {
		// A model that doesn't reason. It never asked for less than the next attempt.
		c.include, c.enc.replay = false, false
		c.enc.history.Forget()
		return err
	}
	return c.enc.seals.Refused(err, req.Messages, &c.enc.history)
}
