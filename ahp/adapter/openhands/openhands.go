// Package openhands is the hook dialect of OpenHands (documented, not measured).
//
// It guarantees that a refusal says so twice and alike, by exit code 2 and by the
// document on standard output: the host lets the document beat the exit code.
//
// Do not assume that a crash or a time-out of a hook refuses anything: both let the call
// run. Hooks come from the repository alone, which can change them.
package openhands

import (
	"strings"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter"
	"github.com/abhed/abhed/ahp/adapter/shape"
)

// Host returns the dialect.
func Host() *adapter.Host {
	h := &adapter.Host{
		Name: "openhands", Title: "OpenHands", Deny: adapter.Delivery{Exit: 2, Stream: adapter.Stdout},
		Rows: rows(), Write: write,
	}
	h.Read = func(in adapter.Input) (*adapter.Event, error) { return profile().Read(h, in) }
	return h
}

func profile() *shape.Profile {
	return &shape.Profile{
		Host: "openhands", Event: []string{"event_type"}, Cwd: []string{"working_dir"}, PromptText: []string{"message", "prompt"}, Strict: true,
		Kinds: map[string]shape.Kind{
			"PreToolUse": shape.Before, "PostToolUse": shape.After, "UserPromptSubmit": shape.Prompt,
			"SessionStart": shape.SessionStart, "SessionEnd": shape.SessionEnd, "Stop": shape.Stop,
		},
	}
}

func rows() []adapter.Row {
	can := func(e ahp.EffectType, how adapter.How, note string) adapter.Ability {
		return adapter.Ability{Effect: e, How: how, Level: adapter.BestEffort, Note: note}
	}
	return []adapter.Row{
		{Native: "PreToolUse", Type: ahp.ToolBefore, Can: []adapter.Ability{
			can(ahp.EffectDeny, adapter.Native, "documented"),
			can(ahp.EffectAsk, adapter.Denies, "OpenHands' hooks can't ask"), can(ahp.EffectModify, adapter.Denies, "OpenHands' hooks can't rewrite"),
		}},
		{Native: "PostToolUse", Type: ahp.ToolAfter},
		{Native: "UserPromptSubmit", Type: ahp.TurnStart, Can: []adapter.Ability{
			can(ahp.EffectDeny, adapter.Native, "documented"), can(ahp.EffectModify, adapter.Denies, ""), can(ahp.EffectInject, adapter.Native, "documented"),
		}},
		{Native: "SessionStart", Type: ahp.SessionStart},
		{Native: "SessionEnd", Type: ahp.SessionEnd},
		{
			Native: "Stop", Type: ahp.TurnFinishBefore,
			Note: "a refusal would put the end off; the host neither tells how often that happened nor is known to bound it, so it isn't offered",
		},
	}
}

// answer is what the host reads on standard output. A decision is never anything but
// "deny".
type answer struct {
	Decision          string `json:"decision,omitzero"`
	Reason            string `json:"reason,omitzero"`
	AdditionalContext string `json:"additionalContext,omitzero"`
}

// write says a verdict.
func write(_ *adapter.Event, v *adapter.Verdict) ([]byte, error) {
	switch {
	case v.Deny != "":
		return adapter.Encode(answer{Decision: "deny", Reason: adapter.Reason(v.Deny)})
	case len(v.Context) > 0:
		return adapter.Encode(answer{AdditionalContext: strings.Join(v.Context, "\n")})
	}
	return nil, nil
}
