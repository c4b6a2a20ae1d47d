package boundary

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/harness"
	"github.com/abhed/abhed/internal/run"
)

// ask has e judged and takes what the user and the harness are told into v. What
// nobody subscribes to passes without a step of AHP. Each drop is an effect that
// can't be enforced this time.
func (b *Boundary) ask(ctx context.Context, v *Verdict, e *ahp.Event, turn *Turn, st *ahp.State, drop ...ahp.EffectType) (*harness.Outcome, error) {
	row := b.h.Manifest().Advertises(e.Type, ahp.ModeIntercept)
	if row == nil || !b.h.Subscribed(e.Type, ahp.ModeIntercept) {
		return b.unasked(ctx, v, e, st)
	}
	caps, reserved := turn.capabilities(row.Capabilities, drop)
	out, err := b.h.Dispatch(ctx, e, caps, st, harness.DispatchOptions{Budget: b.opts.Budget})
	if err != nil {
		turn.settle(reserved, false)
		return nil, err
	}
	continues := out.Flow == ahp.FlowStateContinue && !out.Interrupted && out.Permission != ahp.PermissionDeny
	turn.settle(reserved, continues)
	v.Outcomes = append(v.Outcomes, out)
	v.Injections = append(v.Injections, out.Injections...)
	v.Notices = append(v.Notices, out.Messages...)
	if continues {
		v.Continue = true
		v.Instructions = append(v.Instructions, out.Instructions...)
		turn.continuedBy(e.ID)
	}
	if b.opts.OnMessage != nil {
		for _, m := range out.Messages {
			b.opts.OnMessage(m)
		}
	}
	if !out.Interrupted {
		b.tellFailures(ctx, out)
	}
	return out, nil
}

// unasked is ask where no interceptor is to be asked.
func (b *Boundary) unasked(ctx context.Context, v *Verdict, e *ahp.Event, st *ahp.State) (*harness.Outcome, error) {
	// What couldn't be asked about must not go on, even where nobody asks.
	if err := e.Validate(); err != nil {
		return nil, err
	}
	out := &harness.Outcome{Outcome: ahp.Outcome{Event: e, Permission: ahp.PermissionNone, Flow: ahp.FlowStateNone}}
	if st != nil {
		out.Permission, out.Candidate = st.Permission, st.Candidate
	}
	v.Outcomes = append(v.Outcomes, out)
	if ctx.Err() != nil {
		out.Interrupted = true
		return out, nil
	}
	return out, b.observe(ctx, e)
}

// observe tells the observers of e, if there are any. It is for what happened,
// whether or not ctx has ended.
func (b *Boundary) observe(ctx context.Context, e *ahp.Event) error {
	if !b.h.Subscribed(e.Type, ahp.ModeObserve) {
		return nil
	}
	_, err := b.h.Observe(ctx, e)
	return err
}

// tellFailures tells the observers which backends could not be asked, and never
// what those said or by whose fault: the reason is the class of the failure.
func (b *Boundary) tellFailures(ctx context.Context, out *harness.Outcome) {
	if !b.h.Subscribed(ahp.HookFailure, ahp.ModeObserve) {
		return
	}
	for _, a := range out.Trace {
		if a.Kind != ahp.AnswerFailure || a.Failure == nil {
			continue
		}
		e, err := b.event(ahp.HookFailure, nil, out.Event.ID)
		if err != nil {
			return
		}
		e.Turn = out.Event.Turn
		e.Failure = &ahp.HookProblem{BackendID: a.By.Backend, Reason: string(a.Failure.Class), Policy: string(a.Policy)}
		// Best effort, like every observation; the trace has the failure as well.
		_, _ = b.h.ObserveOthers(ctx, e, a.By.Backend)
	}
}

