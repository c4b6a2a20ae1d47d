package agent

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/control"
	"github.com/abhed/abhed/internal/model"
)

const (
	// progressEvery is the least time between two observations of one stream.
	progressEvery = 250 * time.Millisecond
	// maxProgress bounds the text of one observation, in bytes.
	maxProgress = 64 << 10
)

// gather joins pieces of text and passes them on: the first at once, then no more
// often than progressEvery, and what is left at the end. It starts nothing.
type gather struct {
	now  func() time.Time
	send func(text string, final bool)

	mu   sync.Mutex
	text []byte
	left int // bytes that didn't fit
	last time.Time
}

// add takes a piece.
func (g *gather) add(piece string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := min(len(piece), maxProgress-len(g.text))
	g.text = append(g.text, piece[:n]...)
	g.left += len(piece) - n
	if now := g.now(); now.Sub(g.last) >= progressEvery {
		g.last = now
		g.flush(false)
	}
}

// end sends what is left; with final even if that is nothing.
func (g *gather) end(final bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if final || len(g.text) > 0 {
		g.flush(final)
	}
}

func (g *gather) flush(final bool) {
	text := string(g.text)
	if g.left > 0 {
		text += fmt.Sprintf("\n[%d bytes are left out here]\n", g.left)
	}
	g.text, g.left = g.text[:0], 0
	g.send(text, final)
}

// listen returns what hears the pieces of a reply, and what to call at its end.
func (l *Loop) listen(ctx context.Context) (onDelta func(model.Delta), done func(ok bool)) {
	if !l.observed(ahp.TurnProgress) {
		return l.onDelta, func(bool) {}
	}
	item, at := ItemID(len(l.messages), nil), l.at()
	stream := func(reasoning bool) *gather {
		return &gather{now: l.o.Now, send: func(text string, final bool) {
			l.o.Hooks.Tell(ctx, at, &TurnProgress{Item: item, Text: text, Reasoning: reasoning, Final: final})
		}}
	}
	text, reasoning := stream(false), stream(true)
	onDelta = func(d model.Delta) {
		switch {
		case d.Reasoning != "":
			reasoning.add(d.Reasoning)
		case d.Text != "":
			reasoning.end(false) // in the model's order
			text.add(d.Text)
		}
		l.onDelta(d)
	}
	return onDelta, func(ok bool) {
		reasoning.end(false)
		text.end(ok)
	}
}

func (l *Loop) onDelta(d model.Delta) {
	switch {
	case l.o.OnDelta == nil || l.hold:
	case d.Text != "":
		l.o.OnDelta(control.Delta{Kind: "text", Text: d.Text})
	case d.Reasoning != "":
		l.o.OnDelta(control.Delta{Kind: "reasoning", Text: d.Reasoning})
	}
}

// watch returns what hears the output of a running call, nil if nobody does, and
// what to call at its end.
func (l *Loop) watch(ctx context.Context, s *slot, r *Run) (output func(string), done func()) {
	var show func(string)
	if l.o.OnDelta != nil && !l.o.HoldOutput {
		id := s.call.ID
		show = func(text string) { l.o.OnDelta(control.Delta{Kind: "output", CallID: id, Text: text}) }
	}
	if !l.observed(ahp.ToolProgress) {
		return show, func() {}
	}
	at := l.at()
	g := &gather{now: l.o.Now, send: func(text string, _ bool) {
		l.o.Hooks.Tell(ctx, at, &ToolProgress{Call: r.Call, Batch: s.batch, Text: text})
	}}
	add := g.add
	if show != nil {
		add = func(text string) { show(text); g.add(text) }
	}
	return add, func() { g.end(false) }
}
