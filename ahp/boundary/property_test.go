package boundary_test

import (
	"context"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/boundary"
)

// answerOf draws what one backend says about a call; nil fails.
func drawAnswer(t *rapid.T) []ahp.Effect {
	if rapid.IntRange(0, 9).Draw(t, "fails") == 0 {
		return nil
	}
	out := []ahp.Effect{}
	for range rapid.IntRange(0, 3).Draw(t, "effects") {
		out = append(out, rapid.SampledFrom([]ahp.Effect{
			deny, stop, &ahp.Allow{}, &ahp.Ask{}, &ahp.Notice{Text: "n"}, returns(`1`),
			&ahp.Modify{Target: ahp.TargetInput, Operation: ahp.OpMerge, Value: ahp.Raw(`{"x":1}`)},
			&ahp.Modify{Target: ahp.TargetInput, Operation: ahp.OpMerge, Value: ahp.Raw(`{"x":2}`)},
		}).Draw(t, "effect"))
	}
	return out
}

// mayRun is the rule in its plainest form: who is asked until somebody ends the
// chain, and what stands in the end.
func mayRun(answers [][]ahp.Effect, approved bool) (runs bool, x string) {
	ask, given := false, false
	for _, effects := range answers {
		if effects == nil {
			return false, x // fail-closed
		}
		had := x
		for _, e := range effects {
			if m, ok := e.(*ahp.Modify); ok {
				x = string(m.Value)
			}
		}
		if x != had {
			given = false
		}
		over := false
		for _, e := range effects {
			switch e.EffectType() {
			case ahp.EffectDeny, ahp.EffectFlow:
				over = true
			case ahp.EffectAsk:
				ask = true
			case ahp.EffectReturn:
				given = true
			}
		}
		if over {
			return false, x
		}
	}
	return !given && (!ask || approved), x
}

// TestExecutorRunsIffAllowed draws answers and compares with the plain rule.
func TestExecutorRunsIffAllowed(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var answers [][]ahp.Effect
		var judges []ahptest.Judge
		for range rapid.IntRange(1, 3).Draw(rt, "backends") {
			a := drawAnswer(rt)
			answers = append(answers, a)
			if a == nil {
				judges = append(judges, failsAt(ahp.ToolBefore))
			} else {
				judges = append(judges, at(ahp.ToolBefore, a...))
			}
		}
		approved := rapid.Bool().Draw(rt, "approved")
		w := newWorld(t, boundary.Options{Approve: approves(approved)}, judges...)
		defer w.h.Close()
		var got []string
		r, err := w.Tool(t.Context(), boundary.ToolCall{Name: "bash", Input: ahp.Raw(`{}`)}, func(_ context.Context, in ahp.Raw) (boundary.ToolOutput, error) {
			got = append(got, string(in))
			return boundary.ToolOutput{}, nil
		})
		if err != nil {
			rt.Fatal(err)
		}
		runs, x := mayRun(answers, approved)
		if x == "" {
			x = `{}`
		}
		want := []string{x}
		if !runs {
			want = nil
		}
		if !slices.Equal(got, want) || r.Executed != runs || (r.Status == boundary.Ran) != runs {
			rt.Errorf("answers %v, approved %v: ran on %q with the status %s, want %q", answers, approved, got, r.Status, want)
		}
		if !runs && r.Status == boundary.None {
			rt.Error("no status")
		}
	})
}

// TestManifests holds that what Manifest promises is valid for each type, and that
// the boundary keeps within it.
func TestManifests(t *testing.T) {
	for _, typ := range ahp.EventTypes() {
		if _, err := boundary.Manifest(typ).Encode(); err != nil {
			t.Errorf("%s: %v", typ, err)
		}
	}
	m := boundary.Manifest()
	if m.Advertises(ahp.ToolBefore, ahp.ModeIntercept) == nil || m.Advertises(ahp.HookFailure, ahp.ModeObserve) == nil || m.Advertises(ahp.TurnStart, ahp.ModeObserve) != nil {
		t.Errorf("events %+v", m.Events)
	}
	w := newWorldOf(t, boundary.Options{}, m, ahp.FailClosed, nil)
	// What the manifest doesn't offer passes without a step.
	if r, err := w.TurnStart(t.Context(), boundary.TurnInput{}); err != nil || r.Status != boundary.Passed {
		t.Errorf("%s, %v", r.Status, err)
	}
	r, err := w.Tool(t.Context(), boundary.ToolCall{Name: "bash", Input: ahp.Raw(`{}`)}, func(context.Context, ahp.Raw) (boundary.ToolOutput, error) {
		return boundary.ToolOutput{}, nil
	})
	if err != nil || r.Status != boundary.Ran {
		t.Errorf("%s, %v", r.Status, err)
	}
	for _, q := range w.fakes[0].Requests() {
		if q.Capabilities.Has(ahp.EffectAllow) || q.Capabilities.Has(ahp.EffectInject) {
			t.Errorf("%s offers %q", q.Event.Type, q.Capabilities.Effects)
		}
	}
}

// FuzzParseCall holds that a call that is read is one that can be asked about.
func FuzzParseCall(f *testing.F) {
	for _, s := range []string{`{"name":"bash","input":{"command":"ls"}}`, `{"id":"i","name":"n","kind":"k","input":{}}`, `{"name":"x","input":[]}`, `{`} {
		f.Add([]byte(s))
	}
	w := newWorld(f, boundary.Options{})
	f.Fuzz(func(t *testing.T, line []byte) {
		call, err := boundary.ParseCall(line)
		if err != nil {
			return
		}
		r, err := w.Tool(t.Context(), call, func(context.Context, ahp.Raw) (boundary.ToolOutput, error) { return boundary.ToolOutput{}, nil })
		if err != nil || r.Status != boundary.Ran {
			t.Errorf("%q: %s, %v", line, r.Status, err)
		}
	})
}
