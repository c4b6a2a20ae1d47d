package app

import (
	"context"
	"fmt"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/agent"
	"github.com/abhed/abhed/internal/control"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/policy"
)

// byUser names in the record who changed something of the session.
const byUser = "user"

// Compact makes the conversation smaller (see control.Tuner).
func (c *conversation) Compact(ctx context.Context) (control.Compacted, error) {
	leave, fault := c.take()
	if fault != nil {
		return control.Compacted{}, fault
	}
	defer leave()
	ctx, free := c.e.abortable(ctx)
	defer free()
	before, after, detail := c.e.main.loop.Compact(ctx)
	c.e.catchUp()
	if ctx.Err() != nil {
		return control.Compacted{}, &control.Error{Code: control.CodeFailed, Msg: "the compaction was ended: " + context.Cause(ctx).Error()}
	}
	return control.Compacted{Done: after < before, Detail: detail, Before: before, After: after}, nil
}

// catchUp returns when the sink has heard everything that is on disk by now.
func (e *engine) catchUp() {
	if err := e.log.Sign(); err == nil {
		e.ear.wait(e.log.Head().Seq)
	}
}

// SetModel changes the model of the main agent and of sub-agents to come (see
// control.Tuner).
func (c *conversation) SetModel(ctx context.Context, name string) error {
	if err := c.open(); err != nil {
		return err
	}
	e := c.e
	next, err := e.connect(name, "")
	if err != nil {
		return &control.Error{Code: control.CodeConfig, Msg: err.Error()}
	}
	e.tuning.Lock()
	defer e.tuning.Unlock()
	from, to := e.main.loop.Model().Client.Name(), next.Client.Name()
	if from == to {
		return nil
	}
	const reason = "the user asked for it"
	if err := e.mayTune(ctx, ahp.ModelSwitchBefore, &agent.ModelSwitchBefore{Current: from, Proposed: to, Reason: reason, Price: next.Price}); err != nil {
		return err
	}
	if _, err := e.log.AppendDurable(system(&event.ModelSwitched{From: from, To: to, By: byUser})); err != nil {
		return &control.Error{Code: control.CodeFailed, Msg: err.Error()}
	}
	e.main.loop.SetModel(next)
	e.main.gate.SetModel(to)
	e.tuned(ctx, &agent.ModelSwitch{Previous: from, Current: to, Reason: reason})
	return nil
}

// SetMode changes the permission mode of all agents (see control.Tuner).
func (c *conversation) SetMode(ctx context.Context, mode string) error {
	if err := c.open(); err != nil {
		return err
	}
	e := c.e
	m, err := policy.ParseMode(mode)
	switch {
	case err != nil:
		return &control.Error{Code: control.CodeUsage, Msg: err.Error()}
	case m > c.first:
		return &control.Error{Code: control.CodeUsage, Msg: fmt.Sprintf("the session was started with mode %s; %s is less strict, and a mode can only become stricter", c.first, m)}
	}
	e.tuning.Lock()
	defer e.tuning.Unlock()
	from := e.mode()
	if from == m {
		return nil
	}
	if err := e.mayTune(ctx, ahp.ConfigChangeBefore, &agent.ModeChangeBefore{From: from.String(), To: m.String()}); err != nil {
		return err
	}
	if _, err := e.log.AppendDurable(system(&event.ModeChanged{From: from.String(), To: m.String(), By: byUser})); err != nil {
		return &control.Error{Code: control.CodeFailed, Msg: err.Error()}
	}
	if err := e.setMode(m); err != nil {
		return &control.Error{Code: control.CodeFailed, Msg: err.Error()}
	}
	e.tuned(ctx, &agent.ModeChange{From: from.String(), To: m.String()})
	return nil
}

// open reports an error if the session has ended.
func (c *conversation) open() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return &control.Error{Code: control.CodeClosed, Msg: "the session has ended"}
	}
	return nil
}

// mayTune asks the backends about a change of the session.
func (e *engine) mayTune(ctx context.Context, t ahp.EventType, m agent.Moment) error {
	if e.backends == nil || !e.main.gate.Wants(t, ahp.ModeIntercept) && !e.main.gate.Wants(t, ahp.ModeObserve) {
		return nil
	}
	say := e.main.gate.Ask(ctx, agent.At{}, m)
	switch r := say.Refusal; {
	case r == nil && say.Stop != "": // no change, and nothing more of what runs
		e.stop(&agent.Interrupted{Reason: agent.ReasonStopped, Detail: say.Stop})
		return &control.Error{Code: control.CodeUsage, Msg: "the change was stopped by " + say.Stop}
	case r == nil:
		return nil
	case r.Err != nil:
		return &control.Error{Code: control.CodeFailed, Msg: "the record can't be written: " + r.Err.Error()}
	case r.Interrupted:
		return &control.Error{Code: control.CodeFailed, Msg: "who was asked ended while it was asked: " + r.Reason}
	default:
		return &control.Error{Code: control.CodeUsage, Msg: "the change was refused by " + r.By + ": " + r.Reason}
	}
}

// tuned tells the backends of a change that was made.
func (e *engine) tuned(ctx context.Context, m agent.Moment) {
	if e.backends != nil {
		e.main.gate.Tell(ctx, agent.At{}, m)
	}
}

// CancelTask ends a background command or a sub-agent (see control.Tuner).
func (c *conversation) CancelTask(id string) error {
	e := c.e
	e.mu.Lock()
	for _, a := range e.agents {
		if a.task.ID != id {
			continue
		}
		defer e.mu.Unlock()
		if a.cancel == nil {
			return &control.Error{Code: control.CodeNotFound, Msg: fmt.Sprintf("the sub-agent %s has ended already: %s", id, a.task.State)}
		}
		a.cancel(&agent.Interrupted{Reason: agent.ReasonUserInterrupt})
		return nil
	}
	e.mu.Unlock()
	for _, j := range e.jobs.List() {
		if j.ID == id && !j.Running() {
			return &control.Error{Code: control.CodeNotFound, Msg: fmt.Sprintf("the background command %s has ended already: %s", id, j.Exit)}
		}
	}
	if err := e.jobs.Kill(id); err != nil {
		return &control.Error{Code: control.CodeNotFound, Msg: err.Error()}
	}
	return nil
}

// Note puts a line into the record (see control.Tuner).
func (c *conversation) Note(level, text string) error {
	if level != "info" && level != "warning" {
		return &control.Error{Code: control.CodeUsage, Msg: fmt.Sprintf("the level %q is unknown; expected info or warning", level)}
	}
	if _, err := c.e.log.Append(system(&event.Notice{Level: level, Text: text})); err != nil {
		return &control.Error{Code: control.CodeFailed, Msg: err.Error()}
	}
	return nil
}
