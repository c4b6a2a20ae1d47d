// Package copilot is the hook dialect of GitHub Copilot CLI, in both spellings of its
// events (measured with 1.0.102), and that of VS Code, which reads the same files (as
// documented).
//
// It guarantees that a refusal is exit code 0 and one JSON document, because any other
// exit code loses the reason, that it is of the dialect that the event was written in, and
// that a refusal of an event that couldn't be read holds what Copilot reads and what VS
// Code does: members of the other don't void it (measured in Copilot). "allow" is never
// written: here it would overrule the host's own --deny-tool.
//
// Do not assume that a call has an id: only preMcpToolCall has one, and VS Code. Do not
// assume that PascalCase means Claude Code's members: the tool's input keeps Copilot's, and
// only PreToolUse is answered in hookSpecificOutput, every other event as in camelCase.
package copilot

import (
	"fmt"
	"strings"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter"
	"github.com/abhed/abhed/ahp/adapter/shape"
)

// The spellings, as Event.Detail has them.
const (
	camel  = "camelCase"
	pascal = "PascalCase"
)

// Host returns the dialect of Copilot CLI.
func Host() *adapter.Host {
	h := &adapter.Host{
		Name: "copilot", Title: "GitHub Copilot", Deny: adapter.Delivery{Stream: adapter.Stdout},
		Markers: []string{"COPILOT_CLI"}, Rows: rows(), Write: write,
	}
	h.Read = func(in adapter.Input) (*adapter.Event, error) { return read(h, in) }
	return h
}

// VSCode returns the dialect of VS Code. It has no hook files of its own: it runs the
// lines of Copilot's and of Claude Code's.
func VSCode() *adapter.Host {
	h := &adapter.Host{
		Name: "vscode", Title: "VS Code", Deny: adapter.Delivery{Stream: adapter.Stdout}, Rows: editorRows(), Write: writeEditor,
	}
	p := &shape.Profile{Host: h.Name, Kinds: kinds(), Event: []string{"hookEventName"}, Session: []string{"sessionId"}}
	h.Read = func(in adapter.Input) (*adapter.Event, error) {
		o, err := adapter.ParseObject(in.Data)
		if err != nil {
			return nil, err
		}
		o.Need("sessionId")
		return p.ReadAs(h, in, o, o.Need("hookEventName"))
	}
	return h
}

// read finds the spelling and the event's name, and reads the rest by the profile.
func read(h *adapter.Host, in adapter.Input) (*adapter.Event, error) {
	o, err := adapter.ParseObject(in.Data)
	if err != nil {
		return nil, err
	}
	native, spelt := name(o, in.Native)
	if err := o.Err(); err != nil {
		return nil, err
	}
	e, err := profile(spelt).ReadAs(h, in, o, native)
	if err != nil {
		return nil, err
	}
	e.Detail = spelt
	finish(e, o)
	return e, o.Err()
}

// name returns the native event and its spelling. A camelCase payload doesn't say its
// event, but for two kinds, which PascalCase has in camelCase too: what they say has to be
// what the installed line says.
func name(o *adapter.Object, installed string) (native, spelt string) {
	if o.Has("hookEventName") {
		o.Fail(fmt.Errorf("the native event is VS Code's, and was given to Copilot's dialect"))
	}
	if o.Has("session_id") {
		return o.Text("hook_event_name"), pascal
	}
	o.Need("sessionId")
	said := o.Text("hookName", "hook_event_name")
	switch {
	case installed == "":
		return said, camel
	case said != "" && !strings.EqualFold(said, installed):
		o.Fail(fmt.Errorf("the hook %.60q was given the payload of another event, %.60q: it isn't what this host is known to send", installed, said))
	}
	return installed, camel
}

func profile(spelt string) *shape.Profile {
	p := &shape.Profile{Host: "copilot", Kinds: kinds(), Show: show, MCP: mcp}
	if spelt == pascal {
		p.Result, p.Last = []string{"tool_result"}, []string{"last_assistant_message", "response"}
		return p
	}
	p.Session, p.AgentID, p.AgentType = []string{"sessionId"}, []string{"agentId"}, []string{"agentType", "agentName"}
	p.Call, p.Tool, p.Input = []string{"toolCallId"}, []string{"toolName"}, []string{"toolArgs", "toolInput", "arguments"}
	p.Result, p.PromptText, p.Last = []string{"toolResult"}, []string{"transformedPrompt", "prompt"}, []string{"response"}
	return p
}

