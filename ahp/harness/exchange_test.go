package harness_test

import (
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/harness"
)

func harnessOptions() harness.Options { return harness.Options{Retries: -1} }

// exchangeOf starts a chain about a tool.before and returns its first exchange.
func exchangeOf(t *testing.T, h *harness.Harness, id string) *harness.Exchange {
	t.Helper()
	return chainOf(t, h, id, harness.DispatchOptions{}).Next()
}

func chainOf(t *testing.T, h *harness.Harness, id string, opts harness.DispatchOptions) *harness.Chain {
	t.Helper()
	c, err := h.Begin(t.Context(), ahptest.ToolBefore(id, `{"command":"ls"}`), noAllow(), nil, opts)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var _ ahp.Outcome
