package adapter

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/abhed/abhed/ahp"
)

// Base is what every event of a session has.
type Base struct {
	// Session is the session's id; "" makes an event without a session.
	Session string
	Cwd     string
	Roots   []string
	Model   string
	// Turn is the turn's id, "" for none.
	Turn                string
	AgentID, AgentType  string
	SessionSynthesized  bool
	TurnSynthesized     bool
	Permission, Version string
}

// Path is the tool path of every native hook.
const Path = "native"

// Event returns an event of type t with what Base holds.
func (b *Base) Event(t ahp.EventType) *ahp.Event {
	e := &ahp.Event{Type: t}
	if b.Session != "" {
		e.Session = &ahp.Session{ID: b.Session, Cwd: b.Cwd, WorkspaceRoots: b.Roots, Model: b.Model, Synthesized: b.SessionSynthesized}
		if b.AgentID != "" {
			e.Session.Agent = &ahp.Agent{ID: b.AgentID, Type: b.AgentType}
		}
	}
	if b.Turn != "" {
		e.Turn = &ahp.Turn{ID: b.Turn, Synthesized: b.TurnSynthesized}
	}
	return e
}

// Call is a native tool call.
type Call struct {
	// ID is the host's id of the call, "" if it gives none.
	ID string
	// Name is the tool's name as the host has it.
	Name string
	// Input is a JSON object.
	Input ahp.Raw
	// MCP is set for a tool of an MCP server.
	MCP *ahp.MCP
}

func (b *Base) call(t ahp.EventType, c Call) *ahp.Event {
	e := b.Event(t)
	e.Path = Path
	e.Call = &ahp.Identity{ID: c.ID, Synthesized: c.ID == ""}
	e.Tool = &ahp.Tool{Name: c.Name, Input: c.Input, Origin: ahp.OriginNative, MCP: c.MCP}
	if c.MCP != nil {
		e.Tool.Origin = ahp.OriginMCP
	}
	return e
}

// ToolBefore returns a tool.before.
func (b *Base) ToolBefore(c Call) *ahp.Event { return b.call(ahp.ToolBefore, c) }

// PermissionRequest returns a tool.permission.request.
func (b *Base) PermissionRequest(c Call, suggestions []ahp.Raw) *ahp.Event {
	e := b.call(ahp.ToolPermissionRequest, c)
	e.Suggestions = append([]ahp.Raw{}, suggestions...)
	return e
}

// Result is how a call ended.
type Result struct {
	// Text is what the model sees.
	Text string
	// Failed tells that the call failed; Interrupted that it was cancelled.
	Failed, Interrupted bool
	// Milliseconds is how long it took; nil is unknown.
	Milliseconds *int64
}

// ToolAfter returns a tool.after.
func (b *Base) ToolAfter(c Call, r Result) *ahp.Event {
	e := b.call(ahp.ToolAfter, c)
	e.Outcome, e.Execution, e.DurationMs = "ok", ahp.Executed(), r.Milliseconds
	e.Items = ahp.MessageItems(ahp.TextMessage("result", ahp.RoleTool, r.Text))
	e.Items.Messages[0].Synthesized = true
	switch {
	case r.Interrupted:
		e.Outcome = "cancelled"
	case r.Failed:
		e.Outcome = "error"
		message := Clean(r.Text)
		if message == "" {
			message = "the host gave no message"
		}
		e.Error = &ahp.Problem{Class: "tool", Message: message}
	}
	return e
}

// Prompt returns the turn.start of a person's prompt. A host without turns gets a turn
// with an id made from seed.
func (b *Base) Prompt(text string, seed []byte) *ahp.Event {
	b.needTurn(seed)
	e := b.Event(ahp.TurnStart)
	e.Trigger = "user"
	e.Items = ahp.MessageItems(ahp.TextMessage("prompt", ahp.RoleUser, text))
	e.Items.Messages[0].Synthesized = true
	return e
}