func kinds() map[string]shape.Kind {
	return map[string]shape.Kind{
		"preToolUse": shape.Before, "preMcpToolCall": shape.Before, "postToolUse": shape.After, "postToolUseFailure": shape.Failure,
		"permissionRequest": shape.Permission, "userPromptSubmitted": shape.Prompt, "userPromptTransformed": shape.Prompt,
		"sessionStart": shape.SessionStart, "sessionEnd": shape.SessionEnd, "agentStop": shape.Stop, "subagentStart": shape.SubagentStart,
		"subagentStop": shape.SubagentStop, "preCompact": shape.CompactBefore, "notification": shape.Notification, "errorOccurred": shape.Notification,
		"PreToolUse": shape.Before, "PostToolUse": shape.After, "PostToolUseFailure": shape.Failure, "PermissionRequest": shape.Permission,
		"UserPromptSubmit": shape.Prompt, "SessionStart": shape.SessionStart, "SessionEnd": shape.SessionEnd, "Stop": shape.Stop,
		"SubagentStart": shape.SubagentStart, "SubagentStop": shape.SubagentStop, "PreCompact": shape.CompactBefore, "Notification": shape.Notification,
		"ErrorOccurred": shape.Notification,
	}
}

// finish adds what the profile doesn't know: the end of a session that went well, and an
// error's text, which is in an object.
func finish(e *adapter.Event, o *adapter.Object) {
	switch {
	case e.AHP.Type == ahp.SessionEnd:
		e.AHP.Outcome = ending(e.AHP.Reason)
	case strings.EqualFold(e.Row.Native, "errorOccurred"):
		kind := o.Text("errorContext", "error_context")
		e.AHP.Attention.Kind = "error"
		e.AHP.Attention.Title = []ahp.Part{ahp.TextPart("title", kind)}
		e.AHP.Attention.Message = []ahp.Part{ahp.TextPart("message", message(o.Raw("error")))}
	case e.AHP.Type == ahp.ContextCompactBefore && o.Has("customInstructions"):
		e.AHP.Instructions = []ahp.Part{ahp.TextPart("instructions", o.Text("customInstructions"))}
	case e.AHP.Type == ahp.ToolAfter && e.AHP.Error != nil && o.Raw("error").IsObject():
		text := message(o.Raw("error"))
		e.AHP.Items = ahp.MessageItems(ahp.TextMessage("result", ahp.RoleTool, text))
		e.AHP.Items.Messages[0].Synthesized = true
		if text = adapter.Clean(text); text != "" {
			e.AHP.Error.Message = text
		}
	}
}

func ending(reason string) string {
	switch reason {
	case "complete":
		return "completed"
	case "abort", "user_exit":
		return "cancelled"
	case "error":
		return "error"
	}
	return "unknown"
}

// message returns an error's text: the message of an object, or what it is.
func message(raw ahp.Raw) string {
	if raw.IsObject() {
		if o, err := adapter.ParseObject(raw); err == nil {
			if text := o.Text("message"); text != "" {
				return text
			}
		}
	}
	return adapter.Show(raw)
}

// mcp reads the server's name where the host says it. Elsewhere a tool's name is
// "server/tool", or "server-tool", in which the last hyphen is taken: no tool of
// Copilot's own has one, and servers have them more often than tools.
func mcp(o *adapter.Object, tool string) *ahp.MCP {
	if server := o.Text("serverName"); server != "" {
		m := adapter.InferMCP(server, tool)
		if m != nil {
			m.Provenance = "runtime"
		}
		return m
	}
	if server, name, is := strings.Cut(tool, "/"); is {
		return adapter.InferMCP(server, name)
	}
	if i := strings.LastIndexByte(tool, '-'); i > 0 {
		return adapter.InferMCP(tool[:i], tool[i+1:])
	}
	return nil
}

// show returns the text of a result.
func show(raw ahp.Raw) (text string, failed bool) {
	if raw.IsObject() {
		if o, err := adapter.ParseObject(raw); err == nil && o.Has("resultType", "result_type") {
			kind := o.Text("resultType", "result_type")
			return adapter.Show(o.Raw("textResultForLlm", "text_result_for_llm")), kind != "success"
		}
	}
	return adapter.Show(raw), false
}
