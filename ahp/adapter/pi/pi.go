// Package pi is the hook dialect of pi (measured with 0.74.2 and 1.6.0), as the bridge
// extension hands it on: pi has no hook commands of its own.
//
// It guarantees that a refusal always carries its reason, which the model is told, and
// that a rewrite holds all arguments of the call, which the bridge puts in place.
//
// Do not assume that pi checks a rewritten input again. Do not assume that a call is the
// model's own: in 1.6 a script in codemode makes calls as well, each with the id of the
// call that it is inside of. A person's "!" commands don't pass here.
package pi

import (
	"fmt"
	"strings"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter"
	"github.com/abhed/abhed/ahp/adapter/shape"
)

// Host returns the dialect.
func Host() *adapter.Host {
	h := &adapter.Host{
		Name: "pi", Title: "pi", Deny: adapter.Delivery{Stream: adapter.Stdout},
		Rows: rows(), Write: shape.WriteBridge,
	}
	h.Read = func(in adapter.Input) (*adapter.Event, error) { return read(h, in) }
	return h
}

func rows() []adapter.Row {
	can := func(e ahp.EffectType, how adapter.How, note string) adapter.Ability {
		return adapter.Ability{Effect: e, How: how, Level: adapter.Enforced, Note: note}
	}
	return []adapter.Row{
		{
			Native: "tool_call", Type: ahp.ToolBefore, Note: "a call of an unknown tool, or with invalid arguments, has none",
			Can: []adapter.Ability{
				can(ahp.EffectDeny, adapter.Native, ""),
				can(ahp.EffectAsk, adapter.Denies, "pi has no permissions"),
				can(ahp.EffectModify, adapter.Native, "not checked against the tool's schema; another extension that runs later can change it again"),
			},
		},
		{
			Native: "tool_result", Type: ahp.ToolAfter, Note: "a call that was refused has none",
			Can: []adapter.Ability{
				can(ahp.EffectModify, adapter.Native, "replaces the result that the model sees"),
				can(ahp.EffectInject, adapter.Native, "put behind the result's text; parts that aren't text are lost with it"),
			},
		},
		{
			Native: "before_agent_start", Type: ahp.TurnStart,
			Can: []adapter.Ability{can(ahp.EffectInject, adapter.Native, "as a message of its own")},
		},
		{
			Native: "input", Type: ahp.UserMessageInbound, Note: "the text as typed, before templates and skills are put in",
			Can: []adapter.Ability{
				can(ahp.EffectDeny, adapter.Native, "the text is dropped, and nobody is told the reason"), can(ahp.EffectModify, adapter.Denies, ""),
			},
		},
		{Native: "session_start", Type: ahp.SessionStart},
		{Native: "session_shutdown", Type: ahp.SessionEnd},
	}
}

// read reads one document of the bridge: an event and what the bridge knows of the
// session.
func read(h *adapter.Host, in adapter.Input) (*adapter.Event, error) {
	doc, err := adapter.ParseObject(in.Data)
	if err != nil {
		return nil, err
	}
	native, event, ctx := doc.Need("hook"), doc.Object("event"), doc.Object("ctx")
	if kind := event.Need("type"); kind != native {
		doc.Fail(fmt.Errorf("the bridge's hook is %.60q and its event %.60q, expected the same", native, kind))
	}
	base := adapter.Base{Session: ctx.Need("sessionId"), Cwd: ctx.Text("cwd")}
	if err := doc.Err(); err != nil {
		return nil, err
	}
	row := h.Row(native)
	if row == nil {
		return nil, adapter.Unknown(native)
	}
	out := &adapter.Event{Row: row}
	build(h, out, &base, event, in.Data)
	if err := doc.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", native, err)
	}
	return out, nil
}

func build(h *adapter.Host, out *adapter.Event, b *adapter.Base, event *adapter.Object, data []byte) {
	switch out.Row.Native {
	case "tool_call":
		out.AHP = b.ToolBefore(call(event, out))
	case "tool_result":
		text, others := shape.Texts(event.Objects("content"))
		out.AHP = b.ToolAfter(call(event, out), adapter.Result{Text: text, Failed: event.Bool("isError")})
		out.AHP.Gaps = shape.NotText(others)
	case "before_agent_start":
		out.AHP = prompt(b, event, data)
	case "input":
		out.AHP = b.Inbound(orElse(event.Text("source"), "unknown"), "user", event.Text("text"))
		out.AHP.Gaps = shape.NotText(len(event.List("images")))
	case "session_start":
		out.AHP = b.SessionStart(h.Name, trigger(event.Text("reason")))
		out.AHP.Manifest = h.Manifest()
	case "session_shutdown":
		reason := event.Text("reason")
		outcome := "completed"
		if reason == "reload" || reason == "" { // the session goes on, or nobody says
			outcome = "unknown"
		}
		out.AHP = b.SessionEnd(outcome, reason)
	}
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// trigger names how a session started. A reload keeps the session.
func trigger(reason string) string {
	switch reason {
	case "resume", "fork":
		return reason
	case "reload":
		return "resume"
	}
	return "startup"
}

func call(event *adapter.Object, out *adapter.Event) adapter.Call {
	c := adapter.Call{ID: event.Text("toolCallId"), Name: event.Need("toolName"), Input: event.Input("input")}
	if !event.Has("input") {
		event.Need("input") // which says that it isn't there: the host always has an object
	}
	if rest, is := strings.CutPrefix(c.Name, "mcp__"); is {
		server, tool, _ := strings.Cut(rest, "__")
		c.MCP = adapter.InferMCP(server, tool)
	}
	out.Tool = c.Input
	return c
}

// prompt reads what starts a run: a person's text or, in 1.6, an extension's message.
func prompt(b *adapter.Base, event *adapter.Object, data []byte) *ahp.Event {
	if event.Text("messageType") != "custom" {
		e := b.Prompt(event.Text("prompt"), data)
		e.Gaps = shape.NotText(len(event.List("images")))
		return e
	}
	content := event.Object("message").Raw("content")
	text, others := adapter.Show(content), 0
	if len(content) > 0 && content[0] == '[' {
		text, others = shape.Texts(event.Object("message").Objects("content"))
	}
	e := b.Prompt(text, data)
	e.Trigger, e.Gaps = "hook", shape.NotText(others)
	return e
}
