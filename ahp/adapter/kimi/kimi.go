// Package kimi is the hook dialect of Kimi Code (measured with 2.1.0, and read in its
// package) and of the Kimi CLI before it (documented).
//
// It guarantees that a refusal is exit code 2 with the reason on standard error and
// nothing on standard output.
//
// Do not assume that a crash or a time-out of a hook refuses anything: both let the call
// run. Do not assume that a result is whole: the host gives its first 2,000 characters.
// All events but PreToolUse, UserPromptSubmit and Stop are told and not asked about.
package kimi

import (
	"strings"
	"unicode/utf16"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter"
	"github.com/abhed/abhed/ahp/adapter/shape"
)

// Host returns the dialect.
func Host() *adapter.Host {
	h := &adapter.Host{
		Name: "kimi", Title: "Kimi Code", Deny: adapter.Delivery{Exit: 2, Stream: adapter.Stderr},
		Deduplicates: true, Rows: rows(), Write: write,
	}
	h.Read = func(in adapter.Input) (*adapter.Event, error) { return read(h, in) }
	return h
}

// shown is how much of a result the host gives, in UTF-16 units.
const shown = 2000

func read(h *adapter.Host, in adapter.Input) (*adapter.Event, error) {
	o, err := adapter.ParseObject(in.Data)
	if err != nil {
		return nil, err
	}
	e, err := profile().ReadAs(h, in, o, o.Need("hook_event_name"))
	if err != nil {
		return nil, err
	}
	switch e.Row.Native {
	case "PostToolUse":
		if len(utf16.Encode([]rune(o.Text("tool_output")))) >= shown {
			e.AHP.Gaps = append(e.AHP.Gaps, ahp.Gap{Path: "items", Reason: "the host's hooks are given the first 2,000 characters of a result"})
		}
	case "UserPromptSubmit":
		_, others := prompt(o)
		e.AHP.Gaps = shape.NotText(others)
	}
	return e, nil
}

func profile() *shape.Profile {
	return &shape.Profile{
		Host: "kimi", Call: []string{"tool_call_id"}, Result: []string{"tool_output", "tool_response"}, Show: show,
		// The turn's id is a number, and agent_id is there for the main agent too.
		Turn: []string{"prompt_id"}, AgentID: []string{"agent_name"}, AgentType: []string{"agent_name"},
		Last: []string{"response", "last_assistant_message"}, Prompt: text, Own: own, MCP: mcp, Strict: true,
		Kinds: map[string]shape.Kind{
			"PreToolUse": shape.Before, "PostToolUse": shape.After, "PostToolUseFailure": shape.Failure,
			"PermissionRequest": shape.Permission, "PermissionResult": shape.Own, "UserPromptSubmit": shape.Prompt,
			"Stop": shape.Stop, "StopFailure": shape.Own, "Interrupt": shape.Own,
			"SessionStart": shape.SessionStart, "SessionEnd": shape.SessionEnd,
			"SubagentStart": shape.SubagentStart, "SubagentStop": shape.SubagentStop,
			"PreCompact": shape.CompactBefore, "PostCompact": shape.CompactAfter, "Notification": shape.Notification,
		},
	}
}

// show returns the text of a result; an error is an object with a message.
func show(result ahp.Raw) (string, bool) {
	if o, err := adapter.ParseObject(result); err == nil {
		if m := o.Text("message"); m != "" {
			return m, false
		}
	}
	return adapter.Show(result), false
}

// prompt reads a person's text, and how many parts of it aren't: a string before Kimi
// Code, a list of parts since.
func prompt(o *adapter.Object) (text string, others int) {
	if raw := o.Raw("prompt"); len(raw) > 0 && raw[0] == '[' {
		return shape.Texts(o.Objects("prompt"))
	}
	return o.Text("prompt"), 0
}

func text(o *adapter.Object) string {
	text, _ := prompt(o)
	return text
}

// mcp reads the server from the tool's name.
func mcp(_ *adapter.Object, tool string) *ahp.MCP {
	rest, is := strings.CutPrefix(tool, "mcp__")
	if !is {
		return nil
	}
	server, name, _ := strings.Cut(rest, "__")
	return adapter.InferMCP(server, name)
}

