// Package backend is the backend's side of the Agent Hooks Protocol: give it a
// function that judges, and it serves the protocol on standard input and output;
// package httpbackend serves the same over HTTP.
//
// It guarantees that every request gets exactly one reply with its own id, a
// notification none; that a message of another revision, method or event type, or
// one that breaks the protocol, gets the error that the protocol defines and never
// reaches the handler; that an effect which the request didn't advertise is never
// sent; that a repeated request gets the answer of the first; and that a panic or
// an error of the handler becomes an error reply, so that the harness's failure
// policy applies.
//
// A handler is a function for all events (Func), a function for each type of event
// (Handlers), or a type of one's own; Reply writes an answer that holds nothing
// which the request didn't advertise. Whole backends are in examples/backends, the
// shortest of 15 lines.
//
// Do not assume that a request is honest about what it describes, or that the
// harness will do as it is told: a backend advises, and the harness enforces.
package backend

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/run"
)

// Handler judges events.
type Handler interface {
	// Intercept returns the effects for one event; none means no objection. It
	// should return soon after ctx ends. An error tells the harness that no
	// decision could be made: its text isn't sent, unless it is an *ahp.RPCError.
	Intercept(ctx context.Context, q *ahp.Intercept) ([]ahp.Effect, error)
}

// Observer is a Handler that also wants the events that it is only told of.
type Observer interface {
	Handler
	// Observe takes note of one event. Calls are made one after the other.
	Observe(ctx context.Context, e *ahp.Event)
}

// Func is a Handler made of a function. It is asked about every type of event that is
// subscribed to, and what an event of that type doesn't have, such as Tool, is nil.
type Func func(ctx context.Context, q *ahp.Intercept) ([]ahp.Effect, error)

// Intercept calls f.
func (f Func) Intercept(ctx context.Context, q *ahp.Intercept) ([]ahp.Effect, error) {
	return f(ctx, q)
}

// ErrUnavailable is for handlers that can't decide now: the harness gets the
// error backend_unavailable (−32003).
var ErrUnavailable = errors.New("backend_unavailable")

// Answer returns the effects, or why one of them may not be returned to q: it
// isn't advertised, or it is malformed.
func Answer(q *ahp.Intercept, effects ...ahp.Effect) ([]ahp.Effect, error) {
	for _, e := range effects {
		if err := q.Capabilities.Accepts(e); err != nil {
			return nil, err
		}
		if !granted(q, e) {
			return nil, fmt.Errorf("the request doesn't grant an elicitation in mode %s, so no effect %s", q.Event.Elicitation.Mode, e.EffectType())
		}
		if _, err := ahp.EncodeEffect(e); err != nil {
			return nil, err
		}
	}
	return effects, nil
}

// granted reports whether the mode of an elicitation is granted, where the effect
// needs that (§10).
func granted(q *ahp.Intercept, e ahp.Effect) bool {
	if q.Event == nil || q.Event.Elicitation == nil || e.EffectType() == ahp.EffectMessage {
		return true
	}
	c := q.Capabilities.Elicitation
	if c == nil {
		return false
	}
	return q.Event.Elicitation.Mode == "form" && c.Form != nil || q.Event.Elicitation.Mode == "url" && c.URL != nil
}

// Options tunes a Server. The zero value is right for most uses.
type Options struct {
	// Manifest answers hooks/capabilities; nil asks the handler, if it has a method
	// Manifest() *ahp.Manifest, and else answers that the method isn't there.
	Manifest *ahp.Manifest
	// Events lists the event types that the handler takes; others are answered
	// with unsupported_event. Nil means all.
	Events []ahp.EventType
	// OnError, if set, is told of refused messages and of failed handlers. It may
	// be called from several goroutines.
	OnError func(error)
	// Logger, if set, gets one record for each answered request, refused message and
	// failed handler: types, ids, effects and times, never what an event holds. The
	// error of a handler is logged as it is, so its text must hold no secret. Main
	// logs as JSON to standard error if it is nil.
	Logger *slog.Logger
	// Tap, if set, is told of every message before it is handled, with the context that
	// the handler will get: what it returns takes its place, and must be made from it.
	// The function is called once with what Handle returns. Neither may change the
	// messages, nor keep them. It is for showing traffic, and is called from several
	// goroutines. A repeated request gets the answer of the first without its handler.
	Tap func(ctx context.Context, msg []byte) (context.Context, func(reply []byte, err error))
	// Timeout bounds one decision: the context of the handler ends then. The protocol
	// doesn't tell a backend the harness's deadline. Zero means no bound but that of
	// the carrier: over HTTP the context ends when the client goes away.
	Timeout time.Duration
	// Grace is how long what is being judged may go on after ServeStdio was told to
	// stop, before its context ends; zero means 5 s.
	Grace time.Duration
}

// Server answers messages. Its methods may be called from any goroutine.
type Server struct {
	handler  Handler
	opts     Options
	answered *memory
}

// New returns a server for h.
func New(h Handler, opts Options) *Server {
	opts.Events = slices.Clone(opts.Events)
	if opts.Grace <= 0 {
		opts.Grace = 5 * time.Second
	}
	if m, ok := h.(interface{ Manifest() *ahp.Manifest }); ok && opts.Manifest == nil {
		opts.Manifest = m.Manifest()
	}
	return &Server{handler: h, opts: opts, answered: newMemory()}
}

