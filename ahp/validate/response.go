package validate

import (
	"errors"
	"fmt"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/harness"
	"github.com/abhed/abhed/internal/strictjson"
)

// ResponseContext is the boundary at which a response to an intercept is judged:
// every effect that the event type can allow counts as advertised, and its edits
// are tried on the current value.
type ResponseContext struct {
	// Event is the type of the event that was intercepted.
	Event ahp.EventType `json:"event"`
	// Current holds the effective value of the event's target, by the target's
	// name; one that is missing is empty. For the result of an elicitation it is
	// the content object of the answer.
	Current map[ahp.Target]ahp.Raw `json:"current"`
	// Mode and Action are those of an elicitation, and "" for any other event.
	Mode   string `json:"mode"`
	Action string `json:"action"`
}

// DecodeResponseContext reads a ResponseContext from JSON; members that it doesn't
// have are ignored. The error says where, what was found and what was expected.
func DecodeResponseContext(data []byte) (*ResponseContext, error) {
	c := new(ResponseContext)
	if err := strictjson.Unmarshal(data, c, strictjson.Options{MaxBytes: ahp.MaxMessageBytes, MaxDepth: ahp.MaxDepth}); err != nil {
		return nil, err
	}
	if _, err := c.event("e"); err != nil {
		return nil, err
	}
	return c, nil
}

// reply judges a response to an intercept. The error means that the context can't
// be used.
func (r *Report) reply(data []byte, c *ResponseContext) error {
	p, _ := ahp.Peek(data)
	effects, err := ahp.DecodeEffectsReply(data, p.ID)
	if err == nil {
		err = reduced(r.Kind, effects)
	}
	if err != nil {
		r.fail(data, err)
		return nil
	}
	if c == nil {
		return nil
	}
	id, is := p.ID.Value()
	if !is {
		r.fail(data, &ahp.Error{Kind: ahp.KindCorrelation, Pointer: "/id", Offset: -1, Found: "the id " + p.ID.String(), Expected: "the id of an event, which is a text", Requirement: "AHP-RPC-002"})
		return nil
	}
	e, err := c.event(id)
	if err != nil {
		return err
	}
	if _, err := harness.Evaluate(&ahp.Intercept{Event: e, Capabilities: *c.capabilities(e)}, data); err != nil {
		r.fail(data, err)
	}
	return nil
}

// reduced holds the rules of the reduced forms of a response (§3).
func reduced(kind Kind, effects []ahp.Effect) error {
	fault := func(found, expected string) error {
		return &ahp.Error{Kind: ahp.KindEffect, Pointer: "/result/effects", Offset: -1, Found: found, Expected: expected, Requirement: "AHP-DEC-001"}
	}
	switch {
	case kind == InterceptNoEffectResponse && len(effects) != 0:
		return fault(fmt.Sprintf("%d effects", len(effects)), "none")
	case kind == InterceptDenyResponse && (len(effects) != 1 || effects[0].EffectType() != ahp.EffectDeny):
		return fault(fmt.Sprintf("%d effects", len(effects)), "exactly one, a deny")
	}
	return nil
}

// capabilities returns everything that may be advertised for e.
func (c *ResponseContext) capabilities(e *ahp.Event) *ahp.Capabilities {
	out := ahp.NewCapabilities(c.Event, c.Event.Effects()...)
	if out.Flow != nil {
		one, none := int64(1), int64(0)
		out.Flow.Operations = c.Event.FlowOperations()
		out.Flow.RemainingContinuations, out.Flow.ContinuationCount = &one, &none
	}
	if e.Elicitation != nil {
		out.Elicitation = &ahp.ElicitationCapability{Form: &ahp.ElicitationMode{}, URL: &ahp.ElicitationMode{}}
	}
	return out
}

// event returns an event of the context's type with the current value. Apart from
// that value it is the least that its type allows.
func (c *ResponseContext) event(id string) (*ahp.Event, error) {
	if !c.Event.Interceptable() {
		return nil, fmt.Errorf("the event %q of the context: expected one that can be intercepted", c.Event)
	}
	e := &ahp.Event{ID: id, Source: "urn:ahp:validate", Type: c.Event, Time: "2026-01-01T00:00:00Z"}
	fillEnvelope(e)
	if err := c.fillTarget(e); err != nil {
		var fault *ahp.Error
		if errors.As(err, &fault) {
			return nil, fmt.Errorf("the current %s of the context at %s: found %s, expected %s", c.Event.Target(), or(fault.Pointer, "the top"), fault.Found, fault.Expected)
		}
		return nil, fmt.Errorf("the current %s of the context: %w", c.Event.Target(), err)
	}
	if err := e.Validate(); err != nil {
		return nil, fmt.Errorf("the context makes no valid event: %w", err)
	}
	return e, nil
}

// current returns the value of the event's target, or what stands for none.
func (c *ResponseContext) current(none string) ahp.Raw {
	if v := c.Current[c.Event.Target()]; v != nil {
		return v
	}
	return ahp.Raw(none)
}

// fillTarget puts the current value into e.
func (c *ResponseContext) fillTarget(e *ahp.Event) (err error) {
	switch target := c.Event.Target(); {
	case e.Elicitation != nil:
		return c.fillElicitation(e)
	case target == ahp.TargetInput:
		if e.Tool.Input = c.current("{}"); !e.Tool.Input.IsObject() {
			return errors.New("found another value, expected an object")
		}
	case target == ahp.TargetInstructions:
		e.Instructions, err = ahp.DecodeTextParts(c.current("[]"))
	case target == ahp.TargetSummary:
		e.Summary, err = ahp.DecodeTextParts(c.current("[]"))
	case target == ahp.TargetWorkspace:
		var w *ahp.WorkspaceState
		if w, err = ahp.DecodeWorkspaceState(c.current(`{"cwd":"/"}`)); err == nil {
			e.Workspace.Change = *w
		}
	case target != "" && e.Message != nil:
		e.Message.Messages, err = ahp.DecodeMessages(c.current("[]"))
	case target != "":
		e.Items.Messages, err = ahp.DecodeMessages(c.current("[]"))
	}
	return err
}

// fillElicitation makes the text of an answer around the current content (§21).
func (c *ResponseContext) fillElicitation(e *ahp.Event) error {
	e.Elicitation.Mode = or(c.Mode, "form")
	if e.Type == ahp.UserElicitationRequest {
		return nil
	}
	e.ParentEventID = "asked"
	e.Elicitation.Action = or(c.Action, "accept")
	answer := map[string]any{"action": e.Elicitation.Action}
	if content := c.current("{}"); e.Elicitation.Action == "accept" && e.Elicitation.Mode == "form" {
		answer["content"] = content
	}
	text, err := strictjson.Marshal(answer)
	if err != nil {
		return err
	}
	part := ahp.TextPart("answer", string(text))
	e.Elicitation.Result = &part
	return nil
}
