package backend_test

import (
	"context"
	"strings"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/backend"
)

// A whole backend: it refuses forced pushes.
func Example() {
	judge := func(_ context.Context, q *ahp.Intercept) ([]ahp.Effect, error) {
		if q.Event.Type == ahp.ToolBefore && strings.Contains(string(q.Event.Tool.Input), "push --force") {
			return backend.Answer(q, &ahp.Deny{Reason: "Forced pushes are not allowed here."})
		}
		return nil, nil
	}
	main := func() { backend.Main(backend.Func(judge), backend.Options{}) }
	_ = main // registered as {"type": "stdio", "command": …, "lifecycle": "persistent"}
}
