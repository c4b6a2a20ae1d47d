// Package hosts is the list of the hosts that this module has adapters for.
//
// It guarantees that every name is there once and that what Read returns is a valid
// event but for id, source and time.
//
// Do not assume that a host which isn't listed can't be guarded: one that speaks the
// protocol itself needs no adapter.
package hosts

import (
	"cmp"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter"
	"github.com/abhed/abhed/ahp/adapter/auggie"
	"github.com/abhed/abhed/ahp/adapter/claudecode"
	"github.com/abhed/abhed/ahp/adapter/cline"
	"github.com/abhed/abhed/ahp/adapter/codex"
	"github.com/abhed/abhed/ahp/adapter/continuecli"
	"github.com/abhed/abhed/ahp/adapter/copilot"
	"github.com/abhed/abhed/ahp/adapter/crush"
	"github.com/abhed/abhed/ahp/adapter/cursor"
	"github.com/abhed/abhed/ahp/adapter/droid"
	"github.com/abhed/abhed/ahp/adapter/gemini"
	"github.com/abhed/abhed/ahp/adapter/goose"
	"github.com/abhed/abhed/ahp/adapter/kilo"
	"github.com/abhed/abhed/ahp/adapter/kimi"
	"github.com/abhed/abhed/ahp/adapter/kiro"
	"github.com/abhed/abhed/ahp/adapter/opencode"
	"github.com/abhed/abhed/ahp/adapter/openhands"
	"github.com/abhed/abhed/ahp/adapter/pi"
	"github.com/abhed/abhed/ahp/adapter/qwen"
	"github.com/abhed/abhed/ahp/adapter/windsurf"
	"github.com/abhed/abhed/internal/policy"
)

// All returns the hosts in the order in which they are shown. The result is the
// caller's; making it costs some microseconds.
func All() []*adapter.Host {
	var out []*adapter.Host
	for _, c := range constructors() {
		out = append(out, c.make())
	}
	return out
}

// constructor makes the host of a name, so that one can be had without the others.
type constructor struct {
	name string
	make func() *adapter.Host
}

func constructors() []constructor {
	return []constructor{
		{"claude-code", claudecode.Host},
		{"codex", codex.Host},
		{"gemini", gemini.Host},
		{"qwen", qwen.Host},
		{"opencode", opencode.Host},
		{"kilo", kilo.Host},
		{"pi", pi.Host},
		{"crush", crush.Host},
		{"copilot", copilot.Host},
		{"cursor", cursor.Host},
		{"droid", droid.Host},
		{"goose", goose.Host},
		{"cline", cline.Host},
		{"kiro", kiro.Host},
		{"windsurf", windsurf.Host},
		{"openhands", openhands.Host},
		{"kimi", kimi.Host},
		{"auggie", auggie.Host},
		{"continue", continuecli.Host},
	}
}

// Lookup returns the host of a name, or nil.
func Lookup(name string) *adapter.Host {
	for _, c := range constructors() {
		if c.name == name {
			return c.make()
		}
	}
	return nil
}

// Read reads a native event, and adds what the dialects share: the kind of the tool.
func Read(h *adapter.Host, in adapter.Input) (*adapter.Event, error) {
	data, err := adapter.Trim(in.Data)
	if err != nil {
		return nil, err
	}
	in.Data = data
	e, err := h.Read(in)
	if err != nil {
		return nil, err
	}
	if t := e.AHP.Tool; t != nil && t.Kind == "" {
		t.Kind = kind(t)
	}
	return e, nil
}

// kind describes a tool by the table of native names. It is no ground for authority.
func kind(t *ahp.Tool) string {
	if t.Origin == ahp.OriginMCP {
		return "mcp"
	}
	native := policy.LookupNative(t.Name)
	if native == nil {
		return "other"
	}
	return cmp.Or(policy.KindOf(native[0].Tool), "other")
}
