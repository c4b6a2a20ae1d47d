package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/tool"
)

// maxCutReplies is how many replies in a row may be cut by the output limit.
const maxCutReplies = 3

// maxSameRefusals is how often in a row the same call may be refused (gate.md
// §2).
const maxSameRefusals = 3

// Options is what a loop works with. Model, Gate, Exec and Log are required.
type Options struct {
	Model model.Client
	Gate  Gate
	// Hooks may be nil: nobody has a say beyond the tool calls.
	Hooks  Hooks
	Exec   *tool.Executor
	Log    Log
	System string
	Tools  []model.ToolSpec
	Limits Limits
	// Price is needed for Limits.CostUSD only.
	Price Price
	Retry Retry
	// OnText, if not nil, hears each piece of the model's text as it arrives; where
	// hooks may change or withhold what the model says, only what they let through.
	OnText func(string)
	// WorkDir is the working directory of the first call.
	WorkDir string
	// History is what was said before; the loop appends to its own copy.
	History []*model.Message
	// Later is context of backends that waited for the next prompt.
	Later []string
	// Turn is the number of turns before this run.
	Turn int
	// Sleep waits; nil means by the clock.
	Sleep func(ctx context.Context, d time.Duration) error
	// Now tells the time; nil means the clock.
	Now func() time.Time
}

// Result is the end of a run.
type Result struct {
	Reason Reason
	// Detail says more for a person; it is empty for ReasonCompleted.
	Detail string
	// Text is the model's answer, as hooks let it through; "" if there is none.
	Text  string
	Turns int
	// Usage is the sum over the run; members that were never reported are nil.
	Usage model.Usage
}

// Loop runs prompts in one session, one at a time.
type Loop struct {
	o        Options
	messages []*model.Message
	workDir  string
	turn     int
	tokens   int64
	cost     float64
	usage    model.Usage
	lastText string
	runTurns int
	refusals refusals
	callIDs  map[string]bool // every id of a call in the conversation

	later []string // context that waits for the next prompt

	// hold says that nothing of a reply is shown before the hooks had their say.
	hold bool
	// turnID is the id of the turn that Hooks know, from a prompt to its answer.
	turnID        string
	finished      bool // it was asked about the turn's end
	continuations int
	replies       int            // of models in this run
	reported      int            // of those, with usage
	answer        *model.Message // the answer of the turn, nil if there is none
	answerItem    string
}

// New returns a loop; it panics if a required option is missing.
func New(o Options) *Loop {
	if o.Model == nil || o.Gate == nil || o.Exec == nil || o.Log == nil {
		panic("agent: Model, Gate, Exec and Log are required")
	}
	if o.Retry.Attempts == 0 {
		o.Retry.Attempts = 5
	}
	if o.Retry.Base == 0 {
		o.Retry.Base = time.Second
	}
	if o.Retry.Cap == 0 {
		o.Retry.Cap = time.Minute
	}
	if o.Sleep == nil {
		o.Sleep = sleep
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	l := &Loop{o: o, messages: append([]*model.Message(nil), o.History...), workDir: o.WorkDir, turn: o.Turn, later: slices.Clone(o.Later), callIDs: map[string]bool{}}
	l.hold = l.asks(ahp.ModelResponseAfter) || l.asks(ahp.TurnFinishBefore) || l.asks(ahp.UserMessageOutbound)
	for _, m := range l.messages {
		for _, c := range m.ToolCalls() {
			l.callIDs[c.ID] = true
		}
	}
	return l
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// end is how a turn says that the run is over; it never leaves the package.
type end struct {
	reason Reason
	detail string
}

// Run records the prompt, and before it the context that backends gave, and works until the model has answered it, or until
// something ends the run. It doesn't record the session's end: the run's owner
// does, with what Run returns.
func (l *Loop) Run(ctx context.Context, prompt string, given ...string) Result {
	if l.o.Limits.Time > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, l.o.Limits.Time, &Interrupted{Reason: ReasonMaxTime, Detail: fmt.Sprintf("the limit of %s is used up", l.o.Limits.Time)})
		defer cancel()
	}
	l.reset()
	e := l.open(ctx, prompt, given)
	cut := 0
	for e == nil {
		e = l.turnOnce(ctx, &cut)
	}
	e = l.close(ctx, e)
	return Result{Reason: e.reason, Detail: e.detail, Text: l.lastText, Turns: l.runTurns, Usage: l.usage}
}

// reset forgets what belongs to an earlier run.
func (l *Loop) reset() {
	l.runTurns, l.tokens, l.cost, l.usage, l.lastText, l.refusals = 0, 0, 0, model.Usage{}, "", refusals{}
	l.finished = false
	l.turnID, l.continuations, l.replies, l.reported, l.answer, l.answerItem = "", 0, 0, 0, nil, ""
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
	l.messages = append(l.messages, &model.Message{Role: event.RoleUser, Parts: []model.Part{event.TextPart(m.Text)}})
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
		return &end{reason: ReasonCompleted}
	}
	return l.runCalls(ctx, calls)
}

// limited reports the limit that forbids another turn, or the end of ctx.
func (l *Loop) limited(ctx context.Context) *end {
	if ctx.Err() != nil {
		return interrupted(ctx)
	}
	lim := l.o.Limits
	switch {
	case lim.Turns > 0 && l.runTurns >= lim.Turns:
		return &end{ReasonMaxTurns, fmt.Sprintf("the limit of %d turns is used up", lim.Turns)}
	case lim.Tokens > 0 && l.tokens >= lim.Tokens:
		return &end{ReasonMaxTokens, fmt.Sprintf("%d tokens used, the limit is %d", l.tokens, lim.Tokens)}
	case lim.CostUSD > 0 && l.cost >= lim.CostUSD:
		return &end{ReasonMaxCost, fmt.Sprintf("%.4f USD spent, the limit is %.4f", l.cost, lim.CostUSD)}
	}
	return nil
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
