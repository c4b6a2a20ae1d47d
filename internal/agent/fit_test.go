package agent_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/abhed/abhed/internal/agent"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/tool"
)

// worksOn gives b n calls, the results of which have size bytes.
func (b *bench) worksOn(n int) {
	for range n {
		b.model.replies = append(b.model.replies, calls("read", "{}"))
	}
	b.model.replies = append(b.model.replies, says("done"))
}

func results(size int) func(context.Context, tool.Grant) tool.Result {
	return func(context.Context, tool.Grant) tool.Result { return tool.OK(strings.Repeat("r", size)) }
}

// TestLongRunIsKeptWithinTheWindow works far beyond a window: the conversation is
// made smaller a few times, never overflows once its size is known, and the person's
// first message is there to the end.
func TestLongRunIsKeptWithinTheWindow(t *testing.T) {
	for _, known := range []bool{true, false} {
		b := setup(t, results(2000))
		b.worksOn(100) // 50,000 tokens
		m := b.inWindow(8000, known)
		res := agent.New(b.opts).Run(t.Context(), agent.Prompt{Text: "the task"})
		want(t, res, agent.ReasonCompleted)
		if n := len(m.summaries); n < 8 || n > 25 || known && m.overflows > 0 || len(reductions(b.log)) > n {
			t.Errorf("known %v: %d summaries, %d overflows, %v", known, n, m.overflows, reductions(b.log))
		}
		if sent := b.model.last().Messages; sent[0].Text() != "the task" || event.ByHarness(sent[0]) {
			t.Errorf("the first message is %q", sent[0].Text())
		}
	}
}

// TestFixedPartThatLeavesNoRoom has a window of 8,000 tokens of which system text and
// tools take 7,000, and results of 2,000 (I157): one compaction without progress at
// most, then an error that names the fixed part, and no call after it. The sibling
// cases have a past that a summary can stand for, an endpoint that reports nothing,
// and one whose window nobody knows.
func TestFixedPartThatLeavesNoRoom(t *testing.T) {
	for _, history := range []int{0, 1, 10} {
		for _, kind := range []string{"known", "silent", "unknown"} {
			t.Run(fmt.Sprint(history, kind), func(t *testing.T) {
				b := setup(t, results(8000))
				b.worksOn(20)
				m := b.inWindow(8000, kind != "unknown")
				m.silent = kind != "known"
				m.summary = func(int) any { return says(strings.Repeat("no shorter ", 400)) }
				b.opts.System = strings.Repeat("s", 20_000)
				specs := []model.ToolSpec{{Name: "read", Description: strings.Repeat("d", 7000), Schema: []byte(`{}`)}, {Name: "write", Description: strings.Repeat("d", 1000), Schema: []byte(`{}`)}}
				b.opts.Tools = func() []model.ToolSpec { return specs }
				if history > 0 {
					b.opts.History = past(history, 300)
				}
				l := agent.New(b.opts)
				for round := 1; round <= 3; round++ {
					summaries, requests := len(m.summaries), len(b.model.asked)
					res := l.Run(t.Context(), agent.Prompt{Text: "go"})
					want(t, res, agent.ReasonError)
					if !strings.Contains(res.Detail, "system text and the descriptions of 2 tools take about") || !strings.Contains(res.Detail, "larger window") {
						t.Errorf("round %d: detail %q", round, res.Detail)
					}
					if n, r := len(m.summaries)-summaries, len(b.model.asked)-requests; n > 1 || r > 1 {
						t.Errorf("round %d: %d requests for a summary, %d others", round, n, r)
					}
				}
				if n := len(of[*event.ToolStarted](b.log)); n > 1 {
					t.Errorf("%d calls ran", n)
				}
				next, large := b.larger()
				large.replies = []any{says("done")}
				l.SetModel(next)
				want(t, l.Run(t.Context(), agent.Prompt{Text: "go on"}), agent.ReasonCompleted)
			})
		}
	}
}

