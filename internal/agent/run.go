package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/tool"
)

// end is how a turn says that the run is over; it never leaves the package.
type end struct {
	reason Reason
	detail string
}

// Run records the prompt, and before it the context that backends gave, and works
// until the model has answered it, or until something ends the run. It doesn't
// record the session's end: the run's owner does, with what Run returns.
func (l *Loop) Run(ctx context.Context, p Prompt) Result {
	if t := l.o.Limits.Time; t > 0 && l.o.Budget == nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, t, &Interrupted{Reason: ReasonMaxTime, Detail: fmt.Sprintf("the limit of %s is used up", t)})
		defer cancel()
	}
	l.reset()
	e := l.open(ctx, p)
	if e == nil {
		e = l.begin(ctx)
	}
	cut := 0
	for e == nil {
		e = l.turnOnce(ctx, &cut)
	}
	e = l.close(ctx, e)
	res := Result{Reason: e.reason, Detail: e.detail, Text: l.lastText, Turns: l.runTurns, Usage: l.usage, CostUSD: l.spending().Cost()}
	l.mu.Lock()
	l.running, l.budget = false, nil
	l.mu.Unlock()
	return res
}

// reset forgets what belongs to an earlier run.
func (l *Loop) reset() {
	l.runTurns, l.usage, l.lastText, l.refusals, l.misfits = 0, model.Usage{}, "", refusals{}, 0
	l.finished, l.system = false, l.o.System
	l.turnID, l.continuations, l.replies, l.reported, l.answer, l.answerItem = "", 0, 0, 0, nil, ""
	l.reducing.reset()
	l.told = map[string]bool{}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running, l.budget = true, l.o.Budget
	if l.budget == nil {
		l.budget = NewBudget(l.o.Limits, l.o.Now())
	}
}

// spending is the budget of the current run.
func (l *Loop) spending() *Budget {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.budget
}

// Budget returns the budget of the current run, for its sub-agents; nil between
// runs.
func (l *Loop) Budget() *Budget { return l.spending() }

// Model returns the model in use.
func (l *Loop) Model() Model {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.model
}

// SetModel makes m the model of the calls that follow. The caller records it.
func (l *Loop) SetModel(m Model) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.model = m
}

// begin asks extensions for what they add to the system text of this run.
func (l *Loop) begin(ctx context.Context) *end {
	if l.o.Extensions == nil {
		return nil
	}
	more, r := l.o.Extensions.Begin(ctx, l.at(), l.o.System)
	if r != nil {
		return l.refusal(ctx, ReasonStopped, "the start of the run was refused", r)
	}
	for _, text := range more {
		l.system += "\n\n" + text
	}
	return nil
}

// say records a user message and adds it to the history. by lists the backends
// that changed it.
func (l *Loop) say(actor event.Actor, trust event.Trust, text string, by ...string) *end {
	if len(by) > 0 {
		trust = event.TrustUntrusted
	}
	return l.enter(event.Draft{Actor: actor, Trust: trust}, event.UserMessage{Text: tool.Clean(text), RewrittenBy: by})
}

// enter records m, then adds it to the history.
func (l *Loop) enter(d event.Draft, m event.UserMessage) *end {
	d.Payload = &m
	if _, err := l.o.Log.AppendDurable(d); err != nil {
		return recordFailed(err)
	}
	said := event.UserSaid(&m)
	l.push(said)
	if d.Actor == event.ActorUser {
		l.reducing.said(said)
	}
	return nil
}

// sayLater says what waited for this prompt.
func (l *Loop) sayLater() *end {
	for len(l.later) > 0 {
		d := event.Draft{Actor: event.ActorSystem, Trust: event.TrustUntrusted}
		if e := l.enter(d, event.UserMessage{Text: tool.Clean(l.later[0]), Deferred: true}); e != nil {
			return e
		}
		l.later = l.later[1:]
	}
	return nil
}

// sayAll says context that backends gave.
func (l *Loop) sayAll(texts []string) *end {
	for _, text := range texts {
		if e := l.say(event.ActorSystem, event.TrustUntrusted, text); e != nil {
			return e
		}
	}
	return nil
}

