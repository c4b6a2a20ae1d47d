// Package boundary makes whole-boundary calls of the Agent Hooks Protocol for any
// harness: it builds the events before and after an operation, has them judged,
// asks for approval where that is required, runs the harness's own executor on what
// is in effect, and says in one closed status what came of it.
//
// It guarantees that an executor runs at most once, only on the effective input,
// and never after a denial, a stop, a missing approval or an interruption, and not
// where a backend supplied the result; that a result which a backend was to check
// and could not is withheld; that every other way out, a bug and a panic included,
// leaves the status None or one that allows nothing. Event ids are UUIDv7; the id
// of a call stays the same from before to after, and an event after names the one
// before as its parent. Operational failures of backends are told to the observers
// as hook.failure. After an interruption nobody is asked; that a running operation
// was cut off is still observed.
//
// Do not assume that a status permits more than AHP does: the harness's own rules
// and its sandbox still apply, inside the executor, which says so by returning a
// *Refusal. Do not assume that injections, stops and continuations have been acted
// on: a Verdict lists them for the harness, unless the method's comment says that
// they are in its result.
//
// # What follows a refusal
//
// The protocol says that every resolved call has its tool.after, denied ones too,
// and that a denied proposal without a real change has no event after it (§6). Here
// a denied or refused tool call has its tool.after, with outcome "denied", in which
// a backend may not edit the refusal; a call that was stopped or interrupted before
// it ran was not resolved and has none. No other boundary has an event after a
// refusal.
package boundary

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/harness"
)

// Options tunes a Boundary. Source is required.
type Options struct {
	// Source is an absolute URI that identifies this installation of the harness. It
	// holds no secret.
	Source string
	// Session is the session that all events belong to; nil is for a harness that has
	// none, and then there is no session.start. It must not change afterwards.
	Session *ahp.Session
	// Path names the covered tool path; empty means "native".
	Path string
	// Approve asks a person whether a call that a backend answered with "ask" may run.
	// An error, a panic and a nil Approve refuse. It is called from the goroutine of
	// the call, and should return when ctx ends.
	Approve func(ctx context.Context, a Approval) (bool, error)
	// OnMessage, if set, is told each message for the user as it is accepted. It may
	// be called from several goroutines. Verdict.Notices has them as well.
	OnMessage func(text string)
	// MaxContinuations is how many times backends may ask for one more step, for a
	// turn and all that continue it; zero means never. The manifest's limit counts
	// too.
	MaxContinuations int64
	// Budget bounds all the asking about one event, beside the deadline of each
	// subscription; zero means no more than those.
	Budget time.Duration
}

// Approval is what a person is asked about.
type Approval struct {
	// Event holds the tool and its effective input: that is what is approved.
	Event *ahp.Event
	// By are those who want the approval, in order.
	By []ahp.SubscriptionID
	// Notices are what backends want the person to know, in order.
	Notices []string
}

// Boundary makes the calls of one session. Its methods may be called from any
// goroutine; calls run independently of each other.
type Boundary struct {
	h    *harness.Harness
	opts Options
	max  int64
}

// New returns a Boundary whose backends are those of h, which stays the caller's to
// close.
func New(h *harness.Harness, opts Options) (*Boundary, error) {
	if h == nil {
		return nil, errors.New("boundary: no harness")
	}
	if !ahp.IsURI(opts.Source) {
		return nil, fmt.Errorf("boundary: the source is %q, expected an absolute URI such as \"urn:example:laptop\"", opts.Source)
	}
	if opts.MaxContinuations < 0 || opts.Budget < 0 {
		return nil, errors.New("boundary: a negative bound")
	}
	if opts.Path == "" {
		opts.Path = "native"
	}
	b := &Boundary{h: h, opts: opts, max: opts.MaxContinuations}
	if limit := h.Manifest().Limits.MaxContinuations; limit != nil {
		b.max = min(b.max, *limit)
	}
	return b, nil
}

// newID returns a UUIDv7.
func newID() (string, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return "", fmt.Errorf("boundary: no randomness for an id: %w", err)
	}
	return id.String(), nil
}

// event returns a new event with its envelope.
func (b *Boundary) event(t ahp.EventType, turn *Turn, parent string) (*ahp.Event, error) {
	id, err := newID()
	if err != nil {
		return nil, err
	}
	e := &ahp.Event{ID: id, Source: b.opts.Source, Type: t, Time: ahp.Timestamp(time.Now()), Session: b.opts.Session, ParentEventID: parent}
	if turn != nil {
		e.Turn = &ahp.Turn{ID: turn.id}
	}
	return e, nil
}

// Manifest returns a manifest that promises what a Boundary enforces for events of
// the given types; without any, for tool calls and sessions. Every type that can be
// intercepted is offered so, with all its effects but three that need the harness:
// "allow", which skips a prompt that a Boundary doesn't have, "inject" and a
// continuation. A harness that acts on those adds them. hook.failure is always
// there. The caller owns the result.
func Manifest(types ...ahp.EventType) *ahp.Manifest {
	if len(types) == 0 {
		types = []ahp.EventType{ahp.SessionStart, ahp.SessionEnd, ahp.ToolBefore, ahp.ToolAfter}
	}
	var rows []ahp.ManifestEvent
	for _, t := range append([]ahp.EventType{ahp.HookFailure}, types...) {
		if t == ahp.HookFailure && len(rows) > 0 {
			continue
		}
		row := ahp.NewManifestEvent(t, ahp.ModeObserve)
		if t.Interceptable() {
			var effects []ahp.EffectType
			for _, e := range t.Effects() {
				if e != ahp.EffectAllow && e != ahp.EffectInject {
					effects = append(effects, e)
				}
			}
			row.Modes = append(row.Modes, ahp.ModeIntercept)
			row.Capabilities = ahp.NewCapabilities(t, effects...)
			if t == ahp.UserElicitationRequest || t == ahp.UserElicitationResult {
				row.Capabilities.Elicitation = &ahp.ElicitationCapability{Form: &ahp.ElicitationMode{}, URL: &ahp.ElicitationMode{}}
			}
		}
		rows = append(rows, row)
	}
	m := ahp.NewManifest(rows...)
	m.Authentication = []string{"bearer"}
	m.ManagedPolicy.Scopes = []string{"user", "project", "managed"}
	m.CorrelationIdentityFields = []string{"id", "parentEventId", "session.id", "turn.id", "call.id"}
	return m
}
