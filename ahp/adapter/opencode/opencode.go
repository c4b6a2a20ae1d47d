// Package opencode is the hook dialect of opencode (measured with 1.18.33), as the
// bridge plugin hands it on: opencode has no hook commands of its own.
//
// It guarantees that a refusal always carries its reason, which the bridge throws, and
// that a rewrite holds all arguments of the call, which the bridge puts in place.
//
// Do not assume that a tool with an underscore in its name is an MCP server's: names of
// both kinds look alike. Do not assume that permission.ask is ever called: it is
// declared, and wasn't. With OPENCODE_PURE=1 no plugin is loaded at all.
package opencode

import (
	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter"
	"github.com/abhed/abhed/ahp/adapter/shape"
)

// Host returns the dialect.
func Host() *adapter.Host {
	h := &adapter.Host{
		Name: "opencode", Title: "opencode", Deny: adapter.Delivery{Stream: adapter.Stdout},
		Rows: rows(), Write: shape.WriteBridge,
	}
	h.Read = func(in adapter.Input) (*adapter.Event, error) { return shape.Bridge{Host: h.Name}.Read(h, in) }
	return h
}

func rows() []adapter.Row {
	can := func(e ahp.EffectType, how adapter.How, note string) adapter.Ability {
		return adapter.Ability{Effect: e, How: how, Level: adapter.Enforced, Note: note}
	}
	return []adapter.Row{
		{
			Native: shape.ExecuteBefore, Type: ahp.ToolBefore,
			Note: "MCP tools come under names like the host's own; a call with invalid arguments comes too",
			Can: []adapter.Ability{
				can(ahp.EffectDeny, adapter.Native, ""),
				can(ahp.EffectAsk, adapter.Denies, "permission.ask is declared and never called"),
				can(ahp.EffectModify, adapter.Native, "another plugin whose file runs later can change it again"),
			},
		},
		{
			Native: shape.ExecuteAfter, Type: ahp.ToolAfter, Note: "a call that failed has none",
			Can: []adapter.Ability{
				can(ahp.EffectModify, adapter.Native, "replaces the result that the model sees"),
				can(ahp.EffectInject, adapter.Native, "put behind the result's text; parts that aren't text are lost with it"),
			},
		},
		{
			Native: shape.ChatMessage, Type: ahp.TurnStart,
			Can: []adapter.Ability{
				can(ahp.EffectDeny, adapter.Native, "the person sees a server error without the reason"),
				can(ahp.EffectModify, adapter.Denies, ""),
				can(ahp.EffectInject, adapter.Native, "as one more part of the prompt"),
			},
		},
		{Native: shape.SessionCreated, Type: ahp.SessionStart, Note: "a sub-agent has a session of its own"},
		{Native: shape.SessionIdle, Type: ahp.TurnEnd},
	}
}
