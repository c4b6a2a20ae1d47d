package app

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"

	"github.com/abhed/abhed/internal/agent"
	"github.com/abhed/abhed/internal/control"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/policy"
)

// conversation is a session as its surface has it.
type conversation struct {
	e *engine
	// first is the mode that the session was started with: none less strict may follow.
	first policy.Mode

	mu     sync.Mutex
	idle   chan struct{} // ends with what runs now, nil if nothing does
	closed bool
	ended  chan struct{} // ends when Close has done its work
	err    error         // what Close returned
	total  agent.Result  // the last run's end, with turns and usage of all
}

var (
	_ control.Session = (*conversation)(nil)
	_ control.Tuner   = (*conversation)(nil)
	_ control.Looker  = (*conversation)(nil)
)

func newConversation(e *engine) *conversation {
	return &conversation{e: e, first: e.mode(), ended: make(chan struct{}), total: agent.Result{Reason: agent.ReasonCompleted}}
}

// Tune returns what changes the session.
func (c *conversation) Tune() control.Tuner { return c }

// Look returns what tells about it.
func (c *conversation) Look() control.Looker { return c }

// take reserves the conversation for one run.
func (c *conversation) take() (leave func(), err *control.Error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return nil, &control.Error{Code: control.CodeClosed, Msg: "the session has ended"}
	case c.idle != nil:
		return nil, &control.Error{Code: control.CodeBusy, Msg: "another prompt runs; steer it, interrupt it, or wait for its end"}
	}
	idle := make(chan struct{})
	c.idle = idle
	return func() {
		c.mu.Lock()
		c.idle = nil
		c.mu.Unlock()
		close(idle)
	}, nil
}

// Prompt runs one prompt to its end (see control.Session).
func (c *conversation) Prompt(ctx context.Context, p control.Prompt) control.Answer {
	leave, fault := c.take()
	if fault != nil {
		return control.Answer{Err: fault}
	}
	defer leave()
	if m := c.e.main.loop.Model(); len(p.Images) > 0 && !m.Images {
		return control.Answer{Err: &control.Error{Code: control.CodeUsage, Msg: "the prompt has images, and " + m.Client.Name() + " isn't known to take any; if it does, say so in the settings: models, its name, \"images\": true"}}
	}
	res := c.e.run(ctx, agent.Prompt{Text: p.Text, Images: p.Images})
	c.mu.Lock()
	c.total.Reason, c.total.Detail = res.Reason, res.Detail
	c.total.Turns += res.Turns
	c.total.Usage = c.total.Usage.Plus(res.Usage)
	c.mu.Unlock()
	return control.Answer{
		Text: res.Text, Reason: string(res.Reason), Detail: res.Detail, Completed: res.Reason == agent.ReasonCompleted,
		Turns: res.Turns, Usage: res.Usage, CostUSD: res.CostUSD,
	}
}

// Steer hands text to the running prompt (see control.Session).
func (c *conversation) Steer(text string) (bool, error) {
	c.mu.Lock()
	closed := c.closed
	c.mu.Unlock()
	if closed {
		return false, &control.Error{Code: control.CodeClosed, Msg: "the session has ended"}
	}
	running, err := c.e.main.loop.Steer(text)
	if err != nil {
		return running, &control.Error{Code: control.CodeUsage, Msg: err.Error()}
	}
	return running, nil
}

// Interrupt ends the running prompt.
func (c *conversation) Interrupt() bool {
	return c.e.stop(&agent.Interrupted{Reason: agent.ReasonUserInterrupt})
}

// Close ends the session (see control.Session). Every call returns when it has ended.
func (c *conversation) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		<-c.ended
		return c.err
	}
	c.closed = true
	idle := c.idle
	c.mu.Unlock()
	defer close(c.ended)
	c.e.shut()
	if idle != nil {
		<-idle
	}
	c.mu.Lock()
	res := c.total
	c.mu.Unlock()
	if c.e.refused != nil {
		res.Reason, res.Detail = agent.ReasonError, refusedText(c.e.refused)
	}
	c.err = c.e.finish(res)
	return c.err
}

func refusedText(err error) string { return "the session was not started: " + err.Error() }

// startSession lets extensions and backends know, and keeps what they gave for the
// first prompt.
func (e *engine) startSession(ctx context.Context) {
	ctx, free := e.abortable(ctx)
	defer free()
	e.given, e.refused = e.sessionStarted(ctx)
}

// run runs one prompt of the main agent. Its end is in the record, and the sink has
// heard it.
func (e *engine) run(ctx context.Context, p agent.Prompt) agent.Result {
	if e.refused != nil {
		return agent.Result{Reason: agent.ReasonError, Detail: refusedText(e.refused)}
	}
	ctx, done := e.traced(ctx)
	defer done()
	ctx, free := e.abortable(ctx)
	defer free()
	p.Given, e.given = e.given, nil
	res := e.main.loop.Run(ctx, p)
	if e.o.asker != nil { // somebody is there who may have looked away
		e.main.gate.Tell(ctx, agent.At{}, &agent.Attention{Kind: "idle", Title: "abhed", Message: "the prompt has ended: " + string(res.Reason)})
	}
	ended := &event.RunEnded{Reason: string(res.Reason), Detail: res.Detail, Turns: res.Turns, Usage: &res.Usage}
	if res.CostUSD != nil {
		ended.CostUSD = strconv.AppendFloat(nil, *res.CostUSD, 'f', -1, 64)
	}
	last, err := e.log.AppendDurable(system(ended))
	if err != nil {
		if res.Reason != agent.ReasonError {
			res.Reason, res.Detail = agent.ReasonError, err.Error()
		}
		return res
	}
	if p, ok := last.Payload.(*event.RunEnded); ok { // as it is recorded, without secrets
		res.Detail = p.Detail
	}
	e.ear.wait(last.Seq)
	return res
}

