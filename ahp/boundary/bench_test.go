package boundary_test

import (
	"context"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/boundary"
)

// BenchmarkTool is a whole call, before and after, with an observer alone, and with
// an interceptor in this process.
func BenchmarkTool(b *testing.B) {
	for _, bm := range []struct {
		name   string
		judges []ahptest.Judge
	}{{"observer", nil}, {"interceptor", []ahptest.Judge{nil}}} {
		b.Run(bm.name, func(b *testing.B) {
			w := newWorld(b, boundary.Options{}, bm.judges...)
			call := boundary.ToolCall{ID: "c", Name: "bash", Input: ahp.Raw(input)}
			b.ReportAllocs()
			for b.Loop() {
				r, err := w.Tool(b.Context(), call, func(context.Context, ahp.Raw) (boundary.ToolOutput, error) {
					return boundary.ToolOutput{Text: "out"}, nil
				})
				if err != nil || r.Status != boundary.Ran {
					b.Fatal(r.Status, err)
				}
			}
		})
	}
}
