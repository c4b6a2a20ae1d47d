package gate_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/agent"
	"github.com/abhed/abhed/internal/control"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/gate"
	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/policy"
)

// sub returns the gate of a sub-agent of g; dir, if not "", is its own folder.
func (r *rig) sub(g *gate.Gate, depth int, dir string) *gate.Gate {
	o := gate.Options{
		Tools: r.opts.Tools, Minter: r.opts.Minter, Rules: r.current, Log: r.log,
		Agent: policy.Agent{ID: fmt.Sprintf("a%d", depth), Depth: depth}, Roots: r.opts.Roots, Parent: g, ParentCall: "task1",
	}
	if dir != "" {
		o.Roots = []string{dir}
	}
	return gate.New(o)
}

func (r *rig) judgeBy(ctx context.Context, g *gate.Gate, dir, id, args string) agent.Ruling {
	return g.Judge(ctx, agent.Proposal{Turn: 1, TurnID: "t", WorkDir: dir, Call: &model.ToolCall{ID: id, Name: "bash", Args: args}})
}

// I003: a hook that denies holds at every depth, and knows whose call it is.
func TestI003HooksHoldForSubAgents(t *testing.T) {
	r := newRig(t)
	r.env.Mode = policy.ModeBypass
	guard, log := r.heard("guard", "tool_call", `{"block":true,"reason":"never"}`)
	r.extensions(guard)
	g := gate.New(r.opts)
	for depth := 1; depth <= 2; depth++ {
		g = r.sub(g, depth, "")
		ruling := r.judgeBy(t.Context(), g, r.dir, "c", `{"command":"rm -rf x"}`)
		if refused, ok := ruling.(*agent.Refused); !ok || !strings.Contains(refused.Text, "never") {
			t.Errorf("depth %d: %s", depth, show(ruling))
		}
		d := last[*event.Decision](r.log)
		if d.Depth != depth || d.AgentID != fmt.Sprintf("a%d", depth) || d.Outcome != "deny" {
			t.Errorf("depth %d: %+v", depth, d)
		}
		if want := fmt.Sprintf(`"agent":{"id":"a%d","depth":%d}`, depth, depth); !strings.Contains(log(), want) {
			t.Errorf("the extension read %s, which lacks %s", log(), want)
		}
	}
	if len(r.ran) > 0 {
		t.Errorf("%v ran", r.ran)
	}
}

