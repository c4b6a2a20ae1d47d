// Package windsurf is the hook dialect of Windsurf's Cascade, as documented; it wasn't
// measured.
//
// It guarantees that a refusal is exit code 2 with the reason on standard error, the one
// answer that the host has, and that everything else that a policy may want before a
// call is refused.
//
// Do not assume a call's id, or a session's folder: the host gives neither. The "cwd" of
// a command is the command's own, and stays in its input.
package windsurf

import (
	"strings"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter"
)

// Host returns the dialect.
func Host() *adapter.Host {
	h := &adapter.Host{
		Name: "windsurf", Title: "Windsurf", Deny: adapter.Delivery{Exit: 2, Stream: adapter.Stderr},
		Rows: rows(), Write: write,
	}
	h.Read = func(in adapter.Input) (*adapter.Event, error) { return read(h, in) }
	return h
}

func rows() []adapter.Row {
	deny := adapter.Ability{Effect: ahp.EffectDeny, How: adapter.Native, Level: adapter.BestEffort, Note: "documented, not measured"}
	ask := adapter.Ability{Effect: ahp.EffectAsk, How: adapter.Denies, Level: adapter.BestEffort}
	modify := adapter.Ability{Effect: ahp.EffectModify, How: adapter.Denies, Level: adapter.BestEffort}
	var out []adapter.Row
	for _, native := range []string{"pre_read_code", "pre_write_code", "pre_run_command", "pre_mcp_tool_use"} {
		out = append(out, adapter.Row{Native: native, Type: ahp.ToolBefore, Can: []adapter.Ability{deny, ask, modify}})
	}
	out = append(out, adapter.Row{Native: "pre_user_prompt", Type: ahp.TurnStart, Can: []adapter.Ability{deny, modify}})
	for _, native := range []string{"post_read_code", "post_write_code", "post_run_command", "post_mcp_tool_use"} {
		out = append(out, adapter.Row{Native: native, Type: ahp.ToolAfter})
	}
	return append(out, adapter.Row{Native: "post_cascade_response", Type: ahp.TurnEnd})
}

// read reads a native event. A call has no tool's name but the event's: it is called by
// the name of its pre event, before and after alike.
func read(h *adapter.Host, in adapter.Input) (*adapter.Event, error) {
	o, err := adapter.ParseObject(in.Data)
	if err != nil {
		return nil, err
	}
	native := o.Need("agent_action_name")
	b := adapter.Base{Session: o.Text("trajectory_id"), Turn: o.Text("execution_id"), Model: o.Text("model_name")}
	if err := o.Err(); err != nil {
		return nil, err
	}
	row := h.Row(native)
	if row == nil {
		return nil, adapter.Unknown(native)
	}
	e := &adapter.Event{Row: row}
	info := o.Object("tool_info")
	switch row.Type {
	case ahp.ToolBefore:
		c := call(o, info, native)
		e.AHP, e.Tool = b.ToolBefore(c), c.Input
	case ahp.ToolAfter:
		c := call(o, info, "pre"+strings.TrimPrefix(native, "post"))
		e.AHP, e.Tool = b.ToolAfter(c, adapter.Result{Text: adapter.Show(info.Raw("mcp_result"))}), c.Input
	case ahp.TurnStart:
		e.AHP = b.Prompt(info.Need("user_prompt"), in.Data)
	case ahp.TurnEnd:
		e.AHP = b.Finish("completed", 0, info.Text("response"), in.Data)
		e.AHP.Type = ahp.TurnEnd // it differs in nothing else, and tells the answer
	}
	return e, o.Err()
}

// call reads a call: its input is all that the host tells of it, but for the result, so
// that it is the same before and after.
func call(o, info *adapter.Object, name string) adapter.Call {
	c := adapter.Call{Name: name, Input: o.Input("tool_info")}
	need := "file_path"
	switch name {
	case "pre_run_command":
		need = "command_line"
	case "pre_mcp_tool_use":
		need = "mcp_tool_name"
		info.Input("mcp_tool_arguments")
		if c.MCP = adapter.InferMCP(info.Text("mcp_server_name"), info.Text("mcp_tool_name")); c.MCP != nil {
			c.MCP.Provenance = "runtime"
		}
	}
	info.Need(need)
	if info.Has("mcp_result") {
		c.Input = info.Without("mcp_result")
	}
	return c
}

// write says a verdict: a refusal is all that there is.
func write(_ *adapter.Event, v *adapter.Verdict) ([]byte, error) {
	if v.Deny == "" {
		return nil, nil
	}
	return []byte(adapter.Reason(v.Deny)), nil
}
