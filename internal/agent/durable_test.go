package agent_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/abhed/abhed/internal/agent"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/tool"
)

// diskLog is a log that knows what of it is on disk: everything up to the last
// durable event, or the last signature.
type diskLog struct {
	*memLog
	onDisk int
}

func (l *diskLog) AppendDurable(d event.Draft) (event.Event, error) {
	e, err := l.Append(d)
	if err == nil {
		l.sync()
	}
	return e, err
}

func (l *diskLog) Sign() error {
	l.sync()
	return l.memLog.Sign()
}

func (l *diskLog) sync() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.onDisk = len(l.events)
}

// need fails the test unless an event that is the cause of what happens now is on
// disk.
func (l *diskLog) need(t *testing.T, what string, cause func(event.Payload) bool) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, d := range l.events {
		if cause(d.Payload) {
			if i >= l.onDisk {
				t.Errorf("%s before its cause, event %d of %d, was on disk; %d are", what, i+1, len(l.events), l.onDisk)
			}
			return
		}
	}
	t.Errorf("%s without a cause in the record", what)
}

func saidTo(text string) func(event.Payload) bool {
	return func(p event.Payload) bool { m, ok := p.(*event.UserMessage); return ok && m.Text == text }
}

// diskModel checks that what a request says is on disk before it is sent.
type diskModel struct {
	*fakeModel
	t   *testing.T
	log *diskLog
}

func (m *diskModel) Stream(ctx context.Context, req *model.Request, onDelta func(model.Delta)) (*model.Response, error) {
	for _, msg := range req.Messages {
		if msg.Role == event.RoleUser {
			m.log.need(m.t, fmt.Sprintf("the model was sent %q", msg.Text()), saidTo(msg.Text()))
		}
		for _, p := range msg.Parts {
			if p.ToolResult != nil {
				m.log.need(m.t, "the model read a result", func(ev event.Payload) bool {
					e, ok := ev.(*event.ToolEnded)
					return ok && e.CallID == p.ToolResult.CallID
				})
			}
		}
	}
	return m.fakeModel.Stream(ctx, req, onDelta)
}

// TestCausesAreOnDiskBeforeTheirEffects runs a session whose model, gate and tool
// each check that what they act on can't be lost any more.
func TestCausesAreOnDiskBeforeTheirEffects(t *testing.T) {
	for _, tt := range []struct {
		name   string // one runs beside others, one alone
		others bool   // extensions hear of a reply as soon as a call of it is judged
	}{{"read", false}, {"write", false}, {"read", true}} {
		name := tt.name
		log := &diskLog{}
		ran := 0
		run := func(_ context.Context, g tool.Grant) tool.Result {
			ran++
			log.need(t, name+" ran", func(p event.Payload) bool {
				s, ok := p.(*event.ToolStarted)
				return ok && s.CallID == g.Call().ID
			})
			log.need(t, name+" ran", func(p event.Payload) bool {
				r, ok := p.(*event.ModelResponded)
				return ok && len(r.Message.ToolCalls()) == 1
			})
			return tool.OK("did it")
		}
		cut := says("half")
		cut.Finish = model.FinishLength
		b := setup(t, run, cut, calls(name, "{}"), says("done"))
		log.memLog = b.log
		b.opts.Log, b.opts.Model.Client = log, &diskModel{b.model, t, log}
		if tt.others {
			b.opts.Extensions = &fakeExtensions{}
		}
		judged := 0
		b.gate.rule = func(p agent.Proposal) agent.Ruling {
			judged++
			if tt.others {
				log.need(t, "the gate judged a call", func(ev event.Payload) bool {
					r, ok := ev.(*event.ModelResponded)
					return ok && r.Turn == p.Turn
				})
			}
			return nil
		}
		want(t, agent.New(b.opts).Run(t.Context(), agent.Prompt{Text: "go", Given: []string{"given by a backend"}}), agent.ReasonCompleted)
		if ran != 1 || judged != 1 || len(b.model.asked) != 3 {
			t.Errorf("%d calls judged, %d run, %d requests: not everything was checked", judged, ran, len(b.model.asked))
		}
		if n := len(b.model.asked[1].Messages); n != 4 {
			t.Errorf("the second request has %d messages, expected what was given, the prompt, the half reply and the hint", n)
		}
	}
}

// TestTheLastReplyIsOnDiskWhenTheRunEnds holds it for a reply that nothing follows.
func TestTheLastReplyIsOnDiskWhenTheRunEnds(t *testing.T) {
	b := setup(t, nil, says("done"))
	log := &diskLog{memLog: b.log}
	b.opts.Log = log
	want(t, b.run(t.Context()), agent.ReasonCompleted)
	log.need(t, "the run ended", func(p event.Payload) bool { _, ok := p.(*event.ModelResponded); return ok })
}