// TestBackendsKnowTheSubAgent holds what events say of who works, where, with what.
func TestBackendsKnowTheSubAgent(t *testing.T) {
	r := newRig(t)
	r.env.Mode = policy.ModeBypass
	fake := r.watched("fail-closed", nil)
	dir := t.TempDir()
	if _, ok := r.judgeBy(t.Context(), r.gate, r.dir, "task1", `{"command":"start it"}`).(*agent.Run); !ok {
		t.Fatal("not permitted")
	}
	task := fake.Requests()[0].Event.ID
	g := r.sub(r.gate, 1, dir)
	g.SetModel("q/small")
	if _, ok := r.judgeBy(t.Context(), g, dir, "c", `{"command":"ls"}`).(*agent.Run); !ok {
		t.Fatal("not permitted")
	}
	o := agent.Outcome{Kind: "cancelled", Call: policy.Call{ID: "c9", Tool: "bash", Args: []byte(`{}`)}, IsError: true} // never judged: nobody is named in it
	if _, err := g.Finish(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	g.Ask(t.Context(), agent.At{TurnID: "t"}, &agent.TurnStart{Item: "m1", Text: "go"})
	g.Tell(t.Context(), agent.At{}, &agent.Attention{Kind: "idle"})
	events := []*ahp.Event{seen(t, fake, ahp.UserAttention)}
	for _, q := range fake.Requests()[1:] {
		events = append(events, q.Event)
		if q.Event.Type == ahp.TurnStart && q.Event.ParentEventID != task {
			t.Errorf("the sub-agent's turn comes from %q, want the call %q", q.Event.ParentEventID, task)
		}
	}
	for _, e := range events {
		s := e.Session
		if s.Agent == nil || s.Agent.ID != "a1" || s.Agent.Type != "subagent" || s.Model != "q/small" || len(s.WorkspaceRoots) != 1 || s.WorkspaceRoots[0] != dir || s.Cwd != dir {
			t.Errorf("%s: %+v %+v", e.Type, s, s.Agent)
		}
	}
	r.gate.Ask(t.Context(), agent.At{TurnID: "t"}, &agent.TurnStart{Item: "m1", Text: "go"})
	list := fake.Requests()
	if s := list[len(list)-1].Event.Session; s.Agent.ID != "main" || s.Agent.Type != "" || s.Model != "p/m" || s.Cwd != r.dir {
		t.Errorf("the main agent: %+v %+v", s, s.Agent)
	}
	r.gate.SetModel("p/other")
	if r.gate.Ask(t.Context(), agent.At{TurnID: "u"}, &agent.TurnStart{Item: "m1", Text: "go"}); fake.Requests()[len(list)].Event.Session.Model != "p/other" {
		t.Error("the model of the main agent stays")
	}
}

// TestSessionApprovalsAreShared holds that an approval for the session is one for all
// its agents, in the same place.
func TestSessionApprovalsAreShared(t *testing.T) {
	r := newRig(t)
	p := &person{answer: func(q control.Question) (control.Decision, error) {
		return control.Decision{Hash: q.Hash, Allow: true, Scope: event.ScopeSession, By: "ann"}, nil
	}}
	r.opts.Approver = p
	g := gate.New(r.opts)
	sub, elsewhere := r.sub(g, 1, ""), t.TempDir()
	runs := func(g *gate.Gate, dir string, asked int) {
		t.Helper()
		if ruling, ok := r.judgeBy(t.Context(), g, dir, "c", `{"command":"make"}`).(*agent.Run); !ok || len(p.asked) != asked {
			t.Errorf("%v, asked %d times, want %d", ruling, len(p.asked), asked)
		}
	}
	runs(sub, r.dir, 1)
	runs(g, r.dir, 1)
	runs(r.sub(sub, 2, ""), r.dir, 1)
	runs(r.sub(g, 1, elsewhere), elsewhere, 2) // another folder
	runs(r.sub(g, 1, elsewhere), r.dir, 3)     // other roots
	n := 0
	for _, e := range r.log.events {
		if e.Type() == event.TypeRulesSet {
			n++
		}
	}
	if n != 1 {
		t.Errorf("the rule set is %d times in the record", n)
	}
}

// counting is an approver that answers when it is told to.
type counting struct {
	asked  int
	answer chan string // the scope
}

func (c *counting) Approve(ctx context.Context, q control.Question) (control.Decision, error) {
	c.asked++
	select {
	case scope := <-c.answer:
		return control.Decision{Hash: q.Hash, Allow: true, Scope: scope}, nil
	case <-ctx.Done():
		return control.Decision{}, ctx.Err()
	}
}

// TestOneQuestionAtATime lets three agents ask at once: the second call is covered by
// the answer to the first, the third is cancelled while it waits for its turn.
func TestOneQuestionAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		c := &counting{answer: make(chan string)}
		r.opts.Approver = c
		g := gate.New(r.opts)
		agents := []*gate.Gate{g, r.sub(g, 1, ""), r.sub(g, 2, "")}
		ctx, cancel := context.WithCancel(t.Context())
		rulings := make([]agent.Ruling, 3)
		var work sync.WaitGroup
		ask := func(ctx context.Context, i int, args string) {
			work.Go(func() { rulings[i] = r.judgeBy(ctx, agents[i], r.dir, fmt.Sprint("c", i), args) })
			synctest.Wait() // until it waits for the person, or for its turn
		}
		ask(t.Context(), 0, `{"command":"make"}`)
		ask(t.Context(), 1, `{"command":"make"}`)
		ask(ctx, 2, `{"command":"make all"}`)
		if c.asked != 1 || rulings[1] != nil || rulings[2] != nil {
			t.Fatalf("asked %d times, %v", c.asked, rulings)
		}
		cancel()
		synctest.Wait()
		if _, ok := rulings[2].(*agent.Cancelled); !ok {
			t.Errorf("the cancelled one: %s", show(rulings[2]))
		}
		c.answer <- event.ScopeSession
		work.Wait()
		for i := range 2 {
			if _, ok := rulings[i].(*agent.Run); !ok {
				t.Errorf("%d: %s", i, show(rulings[i]))
			}
		}
		if c.asked != 1 {
			t.Errorf("asked %d times", c.asked)
		}
	})
}

// TestSubAgentsAreNoLooser holds that a sub-agent can't be given laxer judges.
func TestSubAgentsAreNoLooser(t *testing.T) {
	r := newRig(t)
	r.opts.Hooks = []gate.Hook{{Name: "no", Judge: func(context.Context, policy.Call, policy.Declaration) policy.Objection {
		return policy.ObjectDeny(policy.Source{}, "never", "")
	}}}
	r.env.Mode = policy.ModeBypass
	g := gate.New(gate.Options{
		Tools: r.opts.Tools, Minter: r.opts.Minter, Rules: r.current, Log: r.log, Parent: gate.New(r.opts),
		Hooks: []gate.Hook{}, Approver: &person{answer: yes},
	})
	if ruling := r.judgeBy(t.Context(), g, r.dir, "c", `{"command":"ls"}`); !strings.HasPrefix(show(ruling), "*agent.Refused") {
		t.Error(show(ruling))
	}
}

// I006: each of several calls is judged alone: the second matches a rule, the others run.
// How it is with a tool that makes calls see TestCallsWithinACall.
func TestI006InnerCallsAreJudgedOneByOne(t *testing.T) {
	r := newRig(t)
	r.env.Mode = policy.ModeBypass
	r.rules.Deny = rules("bash(curl *)")
	guard, log := r.heard("log", "tool_call", `{}`)
	r.extensions(guard)
	r.gate = gate.New(r.opts)
	r.runs("bash", `{"command":"echo 1"}`)
	r.refused("rules", "deny rule bash(curl *)", "bash", `{"command":"curl http://x"}`)
	r.runs("bash", `{"command":"echo 3"}`)
	if n := strings.Count(log(), `"event":"tool_call"`); n != 3 || len(r.ran) != 2 {
		t.Errorf("%d askings, %v ran", n, r.ran)
	}
}
