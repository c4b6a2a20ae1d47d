package agent_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/abhed/abhed/internal/agent"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func want(t *testing.T, got agent.Result, reason agent.Reason) {
	t.Helper()
	if got.Reason != reason {
		t.Fatalf("the run ended with %s (%s), want %s", got.Reason, got.Detail, reason)
	}
}

func TestAnswersAndResultsInOrder(t *testing.T) {
	// Three reads run side by side: each waits for the other two.
	var all sync.WaitGroup
	all.Add(3)
	run := func(_ context.Context, g tool.Grant) tool.Result {
		all.Done()
		all.Wait()
		return tool.OK("did " + g.Call().ID)
	}
	b := setup(t, run, calls("read", "{}", "read", "{}", "read", "{}"), says("done"))
	res := b.run(t.Context())
	want(t, res, agent.ReasonCompleted)
	if res.Text != "done" || res.Turns != 2 {
		t.Errorf("text %q after %d turns", res.Text, res.Turns)
	}
	var got []string
	for _, m := range b.model.asked[1].Messages[2:] {
		got = append(got, m.Parts[0].ToolResult.CallID+"="+m.Parts[0].ToolResult.Content)
	}
	if w := []string{"c1=did c1", "c2=did c2", "c3=did c3"}; !slices.Equal(got, w) {
		t.Errorf("the model read %v, want %v", got, w)
	}
	if b.log.signed != 2 {
		t.Errorf("the head was signed %d times in two turns", b.log.signed)
	}
}

func TestMutatingCallRunsAlone(t *testing.T) {
	var running, worst atomic.Int64
	run := func(_ context.Context, g tool.Grant) tool.Result {
		n := running.Add(1)
		defer running.Add(-1)
		if g.Call().Tool == "write" {
			worst.Store(max(worst.Load(), n))
		}
		return tool.OK("")
	}
	for range 50 {
		b := setup(t, run, calls("read", "{}", "read", "{}", "write", "{}", "read", "{}", "write", "{}"), says("done"))
		want(t, b.run(t.Context()), agent.ReasonCompleted)
	}
	if worst.Load() != 1 {
		t.Errorf("a write ran beside %d other calls", worst.Load()-1)
	}
}

// TestMutatingCallsOfTwoAgents runs two loops that share Serial: their reads run side
// by side, each waiting for the other's, their writes one by one.
func TestMutatingCallsOfTwoAgents(t *testing.T) {
	var reads, agents sync.WaitGroup
	reads.Add(2)
	serial := make(chan struct{}, 1)
	var writing, worst, wrote atomic.Int64
	run := func(_ context.Context, g tool.Grant) tool.Result {
		if g.Call().Tool == "read" {
			reads.Done()
			reads.Wait()
			return tool.OK("")
		}
		worst.Store(max(worst.Load(), writing.Add(1)))
		runtime.Gosched()
		writing.Add(-1)
		wrote.Add(1)
		return tool.OK("")
	}
	for range 2 {
		replies := []any{calls("read", "{}")}
		for range 100 {
			replies = append(replies, calls("write", "{}"))
		}
		b := setup(t, run, append(replies, says("done"))...)
		b.opts.Serial = serial
		agents.Go(func() {
			if res := b.run(t.Context()); res.Reason != agent.ReasonCompleted {
				t.Errorf("the run ended with %s (%s)", res.Reason, res.Detail)
			}
		})
	}
	agents.Wait()
	if worst.Load() != 1 || wrote.Load() != 200 {
		t.Errorf("%d of %d writes ran at once", worst.Load(), wrote.Load())
	}
}

// TestCallsAreJudgedOnTheStateTheyMeet holds that a call is judged only once every
// mutating call before it has ended, and a reading one beside those that read.
func TestCallsAreJudgedOnTheStateTheyMeet(t *testing.T) {
	var writing atomic.Bool
	reading := make(chan struct{})
	run := func(_ context.Context, g tool.Grant) tool.Result {
		if g.Call().Tool == "read" {
			<-reading
			return tool.OK("")
		}
		writing.Store(true)
		runtime.Gosched()
		writing.Store(false)
		return tool.OK("")
	}
	b := setup(t, run, calls("write", "{}", "read", "{}", "read", "{}", "write", "{}", "read", "{}"), says("done"))
	b.gate.rule = func(p agent.Proposal) agent.Ruling {
		if writing.Load() {
			t.Errorf("%s was judged while a mutating call ran", p.Call.ID)
		}
		if p.Call.ID == "c3" { // c2 runs still, and is waited for by c4 alone
			close(reading)
		}
		return nil
	}
	want(t, b.run(t.Context()), agent.ReasonCompleted)
	if len(b.gate.judged) != 5 {
		t.Errorf("judged %v", b.gate.judged)
	}
}

