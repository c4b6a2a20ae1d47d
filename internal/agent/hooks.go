package agent

import (
	"context"
	"fmt"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/policy"
)

// MaxContinuations is how often in one turn backends may ask for one more step.
const MaxContinuations = 8

// Hooks have a say at the points of a run that aren't tool calls: those are the
// Gate's. A turn of theirs is what lies between a prompt and its answer; it holds
// one or more of the loop's own turns, which are model replies.
type Hooks interface {
	// Wants reports whether anybody takes events of type t in mode m. It must be
	// cheap: it is asked before anything is built for a moment.
	Wants(t ahp.EventType, m ahp.Mode) bool
	// Ask asks about m and lets the observers know. What it returns is in the record.
	// Only the loop's goroutine calls it.
	Ask(ctx context.Context, at At, m Moment) *Say
	// Tell lets the observers know of m, and waits for nobody. Several goroutines may
	// call it.
	Tell(ctx context.Context, at At, m Moment)
}

// At says where in a session a moment lies.
type At struct {
	// TurnID is "" outside a turn, Turn the number of the model reply.
	TurnID  string
	Turn    int
	WorkDir string
}

// Batch groups the calls of one reply.
type Batch struct {
	ID      string
	CallIDs []string
}

// Attempt identifies one attempt of a model call.
type Attempt struct {
	ID     string
	Number int
}

// TurnUsage counts the tokens of a turn.
type TurnUsage struct {
	model.Usage
	// Replies counts the replies of models, Reported those that came with usage.
	Replies, Reported int
}

// Moment is a point of a run at which hooks are asked or told something. The set
// is closed.
type Moment interface {
	EventType() ahp.EventType
	moment()
}

// The moments that hooks are asked about. Item is the id of the message that the
// moment is about (see ItemID).
type (
	// Inbound is a person's prompt before it enters the conversation.
	Inbound struct{ Item, Text string }
	// TurnStart is the prompt that a turn begins with.
	TurnStart struct{ Item, Text string }
	// RequestBefore is a request before it is sent.
	RequestBefore struct {
		Attempt  Attempt
		System   string
		Messages []*model.Message
		Tools    []model.ToolSpec
	}
	// ResponseAfter is a whole reply before anything is done with it. SuppliedBy
	// names who gave it if no model did.
	ResponseAfter struct {
		Attempt    Attempt
		Item       string
		Response   *model.Response
		SuppliedBy string
		Latency    time.Duration
	}
	// WorkDirBefore is a call that would change the working directory of those after
	// it.
	WorkDirBefore struct{ CallID, From, To string }
	// BatchAfter is the end of all calls of a reply.
	BatchAfter struct {
		Batch    *Batch
		Outcomes []Outcome
	}
	// TurnFinish is the answer of a turn before the turn ends. Where there is none
	// Reply is nil, and Reason says how the turn ends, which nobody can change.
	TurnFinish struct {
		Reason Reason
		Item   string
		Reply  *model.Message
		// Continuations counts the accepted ones, Remaining how many are left.
		Continuations, Remaining int
		Usage                    TurnUsage
	}
	// Outbound is the final answer before it is shown or returned.
	Outbound struct{ Item, Text string }
)

// The moments that hooks are told of.
type (
	// TurnEnd is the end of a turn. Reply is nil if there is no answer.
	TurnEnd struct {
		Reason        Reason
		Detail        string
		Item          string
		Reply         *model.Message
		Continuations int
		Usage         TurnUsage
	}
	// TurnProgress is a piece of a reply, as the model said it.
	TurnProgress struct {
		Item, Text string
		Reasoning  bool
		Final      bool
	}
	// ModelError is an attempt that brought no reply. Retry is the wait before the
	// next one, unless Final.
	ModelError struct {
		Attempt Attempt
		Err     error
		Latency time.Duration
		Retry   time.Duration
		Final   bool
	}
	// ToolProgress is a piece of a running call's output.
	ToolProgress struct {
		Call  policy.Call
		Batch *Batch
		Text  string
	}
	// WorkDirChange is a call that changed the working directory of those after it.
	WorkDirChange struct{ CallID, From, To string }
)

// EventType returns the type on the wire.
func (*Inbound) EventType() ahp.EventType { return ahp.UserMessageInbound }

// EventType returns the type on the wire.
func (*TurnStart) EventType() ahp.EventType { return ahp.TurnStart }

// EventType returns the type on the wire.
func (*RequestBefore) EventType() ahp.EventType { return ahp.ModelRequestBefore }

// EventType returns the type on the wire.
func (*ResponseAfter) EventType() ahp.EventType { return ahp.ModelResponseAfter }

// EventType returns the type on the wire.
func (*WorkDirBefore) EventType() ahp.EventType { return ahp.WorkspaceChangeBefore }

// EventType returns the type on the wire.
func (*BatchAfter) EventType() ahp.EventType { return ahp.ToolBatchAfter }

// EventType returns the type on the wire.
func (*TurnFinish) EventType() ahp.EventType { return ahp.TurnFinishBefore }

