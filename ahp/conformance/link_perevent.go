package conformance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/abhed/abhed/internal/proc"
)

// perEventLink starts the peer's command once per message.
type perEventLink struct {
	env *backendEnv
	p   *probe
	// strays are the lines after a notification that are no messages.
	strays [][]byte
}

// exchange is one process from its start to its end.
type exchange struct {
	lines [][]byte
	exit  *proc.Exit // nil if the process didn't end
	said  string
}

var errManyLines = fmt.Errorf("more than %d lines for one message", maxStrays)

// run starts the process for one message; answered tells that an answer is to come.
func (l *perEventLink) run(ctx context.Context, m message, answered bool) (*exchange, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	n := l.p.connection()
	child, err := l.env.start(l.p, n)
	if err != nil {
		return nil, err
	}
	defer child.Kill()
	outer := ctx
	ctx, cancel := context.WithTimeout(ctx, l.env.patience(answered))
	defer cancel()
	l.p.record(n, ToPeer, m.raw)
	written := make(chan error, 1)
	go func() {
		err := child.Write(ctx, append(m.raw[:len(m.raw):len(m.raw)], '\n'))
		child.CloseInput()
		written <- err
	}()
	out := &exchange{}
	lines := lineReader{child: child}
	for err == nil {
		var line []byte
		if line, err = lines.next(ctx); err == nil {
			l.p.record(n, FromPeer, line)
			if out.lines = append(out.lines, line); len(out.lines) > maxStrays {
				err = errManyLines
			}
			if l.env.seenHanging() { // the answer is there: the end won't come
				time.AfterFunc(drainTime/10, cancel)
			}
		}
	}
	cancel()
	<-written
	switch {
	case errors.Is(err, io.EOF):
		out.exit = l.env.awaitExit(outer, l.p, n, child)
	case errors.Is(err, context.DeadlineExceeded), len(out.lines) > 0 && errors.Is(err, context.Canceled) && outer.Err() == nil:
		l.p.happened(n, "process still runs")
	case errors.Is(err, errLongLine), errors.Is(err, errManyLines):
		return nil, l.p.failf("%v", err)
	default:
		return nil, fmt.Errorf("reading the peer's output: %w", err)
	}
	if out.exit == nil {
		l.env.impatient()
	}
	out.said = said(child)
	return out, nil
}

func (l *perEventLink) ask(ctx context.Context, m message) (*answer, error) {
	x, err := l.run(ctx, m, true)
	if err != nil {
		return nil, err
	}
	a := &answer{exit: x.exit}
	for _, line := range x.lines {
		if a.raw == nil && (peek(line).answers() || looksLikeAnswer(line)) {
			a.raw = line
		} else {
			a.extra = append(a.extra, line)
		}
	}
	switch {
	case a.raw != nil:
		return a, nil
	case a.exit != nil:
		return nil, l.p.failf("the process ended (%s) without an answer%s", a.exit, x.said)
	}
	return nil, l.p.failf("the process neither answered nor ended")
}

func (l *perEventLink) tell(ctx context.Context, m message) ([][]byte, error) {
	x, err := l.run(ctx, m, false)
	if err != nil {
		return nil, err
	}
	var came [][]byte
	for _, line := range x.lines {
		if peek(line).answers() || looksLikeAnswer(line) {
			came = append(came, line)
		} else {
			l.strays = append(l.strays, line)
		}
	}
	return came, nil
}

func (*perEventLink) drain(context.Context) [][]byte { return nil }
