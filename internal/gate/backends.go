package gate

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/harness"
	"github.com/abhed/abhed/internal/agent"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/strictjson"
	"github.com/abhed/abhed/internal/tool"
)

// Backends is the AHP side of a session's gate.
type Backends struct {
	h      *harness.Harness
	id     Identity
	model  atomic.Pointer[string] // of the main agent, now
	lender *Lender
}

// NewBackends returns the backends of h for a session. h stays the caller's to
// close. lender, if not nil, is what h opens attachments by.
func NewBackends(h *harness.Harness, id Identity, lender *Lender) *Backends {
	b := &Backends{h: h, id: id, lender: lender}
	b.model.Store(&id.Model)
	return b
}

// wanted reports whether anybody takes events of type t.
func (b *Backends) wanted(t ahp.EventType) bool {
	return b != nil && (b.h.Subscribed(t, ahp.ModeIntercept) || b.h.Subscribed(t, ahp.ModeObserve))
}

// askBackends is step 3: the backends in registration order, on the effective
// arguments. A call that an extension refused is only shown to them.
func (j *judgement) askBackends(ctx context.Context) {
	b := j.g.o.Backends
	if !b.wanted(ahp.ToolBefore) || ctx.Err() != nil {
		return
	}
	first, caps := j.before(), capabilities(ahp.ToolBefore)
	if j.denied() {
		_, _ = b.h.Dispatch(ctx, first, caps, nil, harness.DispatchOptions{ObserveOnly: true})
		return
	}
	out, err := b.h.Dispatch(ctx, first, caps, j.state(), harness.DispatchOptions{HoldObservers: true})
	if err != nil {
		j.backendBug(err)
		return
	}
	j.take(ctx, out, ahp.ToolBefore)
	if out.Interrupted {
		return
	}
	if out.Changed {
		j.changedByBackend(ctx, out)
	}
	_ = out.Release(nil) // an observation is best effort
}

// changedByBackend judges input that a backend changed: every extension once more,
// then the backends that had answered on other input.
func (j *judgement) changedByBackend(ctx context.Context, out *harness.Outcome) {
	refused := j.denied() || j.stop != nil
	if !j.rewrite(out.Event.Tool.Input, "backend "+out.ChangedBy.Backend) || refused {
		return
	}
	j.finalRound(ctx)
	earlier := answeredBefore(out)
	if j.denied() || len(earlier) == 0 || ctx.Err() != nil {
		return
	}
	b := j.g.o.Backends
	again, err := b.h.Dispatch(ctx, j.before(), againCapabilities(), j.state(), harness.DispatchOptions{Only: earlier, NoObservers: true})
	if err != nil {
		j.backendBug(err)
		return
	}
	j.take(ctx, again, ahp.ToolBefore)
}

// answeredBefore returns the subscriptions that answered before the one that made
// the last change.
func answeredBefore(out *harness.Outcome) []ahp.SubscriptionID {
	var ids []ahp.SubscriptionID
	for _, a := range out.Trace {
		if a.By == out.ChangedBy {
			break
		}
		if a.Kind == ahp.AnswerEffects {
			ids = append(ids, a.By)
		}
	}
	return ids
}

// backendPermission lets the backends refuse before a person is asked.
func (j *judgement) backendPermission(ctx context.Context) {
	b := j.g.o.Backends
	if !b.wanted(ahp.ToolPermissionRequest) || ctx.Err() != nil {
		return
	}
	state := &ahp.State{Permission: ahp.PermissionAsk}
	e := j.permission()
	j.requested = e.ID
	out, err := b.h.Dispatch(ctx, e, capabilities(ahp.ToolPermissionRequest), state, harness.DispatchOptions{})
	if err != nil {
		j.backendBug(err)
		return
	}
	j.take(ctx, out, ahp.ToolPermissionRequest)
}

// state is what the backends are told of the decision so far; nil is nothing.
func (j *judgement) state() *ahp.State {
	if slices.ContainsFunc(j.objections, policy.Objection.Asks) {
		return &ahp.State{Permission: ahp.PermissionAsk}
	}
	return nil
}

// backendBug refuses a call whose backends could not even be addressed: that is a
// fault of this program, and no failure policy opens it. The model is told nothing
// of what went wrong (ahp-wire.md §14).
func (j *judgement) backendBug(err error) {
	j.g.recordBug(err)
	j.object(policy.ObjectDeny(policy.Source{Kind: "gate", Name: "backends"}, harness.SyntheticReason, "internal"), "backend")
}

