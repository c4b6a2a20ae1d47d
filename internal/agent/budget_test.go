package agent_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abhed/abhed/internal/agent"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/tool"
)

// used gives a reply the usage of so many tokens.
func used(r *model.Response, in, out int64) *model.Response {
	r.Usage = &model.Usage{Input: &in, Output: &out}
	return r
}

// works returns n replies with a call each, of 40 and 10 tokens.
func works(n int) []any {
	var out []any
	for range n {
		out = append(out, used(calls("read", "{}"), 40, 10))
	}
	return out
}

// warnings returns what the agent of log was told about the rest of its run.
func warnings(log *memLog) []string {
	var out []string
	for _, m := range of[*event.UserMessage](log) {
		if strings.Contains(m.Text, "Little of this run is left") {
			out = append(out, m.Text)
		}
	}
	return out
}

// TestOneBudgetForSeveralLoops has a run whose tool runs another loop on the same
// budget: what the one uses is gone for the other, for each kind of limit.
func TestOneBudgetForSeveralLoops(t *testing.T) {
	price := &agent.Price{Input: 5, Output: 10} // 0.0003 USD a reply of works
	tests := []struct {
		name        string
		limits      agent.Limits
		outer, sub  agent.Reason
		turns, subs int // replies of each
	}{
		{"turns", agent.Limits{Turns: 5}, agent.ReasonMaxTurns, agent.ReasonMaxTurns, 1, 4},
		{"tokens", agent.Limits{Tokens: 240}, agent.ReasonMaxTokens, agent.ReasonMaxTokens, 1, 4},
		{"cost", agent.Limits{CostUSD: 0.0014}, agent.ReasonMaxCost, agent.ReasonMaxCost, 1, 4},
		{"enough for the sub-agent", agent.Limits{Turns: 10}, agent.ReasonMaxTurns, agent.ReasonCompleted, 2, 8},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			sub := setup(t, nil, works(20)...)
			if tt.sub == agent.ReasonCompleted {
				sub.model.replies = append(works(tt.subs-1), used(says("found"), 40, 10))
			}
			sub.opts.Model.Price = price
			var outer *agent.Loop
			var got agent.Result
			ran := false
			b := setup(t, func(ctx context.Context, _ tool.Grant) tool.Result {
				if !ran {
					ran = true
					sub.opts.Budget = outer.Budget()
					got = agent.New(sub.opts).Run(ctx, agent.Prompt{Text: "sub"})
				}
				return tool.OK("ran")
			}, works(20)...)
			b.opts.Limits, b.opts.Model.Price = tt.limits, price
			outer = agent.New(b.opts)
			res := outer.Run(t.Context(), agent.Prompt{Text: "go"})
			want(t, res, tt.outer)
			want(t, got, tt.sub)
			if res.Turns != tt.turns || got.Turns != tt.subs {
				t.Errorf("%d turns of the run, %d of its sub-agent, want %d and %d", res.Turns, got.Turns, tt.turns, tt.subs)
			}
			if cost := 0.0003 * float64(tt.turns+tt.subs); res.CostUSD == nil || *res.CostUSD < cost-1e-9 || *res.CostUSD > cost+1e-9 {
				t.Errorf("the run and its sub-agent cost %v, want %v", res.CostUSD, cost)
			}
			if *res.Usage.Input != int64(40*tt.turns) {
				t.Errorf("usage %d: the sub-agent's is its own", *res.Usage.Input)
			}
			if outer.Budget() != nil {
				t.Error("there is a budget between runs")
			}
		})
	}
}

// TestLastTurnIsHadOnce lets loops race for the turns of one budget.
func TestLastTurnIsHadOnce(t *testing.T) {
	for range 200 {
		const limit = 5
		budget := agent.NewBudget(agent.Limits{Turns: limit}, time.Now())
		var turns atomic.Int64
		var all sync.WaitGroup
		start := make(chan struct{})
		for range 8 {
			b := setup(t, nil, works(limit+1)...)
			b.opts.Budget = budget
			loop := agent.New(b.opts)
			all.Go(func() {
				<-start
				turns.Add(int64(loop.Run(t.Context(), agent.Prompt{Text: "go"}).Turns))
			})
		}
		close(start)
		all.Wait()
		if turns.Load() != limit {
			t.Fatalf("%d turns of a limit of %d", turns.Load(), limit)
		}
	}
}