// Handle answers one message. reply is the response to a request, and nil for a
// notification. err says why the message was refused or the handler failed; the
// reply then says so as well, unless it was a notification. A message that isn't
// JSON gets a reply with a null id, and an err of ahp.KindSyntax.
func (s *Server) Handle(ctx context.Context, msg []byte) (reply []byte, err error) {
	if s.opts.Tap != nil {
		tapped, done := s.opts.Tap(ctx, msg)
		defer func() { done(reply, err) }()
		ctx = tapped
	}
	q, err := ahp.DecodeRequest(msg)
	if err != nil {
		s.report(err)
		return s.refuse(msg, err), err
	}
	switch q := q.(type) {
	case *ahp.Observe:
		return nil, s.observe(ctx, q.Event)
	case *ahp.Discover:
		return s.discover(q)
	case *ahp.Intercept:
		return s.intercept(ctx, q, msg)
	}
	return nil, nil
}

func (s *Server) report(err error) {
	if s.opts.OnError != nil {
		s.opts.OnError(err)
	}
	s.logFailure(err)
}

// refuse returns the error response to a message that doesn't decode, nil if it is
// a notification.
func (s *Server) refuse(msg []byte, err error) []byte {
	p, peekErr := ahp.Peek(msg)
	if peekErr == nil && !p.HasID {
		return nil
	}
	rpc := &ahp.RPCError{Code: ahp.CodeInternal, Message: "backend_internal_error"}
	var e *ahp.Error
	if errors.As(err, &e) {
		rpc = e.RPC()
	}
	// A notification's method makes the message one, even with an id.
	if p.Method == ahp.MethodObserve {
		return nil
	}
	return encodeError(p.ID, rpc)
}

func encodeError(id ahp.ID, rpc *ahp.RPCError) []byte {
	b, err := ahp.EncodeError(id, rpc)
	if err != nil { // the text or the data of a handler's own error isn't JSON
		b, _ = ahp.EncodeError(id, &ahp.RPCError{Code: ahp.CodeInternal, Message: "backend_internal_error"})
	}
	return b
}

func (s *Server) takes(t ahp.EventType) bool {
	return s.opts.Events == nil || slices.Contains(s.opts.Events, t)
}

func (s *Server) observe(ctx context.Context, e *ahp.Event) error {
	o, ok := s.handler.(Observer)
	if !ok || !s.takes(e.Type) {
		return nil
	}
	err := run.Protect(func() error {
		o.Observe(ctx, e)
		return nil
	})
	if err != nil {
		s.report(err)
	}
	return nil
}

func (s *Server) discover(q *ahp.Discover) ([]byte, error) {
	if s.opts.Manifest == nil {
		return encodeError(q.ID, &ahp.RPCError{Code: ahp.CodeMethodNotFound, Message: "no manifest here"}), nil
	}
	b, err := ahp.EncodeManifest(q.ID, s.opts.Manifest)
	if err != nil {
		s.report(err)
		return encodeError(q.ID, &ahp.RPCError{Code: ahp.CodeInternal, Message: "backend_internal_error"}), err
	}
	return b, nil
}

// intercept answers a decision request, once: a repeat of the same message gets
// the same answer.
func (s *Server) intercept(ctx context.Context, q *ahp.Intercept, msg []byte) ([]byte, error) {
	if !s.takes(q.Event.Type) {
		err := fmt.Errorf("unsupported_event: %s", q.Event.Type)
		return encodeError(ahp.StringID(q.Event.ID), &ahp.RPCError{Code: ahp.CodeUnsupportedEvent, Message: err.Error()}), err
	}
	reply, err := s.answered.once(ctx, sha256.Sum256(msg), func() ([]byte, error) {
		return s.decide(ctx, q)
	})
	if reply == nil { // it waited for an earlier answer, in vain
		reply = encodeError(ahp.StringID(q.Event.ID), &ahp.RPCError{Code: ahp.CodeUnavailable, Message: "backend_unavailable"})
	}
	return reply, err
}

func (s *Server) decide(ctx context.Context, q *ahp.Intercept) ([]byte, error) {
	id := ahp.StringID(q.Event.ID)
	if s.opts.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.opts.Timeout)
		defer cancel()
	}
	began := time.Now()
	var effects []ahp.Effect
	err := run.Protect(func() (err error) {
		effects, err = s.handler.Intercept(ctx, q)
		return err
	})
	if err == nil {
		effects, err = Answer(q, effects...)
	}
	var reply []byte
	if err == nil {
		reply, err = ahp.EncodeEffects(id, effects)
	}
	if err == nil {
		s.logAnswer(q.Event, effects, time.Since(began))
		return reply, nil
	}
	s.report(err)
	rpc := &ahp.RPCError{Code: ahp.CodeInternal, Message: "backend_internal_error"}
	var own *ahp.RPCError
	switch {
	case errors.As(err, &own):
		rpc = own
	case errors.Is(err, ErrUnavailable):
		rpc = &ahp.RPCError{Code: ahp.CodeUnavailable, Message: "backend_unavailable"}
	}
	return encodeError(id, rpc), err
}
