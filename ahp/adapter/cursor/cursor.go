// Package cursor is the hook dialect of Cursor, as documented; it wasn't measured.
//
// It guarantees that a refusal is a document with the reason for the person and for the
// model, that nothing is asked where the host ignores a question, and that the contents of
// a file that is about to be read stay out of the event and of what may be passed on as
// the native one.
//
// Do not assume one event per action: a command fires preToolUse and beforeShellExecution,
// a call of an MCP server preToolUse and beforeMCPExecution, and only the first has the
// call's id. Do not assume that a hook which was found in another agent's files reads this
// dialect's answers: see Guest.
package cursor

import (
	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter"
)

// Host returns the dialect.
func Host() *adapter.Host {
	h := &adapter.Host{
		Name: "cursor", Title: "Cursor", Deny: adapter.Delivery{Stream: adapter.Stdout},
		Markers: []string{"CURSOR_VERSION"}, Rows: rows(), Write: write,
	}
	h.Read = func(in adapter.Input) (*adapter.Event, error) { return read(h, in, nil) }
	return h
}

// Guest returns the dialect as Cursor speaks it when it runs a line out of Claude Code's
// files.
//
// A refusal is exit code 2 with the reason on standard error there: that is how those
// files' own host is refused, so that the line can deliver it, and the one answer that
// Cursor is known to take in either dialect. Which documents it reads from such a line
// isn't known: nothing else is answered, and what would be is refused or not offered. An
// event may have either host's name.
func Guest() *adapter.Host {
	h := Host()
	h.Deny = adapter.Delivery{Exit: 2, Stream: adapter.Stderr}
	for i := range h.Rows {
		r := &h.Rows[i]
		if !r.Denies() {
			r.Can = nil
			continue
		}
		var kept []adapter.Ability
		for _, a := range r.Can {
			switch a.Effect {
			case ahp.EffectDeny:
				kept = append(kept, a)
			case ahp.EffectAsk, ahp.EffectModify:
				a.How, a.Note = adapter.Denies, ""
				kept = append(kept, a)
			}
		}
		r.Can = kept
	}
	h.Read = func(in adapter.Input) (*adapter.Event, error) { return read(h, in, claude()) }
	h.Write = func(_ *adapter.Event, v *adapter.Verdict) ([]byte, error) {
		if v.Deny == "" {
			return nil, nil
		}
		return []byte(adapter.Reason(v.Deny)), nil
	}
	return h
}

// claude holds Cursor's events by Claude Code's names.
func claude() map[string]string {
	return map[string]string{
		"PreToolUse": "preToolUse", "PostToolUse": "postToolUse", "PostToolUseFailure": "postToolUseFailure", "UserPromptSubmit": "beforeSubmitPrompt",
		"SessionStart": "sessionStart", "SessionEnd": "sessionEnd", "Stop": "stop", "SubagentStart": "subagentStart", "SubagentStop": "subagentStop", "PreCompact": "preCompact",
	}
}

func can(e ahp.EffectType, how adapter.How, note string) adapter.Ability {
	return adapter.Ability{Effect: e, How: how, Level: adapter.BestEffort, Note: note}
}

func rows() []adapter.Row {
	const documented, twice = "documented, not measured", "preToolUse has fired for the same call"
	deny := can(ahp.EffectDeny, adapter.Native, documented)
	asked := func(how adapter.How, note string) []adapter.Ability {
		return []adapter.Ability{deny, can(ahp.EffectAsk, how, note), can(ahp.EffectModify, adapter.Denies, "")}
	}
	context := can(ahp.EffectInject, adapter.Native, documented)
	goOn := adapter.Ability{Effect: ahp.EffectFlow, Operation: ahp.FlowContinue, How: adapter.Native, Level: adapter.BestEffort, Note: "at most 5 in a row, as documented"}
	return []adapter.Row{
		{Native: "sessionStart", Type: ahp.SessionStart, Can: []adapter.Ability{context}},
		{Native: "sessionEnd", Type: ahp.SessionEnd},
		{Native: "beforeSubmitPrompt", Type: ahp.TurnStart, Can: []adapter.Ability{deny, can(ahp.EffectModify, adapter.Denies, "")}, Note: "not fired in headless runs"},
		{Native: "preToolUse", Type: ahp.ToolBefore, Can: []adapter.Ability{
			deny, can(ahp.EffectAsk, adapter.Denies, "a question is ignored here"), can(ahp.EffectModify, adapter.Native, documented)}},
		{Native: "beforeShellExecution", Type: ahp.ToolBefore, Can: asked(adapter.Native, documented), Note: twice},
		{Native: "beforeMCPExecution", Type: ahp.ToolBefore, Can: asked(adapter.Native, documented), Note: twice},
		{Native: "beforeReadFile", Type: ahp.ToolBefore, Can: asked(adapter.Denies, "")},
		{Native: "postToolUse", Type: ahp.ToolAfter, Can: []adapter.Ability{context}, Note: "only the result of an MCP tool could be replaced"},
		{Native: "postToolUseFailure", Type: ahp.ToolAfter},
		{Native: "afterShellExecution", Type: ahp.ToolAfter, Note: "postToolUse fires for the same call"},
		{Native: "afterMCPExecution", Type: ahp.ToolAfter, Note: "postToolUse fires for the same call"},
		{Native: "afterFileEdit", Type: ahp.ToolAfter, Note: "postToolUse fires for the same call"},
		{Native: "subagentStart", Type: ahp.TaskChangeBefore, Can: []adapter.Ability{deny}},
		{Native: "subagentStop", Type: ahp.TurnFinishBefore, Continuations: 5, Can: []adapter.Ability{goOn}},
		{Native: "preCompact", Type: ahp.ContextCompactBefore},
		{Native: "stop", Type: ahp.TurnFinishBefore, Continuations: 5, Can: []adapter.Ability{goOn}},
		{Native: "afterAgentResponse", Type: ahp.TurnProgress},
	}
}
