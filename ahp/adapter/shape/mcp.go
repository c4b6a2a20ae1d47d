package shape

import (
	"strings"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter"
)

// MCPByName returns what a tool's name tells of its MCP server, where the host builds
// names as mcp__server__tool; nil for another tool.
func MCPByName(_ *adapter.Object, tool string) *ahp.MCP {
	rest, is := strings.CutPrefix(tool, "mcp__")
	if !is {
		return nil
	}
	server, name, _ := strings.Cut(rest, "__")
	return adapter.InferMCP(server, name)
}

// MCPByPrefix is MCPByName for a host that builds names as mcp_server_tool. A server
// whose own name holds a low line can't be told apart: the first part is taken.
func MCPByPrefix(tool string) *ahp.MCP {
	rest, is := strings.CutPrefix(tool, "mcp_")
	if !is {
		return nil
	}
	server, name, _ := strings.Cut(rest, "_")
	return adapter.InferMCP(server, name)
}
