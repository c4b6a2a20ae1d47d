package rules_test

import (
	"testing"

	"github.com/abhed/abhed/ahp"
)

// BenchmarkIntercept measures one decision about a typical command.
func BenchmarkIntercept(b *testing.B) {
	back, _, root := newBackend(b, document)
	q := &ahp.Intercept{Event: call(root, "Bash", `{"command":"cd sub && go test ./... | tail -20"}`), Capabilities: *ahp.NewCapabilities(ahp.ToolBefore, ahp.EffectDeny)}
	for b.Loop() {
		if out, err := back.Intercept(b.Context(), q); err != nil || len(out) > 0 {
			b.Fatal(out, err)
		}
	}
}
