package agent

import (
	"context"
	"errors"
	"sync"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/tool"
)

const (
	// maxSteering is how many texts may wait, and maxSteeringBytes how long they may be
	// together.
	maxSteering      = 256
	maxSteeringBytes = 4 << 20
)

// Steer hands text to the run that is going on, whose next model call has it, and
// reports true. Where nothing runs the next run begins with it.
func (l *Loop) Steer(text string) (running bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(text)
	for _, s := range l.steering {
		n += len(s)
	}
	if len(l.steering) >= maxSteering || n > maxSteeringBytes {
		return l.running, errors.New("too much is waiting to be delivered already; wait for the next model call")
	}
	l.steering = append(l.steering, text)
	return l.running, nil
}

// goesOn reports whether a person has said something that the model doesn't have
// yet. If not the run accepts nothing more: the next one begins with it.
func (l *Loop) goesOn() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running = len(l.steering) > 0
	return l.running
}

// deliver says what a person has said meanwhile, if nobody refuses it.
func (l *Loop) deliver(ctx context.Context) *end {
	l.mu.Lock()
	texts := l.steering
	l.steering = nil
	l.mu.Unlock()
	for i, text := range texts {
		e := l.deliverOne(ctx, tool.Clean(text))
		if e != nil {
			l.mu.Lock() // neither it nor what comes after it is lost
			l.steering = append(texts[i:len(texts):len(texts)], l.steering...)
			l.mu.Unlock()
			return e
		}
	}
	return nil
}

func (l *Loop) deliverOne(ctx context.Context, text string) *end {
	text, by, r, e := l.admit(ctx, text)
	if e != nil {
		return e
	}
	if r != nil {
		note := &event.Notice{Level: "warning", Text: "what was said during the run was refused by " + r.By + ": " + r.Reason}
		if _, err := l.o.Log.Append(system(note)); err != nil {
			return recordFailed(err)
		}
		return nil
	}
	trust := event.TrustOperator
	if len(by) > 0 {
		trust = event.TrustUntrusted
	}
	return l.enter(event.Draft{Actor: event.ActorUser, Trust: trust}, event.UserMessage{Text: text, RewrittenBy: by, Steered: true})
}

// admit asks extensions, then backends, about what a person says. r is a refusal, e
// an end of the run.
func (l *Loop) admit(ctx context.Context, text string) (effective string, by []string, r *Refusal, e *end) {
	if l.o.Extensions != nil {
		if r := l.o.Extensions.Submit(ctx, l.at(), text); r != nil {
			if r.Err != nil || r.Interrupted {
				return "", nil, nil, l.refusal(ctx, ReasonError, "", r)
			}
			return "", nil, r, nil
		}
	}
	if !l.hooked(ahp.UserMessageInbound) {
		return text, nil, nil, nil
	}
	say, e := l.consult(ctx, &Inbound{Item: ItemID(len(l.messages), nil), Text: text})
	if e != nil || say.Refusal != nil {
		if say != nil {
			r = say.Refusal
		}
		return "", nil, r, e
	}
	return say.Text, say.By, nil, nil
}

// refusal is the end that a refusal makes, or a failure to record or to wait for it.
func (l *Loop) refusal(ctx context.Context, reason Reason, what string, r *Refusal) *end {
	switch {
	case r.Err != nil:
		return recordFailed(r.Err)
	case r.Interrupted && ctx.Err() != nil:
		return interrupted(ctx)
	case r.Interrupted:
		return &end{ReasonError, "who was asked ended while it was asked"}
	}
	return refused(reason, what, r)
}

// IDs holds the ids of the calls of a session, so that none is there twice. The
// zero IDs is ready; it is safe for concurrent use.
type IDs struct {
	mu    sync.Mutex
	taken map[string]bool
}

// take reports whether id was free, and takes it.
func (i *IDs) take(id string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if id == "" || i.taken[id] {
		return false
	}
	if i.taken == nil {
		i.taken = map[string]bool{}
	}
	i.taken[id] = true
	return true
}