// TestTimeIsShared holds that the time of a run bounds its sub-agent too.
func TestTimeIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		sub := setup(t, nil, slow)
		var outer *agent.Loop
		var got agent.Result
		b := setup(t, func(ctx context.Context, _ tool.Grant) tool.Result {
			sub.opts.Budget, sub.opts.Limits = outer.Budget(), agent.Limits{Time: time.Second} // Limits is the budget's
			got = agent.New(sub.opts).Run(ctx, agent.Prompt{Text: "sub"})
			return tool.OK("ran")
		}, calls("write", "{}"), says("never"))
		b.opts.Limits.Time = time.Minute
		outer = agent.New(b.opts)
		began := time.Now()
		want(t, outer.Run(t.Context(), agent.Prompt{Text: "go"}), agent.ReasonMaxTime)
		want(t, got, agent.ReasonMaxTime)
		if took := time.Since(began); took != time.Minute {
			t.Errorf("ended after %s", took)
		}
	})
}

// TestEachRateOnce counts each kind of token at its own rate and once (I174, I176), over
// the replies of a run.
func TestEachRateOnce(t *testing.T) {
	n := func(v int64) *int64 { return &v }
	price := &agent.Price{Input: 1, Output: 10, CacheRead: 100, CacheWrite: 1000}
	cached, wrote, plain := &model.Usage{Input: n(200), Output: n(10), CacheRead: n(800)}, &model.Usage{Input: n(12), Output: n(30), CacheWrite: n(1000)}, &model.Usage{Input: n(7), Output: n(3), Reasoning: n(2)}
	costs := map[*model.Usage]float64{cached: 80_300, wrote: 1_000_312, plain: 37}
	for _, list := range [][]*model.Usage{{cached}, {wrote}, {plain}, {cached, wrote, plain}} {
		b := setup(t, nil)
		sum := 0.0
		for i, u := range list {
			reply := calls("read", "{}")
			if i == len(list)-1 {
				reply = says("done")
			}
			reply.Usage = u
			b.model.replies = append(b.model.replies, reply)
			sum += costs[u] / 1e6
		}
		b.opts.Model.Price = price
		if res := b.run(t.Context()); res.CostUSD == nil || *res.CostUSD < sum-1e-12 || *res.CostUSD > sum+1e-12 {
			t.Errorf("%d replies cost %v, want %v", len(list), res.CostUSD, sum)
		}
	}
}

// TestUnreportedIsNotFree holds that a run with a reply that came without usage, or with
// half of it, has no cost (I177), though the limit counts an estimate.
func TestUnreportedIsNotFree(t *testing.T) {
	half := used(calls("read", "{}"), 40, 10)
	half.Usage.Output = nil
	for name, first := range map[string]*model.Response{"nothing": calls("read", "{}"), "half": half} {
		b := setup(t, nil, first, used(says("done"), 40, 10))
		b.opts.Model.Price = &agent.Price{Input: 5, Output: 10}
		b.opts.Limits.CostUSD = 1
		if res := b.run(t.Context()); res.Reason != agent.ReasonCompleted || res.CostUSD != nil {
			t.Errorf("%s: %s, cost %v", name, res.Reason, res.CostUSD)
		}
		b = setup(t, nil, first, used(says("done"), 40, 10))
		b.opts.Model.Price = &agent.Price{Input: 5, Output: 10}
		b.opts.Limits.CostUSD = 1e-9
		want(t, b.run(t.Context()), agent.ReasonMaxCost)
	}
}

