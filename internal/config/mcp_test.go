package config

import (
	"strings"
	"testing"
)

// TestNetworkOfMCPServers: a managed or project sandbox.network false holds for
// MCP servers too; only the file that says it may except one.
func TestNetworkOfMCPServers(t *testing.T) {
	const off, on = `{"sandbox": {"network": false}`, `"mcp": {"s": {"command": "x", "network": true}}}`
	server := file(User, `{`+on)
	for _, c := range []struct {
		name    string
		sources []Source
		network bool
		by      string
	}{
		{"nobody bounds it", []Source{server}, true, "user"},
		{"the same user does", []Source{file(User, off+", "+on)}, true, "user"},
		{"the command line is no bound", []Source{server, args(Arg{"--network", "sandbox.network", []string{"false"}})}, true, "user"},
		{"managed", []Source{server, file(Managed, off+"}")}, false, "managed"},
		{"managed true is no bound", []Source{server, file(Managed, `{"sandbox": {"network": true}}`)}, true, "user"},
		{"managed, its own server", []Source{file(Managed, off+", "+on)}, true, "managed"},
		{"project", []Source{server, file(Project, off+"}")}, false, "project"},
		{"untrusted project", []Source{server, untrustedFile(off + "}")}, false, "project"},
		{"managed over a project's server", []Source{file(Project, `{`+on), file(Managed, off+"}")}, false, "managed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := load(t, c.sources...)
			o, ok := s.Origin("mcp.s.network")
			if got := s.MCP["s"].Network; got != c.network || !ok || o.Layer.String() != c.by {
				t.Errorf("network %v by %v, want %v by %s", got, o, c.network, c.by)
			}
			if c.network != (len(s.Ignored) == 0) {
				t.Errorf("ignored = %+v", s.Ignored)
			}
			if !c.network && (s.Ignored[0].Origin.Key != "mcp.s.network" || !strings.Contains(s.Ignored[0].Reason, "sandbox.network is false ("+c.by)) {
				t.Errorf("ignored = %+v", s.Ignored)
			}
		})
	}
}

// TestMCPServersOfSeveralSources: a server of one name counts whole, the highest
// source's, as other named settings do.
func TestMCPServersOfSeveralSources(t *testing.T) {
	s := load(t, file(User, `{"mcp": {"a": {"command": "mine", "timeout_ms": 7}, "b": {"command": "b"}}}`), file(Managed, `{"mcp": {"a": {"command": "house", "disabled": true}}}`))
	if a := s.MCP["a"]; len(s.MCP) != 2 || a.Command != "house" || !a.Disabled || a.TimeoutMS != 60000 {
		t.Errorf("mcp = %+v", s.MCP)
	}
}
