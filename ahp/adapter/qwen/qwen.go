// Package qwen is the hook dialect of Qwen Code (measured with 0.24.4).
//
// It guarantees that a refusal is exit code 2 with a document on standard error which
// says continue:false as well: without it a later hook that prints an allow would cancel
// the refusal. No answer ever permits, and none rewrites an input, which the host
// documents and doesn't do.
//
// Do not assume that every call passes here: the hook of a call comes after the host's
// own permission, and a call that this refuses is never told. Do not assume that the
// result of a failed call can be held back.
package qwen

import (
	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter"
	"github.com/abhed/abhed/ahp/adapter/shape"
)

// Host returns the dialect.
func Host() *adapter.Host {
	h := &adapter.Host{
		Name: "qwen", Title: "Qwen Code", Deny: adapter.Delivery{Exit: 2, Stream: adapter.Stderr}, Deduplicates: true,
		Rows: rows(), Write: write,
	}
	h.Read = func(in adapter.Input) (*adapter.Event, error) { return profile().Read(h, in) }
	return h
}

func profile() *shape.Profile {
	return &shape.Profile{
		Host: "qwen", MCP: shape.MCPByName, Strict: true, Show: shape.LLMContent, Others: shape.LLMOthers,
		// tool_use_id is made up for each event, but for a batch; tool_call_id is the model's.
		Call: []string{"tool_call_id", "tool_use_id"},
		Kinds: map[string]shape.Kind{
			"PreToolUse": shape.Before, "PostToolUse": shape.After, "PostToolUseFailure": shape.Failure, "PostToolBatch": shape.Batch,
			"PermissionRequest": shape.Permission, "UserPromptSubmit": shape.Prompt, "SessionStart": shape.SessionStart,
			"SessionEnd": shape.SessionEnd, "Stop": shape.Stop, "SubagentStart": shape.SubagentStart, "SubagentStop": shape.SubagentStop,
			"PreCompact": shape.CompactBefore, "PostCompact": shape.CompactAfter, "Notification": shape.Notification,
			"TodoCreated": shape.TaskCreated, "TodoCompleted": shape.TaskDone,
		},
	}
}

func rows() []adapter.Row {
	sure := func(e ahp.EffectType, how adapter.How, note string) adapter.Ability {
		return adapter.Ability{Effect: e, How: how, Level: adapter.Enforced, Note: note}
	}
	context := sure(ahp.EffectInject, adapter.Native, "the host escapes < and > in results")
	goOn := adapter.Ability{Effect: ahp.EffectFlow, Operation: ahp.FlowContinue, How: adapter.Native, Level: adapter.BestEffort, Note: "at most 8 in a row; measured with exit code 2, not with the document"}
	twice := "fires twice, when the list is checked and when it is written: both are told"
	return []adapter.Row{
		{Native: "PreToolUse", Type: ahp.ToolBefore, Note: "after the host's own permission, which may refuse before", Can: []adapter.Ability{
			sure(ahp.EffectDeny, adapter.Native, ""),
			{Effect: ahp.EffectAsk, How: adapter.Native, Level: adapter.BestEffort, Note: "refused in headless runs; the question is read in the package, not measured; a later hook's allow cancels it"},
			sure(ahp.EffectModify, adapter.Denies, "the host documents a rewrite and ignores it")}},
		{Native: "PermissionRequest", Type: ahp.ToolPermissionRequest, Deny: &adapter.Delivery{Stream: adapter.Stdout}, Can: []adapter.Ability{
			{Effect: ahp.EffectDeny, How: adapter.Native, Level: adapter.BestEffort, Note: "documented; measured is the opposite answer alone"},
			{Effect: ahp.EffectModify, How: adapter.Denies, Level: adapter.BestEffort}}},
		{Native: "PostToolUse", Type: ahp.ToolAfter, Can: []adapter.Ability{
			sure(ahp.EffectModify, adapter.Replaces, "the model sees the text as an error, and reads that the call was not run"), context}},
		{Native: "PostToolUseFailure", Type: ahp.ToolAfter},
		{Native: "PostToolBatch", Type: ahp.ToolBatchAfter},
		{Native: "UserPromptSubmit", Type: ahp.TurnStart, Note: "in a headless run it fires again after every round of results", Can: []adapter.Ability{
			sure(ahp.EffectDeny, adapter.Native, ""), sure(ahp.EffectModify, adapter.Denies, ""), context,
			{Effect: ahp.EffectFlow, Operation: ahp.FlowStop, How: adapter.Denies, Level: adapter.Enforced, Note: "a refused prompt makes no request to a model"}}},
		{Native: "SessionStart", Type: ahp.SessionStart, Can: []adapter.Ability{context}},
		{Native: "SessionEnd", Type: ahp.SessionEnd, Note: "doesn't fire in headless runs"},
		{Native: "Stop", Type: ahp.TurnFinishBefore, Continuations: 8, Can: []adapter.Ability{goOn}},
		{Native: "SubagentStart", Type: ahp.TaskChangeAfter},
		{Native: "SubagentStop", Type: ahp.TurnFinishBefore},
		{Native: "PreCompact", Type: ahp.ContextCompactBefore},
		{Native: "PostCompact", Type: ahp.ContextCompactAfter},
		{Native: "Notification", Type: ahp.UserAttention},
		{Native: "TodoCreated", Type: ahp.TaskChangeAfter, Note: twice},
		{Native: "TodoCompleted", Type: ahp.TaskChangeAfter, Note: twice},
	}
}
