package codex_test

import (
	"flag"
	"path/filepath"
	"testing"

	"github.com/abhed/abhed/ahp/adapter/adaptertest"
	"github.com/abhed/abhed/ahp/adapter/codex"
	"github.com/abhed/abhed/internal/require"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

func TestHost(t *testing.T) {
	t.Parallel()
	specific := "hookSpecificOutput."
	adaptertest.Run(t, codex.Host(), adaptertest.Options{
		Update: *update, Samples: filepath.Join(require.Shared(t), "samples", "codex"),
		Event: []string{"hook_event_name"}, Tool: []string{"tool_name"}, Input: []string{"tool_input"}, Needed: []string{"session_id"}, CallNeeded: []string{"tool_input"},
		Keys: map[string][]string{
			"PreToolUse":       {specific + "hookEventName", specific + "permissionDecision", specific + "updatedInput.*", specific + "additionalContext"},
			"PostToolUse":      {"decision", "reason", specific + "hookEventName", specific + "additionalContext"},
			"UserPromptSubmit": {specific + "hookEventName", specific + "additionalContext"},
			"SessionStart":     {specific + "hookEventName", specific + "additionalContext"},
			"Stop":             {"decision", "reason"},
			"SubagentStop":     {"decision", "reason"},
		},
	})
}
