// Package anthropic speaks the Messages API over plain HTTP, as Anthropic defines it
// and as the proxies that imitate it really answer.
//
// A Client makes one attempt per call, follows no redirect, sends the key only in the
// x-api-key header and shows it in no error. Besides max_tokens, which the API
// demands, it sends a parameter only if it was configured. Every delta is handed on
// as soon as its bytes have arrived. A request's history is encoded once; the marks
// that tell the endpoint what to cache are laid between the kept bytes.
//
// It guarantees that a tool call is returned only from a reply that named its stop
// reason and whose end was marked (message_stop, or [DONE] of a proxy), never from
// one that was cut, by the connection or by the output limit. Signed and redacted
// thinking is sent back unchanged and in its place to the model that made it, and
// left out of a request to any other; what the endpoint refuses once isn't sent to it
// again (model.ErrReplay).
//
// What a reply that the endpoint paused (pause_turn) still lacks is asked for within
// the same call; usage is the sum then.
//
// Replies are read tolerantly (spec: Providers); what had to be repaired is said in
// Response.Note, and what can't be understood is an error that quotes the bytes. Do
// not assume that a call's arguments are valid JSON: they are passed on as the model
// wrote them.
//
// Messages must be immutable once sent: they are recognised by their address.
package anthropic

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/model/httpapi"
)

// maxPauses bounds how often a paused reply is continued within one call.
const maxPauses = 8

// Client is a model behind a Messages endpoint. Like every model.Client it is used by
// one goroutine at a time.
type Client struct {
	api    *httpapi.API
	params params
	seals  *httpapi.Seals
	enc    *encoder
}

var _ model.Client = (*Client)(nil)

// New returns a client for the endpoint in cfg. It connects to nothing. Errors name
// the setting at fault and show no secret.
func New(cfg Config) (*Client, error) {
	name := cfg.Name
	if name == "" {
		name = "anthropic"
	}
	api, err := httpapi.New(httpapi.Config{
		BaseURL: cfg.BaseURL, Path: cfg.path(), Model: cfg.Model, Name: name,
		APIKey: cfg.APIKey, APIKeyEnv: cfg.APIKeyEnv, KeyHeader: "x-api-key",
		Fixed: map[string]string{"anthropic-version": apiVersion}, Headers: cfg.Headers,
		StallTimeout: cfg.StallTimeout, MaxReply: cfg.MaxReply, CAFile: cfg.CAFile, HTTPClient: cfg.HTTPClient,
		Words: httpapi.Words{API: "the Messages API", End: "message_stop", BaseURL: "to it /v1/messages is added, or /messages if it ends in /v1"},
	})
	if err != nil {
		return nil, err
	}
	c := &Client{api: api, seals: &httpapi.Seals{Origin: "anthropic:" + api.Name()}}
	if c.params, err = cfg.params(); err != nil {
		return nil, err
	}
	c.enc = newEncoder(c.seals)
	return c, nil
}

// Name returns "provider/model" as configured.
func (c *Client) Name() string { return c.api.Name() }

// Close closes the connections that are kept for the next call. The client stays
// usable.
func (c *Client) Close() { c.api.Close() }

// Stream sends req and returns the whole reply (see model.Client).
func (c *Client) Stream(ctx context.Context, req *model.Request, onDelta func(model.Delta)) (*model.Response, error) {
	if onDelta == nil {
		onDelta = func(model.Delta) {}
	}
	resp, paused, err := c.attempt(ctx, req, onDelta)
	for n := 0; err == nil && paused; n++ {
		if n == maxPauses || !sendable(resp.Message) {
			resp.Note = joinNotes(resp.Note, "the endpoint paused its turn and was not asked to go on")
			return resp, nil
		}
		more := *req
		more.Messages = append(slices.Clone(req.Messages), resp.Message)
		var next *model.Response
		if next, paused, err = c.attempt(ctx, &more, onDelta); err == nil {
			resp = joined(resp, next)
			continue
		}
		var me *model.Error
		if errors.As(err, &me) {
			me.Partial = resp.Message.Text() + me.Partial
		}
	}
	if err != nil {
		return nil, err
	}
	return resp, nil
}

// attempt makes one request; paused reports that the endpoint wants to be asked to go
// on.
func (c *Client) attempt(ctx context.Context, req *model.Request, onDelta func(model.Delta)) (resp *model.Response, paused bool, err error) {
	if err := ctx.Err(); err != nil {
		return nil, false, err
	}
	parts, note, err := c.body(req)
	if err != nil {
		return nil, false, err
	}
	ans, err := c.api.Post(ctx, parts)
	if err != nil {
		return nil, false, c.refused(err, req)
	}
	defer ans.Close()
	r := newReply(c.api, ans, onDelta)
	r.origin, r.used = c.seals.Origin, c.enc.history.Used
	if note != "" {
		r.Note(note)
	}
	if err := ans.Read(r); err != nil {
		return nil, false, c.refused(err, req)
	}
	resp, err = r.response()
	return resp, err == nil && r.paused(resp), err
}

// refused drops the seals if err says that the endpoint didn't take them.
func (c *Client) refused(err error, req *model.Request) error {
	var me *model.Error
	if errors.As(err, &me) && me.Kind == model.ErrRequest && aboutThinking(me.Detail) {
		me.Kind = model.ErrReplay // Refused takes it back if there was nothing to refuse
	}
	return c.seals.Refused(err, req.Messages, &c.enc.history)
}

// aboutThinking reports whether a refusal speaks of thinking blocks, as "Invalid
// `data` in `redacted_thinking` block" does, but not of the parameter.
func aboutThinking(detail string) bool {
	s := strings.ToLower(detail)
	return strings.Contains(s, "redacted_thinking") || strings.Contains(s, "thinking") && strings.Contains(s, "block")
}

// joined returns a reply and its continuation as one.
func joined(a, b *model.Response) *model.Response {
	out := *b
	out.Message = &model.Message{Role: a.Message.Role, Parts: slices.Concat(a.Message.Parts, b.Message.Parts)}
	out.Note = joinNotes(a.Note, b.Note)
	if out.Model == "" {
		out.Model = a.Model
	}
	out.Usage = sum(a.Usage, b.Usage)
	return &out
}

func joinNotes(notes ...string) string {
	notes = slices.DeleteFunc(slices.Clone(notes), func(s string) bool { return s == "" })
	return strings.Join(slices.Compact(notes), "; ")
}
