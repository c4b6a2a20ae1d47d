package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/model"
)

// ask makes the turn's model call, with retries, and records the reply.
func (l *Loop) ask(ctx context.Context) (*reply, *end) {
	if e := l.prepare(ctx); e != nil {
		return nil, e
	}
	reduced := false // an overflow is acted on once
	for n := 1; ; n++ {
		a := l.attempt(n)
		req, supplied, e := l.request(ctx, a)
		if e != nil {
			return nil, e
		}
		if supplied != nil {
			return l.received(ctx, supplied, a)
		}
		if ctx.Err() != nil { // while somebody was asked
			return nil, interrupted(ctx)
		}
		m := l.Model()
		client := m.Client
		if req, e = l.sendable(req, m); e != nil {
			return nil, e
		}
		sent := event.ModelRequested{Turn: l.turn, Attempt: n, Model: client.Name(), Messages: len(req.Messages)}
		if _, err := l.o.Log.Append(system(&sent)); err != nil {
			return nil, recordFailed(err)
		}
		began := l.o.Now()
		onDelta, done := l.listen(ctx)
		resp, err := client.Stream(ctx, req, onDelta)
		done(err == nil)
		took := l.o.Now().Sub(began)
		if err == nil {
			resp = l.uniqueCalls(resp)
			l.count(resp, m)
			return l.received(ctx, &reply{resp: resp, took: took}, a)
		}
		if ctx.Err() != nil {
			return nil, interrupted(ctx)
		}
		var me *model.Error
		if errors.As(err, &me) && me.Kind == model.ErrOverflow {
			if e := l.overflowed(ctx, me, a, took, reduced); e != nil {
				return nil, e
			}
			reduced = true
			continue
		}
		if e := l.retry(ctx, err, a, took); e != nil {
			return nil, e
		}
	}
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
		for n := 1; !l.o.IDs.take(c.ID); n++ {
			c.ID = fmt.Sprintf("%s_t%d_%d", p.ToolCall.ID, l.turn, n)
			renamed = true
		}
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

// count adds the tokens of a reply of m; without usage it estimates, so that a
// limit on tokens binds with any endpoint.
func (l *Loop) count(resp *model.Response, m Model) {
	l.replies++
	if u := resp.Usage; u != nil && u.Input != nil && u.Output != nil {
		l.reported++
		l.reducing.learn(u)
	}
	l.countFor(resp, m, l.reducing.bytes)
}

// countFor counts a reply of m to a request of so many bytes besides the system
// text. By now another model may be in use.
func (l *Loop) countFor(resp *model.Response, m Model, bytes int) {
	var price Price
	if m.Price != nil {
		price = *m.Price
	}
	tokens, cost, known := int64(0), 0.0, m.Price != nil
	if u := resp.Usage; u != nil && u.Input != nil && u.Output != nil {
		for _, n := range []*int64{u.Input, u.Output, u.CacheRead, u.CacheWrite} {
			if n != nil {
				tokens += *n
			}
		}
		cost = price.Of(u)
	} else {
		tokens = int64(len(l.system)+bytes+size(resp.Message)) / 4
		cost, known = float64(tokens)*price.Input/1e6, false
	}
	l.spending().spend(tokens, cost, known)
	if u := resp.Usage; u != nil {
		l.usage = l.usage.Plus(*u)
	}
}

// imageSize is what an image counts for: its tokens don't depend on its bytes.
const imageSize = 6000

func size(m *model.Message) int {
	n := 16
	for _, p := range m.Parts {
		switch {
		case p.Text != nil:
			n += len(*p.Text)
		case p.Reasoning != nil:
			n += len(*p.Reasoning)
		case p.ToolCall != nil:
			n += len(p.ToolCall.Name) + len(p.ToolCall.Args)
		case p.ToolResult != nil:
			n += len(p.ToolResult.Content) + len(p.ToolResult.Images)*imageSize
		case p.Image != nil:
			n += imageSize
		}
		if p.Seal != nil {
			n += len(p.Seal.Data)
		}
	}
	return n
}

// retry records the failed attempt and waits; an end means that no attempt
// follows.
func (l *Loop) retry(ctx context.Context, err error, a Attempt, took time.Duration) *end {
	p := &event.ModelFailed{Turn: l.turn, Attempt: a.Number, Kind: "internal", Detail: err.Error(), Final: true}
	final := &end{ReasonError, err.Error()}
	wait := time.Duration(0)
	var me *model.Error
	if errors.As(err, &me) {
		p.Kind, p.Status = string(me.Kind), me.Status
		if !l.hold { // else nobody has let it through
			p.Partial = me.Partial
		}
		wait = l.wait(me, a.Number)
		switch {
		case !me.Retryable():
		case a.Number >= l.o.Retry.Attempts:
			reason := ReasonRetryExhausted
			if me.Kind == model.ErrStalled {
				reason = ReasonStalled
			}
			final = &end{reason, fmt.Sprintf("%d attempts failed; the last: %s", a.Number, me)}
		case wait > l.o.Retry.Cap:
			final = &end{ReasonRetryExhausted, fmt.Sprintf("the endpoint asks to wait %s, longer than the limit of %s: %s", wait, l.o.Retry.Cap, me)}
		default:
			p.Final, p.RetryMS = false, wait.Milliseconds()
		}
	}
	if _, aerr := l.o.Log.Append(system(p)); aerr != nil {
		return recordFailed(aerr)
	}
	l.tell(ctx, ahp.ModelErrorEvent, func() Moment {
		return &ModelError{Attempt: a, Err: err, Latency: took, Retry: wait, Final: p.Final}
	})
	if p.Final {
		return final
	}
	if l.o.Sleep(ctx, wait) != nil {
		return interrupted(ctx)
	}
	return nil
}

// failedAttempt records an attempt after which there is no wait.
func (l *Loop) failedAttempt(ctx context.Context, me *model.Error, a Attempt, took time.Duration, final bool) *end {
	p := &event.ModelFailed{Turn: l.turn, Attempt: a.Number, Kind: string(me.Kind), Status: me.Status, Detail: me.Error(), Final: final}
	if _, err := l.o.Log.Append(system(p)); err != nil {
		return recordFailed(err)
	}
	l.tell(ctx, ahp.ModelErrorEvent, func() Moment { return &ModelError{Attempt: a, Err: me, Latency: took, Final: final} })
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
