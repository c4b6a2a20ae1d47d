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
	Image      = event.Image
	Seal       = event.Seal
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
// nothing. A *Message is immutable, and most requests begin with the messages of
// the one before: a client keeps the encoded form of what it has seen.
type Request struct {
	System   string
	Messages []*Message
	Tools    []ToolSpec
	// Output, if not nil, is the JSON Schema (an object's) that the final answer must
	// fit; a client whose API can't enforce that ignores it.
	Output []byte
	// MaxOutput bounds the reply in tokens; 0 leaves it to the configuration.
	MaxOutput int64
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
//
// A client sends a part's Seal back only if its Origin is its own; of a part of
// another origin it sends what is readable as far as its API takes that. Images
// are sent where the API has them; whether the model takes them is the caller's to
// know.
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
	// ErrOverflow: the endpoint says that the request doesn't fit the model's context
	// window. The loop may make it smaller and try again.
	ErrOverflow ErrorKind = "context_overflow"
	// ErrReplay: the endpoint refused reasoning or a signature that was sent back. The
	// client has dropped every seal that it knows and won't send them again, so that
	// one more attempt may succeed.
	ErrReplay ErrorKind = "replay"
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
	case ErrConnect, ErrRateLimit, ErrServer, ErrCut, ErrStalled, ErrMalformed, ErrReplay:
		return true
	default:
		return e.Status == 408
	}
}
