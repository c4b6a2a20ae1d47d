package boundary

import (
	"context"
	"errors"
	"slices"

	"github.com/abhed/abhed/ahp"
)

// SessionStart is how a session begins.
type SessionStart struct {
	// Trigger is "startup", "resume", "clear", "compact" or "fork"; empty means
	// "startup".
	Trigger string
	Harness ahp.HarnessInfo
	// PermissionMode is the harness's own name for how it permits, such as "default".
	PermissionMode string
	// Messages are the startup instructions.
	Messages []ahp.Message
	// ResumedFrom is the session that this one came from; nil for none.
	ResumedFrom *ahp.Identity
}

// MessagesResult is how a boundary around messages ended. Messages are the
// effective ones, nil unless the status is Passed.
type MessagesResult struct {
	Verdict
	Messages []ahp.Message
}

// Start tells the backends that the session starts, with the manifest of the
// harness. No effect can deny it; a required backend that can't be asked still
// does, and then the session must not go on. Messages are the startup instructions
// with what was injected for now behind them. The error is a bug, or
// harness.ErrClosed.
func (b *Boundary) Start(ctx context.Context, s SessionStart) (r MessagesResult, err error) {
	defer func() { r.seal(err) }()
	if b.opts.Session == nil {
		return r, errors.New("boundary: Options.Session is nil, and a session.start needs one")
	}
	e, err := b.event(ahp.SessionStart, nil, "")
	if err != nil {
		return r, err
	}
	e.Trigger, e.Harness, e.PermissionMode, e.Manifest = s.Trigger, &s.Harness, s.PermissionMode, b.h.Manifest()
	if e.Trigger == "" {
		e.Trigger = "startup"
	}
	e.Items, e.ResumedFrom = ahp.MessageItems(s.Messages...), s.ResumedFrom
	err = b.messages(ctx, &r, e, nil, func(e *ahp.Event) []ahp.Message { return e.Items.Messages })
	return r, err
}

// messages has e judged; of are the messages that it is about.
func (b *Boundary) messages(ctx context.Context, r *MessagesResult, e *ahp.Event, turn *Turn, of func(*ahp.Event) []ahp.Message) error {
	out, err := b.ask(ctx, &r.Verdict, e, turn, nil)
	if err != nil {
		return err
	}
	if r.judged(out); r.Status == Passed {
		r.Messages = slices.Concat(of(out.Event), r.Injected(ahp.DeliverNow))
	}
	return nil
}

// End tells the observers that the session has ended. outcome is "completed",
// "cancelled", "error" or "unknown", reason the harness's own word, counters what it
// counted, or nil. Whether ctx has ended doesn't matter.
func (b *Boundary) End(ctx context.Context, outcome, reason string, counters map[string]int64) error {
	if b.opts.Session == nil {
		return errors.New("boundary: Options.Session is nil, and a session.end needs one")
	}
	e, err := b.event(ahp.SessionEnd, nil, "")
	if err != nil {
		return err
	}
	e.Outcome, e.Reason, e.Counters = outcome, reason, counters
	return b.observe(ctx, e)
}

// Inbound has a message of the user judged before anything is made of it. Its
// messages have the role user. The error is a bug, or harness.ErrClosed.
func (b *Boundary) Inbound(ctx context.Context, m ahp.UserMessage) (MessagesResult, error) {
	return b.userMessage(ctx, ahp.UserMessageInbound, m)
}

// Outbound has a message to the user judged before it is shown. It has no sender,
// and its messages have the role assistant. The error is a bug, or
// harness.ErrClosed.
func (b *Boundary) Outbound(ctx context.Context, m ahp.UserMessage) (MessagesResult, error) {
	return b.userMessage(ctx, ahp.UserMessageOutbound, m)
}

func (b *Boundary) userMessage(ctx context.Context, t ahp.EventType, m ahp.UserMessage) (r MessagesResult, err error) {
	defer func() { r.seal(err) }()
	e, err := b.event(t, nil, "")
	if err != nil {
		return r, err
	}
	e.Message = &m
	err = b.messages(ctx, &r, e, nil, func(e *ahp.Event) []ahp.Message { return e.Message.Messages })
	return r, err
}
