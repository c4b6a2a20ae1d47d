package harness

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/elicitation"
	"github.com/abhed/abhed/internal/strictjson"
)

// isElicitation reports whether t carries an MCP elicitation (§21).
func isElicitation(t ahp.EventType) bool {
	return t == ahp.UserElicitationRequest || t == ahp.UserElicitationResult
}

// Elicitations returns the elicitations that wait for their results, nil if the
// manifest doesn't offer to intercept user.elicitation.result. Dispatch and Observe
// add the request of a user.elicitation.request to it, unless it is refused, and
// Dispatch takes it away with the result that answers it: a result that answers
// nothing is an error. A request whose chain isn't finished when its context ends is
// dropped. A host adds requests by itself only where it doesn't send them, and drops
// those that no result will come for.
func (h *Harness) Elicitations() *elicitation.Pending { return h.elicitations }

// askedOf returns what is known of the elicitation that e belongs to from e alone:
// nil for another event, and no more than the mode for a result, whose content
// isn't read before it is matched.
func askedOf(e *ahp.Event) (*elicitation.Request, error) {
	switch e.Type {
	case ahp.UserElicitationRequest:
		return elicitation.OfRequest(e)
	case ahp.UserElicitationResult:
		if e.Elicitation == nil {
			return nil, errors.New("no elicitation in the event")
		}
		return &elicitation.Request{Mode: elicitation.Mode(e.Elicitation.Mode)}, nil
	}
	return nil, nil
}

// enterElicitation lets a request wait, or matches a result with its request.
func (h *Harness) enterElicitation(s *settled) error {
	var err error
	switch {
	case h.elicitations == nil:
	case s.Event.Type == ahp.UserElicitationRequest:
		_, err = h.elicitations.Add(s.Event)
	case s.Event.Type == ahp.UserElicitationResult:
		s.asked, _, err = h.elicitations.Take(s.Event)
	}
	return elicitationFault(err)
}

// watchElicitation lets a request whose chain is never finished wait no longer than
// the call's context. A finish after that comes to a refusal: the chain is
// interrupted, unless it was denied before.
func (c *Chain) watchElicitation() {
	if c.h.elicitations == nil || c.event.Type != ahp.UserElicitationRequest {
		return
	}
	c.unwatch = context.AfterFunc(c.outer, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if !c.finished {
			c.h.elicitations.Drop(c.event.Source, c.event.ID)
		}
	})
}

// leaveElicitation forgets a request that was refused: no result will come. The
// caller holds c.mu; out is nil if there was no outcome.
func (c *Chain) leaveElicitation(out *Outcome) {
	if c.unwatch == nil {
		return
	}
	c.unwatch()
	if out == nil || out.Interrupted || out.Permission == ahp.PermissionDeny {
		c.h.elicitations.Drop(c.event.Source, c.event.ID)
	}
}

// observeElicitation is for events that are only told of. A result that answers
// nothing known is fine there: its request may have been nobody's to see.
func (h *Harness) observeElicitation(e *ahp.Event) error {
	var err error
	switch {
	case e.Type == ahp.UserElicitationRequest && h.elicitations != nil:
		_, err = h.elicitations.Add(e)
	case e.Type == ahp.UserElicitationRequest:
		_, err = elicitation.OfRequest(e)
	case e.Type == ahp.UserElicitationResult:
		_, err = elicitation.OfResult(e, nil)
		if err == nil && h.elicitations != nil {
			_, _, err = h.elicitations.Take(e)
			var fault *ahp.Error
			if errors.As(err, &fault) && fault.Kind == ahp.KindCorrelation {
				err = nil
			}
		}
	}
	return elicitationFault(err)
}

// elicitationFault says that an error, which may point into a text, is about an
// elicitation.
func elicitationFault(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("harness: invalid elicitation: %w", err)
}

