package backend

import (
	"slices"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/strictjson"
)

// Draft is an answer that is being written: each method adds one effect, in order,
// and refuses what the request doesn't advertise. The first refusal is kept, the
// methods after it do nothing, and Effects returns it, so that a chain of calls
// needs one check. A Draft has one owner; the request must not change under it.
type Draft struct {
	q       *ahp.Intercept
	effects []ahp.Effect
	err     error
}

// Reply returns an empty answer to q, which raises no objection.
func Reply(q *ahp.Intercept) *Draft { return &Draft{q: q} }

// Effects returns the effects so far, for a Handler to return, or why one of them
// may not be returned. An error makes the answer an operational failure, for which
// the subscription's failure policy counts: nothing of a refused answer is sent.
func (d *Draft) Effects() ([]ahp.Effect, error) {
	if d.err != nil {
		return nil, d.err
	}
	return slices.Clone(d.effects), nil
}

// Can reports whether the request advertises all of the effects. For modify, flow
// and inject the request narrows further what they may hold.
func (d *Draft) Can(effects ...ahp.EffectType) bool {
	return !slices.ContainsFunc(effects, func(t ahp.EffectType) bool { return !d.q.Capabilities.Has(t) })
}

// Add adds effects as they are.
func (d *Draft) Add(effects ...ahp.Effect) *Draft {
	if d.err != nil {
		return d
	}
	checked, err := Answer(d.q, effects...)
	if err != nil {
		d.err = err
		return d
	}
	d.effects = append(d.effects, checked...)
	return d
}

// Deny refuses the operation. The reason, which isn't empty, is shown to the model:
// it says what is forbidden and what would be accepted.
func (d *Draft) Deny(reason string) *Draft { return d.Add(&ahp.Deny{Reason: reason}) }

// Allow may skip an ordinary prompt of the host. No objection is an empty answer.
func (d *Draft) Allow() *Draft { return d.Add(&ahp.Allow{}) }

// Ask wants a person's approval. Where nobody can be asked the request doesn't
// advertise it, and the answer fails: see AskOrDeny.
func (d *Draft) Ask() *Draft { return d.Add(&ahp.Ask{}) }

// AskOrDeny wants a person's approval, and denies for reason where nobody can be
// asked.
func (d *Draft) AskOrDeny(reason string) *Draft {
	if d.Can(ahp.EffectAsk) {
		return d.Ask()
	}
	return d.Deny(reason)
}

// ReplaceInput makes v the whole input of the tool call. v is encoded as JSON and
// must give an object; an ahp.Raw is taken as it is.
func (d *Draft) ReplaceInput(v any) *Draft { return d.edit(ahp.TargetInput, ahp.OpReplace, v) }

// MergeInput overwrites the members of the tool call's input that v has, as
// ReplaceInput encodes it; nested values are replaced whole.
func (d *Draft) MergeInput(v any) *Draft { return d.edit(ahp.TargetInput, ahp.OpMerge, v) }

// ReplaceItems makes messages the whole list that the event lets an answer edit:
// the items, or the messages of a user message. They should keep the ids of those
// they stand for.
func (d *Draft) ReplaceItems(messages ...ahp.Message) *Draft {
	return d.edit(d.q.Event.Type.Target(), ahp.OpReplace, messageList(messages))
}

// AppendItems adds messages to that list.
func (d *Draft) AppendItems(messages ...ahp.Message) *Draft {
	return d.edit(d.q.Event.Type.Target(), ahp.OpMerge, messageList(messages))
}

// Modify edits what the event lets an answer edit, whatever that is: v is encoded
// as JSON and has the shape that ahp.Modify tells.
func (d *Draft) Modify(op ahp.Operation, v any) *Draft {
	return d.edit(d.q.Event.Type.Target(), op, v)
}

// Return supplies a result, so that the operation isn't executed. v is encoded as
// JSON; nil is null, which is a value.
func (d *Draft) Return(v any) *Draft {
	raw, ok := d.encode(v)
	if !ok {
		return d
	}
	return d.Add(&ahp.Return{Value: raw})
}

// Message shows a text to the user.
func (d *Draft) Message(text string) *Draft { return d.Add(&ahp.Notice{Text: text}) }

// Stop ends the turn: nothing pending is executed, no further work of the model
// starts. The reason isn't empty.
func (d *Draft) Stop(reason string) *Draft {
	return d.Add(&ahp.Flow{Operation: ahp.FlowStop, Reason: reason})
}

// Continue asks for one step more; the instruction may be empty. It is refused
// where no continuation is left.
func (d *Draft) Continue(instruction string) *Draft {
	return d.Add(&ahp.Flow{Operation: ahp.FlowContinue, Instruction: instruction})
}

// Inject adds messages to the model's context.
func (d *Draft) Inject(at ahp.Delivery, messages ...ahp.Message) *Draft {
	return d.Add(&ahp.Inject{DeliverAt: at, Messages: messageList(messages)})
}

func (d *Draft) edit(target ahp.Target, op ahp.Operation, v any) *Draft {
	raw, ok := d.encode(v)
	if !ok {
		return d
	}
	return d.Add(&ahp.Modify{Target: target, Operation: op, Value: raw})
}

// encode returns v as JSON, and false if the answer has failed.
func (d *Draft) encode(v any) (ahp.Raw, bool) {
	if d.err != nil {
		return nil, false
	}
	if raw, is := v.(ahp.Raw); is {
		return raw, true
	}
	b, err := strictjson.Marshal(v)
	if err != nil {
		d.err = err
	}
	return b, err == nil
}

// messageList makes no message an empty list: null is none.
func messageList(m []ahp.Message) []ahp.Message {
	if m == nil {
		return []ahp.Message{}
	}
	return m
}
