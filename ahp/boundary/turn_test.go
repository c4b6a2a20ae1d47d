package boundary_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/boundary"
)

func start(t *testing.T, w *world, in boundary.TurnInput) *boundary.Turn {
	t.Helper()
	r, err := w.TurnStart(t.Context(), in)
	if err != nil || r.Status != boundary.Passed || r.Turn == nil {
		t.Fatalf("%+v, %v", r, err)
	}
	return r.Turn
}

func TestTurnStart(t *testing.T) {
	prompt := []ahp.Message{ahp.TextMessage("u", ahp.RoleUser, "hello")}
	edit := &ahp.Modify{Target: ahp.TargetPrompt, Operation: ahp.OpMerge, Value: ahp.Raw(messageValue(ahp.RoleUser, "too"))}
	inject := &ahp.Inject{DeliverAt: ahp.DeliverNow, Messages: []ahp.Message{ahp.TextMessage("i", ahp.RoleDeveloper, "mind")}}
	var cancel context.CancelFunc
	for _, tt := range []struct {
		name   string
		judge  ahptest.Judge
		status boundary.Status
		texts  []string
	}{
		{"passed", nil, boundary.Passed, []string{"hello"}},
		{"edited", at(ahp.TurnStart, inject, edit), boundary.Passed, []string{"hello", "too", "mind"}},
		{"denied", at(ahp.TurnStart, deny), boundary.Denied, nil},
		{"nobody to ask", failsAt(ahp.TurnStart), boundary.Denied, nil},
		{"stopped", at(ahp.TurnStart, stop), boundary.Stopped, nil},
		{"cancelled", cancelsAt(ahp.TurnStart, &cancel), boundary.Interrupted, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var ctx context.Context
			ctx, cancel = context.WithCancel(t.Context())
			defer cancel()
			w := newWorld(t, boundary.Options{}, tt.judge)
			r, err := w.TurnStart(ctx, boundary.TurnInput{Messages: prompt})
			if err != nil || r.Status != tt.status || (r.Turn != nil) != (tt.status == boundary.Passed) {
				t.Errorf("%s, turn %v, %v", r.Status, r.Turn, err)
			}
			wantTexts(t, r.Messages, tt.texts...)
		})
	}
}

func TestTurnFinish(t *testing.T) {
	edit := &ahp.Modify{Target: ahp.TargetResponse, Operation: ahp.OpReplace, Value: ahp.Raw(messageValue(ahp.RoleAssistant, "edited"))}
	var cancel context.CancelFunc
	for _, tt := range []struct {
		name    string
		judge   ahptest.Judge
		status  boundary.Status
		outcome string
		text    []string
	}{
		{"passed", nil, boundary.Passed, "completed", []string{"bye"}},
		{"edited", at(ahp.TurnFinishBefore, edit), boundary.Passed, "completed", []string{"edited"}},
		{"stopped", at(ahp.TurnFinishBefore, stop), boundary.Passed, "completed", []string{"bye"}},
		{"nobody to ask", failsAt(ahp.TurnFinishBefore), boundary.Withheld, "completed", nil},
		{"cancelled", cancelsAt(ahp.TurnFinishBefore, &cancel), boundary.Interrupted, "cancelled", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var ctx context.Context
			ctx, cancel = context.WithCancel(t.Context())
			defer cancel()
			w := newWorld(t, boundary.Options{}, tt.judge)
			turn := start(t, w, boundary.TurnInput{})
			r, err := w.TurnFinish(ctx, turn, boundary.Finish{Outcome: "completed", Messages: []ahp.Message{ahp.TextMessage("a", ahp.RoleAssistant, "bye")}, LastAssistantItem: "a"})
			if err != nil || r.Status != tt.status {
				t.Errorf("%s, %v", r.Status, err)
			}
			wantTexts(t, r.Messages, tt.text...)
			types, events := w.observed(t)
			end := events[len(events)-1]
			if i := slices.Index(types, ahp.TurnEnd); i < 0 || events[i].Outcome != tt.outcome {
				t.Fatalf("observed %q, the last %q", types, end.Outcome)
			} else {
				wantTexts(t, events[i].Items.Messages, tt.text...)
			}
		})
	}
	if _, err := newWorld(t, boundary.Options{}).TurnFinish(t.Context(), nil, boundary.Finish{Outcome: "completed"}); err == nil {
		t.Error("no turn was finished")
	}
}

