// Package cline is the hook dialect of Cline: its command line (measured with 3.0.65) and
// its editor extension (as documented).
//
// It guarantees that a refusal is one document on standard output, because the host reads
// no exit code, in a HOOK_CONTROL line where the command line asks, and that nothing is asked for that was seen to have no effect:
// neither a rewritten input nor a review.
//
// Do not assume that a refusal is about one call: it ends the whole run, and the model is
// told nothing. Do not assume that the extension's inputs have the tool's own types: every
// value is a string there.
package cline

import (
	"fmt"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter"
)

// Host returns the dialect.
func Host() *adapter.Host {
	h := &adapter.Host{
		Name: "cline", Title: "Cline", Deny: adapter.Delivery{Stream: adapter.Stdout}, Rows: rows(), Write: write,
	}
	h.Read = func(in adapter.Input) (*adapter.Event, error) { return read(h, in) }
	return h
}

func can(e ahp.EffectType, how adapter.How, level adapter.Level, note string) adapter.Ability {
	return adapter.Ability{Effect: e, How: how, Level: level, Note: note}
}

func rows() []adapter.Row {
	const ends, editor = "ends the whole run, and the model is told nothing", "in the extension, as documented"
	context := can(ahp.EffectInject, adapter.Native, adapter.Enforced, "")
	stop := adapter.Ability{Effect: ahp.EffectFlow, Operation: ahp.FlowStop, How: adapter.Native, Level: adapter.Enforced, Note: ends}
	return []adapter.Row{
		{Native: "TaskStart", Type: ahp.SessionStart, Note: "can't be refused, and adds nothing for the model (measured)"},
		{Native: "TaskResume", Type: ahp.SessionStart},
		{Native: "UserPromptSubmit", Type: ahp.TurnStart, Note: "the command line doesn't wait for it, and fires none in headless runs", Can: []adapter.Ability{
			can(ahp.EffectDeny, adapter.Native, adapter.BestEffort, editor), can(ahp.EffectModify, adapter.Denies, adapter.BestEffort, ""),
			can(ahp.EffectInject, adapter.Native, adapter.BestEffort, editor)}},
		{Native: "PreToolUse", Type: ahp.ToolBefore, Can: []adapter.Ability{
			can(ahp.EffectDeny, adapter.Native, adapter.Enforced, ends), can(ahp.EffectAsk, adapter.Denies, adapter.Enforced, "a review has no effect"),
			can(ahp.EffectModify, adapter.Denies, adapter.Enforced, "a rewrite has no effect"), context, stop}},
		{Native: "PostToolUse", Type: ahp.ToolAfter, Can: []adapter.Ability{context, stop}},
		{Native: "PreCompact", Type: ahp.ContextCompactBefore, Note: "the command line fires none"},
		{Native: "TaskComplete", Type: ahp.TurnEnd},
		{Native: "TaskCancel", Type: ahp.TurnEnd},
		{Native: "TaskError", Type: ahp.TurnEnd},
		{Native: "SessionShutdown", Type: ahp.SessionEnd},
	}
}

// spoken returns the hook that a payload is of: the extension has the file's name in it,
// and the command line a name of its own.
func spoken(name string) string {
	own := map[string]string{
		"agent_start": "TaskStart", "agent_resume": "TaskResume", "agent_abort": "TaskCancel", "agent_end": "TaskComplete", "agent_error": "TaskError",
		"tool_call": "PreToolUse", "tool_result": "PostToolUse", "prompt_submit": "UserPromptSubmit", "pre_compact": "PreCompact", "session_shutdown": "SessionShutdown",
	}
	if file, is := own[name]; is {
		return file
	}
	return name
}

// extension is the Detail of an event of the editor's extension.
const extension = "extension"

func detail(said string, row *adapter.Row) string {
	if said == row.Native {
		return extension
	}
	return ""
}