func TestWorkDirReachesTheNextCall(t *testing.T) {
	run := func(_ context.Context, g tool.Grant) tool.Result {
		return tool.Result{Content: g.Call().WorkDir, WorkDir: g.Call().WorkDir + "/sub"}
	}
	b := setup(t, run, calls("write", "{}", "write", "{}"), calls("read", "{}"), says("done"))
	want(t, b.run(t.Context()), agent.ReasonCompleted)
	var dirs []string
	for _, e := range of[*event.ToolEnded](b.log) {
		dirs = append(dirs, e.Content)
	}
	if w := []string{"/w", "/w/sub", "/w/sub/sub"}; !slices.Equal(dirs, w) {
		t.Errorf("the calls ran in %v, want %v", dirs, w)
	}
}

func TestSameCallRefusedThreeTimes(t *testing.T) {
	refuse := func(p agent.Proposal) agent.Ruling {
		if p.Call.Name == "write" {
			return &agent.Refused{Text: "no", Same: p.Call.Args}
		}
		return nil
	}
	b := setup(t, nil, calls("write", "1"), calls("write", "1"), calls("write", "1"), says("never asked"))
	b.gate.rule = refuse
	want(t, b.run(t.Context()), agent.ReasonDeniedLoop)

	b = setup(t, nil, calls("write", "1"), calls("write", "1"), calls("read", "{}"), calls("write", "1"), says("done"))
	b.gate.rule = refuse
	want(t, b.run(t.Context()), agent.ReasonCompleted)
}

func TestRetriesAreBoundedAndRecorded(t *testing.T) {
	server := &model.Error{Kind: model.ErrServer, Status: 500, Endpoint: "http://x", Detail: "oops"}
	limited := &model.Error{Kind: model.ErrRateLimit, Status: 429, RetryAfter: 7 * time.Second, Endpoint: "http://x"}
	stalled := &model.Error{Kind: model.ErrStalled, Endpoint: "http://x"}
	tests := []struct {
		name    string
		replies []any
		reason  agent.Reason
		slept   []time.Duration
	}{
		{"then an answer", []any{server, limited, says("hi")}, agent.ReasonCompleted, []time.Duration{time.Second, 7 * time.Second}},
		{"always", []any{server, server, server, server, server, says("late")}, agent.ReasonRetryExhausted, []time.Duration{1e9, 2e9, 4e9, 8e9}},
		{"stalls", []any{stalled, stalled, stalled, stalled, stalled}, agent.ReasonStalled, []time.Duration{1e9, 2e9, 4e9, 8e9}},
		{"refused credentials", []any{&model.Error{Kind: model.ErrAuth, Status: 401}, says("late")}, agent.ReasonError, nil},
		{"asked to wait too long", []any{&model.Error{Kind: model.ErrRateLimit, RetryAfter: time.Hour}, says("late")}, agent.ReasonRetryExhausted, nil},
		{"unknown failure", []any{fmt.Errorf("odd"), says("late")}, agent.ReasonError, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := setup(t, nil, tt.replies...)
			want(t, b.run(t.Context()), tt.reason)
			if !slices.Equal(b.slept, tt.slept) {
				t.Errorf("waited %v, want %v", b.slept, tt.slept)
			}
			failed := of[*event.ModelFailed](b.log)
			if tt.reason != agent.ReasonCompleted && (len(failed) == 0 || !failed[len(failed)-1].Final) {
				t.Errorf("the record doesn't say that the last failure was final: %+v", failed)
			}
		})
	}
}

func TestCutRepliesRunNothing(t *testing.T) {
	cut := func() *model.Response {
		r := says("half")
		r.Finish = model.FinishLength
		return r
	}
	b := setup(t, nil, cut(), cut(), says("done"))
	want(t, b.run(t.Context()), agent.ReasonCompleted)
	last := b.model.asked[2].Messages
	if text := last[len(last)-1].Text(); !strings.Contains(text, "cut off at the output limit") {
		t.Errorf("the model was told %q", text)
	}
	b = setup(t, nil, cut(), cut(), cut(), says("never"))
	want(t, b.run(t.Context()), agent.ReasonError)
}

