// Package crush is the hook dialect of crush (measured with a nightly of August 2026).
//
// It guarantees that a refusal is exit code 2 with words on standard error and nothing
// on standard output, and that no answer permits: there silence keeps the host's own
// prompt, and an allow would skip it.
//
// Do not assume that the tools of a sub-agent pass here: the host tells of the call that
// starts one, and of nothing in it. Do not assume that another event than the one before
// a tool exists: others are accepted in the configuration and never fire.
package crush

import (
	"strings"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter"
	"github.com/abhed/abhed/ahp/adapter/shape"
)

// Host returns the dialect.
func Host() *adapter.Host {
	h := &adapter.Host{
		Name: "crush", Title: "crush", Deny: adapter.Delivery{Exit: 2, Stream: adapter.Stderr}, Deduplicates: true,
		Rows: rows(), Write: write,
	}
	p := &shape.Profile{
		Host: "crush", Event: []string{"event"}, Strict: true, Kinds: map[string]shape.Kind{"PreToolUse": shape.Before},
		MCP: func(_ *adapter.Object, tool string) *ahp.MCP { return shape.MCPByPrefix(tool) },
	}
	h.Read = func(in adapter.Input) (*adapter.Event, error) { return p.Read(h, in) }
	return h
}

func rows() []adapter.Row {
	sure := func(e ahp.EffectType, how adapter.How, note string) adapter.Ability {
		return adapter.Ability{Effect: e, How: how, Level: adapter.Enforced, Note: note}
	}
	rewrite := sure(ahp.EffectModify, adapter.Native, "merged into the call's own input: where a member would have to go, the call is refused")
	rewrite.Merges = true
	return []adapter.Row{{Native: "PreToolUse", Type: ahp.ToolBefore, Note: "the tools of sub-agents fire no event", Can: []adapter.Ability{
		sure(ahp.EffectDeny, adapter.Native, ""), sure(ahp.EffectAsk, adapter.Denies, "the host would run the call"), rewrite,
		sure(ahp.EffectInject, adapter.Native, "added to the result of the call"),
		{Effect: ahp.EffectFlow, Operation: ahp.FlowStop, How: adapter.Native, Level: adapter.Enforced, Note: "the turn ends; the model is told nothing"},
	}}}
}

// answer is what the host reads on standard output.
type answer struct {
	Decision string  `json:"decision,omitzero"`
	Reason   string  `json:"reason,omitzero"`
	Halt     bool    `json:"halt,omitzero"`
	Context  string  `json:"context,omitzero"`
	Input    ahp.Raw `json:"updated_input,omitzero"`
}

// write says a verdict.
func write(_ *adapter.Event, v *adapter.Verdict) ([]byte, error) {
	if v.Deny != "" {
		return []byte(adapter.Reason(v.Deny)), nil
	}
	if v.Silent() {
		return nil, nil
	}
	a := answer{Context: strings.Join(v.Context, "\n"), Input: v.Input}
	if v.Stop != "" { // both members keep the call from running
		a = answer{Halt: true, Decision: "deny", Reason: v.Stop}
	}
	return adapter.Encode(a)
}
