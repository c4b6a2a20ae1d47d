package continuecli_test

import (
	"flag"
	"path/filepath"
	"testing"

	"github.com/abhed/abhed/ahp/adapter/adaptertest"
	"github.com/abhed/abhed/ahp/adapter/continuecli"
	"github.com/abhed/abhed/internal/require"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

func TestHost(t *testing.T) {
	t.Parallel()
	adaptertest.Run(t, continuecli.Host(), adaptertest.Options{
		Update: *update, Samples: filepath.Join(require.Shared(t), "samples", "continue"), Events: made,
		Event: []string{"hook_event_name"}, Tool: []string{"tool_name"}, Input: []string{"tool_input"},
		Needed: []string{"hook_event_name"},
		Keys: map[string][]string{
			"PostToolUse": {"hookSpecificOutput.hookEventName", "hookSpecificOutput.additionalContext"}, "UserPromptSubmit": {"hookSpecificOutput.hookEventName", "hookSpecificOutput.additionalContext"}, "SessionStart": {"hookSpecificOutput.hookEventName", "hookSpecificOutput.additionalContext"},
		},
	})
}

// made are events as the package's code, 1.5.47, would write them.
var made = map[string]string{
	"PostToolUse":        `{"hook_event_name":"PostToolUse","session_id":"cn-0001","transcript_path":"","cwd":"/repo","permission_mode":"default","tool_name":"Bash","tool_input":{"command":"ls"},"tool_response":"a.txt","tool_use_id":"toolu-01"}`,
	"PostToolUseFailure": `{"hook_event_name":"PostToolUseFailure","session_id":"cn-0001","transcript_path":"","cwd":"/repo","tool_name":"Bash","tool_input":{"command":"ls"},"tool_use_id":"toolu-01","error":"no such file","is_interrupt":false}`,
	"UserPromptSubmit":   `{"hook_event_name":"UserPromptSubmit","session_id":"cn-0001","transcript_path":"","cwd":"/repo","prompt":"do it"}`,
	"SessionStart":       `{"hook_event_name":"SessionStart","session_id":"cn-0001","transcript_path":"","cwd":"/repo","source":"startup","model":"m"}`,
	"SessionEnd":         `{"hook_event_name":"SessionEnd","session_id":"cn-0001","transcript_path":"","cwd":"/repo","reason":"prompt_input_exit"}`,
	"Stop":               `{"hook_event_name":"Stop","session_id":"cn-0001","transcript_path":"","cwd":"/repo","stop_hook_active":true,"last_assistant_message":"done"}`,
	"Notification":       `{"hook_event_name":"Notification","session_id":"cn-0001","transcript_path":"","cwd":"/repo","message":"m","title":"t","notification_type":"idle"}`,
	"PreCompact":         `{"hook_event_name":"PreCompact","session_id":"cn-0001","transcript_path":"","cwd":"/repo","trigger":"auto","custom_instructions":null}`,
}
