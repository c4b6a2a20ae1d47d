package inspect

import (
	"context"
	"errors"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/harness"
	"github.com/abhed/abhed/ahp/transport"
)

type ctxKey int

const (
	entryKey ctxKey = iota // *Entry
	askKey                 // *Ask
	queryKey               // *ahp.Intercept, as it came
)

func entryOf(ctx context.Context) *Entry {
	e, _ := ctx.Value(entryKey).(*Entry)
	return e
}

// weigh returns how large the message is that ctx belongs to.
func weigh(ctx context.Context) int {
	if e := entryOf(ctx); e != nil {
		return e.Request.Bytes
	}
	return 0
}

func withRequest(ctx context.Context, q *ahp.Intercept) context.Context {
	return context.WithValue(ctx, queryKey, q)
}

// tap is told of every message that comes, before it is handled.
func (i *Inspector) tap(ctx context.Context, msg []byte) (context.Context, func(reply []byte, err error)) {
	began := time.Now()
	e := i.log.begin(began, msg)
	return context.WithValue(ctx, entryKey, e), func(reply []byte, err error) {
		i.log.update(e, func() { e.end(reply, err, time.Since(began)) })
	}
}

// asking is told by the harness whom it asks.
type asking struct{ log *journal }

func (a asking) Dispatch(ctx context.Context, _ *ahp.Event) (context.Context, func(*ahp.Outcome, error)) {
	return ctx, func(*ahp.Outcome, error) {}
}

func (a asking) Extensions(context.Context) ahp.Extensions { return nil }

func (a asking) Ask(ctx context.Context, _ *ahp.Event, by ahp.SubscriptionID) (context.Context, func(ahp.Answer)) {
	e := entryOf(ctx)
	if e == nil {
		return ctx, func(ahp.Answer) {}
	}
	ask := &Ask{Backend: by.Backend, Subscription: by.Index, Method: ahp.MethodIntercept, Decision: decisionPending, by: by}
	began := time.Now()
	a.log.update(e, func() { e.Asked = append(e.Asked, ask) })
	return context.WithValue(ctx, askKey, ask), func(got ahp.Answer) {
		took := time.Since(began)
		a.log.update(e, func() { ask.settle(&got, took) })
		a.log.measure(by.Backend, took, got.Failure != nil)
	}
}

// Delivered adds how an observation went, which its own exchange may not know: it
// may never have been sent.
func (a asking) Delivered(ctx context.Context, d harness.Delivery) {
	e := entryOf(ctx)
	if e == nil {
		return
	}
	ask := &Ask{Backend: d.By.Backend, Subscription: d.By.Index, Method: ahp.MethodObserve, Decision: decisionObserved, Milliseconds: float64(d.Milliseconds)}
	if d.Failure != nil {
		ask.Decision, ask.Failure = decisionFailed, failureOf(d.Failure)
	}
	a.log.update(e, func() {
		ask.Request, ask.Sent = e.sent(d.By.Backend)
		e.Asked = append(e.Asked, ask)
	})
}

// open connects to a backend behind.
func (i *Inspector) open(b *ahp.Backend) (transport.Transport, error) {
	t, err := i.opts.Open(b)
	if err != nil {
		return nil, err
	}
	l := &link{Transport: t, backend: b.ID, inspector: i}
	if j, ok := t.(interface{ Judged(valid bool) }); ok {
		return judgedLink{l, j}, nil
	}
	return l, nil
}

// link notes the messages of one backend.
type link struct {
	transport.Transport
	backend   string
	inspector *Inspector
}

// judgedLink is a link to a process that wants to know whether its lines are valid.
type judgedLink struct {
	*link
	judge interface{ Judged(valid bool) }
}

func (l judgedLink) Judged(valid bool) { l.judge.Judged(valid) }

// Ready reports why the credential can't be had, or nil.
func (l *link) Ready(ctx context.Context) error {
	if r, ok := l.Transport.(interface{ Ready(context.Context) error }); ok {
		return r.Ready(ctx)
	}
	return nil
}

func (l *link) Exchange(ctx context.Context, msg []byte) ([]byte, error) {
	e := entryOf(ctx)
	ask, _ := ctx.Value(askKey).(*Ask)
	if e == nil || ask == nil {
		return l.Transport.Exchange(ctx, msg)
	}
	if q, _ := ctx.Value(queryKey).(*ahp.Intercept); q != nil {
		msg = passOn(q, msg, l.inspector.full[ask.by])
	}
	l.inspector.log.update(e, func() { ask.Request, ask.Sent = capture(msg), ask.Sent+1 })
	reply, err := l.Transport.Exchange(ctx, msg)
	l.inspector.log.update(e, func() { ask.Reply = capture(reply) })
	return reply, err
}

// Notify keeps the message until Delivered tells whose it was.
func (l *link) Notify(ctx context.Context, msg []byte) error {
	if e := entryOf(ctx); e != nil {
		l.inspector.log.update(e, func() { e.waiting = append(e.waiting, pendingNote{l.backend, capture(msg)}) })
	}
	return l.Transport.Notify(ctx, msg)
}

// passOn adds to a request what stands beside the event of the one that came, and
// means nothing here: extensions, and members that aren't known. The latter may
// repeat content, so that only who sees all content gets them.
func passOn(came *ahp.Intercept, msg []byte, all bool) []byte {
	stateUnknown := came.State != nil && len(came.State.Unknown) > 0
	if len(came.Extensions) == 0 && len(came.Unknown) == 0 && !stateUnknown {
		return msg
	}
	r, err := ahp.DecodeRequest(msg)
	q, ok := r.(*ahp.Intercept)
	if err != nil || !ok {
		return msg
	}
	q.Extensions = came.Extensions
	if all {
		q.Unknown = came.Unknown
		if stateUnknown && q.State != nil {
			q.State.Unknown = came.State.Unknown
		}
	}
	if with, err := q.Encode(); err == nil {
		return with
	}
	return msg // they would make it too large
}

// settle notes what became of an answer.
func (a *Ask) settle(got *ahp.Answer, took time.Duration) {
	a.Milliseconds = milliseconds(took)
	switch {
	case got.Kind == ahp.AnswerInterrupted:
		a.Decision = decisionInterrupted
	case got.Failure != nil:
		a.Decision, a.Policy, a.Failure = decisionFailed, string(got.Policy), failureOf(got.Failure)
	case got.Kind == ahp.AnswerEffects:
		a.Decision, a.Effects = decisionOf(got.Effects), names(got.Effects)
	default:
		a.Decision, a.Failure = decisionFailed, &Failure{"bug", "the asking ended without an answer"}
	}
}

// reasonOf returns what to show of an error.
func reasonOf(err error) string {
	var bad *ahp.Error
	if errors.As(err, &bad) {
		return plain(bad.Error())
	}
	return plain(err.Error())
}
