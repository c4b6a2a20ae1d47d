package droid_test

import (
	"flag"
	"path/filepath"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter"
	"github.com/abhed/abhed/ahp/adapter/adaptertest"
	"github.com/abhed/abhed/ahp/adapter/droid"
	"github.com/abhed/abhed/internal/require"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

func TestHost(t *testing.T) {
	t.Parallel()
	samples := filepath.Join(require.Shared(t), "samples")
	context := []string{"hookSpecificOutput.hookEventName", "hookSpecificOutput.additionalContext"}
	documented := string(adaptertest.File(t, filepath.Join(samples, "factory-droid", "PreToolUse.json")))
	adaptertest.Run(t, droid.Host(), adaptertest.Options{
		Update: *update, Samples: filepath.Join(samples, "droid"), Events: map[string]string{"documented": documented},
		Event: []string{"hook_event_name", "hookEventName"}, Tool: []string{"tool_name"}, Input: []string{"tool_input"}, Needed: []string{"session_id", "sessionId"}, CallNeeded: []string{"tool_input"},
		Keys: map[string][]string{
			"PreToolUse":       {"continue", "stopReason", "hookSpecificOutput.hookEventName", "hookSpecificOutput.updatedInput.*"},
			"PostToolUse":      append([]string{"continue", "stopReason"}, context...),
			"UserPromptSubmit": context, "SessionStart": context,
			"Stop": {"decision", "reason"}, "SubagentStop": {"decision", "reason"},
		},
		Call: adapter.Call{Name: "Execute", Input: ahp.Raw(`{"command":"rm -rf build","timeout":5}`)},
	})
}