func TestLimits(t *testing.T) {
	n := func(v int64) *int64 { return &v }
	many := func() []any {
		var r []any
		for range 10 {
			c := calls("read", "{}")
			c.Usage = &model.Usage{Input: n(40), Output: n(10)}
			r = append(r, c)
		}
		return r
	}
	b := setup(t, nil, many()...)
	b.opts.Limits.Turns = 3
	res := b.run(t.Context())
	want(t, res, agent.ReasonMaxTurns)
	if res.Turns != 3 {
		t.Errorf("%d turns", res.Turns)
	}
	b = setup(t, nil, many()...)
	b.opts.Limits.Tokens = 100
	res = b.run(t.Context())
	want(t, res, agent.ReasonMaxTokens)
	if res.Turns != 2 || *res.Usage.Input != 80 {
		t.Errorf("%d turns, usage %d", res.Turns, *res.Usage.Input)
	}
	b = setup(t, nil, many()...)
	b.opts.Limits.CostUSD, b.opts.Model.Price = 0.0005, &agent.Price{Input: 5, Output: 10} // 0.0003 a reply
	res = b.run(t.Context())
	want(t, res, agent.ReasonMaxCost)
	if res.Turns != 2 {
		t.Errorf("%d turns", res.Turns)
	}
	unknown := many()
	for _, r := range unknown {
		r.(*model.Response).Usage = nil
	}
	b = setup(t, func(context.Context, tool.Grant) tool.Result { return tool.OK(strings.Repeat("x", 400)) }, unknown...)
	b.opts.Limits.Tokens = 100
	want(t, b.run(t.Context()), agent.ReasonMaxTokens)
}

func TestTimeLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, nil, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		b.opts.Limits.Time = time.Minute
		began := time.Now()
		want(t, b.run(t.Context()), agent.ReasonMaxTime)
		if took := time.Since(began); took != time.Minute {
			t.Errorf("ended after %s", took)
		}
	})
}

// TestRecordFailureStopsEverything lets the record fail at each append in turn:
// a tool may only have run if its start was recorded.
func TestRecordFailureStopsEverything(t *testing.T) {
	for at := 1; ; at++ {
		var ran atomic.Int64
		run := func(context.Context, tool.Grant) tool.Result { ran.Add(1); return tool.OK("") }
		b := setup(t, run, calls("write", "{}"), says("done"))
		b.log.failAt = at
		res := b.run(t.Context())
		if started := len(of[*event.ToolStarted](b.log)); int(ran.Load()) != started {
			t.Errorf("append %d failed: the tool ran %d times, %d starts are recorded", at, ran.Load(), started)
		}
		if !b.log.failed {
			want(t, res, agent.ReasonCompleted)
			if at < 8 {
				t.Errorf("a whole run has only %d events", len(b.log.events))
			}
			return
		}
		want(t, res, agent.ReasonError)
	}
}

func TestInterruptLeavesNoCallOpen(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	run := func(context.Context, tool.Grant) tool.Result {
		cancel(&agent.Interrupted{Reason: agent.ReasonShutdown})
		return tool.OK("half")
	}
	b := setup(t, run, calls("write", "{}", "write", "{}", "read", "{}"), says("never"))
	want(t, b.run(ctx), agent.ReasonShutdown)
	var got []string
	for _, e := range of[*event.ToolEnded](b.log) {
		got = append(got, e.CallID+" "+e.Outcome)
	}
	if w := []string{"c1 cancelled", "c2 cancelled", "c3 cancelled"}; !slices.Equal(got, w) {
		t.Errorf("outcomes %v, want %v", got, w)
	}
	if len(b.model.asked) != 1 {
		t.Errorf("%d model requests after the interrupt", len(b.model.asked)-1)
	}
	if !slices.Equal(b.gate.judged, []string{"c1"}) {
		t.Errorf("calls %v were judged", b.gate.judged)
	}
}

func TestStopEndsTheRun(t *testing.T) {
	b := setup(t, nil, calls("write", "{}", "write", "{}"), says("never"))
	b.gate.stop = "enough"
	res := b.run(t.Context())
	want(t, res, agent.ReasonStopped)
	if res.Detail != "enough" || len(of[*event.ToolStarted](b.log)) != 1 {
		t.Errorf("detail %q, %d calls started", res.Detail, len(of[*event.ToolStarted](b.log)))
	}
	b = setup(t, nil, calls("write", "{}"), says("never"))
	b.gate.rule = func(agent.Proposal) agent.Ruling { return &agent.Stopped{By: "backend x", Reason: "no more"} }
	want(t, b.run(t.Context()), agent.ReasonStopped)
}

func TestSuppliedResultIsReadInstead(t *testing.T) {
	b := setup(t, nil, calls("write", "{}"), says("done"))
	b.gate.rule = func(agent.Proposal) agent.Ruling { return &agent.Supplied{Content: "as if", By: "backend x"} }
	want(t, b.run(t.Context()), agent.ReasonCompleted)
	if got := b.model.asked[1].Messages[2].Parts[0].ToolResult.Content; got != "as if" {
		t.Errorf("the model read %q", got)
	}
	if n := len(of[*event.ToolStarted](b.log)); n != 0 {
		t.Errorf("%d tools started", n)
	}
}
