// Package claudecode is the hook dialect of Claude Code (measured with 2.1.332 and
// 2.1.197).
//
// It guarantees that a refusal is exit code 2 with the host's own document on standard
// output and nothing on standard error: both versions block on the code whatever becomes
// of the document, and show the model its reason alone, where they put the whole command
// line of the hook before what comes on standard error (measured). No answer holds a
// permission: "allow" is never written.
//
// Do not assume that every way to run something passes here: a command in the text of a
// skill has an event of its own, and a call of an unknown tool has none.
package claudecode

import (
	"strings"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter"
	"github.com/abhed/abhed/ahp/adapter/shape"
)

// Host returns the dialect.
func Host() *adapter.Host {
	h := &adapter.Host{
		Name: "claude-code", Title: "Claude Code", Deny: adapter.Delivery{Exit: 2, Stream: adapter.Stdout},
		Deduplicates: true, Rows: rows(), Write: write,
	}
	h.Read = func(in adapter.Input) (*adapter.Event, error) { return read(h, in) }
	return h
}

func read(h *adapter.Host, in adapter.Input) (*adapter.Event, error) {
	e, err := profile().Read(h, in)
	if err != nil {
		return nil, err
	}
	if o, err := adapter.ParseObject(in.Data); err == nil {
		remember(e, o.Raw("tool_response"))
	}
	return e, nil
}

func profile() *shape.Profile {
	return &shape.Profile{
		Host: "claude-code", MCP: mcp, Show: show, Others: shape.MCPOthers, Strict: true,
		Kinds: map[string]shape.Kind{
			"PreToolUse": shape.Before, "PreSkillShellCommand": shape.Before, "PostToolUse": shape.After, "PostToolUseFailure": shape.Failure,
			"PostToolBatch": shape.Batch, "PermissionRequest": shape.Permission, "UserPromptSubmit": shape.Prompt,
			"SessionStart": shape.SessionStart, "SessionEnd": shape.SessionEnd, "Stop": shape.Stop, "SubagentStart": shape.SubagentStart,
			"SubagentStop": shape.SubagentStop, "PreCompact": shape.CompactBefore, "PostCompact": shape.CompactAfter,
			"Notification": shape.Notification, "TaskCreated": shape.TaskCreated, "TaskCompleted": shape.TaskDone,
		},
	}
}

// mcp reads the server's name where the host says it, and else from the tool's name.
func mcp(o *adapter.Object, tool string) *ahp.MCP {
	rest, is := strings.CutPrefix(tool, "mcp__")
	if !is {
		return nil
	}
	if server := o.Object("mcp_server").Text("name"); server != "" {
		if name, is := strings.CutPrefix(rest, server+"__"); is {
			m := adapter.InferMCP(server, name)
			if m != nil {
				m.Provenance = "runtime"
			}
			return m
		}
	}
	return shape.MCPByName(o, tool)
}

func rows() []adapter.Row {
	sure := func(e ahp.EffectType, how adapter.How, note string) adapter.Ability {
		return adapter.Ability{Effect: e, How: how, Level: adapter.Enforced, Note: note}
	}
	stop := adapter.Ability{Effect: ahp.EffectFlow, Operation: ahp.FlowStop, How: adapter.Native, Level: adapter.Enforced}
	goOn := adapter.Ability{Effect: ahp.EffectFlow, Operation: ahp.FlowContinue, How: adapter.Native, Level: adapter.Enforced, Note: "at most 8 in a row"}
	notice := sure(ahp.EffectMessage, adapter.Native, "")
	context := adapter.Ability{Effect: ahp.EffectInject, How: adapter.Native, Level: adapter.Enforced}
	replaced := sure(ahp.EffectModify, adapter.Native, "measured for Bash and the tools of MCP servers; the result of another tool is replaced in its own form")
	replaced.Level = adapter.BestEffort
	before := []adapter.Ability{
		sure(ahp.EffectDeny, adapter.Native, ""), sure(ahp.EffectAsk, adapter.Native, "refused in headless runs"),
		sure(ahp.EffectModify, adapter.Native, "another hook that rewrites and ends later wins; beside a question it is documented, not measured"), context, notice, stop,
	}
	return []adapter.Row{
		{Native: "PreToolUse", Type: ahp.ToolBefore, Can: before},
		{Native: "PreSkillShellCommand", Type: ahp.ToolBefore, Deny: &adapter.Delivery{Exit: 2, Stream: adapter.Stderr}, Can: []adapter.Ability{
			{Effect: ahp.EffectDeny, How: adapter.Native, Level: adapter.BestEffort, Note: "read in the package, not measured"},
			{Effect: ahp.EffectAsk, How: adapter.Denies, Level: adapter.BestEffort}, {Effect: ahp.EffectModify, How: adapter.Denies, Level: adapter.BestEffort},
		}},
		{Native: "PostToolUse", Type: ahp.ToolAfter, Can: []adapter.Ability{replaced, context, notice, stop}},
		{Native: "PostToolUseFailure", Type: ahp.ToolAfter, Can: []adapter.Ability{context, notice}},
		{Native: "PostToolBatch", Type: ahp.ToolBatchAfter, Can: []adapter.Ability{stop, notice}},
		{Native: "PermissionRequest", Type: ahp.ToolPermissionRequest, Deny: &adapter.Delivery{Stream: adapter.Stdout}, Can: []adapter.Ability{
			sure(ahp.EffectDeny, adapter.Native, "with the dialect's own document: exit code 2 leaves the normal prompt"), sure(ahp.EffectModify, adapter.Denies, "")}},
		{Native: "UserPromptSubmit", Type: ahp.TurnStart, Can: []adapter.Ability{
			sure(ahp.EffectDeny, adapter.Native, ""), sure(ahp.EffectModify, adapter.Denies, ""), context, notice, stop}},
		{Native: "SessionStart", Type: ahp.SessionStart, Can: []adapter.Ability{context, notice}},
		{Native: "SessionEnd", Type: ahp.SessionEnd},
		{Native: "Stop", Type: ahp.TurnFinishBefore, Continuations: 8, Can: []adapter.Ability{goOn, notice}},
		{Native: "SubagentStart", Type: ahp.TaskChangeAfter},
		{Native: "SubagentStop", Type: ahp.TurnFinishBefore, Continuations: 8, Can: []adapter.Ability{goOn}},
		{Native: "PreCompact", Type: ahp.ContextCompactBefore},
		{Native: "PostCompact", Type: ahp.ContextCompactAfter},
		{Native: "Notification", Type: ahp.UserAttention},
		{Native: "TaskCreated", Type: ahp.TaskChangeAfter},
		{Native: "TaskCompleted", Type: ahp.TaskChangeAfter},
	}
}
