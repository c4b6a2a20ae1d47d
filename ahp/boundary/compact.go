package boundary

import (
	"context"

	"github.com/abhed/abhed/ahp"
)

// CompactCall is a context that is about to be compacted.
type CompactCall struct {
	// Trigger is "auto", "manual" or "hook".
	Trigger string
	// Messages are what is to be summarised, Instructions the text parts that say
	// how.
	Messages     []ahp.Message
	Instructions []ahp.Part
	// TokensBefore is the size of the context in tokens; nil is unknown.
	TokensBefore *int64
	// Removed are the ids of the messages that the summary is to replace.
	Removed []ahp.Ref
	Turn    *Turn
	// Parent is the id of the event that led to it, or "".
	Parent string
}

// CompactResult is how a compaction ended. Summary, text parts, may be installed
// only where the status is Ran or Supplied, and is nil otherwise.
type CompactResult struct {
	Verdict
	Summary []ahp.Part
	Removed []ahp.Ref
}

// Compact has a compaction judged, runs exec on the effective instructions if
// nothing stands against it, and has the summary judged before it may be installed
// (§22). exec returns the summary as one text. Where it fails there is no event
// after. The error is as that of Model.
func (b *Boundary) Compact(ctx context.Context, call CompactCall, exec func(ctx context.Context, messages []ahp.Message, instructions []ahp.Part) (string, error)) (r CompactResult, err error) {
	defer func() { r.seal(err) }()
	before, err := b.event(ahp.ContextCompactBefore, call.Turn, call.Parent)
	if err != nil {
		return r, err
	}
	before.Trigger, before.Items, before.Instructions = call.Trigger, ahp.MessageItems(call.Messages...), call.Instructions
	if call.TokensBefore != nil {
		before.TokenCounts = &ahp.TokenCounts{Before: call.TokensBefore}
	}
	out, err := b.ask(ctx, &r.Verdict, before, call.Turn, nil)
	if err != nil {
		return r, err
	}
	var summary []ahp.Part
	execution := ahp.Executed()
	switch r.judged(out); r.Status {
	case Passed:
		var text string
		bug := r.execute(ctx, func() (err error) {
			text, err = exec(ctx, out.Event.Items.Messages, out.Event.Instructions)
			return err
		})
		if bug != nil {
			return r, bug
		}
		if ctx.Err() != nil {
			r.Status, r.Reason = Interrupted, reasonInterrupted
		}
		if r.Status == Ran {
			id, err := newID()
			if err != nil {
				return r, err
			}
			summary = []ahp.Part{ahp.TextPart(id, text)}
		}
	case Supplied:
		execution = ahp.Skipped("supplied_result")
		if summary, err = ahp.DecodeTextParts(out.Candidate.Value); err != nil {
			return r, err
		}
	}
	if !r.OK() {
		return r, nil
	}
	err = b.compactAfter(ctx, &r, &call, before.ID, execution, summary)
	return r, err
}

// compactAfter has a summary judged.
func (b *Boundary) compactAfter(ctx context.Context, r *CompactResult, call *CompactCall, parent string, execution *ahp.Execution, summary []ahp.Part) error {
	e, err := b.event(ahp.ContextCompactAfter, call.Turn, parent)
	if err != nil {
		return err
	}
	removed := append([]ahp.Ref{}, call.Removed...)
	e.Items, e.Summary, e.Removed, e.Execution = ahp.MessageItems(call.Messages...), summary, removed, execution
	if call.TokensBefore != nil {
		e.TokenCounts = &ahp.TokenCounts{Before: call.TokensBefore}
	}
	out, err := b.ask(ctx, &r.Verdict, e, call.Turn, nil)
	if err != nil {
		return err
	}
	if r.checked(out) {
		r.Summary, r.Removed = out.Event.Summary, removed
	}
	return nil
}
