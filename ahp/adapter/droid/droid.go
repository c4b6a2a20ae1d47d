// Package droid is the hook dialect of Factory's droid (measured with 0.225.2).
//
// It guarantees that a refusal is exit code 2 with a few words on standard error, which
// is the one that no other hook's answer beats: of decisions in documents the first in
// the order of the configuration counts, even an allow. Nothing here writes a decision
// that permits or asks, which the host ignores.
//
// Do not assume that a failed call is told after it: the event fires for a success
// alone. Do not assume that prompts are told in droid exec.
package droid

import (
	"strings"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter"
	"github.com/abhed/abhed/ahp/adapter/shape"
)

// Host returns the dialect.
func Host() *adapter.Host {
	h := &adapter.Host{
		Name: "droid", Title: "Factory droid", Deny: adapter.Delivery{Exit: 2, Stream: adapter.Stderr}, Rows: rows(), Write: write,
	}
	h.Read = func(in adapter.Input) (*adapter.Event, error) { return profile().Read(h, in) }
	return h
}

// profile knows both spellings: the one that was recorded, and the one of the vendor's
// reference.
func profile() *shape.Profile {
	return &shape.Profile{
		Host: "droid", MCP: mcp, Strict: true, Event: []string{"hook_event_name", "hookEventName"}, Session: []string{"session_id", "sessionId"},
		Kinds: map[string]shape.Kind{
			"PreToolUse": shape.Before, "PostToolUse": shape.After, "UserPromptSubmit": shape.Prompt, "SessionStart": shape.SessionStart,
			"SessionEnd": shape.SessionEnd, "Stop": shape.Stop, "SubagentStop": shape.SubagentStop, "PreCompact": shape.CompactBefore,
			"Notification": shape.Notification,
		},
	}
}

// mcp reads the server from a tool's name: server___tool.
func mcp(_ *adapter.Object, tool string) *ahp.MCP {
	server, name, _ := strings.Cut(tool, "___")
	return adapter.InferMCP(server, name)
}

func rows() []adapter.Row {
	sure := func(e ahp.EffectType, how adapter.How, note string) adapter.Ability {
		return adapter.Ability{Effect: e, How: how, Level: adapter.Enforced, Note: note}
	}
	likely := func(e ahp.EffectType, how adapter.How) adapter.Ability {
		return adapter.Ability{Effect: e, How: how, Level: adapter.BestEffort, Note: "documented, not measured"}
	}
	flow := func(op ahp.FlowOperation, level adapter.Level, note string) adapter.Ability {
		return adapter.Ability{Effect: ahp.EffectFlow, Operation: op, How: adapter.Native, Level: level, Note: note}
	}
	rewrite := adapter.Ability{
		Effect: ahp.EffectModify, How: adapter.Native, Level: adapter.BestEffort, Merges: true,
		Note: "merged into the call's own input: where a member would have to go, the call is refused; another hook's decision may come before it",
	}
	const endless = "the host has no limit of its own: once in a row here"
	return []adapter.Row{
		{Native: "PreToolUse", Type: ahp.ToolBefore, Can: []adapter.Ability{
			sure(ahp.EffectDeny, adapter.Native, ""), sure(ahp.EffectAsk, adapter.Denies, "the host ignores the answer and would run the call"), rewrite,
			flow(ahp.FlowStop, adapter.Enforced, "the whole run ends")}},
		{Native: "PostToolUse", Type: ahp.ToolAfter, Note: "fires for a success alone", Can: []adapter.Ability{
			sure(ahp.EffectInject, adapter.Native, ""), flow(ahp.FlowStop, adapter.BestEffort, "measured before a call alone; it stands in for a result that may not be seen")}},
		{Native: "UserPromptSubmit", Type: ahp.TurnStart, Note: "never fires in droid exec", Can: []adapter.Ability{
			likely(ahp.EffectDeny, adapter.Native), likely(ahp.EffectModify, adapter.Denies), likely(ahp.EffectInject, adapter.Native)}},
		{Native: "SessionStart", Type: ahp.SessionStart, Can: []adapter.Ability{sure(ahp.EffectInject, adapter.Native, "")}},
		{Native: "SessionEnd", Type: ahp.SessionEnd},
		{Native: "Stop", Type: ahp.TurnFinishBefore, Continuations: 1, Can: []adapter.Ability{flow(ahp.FlowContinue, adapter.Enforced, endless)}},
		{Native: "SubagentStop", Type: ahp.TurnFinishBefore, Continuations: 1, Can: []adapter.Ability{flow(ahp.FlowContinue, adapter.BestEffort, "documented, not measured; "+endless)}},
		{Native: "PreCompact", Type: ahp.ContextCompactBefore},
		{Native: "Notification", Type: ahp.UserAttention},
	}
}

// answer is what the host reads on standard output.
type answer struct {
	shape.Halt                  // continue, stopReason
	shape.Block                 // decision, reason
	Specific    *shape.Specific `json:"hookSpecificOutput,omitzero"`
}

// write says a verdict.
func write(e *adapter.Event, v *adapter.Verdict) ([]byte, error) {
	if v.Deny != "" {
		return []byte(adapter.Reason(v.Deny)), nil
	}
	if v.Silent() {
		return nil, nil
	}
	a := answer{Specific: shape.SpecificFor(e, v)}
	if v.Stop != "" {
		a.Halt = shape.HaltFor(v.Stop)
	}
	if v.Continue != "" {
		a.Decision, a.Reason = "block", v.Continue
	}
	return adapter.Encode(a)
}
