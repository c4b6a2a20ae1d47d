package copilot

import (
	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter"
)

func can(e ahp.EffectType, how adapter.How, level adapter.Level, note string) adapter.Ability {
	return adapter.Ability{Effect: e, How: how, Level: level, Note: note}
}

func goOn(level adapter.Level, note string) adapter.Ability {
	return adapter.Ability{Effect: ahp.EffectFlow, Operation: ahp.FlowContinue, How: adapter.Native, Level: level, Note: note}
}

const (
	headless  = "refused in headless runs and by the cloud agent"
	inPackage = "read in the package, not measured"
)

// camelRows holds the events that AHP installs itself for: measured, but where a note
// says otherwise.
func camelRows() []adapter.Row {
	return []adapter.Row{
		{Native: "preToolUse", Type: ahp.ToolBefore, Can: []adapter.Ability{
			can(ahp.EffectDeny, adapter.Native, adapter.Enforced, ""),
			can(ahp.EffectAsk, adapter.Native, adapter.Enforced, headless),
			can(ahp.EffectModify, adapter.Native, adapter.Enforced, "a later hook that rewrites wins"),
			can(ahp.EffectInject, adapter.Native, adapter.Enforced, "")}},
		{Native: "preMcpToolCall", Type: ahp.ToolBefore, Note: "preToolUse has fired for the same call"},
		{Native: "postToolUse", Type: ahp.ToolAfter, Can: []adapter.Ability{
			can(ahp.EffectModify, adapter.Native, adapter.Enforced, "replaces the result that the model sees"),
			can(ahp.EffectInject, adapter.Native, adapter.Enforced, "")}},
		{Native: "postToolUseFailure", Type: ahp.ToolAfter, Can: []adapter.Ability{can(ahp.EffectInject, adapter.Native, adapter.BestEffort, inPackage)}},
		{Native: "permissionRequest", Type: ahp.ToolPermissionRequest, Can: []adapter.Ability{
			can(ahp.EffectDeny, adapter.Native, adapter.Enforced, "fires for calls that are allowed anyway, too"),
			can(ahp.EffectModify, adapter.Denies, adapter.Enforced, "")}},
		{Native: "userPromptSubmitted", Type: ahp.TurnStart, Can: []adapter.Ability{
			can(ahp.EffectDeny, adapter.Native, adapter.Enforced, "a headless run ends with exit code 1"),
			can(ahp.EffectModify, adapter.Native, adapter.Enforced, ""),
			can(ahp.EffectInject, adapter.Native, adapter.BestEffort, inPackage)}},
		{Native: "userPromptTransformed", Type: ahp.TurnStart, Note: "userPromptSubmitted has fired for the same prompt"},
		{Native: "sessionStart", Type: ahp.SessionStart, Can: []adapter.Ability{can(ahp.EffectInject, adapter.Native, adapter.BestEffort, inPackage)}},
		{Native: "sessionEnd", Type: ahp.SessionEnd},
		{Native: "agentStop", Type: ahp.TurnFinishBefore, Continuations: 8, Can: []adapter.Ability{goOn(adapter.Enforced, "at most 8 in a row")}},
		{Native: "subagentStart", Type: ahp.TaskChangeAfter},
		{Native: "subagentStop", Type: ahp.TurnFinishBefore, Continuations: 8, Can: []adapter.Ability{goOn(adapter.BestEffort, inPackage)}},
		{Native: "preCompact", Type: ahp.ContextCompactBefore},
		{Native: "notification", Type: ahp.UserAttention},
		{Native: "errorOccurred", Type: ahp.UserAttention},
	}
}

// pascalRows holds the events in Claude Code's words, with what both Copilot CLI and VS
// Code can do there. Nothing is enforced in VS Code that was seen, so that a level is of
// Copilot CLI and a note speaks of VS Code.
func pascalRows() []adapter.Row {
	const documented = "VS Code as documented"
	return []adapter.Row{
		{Native: "PreToolUse", Type: ahp.ToolBefore, Can: []adapter.Ability{
			can(ahp.EffectDeny, adapter.Native, adapter.Enforced, documented),
			can(ahp.EffectAsk, adapter.Native, adapter.BestEffort, headless),
			can(ahp.EffectModify, adapter.Native, adapter.BestEffort, "VS Code drops a rewrite that misses the tool's schema, and runs the call as it was"),
			can(ahp.EffectInject, adapter.Native, adapter.BestEffort, documented)}},
		{Native: "PostToolUse", Type: ahp.ToolAfter, Can: []adapter.Ability{can(ahp.EffectInject, adapter.Native, adapter.BestEffort, documented)}},
		{Native: "PostToolUseFailure", Type: ahp.ToolAfter},
		{Native: "PermissionRequest", Type: ahp.ToolPermissionRequest, Can: []adapter.Ability{
			can(ahp.EffectDeny, adapter.Native, adapter.BestEffort, "the document of this spelling isn't known: both are sent"),
			can(ahp.EffectModify, adapter.Denies, adapter.BestEffort, "")}},
		{Native: "UserPromptSubmit", Type: ahp.TurnStart, Can: []adapter.Ability{
			can(ahp.EffectDeny, adapter.Native, adapter.BestEffort, documented),
			can(ahp.EffectModify, adapter.Denies, adapter.BestEffort, "")}},
		{Native: "SessionStart", Type: ahp.SessionStart},
		{Native: "SessionEnd", Type: ahp.SessionEnd},
		{Native: "Stop", Type: ahp.TurnFinishBefore, Can: []adapter.Ability{goOn(adapter.BestEffort, "once: VS Code has no cap")}},
		{Native: "SubagentStart", Type: ahp.TaskChangeAfter},
		{Native: "SubagentStop", Type: ahp.TurnFinishBefore, Can: []adapter.Ability{goOn(adapter.BestEffort, "once: VS Code has no cap")}},
		{Native: "PreCompact", Type: ahp.ContextCompactBefore},
		{Native: "Notification", Type: ahp.UserAttention},
		{Native: "ErrorOccurred", Type: ahp.UserAttention},
	}
}
