package boundary

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/abhed/abhed/ahp"
)

// ModelCall is one attempt of a model request.
type ModelCall struct {
	Model ahp.Model
	// Attempt identifies the attempt; without an id it gets a new one, without a
	// number it is the first.
	Attempt ahp.Attempt
	// Params are the provider's parameters, a JSON object; nil means an empty one.
	Params ahp.Raw
	// Messages are what the model is to read.
	Messages []ahp.Message
	Turn     *Turn
	// Parent is the id of the event that led to the request, or "".
	Parent string
}

// ModelOutput is what a model gave.
type ModelOutput struct {
	Messages     []ahp.Message
	FinishReason string
	// Usage is the attempt's, or nil.
	Usage *ahp.Usage
}

// ModelResult is how a model request ended. Messages is the effective response, nil
// unless the status is Ran or Supplied.
type ModelResult struct {
	Verdict
	Messages     []ahp.Message
	FinishReason string
	Usage        *ahp.Usage
}

// Model has a model request judged, runs exec on what is in effect if nothing
// stands against it, and has the response judged. exec gets the params and the
// effective messages, with what was injected for now behind them. What exec fails
// with is told to the observers as model.error, by its message.
//
// The error is a bug here, in the harness or in exec (a panic), or
// harness.ErrClosed: the result must not be used.
func (b *Boundary) Model(ctx context.Context, call ModelCall, exec func(ctx context.Context, params ahp.Raw, messages []ahp.Message) (ModelOutput, error)) (r ModelResult, err error) {
	defer func() { r.seal(err) }()
	before, err := b.modelEvent(ahp.ModelRequestBefore, &call, call.Parent)
	if err != nil {
		return r, err
	}
	before.Params, before.Items = call.Params, ahp.MessageItems(call.Messages...)
	if call.Params == nil {
		before.Params = ahp.Raw("{}")
	}
	out, err := b.ask(ctx, &r.Verdict, before, call.Turn, nil)
	if err != nil {
		return r, err
	}
	output := ModelOutput{}
	execution := ahp.Executed()
	began := time.Now()
	switch r.judged(out); r.Status {
	case Passed:
		messages := slices.Concat(out.Event.Items.Messages, r.Injected(ahp.DeliverNow))
		bug := r.execute(ctx, func() (err error) {
			output, err = exec(ctx, out.Event.Params, messages)
			return err
		})
		if r.Status == Failed {
			err = errors.Join(bug, b.modelFailed(ctx, &r, &call, before.ID, began, bug))
			return r, err
		}
	case Supplied:
		execution, output.FinishReason = ahp.Skipped("supplied_result"), "supplied_result"
		if output.Messages, err = ahp.DecodeMessages(out.Candidate.Value); err != nil {
			return r, err
		}
	}
	if !r.OK() {
		return r, nil
	}
	err = b.modelAfter(ctx, &r, &call, before.ID, execution, began, output)
	return r, err
}

func (b *Boundary) modelEvent(t ahp.EventType, call *ModelCall, parent string) (*ahp.Event, error) {
	e, err := b.event(t, call.Turn, parent)
	if err != nil {
		return nil, err
	}
	if call.Attempt.ID == "" {
		if call.Attempt.ID, err = newID(); err != nil {
			return nil, err
		}
		call.Attempt.Synthesized = true
	}
	call.Attempt.Number = max(call.Attempt.Number, 1)
	e.Model, e.Attempt = &call.Model, &call.Attempt
	return e, nil
}

// modelFailed tells the observers of an attempt that gave no response.
func (b *Boundary) modelFailed(ctx context.Context, r *ModelResult, call *ModelCall, parent string, began time.Time, bug error) error {
	e, err := b.modelEvent(ahp.ModelErrorEvent, call, parent)
	if err != nil {
		return err
	}
	class := "model_error"
	if ctx.Err() != nil {
		r.Status, r.Reason, class = Interrupted, reasonInterrupted, "cancelled"
	}
	ms := time.Since(began).Milliseconds()
	e.Execution, e.LatencyMs = ahp.Executed(), &ms
	e.Error = &ahp.Problem{Class: class, Message: textOf(r.Err, bug)}
	return b.observe(ctx, e)
}

// modelAfter has a response judged.
func (b *Boundary) modelAfter(ctx context.Context, r *ModelResult, call *ModelCall, parent string, execution *ahp.Execution, began time.Time, output ModelOutput) error {
	e, err := b.modelEvent(ahp.ModelResponseAfter, call, parent)
	if err != nil {
		return err
	}
	e.Execution, e.FinishReason, e.Items = execution, output.FinishReason, ahp.MessageItems(output.Messages...)
	if r.Executed {
		ms := time.Since(began).Milliseconds()
		e.LatencyMs, e.Usage = &ms, output.Usage
	}
	if ctx.Err() != nil {
		r.Status, r.Reason = Interrupted, reasonInterrupted
		return b.observe(ctx, e)
	}
	out, err := b.ask(ctx, &r.Verdict, e, call.Turn, nil)
	if err != nil {
		return err
	}
	if r.checked(out) {
		r.Messages, r.FinishReason, r.Usage = out.Event.Items.Messages, output.FinishReason, e.Usage
	}
	return nil
}