// approve asks for the approval of the call that out is about, and returns what is
// in effect afterwards: a backend may still edit the input when the harness is
// about to prompt. v.Status is Passed or Supplied only with an approval.
func (b *Boundary) approve(ctx context.Context, v *Verdict, out *harness.Outcome, turn *Turn) (*harness.Outcome, error) {
	before := out.Event
	e, err := b.event(ahp.ToolPermissionRequest, turn, before.ID)
	if err != nil {
		return out, err
	}
	e.Call, e.Tool, e.Path, e.Batch, e.Suggestions = before.Call, before.Tool, before.Path, before.Batch, []ahp.Raw{}
	v.Status = None
	st := &ahp.State{Permission: ahp.PermissionAsk, Candidate: out.Candidate}
	// The backends that asked want a person's word, which none of them can give.
	asked, err := b.ask(ctx, v, e, turn, st, ahp.EffectAllow)
	if err != nil {
		return out, err
	}
	if v.judged(asked); !v.OK() {
		return asked, nil
	}
	if asked.Candidate != nil && asked.CandidateBy == (ahp.SubscriptionID{}) {
		v.By = out.CandidateBy
	}
	yes, by := b.prompt(ctx, v, asked.Event, askers(out))
	if ctx.Err() != nil {
		v.Status, v.Reason = Interrupted, reasonInterrupted
		return asked, nil
	}
	if !yes {
		v.Status, v.Reason, v.By = Refused, reasonApproval, ahp.SubscriptionID{}
	}
	return asked, b.resolved(ctx, asked.Event, turn, yes, by)
}

// prompt returns the person's word. by is who spoke it, as the protocol calls them.
func (b *Boundary) prompt(ctx context.Context, v *Verdict, e *ahp.Event, askers []ahp.SubscriptionID) (yes bool, by string) {
	if b.opts.Approve == nil {
		return false, "policy"
	}
	shown, tool := *e, *e.Tool
	shown.Tool, tool.Input = &tool, bytes.Clone(tool.Input) // what is shown can't change what runs
	err := run.Protect(func() (err error) {
		yes, err = b.opts.Approve(ctx, Approval{Event: &shown, By: askers, Notices: slices.Clone(v.Notices)})
		return err
	})
	if err != nil {
		v.Err = err
		return false, "policy"
	}
	return yes, "user"
}

// askers returns who answered with "ask".
func askers(out *harness.Outcome) []ahp.SubscriptionID {
	var by []ahp.SubscriptionID
	for _, a := range out.Trace {
		if slices.ContainsFunc(a.Effects, func(e ahp.Effect) bool { return e.EffectType() == ahp.EffectAsk }) {
			by = append(by, a.By)
		}
	}
	return by
}

// resolved tells the observers how a prompt ended.
func (b *Boundary) resolved(ctx context.Context, asked *ahp.Event, turn *Turn, yes bool, by string) error {
	e, err := b.event(ahp.ToolPermissionResolved, turn, asked.ID)
	if err != nil {
		return err
	}
	e.Call, e.Tool, e.Path, e.Batch = asked.Call, asked.Tool, asked.Path, asked.Batch
	e.Decision, e.DecidedBy = "deny", by
	if yes {
		e.Decision = "allow"
	}
	return b.observe(ctx, e)
}

// execute calls f, an executor, unless ctx has ended. A panic is an error of this
// program, and comes back in bug as well.
func (v *Verdict) execute(ctx context.Context, f func() error) (bug error) {
	if ctx.Err() != nil {
		v.Status, v.Reason = Interrupted, reasonInterrupted
		return nil
	}
	v.Status, v.Executed = Failed, true
	err := run.Protect(f)
	v.Err = err
	var refusal *Refusal
	var panicked *run.PanicError
	switch {
	case err == nil:
		v.Status = Ran
	case errors.As(err, &panicked): // whatever its value is, it had begun
		v.Reason = reasonFailed
		return panicked
	case errors.As(err, &refusal):
		v.Status, v.Executed, v.Reason = Refused, false, refusal.Reason
	default:
		v.Reason = reasonFailed
	}
	return nil
}
