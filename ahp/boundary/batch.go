package boundary

import (
	"context"
	"errors"

	"github.com/abhed/abhed/ahp"
)

// BatchResult is how a batch ended. Calls has a result for each call, in order;
// those after a stop, an interruption or an error have the status None, Stopped or
// Interrupted. The Verdict is that of the batch itself: Passed, or Stopped where the
// turn must end. A stop of one of its calls counts for the batch.
type BatchResult struct {
	Verdict
	Calls []ToolResult
}

// Tools makes the calls that a model made together, one after the other in order,
// as Tool does, and has the finished batch judged. After a stop and after an
// interruption no other call begins. The calls' ids, batches and turns are set
// here: turn is that of all of them. The error is as that of Tool, and ends the
// batch.
func (b *Boundary) Tools(ctx context.Context, turn *Turn, calls []ToolCall, exec func(ctx context.Context, call ToolCall, input ahp.Raw) (ToolOutput, error)) (r BatchResult, err error) {
	defer func() { r.seal(err) }()
	r.Calls = make([]ToolResult, len(calls))
	if len(calls) == 0 {
		return r, errors.New("boundary: an empty batch")
	}
	made, err := b.batch(turn, calls)
	if err != nil {
		return r, err
	}
	for i := range made {
		one := &r.Calls[i]
		one.Call, one.Input = ahp.Identity{ID: made[i].ID, Synthesized: made[i].synthesized}, made[i].Input
		switch {
		case ctx.Err() != nil:
			one.Status, one.Reason = Interrupted, reasonInterrupted
			continue
		case r.Stop:
			one.Status, one.Reason = Stopped, r.StopReason
			continue
		}
		if r.Calls[i], err = b.Tool(ctx, made[i], func(ctx context.Context, input ahp.Raw) (ToolOutput, error) {
			return exec(ctx, made[i], input)
		}); err != nil {
			return r, err
		}
		r.Stop, r.StopReason, r.By = r.Calls[i].Stop, r.Calls[i].StopReason, r.Calls[i].By
	}
	err = b.batchAfter(ctx, &r, turn, made)
	return r, err
}

// batch returns the calls with their ids and their batch.
func (b *Boundary) batch(turn *Turn, calls []ToolCall) ([]ToolCall, error) {
	id, err := newID()
	if err != nil {
		return nil, err
	}
	batch := &ahp.Batch{ID: id}
	made := make([]ToolCall, len(calls))
	for i, c := range calls {
		if err := c.identify(); err != nil {
			return nil, err
		}
		c.Turn, c.Batch = turn, batch
		made[i] = c
		batch.CallIDs = append(batch.CallIDs, c.ID)
	}
	return made, nil
}

// batchAfter has a batch judged of which every call has ended.
func (b *Boundary) batchAfter(ctx context.Context, r *BatchResult, turn *Turn, made []ToolCall) error {
	if ctx.Err() != nil {
		r.Status, r.Reason = Interrupted, reasonInterrupted
		return nil
	}
	e, err := b.event(ahp.ToolBatchAfter, turn, "")
	if err != nil {
		return err
	}
	e.Batch = &ahp.Batch{ID: made[0].Batch.ID}
	for i := range r.Calls {
		c := &r.Calls[i]
		before, err := b.toolBefore(&made[i])
		if err != nil {
			return err
		}
		entry := ahp.BatchCall{Call: c.Call, Tool: *before.Tool, Path: before.Path, Outcome: c.Outcome, Batch: made[i].Batch}
		if c.tool != nil {
			entry.Tool = *c.tool
		}
		entry.Execution = ahp.Execution{Status: "skipped", Reason: "cancelled"}
		if c.execution != nil {
			entry.Execution = *c.execution
		} else {
			entry.Outcome = "cancelled"
		}
		e.Calls = append(e.Calls, entry)
	}
	out, err := b.ask(ctx, &r.Verdict, e, turn, nil)
	if err != nil {
		return err
	}
	r.Status = Passed
	already := r.Stop
	if !r.checked(out) || !r.Stop {
		return nil
	}
	if r.Status, r.Reason = Stopped, r.StopReason; !already {
		r.By = out.StoppedBy
	}
	return nil
}