// TestEndpointThatTakesNothing lets an endpoint refuse everything as too long: it is
// asked once more, with less, and then the run ends.
func TestEndpointThatTakesNothing(t *testing.T) {
	b := setup(t, nil)
	over := &model.Error{Kind: model.ErrOverflow, Status: 400, Detail: "too long"}
	b.model.replies = []any{over, over, over, over}
	m := b.inWindow(0, false)
	b.opts.History = past(100, 1000)
	res := agent.New(b.opts).Run(t.Context(), agent.Prompt{Text: "go"})
	want(t, res, agent.ReasonError)
	f := of[*event.ModelFailed](b.log)
	if len(b.model.asked) != 2 || len(m.summaries) != 1 || len(reductions(b.log)) != 1 || len(f) != 2 || f[0].Final || !f[1].Final {
		t.Errorf("%d requests, %d for a summary, reduced %v, failures %+v", len(b.model.asked), len(m.summaries), reductions(b.log), f)
	}
	if !strings.Contains(res.Detail, "system text and the descriptions") || !strings.Contains(res.Detail, "too long") {
		t.Errorf("detail %q", res.Detail)
	}
}

// TestFailingSummariesAreBounded lets a model with too long a conversation give no
// summary (I158): few tries, said in the record, and the work goes on while there is
// room; then the run ends with an error, and another model goes on.
func TestFailingSummariesAreBounded(t *testing.T) {
	for name, reply := range map[string]any{"empty": says(""), "failing": &model.Error{Kind: model.ErrServer, Status: 500, Detail: "oops"}} {
		b := setup(t, results(400))
		b.worksOn(100)
		m := b.inWindow(8000, true)
		m.summary = func(int) any { return reply }
		b.opts.History = past(12, 2000) // 6,000 tokens
		l := agent.New(b.opts)
		res := l.Run(t.Context(), agent.Prompt{Text: "go"})
		want(t, res, agent.ReasonError)
		if n := len(m.summaries); n < 2 || n > 6 || m.overflows > 0 {
			t.Errorf("%s: %d requests for a summary, %d overflows", name, n, m.overflows)
		}
		if n := strings.Count(notices(b.log), "could not be summarised"); n*2 != len(m.summaries) {
			t.Errorf("%s: the failures are said %d times: %s", name, n, notices(b.log))
		}
		if !strings.Contains(res.Detail, "doesn't fit the context window") || !strings.Contains(res.Detail, "could not be summarised") {
			t.Errorf("%s: detail %q", name, res.Detail)
		}
		if n := len(of[*event.ToolStarted](b.log)); n < 5 {
			t.Errorf("%s: only %d calls ran though there was room", name, n)
		}
		next, large := b.larger()
		large.replies = []any{says("all done")}
		l.SetModel(next)
		res = l.Run(t.Context(), agent.Prompt{Text: "go on"})
		want(t, res, agent.ReasonCompleted)
		if sent := large.last().Messages; sent[0].Text() != "the task" || len(large.summaries) != 0 || res.Text != "all done" {
			t.Errorf("%s: %d summaries by the other model, text %q", name, len(large.summaries), res.Text)
		}
	}
}

// TestNoCompactionWhereItIsOff lets an endpoint say that a conversation is too long
// where compaction is off (I159): no request for a summary, an error that offers a
// switch, and after it the same conversation goes on. The sibling case knows the
// window beforehand.
func TestNoCompactionWhereItIsOff(t *testing.T) {
	for _, known := range []bool{false, true} {
		b := setup(t, results(8000))
		b.worksOn(20)
		m := b.inWindow(8000, known)
		b.opts.Context.Auto = false
		l := agent.New(b.opts)
		res := l.Run(t.Context(), agent.Prompt{Text: "the task"})
		want(t, res, agent.ReasonError)
		if !strings.Contains(res.Detail, "compaction is off") || !strings.Contains(res.Detail, "Switch to a model with a larger window") {
			t.Errorf("detail %q", res.Detail)
		}
		f := of[*event.ModelFailed](b.log)
		if len(m.summaries) != 0 || m.overflows != 1 || len(f) != 1 || !f[0].Final || len(reductions(b.log)) != 0 {
			t.Errorf("%d requests for a summary, %d overflows, recorded %+v", len(m.summaries), m.overflows, f)
		}
		before := texts(b.model.last().Messages)
		next, large := b.larger()
		large.replies = []any{says("done")}
		l.SetModel(next)
		want(t, l.Run(t.Context(), agent.Prompt{Text: "go on"}), agent.ReasonCompleted)
		after := texts(large.last().Messages)
		if len(large.faults) > 0 || !slices.Equal(after[:len(before)], before) || after[len(after)-1] != "go on" || len(large.summaries) != 0 {
			t.Errorf("the other model was sent %d messages, the first one %d; %v", len(after), len(before), large.faults)
		}
	}
}

