package copilot

import (
	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter"
)

func can(e ahp.EffectType, how adapter.How, level adapter.Level, note string) adapter.Ability {
	return adapter.Ability{Effect: e, How: how, Level: level, Note: note}
}

func sure(e ahp.EffectType, note string) adapter.Ability {
	return can(e, adapter.Native, adapter.Enforced, note)
}

func goOn(level adapter.Level, note string) adapter.Ability {
	return adapter.Ability{Effect: ahp.EffectFlow, Operation: ahp.FlowContinue, How: adapter.Native, Level: level, Note: note}
}

// rows holds each event by both of its names, which can do the same (measured in both,
// but for the end of a sub-agent).
func rows() []adapter.Row {
	const headless = "refused in headless runs and by the cloud agent"
	context := sure(ahp.EffectInject, "")
	both := []struct {
		pascal string
		row    adapter.Row
	}{
		{"PreToolUse", adapter.Row{Native: "preToolUse", Type: ahp.ToolBefore, Can: []adapter.Ability{
			sure(ahp.EffectDeny, ""), sure(ahp.EffectAsk, headless), sure(ahp.EffectModify, "a later hook that rewrites wins"), context}}},
		{"", adapter.Row{Native: "preMcpToolCall", Type: ahp.ToolBefore, Note: "preToolUse has fired for the same call"}},
		{"PostToolUse", adapter.Row{Native: "postToolUse", Type: ahp.ToolAfter, Can: []adapter.Ability{
			sure(ahp.EffectModify, "replaces the result that the model sees"), context}}},
		{"PostToolUseFailure", adapter.Row{Native: "postToolUseFailure", Type: ahp.ToolAfter, Can: []adapter.Ability{context}}},
		{"PermissionRequest", adapter.Row{Native: "permissionRequest", Type: ahp.ToolPermissionRequest, Can: []adapter.Ability{
			sure(ahp.EffectDeny, "fires for calls that are allowed anyway, too"), can(ahp.EffectModify, adapter.Denies, adapter.Enforced, "")}}},
		{"UserPromptSubmit", adapter.Row{Native: "userPromptSubmitted", Type: ahp.TurnStart, Can: []adapter.Ability{
			sure(ahp.EffectDeny, "a headless run ends with exit code 1"), sure(ahp.EffectModify, ""), context}}},
		{"", adapter.Row{Native: "userPromptTransformed", Type: ahp.TurnStart, Note: "userPromptSubmitted has fired for the same prompt"}},
		{"SessionStart", adapter.Row{Native: "sessionStart", Type: ahp.SessionStart, Can: []adapter.Ability{context}}},
		{"SessionEnd", adapter.Row{Native: "sessionEnd", Type: ahp.SessionEnd}},
		{"Stop", adapter.Row{Native: "agentStop", Type: ahp.TurnFinishBefore, Continuations: 8, Can: []adapter.Ability{
			goOn(adapter.Enforced, "at most 8 in a row")}}},
		{"SubagentStart", adapter.Row{Native: "subagentStart", Type: ahp.TaskChangeAfter}},
		{"SubagentStop", adapter.Row{Native: "subagentStop", Type: ahp.TurnFinishBefore, Continuations: 8, Can: []adapter.Ability{
			goOn(adapter.BestEffort, "read in the package, not measured")}}},
		{"PreCompact", adapter.Row{Native: "preCompact", Type: ahp.ContextCompactBefore}},
		{"Notification", adapter.Row{Native: "notification", Type: ahp.UserAttention}},
		{"ErrorOccurred", adapter.Row{Native: "errorOccurred", Type: ahp.UserAttention}},
	}
	var out, second []adapter.Row
	for _, b := range both {
		out = append(out, b.row)
		if b.pascal != "" {
			b.row.Native = b.pascal
			second = append(second, b.row)
		}
	}
	return append(out, second...)
}

// editorRows holds the events of VS Code.
func editorRows() []adapter.Row {
	const documented = "documented, not measured"
	try := func(e ahp.EffectType, how adapter.How, note string) adapter.Ability {
		return can(e, how, adapter.BestEffort, note)
	}
	stop := adapter.Ability{Effect: ahp.EffectFlow, Operation: ahp.FlowStop, How: adapter.Native, Level: adapter.BestEffort, Note: documented}
	deny, context := try(ahp.EffectDeny, adapter.Native, documented), try(ahp.EffectInject, adapter.Native, documented)
	once := goOn(adapter.BestEffort, "once: no cap is documented")
	return []adapter.Row{
		{Native: "PreToolUse", Type: ahp.ToolBefore, Can: []adapter.Ability{
			deny, try(ahp.EffectAsk, adapter.Native, documented),
			try(ahp.EffectModify, adapter.Denies, "a rewrite that misses the tool's schema is dropped and the call runs as it was"), context}},
		{Native: "PostToolUse", Type: ahp.ToolAfter, Can: []adapter.Ability{context, stop}},
		{Native: "UserPromptSubmit", Type: ahp.TurnStart, Can: []adapter.Ability{deny, try(ahp.EffectModify, adapter.Denies, "")}},
		{Native: "SessionStart", Type: ahp.SessionStart, Can: []adapter.Ability{context}},
		{Native: "Stop", Type: ahp.TurnFinishBefore, Can: []adapter.Ability{once}},
		{Native: "SubagentStart", Type: ahp.TaskChangeAfter},
		{Native: "SubagentStop", Type: ahp.TurnFinishBefore, Can: []adapter.Ability{once}},
		{Native: "PreCompact", Type: ahp.ContextCompactBefore},
	}
}
