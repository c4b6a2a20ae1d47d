package boundary

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/abhed/abhed/ahp"
)

// Turn is a turn that was started. It is safe to share between the calls of the
// turn, which may run at the same time. A nil Turn belongs to calls outside of any;
// those can't be continued.
type Turn struct {
	id      string
	started string // the id of its turn.start
	steps   *allowance

	mu     sync.Mutex
	parent string // the id of the event at which it was continued last, or ""
}

// ID returns the turn's id.
func (t *Turn) ID() string { return t.id }

// Continuations returns how many times one more step was granted so far, and how
// many are left.
func (t *Turn) Continuations() (count, left int64) {
	t.steps.mu.Lock()
	defer t.steps.mu.Unlock()
	return t.steps.count, t.steps.left
}

// continuedBy notes the event at which one more step was granted.
func (t *Turn) continuedBy(event string) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.parent = event
}

// continues returns the id of the event that led to the turn after t.
func (t *Turn) continues() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.parent == "" {
		return t.started
	}
	return t.parent
}

// allowance is shared by a turn and all that continue it.
type allowance struct {
	mu               sync.Mutex
	left, count, max int64
}

// capabilities returns a copy of c without the effects in drop, and with the counts
// of continuations that are true now. One step is set aside for the asking, so that
// calls at the same time can't all be granted the last one: give it back with
// settle.
func (t *Turn) capabilities(c *ahp.Capabilities, drop []ahp.EffectType) (out *ahp.Capabilities, reserved bool) {
	n := *c
	n.Effects = slices.DeleteFunc(slices.Clone(c.Effects), func(e ahp.EffectType) bool { return slices.Contains(drop, e) })
	if !n.Has(ahp.EffectModify) {
		n.Modify = nil
	}
	if !n.Has(ahp.EffectInject) {
		n.Inject = nil
	}
	if n.Flow == nil || !slices.Contains(n.Flow.Operations, ahp.FlowContinue) {
		return &n, false
	}
	flow := ahp.FlowCapability{Operations: n.Flow.Operations}
	if t == nil {
		flow.Operations = slices.DeleteFunc(slices.Clone(flow.Operations), func(o ahp.FlowOperation) bool { return o == ahp.FlowContinue })
		n.Flow = &flow
		if len(flow.Operations) == 0 {
			n.Flow = nil
			n.Effects = slices.DeleteFunc(n.Effects, func(e ahp.EffectType) bool { return e == ahp.EffectFlow })
		}
		return &n, false
	}
	a := t.steps
	a.mu.Lock()
	defer a.mu.Unlock()
	left, count, most := a.left, a.count, a.max
	if reserved = left > 0; reserved {
		a.left--
	}
	flow.RemainingContinuations, flow.ContinuationCount, flow.MaxContinuations = &left, &count, &most
	n.Flow = &flow
	return &n, reserved
}

// settle spends the step that was set aside, or gives it back.
func (t *Turn) settle(reserved, spent bool) {
	if !reserved {
		return
	}
	t.steps.mu.Lock()
	defer t.steps.mu.Unlock()
	if spent {
		t.steps.count++
	} else {
		t.steps.left++
	}
}

// TurnInput is what a turn starts with.
type TurnInput struct {
	// ID is the turn's; empty means a new one.
	ID string
	// Trigger is "user", "continuation", "hook" or "external"; empty means "user",
	// with Continues "continuation".
	Trigger string
	// Messages are the expanded prompt with its attachments.
	Messages []ahp.Message
	// ExpandedFrom is what the user wrote, where that was another text, or "".
	ExpandedFrom string
	// Continues is the turn that this one continues, whose allowance it shares; nil
	// for none.
	Continues *Turn
	// Parent is the id of the event that led to the turn; empty means that at which
	// the turn in Continues was continued, if there is one.
	Parent string
}

// TurnResult is a turn that may go on. Turn and Messages are nil unless the status
// is Passed; Messages are the effective prompt, with what was injected for now
// behind it.
type TurnResult struct {
	Verdict
	Turn     *Turn
	Messages []ahp.Message
}

