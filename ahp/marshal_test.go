package ahp_test

import (
	"encoding/json"
	"testing"

	"github.com/abhed/abhed/ahp"
)

// TestMessagesMarshal holds that a backend can build the value of an effect from
// the package's own types by ordinary encoding.
func TestMessagesMarshal(t *testing.T) {
	messages := []ahp.Message{ahp.TextMessage("m1", ahp.RoleTool, "clean \u00e9")}
	value, err := json.Marshal(messages)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ahp.EncodeEffect(&ahp.Modify{Target: ahp.TargetOutput, Operation: ahp.OpReplace, Value: value}); err != nil {
		t.Errorf("%s: %v", value, err)
	}
	got, err := ahp.DecodeMessages(value)
	if err != nil || len(got) != 1 || *got[0].Parts[0].Text != "clean \u00e9" {
		t.Errorf("%s: %+v, %v", value, got, err)
	}
	if _, err := json.Marshal(ahp.Message{ID: "m"}); err == nil {
		t.Error("a message without a role was encoded")
	}
	if _, err := json.Marshal(ahp.Part{ID: "p", Kind: ahp.KindText, MediaType: "text/html", Selection: ahp.SelectBody}); err == nil {
		t.Error("a part of no shape was encoded")
	}
}
