package claudecode_test

import (
	"flag"
	"path/filepath"
	"testing"

	"github.com/abhed/abhed/ahp/adapter/adaptertest"
	"github.com/abhed/abhed/ahp/adapter/claudecode"
	"github.com/abhed/abhed/internal/require"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

func TestHost(t *testing.T) {
	t.Parallel()
	adaptertest.Run(t, claudecode.Host(), adaptertest.Options{
		Update: *update, Samples: filepath.Join(require.Shared(t), "samples", "claude"),
		Event: []string{"hook_event_name"}, Tool: []string{"tool_name"}, Input: []string{"tool_input"},
		Unread: map[string]string{
			"InstructionsLoaded": "no event of the protocol stands for it", "MessageDisplay": "likewise",
			"UserPromptExpansion": "likewise: the prompt itself comes with UserPromptSubmit",
		},
		Keys: keys(),
	})
}

// keys are the members that the host knows, from its package's schemas.
func keys() map[string][]string {
	common := []string{"continue", "stopReason", "systemMessage"}
	with := func(more ...string) []string {
		out := append([]string{"hookSpecificOutput.hookEventName"}, common...)
		for _, m := range more {
			out = append(out, "hookSpecificOutput."+m)
		}
		return out
	}
	return map[string][]string{
		"PreToolUse":         with("permissionDecision", "permissionDecisionReason", "updatedInput.*", "additionalContext"),
		"PermissionRequest":  with("decision.behavior", "decision.message"),
		"PostToolUse":        with("additionalContext", "updatedToolOutput.stdout", "updatedToolOutput.stderr", "updatedToolOutput.interrupted", "updatedToolOutput.isImage"),
		"PostToolUseFailure": with("additionalContext"),
		"PostToolBatch":      common,
		"UserPromptSubmit":   with("additionalContext"),
		"SessionStart":       with("additionalContext"),
		"Stop":               append([]string{"decision", "reason"}, common...),
		"SubagentStop":       append([]string{"decision", "reason"}, common...),
	}
}
