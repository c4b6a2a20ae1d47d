// Package model holds the contract between the agent's loop and a model API.
//
// A Client turns one Request into one Response, streaming text as it arrives.
// It guarantees that a tool call reaches the Response only when the reply that
// held it is complete: a stream that is cut, ends without a finish reason where
// the API has one, or was stopped by the output limit yields an *Error or a
// Response whose Finish says so, never a call to run by half.
//
// Do not assume that a Response's tool calls have valid arguments: the gate
// judges them.
package model

import (
	"context"
	"fmt"
	"time"

	"github.com/abhed/abhed/internal/event"
)

// Message, Part, ToolCall, ToolResult and Usage are the conversation's types as
// the record keeps them.
type (
	Message    = event.Message
	Part       = event.Part
	ToolCall   = event.ToolCall
	ToolResult = event.ToolResult
	Usage      = event.Usage
)

// ToolSpec describes a tool to a model.
type ToolSpec struct {
	Name        string
	Description string
	// Schema is the JSON Schema of the arguments, an object.
	Schema []byte
}

// Request is one model call. The client reads it only during Stream and changes
// nothing. Messages are append-only over a session: a client may keep the
// encoded form of a *Message it has seen.
type Request struct {
	System   string
	Messages []*Message
	Tools    []ToolSpec
}

// Finish says why a reply ended.
type Finish string

const (
	// FinishStop is a complete reply.
	FinishStop Finish = "stop"
	// FinishToolCalls is a complete reply that asks for tools.
	FinishToolCalls Finish = "tool_calls"
	// FinishLength means that the output limit cut the reply: no call in it is
	// complete.
	FinishLength Finish = "length"
	// FinishFiltered means that the provider withheld the rest.
	FinishFiltered Finish = "content_filter"
)

// Response is a whole reply.
type Response struct {
	Message *Message
	Finish  Finish
	Usage   *Usage
	// Model is the model that the provider says answered; "" if it doesn't.
	Model string
	// Note, when not empty, says what the client had to repair or assume.
	Note string
}

// Delta is a piece of a reply as it arrives. Exactly one member is set.
type Delta struct {
	Text      string
	Reasoning string
}

// Client speaks one model API. It is used by one goroutine at a time.
type Client interface {
	// Stream sends req and calls onDelta, on the calling goroutine, for every piece
	// of text as soon as it has arrived. It makes one attempt: retries are the
	// loop's. Every failure is an *Error, or ctx's error if ctx ended first.
	Stream(ctx context.Context, req *Request, onDelta func(Delta)) (*Response, error)
	// Name returns "provider/model" as configured.
	Name() string
}

// ErrorKind sorts the failures of a model call.
type ErrorKind string

const (
	// ErrConnect: the endpoint could not be reached.
	ErrConnect ErrorKind = "connect"
	// ErrTLS: the endpoint's certificate was not accepted.
	ErrTLS ErrorKind = "tls"
	// ErrAuth: the endpoint refused the credentials (401, 403).
	ErrAuth ErrorKind = "auth"
	// ErrRequest: the endpoint refused the request (other 4xx).
	ErrRequest ErrorKind = "request"
	// ErrRateLimit: 429.
	ErrRateLimit ErrorKind = "rate_limit"
	// ErrServer: 5xx, or an error object inside a stream.
	ErrServer ErrorKind = "server"
	// ErrCut: the stream ended before the reply was complete.
	ErrCut ErrorKind = "cut"
	// ErrMalformed: bytes that could not be understood.
	ErrMalformed ErrorKind = "malformed"
	// ErrStalled: no byte came for longer than the stall limit.
	ErrStalled ErrorKind = "stalled"
)

// Error is a failed model call. Its text never holds a credential.
type Error struct {
	Kind ErrorKind
	// Status is the HTTP status, 0 when there was none.
	Status int
	// RetryAfter is what the endpoint asked to wait, 0 when it didn't say.
	RetryAfter time.Duration
	// Endpoint is the URL without user information and query.
	Endpoint string
	// Detail says what was found, what was expected, and what to do.
	Detail string
	// Partial is the text received before the failure.
	Partial string
	Err     error
}

// Error returns kind, status, endpoint and detail.
func (e *Error) Error() string {
	s := fmt.Sprintf("model call failed (%s", e.Kind)
	if e.Status != 0 {
		s += fmt.Sprintf(", HTTP %d", e.Status)
	}
	return s + ") at " + e.Endpoint + ": " + e.Detail
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Retryable reports whether the same request may succeed later.
func (e *Error) Retryable() bool {
	switch e.Kind {
	case ErrConnect, ErrRateLimit, ErrServer, ErrCut, ErrStalled, ErrMalformed:
		return true
	default:
		return e.Status == 408
	}
}