// TestUnknownPriceIsNotFree holds that a run with a reply of unknown price has no
// cost, though another model's is known.
func TestUnknownPriceIsNotFree(t *testing.T) {
	b := setup(t, nil, used(says("done"), 40, 10), used(says("done"), 40, 10))
	b.opts.Model.Price = &agent.Price{Input: 5, Output: 10}
	l := agent.New(b.opts)
	if res := l.Run(t.Context(), agent.Prompt{Text: "go"}); res.CostUSD == nil || *res.CostUSD != 0.0003 {
		t.Errorf("cost %v", res.CostUSD)
	}
	l.SetModel(agent.Model{Client: b.model})
	if res := l.Run(t.Context(), agent.Prompt{Text: "go"}); res.CostUSD != nil {
		t.Errorf("cost %v of a model without a price", *res.CostUSD)
	}
}

// TestLowWarningsAreSaidOnce uses up each kind of limit, and holds that the agent is
// told once, in time, and in the next run anew; a sub-agent is told, and the agent
// itself as well.
func TestLowWarningsAreSaidOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tests := []struct {
			name   string
			limits agent.Limits
			said   string
			turn   int // of the warning
		}{
			{"turns", agent.Limits{Turns: 40}, " 4 of 40 model calls are left.", 36},
			{"few turns", agent.Limits{Turns: 3}, " 2 of 3 model calls are left.", 1},
			{"tokens", agent.Limits{Tokens: 1000}, " 100 of 1000 tokens are left.", 19},
			{"cost", agent.Limits{CostUSD: 0.0065}, " 0.0005 of 0.0065 USD are left.", 21},
			{"time", agent.Limits{Time: 100 * time.Second}, " 10s of 1m40s are left.", 91},
			{"turns and tokens", agent.Limits{Turns: 40, Tokens: 2000}, " 4 of 40 model calls are left.", 36},
		}
		for _, tt := range tests {
			b := setup(t, func(context.Context, tool.Grant) tool.Result { time.Sleep(time.Second); return tool.OK("") }, works(250)...)
			b.opts.Limits, b.opts.Model.Price = tt.limits, &agent.Price{Input: 5, Output: 10}
			l := agent.New(b.opts)
			for run := 1; run <= 2; run++ {
				if res := l.Run(t.Context(), agent.Prompt{Text: "go"}); res.Reason == agent.ReasonCompleted || res.Reason == agent.ReasonError {
					t.Fatalf("%s: the run ended with %s (%s)", tt.name, res.Reason, res.Detail)
				}
				w := run
				if tt.name == "turns and tokens" {
					w *= 2
				}
				got := warnings(b.log)
				if len(got) != w || !strings.Contains(got[0], tt.said) {
					t.Errorf("%s: run %d: the agent was told %q, want %d of %q", tt.name, run, got, w, tt.said)
				}
			}
			first := 0
			for i, r := range b.model.asked {
				if first == 0 && strings.Contains(r.Messages[len(r.Messages)-1].Text(), "Little of") {
					first = i + 1
				}
			}
			if first != tt.turn {
				t.Errorf("%s: the agent was told in request %d, want %d", tt.name, first, tt.turn)
			}
		}
	})
}

// TestBothAgentsAreWarned lets a sub-agent use up most of a budget.
func TestBothAgentsAreWarned(t *testing.T) {
	sub := setup(t, nil, append(works(18), used(says("found"), 40, 10))...)
	var outer *agent.Loop
	b := setup(t, func(ctx context.Context, _ tool.Grant) tool.Result {
		sub.opts.Budget = outer.Budget()
		want(t, agent.New(sub.opts).Run(ctx, agent.Prompt{Text: "sub"}), agent.ReasonCompleted)
		return tool.OK("ran")
	}, calls("write", "{}"), says("done"))
	b.opts.Limits.Turns = 22
	outer = agent.New(b.opts)
	want(t, outer.Run(t.Context(), agent.Prompt{Text: "go"}), agent.ReasonCompleted)
	if len(warnings(sub.log)) != 1 || len(warnings(b.log)) != 1 {
		t.Errorf("the sub-agent was told %q, the agent %q", warnings(sub.log), warnings(b.log))
	}
}