// abortable returns a context that the engine can end, and what must be called when
// it is no longer used. The end of ctx ends it too.
func (e *engine) abortable(ctx context.Context) (context.Context, func()) {
	run, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	relay := func() { cancel(asInterrupted(context.Cause(ctx))) }
	if ctx.Err() != nil {
		relay()
	}
	unlink := context.AfterFunc(ctx, relay)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.abort = cancel
	if e.shutting {
		cancel(&agent.Interrupted{Reason: agent.ReasonShutdown})
	}
	return run, func() {
		unlink()
		e.mu.Lock()
		e.abort = nil
		e.mu.Unlock()
		cancel(nil)
	}
}

// asInterrupted words the cause of a surface for the loop.
func asInterrupted(cause error) error {
	var i *control.Interrupted
	if errors.As(cause, &i) {
		return &agent.Interrupted{Reason: agent.Reason(i.Reason)}
	}
	return cause
}

// stop ends what runs, and reports whether something did.
func (e *engine) stop(cause error) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.abort == nil {
		return false
	}
	e.abort(cause)
	return true
}

// shut ends what runs, and lets nothing more run.
func (e *engine) shut() {
	e.mu.Lock()
	e.shutting = true
	e.mu.Unlock()
	e.stop(&agent.Interrupted{Reason: agent.ReasonShutdown})
}

// finish tells everybody that the session has ended, records it, and ends
// everything.
func (e *engine) finish(res agent.Result) error {
	e.sessionEnded(context.Background(), res)
	ended := &event.SessionEnded{Reason: string(res.Reason), Detail: res.Detail, Turns: res.Turns, Usage: &res.Usage}
	_, err := e.log.AppendDurable(system(ended))
	return errors.Join(err, e.close())
}

// ear passes what happens on to the surface, one call at a time, and knows how far
// that has come. A nil ear hears nothing.
type ear struct {
	sink control.Sink

	mu   sync.Mutex
	seq  int64 // the newest event that the sink has heard
	news sync.Cond
}

func newEar(s control.Sink) *ear {
	r := &ear{sink: s}
	r.news.L = &r.mu
	return r
}

func (r *ear) event(ev event.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sink.Event(ev)
	r.seq = ev.Seq
	r.news.Broadcast()
}

func (r *ear) delta(d control.Delta) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sink.Delta(d)
}

// wait returns when the sink has heard the event seq, which is on disk.
func (r *ear) wait(seq int64) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.seq < seq {
		r.news.Wait()
	}
}

// meter adds up what the models of a session reported.
type meter struct {
	mu       sync.Mutex
	tokens   model.Usage
	cost     float64
	unpriced bool
	turns    int
	asked    map[string]string // the model that an agent asked last
}

// hear counts a reply, whichever agent it is for.
func (m *meter) hear(ev event.Event, price func(name string) *agent.Price) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch p := ev.Payload.(type) {
	case *event.ModelRequested:
		if m.asked == nil {
			m.asked = map[string]string{}
		}
		m.asked[p.AgentID] = p.Model
	case *event.ModelResponded:
		if p.Purpose == "" {
			m.turns++
		}
		rate := price(m.asked[p.AgentID])
		switch {
		case p.SuppliedBy != "": // no model was asked
		case p.Usage == nil || p.Usage.Input == nil || p.Usage.Output == nil || rate == nil:
			m.unpriced = true
		default:
			m.cost += rate.Of(p.Usage)
		}
		if p.Usage != nil {
			m.tokens = m.tokens.Plus(*p.Usage)
		}
	}
}

// Usage tells what the session has used (see control.Looker).
func (c *conversation) Usage() control.Usage {
	e := c.e
	m := &e.meter
	m.mu.Lock()
	u := control.Usage{Tokens: m.tokens.Plus(e.state.Usage), Turns: m.turns + e.state.Turns}
	if cost := m.cost; !m.unpriced && (e.resumed == nil || e.state.Turns == 0) {
		u.CostUSD = &cost
	}
	m.mu.Unlock()
	u.ContextTokens, u.ContextWindow = e.main.loop.ContextTokens(), e.main.loop.Model().Window
	return u
}

// Info describes the session (see control.Session).
func (c *conversation) Info() control.Info {
	e := c.e
	trusted := "untrusted"
	if e.o.loaded.trusted || e.o.loaded.held {
		trusted = "trusted"
	}
	info := control.Info{
		SessionID: e.log.ID(), Record: e.log.Path(), Workspace: e.o.loaded.workspace, Model: e.main.loop.Model().Client.Name(), Mode: e.mode().String(),
		Extensions: c.Extensions(), Servers: c.Servers(), Trust: trusted, Sandbox: e.plan.Tier().String(),
		NotProtected: e.plan.Gaps(), Network: e.network(), Memory: slices.Clone(e.memoryFiles),
	}
	for _, s := range e.main.specs() {
		info.Tools = append(info.Tools, s.Name)
	}
	return info
}
