package doctor

import (
	"github.com/abhed/abhed/internal/hostconf"
	"github.com/abhed/abhed/internal/strictjson"
)

type object = map[string]any

// shell is the program that a host runs a command line with.
func shell(host string) string {
	if host == "gemini" || host == "copilot" {
		return "bash"
	}
	return "sh"
}

// gates are the native events of a target at which a call is decided before it is made
// and that can be about a tool of any name.
func gates(host string, t hostconf.Target) []string {
	var out []string
	for _, e := range t.Events {
		if e.Gate && e.Tool && payload(host, e.Name, "x", "canary-x", "/") != nil {
			out = append(out, e.Name)
		}
	}
	return out
}

// payload is the native event of a host's call of a tool, as the host would send it; nil
// for an event that is of other calls only.
func payload(host, native, tool, id, dir string) []byte {
	input := object{"canary": id}
	o := object{"session_id": id, "cwd": dir, "hook_event_name": native, "tool_name": tool, "tool_input": input}
	switch host + " " + native {
	case "claude-code PreToolUse":
		add(o, object{"tool_use_id": id, "permission_mode": "default", "prompt_id": id, "transcript_path": dir + "/transcript.jsonl"})
	case "continue PreToolUse":
		add(o, object{"tool_use_id": id, "permission_mode": "default", "transcript_path": ""})
	case "codex PreToolUse":
		add(o, object{"turn_id": id, "tool_use_id": id, "model": "none", "permission_mode": "default"})
	case "gemini BeforeTool":
		add(o, object{"timestamp": "2026-01-01T00:00:00.000Z", "transcript_path": ""})
	case "qwen PreToolUse":
		add(o, object{"timestamp": "2026-01-01T00:00:00.000Z", "permission_mode": "default", "tool_use_id": id, "tool_call_id": id})
	case "droid PreToolUse":
		o["permission_mode"] = "auto-low"
	case "kimi PreToolUse":
		o["tool_call_id"] = id
	case "kiro PreToolUse":
		o["hook_event_name"] = "preToolUse" // as that form sends it
	case "kiro preToolUse":
		delete(o, "session_id")
	case "crush PreToolUse":
		o = object{"event": native, "session_id": id, "cwd": dir, "tool_name": tool, "tool_input": input}
	case "goose PreToolUse":
		o = object{"event": native, "session_id": id, "working_dir": dir, "tool_name": tool, "tool_input": input, "tool_call_id": id}
	case "openhands PreToolUse":
		o = object{"event_type": native, "session_id": id, "working_dir": dir, "tool_name": tool, "tool_input": input}
	case "copilot preToolUse":
		o = object{"sessionId": id, "timestamp": 1767225600000, "cwd": dir, "toolName": tool, "toolArgs": input}
	case "cursor preToolUse":
		o = object{"conversation_id": id, "generation_id": id, "model": "none", "cursor_version": "0", "workspace_roots": []string{dir}, "hook_event_name": native, "tool_name": tool, "tool_input": input, "tool_use_id": id, "cwd": dir}
	case "auggie PreToolUse":
		o = object{"hook_event_name": native, "conversation_id": id, "workspace_roots": []string{dir}, "tool_name": tool, "tool_input": input, "is_mcp_tool": false}
	case "windsurf pre_mcp_tool_use":
		o = object{"agent_action_name": native, "trajectory_id": id, "execution_id": id, "timestamp": "2026-01-01T00:00:00Z", "model_name": "none", "tool_info": object{"mcp_server_name": "ahp", "mcp_tool_name": tool, "mcp_tool_arguments": input}}
	case "cline PreToolUse":
		o = object{"clineVersion": "", "timestamp": "2026-01-01T00:00:00.000Z", "taskId": id, "workspaceRoots": []string{dir}, "hookName": "tool_call", "tool_call": object{"id": id, "name": tool, "input": input}, "preToolUse": object{"toolName": tool, "parameters": input}}
	case "opencode tool.execute.before", "kilo tool.execute.before":
		o = object{"bridge": "1", "hook": native, "input": object{"tool": tool, "sessionID": id, "callID": id}, "output": object{"args": input}, "directory": dir, "worktree": dir}
	case "pi tool_call":
		o = object{"bridge": "1", "hook": native, "event": object{"type": native, "toolName": tool, "toolCallId": id, "input": input}, "ctx": object{"cwd": dir, "sessionId": id}}
	default:
		return nil
	}
	data, err := strictjson.Marshal(o)
	if err != nil {
		return nil // a folder whose name is not text
	}
	return data
}

func add(o, more object) {
	for k, v := range more {
		o[k] = v
	}
}
