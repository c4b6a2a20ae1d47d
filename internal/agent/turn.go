package agent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/control"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/tool"
)

// newID returns an id for what has none of its own, "" where nobody would see it.
func (l *Loop) newID() string {
	if l.o.Hooks == nil {
		return ""
	}
	id, err := uuid.NewV7()
	if err != nil {
		return uuid.NewString()
	}
	return id.String()
}

func (l *Loop) attempt(n int) Attempt { return Attempt{ID: l.newID(), Number: n} }

func (l *Loop) batch(calls []*model.ToolCall) *Batch {
	if l.o.Hooks == nil {
		return nil
	}
	b := &Batch{ID: l.newID()}
	for _, c := range calls {
		b.CallIDs = append(b.CallIDs, c.ID)
	}
	return b
}

// open begins a turn: what backends gave at the session's start enters the
// conversation, then the prompt, if nobody refuses it.
func (l *Loop) open(ctx context.Context, p Prompt) *end {
	if e := l.sayLater(); e != nil {
		return e
	}
	if e := l.sayAll(p.Given); e != nil {
		return e
	}
	if e := l.deliver(ctx); e != nil {
		return e
	}
	item := ItemID(len(l.messages), nil)
	text, by, r, e := l.admit(ctx, tool.Clean(p.Text))
	switch {
	case e != nil:
		return e
	case r != nil:
		return refused(ReasonPromptRefused, "the prompt was refused", r)
	}
	var injected []string
	l.turnID = l.newID()
	if l.hooked(ahp.TurnStart) {
		say, e := l.consult(ctx, &TurnStart{Item: item, Text: text})
		if e == nil && say.Refusal != nil {
			e = refused(ReasonPromptRefused, "the turn was refused", say.Refusal)
		}
		if e != nil {
			l.turnID = "" // it never began
			return e
		}
		if say.Stop != "" {
			return &end{ReasonStopped, say.Stop}
		}
		text, by, injected = say.Text, append(by, say.By...), say.Injected
	}
	said := event.UserMessage{Text: tool.Clean(text), RewrittenBy: by, Images: p.Images}
	trust := event.TrustOperator
	if len(by) > 0 {
		trust = event.TrustUntrusted
	}
	if e := l.enter(event.Draft{Actor: event.ActorUser, Trust: trust}, said); e != nil {
		return e
	}
	return l.sayAll(injected)
}

// close ends a turn. Where the model has not answered backends may still say
// something to the person; the end stays what it is, unless the record fails.
func (l *Loop) close(ctx context.Context, e *end) *end {
	if l.o.Extensions != nil {
		l.o.Extensions.Ended(ctx, l.at(), e.reason, l.lastText)
	}
	if l.turnID == "" {
		return e
	}
	if !l.finished && ctx.Err() == nil && l.hooked(ahp.TurnFinishBefore) {
		m := &TurnFinish{Reason: e.reason, Continuations: l.continuations, Usage: l.turnUsage()}
		if _, failed := l.consult(ctx, m); failed != nil && failed.reason == ReasonError {
			e = failed
		}
	}
	l.tell(ctx, ahp.TurnEnd, func() Moment {
		return &TurnEnd{Reason: e.reason, Detail: e.detail, Item: l.answerItem, Reply: l.answer, Continuations: l.continuations, Usage: l.turnUsage()}
	})
	l.turnID = ""
	return e
}

func (l *Loop) turnUsage() TurnUsage {
	return TurnUsage{Usage: l.usage, Replies: l.replies, Reported: l.reported}
}

// reply is a model's reply on its way through the hooks.
type reply struct {
	resp *model.Response
	took time.Duration
	// supplied names who gave it if no model did.
	supplied string
	by       []string // who changed it

	// stop ends the run: somebody wants it, or refused the reply.
	stop *end
	// more is what the model is told if the turn goes on although it has answered.
	more string
}

// request returns what to send to the model, or the reply that a backend gave in
// the model's place.
func (l *Loop) request(ctx context.Context, a Attempt) (*model.Request, *reply, *end) {
	req := &model.Request{System: l.system, Messages: l.messages, Tools: l.reducing.tools, Output: l.o.Output}
	if l.o.Extensions != nil {
		selected, r := l.o.Extensions.Select(ctx, l.at(), l.messages)
		if r != nil {
			return nil, nil, l.refusal(ctx, ReasonStopped, "the messages were refused", r)
		}
		req.Messages = selected
	}
	if !l.hooked(ahp.ModelRequestBefore) {
		return req, nil, nil
	}
	say, e := l.consult(ctx, &RequestBefore{Attempt: a, System: req.System, Messages: req.Messages, Tools: req.Tools})
	switch {
	case e != nil:
		return nil, nil, e
	case say.Refusal != nil:
		return nil, nil, refused(ReasonStopped, "the request to the model was refused", say.Refusal)
	case say.Stop != "":
		return nil, nil, &end{ReasonStopped, say.Stop}
	}
	if say.Request != nil {
		req = say.Request
		req.Output = l.o.Output // nobody can change that
	}
	before := len(l.messages)
	if e := l.sayAll(say.Injected); e != nil {
		return nil, nil, e
	}
	if len(l.messages) > before {
		req.Messages = append(req.Messages[:len(req.Messages):len(req.Messages)], l.messages[before:]...)
	}
	if say.Reply == nil {
		return req, nil, nil
	}
	resp := &model.Response{Message: say.Reply, Finish: model.FinishStop}
	return nil, &reply{resp: resp, supplied: say.By[len(say.By)-1]}, nil
}

