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
	"github.com/abhed/abhed/ahp/adapter"
	"github.com/abhed/abhed/ahp/adapter/shape"
)

// Host returns the dialect.
func Host() *adapter.Host {
	return shape.OpenCode("opencode", "opencode", "a call with invalid arguments comes too")
}
