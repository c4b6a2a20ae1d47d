package ahp_test

import (
	"testing"

	"github.com/abhed/abhed/ahp"
)

// TestNewManifestIsValid holds that what the constructors make passes the codec, for
// every event type, alone and together.
func TestNewManifestIsValid(t *testing.T) {
	var rows []ahp.ManifestEvent
	for _, typ := range ahp.EventTypes() {
		modes := []ahp.Mode{ahp.ModeObserve}
		if typ.Interceptable() {
			modes = append(modes, ahp.ModeIntercept)
			for _, effect := range typ.Effects() {
				if err := ahp.NewCapabilities(typ, effect).Validate(typ); err != nil {
					t.Errorf("%s with %s: %v", typ, effect, err)
				}
			}
		}
		rows = append(rows, ahp.NewManifestEvent(typ, modes...))
	}
	for _, m := range []*ahp.Manifest{ahp.NewManifest(), ahp.NewManifest(rows...)} {
		data, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		back, err := ahp.DecodeManifest(data)
		if err != nil || len(back.Events) != len(m.Events) {
			t.Errorf("%d of %d rows, %v", len(back.Events), len(m.Events), err)
		}
	}
	if row := ahp.NewManifestEvent(ahp.ToolBefore, ahp.ModeObserve); row.Capabilities != nil {
		t.Error("an observed row has capabilities")
	}
	if ahp.NewCapabilities(ahp.SessionStart, ahp.EffectDeny).Validate(ahp.SessionStart) == nil {
		t.Error("an effect beyond the event's bound is valid")
	}
}