// received takes a reply through the hooks, records what they let through, and adds
// it to the history.
func (l *Loop) received(ctx context.Context, r *reply, a Attempt) (*reply, *end) {
	original := r.resp.Message
	withheld, e := l.review(ctx, r, a)
	p := &event.ModelResponded{
		Turn: l.turn, Attempt: a.Number, Message: *r.resp.Message, Finish: string(r.resp.Finish), Model: r.resp.Model,
		Usage: r.resp.Usage, Note: r.resp.Note, LatencyMS: r.took.Milliseconds(), SuppliedBy: r.supplied, RewrittenBy: r.by, Withheld: withheld,
	}
	if withheld != "" {
		p.Message = model.Message{Role: event.RoleAssistant}
	}
	if withheld != "" || len(r.by) > 0 {
		p.OriginalHash = textHash(original.Text())
	}
	// What follows a reply, a decision or the end of the turn, takes it to the disk. Only
	// where others hear of it before that it has to be there now.
	record := l.o.Log.Append
	if l.o.Hooks != nil || l.o.Extensions != nil {
		record = l.o.Log.AppendDurable
	}
	if _, err := record(event.Draft{Actor: event.ActorAgent, Trust: event.TrustUntrusted, Payload: p}); err != nil {
		l.answer, l.answerItem, l.lastText = nil, "", ""
		return nil, recordFailed(err)
	}
	if e != nil {
		return nil, e
	}
	if len(r.resp.Message.Parts) > 0 {
		l.push(r.resp.Message)
	}
	l.show(r)
	return r, nil
}

// show passes on the text of a reply that was held back. What a model says beside
// its calls is no answer: it isn't shown where answers are asked about.
func (l *Loop) show(r *reply) {
	text := r.resp.Message.Text()
	if l.o.OnDelta == nil || text == "" || !l.hold && r.supplied == "" {
		return
	}
	if l.answer == nil && l.asks(ahp.UserMessageOutbound) {
		return
	}
	l.o.OnDelta(control.Delta{Kind: "text", Text: text})
}

func textHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// review lets the hooks judge a reply: each reply, then, if the turn would end with
// it, the answer, and then what is said to the person. withheld, if not "", says
// why nothing of it may go on, with the end that this makes.
func (l *Loop) review(ctx context.Context, r *reply, a Attempt) (withheld string, e *end) {
	item := ItemID(len(l.messages), nil)
	if l.hooked(ahp.ModelResponseAfter) {
		m := &ResponseAfter{Attempt: a, Item: item, Response: r.resp, SuppliedBy: r.supplied, Latency: r.took}
		if e := l.judge(ctx, r, m, "the model's reply was withheld"); e != nil {
			return withheldFor(e), e
		}
	}
	if r.resp.Finish == model.FinishLength || len(r.resp.Message.ToolCalls()) > 0 {
		return "", nil
	}
	if r.stop == nil && l.hooked(ahp.TurnFinishBefore) {
		l.finished = true
		m := &TurnFinish{Item: item, Reply: r.resp.Message, Continuations: l.continuations, Remaining: l.remaining(), Usage: l.turnUsage()}
		if e := l.judge(ctx, r, m, "the answer was withheld"); e != nil {
			return withheldFor(e), e
		}
		if r.more != "" {
			l.finished = false
			return "", nil
		}
	}
	if l.hooked(ahp.UserMessageOutbound) {
		say, e := l.consult(ctx, &Outbound{Item: item, Text: r.resp.Message.Text()})
		if e == nil && say.Refusal != nil {
			e = refused(ReasonStopped, "the answer was withheld", say.Refusal)
		}
		if e != nil {
			return withheldFor(e), e
		}
		if len(say.By) > 0 {
			r.by = append(r.by, say.By...)
			r.replace(withText(r.resp.Message, say.Text))
		}
	}
	l.answer, l.answerItem, l.lastText = r.resp.Message, item, r.resp.Message.Text()
	return "", nil
}

// judge asks about a reply or an answer and takes what comes of it.
func (l *Loop) judge(ctx context.Context, r *reply, m Moment, what string) *end {
	say, e := l.consult(ctx, m)
	if e == nil && say.Refusal != nil {
		e = refused(ReasonStopped, what, say.Refusal)
	}
	if e != nil {
		return e
	}
	if say.Reply != nil {
		r.by = append(r.by, say.By...)
		r.replace(say.Reply)
	}
	if say.Stop != "" {
		r.stop = &end{ReasonStopped, say.Stop}
	}
	if say.Continue && r.stop == nil {
		l.continuations++
		r.more = strings.Join(say.Instructions, "\n\n")
		if r.more == "" {
			r.more = "[abhed] A check of your answer asks for one more step. Go on."
		}
	}
	return nil
}

// withheldFor words an end as the reason for which a reply was withheld.
func withheldFor(e *end) string {
	if e.detail == "" {
		return "the run ended with " + string(e.reason) + " while the reply was reviewed"
	}
	return e.detail
}

// replace gives the reply another message; the original may be in use elsewhere.
func (r *reply) replace(m *model.Message) {
	resp := *r.resp
	resp.Message = m
	if resp.Finish == model.FinishToolCalls && len(m.ToolCalls()) == 0 {
		resp.Finish = model.FinishStop
	}
	r.resp = &resp
}

// withText returns m with text in place of its own text, what else it has kept.
func withText(m *model.Message, text string) *model.Message {
	out := &model.Message{Role: m.Role, Parts: slices.DeleteFunc(slices.Clone(m.Parts), func(p model.Part) bool { return p.Text != nil })}
	if text != "" {
		out.Parts = append(out.Parts, event.TextPart(text))
	}
	return out
}

// remaining is how many continuations the turn has left.
func (l *Loop) remaining() int {
	n := MaxContinuations - l.continuations
	if left, limited := l.spending().turnsLeft(); limited {
		n = min(n, left)
	}
	return max(n, 0)
}