// recordBug keeps what went wrong for who reads the record.
func (g *Gate) recordBug(err error) {
	_, _ = g.o.Log.Append(event.Draft{Actor: event.ActorGate, Trust: event.TrustHarness, Payload: &event.Notice{
		Level: "warning", Text: "the backends could not be asked: " + tool.Clean(err.Error()),
	}})
}

// take turns what the backends answered into objections. Nothing in it can make a
// verdict less strict: an Outcome's allow is never looked at.
func (j *judgement) take(ctx context.Context, out *harness.Outcome, t ahp.EventType) {
	j.d.Asked = append(j.d.Asked, askedBackends(out, t)...)
	j.g.recordFailures(ctx, out, t)
	if out.Interrupted {
		j.object(policy.ObjectDeny(policy.Source{Kind: "gate", Name: "backends"}, "the call was cancelled while the backends were asked", "interrupted"), "backend")
		return
	}
	for _, d := range out.Denials {
		code := d.Code
		if d.Synthetic {
			code = "backend_failed"
		}
		j.object(policy.ObjectDeny(backendSource(d.By), tool.Clean(d.Reason), code), "backend")
	}
	for _, a := range out.Trace {
		for _, e := range a.Effects {
			if _, ok := e.(*ahp.Ask); ok {
				j.object(policy.ObjectAsk(backendSource(a.By), askReason(a.Effects), ""), "backend")
			}
		}
	}
	if out.Flow == ahp.FlowStateStop && j.stop == nil {
		j.stop = &stopped{by: backendSource(out.StoppedBy).String(), reason: tool.Clean(out.StopReason)}
	}
	if out.Candidate != nil {
		j.candidate = &candidate{by: backendSource(out.CandidateBy).String(), content: tool.Clean(valueText(out.Candidate.Value))}
	}
	j.d.Messages = append(j.d.Messages, cleaned(out.Messages)...)
	now, later := injections(out.Injections)
	j.g.inject(j.call.ID, now, later)
}

func cleaned(texts []string) []string {
	var out []string
	for _, t := range texts {
		out = append(out, tool.Clean(t))
	}
	return out
}

func backendSource(id ahp.SubscriptionID) policy.Source {
	return policy.Source{Kind: "backend", Name: id.Backend}
}

// askReason is what a person is told of an ask: the messages that came with it.
func askReason(effects []ahp.Effect) string {
	var texts []string
	for _, e := range effects {
		if m, ok := e.(*ahp.Notice); ok && m.Text != "" {
			texts = append(texts, m.Text)
		}
	}
	if len(texts) == 0 {
		return "it wants a person's approval"
	}
	return tool.Clean(strings.Join(texts, " "))
}

// valueText is a supplied result as the model reads it: a string as it is,
// anything else as canonical JSON (ahp-wire.md A7).
func valueText(v ahp.Raw) string {
	var s string
	if strictjson.Unmarshal(v, &s, strictjson.Options{}) == nil {
		return s
	}
	canon, err := strictjson.Canonical(v)
	if err != nil {
		return string(v)
	}
	return string(canon)
}

// messagesText returns the text of canonical messages.
func messagesText(messages []ahp.Message) string {
	var parts []string
	for _, m := range messages {
		for _, p := range m.Parts {
			if p.Text != nil {
				parts = append(parts, *p.Text)
			}
		}
	}
	return strings.Join(parts, "\n")
}

// askedBackends is a dispatch's trace for the record.
func askedBackends(out *harness.Outcome, t ahp.EventType) []event.Asked {
	var asked []event.Asked
	for _, a := range out.Trace {
		e := event.Asked{Kind: "backend", Name: fmt.Sprintf("%s#%d", a.By.Backend, a.By.Index), Step: string(t), EventID: out.Event.ID, MS: a.Milliseconds}
		if a.Attempts != 1 {
			e.Attempts = a.Attempts
		}
		switch {
		case a.Failure != nil:
			e.Answer, e.Failure, e.Policy, e.Reason = "failed", string(a.Failure.Class), string(a.Policy), detail(a.Failure)
		case a.Kind == ahp.AnswerInterrupted:
			e.Answer = "interrupted"
		default:
			e.Answer, e.Reason, e.Code = describe(a.Effects)
		}
		asked = append(asked, e)
	}
	return asked
}

// detail is what the record keeps of a failure, whoever worded it.
func detail(f *ahp.Failure) string { return tool.Clean(cut(f.Detail, 4096)) }

