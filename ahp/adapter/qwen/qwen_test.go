package qwen_test

import (
	"flag"
	"path/filepath"
	"testing"

	"github.com/abhed/abhed/ahp/adapter"
	"github.com/abhed/abhed/ahp/adapter/adaptertest"
	"github.com/abhed/abhed/ahp/adapter/qwen"
	"github.com/abhed/abhed/internal/require"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

func TestHost(t *testing.T) {
	t.Parallel()
	refusal := []string{"continue", "stopReason", "decision", "reason"}
	specific := "hookSpecificOutput."
	context := []string{specific + "hookEventName", specific + "additionalContext"}
	adaptertest.Run(t, qwen.Host(), adaptertest.Options{
		Update: *update, Samples: filepath.Join(require.Shared(t), "samples", "qwen"),
		Event: []string{"hook_event_name"}, Tool: []string{"tool_name"}, Input: []string{"tool_input"}, Needed: []string{"session_id"}, CallNeeded: []string{"tool_input"},
		Unread: map[string]string{
			"env-*": "variables, no event", "InstructionsLoaded": "no event of the protocol stands for it", "MessageDisplay": "likewise",
		},
		Keys: map[string][]string{
			"PreToolUse":        append([]string{specific + "hookEventName", specific + "permissionDecision", specific + "permissionDecisionReason"}, refusal...),
			"PermissionRequest": {specific + "hookEventName", specific + "decision.behavior", specific + "decision.message"},
			"PostToolUse":       append([]string{"continue", "stopReason"}, context...),
			"UserPromptSubmit":  append(refusal, context...),
			"SessionStart":      context,
			"Stop":              {"decision", "reason"},
		},
	})
}

// One call has one id before it, after it and in its batch.
func TestOneIDPerCall(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(require.Shared(t), "samples", "qwen")
	h := qwen.Host()
	read := func(name string) *adapter.Event {
		t.Helper()
		e, err := h.Read(adapter.Input{Data: adaptertest.File(t, filepath.Join(dir, name+".json"))})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	before, after, batch := read("PreToolUse-run_shell_command"), read("PostToolUse-run_shell_command"), read("PostToolBatch")
	if id := before.AHP.Call.ID; id != "call_0_0" || id != after.AHP.Call.ID || id != batch.AHP.Calls[0].Call.ID {
		t.Errorf("the ids are %q, %q and %q", id, after.AHP.Call.ID, batch.AHP.Calls[0].Call.ID)
	}
}
