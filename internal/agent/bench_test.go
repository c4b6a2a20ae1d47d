package agent_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/abhed/abhed/internal/agent"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/tool"
)

// instantModel calls a tool until a run has had so many turns, and costs nothing.
type instantModel struct {
	turns, asked int
	args, text   string
}

func (m *instantModel) Name() string { return "instant/model" }

func (m *instantModel) Stream(_ context.Context, req *model.Request, onDelta func(model.Delta)) (*model.Response, error) {
	if strings.HasPrefix(req.System, "You condense") {
		return says("a short summary"), nil
	}
	m.asked++
	if m.asked%m.turns == 0 {
		return says("done"), nil
	}
	onDelta(model.Delta{Text: m.text})
	r := calls("read", m.args)
	r.Message.Parts[0].ToolCall.ID = fmt.Sprint("c", m.asked)
	return r, nil
}

// nowhere is a log that keeps nothing.
type nowhere struct{ n int64 }

func (l *nowhere) Append(d event.Draft) (event.Event, error) {
	l.n++
	return event.Event{Seq: l.n, Payload: d.Payload}, nil
}
func (l *nowhere) AppendDurable(d event.Draft) (event.Event, error) { return l.Append(d) }
func (l *nowhere) Sign() error                                      { return nil }

// lightGate records nothing and remembers nothing.
type lightGate struct{ *fakeGate }

func (g lightGate) Judge(ctx context.Context, p agent.Proposal) agent.Ruling {
	r := g.fakeGate.Judge(ctx, p)
	g.judged = g.judged[:0]
	return r
}

func (g lightGate) Finish(_ context.Context, o agent.Outcome) (agent.Final, error) {
	return agent.Final{Content: o.Content, IsError: o.IsError}, nil
}

// loopOf returns a loop whose runs have so many turns.
func loopOf(tb testing.TB, turns int, set func(o *agent.Options)) *agent.Loop {
	result := strings.Repeat("r", 2000)
	b := setup(tb, func(context.Context, tool.Grant) tool.Result { return tool.OK(result) })
	b.opts.Model.Client = &instantModel{turns: turns, args: `{"path":"a.go"}`, text: "let me see"}
	b.opts.Gate, b.opts.Log = lightGate{b.gate}, &nowhere{}
	if set != nil {
		set(&b.opts)
	}
	return agent.New(b.opts)
}

// settings are the ways in which a run of many turns is measured.
func settings() map[string]func(o *agent.Options) {
	return map[string]func(o *agent.Options){
		"plain": nil,
		"window": func(o *agent.Options) {
			o.Model.Window, o.Context.Auto, o.Context.StubBytes = 32_000, true, 1000
		},
		"extensions": func(o *agent.Options) { o.Extensions = &fakeExtensions{} },
	}
}

// BenchmarkTurns runs an instantaneous model for so many turns. What a turn costs
// must not depend on how many there are: growth of ns/turn or B/turn with N is
// quadratic growth of the run.
func BenchmarkTurns(b *testing.B) {
	all := settings()
	for _, name := range []string{"plain", "window", "extensions"} {
		for _, turns := range []int{50, 100, 200, 400, 500} {
			b.Run(fmt.Sprintf("%s/%d", name, turns), func(b *testing.B) {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				for b.Loop() {
					l := loopOf(b, turns, all[name])
					if res := l.Run(b.Context(), agent.Prompt{Text: "go"}); res.Reason != agent.ReasonCompleted || res.Turns != turns {
						b.Fatalf("%d turns, %s (%s)", res.Turns, res.Reason, res.Detail)
					}
				}
				runtime.ReadMemStats(&after)
				n := float64(b.N * turns)
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/n, "ns/turn")
				b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/n, "B/turn")
			})
		}
	}
}

// TestTurnsCostTheSame holds that a turn of a long run allocates no more than one of
// a short one.
func TestTurnsCostTheSame(t *testing.T) {
	for name, set := range settings() {
		perTurn := func(turns int) uint64 {
			l := loopOf(t, turns, set)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			want(t, l.Run(t.Context(), agent.Prompt{Text: "go"}), agent.ReasonCompleted)
			runtime.ReadMemStats(&after)
			return (after.TotalAlloc - before.TotalAlloc) / uint64(turns)
		}
		short, long := perTurn(100), perTurn(1600)
		if long > 2*short {
			t.Errorf("%s: %d bytes a turn in 100 turns, %d in 1600", name, short, long)
		}
	}
}