// describe names accepted effects in their order.
func describe(effects []ahp.Effect) (answer, reason, code string) {
	var names []string
	for _, e := range effects {
		name := string(e.EffectType())
		switch e := e.(type) {
		case *ahp.Deny:
			reason, code = e.Reason, e.Code
		case *ahp.Flow:
			name, reason = string(e.Operation), e.Reason
		case *ahp.Modify:
			name = "rewrite"
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		return "none", "", ""
	}
	return strings.Join(names, "+"), reason, code
}

// recordFailures leaves a trace of every operational failure, opened ones too. A
// record that can't be written shows at the decision's own append.
func (g *Gate) recordFailures(ctx context.Context, out *harness.Outcome, t ahp.EventType) {
	for i := range out.Trace {
		a := &out.Trace[i]
		if a.Failure == nil || a.Kind == ahp.AnswerInterrupted {
			continue
		}
		_, _ = g.o.Log.Append(event.Draft{Actor: event.ActorGate, Trust: event.TrustHarness, Payload: &event.BackendFailed{
			Backend: a.By.Backend, Subscription: a.By.Index, EventID: out.Event.ID, EventType: string(t),
			Class: string(a.Failure.Class), Policy: string(a.Policy), Detail: detail(a.Failure),
		}})
		g.failed(ctx, out.Event, a)
	}
}

// backends shows a call's outcome to the backends. What they may change is what
// the model reads of a call that ran; a refusal stays as it is.
func (f *finishing) backends(ctx context.Context) {
	b := f.g.o.Backends
	if !b.wanted(ahp.ToolAfter) || f.o.Call.Args == nil {
		return
	}
	ran := f.o.Ran || f.o.Kind == "supplied"
	if ctx.Err() != nil {
		if ran && b.h.Subscribed(ahp.ToolAfter, ahp.ModeIntercept) {
			f.withhold(withheld)
		}
		return
	}
	caps := capabilities(ahp.ToolAfter)
	if !ran {
		caps = capabilities(ahp.ToolAfter, ahp.EffectModify)
	}
	e := f.g.after(f.o, f.content, !f.touched)
	f.g.parents.set(endKey(f.o.Call.ID), e.ID)
	out, err := b.h.Dispatch(ctx, e, caps, nil, harness.DispatchOptions{})
	if err != nil {
		f.g.recordBug(err)
		f.withhold("The result was withheld: " + harness.SyntheticReason)
		return
	}
	f.take(ctx, out)
}

func (f *finishing) take(ctx context.Context, out *harness.Outcome) {
	f.e.Asked = append(f.e.Asked, askedBackends(out, ahp.ToolAfter)...)
	f.g.recordFailures(ctx, out, ahp.ToolAfter)
	switch {
	case out.Interrupted:
		f.withhold(withheld)
		return
	case out.Permission == ahp.PermissionDeny && f.e.Outcome != "denied":
		// Only a fail-closed policy can deny here: a result that had to be checked
		// and was not doesn't reach the model.
		f.withhold("The result was withheld: " + out.Denial().Reason)
	case out.Changed:
		f.content, f.touched = tool.Clean(messagesText(out.Event.Items.Messages)), true
		f.e.RewrittenBy = append(f.e.RewrittenBy, backendSource(out.ChangedBy).String())
	}
	f.e.Messages = append(f.e.Messages, cleaned(out.Messages)...)
	now, later := injections(out.Injections)
	f.e.Injected, f.e.Later = append(f.e.Injected, now...), append(f.e.Later, later...)
	if out.Flow == ahp.FlowStateStop {
		f.stop = backendSource(out.StoppedBy).String() + ": " + out.StopReason
	}
}

// End tells the observers that the session has ended with res, and waits a moment
// for the deliveries.
func (b *Backends) End(ctx context.Context, res agent.Result) {
	if !b.wanted(ahp.SessionEnd) {
		return
	}
	e := b.envelope(ahp.SessionEnd, time.Now())
	e.Reason, e.Outcome = string(res.Reason), "error"
	e.Counters = map[string]int64{"modelReplies": int64(res.Turns)}
	for name, n := range map[string]*int64{"inputTokens": res.Usage.Input, "outputTokens": res.Usage.Output} {
		if n != nil {
			e.Counters[name] = *n
		}
	}
	switch res.Reason {
	case agent.ReasonCompleted:
		e.Outcome = "completed"
	case agent.ReasonUserInterrupt, agent.ReasonShutdown, agent.ReasonStopped, agent.ReasonPromptRefused:
		e.Outcome = "cancelled"
	}
	if d, err := b.h.Observe(ctx, e); err == nil {
		_ = d.Wait(ctx)
	}
}
