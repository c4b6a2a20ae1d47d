package kimi_test

import (
	"flag"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abhed/abhed/ahp/adapter/adaptertest"
	"github.com/abhed/abhed/ahp/adapter/kimi"
	"github.com/abhed/abhed/internal/require"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

func TestHost(t *testing.T) {
	t.Parallel()
	adaptertest.Run(t, kimi.Host(), adaptertest.Options{
		Update: *update, Samples: filepath.Join(require.Shared(t), "samples", "kimi"), Events: made,
		Event: []string{"hook_event_name"}, Tool: []string{"tool_name"}, Input: []string{"tool_input"},
		Needed: []string{"hook_event_name", "session_id"}, CallNeeded: []string{"tool_input"},
		Keys: map[string][]string{
			"UserPromptSubmit": {"message"}, "Stop": {"hookSpecificOutput.permissionDecision", "hookSpecificOutput.permissionDecisionReason"},
		},
	})
}

// made are events as Kimi Code 2.1.0 writes them, recorded or by its code, and two of the
// CLI before it.
var made = map[string]string{
	"PostToolUse":        `{"hook_event_name":"PostToolUse","session_id":"session_68112787-8697-4836-990a-aa2159c6cd4e","cwd":"/repo","client_type":"kimi_code_cli","tool_name":"Bash","tool_input":{"command":"touch marker.txt","description":"d"},"tool_call_id":"call_0_0","tool_output":"Command executed successfully."}`,
	"PostToolUseFailure": `{"hook_event_name":"PostToolUseFailure","session_id":"session_4c5d794c-ec77-46bc-956d-df5e4865a01a","cwd":"/repo","client_type":"kimi_code_cli","tool_name":"Bash","tool_input":{"command":"touch marker.txt","description":"d"},"tool_call_id":"call_0_0","error":{"code":"internal","message":"no","retryable":false}}`,
	"old-failure":        `{"hook_event_name":"PostToolUseFailure","session_id":"kimi-0001","cwd":"/repo","tool_name":"Shell","tool_input":{"command":"ls"},"tool_call_id":"call-1","error":"no such file"}`,
	"mcp":                `{"hook_event_name":"PreToolUse","session_id":"kimi-0001","cwd":"/repo","tool_name":"mcp__demo__echo","tool_input":{"text":"hi"},"tool_call_id":"call-1"}`,
	"PermissionRequest":  `{"hook_event_name":"PermissionRequest","session_id":"kimi-0001","cwd":"/repo","agent_id":"main","turn_id":3,"tool_call_id":"call-1","tool_name":"Bash","tool_input":{"command":"ls"},"action":"run ls","display":{"kind":"command"}}`,
	"PermissionResult":   `{"hook_event_name":"PermissionResult","session_id":"kimi-0001","cwd":"/repo","agent_id":"main","turn_id":3,"tool_call_id":"call-1","tool_name":"Bash","tool_input":{"command":"ls"},"decision":"approved","scope":"session"}`,
	"long":               `{"hook_event_name":"PostToolUse","session_id":"kimi-0001","cwd":"/repo","tool_name":"Bash","tool_input":{"command":"yes"},"tool_call_id":"call-1","tool_output":"` + strings.Repeat("y", 2000) + `"}`,
	"refused":            `{"hook_event_name":"PermissionResult","session_id":"kimi-0001","cwd":"/repo","tool_call_id":"call-1","tool_name":"mcp__demo__echo","tool_input":{},"decision":"rejected"}`,
	"UserPromptSubmit":   `{"hook_event_name":"UserPromptSubmit","session_id":"kimi-0001","cwd":"/repo","prompt":[{"type":"text","text":"do"},{"type":"image_url","image_url":{"url":"data:"}},{"type":"text","text":"it"}],"is_steer":false}`,
	"old-prompt":         `{"hook_event_name":"UserPromptSubmit","session_id":"kimi-0001","cwd":"/repo","prompt":"do it"}`,
	"Stop":               `{"hook_event_name":"Stop","session_id":"kimi-0001","cwd":"/repo","stop_hook_active":false}`,
	"second-stop":        `{"hook_event_name":"Stop","session_id":"kimi-0001","cwd":"/repo","stop_hook_active":true}`,
	"StopFailure":        `{"hook_event_name":"StopFailure","session_id":"kimi-0001","cwd":"/repo","error_type":"APIError","error_message":"\u001b[31m429"}`,
	"wordless-failure":   `{"hook_event_name":"StopFailure","session_id":"kimi-0001","cwd":"/repo"}`,
	"Interrupt":          `{"hook_event_name":"Interrupt","session_id":"kimi-0001","cwd":"/repo","turn_id":3,"reason":"cancelled"}`,
	"SessionStart":       `{"hook_event_name":"SessionStart","session_id":"session_68e647a1-e2f1-410f-bf79-2cfe41f7a9b3","cwd":"/repo","client_type":"kimi_code_cli","source":"startup","model":"m","profile":"agent"}`,
	"before":             `{"hook_event_name":"PreToolUse","session_id":"session_68e647a1-e2f1-410f-bf79-2cfe41f7a9b3","cwd":"/repo","client_type":"kimi_code_cli","tool_name":"Bash","tool_input":{"command":"touch marker.txt","description":"d"},"tool_call_id":"call_0_0"}`,
	"prompt":             `{"hook_event_name":"UserPromptSubmit","session_id":"session_68e647a1-e2f1-410f-bf79-2cfe41f7a9b3","cwd":"/repo","client_type":"kimi_code_cli","prompt":[{"type":"text","text":"do the scripted thing"}],"is_steer":false}`,
	"SessionEnd":         `{"hook_event_name":"SessionEnd","session_id":"kimi-0001","cwd":"/repo","reason":"exit"}`,
	"SubagentStart":      `{"hook_event_name":"SubagentStart","session_id":"kimi-0001","cwd":"/repo","agent_name":"coder","prompt":"do it"}`,
	"SubagentStop":       `{"hook_event_name":"SubagentStop","session_id":"kimi-0001","cwd":"/repo","agent_name":"coder","response":"done"}`,
	"PreCompact":         `{"hook_event_name":"PreCompact","session_id":"kimi-0001","cwd":"/repo","trigger":"manual","token_count":9000}`,
	"PostCompact":        `{"hook_event_name":"PostCompact","session_id":"kimi-0001","cwd":"/repo","trigger":"auto","estimated_token_count":900}`,
	"Notification":       `{"hook_event_name":"Notification","session_id":"kimi-0001","cwd":"/repo","sink":"context","notification_type":"task.completed","title":"Task","body":"done","severity":"info"}`,
}
