package rpcmode

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/abhed/abhed/internal/control"
	"github.com/abhed/abhed/internal/run"
)

// item is a line, or why there is none.
type item struct {
	line line
	err  error
}

// read passes lines on until there are no more, or nobody wants them. It may stay
// in a Read for as long as that takes.
func (s *server) read(lines *lineReader, items chan<- item) {
	for {
		var i item
		if err := run.Protect(func() (err error) { i.line, err = lines.next(); return err }); err != nil {
			i.err = err
		}
		select {
		case items <- i:
		case <-s.over:
			return
		}
		if i.err != nil {
			return
		}
	}
}

// dispatch answers lines until the service ends.
func (s *server) dispatch(items <-chan item) {
	for {
		select {
		case <-s.over:
			return
		case i := <-items:
			switch {
			case errors.Is(i.err, io.EOF):
				s.end(ending{})
			case i.err != nil:
				s.end(ending{code: 1, err: fmt.Errorf("the requests can't be read: %w", i.err)})
			default:
				s.handle(i.line)
			}
		}
	}
}

// handle answers one line, or has it answered.
func (s *server) handle(l line) {
	r, fault := parse(l)
	if fault == nil {
		if r.method == "" {
			return
		}
		fault = s.take(&r)
		r.text, r.names = nil, nil // a job that waits or runs needs neither
	}
	if fault != nil {
		s.out.atOnce(encodeError(r.id, fault))
	}
}

func (s *server) take(r *request) *control.Error {
	for _, m := range s.methods {
		if m.name == r.method {
			return m.take(s, r)
		}
	}
	return usagef("%s (at /method)", unknown("method", r.method, methodNames(s.methods)))
}

// side has work done by the lane of what doesn't wait for a prompt.
func (s *server) side(r *request, work func(context.Context)) *control.Error {
	done := s.sides.add(s.base, &job{work: work, size: int64(len(r.text))})
	if done == nil {
		return &control.Error{Code: control.CodeBusy, Msg: fmt.Sprintf("%s: %d requests wait already, or %d bytes of them", r.method, maxQueued, maxWaiting)}
	}
	s.sided = done
	return nil
}

// run has work done in the lane of prompts, once all that was asked for before it is
// done.
func (s *server) run(r *request, work func(context.Context)) *control.Error {
	if s.runs.add(s.base, &job{work: work, after: s.sided, size: int64(len(r.text))}) == nil {
		return &control.Error{Code: control.CodeBusy, Msg: fmt.Sprintf("%s: %d prompts wait already, or %d bytes of them", r.method, maxQueued, maxWaiting)}
	}
	return nil
}

// onSession has the session asked for something that can be answered at once.
func (s *server) onSession(r *request, ask func(context.Context, control.Session) []byte) *control.Error {
	return s.side(r, func(ctx context.Context) {
		o, fault := s.current()
		if fault != nil {
			s.out.inOrder(encodeError(r.id, fault))
			return
		}
		s.out.inOrder(ask(ctx, o.session))
	})
}
