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
// Reasoning goes back with the calls that it led to, in the member in which the
// endpoint sends it, to the provider and model that it came from: a seal without data
// says which. An endpoint that refuses it, or misses it, is given the other form from
// then on (model.ErrReplay).
//
// Messages must be immutable once sent: they are recognised by their address.
package openai

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/model/httpapi"
)

// Client is a model behind a chat completions endpoint. Like every model.Client
// it is used by one goroutine at a time.
type Client struct {
	api         *httpapi.API
	prefix      prefix
	noReasoning bool
	enc         *encoder
}

var _ model.Client = (*Client)(nil)

// New returns a client for the endpoint in cfg. It connects to nothing. Errors
// name the setting at fault and show no secret.
func New(cfg Config) (*Client, error) {
	name := cfg.Name
	if name == "" {
		name = "openai"
	}
	api, err := httpapi.New(httpapi.Config{
		BaseURL: cfg.BaseURL, Path: "chat/completions", Model: cfg.Model, Name: name,
		APIKey: cfg.APIKey, APIKeyEnv: cfg.APIKeyEnv, Headers: cfg.Headers,
		StallTimeout: cfg.StallTimeout, MaxReply: cfg.MaxReply, CAFile: cfg.CAFile, HTTPClient: cfg.HTTPClient,
		Words: httpapi.Words{API: "chat completions", End: "a finish reason or [DONE]", BaseURL: "it usually ends in /v1"},
	})
	if err != nil {
		return nil, err
	}
	c := &Client{api: api, noReasoning: cfg.NoReasoning}
	if c.prefix, err = cfg.prefix(); err != nil {
		return nil, err
	}
	field := fieldReasoningContent
	if cfg.NoReasoning {
		field = ""
	}
	c.enc = newEncoder(field, "openai:"+api.Name())
	return c, nil
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
	system, messages := c.enc.messages(req)
	var comma []byte
	if len(system) > 0 && len(messages) > 0 {
		comma = []byte(",")
	}
	return [][]byte{c.prefix.with(req.MaxOutput), format(req.Output), tools, []byte(`"messages":[`), system, comma, messages, []byte(`]}`)}, nil
}

// format returns the member for the schema of the answer with a comma, or nothing.
func format(schema []byte) []byte {
	if schema == nil {
		return nil
	}
	out := []byte(`"response_format":{"type":"json_schema","json_schema":{"name":"answer","strict":`)
	out = append(strconv.AppendBool(out, httpapi.StrictSchema(schema)), `,"schema":`...)
	return append(append(out, schema...), "}},"...)
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
		return nil, c.refused(err)
	}
	defer ans.Close()
	r := newReply(c, ans, onDelta)
	if err := ans.Read(r); err != nil {
		return nil, c.refused(err)
	}
	return r.response()
}

// refused learns from a refusal how the endpoint wants reasoning: the next attempt
// then sends it otherwise.
func (c *Client) refused(err error) error {
	var me *model.Error
	if !errors.As(err, &me) || me.Kind != model.ErrRequest && me.Kind != model.ErrReplay {
		return err
	}
	said := strings.ToLower(me.Detail)
	switch named := strings.Contains(said, fieldReasoningContent) || strings.Contains(said, "'"+fieldReasoning+"'"); {
	case named && wants(said) && !c.noReasoning && c.enc.demand():
		me.Kind = model.ErrReplay
	case named && !wants(said) && c.enc.sentReasoning && !c.noReasoning:
		c.noReasoning = true
		c.enc.setField("")
		me.Kind = model.ErrReplay
	default:
		me.Kind = model.ErrRequest
	}
	return err
}

// wants reports whether a refusal misses something, rather than has too much of it.
func wants(said string) bool {
	for _, word := range []string{"missing", "must be passed", "must be provided", "is required", "field required"} {
		if strings.Contains(said, word) {
			return true
		}
	}
	return false
}