// narrow returns the capabilities for a backend that sees the event as seen.
func (c *Chain) narrow(s *settled, seen *ahp.Event, hidden bool) *ahp.Capabilities {
	if !isElicitation(seen.Type) {
		return narrow(c.caps, seen.Type, hidden)
	}
	var drop []ahp.EffectType
	granted := grants(c.caps, seen.Elicitation.Mode)
	switch {
	case seen.Type == ahp.UserElicitationResult:
		if !granted || !editable(seen) {
			drop = []ahp.EffectType{ahp.EffectModify}
		}
	case !granted:
		drop = []ahp.EffectType{ahp.EffectDeny, ahp.EffectReturn}
	case s.asked.Mode == elicitation.ModeForm && s.asked.Form == nil:
		drop = []ahp.EffectType{ahp.EffectReturn} // nothing to hold an answer against
	}
	out := *c.caps
	out.Effects = slices.DeleteFunc(slices.Clone(out.Effects), func(e ahp.EffectType) bool { return slices.Contains(drop, e) })
	if !out.Has(ahp.EffectModify) {
		out.Modify = nil
	}
	return &out
}

// grants reports whether c lets an elicitation in that mode be answered (§9).
func grants(c *ahp.Capabilities, mode string) bool {
	if c.Elicitation == nil {
		return false
	}
	return mode == string(elicitation.ModeForm) && c.Elicitation.Form != nil || mode == string(elicitation.ModeURL) && c.Elicitation.URL != nil
}

// editable reports whether e holds the answer object of an accepted form, seen
// whole.
func editable(e *ahp.Event) bool {
	p := e.Elicitation.Result
	if e.Elicitation.Mode != string(elicitation.ModeForm) || p == nil || p.Text == nil {
		return false
	}
	r, err := elicitation.ParseResult([]byte(*p.Text), nil)
	return err == nil && r.Action == elicitation.Accept && r.Content != nil
}

// acceptElicitation checks one advertised effect against the elicitation: its mode
// is granted, and a value has the shape of an answer to it (§8, §21).
func (s *settled) acceptElicitation(e ahp.Effect, caps *ahp.Capabilities) error {
	if !isElicitation(s.Event.Type) || e.EffectType() == ahp.EffectMessage {
		return nil
	}
	mode := s.Event.Elicitation.Mode
	if !grants(caps, mode) {
		return &ahp.Error{Kind: ahp.KindCapability, Offset: -1, Found: fmt.Sprintf("the effect %q", e.EffectType()),
			Expected: fmt.Sprintf("none without the grant elicitation.%s", mode), Requirement: "AHP-CAP-001"}
	}
	switch e := e.(type) {
	case *ahp.Return:
		return returned(e.Value, s.asked)
	case *ahp.Modify:
		_, err := editedResult(s.Event, e, &elicitation.Request{Mode: s.asked.Mode})
		return err
	}
	return nil
}

// returned checks a supplied result: its shape is a matter of this boundary, what
// the form asks for one of the application.
func returned(value ahp.Raw, asked *elicitation.Request) error {
	_, err := elicitation.ParseResult(value, &elicitation.Request{Mode: asked.Mode})
	kind := ahp.KindCapability
	if err == nil {
		_, err = elicitation.ParseResult(value, asked)
		kind = ahp.KindApplication
	}
	if err == nil {
		return nil
	}
	return &ahp.Error{Kind: kind, Offset: -1, Found: err.Error(), Expected: "an ElicitResult that answers the request", Requirement: "AHP-EDIT-001", Err: err}
}

// editedResult returns the text of the result in e after m.
func editedResult(e *ahp.Event, m *ahp.Modify, asked *elicitation.Request) ([]byte, error) {
	p := e.Elicitation.Result
	if p == nil || p.Text == nil {
		return nil, &ahp.Error{Kind: ahp.KindCapability, Offset: -1, Found: "an edit of an answer that isn't there", Expected: "an answer with its body", Requirement: "AHP-CONTENT-002"}
	}
	return elicitation.Edit([]byte(*p.Text), m.Operation, m.Value, asked)
}

// editElicitation puts the edited result, serialised again, into e, whose pointers
// are shared with another event.
func editElicitation(e *ahp.Event, m *ahp.Modify, asked *elicitation.Request) error {
	out, err := editedResult(e, m, asked)
	if err != nil {
		return err
	}
	text, q := string(out), *e.Elicitation
	part := *q.Result
	part.Text, q.Result = &text, &part
	e.Elicitation = &q
	return nil
}

// sameAnswer reports whether two versions of a result are the same JSON value:
// serialising it again is no change.
func sameAnswer(a, b *ahp.Event) bool {
	x, y := a.Elicitation.Result, b.Elicitation.Result
	return x != nil && y != nil && x.Text != nil && y.Text != nil && strictjson.Equal([]byte(*x.Text), []byte(*y.Text))
}
