package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/model"
)

// ask makes the turn's model call, with retries, and records the reply.
func (l *Loop) ask(ctx context.Context) (*model.Response, *end) {
	req := &model.Request{System: l.o.System, Messages: l.messages, Tools: l.o.Tools}
	for attempt := 1; ; attempt++ {
		sent := event.ModelRequested{Turn: l.turn, Attempt: attempt, Model: l.o.Model.Name(), Messages: len(l.messages)}
		if _, err := l.o.Log.Append(system(&sent)); err != nil {
			return nil, recordFailed(err)
		}
		began := l.o.Now()
		resp, err := l.o.Model.Stream(ctx, req, l.onDelta)
		if err == nil {
			resp = l.uniqueCalls(resp)
			return resp, l.received(resp, attempt, l.o.Now().Sub(began))
		}
		if ctx.Err() != nil {
			return nil, interrupted(ctx)
		}
		if e := l.retry(ctx, err, attempt); e != nil {
			return nil, e
		}
	}
}

func (l *Loop) onDelta(d model.Delta) {
	if d.Text != "" && l.o.OnText != nil {
		l.o.OnText(d.Text)
	}
}

// received records a reply, counts it and adds it to the history.
func (l *Loop) received(resp *model.Response, attempt int, took time.Duration) *end {
	p := &event.ModelResponded{
		Turn: l.turn, Attempt: attempt, Message: *resp.Message, Finish: string(resp.Finish), Model: resp.Model,
		Usage: resp.Usage, Note: resp.Note, LatencyMS: took.Milliseconds(),
	}
	if _, err := l.o.Log.AppendDurable(event.Draft{Actor: event.ActorAgent, Trust: event.TrustUntrusted, Payload: p}); err != nil {
		return recordFailed(err)
	}
	if len(resp.Message.Parts) > 0 {
		l.messages = append(l.messages, resp.Message)
	}
	l.count(resp)
	return nil
}

// uniqueCalls gives a new id to every call whose id is empty or taken: results are
// matched to calls by it, in the record and in every later request.
func (l *Loop) uniqueCalls(resp *model.Response) *model.Response {
	m := *resp.Message
	m.Parts = append([]model.Part(nil), m.Parts...)
	renamed := false
	for i, p := range m.Parts {
		if p.ToolCall == nil {
			continue
		}
		c := *p.ToolCall
		for n := 1; c.ID == "" || l.callIDs[c.ID]; n++ {
			c.ID = fmt.Sprintf("%s_t%d_%d", p.ToolCall.ID, l.turn, n)
			renamed = true
		}
		l.callIDs[c.ID] = true
		m.Parts[i].ToolCall = &c
	}
	if !renamed {
		return resp
	}
	out := *resp
	out.Message = &m
	out.Note = strings.TrimPrefix(out.Note+"; calls had no id or one that was taken, and got new ones", "; ")
	return &out
}

// count adds a reply's tokens; without usage it estimates, so that a limit on
// tokens binds with any endpoint.
func (l *Loop) count(resp *model.Response) {
	if u := resp.Usage; u != nil && u.Input != nil && u.Output != nil {
		l.tokens += *u.Input + *u.Output
		if u.CacheRead != nil {
			l.tokens += *u.CacheRead
		}
		l.cost += l.o.Price.of(u)
	} else {
		n := len(l.o.System)
		for _, m := range l.messages {
			n += size(m)
		}
		l.tokens += int64(n) / 4
		l.cost += float64(n) / 4 * l.o.Price.Input / 1e6
	}
	if u := resp.Usage; u != nil {
		add(&l.usage.Input, u.Input)
		add(&l.usage.Output, u.Output)
		add(&l.usage.CacheRead, u.CacheRead)
		add(&l.usage.CacheWrite, u.CacheWrite)
	}
}

func size(m *model.Message) int {
	n := 0
	for _, p := range m.Parts {
		switch {
		case p.Text != nil:
			n += len(*p.Text)
		case p.Reasoning != nil:
			n += len(*p.Reasoning)
		case p.ToolCall != nil:
			n += len(p.ToolCall.Args)
		case p.ToolResult != nil:
			n += len(p.ToolResult.Content)
		}
	}
	return n
}

func add(sum **int64, n *int64) {
	if n == nil {
		return
	}
	if *sum == nil {
		*sum = new(int64)
	}
	**sum += *n
}

// retry records the failed attempt and waits; an end means that no attempt
// follows.
func (l *Loop) retry(ctx context.Context, err error, attempt int) *end {
	p := &event.ModelFailed{Turn: l.turn, Attempt: attempt, Kind: "internal", Detail: err.Error(), Final: true}
	final := &end{ReasonError, err.Error()}
	wait := time.Duration(0)
	var me *model.Error
	if errors.As(err, &me) {
		p.Kind, p.Status, p.Partial = string(me.Kind), me.Status, me.Partial
		wait = l.wait(me, attempt)
		switch {
		case !me.Retryable():
		case attempt >= l.o.Retry.Attempts:
			reason := ReasonRetryExhausted
			if me.Kind == model.ErrStalled {
				reason = ReasonStalled
			}
			final = &end{reason, fmt.Sprintf("%d attempts failed; the last: %s", attempt, me)}
		case wait > l.o.Retry.Cap:
			final = &end{ReasonRetryExhausted, fmt.Sprintf("the endpoint asks to wait %s, longer than the limit of %s: %s", wait, l.o.Retry.Cap, me)}
		default:
			p.Final, p.RetryMS = false, wait.Milliseconds()
		}
	}
	if _, aerr := l.o.Log.Append(system(p)); aerr != nil {
		return recordFailed(aerr)
	}
	if p.Final {
		return final
	}
	if l.o.Sleep(ctx, wait) != nil {
		return interrupted(ctx)
	}
	return nil
}

// wait is the pause before the next attempt: what the endpoint asked for, or
// doubling from the base.
func (l *Loop) wait(e *model.Error, attempt int) time.Duration {
	if e.RetryAfter > 0 {
		return e.RetryAfter
	}
	d := l.o.Retry.Base << min(attempt-1, 20)
	return min(d, l.o.Retry.Cap)
}
