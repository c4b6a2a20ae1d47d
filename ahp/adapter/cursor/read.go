package cursor

import (
	"fmt"
	"net/url"
	"path"
	"strings"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter"
)

// read reads a native event. names holds further names of events.
func read(h *adapter.Host, in adapter.Input, names map[string]string) (*adapter.Event, error) {
	o, err := adapter.ParseObject(in.Data)
	if err != nil {
		return nil, err
	}
	said := o.Need("hook_event_name")
	if err := o.Err(); err != nil {
		return nil, err
	}
	native := said
	if own, is := names[said]; is {
		native = own
	}
	row := h.Row(native)
	if row == nil {
		return nil, adapter.Unknown(said)
	}
	e := &adapter.Event{Row: row, Version: o.Text("cursor_version")}
	b := adapter.Base{
		Session: o.Text("conversation_id", "session_id"), Turn: o.Text("generation_id"), Model: o.Text("model"),
		Cwd: o.Text("cwd"), Roots: o.Texts("workspace_roots"), Version: e.Version,
	}
	if row.Type == ahp.ToolBefore || row.Type == ahp.ToolAfter {
		tool(o, e, &b)
	} else {
		other(o, e, &b, in)
	}
	if row.Type == ahp.SessionStart || row.Type == ahp.SessionEnd {
		o.Need("conversation_id", "session_id")
	}
	if err := o.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", native, err)
	}
	if row.Type == ahp.SessionStart {
		e.AHP.Manifest = h.Manifest()
	}
	return e, nil
}

// tool reads an event about a call.
func tool(o *adapter.Object, e *adapter.Event, b *adapter.Base) {
	c := call(o, e)
	e.Tool = c.Input
	if e.Row.Type == ahp.ToolBefore {
		e.AHP = b.ToolBefore(c)
		return
	}
	r := adapter.Result{Text: adapter.Show(o.Raw("tool_output", "output", "result_json", "tool_response")), Milliseconds: o.Milliseconds("duration", "duration_ms")}
	if e.Row.Native == "postToolUseFailure" {
		r.Failed, r.Text = true, o.Text("error_message", "error")
		r.Interrupted = o.Bool("is_interrupt")
	}
	e.AHP = b.ToolAfter(c, r)
}

// call reads a call. The events about one kind of action have no tool's name: they get
// the one that preToolUse has for it, and an input of the members that are there before
// and after, so that both are known as one call.
func call(o *adapter.Object, e *adapter.Event) adapter.Call {
	c := adapter.Call{ID: o.Text("tool_use_id")}
	switch e.Row.Native {
	case "beforeShellExecution", "afterShellExecution":
		c.Name, c.Input = "Shell", members(o, map[string]ahp.Raw{"command": text(o, "command")})
	case "beforeReadFile":
		c.Name, c.Input = "Read", members(o, map[string]ahp.Raw{"file_path": text(o, "file_path")})
		if o.Has("content") {
			e.Native = o.Without("content")
		}
	case "afterFileEdit":
		o.List("edits")
		c.Name, c.Input = "Edit", members(o, map[string]ahp.Raw{"file_path": text(o, "file_path"), "edits": o.Raw("edits")})
	case "beforeMCPExecution", "afterMCPExecution":
		c.Name, c.Input = o.Need("tool_name"), o.Input("tool_input")
		c.MCP = server(o, c.Name)
	default:
		c.Name, c.Input = o.Need("tool_name"), o.Input("tool_input")
		if name, is := strings.CutPrefix(c.Name, "MCP:"); is {
			c.MCP = adapter.InferMCP(unknown, name)
		}
	}
	return c
}

// text returns a member that must be a string and not be empty, as it was written.
func text(o *adapter.Object, name string) ahp.Raw {
	o.Need(name)
	return o.Raw(name)
}

func members(o *adapter.Object, m map[string]ahp.Raw) ahp.Raw {
	for name, v := range m {
		if v == nil {
			delete(m, name)
		}
	}
	b, err := adapter.Encode(m)
	if err != nil {
		o.Fail(err)
		return ahp.Raw("{}")
	}
	return b
}

// unknown stands for a server that the host doesn't name.
const unknown = "unknown"

// server describes the MCP server of a call by what the host says of how it is reached,
// without what may hold a secret: of an address neither user nor query, of a command
// neither arguments nor folder.
func server(o *adapter.Object, tool string) *ahp.MCP {
	m := adapter.InferMCP(unknown, tool)
	if m == nil { // a call without a name, which is a fault already
		return nil
	}
	const why = "left out: it may hold a secret"
	if u, err := url.Parse(o.Text("url")); err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https") {
		u.User, u.RawQuery, u.ForceQuery, u.Fragment, u.RawFragment = nil, "", false, "", ""
		m.Server = ahp.MCPServer{ID: u.Host, Name: u.Host}
		m.Connection = ahp.Connection{Transport: "http", URL: u.String()}
		if strings.HasSuffix(u.Path, "/sse") {
			m.Connection.Transport = "sse"
		}
		return m
	}
	if words := strings.Fields(o.Text("command")); len(words) > 0 && !strings.Contains(words[0], "=") {
		name := path.Base(words[0])
		m.Server = ahp.MCPServer{ID: name, Name: name}
		m.Connection = ahp.Connection{Transport: "stdio", Command: words[0], Gaps: []ahp.Gap{
			{Path: "args", Reason: why}, {Path: "cwd", Reason: "the host's hooks don't tell it"}}}
	}
	return m
}

// other reads an event that is about no call.
func other(o *adapter.Object, e *adapter.Event, b *adapter.Base, in adapter.Input) {
	switch e.Row.Native {
	case "sessionStart":
		e.AHP = b.SessionStart("cursor", "startup")
	case "sessionEnd":
		reason := o.Text("reason", "final_status")
		e.AHP = b.SessionEnd(ended(reason), reason)
	case "beforeSubmitPrompt":
		e.AHP = b.Prompt(o.Text("prompt"), in.Data)
	case "subagentStart":
		change := members(o, map[string]ahp.Raw{"type": o.Raw("subagent_type"), "call": o.Raw("tool_call_id"), "model": o.Raw("subagent_model")})
		e.AHP = b.Task(ahp.TaskChangeBefore, o.Need("subagent_id", "tool_call_id"), "create", o.Text("task", "description"), change)
	case "subagentStop", "stop":
		outcome := map[string]string{"aborted": "cancelled", "error": "failed"}[o.Text("status")]
		if outcome == "" {
			outcome = "completed"
		}
		done := o.Count("loop_count")
		if o.Bool("stop_hook_active") { // Claude Code's member, which a guest may be given
			done = max(done, 1)
		}
		e.AHP = b.Finish(outcome, done, o.Text("summary", "last_assistant_message"), in.Data)
	case "preCompact":
		e.AHP = b.CompactBefore(o.Text("trigger"), "")
	case "afterAgentResponse":
		progress(o, e, b)
	}
}

func ended(reason string) string {
	switch reason {
	case "aborted", "user_close", "window_close":
		return "cancelled"
	}
	return reason
}

// progress is an answer of the model, which is complete.
func progress(o *adapter.Object, e *adapter.Event, b *adapter.Base) {
	o.Need("generation_id")
	m := ahp.TextMessage("response", ahp.RoleAssistant, o.Text("text"))
	m.Synthesized = true
	e.AHP = b.Event(ahp.TurnProgress)
	e.AHP.Item, e.AHP.Delta, e.AHP.Final = &ahp.Ref{ID: "response"}, &m, true
}