// needTurn makes up a turn where the host has none.
func (b *Base) needTurn(seed []byte) {
	if b.Turn == "" {
		b.Turn, b.TurnSynthesized = "turn-"+Digest(seed), true
	}
}

// Digest returns a short name for data, for ids that a host doesn't give.
func Digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

// Finish returns the turn.finish.before of a turn whose end was put off done times.
func (b *Base) Finish(outcome string, done int64, last string, seed []byte) *ahp.Event {
	b.needTurn(seed)
	e := b.Event(ahp.TurnFinishBefore)
	e.Outcome, e.ContinuationCount = outcome, done
	e.Items = ahp.MessageItems()
	if last != "" {
		e.Items = ahp.MessageItems(ahp.TextMessage("last", ahp.RoleAssistant, last))
		e.Items.Messages[0].Synthesized = true
	}
	return e
}

// SessionStart returns a session.start; the caller adds the manifest. trigger is one of
// the protocol's, or anything else, which is "startup".
func (b *Base) SessionStart(host, trigger string) *ahp.Event {
	e := b.Event(ahp.SessionStart)
	switch trigger {
	case "startup", "resume", "compact":
	case "clear", "fork":
		e.ResumedFrom = &ahp.Identity{ID: "unknown", Synthesized: true}
	default:
		trigger = "startup"
	}
	version := b.Version
	if version == "" {
		version = "unknown"
	}
	e.Trigger, e.PermissionMode = trigger, b.Permission
	e.Harness = &ahp.HarnessInfo{Name: host, Version: version}
	e.Items = ahp.MessageItems()
	return e
}

// SessionEnd returns a session.end. outcome is one of the protocol's, or anything else,
// which is "unknown".
func (b *Base) SessionEnd(outcome, reason string) *ahp.Event {
	e := b.Event(ahp.SessionEnd)
	switch outcome {
	case "completed", "cancelled", "error":
	default:
		outcome = "unknown"
	}
	e.Outcome, e.Reason = outcome, reason
	return e
}

// Attention returns a user.attention.
func (b *Base) Attention(kind, title, message string) *ahp.Event {
	e := b.Event(ahp.UserAttention)
	if kind == "" {
		kind = "notification"
	}
	e.Attention = &ahp.Attention{Kind: kind, Title: []ahp.Part{ahp.TextPart("title", title)}, Message: []ahp.Part{ahp.TextPart("message", message)}}
	return e
}

// CompactBefore returns a context.compact.before.
func (b *Base) CompactBefore(trigger, instructions string) *ahp.Event {
	e := b.Event(ahp.ContextCompactBefore)
	if trigger != "manual" && trigger != "hook" {
		trigger = "auto"
	}
	e.Trigger, e.Items = trigger, ahp.MessageItems()
	if instructions != "" {
		e.Instructions = []ahp.Part{ahp.TextPart("instructions", instructions)}
	}
	return e
}

// CompactAfter returns a context.compact.after. A host that tells no summary gives "".
func (b *Base) CompactAfter(summary string) *ahp.Event {
	e := b.Event(ahp.ContextCompactAfter)
	part := ahp.TextPart("summary", summary)
	if summary == "" {
		part.Text, part.Gap = nil, &ahp.PartGap{Reason: "the host's hooks don't tell the summary"}
	}
	e.Summary, e.Removed, e.Execution, e.Items = []ahp.Part{part}, []ahp.Ref{}, ahp.Executed(), ahp.MessageItems()
	return e
}

// Task returns a task.change.before or .after: a sub-agent or a task of the host's list.
func (b *Base) Task(t ahp.EventType, id, operation, description string, change ahp.Raw) *ahp.Event {
	e := b.Event(t)
	if len(change) == 0 {
		change = ahp.Raw("{}")
	}
	e.Task = &ahp.Task{ID: id, Operation: operation, Description: description, Change: change}
	return e
}

// Unknown is the error for a native event that no table has.
func Unknown(native string) error {
	return fmt.Errorf("the native event %.60q isn't known for this host; if it is new, ahp needs an update, and until then it is answered by policy", native)
}
