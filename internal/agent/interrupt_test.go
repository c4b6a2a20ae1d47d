package agent_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/agent"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/tool"
)

// TestInterruptWithOneOfThreeCallsDone interrupts while the second of three calls
// runs (I209). Each has one outcome, the model's request of an interrupted stream has
// ended before the run does, and a strict model takes the next prompt. The sibling
// case interrupts after the first result, before the second call is judged.
func TestInterruptWithOneOfThreeCallsDone(t *testing.T) {
	for _, during := range []string{"c2", "c1"} {
		ctx, cancel := context.WithCancel(t.Context())
		run := func(ctx context.Context, g tool.Grant) tool.Result {
			if g.Call().ID == during {
				cancel()
				<-ctx.Done()
				return tool.OK("half")
			}
			return tool.OK("did " + g.Call().ID)
		}
		b := setup(t, run, calls("write", "{}", "write", "{}", "write", "{}"), says("done"))
		l := agent.New(b.opts)
		want(t, l.Run(ctx, agent.Prompt{Text: "go"}), agent.ReasonUserInterrupt)
		var got []string
		for _, e := range of[*event.ToolEnded](b.log) {
			got = append(got, e.CallID+" "+e.Outcome)
		}
		w := []string{"c1 ok", "c2 cancelled", "c3 cancelled"}
		if during == "c1" {
			w[0] = "c1 cancelled"
		}
		if !slices.Equal(got, w) {
			t.Errorf("outcomes %v, want %v", got, w)
		}
		started := map[string]int{"c1": 1, "c2": 2}[during]
		if n := len(of[*event.ToolStarted](b.log)); n != started || len(b.gate.judged) != started {
			t.Errorf("%d calls were started, %v judged, want %d", n, b.gate.judged, started)
		}
		want(t, l.Run(t.Context(), agent.Prompt{Text: "go on"}), agent.ReasonCompleted)
		sent := texts(b.model.last().Messages)
		if len(sent) != 6 || sent[0] != "go" || sent[5] != "go on" || !strings.Contains(sent[4], "Not run") || during == "c2" && (sent[2] != "c1=did c1" || sent[3] != "c2=half") {
			t.Errorf("the model was sent %q", sent)
		}
	}
}

// TestInterruptEndsTheRequest holds that the request of an interrupted stream is
// cancelled, and has returned before the run does (I209).
func TestInterruptEndsTheRequest(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var ended atomic.Bool
	b := setup(t, nil, func(ctx context.Context) error {
		cancel()
		<-ctx.Done()
		ended.Store(true)
		return ctx.Err()
	}, says("done"))
	l := agent.New(b.opts)
	want(t, l.Run(ctx, agent.Prompt{Text: "go"}), agent.ReasonUserInterrupt)
	if !ended.Load() || len(of[*event.ModelFailed](b.log)) != 0 {
		t.Errorf("the request ended: %v, failures recorded %d", ended.Load(), len(of[*event.ModelFailed](b.log)))
	}
	want(t, l.Run(t.Context(), agent.Prompt{Text: "go on"}), agent.ReasonCompleted)
}

// counts is what a run has set off so far.
type counts struct{ requests, starts, runs int }

// TestNothingStartsAfterAnInterrupt interrupts at every place where the loop waits
// for somebody, or is between two steps, and counts (I208): whoever is asked answers
// as if nothing had happened, as one does that didn't notice.
func TestNothingStartsAfterAnInterrupt(t *testing.T) {
	places := []string{"stream", "stream that answers", "tool", "side by side", "gate", "between calls", "sleep", "extension begin", "extension select", "submit"}
	for _, moment := range []ahp.EventType{ahp.UserMessageInbound, ahp.TurnStart, ahp.ModelRequestBefore, ahp.ModelResponseAfter, ahp.ToolBatchAfter, ahp.WorkspaceChangeBefore} {
		places = append(places, string(moment))
	}
	for _, place := range places {
		t.Run(place, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var b *bench
			var runs atomic.Int64
			now := func() counts {
				return counts{len(b.model.asked), len(of[*event.ToolStarted](b.log)), int(runs.Load())}
			}
			var once sync.Once
			var at counts
			reached := false
			interrupt := func(here string) {
				if here == place {
					once.Do(func() { cancel(); at, reached = now(), true })
				}
			}
			b = interruptible(t, place, &runs, interrupt)
			res := agent.New(b.opts).Run(ctx, agent.Prompt{Text: "go"})
			want(t, res, agent.ReasonUserInterrupt)
			if !reached || now() != at {
				t.Errorf("reached %v; at the interrupt %+v, at the end %+v", reached, at, now())
			}
			if n := len(of[*event.ModelRequested](b.log)); n != at.requests {
				t.Errorf("%d requests are recorded, %d were made", n, at.requests)
			}
		})
	}
}

