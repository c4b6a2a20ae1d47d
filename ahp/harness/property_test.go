package harness_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/harness"
	"github.com/abhed/abhed/ahp/transport"
)

// drawEffect draws a valid effect of tool.before.
func drawEffect(t *rapid.T) ahp.Effect {
	input := ahp.Raw(fmt.Sprintf(`{"command":%q}`, rapid.SampledFrom([]string{"ls", "rm", "cat"}).Draw(t, "command")))
	switch rapid.IntRange(0, 8).Draw(t, "kind") {
	case 0:
		return &ahp.Deny{Reason: "denied"}
	case 1:
		return &ahp.Allow{}
	case 2:
		return &ahp.Ask{}
	case 3:
		return &ahp.Modify{Target: ahp.TargetInput, Operation: ahp.OpReplace, Value: input}
	case 4:
		return &ahp.Modify{Target: ahp.TargetInput, Operation: ahp.OpMerge, Value: input}
	case 5:
		return &ahp.Notice{Text: "note"}
	case 6:
		return &ahp.Return{Value: input}
	case 7:
		return &ahp.Inject{DeliverAt: ahp.DeliverNow, Messages: []ahp.Message{ahp.TextMessage("m", ahp.RoleUser, "x")}}
	}
	return &ahp.Flow{Operation: ahp.FlowStop, Reason: "stop"}
}

func drawCaps(t *rapid.T) *ahp.Capabilities {
	full := ahptest.FullCapabilities(ahp.ToolBefore)
	var drop []ahp.EffectType
	for _, e := range full.Effects {
		if rapid.IntRange(0, 4).Draw(t, "drop") == 0 {
			drop = append(drop, e)
		}
	}
	return ahptest.Without(full, drop...)
}

// TestStagingProperties holds over random responses that staging is all or
// nothing, that a deny dominates, and that nothing lowers a permission but a
// changed input, which drops an allow.
func TestStagingProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := &ahp.Intercept{
			Event: ahptest.ToolBefore("e", `{"command":"ls"}`), Capabilities: *drawCaps(t),
			State: &ahp.State{Permission: rapid.SampledFrom([]ahp.Permission{"none", "allow", "ask", "deny"}).Draw(t, "before")},
		}
		var effects []ahp.Effect
		for range rapid.IntRange(0, 5).Draw(t, "n") {
			effects = append(effects, drawEffect(t))
		}
		reply, err := ahp.EncodeEffects(ahp.StringID("e"), effects)
		if err != nil {
			t.Fatal(err)
		}
		out, err := harness.Evaluate(q, reply)
		unadvertised := slices.ContainsFunc(effects, func(e ahp.Effect) bool { return !q.Capabilities.Has(e.EffectType()) })
		if (err != nil) != unadvertised {
			t.Fatalf("unadvertised %v, error %v", unadvertised, err)
		}
		if err != nil {
			if out != nil {
				t.Fatal("an outcome beside an error")
			}
			return
		}
		checkStaged(t, q, effects, out)
	})
}

func has(effects []ahp.Effect, want ahp.EffectType) bool {
	return slices.ContainsFunc(effects, func(e ahp.Effect) bool { return e.EffectType() == want })
}

func checkStaged(t *rapid.T, q *ahp.Intercept, effects []ahp.Effect, out *ahp.Outcome) {
	before := q.State.Permission
	if has(effects, ahp.EffectDeny) && (out.Permission != ahp.PermissionDeny || out.Candidate != nil || out.Denial() == nil) {
		t.Fatalf("a deny doesn't dominate: %+v", out)
	}
	if before.Stricter(out.Permission) && !(before == ahp.PermissionAllow && out.Changed) {
		t.Fatalf("%s became %s", before, out.Permission)
	}
	if has(effects, ahp.EffectAsk) && !out.Permission.Stricter(ahp.PermissionAllow) {
		t.Fatalf("an ask was lost: %s", out.Permission)
	}
	if !has(effects, ahp.EffectAllow) && out.Permission == ahp.PermissionAllow && before != ahp.PermissionAllow {
		t.Fatal("allow from nowhere")
	}
	messages := 0
	for _, e := range effects {
		if e.EffectType() == ahp.EffectMessage {
			messages++
		}
	}
	if len(out.Messages) != messages {
		t.Fatalf("%d of %d messages", len(out.Messages), messages)
	}
	if out.Changed == out.Event.Tool.Input.Equal(q.Event.Tool.Input) {
		t.Fatalf("changed %v, input %s", out.Changed, out.Event.Tool.Input)
	}
	if string(q.Event.Tool.Input) != `{"command":"ls"}` {
		t.Fatal("the caller's event was changed")
	}
	if has(effects, ahp.EffectReturn) != (out.Candidate != nil) && out.Permission != ahp.PermissionDeny && out.Flow != ahp.FlowStateStop {
		t.Fatalf("candidate %v", out.Candidate)
	}
}

// TestRejectedLeavesNothing holds over random chains that a response which is
// refused leaves the outcome as if its backend had not been there, under
// fail-open.
func TestRejectedLeavesNothing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		type response struct {
			effects []ahp.Effect
			bad     bool
		}
		var all []response
		for range rapid.IntRange(1, 4).Draw(rt, "backends") {
			var effects []ahp.Effect
			for range rapid.IntRange(0, 3).Draw(rt, "n") {
				effects = append(effects, drawEffect(rt))
			}
			all = append(all, response{effects: effects, bad: rapid.Bool().Draw(rt, "bad")})
		}
		chain := func(withBad bool) *ahp.Outcome {
			var parties []party
			for _, r := range all {
				if !r.bad || withBad {
					parties = append(parties, intercepts(fixedReply(r.effects, r.bad), ahp.FailOpen))
				}
			}
			return play(t, parties)
		}
		withBad, without := chain(true), chain(false)
		if withBad.Permission != without.Permission || withBad.Flow != without.Flow || !slices.Equal(withBad.Messages, without.Messages) ||
			!withBad.Event.Tool.Input.Equal(without.Event.Tool.Input) || len(withBad.Injections) != len(without.Injections) ||
			(withBad.Candidate == nil) != (without.Candidate == nil) {
			rt.Fatalf("a refused response left a trace:\nwith    %+v\nwithout %+v", withBad, without)
		}
	})
}

// fixedReply returns a link that always answers with effects, and with an unknown
// one at the end if bad.
func fixedReply(effects []ahp.Effect, bad bool) transport.Transport {
	return transport.InProcess(func(_ context.Context, msg []byte) ([]byte, error) {
		id, _ := ahp.MessageID(msg)
		reply, err := ahp.EncodeEffects(id, effects)
		if bad && err == nil {
			sep := ","
			if len(effects) == 0 {
				sep = ""
			}
			reply = append(reply[:len(reply)-3], sep+`{"type":"teleport"}]}}`...)
		}
		return reply, err
	})
}

func play(t *testing.T, parties []party) *ahp.Outcome {
	h := newHarness(t, harness.Options{}, append(parties, party{link: fixedReply(nil, false), subs: []ahp.Subscription{ahptest.Observe("session.end")}})...)
	defer h.Close()
	out, err := h.Dispatch(t.Context(), ahptest.ToolBefore("e", `{"command":"ls"}`), ahptest.FullCapabilities(ahp.ToolBefore), nil, harness.DispatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return &out.Outcome
}
