package gate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/harness"
	"github.com/abhed/abhed/internal/agent"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/tool"
)

var _ agent.Hooks = (*Gate)(nil)

// Wants reports whether a backend takes events of type t in mode m, or whether an
// extension is told of it.
func (g *Gate) Wants(t ahp.EventType, m ahp.Mode) bool {
	return g.subscribed(t, m) || t == ahp.UserAttention && m == ahp.ModeObserve && g.extensionsTake(notificationEvent)
}

func (g *Gate) subscribed(t ahp.EventType, m ahp.Mode) bool {
	return g.o.Backends != nil && g.o.Backends.h.Subscribed(t, m)
}

// observed reports whether a backend observes events of type t.
func (g *Gate) observed(t ahp.EventType) bool { return g.subscribed(t, ahp.ModeObserve) }

// question is one consultation of the backends: what is asked, and how an accepted
// answer is understood.
type question struct {
	event *ahp.Event
	caps  *ahp.Capabilities
	// original is what a person said; hidden is what a model said, of which the
	// record gets the hash.
	original, hidden string
	// take puts the effective value into say. It is called for an answer that nothing
	// stands against. Its error says why the value can't be used.
	take func(out *harness.Outcome, say *agent.Say, d *event.HooksDecided) error
}

// Ask asks the backends about m (see agent.Hooks). What it returns is on disk. If
// the record can't be written, or the backends can't even be addressed, it refuses.
func (g *Gate) Ask(ctx context.Context, at agent.At, m agent.Moment) *agent.Say {
	if g.o.Backends == nil {
		return unasked(m)
	}
	if _, is := m.(*agent.TaskBefore); is {
		at = g.ofCall(at)
	}
	q := g.question(at, m)
	if q == nil {
		return unasked(m)
	}
	say := g.consult(ctx, at, q)
	switch m.(type) {
	case *agent.Inbound, *agent.TurnStart:
		g.said(say.Text)
	}
	return say
}

// unasked is what comes of m where there is nobody to ask: it stays as it is.
func unasked(m agent.Moment) *agent.Say {
	say := &agent.Say{}
	switch m := m.(type) {
	case *agent.Inbound:
		say.Text = m.Text
	case *agent.TurnStart:
		say.Text = m.Text
	case *agent.Outbound:
		say.Text = m.Text
	case *agent.CompactBefore:
		say.Text = m.Instructions
	case *agent.CompactAfter:
		say.Text = m.Summary
	case *agent.ElicitResult:
		say.Text = m.Result
	}
	return say
}

func (g *Gate) consult(ctx context.Context, at agent.At, q *question) *agent.Say {
	began := g.o.Now()
	t := q.event.Type
	d := &event.HooksDecided{Turn: at.Turn, TurnID: at.TurnID, EventType: string(t), EventID: q.event.ID, Outcome: "none"}
	say := &agent.Say{}
	out, err := g.o.Backends.h.Dispatch(ctx, q.event, q.caps, nil, harness.DispatchOptions{HoldObservers: true})
	switch {
	case errors.Is(err, harness.ErrClosed):
		interrupt(say, d, "the session ended while the backends were asked")
	case err != nil:
		g.recordBug(err)
		refuse(say, d, "gate backends", harness.SyntheticReason, "internal")
	default:
		d.Asked = askedBackends(out, t)
		g.recordFailures(ctx, out, t)
		g.weigh(out, q, say, d)
	}
	if err == nil && len(out.Trace) == 0 && say.Refusal == nil {
		_ = out.Release(nil) // nobody was asked
		return say
	}
	if d.Outcome != "none" {
		d.Original = q.original
		if q.hidden != "" {
			d.OriginalHash = sum(q.hidden)
		}
	}
	d.MS = g.o.Now().Sub(began).Milliseconds()
	if _, err := g.o.Log.AppendDurable(event.Draft{Actor: event.ActorGate, Trust: event.TrustHarness, Payload: d}); err != nil {
		return &agent.Say{Refusal: &agent.Refusal{By: "the record", Err: err}}
	}
	if out != nil {
		_ = out.Release(nil) // an observation is best effort
	}
	return say
}

// refuse makes say a refusal, beside which nothing else counts.
func refuse(say *agent.Say, d *event.HooksDecided, by, reason, code string) {
	*say = agent.Say{Refusal: &agent.Refusal{By: by, Reason: reason}}
	d.Outcome, d.By, d.Reason, d.Code = "denied", by, reason, code
	d.Injected, d.Later, d.Instructions, d.Request = nil, nil, nil, nil
}

