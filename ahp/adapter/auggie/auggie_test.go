package auggie_test

import (
	"flag"
	"path/filepath"
	"testing"

	"github.com/abhed/abhed/ahp/adapter/adaptertest"
	"github.com/abhed/abhed/ahp/adapter/auggie"
	"github.com/abhed/abhed/internal/require"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

func TestHost(t *testing.T) {
	t.Parallel()
	adaptertest.Run(t, auggie.Host(), adaptertest.Options{
		Update: *update, Samples: filepath.Join(require.Shared(t), "samples", "auggie"), Events: made,
		Event: []string{"hook_event_name"}, Tool: []string{"tool_name"}, Input: []string{"tool_input"},
		Needed: []string{"hook_event_name", "conversation_id"}, CallNeeded: []string{"tool_input"},
		Keys: map[string][]string{
			"PreToolUse":   {"systemMessage", "hookSpecificOutput.hookEventName", "hookSpecificOutput.updatedInput.*"},
			"PostToolUse":  {"systemMessage", "hookSpecificOutput.hookEventName", "hookSpecificOutput.additionalContext"},
			"PromptSubmit": {"systemMessage"}, "SessionStart": {"systemMessage"},
		},
	})
}

// made are events as the package, 0.36.0, writes them.
var made = map[string]string{
	"mcp":          `{"hook_event_name":"PreToolUse","conversation_id":"aug-0001","workspace_roots":["/repo"],"tool_name":"echo_demo","tool_input":{"text":"hi"},"tool_error":null,"is_mcp_tool":true}`,
	"mcp-known":    `{"hook_event_name":"PreToolUse","conversation_id":"aug-0001","workspace_roots":["/repo"],"tool_name":"echo_demo","tool_input":{"text":"hi"},"tool_error":null,"is_mcp_tool":true,"mcp_metadata":{"timestamp":"2026-11-30T12:00:00Z","mcpDecision":"yes","mcpTotalToolsCount":1,"mcpExecutedToolName":"echo","mcpExecutedToolServerName":"demo","mcpExecutedTotalToolsCount":1}}`,
	"PostToolUse":  `{"hook_event_name":"PostToolUse","conversation_id":"aug-0001","workspace_roots":["/repo"],"tool_name":"save-file","tool_input":{"path":"a.txt","file_content":"a"},"tool_output":"File saved.","tool_error":null,"is_mcp_tool":false,"file_changes":[{"path":"a.txt","changeType":"create","content":"a"}]}`,
	"failed":       `{"hook_event_name":"PostToolUse","conversation_id":"aug-0001","workspace_roots":["/repo"],"tool_name":"launch-process","tool_input":{"command":"false"},"tool_output":"exit code 1","tool_error":"exit code 1","is_mcp_tool":false}`,
	"PromptSubmit": `{"hook_event_name":"PromptSubmit","conversation_id":"aug-0001","workspace_roots":["/repo"],"user_prompt":"do it"}`,
	"Stop":         `{"hook_event_name":"Stop","conversation_id":"aug-0001","workspace_roots":["/repo"],"agent_stop_cause":"end_turn"}`,
	"interrupted":  `{"hook_event_name":"Stop","conversation_id":"aug-0001","workspace_roots":["/repo"],"agent_stop_cause":"interrupted"}`,
	"SessionStart": `{"hook_event_name":"SessionStart","conversation_id":"aug-0001","workspace_roots":["/repo"]}`,
	"SessionEnd":   `{"hook_event_name":"SessionEnd","conversation_id":"aug-0001","workspace_roots":["/repo"]}`,
	"Notification": `{"hook_event_name":"Notification","conversation_id":"aug-0001","workspace_roots":["/repo"],"notification_type":"info","notification_message":"done"}`,
}