// interruptible returns a bench in which everybody calls interrupt with the name of
// the place.
func interruptible(t *testing.T, place string, runs *atomic.Int64, interrupt func(string)) *bench {
	t.Helper()
	var b *bench
	began := make(chan struct{})
	run := func(_ context.Context, g tool.Grant) tool.Result {
		runs.Add(1)
		interrupt("tool")
		if g.Call().ID == "c1" {
			close(began)
		}
		return tool.Result{Content: "ok", WorkDir: g.Call().WorkDir + "/x"}
	}
	kind := "write"
	if place == "side by side" {
		kind = "read"
	}
	first := any(calls(kind, "{}", kind, "{}", kind, "{}"))
	switch place {
	case "stream":
		first = func(ctx context.Context) error { interrupt("stream"); <-ctx.Done(); return ctx.Err() }
	case "stream that answers":
		was := first.(*model.Response)
		first = func() *model.Response { interrupt(place); return was }
	}
	b = setup(t, run, first, &model.Error{Kind: model.ErrServer, Status: 500}, says("done"))
	if place == "sleep" {
		b.model.replies = b.model.replies[1:]
	}
	sleep := b.opts.Sleep
	b.opts.Sleep = func(ctx context.Context, d time.Duration) error { interrupt("sleep"); return sleep(ctx, d) }
	b.gate.rule = func(p agent.Proposal) agent.Ruling {
		if p.Call.ID == "c1" {
			interrupt("gate")
		}
		if p.Call.ID == "c2" && place == "side by side" {
			<-began // the first is running by now
			interrupt(place)
		}
		return nil
	}
	b.opts.Gate = finishGate{b.gate, func() { interrupt("between calls") }}
	b.opts.Hooks = &fakeHooks{ask: func(_ agent.At, m agent.Moment) *agent.Say {
		interrupt(string(m.EventType()))
		return nil
	}}
	b.opts.Extensions = &fakeExtensions{
		submit: func(string) *agent.Refusal { interrupt("submit"); return nil },
		begin:  func(context.Context) *agent.Refusal { interrupt("extension begin"); return nil },
		choose: func(_ context.Context, m []*model.Message) []*model.Message { interrupt("extension select"); return m },
	}
	return b
}

// finishGate calls first when a call is finished.
type finishGate struct {
	agent.Gate
	first func()
}

func (g finishGate) Finish(ctx context.Context, o agent.Outcome) (agent.Final, error) {
	g.first()
	return g.Gate.Finish(ctx, o)
}

// TestWaitingCallIsNotStartedAfterAnInterrupt lets calls wait for room, and for the
// mutating call of another agent, when the run is interrupted (I208).
func TestWaitingCallIsNotStartedAfterAnInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	const n = 12 // more than run side by side
	var nameArgs []string
	for range n {
		nameArgs = append(nameArgs, "read", "{}")
	}
	var running atomic.Int64
	run := func(ctx context.Context, _ tool.Grant) tool.Result {
		if running.Add(1) == 8 {
			cancel()
		}
		<-ctx.Done()
		return tool.OK("half")
	}
	b := setup(t, run, calls(nameArgs...), says("done"))
	l := agent.New(b.opts)
	want(t, l.Run(ctx, agent.Prompt{Text: "go"}), agent.ReasonUserInterrupt)
	if running.Load() != 8 || len(of[*event.ToolStarted](b.log)) != 8 || len(of[*event.ToolEnded](b.log)) != n {
		t.Errorf("%d ran, %d were started, %d ended", running.Load(), len(of[*event.ToolStarted](b.log)), len(of[*event.ToolEnded](b.log)))
	}
	want(t, l.Run(t.Context(), agent.Prompt{Text: "go on"}), agent.ReasonCompleted)

	ctx, cancel = context.WithCancel(t.Context())
	serial := make(chan struct{}, 1)
	serial <- struct{}{}
	b = setup(t, nil, calls("write", "{}"), says("done"))
	b.opts.Serial = serial
	var other sync.WaitGroup
	b.gate.rule = func(agent.Proposal) agent.Ruling {
		other.Go(func() { // the other agent's call goes on
			time.Sleep(time.Millisecond)
			cancel()
		})
		return nil
	}
	want(t, agent.New(b.opts).Run(ctx, agent.Prompt{Text: "go"}), agent.ReasonUserInterrupt)
	other.Wait()
	if s := fmt.Sprintf("%d %s", len(of[*event.ToolStarted](b.log)), of[*event.ToolEnded](b.log)[0].Outcome); s != "0 cancelled" {
		t.Errorf("starts and outcome %s", s)
	}
}
