// Package codex is the hook dialect of the OpenAI Codex CLI (measured with 0.171.0).
//
// It guarantees that a refusal is exit code 2 with words on standard error and nothing
// on standard output, and that an answer holds only members that the host's closed
// schema for the event has: one it doesn't know voids the whole answer, and the call
// runs. "allow" is written in one place alone, beside a rewritten input, which the host
// doesn't take without it; alone it is void.
//
// Do not assume that every command passes here: what is written into a running shell
// (write_stdin) fires no hook, and a command's folder, shell and escalation aren't
// told.
package codex

import (
	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter"
	"github.com/abhed/abhed/ahp/adapter/shape"
)

// Host returns the dialect.
func Host() *adapter.Host {
	h := &adapter.Host{
		Name: "codex", Title: "Codex", Deny: adapter.Delivery{Exit: 2, Stream: adapter.Stderr}, Rows: rows(), Write: write,
	}
	h.Read = func(in adapter.Input) (*adapter.Event, error) { return profile().Read(h, in) }
	return h
}

func profile() *shape.Profile {
	return &shape.Profile{
		Host: "codex", MCP: shape.MCPByName, Strict: true, Own: own, Show: shape.MCPContent, Others: shape.MCPOthers,
		Kinds: map[string]shape.Kind{
			"PreToolUse": shape.Before, "PostToolUse": shape.After, "PermissionRequest": shape.Permission, "UserPromptSubmit": shape.Prompt,
			"SessionStart": shape.SessionStart, "SessionEnd": shape.SessionEnd, "Stop": shape.Stop, "SubagentStart": shape.SubagentStart,
			"SubagentStop": shape.SubagentStop, "PreCompact": shape.CompactBefore, "PostCompact": shape.CompactAfter,
			"PreModelRequest": shape.Own, "PostModelRequest": shape.Own, "Interrupt": shape.Own,
		},
	}
}

// own reads the events that only this host has.
func own(native string, o *adapter.Object, b *adapter.Base, data []byte) *ahp.Event {
	m := adapter.ModelCall{Model: o.Text("model"), Attempt: o.Text("request_id"), Number: o.Count("attempt_number")}
	switch native {
	case "PreModelRequest":
		return b.ModelRequest(m, data)
	case "PostModelRequest":
		return b.ModelResponse(m, o.Text("status"), data)
	}
	return b.TurnEnd("cancelled", "", data)
}

func rows() []adapter.Row {
	sure := func(e ahp.EffectType, how adapter.How, note string) adapter.Ability {
		return adapter.Ability{Effect: e, How: how, Level: adapter.Enforced, Note: note}
	}
	goOn := adapter.Ability{Effect: ahp.EffectFlow, Operation: ahp.FlowContinue, How: adapter.Native, Level: adapter.Enforced, Note: "the host has no limit of its own: once in a row here"}
	likely := goOn
	likely.Level, likely.Note = adapter.BestEffort, "as at Stop, not measured here"
	context := sure(ahp.EffectInject, adapter.Native, "reaches the model as a developer's message")
	unsure := adapter.Ability{Effect: ahp.EffectInject, How: adapter.Native, Level: adapter.BestEffort, Note: "measured at other events alone"}
	return []adapter.Row{
		{Native: "PreToolUse", Type: ahp.ToolBefore, Can: []adapter.Ability{
			sure(ahp.EffectDeny, adapter.Native, ""), sure(ahp.EffectAsk, adapter.Denies, "the host would run the call: it doesn't know the answer"),
			sure(ahp.EffectModify, adapter.Native, "another hook that rewrites and ends later wins; whether the host still asks the person then isn't measured"), context}},
		{Native: "PermissionRequest", Type: ahp.ToolPermissionRequest, Can: []adapter.Ability{
			sure(ahp.EffectDeny, adapter.Native, "codex exec never asks, and fires no such event"), sure(ahp.EffectModify, adapter.Denies, "")}},
		{Native: "PostToolUse", Type: ahp.ToolAfter, Can: []adapter.Ability{
			sure(ahp.EffectModify, adapter.Replaces, "the model sees the text instead of the result"), unsure}},
		{Native: "UserPromptSubmit", Type: ahp.TurnStart, Can: []adapter.Ability{
			sure(ahp.EffectDeny, adapter.Native, ""), sure(ahp.EffectModify, adapter.Denies, ""), context,
			{Effect: ahp.EffectFlow, Operation: ahp.FlowStop, How: adapter.Denies, Level: adapter.Enforced, Note: "a refused prompt ends the turn before any request to a model"}}},
		{Native: "SessionStart", Type: ahp.SessionStart, Can: []adapter.Ability{unsure}},
		{Native: "SessionEnd", Type: ahp.SessionEnd},
		{Native: "Stop", Type: ahp.TurnFinishBefore, Continuations: 1, Can: []adapter.Ability{goOn}},
		{Native: "SubagentStart", Type: ahp.TaskChangeAfter},
		{Native: "SubagentStop", Type: ahp.TurnFinishBefore, Continuations: 1, Can: []adapter.Ability{likely}},
		{Native: "PreCompact", Type: ahp.ContextCompactBefore, Note: "the host can end its whole run here, and nothing less"},
		{Native: "PostCompact", Type: ahp.ContextCompactAfter},
		{Native: "PreModelRequest", Type: ahp.ModelRequestBefore, Note: "the host waits for the hook and does not heed it"},
		{Native: "PostModelRequest", Type: ahp.ModelResponseAfter},
		{Native: "Interrupt", Type: ahp.TurnEnd},
	}
}
