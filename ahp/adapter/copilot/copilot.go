// Package copilot is the hook dialect of GitHub Copilot, which is three: the camelCase
// and the PascalCase events of Copilot CLI (measured with 1.0.102), and those of VS
// Code, which reads the same files (as documented).
//
// It guarantees that a refusal is exit code 0 and one JSON document, because any other
// exit code loses the reason, that the document is of the dialect that the event was
// written in, and that a refusal of an event that couldn't be read holds both dialects'
// members, which either blocks on. "allow" is never written: here it would overrule the
// host's own --deny-tool.
//
// Do not assume that a call has an id (only preMcpToolCall has one, and VS Code), that
// PascalCase means Claude Code's members (the input keeps Copilot's), or that a
// PascalCase event can do what its camelCase sibling can.
package copilot

import (
	"strings"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter"
	"github.com/abhed/abhed/ahp/adapter/shape"
)

// The dialects, as Event.Detail has them.
const (
	camel  = "camelCase"
	pascal = "PascalCase"
	vscode = "VS Code"
)

// Host returns the dialects.
func Host() *adapter.Host {
	h := &adapter.Host{
		Name: "copilot", Title: "GitHub Copilot", Deny: adapter.Delivery{Stream: adapter.Stdout},
		Markers: []string{"COPILOT_CLI"}, Rows: append(camelRows(), pascalRows()...), Write: write,
	}
	h.Read = func(in adapter.Input) (*adapter.Event, error) { return read(h, in) }
	return h
}

// Guest returns the dialects as Copilot CLI and VS Code speak them when they run a line
// that was written for another agent, whose refusals are delivered by own.
//
// Every refusal is a document on standard output with exit code 0, which any host's
// wrapper passes on as an answer, and which PascalCase reads (hookSpecificOutput,
// measured). A request for permission is the exception: which document its PascalCase
// form reads isn't known, and any exit code but 0 refuses it (measured with 1 and 2), so
// that own is used there, with the reason alone.
func Guest(own adapter.Delivery) *adapter.Host {
	h := Host()
	for i := range h.Rows {
		if h.Rows[i].Type == ahp.ToolPermissionRequest {
			h.Rows[i].Deny = &own
		}
	}
	h.Write = func(e *adapter.Event, v *adapter.Verdict) ([]byte, error) {
		if v.Deny != "" && e.Row.Type == ahp.ToolPermissionRequest {
			return []byte(v.Deny), nil
		}
		return write(e, v)
	}
	return h
}

// read finds the dialect and the event's name, and reads the rest by the dialect's
// profile.
func read(h *adapter.Host, in adapter.Input) (*adapter.Event, error) {
	o, err := adapter.ParseObject(in.Data)
	if err != nil {
		return nil, err
	}
	native, dialect := name(o, in.Native)
	if err := o.Err(); err != nil {
		return nil, err
	}
	if native == "" {
		return nil, adapter.Unknown(native)
	}
	e, err := profile(dialect).ReadAs(h, in, o, native)
	if err != nil {
		return nil, err
	}
	e.Detail = dialect
	finish(e, o)
	return e, o.Err()
}

// name returns the native event and its dialect. A camelCase payload doesn't say its
// event, but for two kinds that say it in another spelling: what they say has to be what
// the installed line says. A PascalCase payload of those two kinds is camelCase too.
func name(o *adapter.Object, installed string) (native, dialect string) {
	if o.Has("session_id") {
		return o.Text("hook_event_name"), pascal
	}
	o.Need("sessionId")
	if o.Has("hookEventName") {
		return o.Text("hookEventName"), vscode
	}
	said := o.Text("hookName", "hook_event_name")
	switch {
	case installed == "":
		return said, camel
	case said != "" && !strings.EqualFold(said, installed):
		return "", camel
	}
	return installed, camel
}

func profile(dialect string) *shape.Profile {
	p := &shape.Profile{Host: "copilot", Kinds: kinds(), Show: show}
	switch dialect {
	case camel:
		p.Session, p.AgentID, p.AgentType = []string{"sessionId"}, []string{"agentId"}, []string{"agentType", "agentName"}
		p.Call, p.Tool, p.Input = []string{"toolCallId"}, []string{"toolName"}, []string{"toolArgs", "toolInput", "arguments"}
		p.Result, p.PromptText, p.Last = []string{"toolResult"}, []string{"transformedPrompt", "prompt"}, []string{"response"}
		p.MCP = mcp
	case pascal:
		p.Result, p.Last, p.MCP = []string{"tool_result"}, []string{"last_assistant_message", "response"}, mcp
	case vscode:
		p.Session = []string{"sessionId"}
	}
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

// show returns the text of a result, which VS Code gives as it is.
func show(raw ahp.Raw) (text string, failed bool) {
	if raw.IsObject() {
		if o, err := adapter.ParseObject(raw); err == nil && o.Has("resultType", "result_type") {
			kind := o.Text("resultType", "result_type")
			return adapter.Show(o.Raw("textResultForLlm", "text_result_for_llm")), kind != "success"
		}
	}
	return adapter.Show(raw), false
}
