package harness_test

import (
	"errors"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/harness"
)

// TestFirstLayerRefuses holds that a reply at fault in several layers is refused by
// the first of them, whatever the order of its effects.
func TestFirstLayerRefuses(t *testing.T) {
	e := &ahp.Event{ID: "e", Source: "urn:a", Type: ahp.TurnFinishBefore, Time: "2026-01-01T00:00:00Z", Turn: &ahp.Turn{ID: "t"}, Outcome: "completed", Items: ahp.MessageItems()}
	caps := ahptest.Without(ahptest.FullCapabilities(e.Type), ahp.EffectMessage)
	*caps.Flow.RemainingContinuations = 0
	exhausted, unadvertised, malformed := `{"type":"flow","operation":"continue"}`, `{"type":"message","text":""}`, `{"type":"flow","operation":"stop"}`
	for effects, want := range map[string]string{
		exhausted:                      "application",
		unadvertised:                   "capability",
		exhausted + "," + unadvertised: "capability",
		unadvertised + "," + exhausted: "capability",
		exhausted + "," + malformed:    "schema",
	} {
		for id, want := range map[string]string{"e": want, "f": map[bool]string{true: "schema", false: "correlation"}[want == "schema"]} {
			reply := `{"jsonrpc":"2.0","id":"` + id + `","result":{"protocolVersion":"draft","effects":[` + effects + `]}}`
			_, err := harness.Evaluate(&ahp.Intercept{Event: e, Capabilities: *caps}, []byte(reply))
			var fault *ahp.Error
			if !errors.As(err, &fault) || fault.Kind.Layer() != want {
				t.Errorf("%s to %s: %v, want %s", effects, id, err, want)
			}
		}
	}
}

// TestEvaluateHiddenContent holds that a whole list can't be replaced by who doesn't
// see all of it, even if the request says so; adding to it is fine.
func TestEvaluateHiddenContent(t *testing.T) {
	for selection, replaceable := range map[ahp.Selection]bool{ahp.SelectBody: true, ahp.SelectMetadata: false, ahp.SelectOmit: false} {
		e := ahptest.ToolAfter("e", "text")
		if selection != ahp.SelectBody {
			p := &e.Items.Messages[0].Parts[0]
			p.Selection, p.Text = selection, nil
		}
		for operation, want := range map[string]bool{"merge": true, "replace": replaceable} {
			reply := `{"jsonrpc":"2.0","id":"e","result":{"protocolVersion":"draft","effects":[{"type":"modify","target":"output","operation":"` + operation + `","value":[]}]}}`
			_, err := harness.Evaluate(&ahp.Intercept{Event: e, Capabilities: *ahptest.FullCapabilities(e.Type)}, []byte(reply))
			var fault *ahp.Error
			if (err == nil) != want || err != nil && (!errors.As(err, &fault) || fault.Kind != ahp.KindCapability) {
				t.Errorf("%s where the part is %s: %v", operation, selection, err)
			}
		}
	}
}
