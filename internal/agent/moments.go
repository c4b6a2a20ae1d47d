package agent

import (
	"context"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/model"
)

// The moments that lie beside the course of a turn. The loop asks about those of a
// compaction, the session's owner about the others.
type (
	// CompactBefore is a conversation before its older part, Messages, is summarised.
	// Say.Text is what the summary is asked for with, Say.Summary one that was given.
	CompactBefore struct {
		Trigger      string
		First        int // index of Messages[0] in the conversation
		Messages     []*model.Message
		Instructions string
		Before       int64 // estimated tokens
	}
	// CompactAfter is the summary before it takes its place. Say.Text is the effective
	// one. Removed lists the ids of the messages that it stands for.
	CompactAfter struct {
		Summary       string
		Removed       []string
		Supplied      bool
		Before, After int64
	}
	// ModelSwitchBefore is a switch to another model. Names are provider/model.
	ModelSwitchBefore struct {
		Current, Proposed, Reason string
		Price                     *Price
	}
	// ModelSwitch is told after a switch.
	ModelSwitch struct{ Previous, Current, Reason string }
	// ModeChangeBefore is a change of the permission mode.
	ModeChangeBefore struct{ From, To string }
	// ModeChange is told after it.
	ModeChange struct{ From, To string }
	// TaskBefore is a change of one entry of an agent's task list. Operation is
	// "create", "update" or "remove"; Change and Prior are JSON objects, Prior nil for
	// a new one.
	TaskBefore struct {
		ID, Operation string
		Change, Prior []byte
	}
	// TaskChange is told after it.
	TaskChange struct {
		ID, Operation string
		Change, Prior []byte
	}
	// Attention says that a person is wanted. Kind is "approval", "question" or
	// "idle".
	Attention struct{ Kind, Title, Message string }
	// ElicitBefore is a question of an MCP server to a person: Request is the text of
	// its params. Say.Text, if not "", is a result that was given.
	ElicitBefore struct{ Server, Request string }
	// ElicitResult is the answer, Result the text of the whole result. Say.Text is the
	// effective one. Parent is the id that ElicitBefore's event had, if any.
	ElicitResult struct{ Server, Action, Result string }
)

// EventType returns the type on the wire.
func (*CompactBefore) EventType() ahp.EventType { return ahp.ContextCompactBefore }

// EventType returns the type on the wire.
func (*CompactAfter) EventType() ahp.EventType { return ahp.ContextCompactAfter }

// EventType returns the type on the wire.
func (*ModelSwitchBefore) EventType() ahp.EventType { return ahp.ModelSwitchBefore }

// EventType returns the type on the wire.
func (*ModelSwitch) EventType() ahp.EventType { return ahp.ModelSwitchAfter }

// EventType returns the type on the wire.
func (*ModeChangeBefore) EventType() ahp.EventType { return ahp.ConfigChangeBefore }

// EventType returns the type on the wire.
func (*ModeChange) EventType() ahp.EventType { return ahp.ConfigChangeAfter }

// EventType returns the type on the wire.
func (*TaskBefore) EventType() ahp.EventType { return ahp.TaskChangeBefore }

// EventType returns the type on the wire.
func (*TaskChange) EventType() ahp.EventType { return ahp.TaskChangeAfter }

// EventType returns the type on the wire.
func (*Attention) EventType() ahp.EventType { return ahp.UserAttention }

// EventType returns the type on the wire.
func (*ElicitBefore) EventType() ahp.EventType { return ahp.UserElicitationRequest }

// EventType returns the type on the wire.
func (*ElicitResult) EventType() ahp.EventType { return ahp.UserElicitationResult }

func (*CompactBefore) moment()     {}
func (*CompactAfter) moment()      {}
func (*ModelSwitchBefore) moment() {}
func (*ModelSwitch) moment()       {}
func (*ModeChangeBefore) moment()  {}
func (*ModeChange) moment()        {}
func (*TaskBefore) moment()        {}
func (*TaskChange) moment()        {}
func (*Attention) moment()         {}
func (*ElicitBefore) moment()      {}
func (*ElicitResult) moment()      {}

// Extensions have a say at the points of a run that aren't tool calls, by the
// extension protocol (extensions.md). What a method returns is in the record. A
// Refusal counts as it does in Say.
type Extensions interface {
	// Submit asks about a person's text before it is recorded and sent.
	Submit(ctx context.Context, at At, text string) *Refusal
	// Begin asks, before the first model call of a run, for texts to add to the system
	// text, in order.
	Begin(ctx context.Context, at At, system string) ([]string, *Refusal)
	// Select asks, before each model call, which of messages to send: what it returns
	// is messages itself, or the ones to send in their order.
	Select(ctx context.Context, at At, messages []*model.Message) ([]*model.Message, *Refusal)
	// Compact asks about messages before they are summarised.
	Compact(ctx context.Context, at At, messages []*model.Message) (Compaction, *Refusal)
	// Ended tells of the end of a run, with its answer.
	Ended(ctx context.Context, at At, reason Reason, content string)
}

// Compaction is what extensions made of one.
type Compaction struct {
	// Cancel leaves the history alone.
	Cancel bool
	// Summary, if not nil, stands in place of the model's. By names who gave it.
	Summary *string
	By      string
}
