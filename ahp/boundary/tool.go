package boundary

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/harness"
	"github.com/abhed/abhed/internal/strictjson"
)

// ToolCall is a tool call whose name and input are final. Name and Input are
// required.
type ToolCall struct {
	// ID is the provider's id of the call; empty means a new one, marked as
	// synthesized.
	ID string
	// Name is the tool's name as the harness knows it, Kind a free description.
	Name, Kind string
	// Input is a JSON object.
	Input ahp.Raw
	// MCP is set for the tool of an MCP server.
	MCP *ahp.MCP
	// Turn and Batch are what the call belongs to; nil for none.
	Turn  *Turn
	Batch *ahp.Batch
	// Parent is the id of the event that led to the call, or "".
	Parent string
	// Native is the provider's own event, any JSON, or nil. Only subscriptions that
	// ask for it get it.
	Native ahp.Raw

	synthesized bool // the id was made up here
}

// ToolOutput is what a tool gave.
type ToolOutput struct {
	// Text is the output, where it is one text. What isn't valid UTF-8 in it is
	// replaced.
	Text string
	// Messages are the output where Text won't do; then Text is ignored.
	Messages []ahp.Message
	// FileChanges are the changes that the call is known to have made.
	FileChanges []ahp.FileChange
}

// ToolResult is how a call ended.
type ToolResult struct {
	Verdict
	// Call and Input are the call's id and its effective input.
	Call  ahp.Identity
	Input ahp.Raw
	// Outcome is "ok", "error", "denied", "cancelled" or "timeout" where there was a
	// tool.after, and "" where there was none.
	Outcome string
	// Output is what the model is to read: the effective output of the tool, or why
	// there is none. It is nil where the model is to read nothing: after a stop and
	// after an interruption.
	Output []ahp.Message

	execution *ahp.Execution
	tool      *ahp.Tool
}

// Text returns the texts of the output, one a line.
func (r *ToolResult) Text() string {
	var lines []string
	for _, m := range r.Output {
		for _, p := range m.Parts {
			if p.Text != nil {
				lines = append(lines, *p.Text)
			}
		}
	}
	return strings.Join(lines, "\n")
}

// Tool has a call judged, runs exec on the effective input if nothing stands
// against it, and has the result judged. exec gets the input that is in effect,
// which may be another than the call's. It may return output besides an error; its
// context error, or a context error that it returns, makes the outcome "cancelled"
// or "timeout".
//
// The error is a bug here, in the harness or in exec (a panic), or
// harness.ErrClosed: the result must not be used, whatever its status, and
// Executed tells whether exec was called.
func (b *Boundary) Tool(ctx context.Context, call ToolCall, exec func(ctx context.Context, input ahp.Raw) (ToolOutput, error)) (r ToolResult, err error) {
	defer func() { r.seal(err) }()
	r.Input = call.Input
	before, err := b.toolBefore(&call)
	if err != nil {
		return r, err
	}
	r.Call = *before.Call
	out, err := b.ask(ctx, &r.Verdict, before, call.Turn, nil)
	if err != nil {
		return r, err
	}
	if r.judged(out) {
		if out, err = b.approve(ctx, &r.Verdict, out, call.Turn); err != nil {
			return r, err
		}
	}
	r.tool, r.Input = out.Event.Tool, out.Event.Tool.Input
	after, err := b.event(ahp.ToolAfter, call.Turn, before.ID)
	if err != nil {
		return r, err
	}
	after.Call, after.Tool, after.Path, after.Batch = out.Event.Call, r.tool, out.Event.Path, out.Event.Batch
	err = b.resolve(ctx, &r, after, out, call.Turn, exec)
	return r, err
}

// toolBefore returns the event before the call.
func (b *Boundary) toolBefore(call *ToolCall) (*ahp.Event, error) {
	e, err := b.event(ahp.ToolBefore, call.Turn, call.Parent)
	if err != nil {
		return nil, err
	}
	if err := call.identify(); err != nil {
		return nil, err
	}
	e.Call = &ahp.Identity{ID: call.ID, Synthesized: call.synthesized}
	e.Tool = &ahp.Tool{Name: call.Name, Kind: call.Kind, Input: call.Input, Origin: ahp.OriginNative, MCP: call.MCP}
	if call.MCP != nil {
		e.Tool.Origin = ahp.OriginMCP
	}
	e.Path, e.Batch, e.Native = b.opts.Path, call.Batch, call.Native
	return e, nil
}

// identify makes sure that the call has an id.
func (c *ToolCall) identify() (err error) {
	if c.ID == "" {
		c.synthesized = true
		c.ID, err = newID()
	}
	return err
}

