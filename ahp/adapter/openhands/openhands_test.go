package openhands_test

import (
	"flag"
	"path/filepath"
	"testing"

	"github.com/abhed/abhed/ahp/adapter/adaptertest"
	"github.com/abhed/abhed/ahp/adapter/openhands"
	"github.com/abhed/abhed/internal/require"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

func TestHost(t *testing.T) {
	t.Parallel()
	adaptertest.Run(t, openhands.Host(), adaptertest.Options{
		Update: *update, Samples: filepath.Join(require.Shared(t), "samples", "openhands"), Events: made,
		Event: []string{"event_type"}, Tool: []string{"tool_name"}, Input: []string{"tool_input"},
		Needed: []string{"event_type", "session_id"}, CallNeeded: []string{"tool_input"},
		Keys: map[string][]string{
			"PreToolUse": {"decision", "reason"}, "UserPromptSubmit": {"decision", "reason", "additionalContext"},
		},
	})
}

// made are events in the documented form.
var made = map[string]string{
	"PostToolUse":      `{"event_type":"PostToolUse","session_id":"oh-0001","tool_name":"terminal","tool_input":{"command":"ls"},"tool_response":{"text":"a.txt"},"working_dir":"/repo"}`,
	"UserPromptSubmit": `{"event_type":"UserPromptSubmit","session_id":"oh-0001","message":"do it","tool_name":null,"tool_input":null,"working_dir":"/repo"}`,
	"SessionStart":     `{"event_type":"SessionStart","session_id":"oh-0001","working_dir":"/repo"}`,
	"SessionEnd":       `{"event_type":"SessionEnd","session_id":"oh-0001","working_dir":"/repo"}`,
	"Stop":             `{"event_type":"Stop","session_id":"oh-0001","working_dir":"/repo"}`,
}
