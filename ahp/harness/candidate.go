package harness

import (
	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/elicitation"
	"github.com/abhed/abhed/internal/strictjson"
)

// summary returns a supplied summary as it may be shown: its parts are content.
func (v *viewer) summary(c *ahp.Candidate) (*ahp.Candidate, error) {
	list, err := ahp.DecodeTextParts(c.Value)
	if err != nil {
		return c, nil // the host's own, of whatever shape
	}
	before := v.changed
	v.changed = false
	shown := v.parts(list)
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