// resolve carries out what was decided, and has the result judged.
func (b *Boundary) resolve(ctx context.Context, r *ToolResult, after *ahp.Event, out *harness.Outcome, turn *Turn, exec func(context.Context, ahp.Raw) (ToolOutput, error)) error {
	var output ToolOutput
	var bug error
	began := time.Now()
	switch r.Status {
	case Passed:
		bug = r.execute(ctx, func() (err error) {
			output, err = exec(ctx, bytes.Clone(r.Input)) // the event after shows what it got
			return err
		})
	case Supplied:
		output.Text, bug = suppliedText(out.Candidate.Value)
	}
	if r.Status == Stopped || r.Status == Interrupted {
		return nil // not resolved: nothing ran, and nothing is told of it
	}
	r.outcome(ctx)
	after.Outcome, after.Execution = r.Outcome, r.execution
	if r.Executed {
		ms := time.Since(began).Milliseconds()
		after.DurationMs, after.FileChanges = &ms, output.FileChanges
	}
	if r.Outcome == "error" {
		after.Error = &ahp.Problem{Class: "tool_error", Message: textOf(r.Err, bug)}
	}
	messages, err := b.output(r, &output, bug)
	if err != nil {
		return errors.Join(bug, err)
	}
	after.Items = ahp.MessageItems(messages...)
	return errors.Join(bug, b.toolAfter(ctx, r, after, turn))
}

// outcome sets what the protocol calls how the call ended.
func (r *ToolResult) outcome(ctx context.Context) {
	switch r.Status {
	case Denied, Refused:
		r.Outcome, r.execution = "denied", ahp.Skipped("policy")
	case Supplied:
		r.Outcome, r.execution = "ok", ahp.Skipped("supplied_result")
	case Ran:
		r.Outcome, r.execution = "ok", ahp.Executed()
	default:
		r.execution = ahp.Executed()
		switch r.Outcome = "error"; {
		case errors.Is(r.Err, context.DeadlineExceeded), errors.Is(ctx.Err(), context.DeadlineExceeded):
			r.Outcome = "timeout"
		case errors.Is(r.Err, context.Canceled), ctx.Err() != nil:
			r.Outcome = "cancelled"
		}
	}
}

// toolAfter has the result judged: r.Output is what may be used of it.
func (b *Boundary) toolAfter(ctx context.Context, r *ToolResult, e *ahp.Event, turn *Turn) error {
	if ctx.Err() != nil {
		// Cancelled while it ran: nobody is asked any more, but it did happen.
		if !r.refused() {
			r.Status, r.Reason = Interrupted, reasonInterrupted
		}
		return b.observe(ctx, e)
	}
	var drop []ahp.EffectType
	if r.refused() {
		drop = []ahp.EffectType{ahp.EffectModify} // a refusal stays as it is
	}
	out, err := b.ask(ctx, &r.Verdict, e, turn, nil, drop...)
	if err != nil {
		return err
	}
	if r.checked(out) {
		r.Output = out.Event.Items.Messages
		return nil
	}
	if r.Status != Interrupted {
		r.Output, err = b.text(r.Reason)
	}
	return err
}

// output returns the messages of the tool, or why there are none.
func (b *Boundary) output(r *ToolResult, output *ToolOutput, bug error) ([]ahp.Message, error) {
	switch {
	case r.refused():
		return b.text(r.Reason)
	case len(output.Messages) > 0:
		return output.Messages, nil
	case output.Text == "" && r.Err != nil:
		return b.text(textOf(r.Err, bug))
	}
	return b.text(output.Text)
}

// text returns one message of a tool with one text.
func (b *Boundary) text(s string) ([]ahp.Message, error) {
	id, err := newID()
	if err != nil {
		return nil, err
	}
	return []ahp.Message{ahp.TextMessage(id, ahp.RoleTool, strings.ToValidUTF8(s, "\uFFFD"))}, nil
}

// textOf returns what may be said of an executor's error; nothing of a panic.
func textOf(err, bug error) string {
	if bug != nil || err == nil || err.Error() == "" {
		return reasonFailed
	}
	return strings.ToValidUTF8(err.Error(), "\uFFFD")
}

// suppliedText returns a supplied result as the text of a tool: a string as it is,
// any other JSON value canonically (A7 of the digest, §29).
func suppliedText(v ahp.Raw) (string, error) {
	var s string
	if err := strictjson.Unmarshal(v, &s, strictjson.Options{}); err == nil {
		return s, nil
	}
	out, err := strictjson.Canonical(v)
	return string(out), err
}

// ParseCall reads one tool call of a model: {"name", "input"} with an object as
// input, and perhaps "id" and "kind". Unknown members, repeated names and whatever
// else isn't strict JSON are refused. The caller adds turn and batch.
func ParseCall(line []byte) (ToolCall, error) {
	var in struct {
		ID    string  `json:"id"`
		Name  string  `json:"name"`
		Kind  string  `json:"kind"`
		Input ahp.Raw `json:"input"`
	}
	if err := strictjson.Unmarshal(line, &in, strictjson.Options{MaxBytes: ahp.MaxMessageBytes, RejectUnknown: true}); err != nil {
		return ToolCall{}, err
	}
	switch {
	case in.Name == "":
		return ToolCall{}, errors.New("boundary: a tool call without a name")
	case !in.Input.IsObject():
		return ToolCall{}, errors.New("boundary: a tool call whose input is no object")
	}
	return ToolCall{ID: in.ID, Name: in.Name, Kind: in.Kind, Input: in.Input}, nil
}