// turnOnce does one turn; nil means that the run goes on.
func (l *Loop) turnOnce(ctx context.Context, cut *int) *end {
	if e := l.limited(ctx); e != nil {
		return e
	}
	if e := l.spending().turn(); e != nil {
		return e
	}
	l.turn++
	l.runTurns++
	if _, err := l.o.Log.Append(system(&event.TurnStarted{Turn: l.turn})); err != nil {
		return recordFailed(err)
	}
	r, e := l.ask(ctx)
	if e == nil {
		e = l.act(ctx, r, cut)
	}
	if _, err := l.o.Log.Append(system(&event.TurnEnded{Turn: l.turn})); err != nil {
		e = recordFailed(err)
	}
	if err := l.o.Log.Sign(); err != nil {
		e = recordFailed(err)
	}
	return e
}

// prepare brings what the next model call needs: what a person said meanwhile, what
// happened beside the run, what is left of it, and room.
func (l *Loop) prepare(ctx context.Context) *end {
	if e := l.deliver(ctx); e != nil {
		return e
	}
	if l.o.Notes != nil {
		if e := l.sayAll(l.o.Notes()); e != nil {
			return e
		}
	}
	if text := l.spending().low(l.o.Now(), l.told); text != "" {
		if e := l.say(event.ActorSystem, event.TrustHarness, text); e != nil {
			return e
		}
	}
	return l.fit(ctx)
}

// act acts on a recorded reply.
func (l *Loop) act(ctx context.Context, r *reply, cut *int) *end {
	calls := r.resp.Message.ToolCalls()
	if r.stop != nil {
		return l.skipAll(ctx, calls, r.stop)
	}
	if r.resp.Finish == model.FinishLength {
		if *cut++; *cut >= maxCutReplies {
			return &end{ReasonError, fmt.Sprintf("%d replies in a row were cut by the model's output limit", *cut)}
		}
		return l.say(event.ActorSystem, event.TrustHarness, "[abhed] Your last reply was cut off at the output limit; no tool call in it was run. Continue, in smaller steps.")
	}
	*cut = 0
	switch {
	case r.more != "":
		return l.say(event.ActorSystem, event.TrustUntrusted, r.more)
	case len(calls) == 0:
		return l.answered(r)
	}
	return l.runCalls(ctx, calls)
}

// maxMisfits is how often the model may answer again because its answer doesn't
// fit the schema.
const maxMisfits = 3

// answered ends the run with the model's answer, unless it doesn't fit the schema
// or a person has said something meanwhile.
func (l *Loop) answered(r *reply) *end {
	if l.o.CheckOutput != nil {
		if err := l.o.CheckOutput(l.lastText); err != nil {
			if l.misfits++; l.misfits >= maxMisfits {
				return &end{ReasonError, fmt.Sprintf("%d answers in a row didn't fit the JSON Schema; the last: %v", l.misfits, err)}
			}
			l.finished = false
			return l.say(event.ActorSystem, event.TrustHarness, "[abhed] Your answer doesn't fit the JSON Schema that was asked for: "+err.Error()+". Answer again, with nothing but JSON that fits.")
		}
		l.misfits = 0
	}
	if l.goesOn() {
		l.finished = false
		return nil
	}
	return &end{reason: ReasonCompleted}
}

// limited reports the limit that forbids another turn, or the end of ctx.
func (l *Loop) limited(ctx context.Context) *end {
	if ctx.Err() != nil {
		return interrupted(ctx)
	}
	return l.spending().spent()
}

func interrupted(ctx context.Context) *end {
	var i *Interrupted
	if errors.As(context.Cause(ctx), &i) {
		return &end{i.Reason, i.Detail}
	}
	return &end{ReasonUserInterrupt, ""}
}

func recordFailed(err error) *end {
	return &end{ReasonError, "the record can't be written, so nothing more may be done: " + err.Error()}
}

func system(p event.Payload) event.Draft {
	return event.Draft{Actor: event.ActorSystem, Trust: event.TrustHarness, Payload: p}
}
