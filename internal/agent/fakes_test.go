package agent_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
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

// fakeModel plays replies; each may be a *model.Response, an error, or a function
// that makes one. It is strict: it notes every request that a careful API would
// refuse.
type fakeModel struct {
	name    string // "" is fake/model
	replies []any
	asked   []model.Request
	faults  []string
}

func (m *fakeModel) Name() string { return cmp.Or(m.name, "fake/model") }

func (m *fakeModel) Stream(ctx context.Context, req *model.Request, onDelta func(model.Delta)) (*model.Response, error) {
	sent := *req
	sent.Messages = slices.Clone(req.Messages)
	m.asked = append(m.asked, sent)
	if fault := fault(req.Messages); fault != "" {
		m.faults = append(m.faults, fmt.Sprintf("request %d: %s", len(m.asked), fault))
	}
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
	case func() *model.Response:
		return r(), nil
	default:
		resp := r.(*model.Response)
		onDelta(model.Delta{Text: resp.Message.Text()})
		return resp, nil
	}
}

// fault says why a strict model refuses messages, "" if it takes them: a person
// begins, nothing is empty, and each call is answered once, in the model's order,
// right behind the reply that it is in.
func fault(messages []*model.Message) string {
	if len(messages) == 0 || messages[0].Role != event.RoleUser {
		return "it doesn't begin with the user"
	}
	var open []string
	ids := map[string]bool{}
	for i, m := range messages {
		if len(m.Parts) == 0 || len(m.Parts) == 1 && m.Parts[0].Text != nil && *m.Parts[0].Text == "" {
			return fmt.Sprintf("message %d is empty", i)
		}
		if m.Role == event.RoleTool {
			if len(m.Parts) != 1 || m.Parts[0].ToolResult == nil || len(open) == 0 || m.Parts[0].ToolResult.CallID != open[0] {
				return fmt.Sprintf("message %d should answer one of %v", i, open)
			}
			open = open[1:]
			continue
		}
		if len(open) > 0 {
			return fmt.Sprintf("message %d stands where %v is to be answered", i, open)
		}
		for _, c := range m.ToolCalls() {
			if ids[c.ID] {
				return fmt.Sprintf("the id %s is there twice", c.ID)
			}
			ids[c.ID] = true
			open = append(open, c.ID)
		}
	}
	if len(open) > 0 {
		return fmt.Sprintf("%v isn't answered", open)
	}
	return ""
}

// texts returns what stands in messages, a string each: the text, the calls' ids, or
// the result.
func texts(messages []*model.Message) []string {
	var out []string
	for _, m := range messages {
		text := m.Text()
		for _, p := range m.Parts {
			switch {
			case p.ToolCall != nil:
				text += "<" + p.ToolCall.ID + ">"
			case p.ToolResult != nil:
				text += p.ToolResult.CallID + "=" + p.ToolResult.Content
			}
		}
		out = append(out, text)
	}
	return out
}

// last returns the last request that the model was sent.
func (m *fakeModel) last() model.Request { return m.asked[len(m.asked)-1] }

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

func setup(t testing.TB, run func(ctx context.Context, g tool.Grant) tool.Result, replies ...any) *bench {
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
	t.Cleanup(func() {
		if len(b.model.faults) > 0 {
			t.Errorf("a strict model would refuse %q", b.model.faults)
		}
	})
	b.opts = agent.Options{
		Model: agent.Model{Client: b.model}, Gate: b.gate, Exec: tool.NewExecutor(reg, v), Log: b.log, WorkDir: "/w",
		Sleep: func(_ context.Context, d time.Duration) error { b.slept = append(b.slept, d); return nil },
	}
	return b
}

func (b *bench) run(ctx context.Context) agent.Result {
	return agent.New(b.opts).Run(ctx, agent.Prompt{Text: "go"})
}

// fakeExtensions have a say where a function is set, and note what they hear.
type fakeExtensions struct {
	submit  func(text string) *agent.Refusal
	begin   func(ctx context.Context) *agent.Refusal
	choose  func(ctx context.Context, messages []*model.Message) []*model.Message
	compact func(messages []*model.Message) (agent.Compaction, *agent.Refusal)
	atEnd   func()
	ended   []string // reason: content
}

func (x *fakeExtensions) Submit(_ context.Context, _ agent.At, text string) *agent.Refusal {
	if x.submit == nil {
		return nil
	}
	return x.submit(text)
}

func (x *fakeExtensions) Begin(ctx context.Context, _ agent.At, _ string) ([]string, *agent.Refusal) {
	if x.begin == nil {
		return nil, nil
	}
	return nil, x.begin(ctx)
}

func (x *fakeExtensions) Select(ctx context.Context, _ agent.At, messages []*model.Message) ([]*model.Message, *agent.Refusal) {
	if x.choose == nil {
		return messages, nil
	}
	return x.choose(ctx, messages), nil
}

func (x *fakeExtensions) Compact(_ context.Context, _ agent.At, messages []*model.Message) (agent.Compaction, *agent.Refusal) {
	if x.compact == nil {
		return agent.Compaction{}, nil
	}
	return x.compact(messages)
}

func (x *fakeExtensions) Ended(_ context.Context, _ agent.At, reason agent.Reason, content string) {
	x.ended = append(x.ended, string(reason)+": "+content)
	if x.atEnd != nil {
		x.atEnd()
	}
}
