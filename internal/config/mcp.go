package config

import "time"

// MCPServer is one server of the Model Context Protocol: a program that is spoken
// to over its standard input and output, or an endpoint over HTTP.
type MCPServer struct {
	// Command is a program's path, or a bare name for PATH; empty if URL is set.
	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
	Cwd     string            `json:"cwd"`
	// URL is the endpoint's address; empty if Command is set.
	URL string `json:"url"`
	// HeadersEnv maps a header's name to the variable that holds its value.
	HeadersEnv map[string]string `json:"headers_env"`
	// ReadOnly are tools that the operator says change nothing.
	ReadOnly []string `json:"read_only"`
	// Tools are the tools that are offered; none means all.
	Tools          []string `json:"tools"`
	TimeoutMS      int64    `json:"timeout_ms"`
	StartTimeoutMS int64    `json:"start_timeout_ms"`
	// Network says whether the program, which runs in the sandbox, may use the
	// network.
	Network bool `json:"network"`
	// Disabled says that the server isn't started.
	Disabled bool `json:"disabled"`
}

// Timeout returns how long one call may take.
func (m *MCPServer) Timeout() time.Duration { return time.Duration(m.TimeoutMS) * time.Millisecond }

// StartTimeout returns how long the server may take until it is ready.
func (m *MCPServer) StartTimeout() time.Duration {
	return time.Duration(m.StartTimeoutMS) * time.Millisecond
}

func mcpSpec() *spec {
	return &spec{shape: shapeObject, fields: []field{
		{name: "command", spec: spec{prog: true, check: filePath, doc: "The program; never run through a shell."}},
		{name: "args", spec: listOf(mergeHighest, "Its arguments.", spec{})},
		{name: "env", spec: spec{shape: shapeMap, anyKey: settableVariable, elem: &spec{hidden: true}, doc: "Variables added to the allow-listed ones."}},
		{name: "cwd", spec: spec{path: true, check: filePath, doc: "Its working directory."}},
		{name: "url", spec: spec{check: endpointURL, quiet: true, doc: "The server's address, instead of a command."}},
		{name: "headers_env", spec: spec{shape: shapeMap, anyKey: headerName, elem: &spec{check: variableName, quiet: true}, doc: "Headers to send, and the variable that holds each one's value."}},
		{name: "read_only", spec: listOf(mergeHighest, "Tools that the operator says change nothing.", spec{check: nonEmpty})},
		{name: "tools", spec: listOf(mergeHighest, "The tools that are offered; none means all.", spec{check: nonEmpty})},
		{name: "timeout_ms", spec: spec{shape: shapeInt, min: 1, max: 86_400_000, def: "60000", doc: "How long one call may take."}},
		{name: "start_timeout_ms", spec: spec{shape: shapeInt, min: 1, max: 86_400_000, def: "10000", doc: "How long the server may take until it is ready."}},
		{name: "network", spec: spec{shape: shapeBool, def: "false", doc: "Whether the program, which runs in the sandbox, may use the network."}},
		{name: "disabled", spec: spec{shape: shapeBool, def: "false", doc: "Don't start the server."}},
	}}
}

// checkMCP refuses a server that is neither a program nor an address, or both, and
// settings that have no meaning for what it is.
func (l *loader) checkMCP(servers *node) {
	if servers == nil {
		return
	}
	for _, m := range servers.members {
		command, url := m.value.get("command") != nil, m.value.get("url") != nil
		if command == url {
			found := `neither "command" nor "url"`
			if command {
				found = `both "command" and "url"`
			}
			l.faults.add(&Error{Origin: m.value.origin, Found: found, Expected: "one of the two"})
			continue
		}
		idle, other := []string{"args", "env", "cwd", "network"}, `"url"`
		if command {
			idle, other = []string{"headers_env"}, `"command"`
		}
		for _, name := range idle {
			if v := m.value.get(name); v != nil && v.origin.Layer != Default {
				l.faults.add(&Error{Origin: v.origin, Found: quote(name) + " beside " + other, Expected: "nothing: it has no meaning there"})
			}
		}
	}
}

// boundNetwork takes the network from MCP servers where a managed or a project
// file says that tools have none and another source gives a server the network.
func (l *loader) boundNetwork(merged *node) {
	bound, servers := merged.get("sandbox").get("network"), merged.get("mcp")
	if servers == nil || bound.kind != 'f' || bound.origin.Layer != Managed && bound.origin.Layer != Project {
		return
	}
	for _, m := range servers.members {
		v := m.value.get("network")
		if v.kind != 't' || v.origin.Layer == bound.origin.Layer {
			continue
		}
		l.ignored = append(l.ignored, Ignored{Origin: v.origin, Reason: "sandbox.network is false (" + bound.origin.String() + "), which holds for MCP servers too"})
		m.value.set("network", bound)
	}
}
