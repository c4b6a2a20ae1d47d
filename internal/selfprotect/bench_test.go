package selfprotect_test

import (
	"context"
	"testing"

	"github.com/abhed/abhed/ahp"
)

// BenchmarkJudge measures what an ordinary call costs: less than 100 µs is wanted.
func BenchmarkJudge(b *testing.B) {
	w := makeWorld(b)
	for name, command := range map[string]string{
		"test":  "cd /tmp && go test ./internal/selfprotect -run TestX -count=1 2>&1 | tail -20",
		"rm":    "rm -rf build/out && mkdir -p build/out && cp -r src/. build/out",
		"read":  "cat go.mod | grep -n toolchain",
		"write": "cat > notes.txt <<'E'\nsome text\nE\n",
	} {
		b.Run(name, func(b *testing.B) {
			q := &ahp.Intercept{Event: w.event(b, "Bash", map[string]any{"command": command}), Capabilities: *ahp.NewCapabilities(ahp.ToolBefore, ahp.EffectDeny)}
			b.ReportAllocs()
			for b.Loop() {
				if out, err := w.set.Intercept(context.Background(), q); err != nil || len(out) > 0 {
					b.Fatal(out, err)
				}
			}
		})
	}
}
