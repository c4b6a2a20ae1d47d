// Package shape reads the native events of the hosts whose hooks follow Claude Code's
// form: one JSON object with the event's name, the session, the tool's name and input.
//
// It guarantees that a payload without what its kind of event must have is an error,
// and that names and inputs are kept as the host wrote them. Hosts differ in the names
// of members and of events: a Profile says which.
//
// It holds as well the dialect of opencode and its forks, which a bridge plugin hands on,
// and the parts of answers that several hosts read alike.
//
// Do not assume that two hosts of this form answer alike: each package says which
// members its host knows, and writes its own answers.
package shape

import (
	"errors"
	"fmt"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter"
)

// Kind says what a native event is.
type Kind string

// The kinds.
const (
	Before        Kind = "before"
	After         Kind = "after"
	Failure       Kind = "failure" // a call that failed
	Permission    Kind = "permission"
	Prompt        Kind = "prompt"
	SessionStart  Kind = "session start"
	SessionEnd    Kind = "session end"
	Stop          Kind = "stop"
	SubagentStart Kind = "subagent start"
	SubagentStop  Kind = "subagent stop"
	CompactBefore Kind = "compact before"
	CompactAfter  Kind = "compact after"
	Notification  Kind = "notification"
	Batch         Kind = "batch"
	TaskCreated   Kind = "task created"
	TaskDone      Kind = "task done"
	Own           Kind = "own" // the host's own, which Profile.Own reads
)

// Profile names the members of one host's payloads: each list in the order of
// preference. An empty list is the usual name, as the field's comment gives it.
type Profile struct {
	// Host is the host's name.
	Host string
	// Event is "hook_event_name".
	Event []string
	// Session is "session_id", Cwd "cwd", Roots "workspace_roots", Turn "prompt_id" or
	// "turn_id", Model "model", Version nothing.
	Session, Cwd, Roots, Turn, Model, Version []string
	// AgentID and AgentType are "agent_id" and "agent_type".
	AgentID, AgentType []string
	// Call is "tool_use_id", Tool "tool_name", Input "tool_input", Result
	// "tool_response".
	Call, Tool, Input, Result []string
	// PromptText is "prompt", Last "last_assistant_message".
	PromptText, Last []string
	// Prompt, if set, returns a person's text instead of PromptText.
	Prompt func(o *adapter.Object) string
	// Kinds says what each native event is.
	Kinds map[string]Kind
	// MCP, if set, returns the descriptor of a tool that an MCP server has.
	MCP func(o *adapter.Object, tool string) *ahp.MCP
	// Show, if set, returns the text of a result; nil shows a string as it is and
	// anything else as JSON. Failed then says whether the call failed.
	Show func(result ahp.Raw) (text string, failed bool)
	// Others, if set, returns how many parts of a result Show leaves out.
	Others func(result ahp.Raw) int
	// Strict tells that the host always sends a session id, and an input with a call: a
	// payload without is an unknown shape, and not a call without arguments.
	Strict bool
	// Sessionless tells that the host says no session even where one starts or ends, and
	// that the caller makes one up.
	Sessionless bool
	// Own builds the events of kind Own.
	Own func(native string, o *adapter.Object, b *adapter.Base, data []byte) *ahp.Event
}

func or(names []string, usual ...string) []string {
	if len(names) > 0 {
		return names
	}
	return usual
}

// Read reads a native event of a host.
func (p *Profile) Read(h *adapter.Host, in adapter.Input) (*adapter.Event, error) {
	o, err := adapter.ParseObject(in.Data)
	if err != nil {
		return nil, err
	}
	native := o.Text(or(p.Event, "hook_event_name")...)
	if native == "" {
		native = in.Native
	}
	return p.ReadAs(h, in, o, native)
}

// ReadAs reads a native event whose name the caller found, for a host that doesn't
// always say it in one member. o is in.Data.
func (p *Profile) ReadAs(h *adapter.Host, in adapter.Input, o *adapter.Object, native string) (*adapter.Event, error) {
	row, kind := h.Row(native), p.Kinds[native]
	if err := o.Err(); err != nil {
		return nil, err
	}
	if row == nil || kind == "" {
		return nil, adapter.Unknown(native)
	}
	out := &adapter.Event{Row: row}
	b := p.base(o, out)
	p.event(o, out, &b, kind, in)
	if !p.Sessionless && (row.Type == ahp.SessionStart || row.Type == ahp.SessionEnd) {
		o.Need(or(p.Session, "session_id")...)
	}
	if err := o.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", native, err)
	}
	if out.AHP == nil || out.AHP.Type != row.Type {
		return nil, fmt.Errorf("bug: the native event %s was read as another event than its row says", native)
	}
	if row.Type == ahp.SessionStart {
		out.AHP.Manifest = h.Manifest()
	}
	return out, nil
}

// base reads what every event has.
func (p *Profile) base(o *adapter.Object, out *adapter.Event) adapter.Base {
	b := adapter.Base{
		Session: o.Text(or(p.Session, "session_id")...), Cwd: o.Text(or(p.Cwd, "cwd")...), Roots: o.Texts(or(p.Roots, "workspace_roots")...),
		Turn: o.Text(or(p.Turn, "prompt_id", "turn_id")...), AgentID: o.Text(or(p.AgentID, "agent_id")...),
		AgentType: o.Text(or(p.AgentType, "agent_type")...), Permission: o.Text("permission_mode", "permissionMode"),
	}
	if p.Strict {
		o.Need(or(p.Session, "session_id")...)
	}
	b.Model = o.Text(or(p.Model, "model")...)
	if len(p.Version) > 0 {
		b.Version = o.Text(p.Version...)
	}
	out.Version, out.Agent = b.Version, b.AgentID != ""
	return b
}

