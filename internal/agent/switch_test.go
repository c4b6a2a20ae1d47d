package agent_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/abhed/abhed/internal/agent"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/tool"
)

// TestModelSwitchesInTheMiddleOfARun switches while a tool runs, while the model
// answers, and between two attempts: the calls that follow go to the new model, with
// the same conversation, and each reply costs what its own model costs.
func TestModelSwitchesInTheMiddleOfARun(t *testing.T) {
	server := &model.Error{Kind: model.ErrServer, Status: 500}
	for _, during := range []string{"tool", "reply", "wait"} {
		t.Run(during, func(t *testing.T) {
			other := &fakeModel{name: "other/model", replies: []any{used(says("done"), 40, 10)}}
			var l *agent.Loop
			change := func(here string) {
				if here == during {
					l.SetModel(agent.Model{Client: other, Price: &agent.Price{Input: 50, Output: 100}})
				}
			}
			first := func() *model.Response { change("reply"); return used(calls("read", "{}"), 40, 10) }
			b := setup(t, func(context.Context, tool.Grant) tool.Result { change("tool"); return tool.OK("ran") }, first, server, says("never"))
			b.opts.Model.Price = &agent.Price{Input: 5, Output: 10}
			sleep := b.opts.Sleep
			b.opts.Sleep = func(ctx context.Context, d time.Duration) error { change("wait"); return sleep(ctx, d) }
			l = agent.New(b.opts)
			res := l.Run(t.Context(), agent.Prompt{Text: "go"})
			want(t, res, agent.ReasonCompleted)
			if got, w := texts(other.last().Messages), []string{"go", "<c1>", "c1=ran"}; !slices.Equal(got, w) || len(other.faults) > 0 {
				t.Errorf("the other model was sent %q, %v", got, other.faults)
			}
			if n := len(b.model.asked); n != 1 && during != "wait" || during == "wait" && n != 2 {
				t.Errorf("%d requests to the first model", n)
			}
			if cost := 0.0003 + 0.003; *res.CostUSD < cost-1e-9 || *res.CostUSD > cost+1e-9 {
				t.Errorf("cost %v, want %v", *res.CostUSD, cost)
			}
			var names []string
			for _, m := range of[*event.ModelRequested](b.log) {
				names = append(names, m.Model)
			}
			if names[0] != "fake/model" || names[len(names)-1] != "other/model" || l.Model().Client != other {
				t.Errorf("recorded %v", names)
			}
		})
	}
}

// TestModelSwitchesBetweenRuns goes on with another model, and back.
func TestModelSwitchesBetweenRuns(t *testing.T) {
	b := setup(t, nil, says("one"), says("three"))
	other := &fakeModel{name: "other/model", replies: []any{says("two")}}
	l := agent.New(b.opts)
	for i, m := range []*fakeModel{b.model, other, b.model} {
		l.SetModel(agent.Model{Client: m})
		want(t, l.Run(t.Context(), agent.Prompt{Text: fmt.Sprint("go ", i)}), agent.ReasonCompleted)
	}
	if got := strings.Join(texts(b.model.last().Messages), ","); got != "go 0,one,go 1,two,go 2" {
		t.Errorf("the model was sent %s", got)
	}
}
