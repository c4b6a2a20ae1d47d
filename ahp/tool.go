package ahp

import "slices"

// Origin says where a tool comes from.
type Origin string

// The origins.
const (
	OriginNative Origin = "native"
	OriginMCP    Origin = "mcp"
)

// Tool is the tool that a call names, with its input.
type Tool struct {
	// Name is the tool's name as the harness knows it, never translated.
	Name string `json:"name" ahp:"req,min1"`
	// Kind describes the tool; it is no ground for authority.
	Kind string `json:"kind"`
	// Input is a JSON object.
	Input  Raw    `json:"input" ahp:"req,obj"`
	Origin Origin `json:"origin" ahp:"req,enum=native|mcp"`
	// MCP is set exactly where Origin is OriginMCP.
	MCP *MCP `json:"mcp"`
}

func checkTool(t *Tool) *fault {
	switch {
	case t.Origin == OriginMCP && t.MCP == nil:
		return &fault{found: "no mcp member", expected: `one where origin is "mcp"`}
	case t.Origin == OriginNative && t.MCP != nil:
		return &fault{at: "mcp", found: "an mcp member", expected: `none where origin is "native"`}
	}
	return nil
}

// MCP says which server a tool comes from.
type MCP struct {
	Server     MCPServer  `json:"server" ahp:"req"`
	ToolName   string     `json:"toolName" ahp:"req,min1"`
	Provenance string     `json:"provenance" ahp:"req,enum=runtime|inferred"`
	Connection Connection `json:"connection" ahp:"req"`
}

// MCPServer identifies an MCP server.
type MCPServer struct {
	ID   string `json:"id" ahp:"req,min1"`
	Name string `json:"name"`
}

// Connection says how an MCP server is reached. Each location member of the
// transport is present or named in Gaps. It never holds credentials.
type Connection struct {
	// Transport is "http", "sse", "stdio", or an extension that starts with "_".
	Transport   string   `json:"transport" ahp:"req,min1"`
	URL         string   `json:"url" ahp:"httpurl"`
	Command     string   `json:"command" ahp:"min1"`
	Args        []string `json:"args"`
	Cwd         string   `json:"cwd" ahp:"min1"`
	AddressForm string   `json:"addressForm" ahp:"min1"`
	Address     string   `json:"address" ahp:"min1"`
	Gaps        []Gap    `json:"gaps" ahp:"min1,closed"`
}

func checkConnection(c *Connection) *fault {
	var own []string
	switch {
	case c.Transport == "http", c.Transport == "sse":
		own = []string{"url"}
	case c.Transport == "stdio":
		own = []string{"command", "args", "cwd"}
	case c.Transport[0] == '_':
		own = []string{"addressForm", "address"}
	default:
		return &fault{at: "transport", found: quote(c.Transport), expected: `"http", "sse", "stdio" or a name that starts with "_"`}
	}
	present := map[string]bool{
		"url": c.URL != "", "command": c.Command != "", "args": c.Args != nil, "cwd": c.Cwd != "",
		"addressForm": c.AddressForm != "", "address": c.Address != "",
	}
	for _, name := range []string{"url", "command", "args", "cwd", "addressForm", "address"} {
		mine := slices.Contains(own, name)
		gap := slices.ContainsFunc(c.Gaps, func(g Gap) bool { return g.Path == name })
		switch {
		case present[name] && !mine:
			return &fault{at: name, found: "member " + quote(name), expected: "none with transport " + quote(c.Transport)}
		case mine && !present[name] && !gap:
			return &fault{found: "no " + quote(name), expected: "that member, or a gap that names it"}
		}
	}
	return nil
}

// Batch groups calls that the model made together.
type Batch struct {
	ID          string   `json:"id" ahp:"req,min1"`
	CallIDs     []string `json:"callIds" ahp:"min1,uniq"`
	Synthesized bool     `json:"synthesized"`
}

// Execution says whether something was carried out.
type Execution struct {
	Status string `json:"status" ahp:"req,enum=executed|skipped"`
	// Reason is set where Status is "skipped": "supplied_result", "policy",
	// "cancelled", "timeout" or "other".
	Reason string `json:"reason" ahp:"enum=supplied_result|policy|cancelled|timeout|other"`
	// Detail is of what was skipped for one of the last four reasons.
	Detail *string `json:"detail"`
}

// Executed returns the Execution of something that was carried out.
func Executed() *Execution { return &Execution{Status: "executed"} }

// Skipped returns the Execution of something that wasn't, with its reason.
func Skipped(reason string) *Execution { return &Execution{Status: "skipped", Reason: reason} }

func checkExecution(e *Execution) *fault {
	switch {
	case e.Status == "skipped" && e.Reason == "":
		return &fault{found: "no reason", expected: `one where status is "skipped"`}
	case e.Status == "executed" && e.Reason != "":
		return &fault{at: "reason", found: "a reason", expected: `none where status is "executed"`}
	case e.Detail != nil && (e.Status == "executed" || e.Reason == "supplied_result"):
		return &fault{at: "detail", found: "a detail", expected: "none here"}
	}
	return nil
}

// Problem describes what went wrong in a tool, a turn or a model.
type Problem struct {
	Class   string `json:"class" ahp:"req,min1"`
	Message string `json:"message" ahp:"req,min1"`
	Code    string `json:"code"`
	// Status is a string or an integer.
	Status Raw `json:"status" ahp:"strint"`
	Native Raw `json:"native"`
}

// FileChange is one change to a file that a tool call made.
type FileChange struct {
	Path         string `json:"path" ahp:"req,min1"`
	Change       string `json:"change" ahp:"req,enum=created|modified|deleted|moved"`
	PreviousPath string `json:"previousPath" ahp:"min1"`
	Before       *Part  `json:"before"`
	After        *Part  `json:"after"`
}

func checkFileChange(c *FileChange) *fault {
	switch {
	case (c.Change == "moved") != (c.PreviousPath != ""):
		return &fault{found: "change " + quote(c.Change), expected: "previousPath exactly where the change is \"moved\""}
	case c.Change == "created" && c.Before != nil:
		return &fault{at: "before", found: "a state before", expected: "none of a created file"}
	case c.Change == "deleted" && c.After != nil:
		return &fault{at: "after", found: "a state after", expected: "none of a deleted file"}
	}
	return nil
}

// BatchCall is how one call of a finished batch ended.
type BatchCall struct {
	Call      Identity  `json:"call" ahp:"req"`
	Tool      Tool      `json:"tool" ahp:"req"`
	Path      string    `json:"path" ahp:"req,min1"`
	Outcome   string    `json:"outcome" ahp:"req,enum=ok|error|denied|cancelled|timeout"`
	Execution Execution `json:"execution" ahp:"req"`
	Batch     *Batch    `json:"batch"`
}

func checkBatchCall(c *BatchCall) *fault {
	if c.Outcome == "denied" && (c.Execution.Status != "skipped" || c.Execution.Reason != "policy") {
		return &fault{at: "execution", found: "a denied call that was not skipped by policy", expected: `skipped with reason "policy"`}
	}
	if c.Batch != nil && c.Batch.CallIDs == nil {
		return &fault{at: "batch", found: "no callIds", expected: "a list of at least one call id"}
	}
	return nil
}