// read reads a native event. The installed line names it, as the file's name does, and
// the payload has to be of it.
func read(h *adapter.Host, in adapter.Input) (*adapter.Event, error) {
	o, err := adapter.ParseObject(in.Data)
	if err != nil {
		return nil, err
	}
	said := o.Need("hookName")
	if err := o.Err(); err != nil {
		return nil, err
	}
	row := h.Row(spoken(said))
	if row == nil {
		return nil, adapter.Unknown(said)
	}
	if in.Native != "" && in.Native != row.Native {
		return nil, fmt.Errorf("the hook %.60q was given the payload of another event, %.60q: it isn't what this host is known to send", in.Native, said)
	}
	e := &adapter.Event{Row: row, Detail: detail(said, row), Version: o.Text("clineVersion"), Agent: o.Has("parent_agent_id")}
	b := adapter.Base{Session: o.Need("taskId"), Roots: o.Texts("workspaceRoots"), Version: e.Version, Cwd: o.Object("workspaceInfo").Text("rootPath")}
	if e.Agent {
		b.AgentID = o.Text("agent_id")
	}
	event(o, e, &b, in)
	if err := o.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", row.Native, err)
	}
	if row.Type == ahp.SessionStart {
		e.AHP.Manifest = h.Manifest()
	}
	return e, nil
}

// event builds the event of the protocol.
func event(o *adapter.Object, e *adapter.Event, b *adapter.Base, in adapter.Input) {
	turn := o.Object("turn")
	switch e.Row.Native {
	case "TaskStart":
		e.AHP = b.SessionStart("cline", "startup")
	case "TaskResume":
		e.AHP = b.SessionStart("cline", "resume")
	case "UserPromptSubmit":
		e.AHP = b.Prompt(o.Object("userPromptSubmit").Text("prompt"), in.Data)
	case "PreToolUse":
		c := call(o, "tool_call", "preToolUse")
		e.AHP, e.Tool = b.ToolBefore(c), c.Input
	case "PostToolUse":
		c := call(o, "tool_result", "postToolUse")
		e.AHP, e.Tool = b.ToolAfter(c, result(o)), c.Input
	case "PreCompact":
		e.AHP = b.CompactBefore("auto", "")
	case "TaskComplete":
		e.AHP = b.Finish("completed", 0, turn.Text("outputText"), in.Data)
		e.AHP.Type = ahp.TurnEnd // it differs in nothing else, and tells the answer
	case "TaskCancel":
		e.AHP = b.TurnEnd("cancelled", "", in.Data)
	case "TaskError":
		e.AHP = b.TurnEnd("failed", o.Object("error").Text("message"), in.Data)
	case "SessionShutdown":
		e.AHP = b.SessionEnd("", o.Text("reason"))
	}
}

// call reads a call: the command line's own object has its id and its input with the
// tool's types, and the extension has strings alone.
func call(o *adapter.Object, own, strings string) adapter.Call {
	if o.Has(own) {
		c := o.Object(own)
		return adapter.Call{ID: c.Text("id"), Name: c.Need("name"), Input: c.Input("input")}
	}
	c := o.Object(strings)
	out := adapter.Call{Name: c.Need("toolName"), Input: c.Input("parameters")}
	if out.Name == "use_mcp_tool" || out.Name == "access_mcp_resource" {
		p := c.Object("parameters")
		tool := p.Text("tool_name")
		if tool == "" {
			tool = out.Name
		}
		out.MCP = adapter.InferMCP(p.Text("server_name"), tool)
	}
	return out
}

// result reads how a call ended. The extension's object is there in both forms, and has
// the result as text.
func result(o *adapter.Object) adapter.Result {
	own, also := o.Object("tool_result"), o.Object("postToolUse")
	r := adapter.Result{Text: also.Text("result"), Milliseconds: own.Milliseconds("durationMs")}
	if r.Text == "" {
		r.Text = adapter.Show(own.Raw("output"))
	}
	if r.Milliseconds == nil {
		r.Milliseconds = also.Milliseconds("executionTimeMs")
	}
	r.Failed = own.Has("error") || also.Has("success") && !also.Bool("success")
	if r.Failed && r.Text == "" {
		r.Text = adapter.Show(own.Raw("error"))
	}
	return r
}
