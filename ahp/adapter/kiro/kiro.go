// Package kiro is the hook dialect of Kiro, as documented: the agent files of Kiro CLI 2.x
// and of Amazon Q, and the v1 hook files of newer ones. It wasn't measured.
//
// It guarantees that a refusal is exit code 2 with the reason on standard error, and that
// a sentence for the model is written only where standard output is read as such.
//
// Do not assume a call's id. Kiro CLI 2.x doesn't tell the session either: one is made up
// from the folder, so that rules about paths know where they are, and two sessions in one
// folder share it.
package kiro

import (
	"strings"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter"
	"github.com/abhed/abhed/ahp/adapter/shape"
)

// Host returns the dialect.
func Host() *adapter.Host {
	h := &adapter.Host{
		Name: "kiro", Title: "Kiro", Deny: adapter.Delivery{Exit: 2, Stream: adapter.Stderr},
		Rows: append(agentRows(), fileRows()...), Write: write,
	}
	h.Read = func(in adapter.Input) (*adapter.Event, error) { return read(h, in) }
	return h
}

const documented = "documented, not measured"

func can(e ahp.EffectType, how adapter.How, note string) adapter.Ability {
	return adapter.Ability{Effect: e, How: how, Level: adapter.BestEffort, Note: note}
}

// call is what can be done before a call.
func call() []adapter.Ability {
	return []adapter.Ability{
		can(ahp.EffectDeny, adapter.Native, documented), can(ahp.EffectAsk, adapter.Denies, ""), can(ahp.EffectModify, adapter.Denies, ""),
	}
}

// context is what is printed for the model.
func context() adapter.Ability { return can(ahp.EffectInject, adapter.Native, documented) }

// agentRows holds the events of agent files.
func agentRows() []adapter.Row {
	return []adapter.Row{
		{Native: "agentSpawn", Type: ahp.SessionStart, Can: []adapter.Ability{context()}},
		{Native: "userPromptSubmit", Type: ahp.TurnStart, Can: []adapter.Ability{context()}},
		{Native: "preToolUse", Type: ahp.ToolBefore, Can: call()},
		{Native: "postToolUse", Type: ahp.ToolAfter},
		{Native: "stop", Type: ahp.TurnFinishBefore},
	}
}

// fileRows holds the triggers of v1 hook files.
func fileRows() []adapter.Row {
	return []adapter.Row{
		{Native: "SessionStart", Type: ahp.SessionStart, Can: []adapter.Ability{context()}},
		{Native: "SessionEnd", Type: ahp.SessionEnd},
		{Native: "UserPromptSubmit", Type: ahp.TurnStart, Can: []adapter.Ability{
			can(ahp.EffectDeny, adapter.Native, documented), can(ahp.EffectModify, adapter.Denies, ""), context()}},
		{Native: "PreToolUse", Type: ahp.ToolBefore, Can: call()},
		{Native: "PostToolUse", Type: ahp.ToolAfter},
		{Native: "PreTaskExec", Type: ahp.TaskChangeBefore, Can: []adapter.Ability{can(ahp.EffectDeny, adapter.Native, documented)}},
		{Native: "PostTaskExec", Type: ahp.TaskChangeAfter},
		{Native: "Stop", Type: ahp.TurnFinishBefore},
	}
}

func profile() *shape.Profile {
	kinds := map[string]shape.Kind{
		"agentSpawn": shape.SessionStart, "SessionStart": shape.SessionStart, "SessionEnd": shape.SessionEnd,
		"userPromptSubmit": shape.Prompt, "UserPromptSubmit": shape.Prompt, "preToolUse": shape.Before, "PreToolUse": shape.Before,
		"postToolUse": shape.After, "PostToolUse": shape.After, "stop": shape.Stop, "Stop": shape.Stop,
	}
	return &shape.Profile{Host: "kiro", Sessionless: true, Kinds: kinds, Last: []string{"assistant_response"}, Show: show, MCP: mcp}
}

func read(h *adapter.Host, in adapter.Input) (*adapter.Event, error) {
	o, err := adapter.ParseObject(in.Data)
	if err != nil {
		return nil, err
	}
	native := name(o)
	row := h.Row(native)
	if err := o.Err(); err != nil {
		return nil, err
	}
	if row == nil {
		return nil, adapter.Unknown(native)
	}
	var e *adapter.Event
	switch row.Type {
	case ahp.TaskChangeBefore, ahp.TaskChangeAfter:
		e = task(o, row, in)
	default:
		if e, err = profile().ReadAs(h, in, o, native); err != nil {
			return nil, err
		}
	}
	place(e.AHP, o.Text("cwd"))
	return e, o.Err()
}

// name returns the event's name in the configuration: payloads of v1 files spell it as
// agent files do, and have a session.
func name(o *adapter.Object) string {
	said := o.Text("hook_event_name")
	switch {
	case said == "" || !o.Has("session_id"):
		return said
	case said == "agentSpawn" || said == "AgentSpawn": // v1 has it as an alias
		return "SessionStart"
	}
	return strings.ToUpper(said[:1]) + said[1:]
}

// place makes up a session where the host tells the folder alone.
func place(e *ahp.Event, cwd string) {
	if e.Session == nil {
		e.Session = &ahp.Session{ID: "kiro-" + adapter.Digest([]byte(cwd)), Cwd: cwd, Synthesized: true}
	}
}

// task reads an event about a task of a specification. Its members aren't documented:
// what there is is kept as the change.
func task(o *adapter.Object, row *adapter.Row, in adapter.Input) *adapter.Event {
	b := adapter.Base{Session: o.Text("session_id"), Cwd: o.Text("cwd")}
	id := o.Text("task_id")
	change := o.Without("hook_event_name", "session_id", "cwd")
	made := id == ""
	if made {
		id = "task-" + adapter.Digest(change)
	}
	e := &adapter.Event{Row: row, AHP: b.Task(row.Type, id, "update", o.Text("task", "task_name"), change)}
	e.AHP.Task.Synthesized = made
	return e
}

// mcp reads a tool that is named "@server/tool".
func mcp(_ *adapter.Object, tool string) *ahp.MCP {
	rest, is := strings.CutPrefix(tool, "@")
	if !is {
		return nil
	}
	server, name, _ := strings.Cut(rest, "/")
	return adapter.InferMCP(server, name)
}

// show returns the text of a result: that of a list of one text is the text.
func show(raw ahp.Raw) (text string, failed bool) {
	if !raw.IsObject() {
		return adapter.Show(raw), false
	}
	o, err := adapter.ParseObject(raw)
	if err != nil || !o.Has("success") {
		return adapter.Show(raw), false
	}
	failed = !o.Bool("success")
	result := o.Raw("result")
	if len(result) > 0 && result[0] == '[' {
		if texts := o.Texts("result"); o.Err() == nil {
			return strings.Join(texts, "\n"), failed
		}
	}
	return adapter.Show(result), failed
}

// write says a verdict: a refusal is the reason, and a sentence for the model is printed.
func write(_ *adapter.Event, v *adapter.Verdict) ([]byte, error) {
	if v.Deny != "" {
		return []byte(adapter.Reason(v.Deny)), nil
	}
	return []byte(adapter.Words(strings.Join(v.Context, "\n"))), nil
}
