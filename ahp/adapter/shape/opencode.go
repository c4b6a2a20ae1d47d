package shape

import (
	"fmt"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter"
)

// OpenCode returns the dialect of opencode, or of a fork of it, as the bridge plugin hands
// it on: one document for each call of a hook, with the hook's own two arguments. before
// is what is to be said of the event before a call in this host alone.
func OpenCode(name, title, before string) *adapter.Host {
	h := &adapter.Host{
		Name: name, Title: title, Deny: adapter.Delivery{Stream: adapter.Stdout},
		Rows: bridgedRows(before), Write: WriteBridge,
	}
	h.Read = func(in adapter.Input) (*adapter.Event, error) { return readBridged(h, in) }
	return h
}

// The hooks and the events that the bridge listens to.
const (
	executeBefore  = "tool.execute.before"
	executeAfter   = "tool.execute.after"
	chatMessage    = "chat.message"
	sessionCreated = "session.created"
	sessionIdle    = "session.idle"
)

func bridgedRows(before string) []adapter.Row {
	can := func(e ahp.EffectType, how adapter.How, note string) adapter.Ability {
		return adapter.Ability{Effect: e, How: how, Level: adapter.Enforced, Note: note}
	}
	return []adapter.Row{
		{
			Native: executeBefore, Type: ahp.ToolBefore,
			Note: "MCP tools come under names like the host's own; " + before,
			Can: []adapter.Ability{
				can(ahp.EffectDeny, adapter.Native, ""),
				can(ahp.EffectAsk, adapter.Denies, "permission.ask is declared and never called"),
				can(ahp.EffectModify, adapter.Native, "another plugin whose file runs later can change it again"),
			},
		},
		{
			Native: executeAfter, Type: ahp.ToolAfter, Note: "a call that failed has none",
			Can: []adapter.Ability{
				can(ahp.EffectModify, adapter.Native, "replaces the result that the model sees"),
				can(ahp.EffectInject, adapter.Native, "put behind the result's text; parts that aren't text are lost with it"),
			},
		},
		{
			Native: chatMessage, Type: ahp.TurnStart,
			Can: []adapter.Ability{
				can(ahp.EffectDeny, adapter.Native, "the person sees a server error without the reason"),
				can(ahp.EffectModify, adapter.Denies, ""),
				can(ahp.EffectInject, adapter.Native, "as one more part of the prompt"),
			},
		},
		{Native: sessionCreated, Type: ahp.SessionStart, Note: "a sub-agent has a session of its own"},
		{Native: sessionIdle, Type: ahp.TurnEnd},
	}
}

// bridged is one document, taken apart.
type bridged struct {
	doc, input, output *adapter.Object
	base               adapter.Base
	data               []byte
}

// readBridged reads one document of the bridge.
func readBridged(h *adapter.Host, in adapter.Input) (*adapter.Event, error) {
	doc, err := adapter.ParseObject(in.Data)
	if err != nil {
		return nil, err
	}
	d := &bridged{doc: doc, input: doc.Object("input"), output: doc.Object("output"), data: in.Data}
	native := doc.Need("hook")
	event := native == "event"
	if event {
		one := d.input.Object("event")
		native, d.input = one.Need("type"), one.Object("properties")
	}
	if err := doc.Err(); err != nil {
		return nil, err
	}
	row := h.Row(native)
	if row == nil || event != (native == sessionCreated || native == sessionIdle) {
		return nil, adapter.Unknown(native)
	}
	d.base = adapter.Base{Cwd: doc.Text("directory"), Session: d.input.Need("sessionID")}
	// Outside a repository the worktree is the root of the file system.
	if tree := doc.Text("worktree"); tree != "" && tree != "/" {
		d.base.Roots = []string{tree}
	}
	out := &adapter.Event{Row: row}
	d.event(h.Name, out)
	if err := doc.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", native, err)
	}
	if row.Type == ahp.SessionStart {
		out.AHP.Manifest = h.Manifest()
	}
	return out, nil
}

func (d *bridged) event(host string, out *adapter.Event) {
	b, native := &d.base, out.Row.Native
	if (native == executeBefore || native == executeAfter || native == chatMessage) && !d.doc.Has("output") {
		d.doc.Need("output")
	}
	switch native {
	case executeBefore:
		out.AHP = b.ToolBefore(d.call(d.output, out))
	case executeAfter:
		r, others := d.result()
		out.AHP = b.ToolAfter(d.call(d.input, out), r)
		out.AHP.Gaps = NotText(others)
	case chatMessage:
		out.AHP = d.prompt()
	case sessionCreated:
		info := d.input.Object("info")
		if dir := info.Text("directory"); dir != "" {
			b.Cwd = dir
		}
		b.Version = info.Text("version")
		out.Version, out.Agent = b.Version, info.Text("parentID") != ""
		out.AHP = b.SessionStart(host, "startup")
	case sessionIdle:
		out.AHP = b.TurnEnd("completed", "", d.data)
		out.AHP.Gaps = append(out.AHP.Gaps, ahp.Gap{Path: "outcome", Reason: "the host tells that the turn is over, not how it ended"})
	}
}

// call reads a call whose arguments are in o.
func (d *bridged) call(o *adapter.Object, out *adapter.Event) adapter.Call {
	c := adapter.Call{ID: d.input.Text("callID"), Name: d.input.Need("tool"), Input: o.Input("args")}
	if !o.Has("args") {
		o.Need("args") // which says that it isn't there: the host always has an object
	}
	out.Tool = c.Input
	return c
}

// result reads the result of one of the host's own tools, whose output is a string, or
// of an MCP server's, which comes as the server gave it and may have parts that aren't
// text.
func (d *bridged) result() (r adapter.Result, others int) {
	if d.output.Has("output") {
		return adapter.Result{Text: d.output.Text("output")}, 0
	}
	r.Failed = d.output.Bool("isError")
	r.Text, others = Texts(d.output.Objects("content"))
	return r, others
}

// prompt reads a person's message. The message's id names the turn, of which the host
// has no other name.
func (d *bridged) prompt() *ahp.Event {
	m := d.output.Object("message")
	d.base.Turn, d.base.TurnSynthesized = m.Text("id"), true
	d.base.Model = m.Object("model").Text("modelID")
	text, others := Texts(d.output.Objects("parts"))
	e := d.base.Prompt(text, d.data)
	e.Gaps = NotText(others)
	return e
}