// own reads the events that other hosts of this form don't have.
func own(native string, o *adapter.Object, b *adapter.Base, data []byte) *ahp.Event {
	switch native {
	case "PermissionResult":
		if !o.Has("tool_input") {
			o.Need("tool_input")
		}
		c := adapter.Call{ID: o.Text("tool_call_id"), Name: o.Need("tool_name"), Input: o.Input("tool_input")}
		c.MCP = mcp(o, c.Name)
		return b.Resolved(c, o.Need("decision") == "approved", "user")
	case "StopFailure":
		return b.TurnEnd("failed", o.Text("error_message"), data)
	}
	return b.TurnEnd("cancelled", "", data)
}

func rows() []adapter.Row {
	can := func(e ahp.EffectType, how adapter.How, note string) adapter.Ability {
		return adapter.Ability{Effect: e, How: how, Level: adapter.Enforced, Note: note}
	}
	return []adapter.Row{
		{Native: "PreToolUse", Type: ahp.ToolBefore, Can: []adapter.Ability{
			can(ahp.EffectDeny, adapter.Native, ""), can(ahp.EffectAsk, adapter.Denies, "the host reads it and runs the call"),
			can(ahp.EffectModify, adapter.Denies, "the host reads it and runs the original"),
		}},
		{Native: "PostToolUse", Type: ahp.ToolAfter, Note: "the host doesn't wait for it, and gives the first 2,000 characters of a result"},
		{Native: "PostToolUseFailure", Type: ahp.ToolAfter, Note: "the host doesn't wait for it; a call that was refused has one too"},
		{Native: "PermissionRequest", Type: ahp.ToolPermissionRequest, Note: "the host doesn't wait for it"},
		{Native: "PermissionResult", Type: ahp.ToolPermissionResolved},
		{Native: "UserPromptSubmit", Type: ahp.TurnStart, Can: []adapter.Ability{
			can(ahp.EffectDeny, adapter.Native, ""), can(ahp.EffectModify, adapter.Denies, ""), can(ahp.EffectInject, adapter.Native, "as a message of its own"),
		}},
		{Native: "Stop", Type: ahp.TurnFinishBefore, Can: []adapter.Ability{{
			Effect: ahp.EffectFlow, Operation: ahp.FlowContinue, How: adapter.Native, Level: adapter.Enforced, Note: "once a turn, the host sees to it",
		}}},
		{Native: "StopFailure", Type: ahp.TurnEnd},
		{Native: "Interrupt", Type: ahp.TurnEnd},
		{Native: "SessionStart", Type: ahp.SessionStart, Note: "what a hook says is dropped"},
		{Native: "SessionEnd", Type: ahp.SessionEnd, Note: "not seen in a headless run"},
		{Native: "SubagentStart", Type: ahp.TaskChangeAfter},
		{Native: "SubagentStop", Type: ahp.TurnFinishBefore, Note: "the host doesn't wait for it"},
		{Native: "PreCompact", Type: ahp.ContextCompactBefore, Note: "what a hook says is dropped"},
		{Native: "PostCompact", Type: ahp.ContextCompactAfter},
		{Native: "Notification", Type: ahp.UserAttention},
	}
}

// answer is what the host reads on standard output after exit code 0.
type answer struct {
	Message  string    `json:"message,omitzero"`
	Specific *specific `json:"hookSpecificOutput,omitzero"`
}

type specific struct {
	Permission string `json:"permissionDecision"`
	Reason     string `json:"permissionDecisionReason"`
}

// write says a verdict. To the end of a turn a refusal means one more step, and the host
// reads it in the one form that it has for all events.
func write(_ *adapter.Event, v *adapter.Verdict) ([]byte, error) {
	switch {
	case v.Deny != "":
		return []byte(adapter.Reason(v.Deny)), nil
	case v.Continue != "":
		return adapter.Encode(answer{Specific: &specific{"deny", v.Continue}})
	case len(v.Context) > 0:
		return adapter.Encode(answer{Message: strings.Join(v.Context, "\n")})
	}
	return nil, nil
}
