package agent_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/abhed/abhed/internal/agent"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/tool"
)

// memLog keeps the record in memory; failAt makes the append of that number, from
// 1, and all later ones fail.
type memLog struct {
	mu     sync.Mutex
	events []event.Draft
	failAt int
	failed bool
	signed int
}

func (l *memLog) Append(d event.Draft) (event.Event, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failAt > 0 && len(l.events)+1 >= l.failAt {
		l.failed = true
		return event.Event{}, errors.New("disk full")
	}
	l.events = append(l.events, d)
	return event.Event{Seq: int64(len(l.events)), Payload: d.Payload}, nil
}

func (l *memLog) AppendDurable(d event.Draft) (event.Event, error) { return l.Append(d) }

func (l *memLog) Sign() error { l.signed++; return nil }

// of returns the recorded payloads of one type, in order.
func of[P event.Payload](l *memLog) []P {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []P
	for _, d := range l.events {
		if p, ok := d.Payload.(P); ok {
			out = append(out, p)
		}
	}
	return out
}

// fakeModel plays replies; each may be a *model.Response or an error.
type fakeModel struct {
	replies []any
	asked   []model.Request
}

func (m *fakeModel) Name() string { return "fake/model" }

func (m *fakeModel) Stream(ctx context.Context, req *model.Request, onDelta func(model.Delta)) (*model.Response, error) {
	m.asked = append(m.asked, model.Request{Messages: append([]*model.Message(nil), req.Messages...)})
	if len(m.replies) == 0 {
		return nil, errors.New("the script is over")
	}
	r := m.replies[0]
	m.replies = m.replies[1:]
	switch r := r.(type) {
	case error:
		return nil, r
	case func(context.Context) error:
		return nil, r(ctx)
	default:
		resp := r.(*model.Response)
		onDelta(model.Delta{Text: resp.Message.Text()})
		return resp, nil
	}
}

func says(text string) *model.Response {
	return &model.Response{Message: &model.Message{Role: event.RoleAssistant, Parts: []model.Part{event.TextPart(text)}}, Finish: model.FinishStop}
}

// calls is a reply that calls tools: name, args, name, args …
func calls(nameArgs ...string) *model.Response {
	m := &model.Message{Role: event.RoleAssistant}
	for i := 0; i < len(nameArgs); i += 2 {
		c := &model.ToolCall{ID: fmt.Sprintf("c%d", i/2+1), Name: nameArgs[i], Args: nameArgs[i+1]}
		m.Parts = append(m.Parts, model.Part{ToolCall: c})
	}
	return &model.Response{Message: m, Finish: model.FinishToolCalls}
}

// fakeGate lets everything run but what rule says otherwise, and records.
type fakeGate struct {
	log    *memLog
	minter *tool.Minter
	rule   func(agent.Proposal) agent.Ruling // nil result: run
	judged []string
	stop   string // Final.Stop of every finished call
	mu     sync.Mutex
}

func (g *fakeGate) Judge(_ context.Context, p agent.Proposal) agent.Ruling {
	g.judged = append(g.judged, p.Call.ID)
	c := policy.Call{ID: p.Call.ID, Tool: p.Call.Name, Args: []byte(p.Call.Args), WorkDir: p.WorkDir}
	if g.rule != nil {
		if r := g.rule(p); r != nil {
			return r
		}
	}
	return &agent.Run{Permit: g.minter.Mint(c, nil), Call: c, Decl: policy.Declaration{Mutates: p.Call.Name == "write"}}
}

func (g *fakeGate) Finish(_ context.Context, o agent.Outcome) (agent.Final, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, err := g.log.Append(event.Draft{Payload: &event.ToolEnded{CallID: o.Call.ID, Outcome: o.Kind, Content: o.Content}})
	return agent.Final{Content: o.Content, IsError: o.IsError, Stop: g.stop}, err
}

// probe is a tool whose runs the test steers.
type probe struct {
	name string
	run  func(ctx context.Context, g tool.Grant) tool.Result
}

func (p probe) Spec() tool.Spec {
	return tool.Spec{Name: p.name, Version: "1", Schema: []byte(`{"type":"object"}`)}
}
func (p probe) Declare([]byte) policy.Declaration { return policy.Declaration{} }
func (p probe) Run(ctx context.Context, g tool.Grant) (tool.Result, error) {
	return p.run(ctx, g), nil
}

type bench struct {
	log   *memLog
	model *fakeModel
	gate  *fakeGate
	opts  agent.Options
	slept []time.Duration
}

func setup(t *testing.T, run func(ctx context.Context, g tool.Grant) tool.Result, replies ...any) *bench {
	t.Helper()
	if run == nil {
		run = func(_ context.Context, g tool.Grant) tool.Result { return tool.OK("did " + g.Call().ID) }
	}
	reg, err := tool.NewRegistry(probe{"read", run}, probe{"write", run})
	if err != nil {
		t.Fatal(err)
	}
	m, v := tool.NewAuthority()
	b := &bench{log: &memLog{}, model: &fakeModel{replies: replies}}
	b.gate = &fakeGate{log: b.log, minter: m}
	b.opts = agent.Options{
		Model: agent.Model{Client: b.model}, Gate: b.gate, Exec: tool.NewExecutor(reg, v), Log: b.log, WorkDir: "/w",
		Sleep: func(_ context.Context, d time.Duration) error { b.slept = append(b.slept, d); return nil },
	}
	return b
}

func (b *bench) run(ctx context.Context) agent.Result { return agent.New(b.opts).Run(ctx, agent.Prompt{Text: "go"}) }
