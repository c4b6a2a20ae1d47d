package app

import (
	"testing"

	"github.com/abhed/abhed/internal/agent"
)

// TestExitCodes holds the table of abhed.md, "Loop".
func TestExitCodes(t *testing.T) {
	for reason, want := range map[agent.Reason]int{
		agent.ReasonCompleted: 0, agent.ReasonError: 1, agent.ReasonMaxTurns: 3, agent.ReasonMaxTokens: 3, agent.ReasonMaxCost: 3,
		agent.ReasonMaxTime: 3, agent.ReasonDeniedLoop: 4, agent.ReasonRetryExhausted: 5, agent.ReasonStalled: 6,
		agent.ReasonStopped: 8, agent.ReasonUserInterrupt: 130, agent.ReasonShutdown: 143,
	} {
		if got := exitCode(reason); got != want {
			t.Errorf("%s exits with %d, want %d", reason, got, want)
		}
	}
}
