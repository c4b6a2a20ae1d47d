// Package goose is the hook dialect of goose (documented from 1.38, not measured).
//
// It guarantees that a refusal is exit code 2 with the reason on standard error and
// nothing on standard output.
//
// Do not assume that a crash or a time-out of a hook refuses anything unless the entry
// says on_failure "block", which PreToolUse alone knows. BeforeReadFile, AfterFileEdit,
// BeforeShellExecution and AfterShellExecution tell once more, and without a say, what
// PreToolUse and PostToolUse tell: they are no events here.
package goose

import (
	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter"
	"github.com/abhed/abhed/ahp/adapter/shape"
)

// Host returns the dialect.
func Host() *adapter.Host {
	h := &adapter.Host{
		Name: "goose", Title: "goose", Deny: adapter.Delivery{Exit: 2, Stream: adapter.Stderr},
		Rows: rows(), Write: write,
	}
	h.Read = func(in adapter.Input) (*adapter.Event, error) { return profile().Read(h, in) }
	return h
}

func profile() *shape.Profile {
	return &shape.Profile{
		Host: "goose", Event: []string{"event"}, Cwd: []string{"working_dir"}, Call: []string{"tool_call_id"},
		Result: []string{"tool_response", "tool_output", "tool_result"}, PromptText: []string{"message", "prompt"}, Own: resolved, Strict: true,
		Kinds: map[string]shape.Kind{
			"PreToolUse": shape.Before, "PreToolUseResult": shape.Own, "PostToolUse": shape.After, "PostToolUseFailure": shape.Failure,
			"UserPromptSubmit": shape.Prompt, "SessionStart": shape.SessionStart, "SessionEnd": shape.SessionEnd, "Stop": shape.Stop,
		},
	}
}

// resolved reads what was decided about a call, and by whom.
func resolved(_ string, o *adapter.Object, b *adapter.Base, _ []byte) *ahp.Event {
	by := "auto"
	switch {
	case o.Has("blocked_by"):
		by = "hook"
	case o.Bool("policy_evaluated"):
		by = "policy"
	}
	if !o.Has("tool_input") {
		o.Need("tool_input")
	}
	c := adapter.Call{ID: o.Text("tool_call_id"), Name: o.Need("tool_name"), Input: o.Input("tool_input")}
	return b.Resolved(c, o.Need("decision") == "allow", by)
}

func rows() []adapter.Row {
	can := func(e ahp.EffectType, how adapter.How, note string) adapter.Ability {
		return adapter.Ability{Effect: e, How: how, Level: adapter.BestEffort, Note: note}
	}
	return []adapter.Row{
		{Native: "PreToolUse", Type: ahp.ToolBefore, Can: []adapter.Ability{
			can(ahp.EffectDeny, adapter.Native, `documented; on_failure "block" is needed against a crash`),
			can(ahp.EffectAsk, adapter.Denies, "goose's hooks can't ask"), can(ahp.EffectModify, adapter.Denies, "goose's hooks can't rewrite"),
		}},
		{Native: "PreToolUseResult", Type: ahp.ToolPermissionResolved},
		{Native: "PostToolUse", Type: ahp.ToolAfter},
		{Native: "PostToolUseFailure", Type: ahp.ToolAfter},
		{Native: "UserPromptSubmit", Type: ahp.TurnStart},
		{Native: "SessionStart", Type: ahp.SessionStart},
		{Native: "SessionEnd", Type: ahp.SessionEnd},
		{Native: "Stop", Type: ahp.TurnFinishBefore, Can: []adapter.Ability{{
			Effect: ahp.EffectFlow, Operation: ahp.FlowContinue, How: adapter.Native, Level: adapter.BestEffort,
			Note: "documented; goose counts for itself, up to GOOSE_STOP_HOOK_BLOCK_CAP, and doesn't tell how often it was",
		}}},
	}
}

// answer is what the host reads on standard output.
type answer struct {
	Decision string `json:"decision"`
	Reason   string `json:"reason"`
}

// write says a verdict. Nothing but a refusal and one more step can be said.
func write(_ *adapter.Event, v *adapter.Verdict) ([]byte, error) {
	switch {
	case v.Deny != "":
		return []byte(adapter.Reason(v.Deny)), nil
	case v.Continue != "":
		return adapter.Encode(answer{"block", v.Continue})
	}
	return nil, nil
}
