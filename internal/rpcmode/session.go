package rpcmode

import (
	"bytes"
	"context"
	"errors"
	"strings"

	"github.com/abhed/abhed/internal/control"
)

// opened is the session that is open.
type opened struct {
	session control.Session
	sink    *sink
	// asked is what it was started with, and model the one that this gave it.
	asked startParams
	model string
}

// asError returns what the engine reported with its code.
func asError(err error) *control.Error {
	var e *control.Error
	if errors.As(err, &e) {
		return e
	}
	return &control.Error{Code: control.CodeFailed, Msg: err.Error()}
}

// current returns the session, or why there is none.
func (s *server) current() (*opened, *control.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.open != nil:
		return s.open, nil
	case s.failed != nil:
		return nil, &control.Error{Code: s.failed.Code, Msg: "no session is open, the last start failed: " + s.failed.Msg}
	}
	return nil, usagef("no session is open: send start first")
}

// start opens a session.
func (s *server) start(ctx context.Context, id []byte, p startParams) {
	if o, _ := s.current(); o != nil {
		s.out.inOrder(encodeError(id, usagef("the session %s is open already: fork it, or run another abhed rpc", o.session.Info().SessionID)))
		return
	}
	o, fault := s.launch(ctx, p)
	s.mu.Lock()
	s.open, s.failed = o, fault
	s.mu.Unlock()
	if fault != nil {
		s.out.inOrder(encodeError(id, fault))
		return
	}
	s.out.inOrder(ready(id, o.session, nil))
}

// launch has the engine open a session.
func (s *server) launch(ctx context.Context, p startParams) (*opened, *control.Error) {
	if ctx.Err() != nil {
		return nil, &control.Error{Code: control.CodeClosed, Msg: "the session was not started: " + context.Cause(ctx).Error()}
	}
	o := &opened{asked: p, sink: &sink{out: s.out, slow: &s.slow, deltas: p.Deltas}}
	start := control.Start{
		Workspace: p.Workspace, Mode: p.Mode, Model: p.Model, Allow: p.Allow, Ask: p.Ask, Deny: p.Deny, Resume: p.Resume, Sink: o.sink,
	}
	if p.ForkAt != nil {
		start.ForkAt = *p.ForkAt
	}
	if p.Approve == "client" {
		o.sink.desk = s.desk
		start.Approver, start.Asker = s.desk, s.desk
	}
	session, err := s.engine.Start(ctx, start)
	if err != nil {
		return nil, asError(err)
	}
	o.session, o.model = session, session.Info().Model
	return o, nil
}

// ready describes the session to the client.
func ready(id []byte, session control.Session, c *control.Compacted) []byte {
	return encode("ready", id, readyBody{Info: clean(session.Info()), Protocol: protocol, Compacted: c})
}

// prompt runs one prompt to its end.
func (s *server) prompt(ctx context.Context, id []byte, p control.Prompt) {
	o, fault := s.current()
	if fault != nil {
		s.out.inOrder(encodeError(id, fault))
		return
	}
	answer := unstarted(ctx)
	if answer == nil {
		a := o.session.Prompt(ctx, p)
		answer = &a
	}
	s.desk.settleDown()
	s.slow.note(o.session, s.out.maxLines)
	s.out.inOrder(encodeAnswer(id, *answer))
}

// unstarted is the answer to a prompt that was interrupted before it began.
func unstarted(ctx context.Context) *control.Answer {
	if ctx.Err() == nil {
		return nil
	}
	reason := "shutdown"
	var i *control.Interrupted
	if errors.As(context.Cause(ctx), &i) {
		reason = i.Reason
	}
	return &control.Answer{Reason: reason, Detail: "the prompt was ended before it began"}
}

// interruption returns e with the code of what ended ctx, if something did.
func interruption(ctx context.Context, e *control.Error) *control.Error {
	if a := unstarted(ctx); a != nil {
		return &control.Error{Code: codeOf(a.Reason), Msg: e.Msg}
	}
	return e
}

type forkParams struct {
	At *int64 `json:"at"`
}

func (s *server) takeFork(r *request) *control.Error {
	p, fault := params[forkParams](r)
	switch {
	case fault != nil:
		return fault
	case p.At != nil && *p.At < 1:
		return usagef("fork: found %d, expected the number of an event, from 1 (at /at)", *p.At)
	case !s.runs.idle():
		return &control.Error{Code: control.CodeBusy, Msg: "fork: a prompt runs or waits; interrupt it, or wait for its reply"}
	}
	return s.side(r, func(ctx context.Context) { s.fork(ctx, r.id, p.At) })
}

