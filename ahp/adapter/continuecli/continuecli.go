// Package continuecli is the hook dialect of Continue's command line, cn.
//
// It guarantees that a refusal is exit code 2 with the reason on standard error and
// nothing on standard output, which is what its code reads.
//
// Do not assume that any hook runs: cn 1.5.47 reads the configuration, has the code that
// runs hooks, and calls it nowhere (read in the package, and measured: the call ran, and
// the hook did not). The table is for a version that does, and offers only what that code
// would carry and a refusal can stand in for.
package continuecli

import (
	"strings"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter"
	"github.com/abhed/abhed/ahp/adapter/shape"
)

// Host returns the dialect.
func Host() *adapter.Host {
	h := &adapter.Host{
		Name: "continue", Title: "Continue (cn)", Deny: adapter.Delivery{Exit: 2, Stream: adapter.Stderr},
		Deduplicates: true, Rows: rows(), Write: write,
	}
	h.Read = func(in adapter.Input) (*adapter.Event, error) { return profile().Read(h, in) }
	return h
}

func profile() *shape.Profile {
	return &shape.Profile{
		Host: "continue",
		Kinds: map[string]shape.Kind{
			"PreToolUse": shape.Before, "PostToolUse": shape.After, "PostToolUseFailure": shape.Failure, "UserPromptSubmit": shape.Prompt,
			"SessionStart": shape.SessionStart, "SessionEnd": shape.SessionEnd, "Stop": shape.Stop,
			"Notification": shape.Notification, "PreCompact": shape.CompactBefore,
		},
	}
}

func rows() []adapter.Row {
	const never = "measured: cn 1.5.47 fires no hook, so that nothing is guarded there"
	can := func(e ahp.EffectType, how adapter.How) adapter.Ability {
		return adapter.Ability{Effect: e, How: how, Level: adapter.BestEffort, Note: never}
	}
	context := can(ahp.EffectInject, adapter.Native)
	return []adapter.Row{
		{Native: "PreToolUse", Type: ahp.ToolBefore, Note: never, Can: []adapter.Ability{
			can(ahp.EffectDeny, adapter.Native), can(ahp.EffectAsk, adapter.Denies), can(ahp.EffectModify, adapter.Denies),
		}},
		{Native: "PostToolUse", Type: ahp.ToolAfter, Note: never, Can: []adapter.Ability{context}},
		{Native: "PostToolUseFailure", Type: ahp.ToolAfter, Note: never},
		{Native: "UserPromptSubmit", Type: ahp.TurnStart, Note: never, Can: []adapter.Ability{
			can(ahp.EffectDeny, adapter.Native), can(ahp.EffectModify, adapter.Denies), context,
		}},
		{Native: "SessionStart", Type: ahp.SessionStart, Note: never, Can: []adapter.Ability{context}},
		{Native: "SessionEnd", Type: ahp.SessionEnd, Note: never},
		{Native: "Stop", Type: ahp.TurnFinishBefore, Note: never + "; it would always say that the end was put off before"},
		{Native: "Notification", Type: ahp.UserAttention, Note: never},
		{Native: "PreCompact", Type: ahp.ContextCompactBefore, Note: never},
	}
}

// answer is what the host reads on standard output after exit code 0.
type answer struct {
	Specific specific `json:"hookSpecificOutput"`
}

type specific struct {
	Event             string `json:"hookEventName"`
	AdditionalContext string `json:"additionalContext"`
}

// write says a verdict.
func write(e *adapter.Event, v *adapter.Verdict) ([]byte, error) {
	switch {
	case v.Deny != "":
		return []byte(adapter.Reason(v.Deny)), nil
	case len(v.Context) > 0:
		return adapter.Encode(answer{specific{e.Row.Native, strings.Join(v.Context, "\n")}})
	}
	return nil, nil
}