// TestContinuations holds that a turn, its tools and the turn that continues it
// share one allowance, which the backends are told (§9, §11, 8).
func TestContinuations(t *testing.T) {
	asked := func(_ context.Context, q *ahp.Intercept) ([]ahp.Effect, error) {
		f := q.Capabilities.Flow
		if f == nil || !slices.Contains(f.Operations, ahp.FlowContinue) || *f.RemainingContinuations == 0 {
			return nil, nil
		}
		return []ahp.Effect{again}, nil
	}
	w := newWorld(t, boundary.Options{MaxContinuations: 3}, asked, asked) // two ask, and one step is paid for
	turn := start(t, w, boundary.TurnInput{})
	call := func(turn *boundary.Turn) boundary.ToolResult {
		r, err := w.Tool(t.Context(), boundary.ToolCall{Name: "bash", Input: ahp.Raw(input), Turn: turn}, func(context.Context, ahp.Raw) (boundary.ToolOutput, error) {
			return boundary.ToolOutput{}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	finish := func(turn *boundary.Turn) boundary.FinishResult {
		r, err := w.TurnFinish(t.Context(), turn, boundary.Finish{Outcome: "completed"})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := call(nil); r.Continue {
		t.Error("a call outside of any turn is continued")
	}
	if r := call(turn); !r.Continue || len(r.Instructions) != 2 {
		t.Errorf("the tool: %v, %q", r.Continue, r.Instructions)
	}
	if r := finish(turn); !r.Continue {
		t.Error("the finish isn't continued")
	}
	next := start(t, w, boundary.TurnInput{Continues: turn})
	if r := finish(next); !r.Continue {
		t.Error("the next turn isn't continued")
	}
	if count, left := next.Continuations(); count != 3 || left != 0 {
		t.Errorf("%d granted, %d left", count, left)
	}
	if r := finish(next); r.Continue || r.Status != boundary.Passed {
		t.Errorf("continued beyond the allowance, or %s", r.Status)
	}
	var counts []int64
	for _, q := range w.fakes[0].Requests() {
		if q.Event.Type == ahp.TurnFinishBefore {
			f := q.Capabilities.Flow
			counts = append(counts, q.Event.ContinuationCount, *f.ContinuationCount, *f.RemainingContinuations)
		}
	}
	if want := []int64{1, 1, 2, 2, 2, 1, 3, 3, 0}; !slices.Equal(counts, want) {
		t.Errorf("told %v, want %v", counts, want)
	}
	types, events := w.observed(t)
	if ends := checkTurns(t, events); ends != 1 {
		t.Errorf("%d turns ended: %q", ends, types)
	}
}

// checkTurns holds that a turn after the first continues what was finished before,
// and returns how many turns ended.
func checkTurns(t *testing.T, events []*ahp.Event) (ends int) {
	t.Helper()
	finished := ""
	for i, e := range events {
		switch {
		case e.Type == ahp.TurnEnd:
			ends++
		case e.Type == ahp.TurnFinishBefore:
			finished = e.ID
		case e.Type == ahp.TurnStart && i > 0 && (e.Trigger != "continuation" || e.ParentEventID != finished):
			t.Errorf("the next turn has trigger %q and parent %q", e.Trigger, e.ParentEventID)
		}
	}
	return ends
}

// TestUnusedStepsComeBack holds that asking costs nothing.
func TestUnusedStepsComeBack(t *testing.T) {
	w := newWorld(t, boundary.Options{MaxContinuations: 1}, both(failsAt(ahp.TurnFinishBefore)))
	turn := start(t, w, boundary.TurnInput{ID: "t"})
	for range 3 {
		if _, err := w.Tool(t.Context(), boundary.ToolCall{Name: "bash", Input: ahp.Raw(input), Turn: turn}, func(context.Context, ahp.Raw) (boundary.ToolOutput, error) {
			return boundary.ToolOutput{}, nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	if r, err := w.TurnFinish(t.Context(), turn, boundary.Finish{Outcome: "completed"}); err != nil || r.Status != boundary.Withheld {
		t.Errorf("%s, %v", r.Status, err)
	}
	if count, left := turn.Continuations(); count != 0 || left != 1 || turn.ID() != "t" {
		t.Errorf("%d granted, %d left", count, left)
	}
}

// TestAllowanceIsNeverOverdrawn has calls at the same time ask for the last step.
func TestAllowanceIsNeverOverdrawn(t *testing.T) {
	asked := func(_ context.Context, q *ahp.Intercept) ([]ahp.Effect, error) {
		if f := q.Capabilities.Flow; q.Event.Type == ahp.ToolAfter && *f.RemainingContinuations > 0 {
			return []ahp.Effect{again}, nil
		}
		return nil, nil
	}
	w := newWorld(t, boundary.Options{MaxContinuations: 2}, asked)
	turn := start(t, w, boundary.TurnInput{})
	var all sync.WaitGroup
	var mu sync.Mutex
	granted := 0
	for range 8 {
		all.Go(func() {
			r, err := w.Tool(t.Context(), boundary.ToolCall{Name: "bash", Input: ahp.Raw(input), Turn: turn}, func(context.Context, ahp.Raw) (boundary.ToolOutput, error) {
				return boundary.ToolOutput{}, nil
			})
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			}
			if r.Continue {
				granted++
			}
		})
	}
	all.Wait()
	if count, left := turn.Continuations(); granted != 2 || count != 2 || left != 0 {
		t.Errorf("%d granted, counted %d, %d left", granted, count, left)
	}
}

func TestUserMessages(t *testing.T) {
	hello := []ahp.Message{ahp.TextMessage("u", ahp.RoleUser, "hello")}
	bye := []ahp.Message{ahp.TextMessage("a", ahp.RoleAssistant, "bye")}
	edit := func(target ahp.Target, role ahp.Role) *ahp.Modify {
		return &ahp.Modify{Target: target, Operation: ahp.OpReplace, Value: ahp.Raw(messageValue(role, "edited"))}
	}
	for _, tt := range []struct {
		name    string
		in, out ahptest.Judge
		status  boundary.Status
		text    []string
	}{
		{"edited", at(ahp.UserMessageInbound, edit(ahp.TargetPrompt, ahp.RoleUser)), at(ahp.UserMessageOutbound, edit(ahp.TargetContent, ahp.RoleAssistant)), boundary.Passed, []string{"edited"}},
		{"denied", at(ahp.UserMessageInbound, deny), at(ahp.UserMessageOutbound, deny), boundary.Denied, nil},
		{"edited into a breach", at(ahp.UserMessageInbound, edit(ahp.TargetPrompt, ahp.RoleSystem)), at(ahp.UserMessageOutbound, edit(ahp.TargetContent, ahp.RoleUser)), boundary.Denied, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, boundary.Options{}, both(tt.in, tt.out))
			r, err := w.Inbound(t.Context(), ahp.UserMessage{Channel: "cli", Sender: "me", Messages: hello})
			if err != nil || r.Status != tt.status {
				t.Errorf("in: %s, %v", r.Status, err)
			}
			wantTexts(t, r.Messages, tt.text...)
			r, err = w.Outbound(t.Context(), ahp.UserMessage{Channel: "cli", Messages: bye})
			if err != nil || r.Status != tt.status {
				t.Errorf("out: %s, %v", r.Status, err)
			}
			wantTexts(t, r.Messages, tt.text...)
		})
	}
	w := newWorld(t, boundary.Options{})
	if r, err := w.Inbound(t.Context(), ahp.UserMessage{Channel: "cli", Messages: hello}); err == nil || r.OK() {
		t.Error("a message of nobody passed")
	}
}

func TestSession(t *testing.T) {
	inject := &ahp.Inject{DeliverAt: ahp.DeliverNow, Messages: []ahp.Message{ahp.TextMessage("i", ahp.RoleDeveloper, "mind")}}
	w := newWorld(t, boundary.Options{}, at(ahp.SessionStart, inject, &ahp.Notice{Text: "hi"}))
	r, err := w.Start(t.Context(), boundary.SessionStart{Harness: ahp.HarnessInfo{Name: "h", Version: "1"}, PermissionMode: "default"})
	if err != nil || r.Status != boundary.Passed || !slices.Equal(r.Notices, []string{"hi"}) {
		t.Errorf("%+v, %v", r, err)
	}
	wantTexts(t, r.Messages, "mind")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.End(ctx, "cancelled", "the user left", map[string]int64{"tools": 2}); err != nil {
		t.Error(err)
	}
	types, events := w.observed(t)
	if !slices.Equal(types, []ahp.EventType{ahp.SessionStart, ahp.SessionEnd}) || events[0].Manifest == nil || events[0].Trigger != "startup" || events[1].Counters["tools"] != 2 {
		t.Errorf("observed %q", types)
	}
	w = newWorld(t, boundary.Options{}, failsAt(ahp.SessionStart))
	if r, err := w.Start(t.Context(), boundary.SessionStart{Harness: ahp.HarnessInfo{Name: "h", Version: "1"}}); err != nil || r.Status != boundary.Denied {
		t.Errorf("%s, %v", r.Status, err)
	}
	bare, err := boundary.New(w.h, boundary.Options{Source: "urn:x"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bare.Start(t.Context(), boundary.SessionStart{}); err == nil {
		t.Error("a session without a session was started")
	}
	if bare.End(t.Context(), "completed", "", nil) == nil {
		t.Error("a session without a session was ended")
	}
}

func TestBatch(t *testing.T) {
	calls := []boundary.ToolCall{{ID: "1", Name: "bash", Input: ahp.Raw(`{"n":1}`)}, {Name: "bash", Input: ahp.Raw(`{"n":2}`)}, {ID: "3", Name: "bash", Input: ahp.Raw(`{"n":3}`)}}
	second := func(e ahp.Effect) ahptest.Judge {
		return func(_ context.Context, q *ahp.Intercept) ([]ahp.Effect, error) {
			if q.Event.Type == ahp.ToolBefore && string(q.Event.Tool.Input) == `{"n":2}` {
				return []ahp.Effect{e}, nil
			}
			return nil, nil
		}
	}
	var cancel context.CancelFunc
	const ran, denied, stoppedS, interrupted = boundary.Ran, boundary.Denied, boundary.Stopped, boundary.Interrupted
	for _, tt := range []struct {
		name     string
		judge    ahptest.Judge
		status   boundary.Status
		calls    []boundary.Status
		outcomes []string // of tool.batch.after
	}{
		{"ran", nil, boundary.Passed, []boundary.Status{ran, ran, ran}, []string{"ok", "ok", "ok"}},
		{"one denied", second(deny), boundary.Passed, []boundary.Status{ran, denied, ran}, []string{"ok", "denied", "ok"}},
		{"one stopped", second(stop), boundary.Stopped, []boundary.Status{ran, stoppedS, stoppedS}, []string{"ok", "cancelled", "cancelled"}},
		{"stopped as a batch", at(ahp.ToolBatchAfter, stop), boundary.Stopped, []boundary.Status{ran, ran, ran}, []string{"ok", "ok", "ok"}},
		{"nobody to ask about the batch", failsAt(ahp.ToolBatchAfter), boundary.Withheld, []boundary.Status{ran, ran, ran}, []string{"ok", "ok", "ok"}},
		{"cancelled", func(_ context.Context, q *ahp.Intercept) ([]ahp.Effect, error) {
			if string(q.Event.Tool.Input) == `{"n":2}` {
				cancel()
			}
			return nil, nil
		}, interrupted, []boundary.Status{ran, interrupted, interrupted}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var ctx context.Context
			ctx, cancel = context.WithCancel(t.Context())
			defer cancel()
			w := newWorld(t, boundary.Options{}, tt.judge)
			r, err := w.Tools(ctx, nil, calls, func(_ context.Context, c boundary.ToolCall, _ ahp.Raw) (boundary.ToolOutput, error) {
				return boundary.ToolOutput{Text: c.ID}, nil
			})
			if err != nil || r.Status != tt.status {
				t.Errorf("%s, %v", r.Status, err)
			}
			var got []boundary.Status
			for _, c := range r.Calls {
				got = append(got, c.Status)
			}
			if !slices.Equal(got, tt.calls) {
				t.Errorf("calls %v, want %v", got, tt.calls)
			}
			types, events := w.observed(t)
			var outcomes []string
			if i := slices.Index(types, ahp.ToolBatchAfter); i >= 0 {
				for j, c := range events[i].Calls {
					outcomes = append(outcomes, c.Outcome)
					if c.Call != r.Calls[j].Call || c.Batch.ID != events[i].Batch.ID || len(c.Batch.CallIDs) != 3 {
						t.Errorf("call %d is %+v", j, c)
					}
				}
			}
			if !slices.Equal(outcomes, tt.outcomes) {
				t.Errorf("outcomes %q, want %q", outcomes, tt.outcomes)
			}
			if e := events[0]; e.Batch == nil || e.Batch.CallIDs[0] != "1" || e.Batch.CallIDs[1] != r.Calls[1].Call.ID || !r.Calls[1].Call.Synthesized {
				t.Errorf("batch %+v", e.Batch)
			}
		})
	}
	if _, err := newWorld(t, boundary.Options{}).Tools(t.Context(), nil, nil, nil); err == nil {
		t.Error("an empty batch was taken")
	}
}