// interrupt makes say a refusal that nobody decided.
func interrupt(say *agent.Say, d *event.HooksDecided, reason string) {
	refuse(say, d, "the harness", reason, "")
	say.Refusal.Interrupted, d.Outcome = true, "interrupted"
}

// weigh turns what the backends answered into what the loop does.
func (g *Gate) weigh(out *harness.Outcome, q *question, say *agent.Say, d *event.HooksDecided) {
	d.Messages = cleaned(out.Messages)
	denial := out.Denial()
	switch {
	case out.Interrupted:
		interrupt(say, d, "it was cancelled while the backends were asked")
		return
	case denial != nil:
		code := denial.Code
		if denial.Synthetic {
			code = "backend_failed"
		}
		refuse(say, d, backendSource(denial.By).String(), tool.Clean(denial.Reason), code)
		return
	case out.Permission == ahp.PermissionDeny: // it can't be without a denial; then it still is one
		refuse(say, d, "gate backends", harness.SyntheticReason, "internal")
		return
	}
	if out.Changed {
		d.Outcome, d.By = "changed", backendSource(out.ChangedBy).String()
		say.By = changers(out)
	}
	say.Injected, say.Later = injections(out.Injections)
	d.Injected, d.Later = say.Injected, say.Later
	if q.take != nil {
		if err := q.take(out, say, d); err != nil {
			by := backendSource(out.ChangedBy)
			if !out.Changed {
				by = backendSource(out.CandidateBy)
			}
			refuse(say, d, by.String(), "it gave something that can't be used: "+err.Error(), "invalid_rewrite")
			return
		}
	}
	switch out.Flow {
	case ahp.FlowStateStop:
		by := backendSource(out.StoppedBy).String()
		say.Stop = by + ": " + tool.Clean(out.StopReason)
		d.Outcome, d.By, d.Reason = "stopped", by, tool.Clean(out.StopReason)
	case ahp.FlowStateContinue:
		say.Continue, say.Instructions = true, cleaned(out.Instructions)
		d.Outcome, d.Instructions = "continued", say.Instructions
	}
}

// changers lists the backends that changed the value, each once, in order.
func changers(out *harness.Outcome) []string {
	var by []string
	for _, a := range out.Trace {
		if name := backendSource(a.By).String(); a.Changed && (len(by) == 0 || by[len(by)-1] != name) {
			by = append(by, name)
		}
	}
	return by
}

// injections sorts the texts by when the model is to have them.
func injections(list []*ahp.Inject) (now, later []string) {
	for _, i := range list {
		s := messagesText(i.Messages)
		switch {
		case s == "":
		case i.DeliverAt == ahp.DeliverNextTurn:
			later = append(later, tool.Clean(s))
		default:
			now = append(now, tool.Clean(s))
		}
	}
	return now, later
}

// sum returns the SHA-256 of text in hex.
func sum(text string) string {
	s := sha256.Sum256([]byte(text))
	return hex.EncodeToString(s[:])
}

// Start tells the backends that the session starts; trigger is "startup", "resume",
// or "fork" of the session with the id from, which is "" else. It returns context
// for the model.
func (g *Gate) Start(ctx context.Context, trigger, from, system string) (given []string, err error) {
	b := g.o.Backends
	if !b.wanted(ahp.SessionStart) {
		return nil, nil
	}
	e := g.envelope(ahp.SessionStart)
	e.Trigger, e.PermissionMode, e.Manifest = trigger, b.id.Mode, b.h.Manifest()
	e.Harness = &ahp.HarnessInfo{Name: "abhed", Version: b.id.Version}
	if from != "" {
		e.ResumedFrom = &ahp.Identity{ID: from}
	}
	e.Items = ahp.MessageItems(ahp.TextMessage(systemItem, ahp.RoleSystem, system))
	say := g.consult(ctx, agent.At{}, &question{event: e, caps: capabilities(ahp.SessionStart), take: func(_ *harness.Outcome, say *agent.Say, d *event.HooksDecided) error {
		// There was no turn yet, so the next one is the first.
		say.Injected = append(say.Injected, say.Later...)
		d.Injected, d.Later = say.Injected, nil
		return nil
	}})
	switch r := say.Refusal; {
	case r == nil:
		return say.Injected, nil
	case r.Err != nil:
		return nil, r.Err
	case r.Interrupted:
		return nil, errors.New(r.Reason)
	default:
		return nil, fmt.Errorf("%s: %s", r.By, r.Reason)
	}
}