// fork goes on with a new session, which has what the old one was up to an event, and
// the model and the mode that it has now.
func (s *server) fork(ctx context.Context, id []byte, at *int64) {
	old, fault := s.current()
	if fault != nil {
		s.out.inOrder(encodeError(id, fault))
		return
	}
	p, was := old.asked, old.session.Info()
	p.Resume, p.ForkAt = was.SessionID, at
	if was.Model != old.model {
		p.Model = was.Model
	}
	if at == nil {
		last := old.sink.seq.Load()
		p.ForkAt = &last
	}
	o, fault := s.launch(ctx, p)
	if fault == nil {
		fault = o.narrow(ctx, was.Mode)
	}
	if fault != nil {
		s.out.inOrder(encodeError(id, fault))
		return
	}
	s.mu.Lock()
	s.open = o
	s.mu.Unlock()
	if err := old.session.Close(); err != nil {
		_ = o.session.Tune().Note("warning", strings.ToValidUTF8("the session that this one was forked from did not end well: "+err.Error(), "\uFFFD"))
	}
	s.out.inOrder(ready(id, o.session, nil))
}

// narrow gives a session that was just started a mode. It may be widened again to the
// one that it was started with. If it can't have the mode it is closed.
func (o *opened) narrow(ctx context.Context, mode string) *control.Error {
	if o.session.Info().Mode == mode {
		return nil
	}
	err := o.session.Tune().SetMode(ctx, mode)
	if err == nil {
		return nil
	}
	_ = o.session.Close() // nothing happened in it
	fault := asError(err)
	return &control.Error{Code: fault.Code, Msg: "fork: the new session can't have the mode " + mode + ": " + fault.Msg}
}

func (s *server) takeCompact(r *request) *control.Error {
	if _, fault := params[noParams](r); fault != nil {
		return fault
	}
	return s.run(r, func(ctx context.Context) {
		o, fault := s.current()
		if fault != nil {
			s.out.inOrder(encodeError(r.id, fault))
			return
		}
		c, err := o.session.Tune().Compact(ctx)
		s.slow.note(o.session, s.out.maxLines)
		if err != nil {
			s.out.inOrder(encodeError(r.id, interruption(ctx, asError(err))))
			return
		}
		c.Detail = strings.ToValidUTF8(c.Detail, "\uFFFD")
		s.out.inOrder(ready(r.id, o.session, &c))
	})
}

func (s *server) takeSetModel(r *request) *control.Error {
	p, fault := params[struct {
		Model string `json:"model"`
	}](r)
	if fault != nil {
		return fault
	}
	if p.Model == "" {
		return usagef("set_model: there is no model (at /model)")
	}
	return s.tune(r, func(ctx context.Context, t control.Tuner) error { return t.SetModel(ctx, p.Model) })
}

func (s *server) takeSetMode(r *request) *control.Error {
	p, fault := params[struct {
		Mode string `json:"mode"`
	}](r)
	if fault != nil {
		return fault
	}
	if p.Mode == "" {
		return usagef("set_mode: there is no mode (at /mode)")
	}
	return s.tune(r, func(ctx context.Context, t control.Tuner) error { return t.SetMode(ctx, p.Mode) })
}

// tune changes the session, at once, and answers with what it is then.
func (s *server) tune(r *request, change func(context.Context, control.Tuner) error) *control.Error {
	return s.side(r, func(ctx context.Context) {
		o, fault := s.current()
		if fault == nil {
			if err := change(ctx, o.session.Tune()); err != nil {
				fault = asError(err)
			}
		}
		if fault != nil {
			s.out.inOrder(encodeError(r.id, fault))
			return
		}
		s.out.inOrder(ready(r.id, o.session, nil))
	})
}

type cancelledBody struct {
	TaskID string `json:"task_id"`
}

func (s *server) takeCancelTask(r *request) *control.Error {
	p, fault := params[cancelledBody](r)
	if fault != nil {
		return fault
	}
	if p.TaskID == "" {
		return usagef("cancel_task: there is no task_id (at /task_id)")
	}
	return s.onSession(r, func(_ context.Context, session control.Session) []byte {
		if err := session.Tune().CancelTask(p.TaskID); err != nil {
			return encodeError(r.id, asError(err))
		}
		return encode("cancelled", r.id, p)
	})
}

// limited is a buffer that takes no more than maxWaiting bytes.
type limited struct{ bytes.Buffer }

var errTooLarge = errors.New("the export is larger than a line may be")

// Write appends p if there is room for it.
func (l *limited) Write(p []byte) (int, error) {
	if l.Len()+len(p) > maxWaiting {
		return 0, errTooLarge
	}
	return l.Buffer.Write(p)
}
