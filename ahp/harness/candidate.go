package harness

import (
	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/elicitation"
	"github.com/abhed/abhed/internal/strictjson"
)

// candidate returns a supplied result as it may be shown. It is content where it
// stands for a model's response, a summary or an answer; a tool's is nobody's to
// look into.
func (v *viewer) candidate(t ahp.EventType, c *ahp.Candidate) (*ahp.Candidate, error) {
	switch {
	case c == nil:
		return nil, nil
	case t == ahp.ContextCompactBefore:
		return shownList(v, c, ahp.DecodeTextParts, v.parts)
	case t == ahp.UserElicitationRequest:
		return v.answer(c), nil
	case t == ahp.ModelRequestBefore:
		return shownList(v, c, ahp.DecodeMessages, v.messages)
	}
	return c, nil
}

// shownList returns a supplied list of content as show leaves it.
func shownList[T any](v *viewer, c *ahp.Candidate, decode func([]byte) ([]T, error), show func([]T) []T) (*ahp.Candidate, error) {
	list, err := decode(c.Value)
	if err != nil {
		return c, nil // the host's own, of whatever shape
	}
	before := v.changed
	v.changed = false
	shown := show(list)
	changed := v.changed
	v.changed = before || changed
	if !changed {
		return c, nil
	}
	value, err := strictjson.Marshal(shown)
	if err != nil {
		return nil, err
	}
	return &ahp.Candidate{Value: value, Provenance: c.Provenance}, nil
}

// answer returns a supplied answer to an elicitation as it may be shown: whole to
// who may see texts, and otherwise no more than its action (§7, §21).
func (v *viewer) answer(c *ahp.Candidate) *ahp.Candidate {
	part := ahp.TextPart("answer", string(c.Value))
	if shown := v.part(&part); shown != nil && shown.Text != nil {
		return c
	}
	v.changed = true
	action := elicitation.Cancel
	if r, err := elicitation.ParseResult(c.Value, nil); err == nil {
		action = r.Action
	}
	return &ahp.Candidate{Value: ahp.Raw(`{"action":"` + string(action) + `"}`)}
}
