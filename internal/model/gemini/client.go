// Package gemini speaks the Gemini API (streamGenerateContent) over plain HTTP, as
// Google defines it and as gateways really answer.
//
// It guarantees that a Client makes one attempt per call, follows no redirect, sends
// the key only in the x-goog-api-key header (never in the URL) and shows it in no
// error; that it sends a parameter only if it was configured; that every text delta is
// handed on as soon as its bytes have arrived; and that a request's history is encoded
// once: a turn costs the encoding of what is new plus the bytes that must be sent.
//
// A tool call is returned only from a reply that gave a finish reason and was not cut
// by the output limit. Thought signatures become seals and go back on the very parts
// that they came with, to the endpoint and model that made them alone; so do the ids
// of calls. Calls that came without an id get one that the endpoint never sees.
//
// Replies are read tolerantly (spec: Providers); what had to be repaired is said in
// Response.Note, and what can't be understood is an error that quotes the bytes.
//
// Do not assume that Request.Output is enforced beside tools: the API has either, so
// the schema is sent only in a request without tools. Do not assume that reasoning
// without a seal is sent back: the API has no use for it. Messages must be immutable
// once sent: they are recognised by their address.
package gemini

import (
	"context"
	"errors"
	"strings"

	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/model/httpapi"
)

// Client is a model behind a Gemini endpoint. Like every model.Client it is used by
// one goroutine at a time.
type Client struct {
	api        *httpapi.API
	generation generation
	enc        *encoder
	ids        idMaker
}

var _ model.Client = (*Client)(nil)

// New returns a client for the endpoint in cfg. It connects to nothing. Errors name
// the setting at fault and show no secret.
func New(cfg Config) (*Client, error) {
	name := cfg.Name
	if name == "" {
		name = "gemini"
	}
	api, err := httpapi.New(httpapi.Config{
		BaseURL: cfg.BaseURL, Path: path(cfg.Model), Query: "alt=sse", Model: cfg.Model, Name: name,
		APIKey: cfg.APIKey, APIKeyEnv: cfg.APIKeyEnv, KeyHeader: "x-goog-api-key", Headers: cfg.Headers,
		StallTimeout: cfg.StallTimeout, MaxReply: cfg.MaxReply, CAFile: cfg.CAFile, HTTPClient: cfg.HTTPClient,
		Words: httpapi.Words{API: "the Gemini API", End: "a finish reason", BaseURL: "it usually ends in /v1beta"},
	})
	if err != nil {
		return nil, err
	}
	c := &Client{api: api, enc: newEncoder("gemini:" + api.Name()), ids: newIDMaker()}
	if c.generation, err = cfg.generation(); err != nil {
		return nil, err
	}
	return c, nil
}

// path returns where a model answers; tuned models have a collection of their own.
func path(name string) string {
	if !strings.Contains(name, "/") {
		name = "models/" + name
	}
	return name + ":streamGenerateContent"
}

// Name returns "provider/model" as configured.
func (c *Client) Name() string { return c.api.Name() }

// Close closes the connections that are kept for the next call. The client stays
// usable.
func (c *Client) Close() { c.api.Close() }

// body lays the request out as slices that are sent one after the other.
func (c *Client) body(req *model.Request) ([][]byte, error) {
	tools, err := c.enc.toolList(req.Tools)
	if err != nil {
		return nil, c.api.Fail(model.ErrRequest, err, "%v", err)
	}
	config, err := c.generation.member(req)
	if err != nil {
		return nil, c.api.Fail(model.ErrRequest, err, "%v", err)
	}
	return [][]byte{[]byte("{"), c.enc.instruction(req.System), tools, config, []byte(`"contents":[`), c.enc.contents(req.Messages), []byte("]}")}, nil
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
		return nil, c.refused(err, req.Messages)
	}
	defer ans.Close()
	r := newReply(c, ans, onDelta)
	if err := ans.Read(r); err != nil {
		return nil, c.refused(err, req.Messages)
	}
	resp, err := r.response()
	if err != nil {
		return nil, c.refused(err, req.Messages)
	}
	return resp, nil
}

// refused takes the failure of a call that sent ms. Some models want a signature with
// every step that asked for tools, also where another model asked: then the word that
// stands for one is sent from now on. Otherwise the seals were at fault, if anything.
func (c *Client) refused(err error, ms []*model.Message) error {
	var me *model.Error
	if !errors.As(err, &me) || me.Kind != model.ErrReplay {
		return err
	}
	if !c.enc.fill && strings.Contains(strings.ToLower(me.Detail), "missing") {
		c.enc.fill = true
		c.enc.history.Forget()
		return err
	}
	return c.enc.seals.Refused(err, ms, &c.enc.history)
}
