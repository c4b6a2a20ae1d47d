// Package kilo is the hook dialect of Kilo (measured with 7.7.7), a fork of opencode, as
// the bridge plugin hands it on.
//
// It guarantees what package opencode does.
//
// Do not assume that "bash" is the only shell: background_process runs commands too.
package kilo

import (
	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter"
	"github.com/abhed/abhed/ahp/adapter/shape"
)

// Host returns the dialect.
func Host() *adapter.Host {
	h := &adapter.Host{
		Name: "kilo", Title: "Kilo", Deny: adapter.Delivery{Stream: adapter.Stdout},
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
			Note: "MCP tools come under names like the host's own; background_process is a second shell",
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