// TestSwitchToASmallerWindow goes on with 100,000 tokens in a window of 32,000 (I161):
// one reduction, or a refusal where none helps, and no loop. The sibling cases switch
// in the session instead of resuming it, have one result that is too large, and a
// first message that is.
func TestSwitchToASmallerWindow(t *testing.T) {
	tests := []struct {
		name    string
		history []*model.Message
		resumed bool
		reason  agent.Reason
	}{
		{"resumed", past(100, 4000), true, agent.ReasonCompleted},
		{"switched", past(100, 4000), false, agent.ReasonCompleted},
		{"one result alone is too large", past(1, 400_000), true, agent.ReasonCompleted},
		{"nothing can be forgotten", []*model.Message{user(strings.Repeat("x", 400_000))}, true, agent.ReasonError},
		{"nothing can be forgotten, switched", []*model.Message{user(strings.Repeat("x", 400_000))}, false, agent.ReasonError},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := setup(t, nil)
			m := b.inWindow(32_000, true)
			small := b.opts.Model
			b.opts.History = tt.history
			if !tt.resumed {
				next, large := b.larger()
				large.replies = []any{says("done")}
				b.opts.Model = next
			}
			l := agent.New(b.opts)
			if !tt.resumed {
				want(t, l.Run(t.Context(), agent.Prompt{Text: "go"}), agent.ReasonCompleted)
				l.SetModel(small)
			}
			for range 3 {
				b.model.replies = append(b.model.replies, says("done"))
				res := l.Run(t.Context(), agent.Prompt{Text: "go on"})
				want(t, res, tt.reason)
				if tt.reason == agent.ReasonError && !strings.Contains(res.Detail, "doesn't fit the context window of fake/model (32000 tokens)") {
					t.Errorf("detail %q", res.Detail)
				}
			}
			trigger, n := "auto", 1
			if !tt.resumed {
				trigger = "model"
			}
			if tt.reason == agent.ReasonError {
				n = 0
			}
			if got := reductions(b.log); len(got) != n || n > 0 && got[0] != trigger || len(m.summaries) > 3 || m.overflows > 0 {
				t.Errorf("reduced %v, %d requests for a summary, %d overflows", got, len(m.summaries), m.overflows)
			}
		})
	}
}

// TestSummaryThatForgetsNothing lets an extension keep everything (I161): that is no
// progress, and isn't tried again and again.
func TestSummaryThatForgetsNothing(t *testing.T) {
	b := setup(t, results(100))
	b.worksOn(50)
	m := b.inWindow(8000, true)
	b.opts.History = past(14, 2000) // 7,000 tokens: above the threshold, within the window
	asked := 0
	b.opts.Extensions = &fakeExtensions{compact: func(old []*model.Message) (agent.Compaction, *agent.Refusal) {
		asked++
		all := strings.Join(texts(old), "\n") + strings.Repeat("x", 20*len(old))
		return agent.Compaction{Summary: &all, By: "x"}, nil
	}}
	agent.New(b.opts).Run(t.Context(), agent.Prompt{Text: "go"})
	if asked < 1 || asked > 3 || len(reductions(b.log)) != 0 || len(m.summaries) != 0 {
		t.Errorf("the extension was asked %d times, reduced %v", asked, reductions(b.log))
	}
	if !strings.Contains(notices(b.log), "no shorter than what it stands for") {
		t.Errorf("notices %q", notices(b.log))
	}
}
