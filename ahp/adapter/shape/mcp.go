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

// MCPContent shows a result in the form of an MCP server's, which is an object with a
// list of parts, or the list alone; anything else as it is. Parts that aren't text are
// left out, and MCPOthers counts them.
func MCPContent(result ahp.Raw) (text string, failed bool) {
	text, _, failed = mcpContent(result)
	return text, failed
}

// MCPOthers returns how many parts of a result MCPContent leaves out.
func MCPOthers(result ahp.Raw) int {
	_, others, _ := mcpContent(result)
	return others
}

func mcpContent(result ahp.Raw) (text string, others int, failed bool) {
	document := result
	if len(result) > 0 && result[0] == '[' {
		document = ahp.Raw(`{"content":` + string(result) + `}`)
	}
	o, err := adapter.ParseObject(document)
	if err != nil || !o.Has("content") || o.Raw("content")[0] != '[' {
		return adapter.Show(result), 0, false
	}
	failed = o.Bool("isError")
	if text, others = Texts(o.Objects("content")); o.Err() != nil {
		return adapter.Show(result), 0, failed
	}
	return text, others, failed
}
