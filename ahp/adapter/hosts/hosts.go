// Package hosts is the list of the hosts that this module has adapters for.
//
// It guarantees that every name is there once and that what Read returns is a valid
// event but for id, source and time.
//
// Do not assume that a host which isn't listed can't be guarded: one that speaks the
// protocol itself needs no adapter.
package hosts

import (
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
	for _, make := range constructors() {
		out = append(out, make())
	}
	return out
}

func constructors() []func() *adapter.Host {
	return []func() *adapter.Host{
		claudecode.Host,
		codex.Host,
		gemini.Host,
		qwen.Host,
		opencode.Host,
		kilo.Host,
		pi.Host,
		crush.Host,
		copilot.Host,
		cursor.Host,
		droid.Host,
		goose.Host,
		cline.Host,
		kiro.Host,
		windsurf.Host,
		openhands.Host,
		kimi.Host,
		auggie.Host,
		continuecli.Host,
	}
}

// Lookup returns the host of a name, or nil.
func Lookup(name string) *adapter.Host {
	for _, h := range All() {
		if h.Name == name {
			return h
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
	switch native[0].Tool {
	case "bash":
		return "shell"
	case "read":
		return "file_read"
	case "write":
		return "file_write"
	case "edit":
		return "file_edit"
	case "glob", "grep":
		return "search"
	case "fetch", "task":
		return native[0].Tool
	}
	return "other"
}
