package shape

import (
	"fmt"
	"strings"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter"
)

// Bridge reads and writes the documents of the bridge plugin for opencode and its forks:
// one document for each call of a hook, with the hook's own two arguments.
type Bridge struct {
	// Host is the host's name.
	Host string
}

// The hooks and the events that the bridge listens to.
const (
	ExecuteBefore  = "tool.execute.before"
	ExecuteAfter   = "tool.execute.after"
	ChatMessage    = "chat.message"
	SessionCreated = "session.created"
	SessionIdle    = "session.idle"
)

// bridged is one document, taken apart.
type bridged struct {
	doc, input, output *adapter.Object
	base               adapter.Base
	data               []byte
}

// Read reads one document of the bridge.
func (p Bridge) Read(h *adapter.Host, in adapter.Input) (*adapter.Event, error) {
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
	if row == nil || event != (native == SessionCreated || native == SessionIdle) {
		return nil, adapter.Unknown(native)
	}
	d.base = adapter.Base{Cwd: doc.Text("directory"), Session: d.input.Need("sessionID")}
	// Outside a repository the worktree is the root of the file system.
	if tree := doc.Text("worktree"); tree != "" && tree != "/" {
		d.base.Roots = []string{tree}
	}
	out := &adapter.Event{Row: row}
	p.event(d, out)
	if err := doc.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", native, err)
	}
	if row.Type == ahp.SessionStart {
		out.AHP.Manifest = h.Manifest()
	}
	return out, nil
}

func (p Bridge) event(d *bridged, out *adapter.Event) {
	b, native := &d.base, out.Row.Native
	if (native == ExecuteBefore || native == ExecuteAfter || native == ChatMessage) && !d.doc.Has("output") {
		d.doc.Need("output")
	}
	switch native {
	case ExecuteBefore:
		out.AHP = b.ToolBefore(d.call(d.output, out))
	case ExecuteAfter:
		r, others := d.result()
		out.AHP = b.ToolAfter(d.call(d.input, out), r)
		out.AHP.Gaps = NotText(others)
	case ChatMessage:
		out.AHP = d.prompt()
	case SessionCreated:
		info := d.input.Object("info")
		if dir := info.Text("directory"); dir != "" {
			b.Cwd = dir
		}
		b.Version = info.Text("version")
		out.Version, out.Agent = b.Version, info.Text("parentID") != ""
		out.AHP = b.SessionStart(p.Host, "startup")
	case SessionIdle:
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

// Texts returns the text of content that is a list of typed parts, one part a line, and
// how many parts aren't text.
func Texts(parts []*adapter.Object) (text string, others int) {
	var texts []string
	for _, part := range parts {
		if part.Text("type") == "text" {
			texts = append(texts, part.Text("text"))
		} else {
			others++
		}
	}
	return strings.Join(texts, "\n"), others
}

// NotText returns the gap that others parts of a content leave, which aren't text; nil
// for none.
func NotText(others int) []ahp.Gap {
	if others == 0 {
		return nil
	}
	return []ahp.Gap{{Path: "items", Reason: fmt.Sprintf("parts of the content that aren't text aren't sent: %d", others)}}
}

// BridgeAnswer is what every bridge plugin of ours reads on standard output. A member
// that isn't there has no effect.
type BridgeAnswer struct {
	// Args replaces the arguments of the call.
	Args ahp.Raw `json:"args,omitzero"`
	// Output replaces the result.
	Output *string `json:"output,omitzero"`
	// Context is added for the model.
	Context []string `json:"context,omitzero"`
	// Reason is that of a refusal.
	Reason string `json:"reason,omitzero"`
}

// WriteBridge says a verdict to a bridge plugin. A bridge goes by the exit code: the
// document says what a delivery holds, or why a call is refused. Context for a result
// comes with the result's own text, because a bridge puts both in place of it.
func WriteBridge(e *adapter.Event, v *adapter.Verdict) ([]byte, error) {
	if v.Deny != "" {
		return adapter.Encode(BridgeAnswer{Reason: adapter.Reason(v.Deny)})
	}
	if v.Silent() {
		return nil, nil
	}
	a := BridgeAnswer{Args: v.Input, Output: v.Output, Context: v.Context}
	if e.Row.Type == ahp.ToolAfter && a.Context != nil && a.Output == nil && e.AHP != nil {
		text := resultText(e.AHP)
		a.Output = &text
	}
	return adapter.Encode(a)
}

// resultText returns the text of a result that this package read.
func resultText(e *ahp.Event) string {
	var texts []string
	for _, m := range e.Items.Messages {
		for _, p := range m.Parts {
			if p.Text != nil {
				texts = append(texts, *p.Text)
			}
		}
	}
	return strings.Join(texts, "\n")
}