// TurnStart has the start of a turn judged. The error is a bug, or harness.ErrClosed:
// the turn must not start.
func (b *Boundary) TurnStart(ctx context.Context, in TurnInput) (r TurnResult, err error) {
	defer func() { r.seal(err) }()
	turn := &Turn{id: in.ID, steps: &allowance{left: b.max, max: b.max}}
	if in.Continues != nil {
		turn.steps = in.Continues.steps
		if in.Trigger == "" {
			in.Trigger = "continuation"
		}
		if in.Parent == "" {
			in.Parent = in.Continues.continues()
		}
	}
	if in.Trigger == "" {
		in.Trigger = "user"
	}
	if turn.id == "" {
		if turn.id, err = newID(); err != nil {
			return r, err
		}
	}
	e, err := b.event(ahp.TurnStart, turn, in.Parent)
	if err != nil {
		return r, err
	}
	turn.started = e.ID
	e.Trigger, e.ExpandedFrom, e.Items = in.Trigger, in.ExpandedFrom, ahp.MessageItems(in.Messages...)
	out, err := b.ask(ctx, &r.Verdict, e, turn, nil)
	if err != nil {
		return r, err
	}
	if r.judged(out); r.Status == Passed {
		r.Turn = turn
		r.Messages = slices.Concat(out.Event.Items.Messages, r.Injected(ahp.DeliverNow))
	}
	return r, nil
}

// Finish is how a turn is about to end.
type Finish struct {
	// Outcome is "completed", "failed", "cancelled" or "max_iterations".
	Outcome string
	// Messages are the turn's response.
	Messages []ahp.Message
	// LastAssistantItem is the id of the last message of the assistant, or "".
	LastAssistantItem string
	// Usage is the turn's total, or nil.
	Usage *ahp.Usage
	// Problem says what went wrong; nil in a turn that completed.
	Problem *ahp.Problem
}

// FinishResult tells whether a turn has ended. Messages is the effective response.
// With Verdict.Continue the turn goes on for one more step, and is finished again
// after that.
type FinishResult struct {
	Verdict
	Messages []ahp.Message
}

// TurnFinish has the end of a turn judged and, unless it goes on, tells the
// observers that it has ended. The status is Passed where the response may be used,
// and Withheld where not. A turn whose ctx has ended is over, and nobody is asked.
// The error is a bug, or harness.ErrClosed: the response must not be used.
func (b *Boundary) TurnFinish(ctx context.Context, t *Turn, f Finish) (r FinishResult, err error) {
	defer func() { r.seal(err) }()
	if t == nil {
		return r, errors.New("boundary: no turn to finish")
	}
	e, err := b.finishEvent(ahp.TurnFinishBefore, t, f, t.started)
	if err != nil {
		return r, err
	}
	out, err := b.ask(ctx, &r.Verdict, e, t, nil)
	if err != nil {
		return r, err
	}
	r.Status = Passed
	end := f
	if r.checked(out) {
		r.Messages = out.Event.Items.Messages
		end.Messages = r.Messages
	} else {
		end.Messages, r.Continue, r.Instructions = nil, false, nil
	}
	if r.Continue {
		return r, nil
	}
	if r.Status == Interrupted && end.Outcome == "completed" {
		end.Outcome = "cancelled"
	}
	e, err = b.finishEvent(ahp.TurnEnd, t, end, e.ID)
	if err != nil {
		return r, err
	}
	if end.Outcome != "completed" {
		e.Error = f.Problem
	}
	return r, b.observe(ctx, e)
}

func (b *Boundary) finishEvent(typ ahp.EventType, t *Turn, f Finish, parent string) (*ahp.Event, error) {
	e, err := b.event(typ, t, parent)
	if err != nil {
		return nil, err
	}
	e.Outcome, e.Items, e.Usage = f.Outcome, ahp.MessageItems(f.Messages...), f.Usage
	e.ContinuationCount, _ = t.Continuations()
	if f.LastAssistantItem != "" {
		e.LastAssistantItem = &ahp.Ref{ID: f.LastAssistantItem}
	}
	return e, nil
}