func (p *Profile) call(o *adapter.Object, out *adapter.Event) adapter.Call {
	c := adapter.Call{ID: o.Text(or(p.Call, "tool_use_id")...), Name: o.Need(or(p.Tool, "tool_name")...), Input: o.Input(or(p.Input, "tool_input")...)}
	if p.MCP != nil {
		c.MCP = p.MCP(o, c.Name)
	}
	if names := or(p.Input, "tool_input"); p.Strict && !o.Has(names...) {
		o.Need(names...) // which says that it isn't there
	}
	out.Tool = c.Input
	return c
}

// event builds the event of the protocol.
func (p *Profile) event(o *adapter.Object, out *adapter.Event, b *adapter.Base, kind Kind, in adapter.Input) {
	switch kind {
	case Before:
		out.AHP = b.ToolBefore(p.call(o, out))
	case After, Failure:
		out.AHP = b.ToolAfter(p.call(o, out), p.result(o, kind))
		if raw := o.Raw(or(p.Result, "tool_response")...); p.Others != nil && raw != nil {
			out.AHP.Gaps = NotText(p.Others(raw))
		}
	case Permission:
		out.AHP = b.PermissionRequest(p.call(o, out), objects(o.List("permission_suggestions", "suggestions")))
	case Prompt:
		out.AHP = b.Prompt(p.prompt(o), in.Data)
	case SessionStart:
		out.AHP = b.SessionStart(p.Host, o.Text("source", "trigger"))
	case SessionEnd:
		reason := o.Text("reason", "source")
		out.AHP = b.SessionEnd(endings()[reason], reason)
	case Stop, SubagentStop:
		var done int64
		if o.Bool("stop_hook_active") {
			done = max(out.Row.Continuations, 1)
		}
		out.AHP = b.Finish("completed", done, o.Text(or(p.Last, "last_assistant_message")...), in.Data)
	case SubagentStart:
		out.AHP = b.Task(out.Row.Type, o.Need(or(p.AgentID, "agent_id")...), "create", b.AgentType, nil)
	case TaskCreated, TaskDone:
		operation := map[Kind]string{TaskCreated: "create", TaskDone: "update"}[kind]
		out.AHP = b.Task(out.Row.Type, o.Need("task_id", "todo_id", "id"), operation, o.Text("task_subject", "subject", "task_description", "todo_content"), nil)
	case CompactBefore:
		out.AHP = b.CompactBefore(o.Text("trigger"), o.Text("custom_instructions"))
	case CompactAfter:
		out.AHP = b.CompactAfter(o.Text("compact_summary", "summary"))
	case Notification:
		out.AHP = b.Attention(o.Text("notification_type"), o.Text("title"), o.Text("message", "body", "notification_message"))
	case Batch:
		out.AHP = p.batch(o, b, in)
	case Own:
		out.AHP = p.Own(out.Row.Native, o, b, in.Data)
	}
}

func (p *Profile) prompt(o *adapter.Object) string {
	if p.Prompt != nil {
		return p.Prompt(o)
	}
	return o.Text(or(p.PromptText, "prompt")...)
}

// objects returns the items that are objects: suggestions are opaque objects.
func objects(list []ahp.Raw) []ahp.Raw {
	var out []ahp.Raw
	for _, r := range list {
		if r.IsObject() {
			out = append(out, r)
		}
	}
	return out
}

func endings() map[string]string {
	return map[string]string{"completed": "completed", "logout": "completed", "prompt_input_exit": "completed", "clear": "completed", "error": "error", "interrupt": "cancelled"}
}

func (p *Profile) result(o *adapter.Object, kind Kind) adapter.Result {
	r := adapter.Result{Milliseconds: o.Milliseconds("duration_ms"), Failed: kind == Failure, Interrupted: o.Bool("is_interrupt")}
	raw := o.Raw(or(p.Result, "tool_response")...)
	if kind == Failure && raw == nil {
		raw = o.Raw("error")
	}
	if p.Show == nil || raw == nil {
		r.Text = adapter.Show(raw)
		return r
	}
	var failed bool
	r.Text, failed = p.Show(raw)
	r.Failed = r.Failed || failed
	return r
}

// batch reads the calls that a model made together.
func (p *Profile) batch(o *adapter.Object, b *adapter.Base, in adapter.Input) *ahp.Event {
	e := b.Event(ahp.ToolBatchAfter)
	for _, raw := range o.List("tool_calls") {
		item, err := adapter.ParseObject(raw)
		if o.Fail(err); err != nil {
			break
		}
		c := p.call(item, &adapter.Event{})
		item.Need(or(p.Call, "tool_use_id")...)
		o.Fail(item.Err())
		tool := ahp.Tool{Name: c.Name, Input: c.Input, Origin: ahp.OriginNative, MCP: c.MCP}
		if c.MCP != nil {
			tool.Origin = ahp.OriginMCP
		}
		outcome := "ok"
		switch item.Text("status") {
		case "error", "failed":
			outcome = "error"
		case "cancelled":
			outcome = "cancelled"
		}
		e.Calls = append(e.Calls, ahp.BatchCall{Call: ahp.Identity{ID: c.ID}, Tool: tool, Path: adapter.Path, Outcome: outcome, Execution: *ahp.Executed()})
	}
	if len(e.Calls) == 0 {
		o.Need("tool_calls")
		o.Fail(errors.New("the native event isn't what this host is known to send: its batch holds no call"))
	}
	e.Batch = &ahp.Batch{ID: "batch-" + adapter.Digest(in.Data), Synthesized: true}
	return e
}