// EventType returns the type on the wire.
func (*Outbound) EventType() ahp.EventType { return ahp.UserMessageOutbound }

// EventType returns the type on the wire.
func (*TurnEnd) EventType() ahp.EventType { return ahp.TurnEnd }

// EventType returns the type on the wire.
func (*TurnProgress) EventType() ahp.EventType { return ahp.TurnProgress }

// EventType returns the type on the wire.
func (*ModelError) EventType() ahp.EventType { return ahp.ModelErrorEvent }

// EventType returns the type on the wire.
func (*ToolProgress) EventType() ahp.EventType { return ahp.ToolProgress }

// EventType returns the type on the wire.
func (*WorkDirChange) EventType() ahp.EventType { return ahp.WorkspaceChangeAfter }

func (*Inbound) moment()       {}
func (*TurnStart) moment()     {}
func (*RequestBefore) moment() {}
func (*ResponseAfter) moment() {}
func (*WorkDirBefore) moment() {}
func (*BatchAfter) moment()    {}
func (*TurnFinish) moment()    {}
func (*Outbound) moment()      {}
func (*TurnEnd) moment()       {}
func (*TurnProgress) moment()  {}
func (*ModelError) moment()    {}
func (*ToolProgress) moment()  {}
func (*WorkDirChange) moment() {}

// Say is what hooks came to at a moment. Members that the moment doesn't have are
// zero.
type Say struct {
	// Refusal, if not nil, stands against the moment: nothing else counts then.
	Refusal *Refusal
	// Stop, if not "", ends the run: who wants it, and why.
	Stop string
	// Text is the effective text of Inbound, TurnStart and Outbound, and what the
	// moments in moments.go say of it.
	Text string
	// Summary is one that was given at CompactBefore.
	Summary *string
	// Request is what to send in place of RequestBefore's, nil if that is unchanged.
	Request *model.Request
	// Reply is the effective reply of ResponseAfter and TurnFinish, nil if it is
	// unchanged, and the reply that was given in place of the model's at
	// RequestBefore, nil if none was.
	Reply *model.Message
	// By lists who changed or supplied it.
	By []string
	// Injected is context for the model, Later what waits for the next prompt.
	Injected, Later []string
	// Continue asks for one more step, with Instructions.
	Continue     bool
	Instructions []string
}

// Refusal is why a moment must not go on. With Err the record failed or hooks are
// broken; with Interrupted the context ended.
type Refusal struct {
	By, Reason  string
	Interrupted bool
	Err         error
}

// ItemID returns the id of the message at index, from 0, of a conversation: the
// same in every event, and after a resume.
func ItemID(index int, m *model.Message) string {
	if m != nil && m.Role == event.RoleTool && len(m.Parts) == 1 && m.Parts[0].ToolResult != nil {
		return ResultID(m.Parts[0].ToolResult.CallID)
	}
	return fmt.Sprintf("m%d", index+1)
}

// ResultID returns the id of the message with a call's result.
func ResultID(callID string) string { return callID + ":result" }

// asks reports whether somebody is asked at events of type t.
func (l *Loop) asks(t ahp.EventType) bool {
	return l.o.Hooks != nil && l.o.Hooks.Wants(t, ahp.ModeIntercept)
}

// observed reports whether somebody observes events of type t.
func (l *Loop) observed(t ahp.EventType) bool {
	return l.o.Hooks != nil && l.o.Hooks.Wants(t, ahp.ModeObserve)
}

func (l *Loop) at() At { return At{TurnID: l.turnID, Turn: l.turn, WorkDir: l.workDir} }

// hooked reports whether anybody takes events of type t at all.
func (l *Loop) hooked(t ahp.EventType) bool { return l.asks(t) || l.observed(t) }

// consult asks the hooks about m. The caller has made sure that somebody takes it.
// An end is an interruption or a failure; a refusal is the caller's to word.
func (l *Loop) consult(ctx context.Context, m Moment) (*Say, *end) {
	if ctx.Err() != nil {
		return nil, interrupted(ctx)
	}
	say := l.o.Hooks.Ask(ctx, l.at(), m)
	switch r := say.Refusal; {
	case r == nil:
		l.later = append(l.later, say.Later...)
		return say, nil
	case r.Err != nil:
		return nil, recordFailed(r.Err)
	case r.Interrupted:
		if ctx.Err() != nil {
			return nil, interrupted(ctx)
		}
		return nil, &end{ReasonError, "the backends were closed while they were asked"}
	}
	return say, nil
}

// tell lets the observers know of what make returns, if there are any.
func (l *Loop) tell(ctx context.Context, t ahp.EventType, make func() Moment) {
	if l.observed(t) {
		l.o.Hooks.Tell(ctx, l.at(), make())
	}
}

// refused is the end that a refusal makes.
func refused(reason Reason, what string, r *Refusal) *end {
	return &end{reason, what + " by " + r.By + ": " + r.Reason}
}
