package harness_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/harness"
	"github.com/abhed/abhed/ahp/transport"
)

// permissionAnswer is what one backend does about the permission alone.
type permissionAnswer struct {
	effects []ahp.Effect
	fails   bool
	policy  ahp.FailurePolicy
}

func drawPermissionAnswer(t *rapid.T) permissionAnswer {
	a := permissionAnswer{policy: rapid.SampledFrom([]ahp.FailurePolicy{ahp.FailOpen, ahp.FailClosed}).Draw(t, "policy")}
	switch rapid.IntRange(0, 5).Draw(t, "answer") {
	case 0:
		a.effects = []ahp.Effect{&ahp.Deny{Reason: "no"}, &ahp.Allow{}}
	case 1:
		a.effects = []ahp.Effect{&ahp.Allow{}}
	case 2:
		a.effects = []ahp.Effect{&ahp.Allow{}, &ahp.Ask{}}
	case 3:
		a.effects = []ahp.Effect{&ahp.Notice{Text: "note"}, &ahp.Return{Value: ahp.Raw("1")}}
	case 4:
		a.fails = true
	}
	return a
}

// means returns what the answer makes of a permission by itself.
func (a permissionAnswer) means() ahp.Permission {
	worst := ahp.PermissionNone
	raise := func(p ahp.Permission) {
		if p.Stricter(worst) {
			worst = p
		}
	}
	if a.fails && a.policy == ahp.FailClosed {
		raise(ahp.PermissionDeny)
	}
	for _, e := range a.effects {
		switch e.EffectType() {
		case ahp.EffectDeny:
			raise(ahp.PermissionDeny)
		case ahp.EffectAsk:
			raise(ahp.PermissionAsk)
		case ahp.EffectAllow:
			raise(ahp.PermissionAllow)
		}
	}
	return worst
}

func (a permissionAnswer) party() party {
	return intercepts(transport.InProcess(func(_ context.Context, msg []byte) ([]byte, error) {
		if a.fails {
			return nil, errors.New("away")
		}
		id, _ := ahp.MessageID(msg)
		return ahp.EncodeEffects(id, a.effects)
	}), a.policy)
}

// TestOrderOfBackendsDoesNotMatter holds that the permission is the strictest that
// anybody gave, whatever the order in which they are asked, and that a denial, an
// explicit or a synthetic one, is there exactly then.
func TestOrderOfBackendsDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		answers := rapid.SliceOfN(rapid.Custom(drawPermissionAnswer), 1, 5).Draw(rt, "answers")
		initial := rapid.SampledFrom([]ahp.Permission{ahp.PermissionNone, ahp.PermissionAllow, ahp.PermissionAsk}).Draw(rt, "initial")
		want := initial
		for _, a := range answers {
			if p := a.means(); p.Stricter(want) {
				want = p
			}
		}
		for range 3 {
			answers = rapid.Permutation(answers).Draw(rt, "order")
			var parties []party
			for _, a := range answers {
				parties = append(parties, a.party())
			}
			h := newHarness(t, harnessOptions(), parties...)
			out, err := h.Dispatch(t.Context(), ahptest.ToolBefore("e", `{}`), ahptest.FullCapabilities(ahp.ToolBefore), &ahp.State{Permission: initial}, harness.DispatchOptions{})
			h.Close()
			if err != nil {
				rt.Fatal(err)
			}
			if out.Permission != want || (out.Denial() != nil) != (want == ahp.PermissionDeny) || want == ahp.PermissionDeny && out.Candidate != nil {
				rt.Fatalf("%s, denials %v; want %s", out.Permission, out.Denials, want)
			}
		}
	})
}

// TestStrictnessNeverFalls holds at every step of a random chain that nothing
// accepted makes the permission or the flow less strict, but that a changed input
// drops an allow, and that a denial is the end.
func TestStrictnessNeverFalls(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var parties []party
		for range rapid.IntRange(1, 5).Draw(rt, "backends") {
			var effects []ahp.Effect
			for range rapid.IntRange(0, 4).Draw(rt, "n") {
				effects = append(effects, drawEffect(rt))
			}
			policy := rapid.SampledFrom([]ahp.FailurePolicy{ahp.FailOpen, ahp.FailClosed}).Draw(rt, "policy")
			parties = append(parties, intercepts(fixedReply(effects, rapid.IntRange(0, 3).Draw(rt, "bad") == 0), policy))
		}
		h := newHarness(t, harnessOptions(), parties...)
		defer h.Close()
		state := &ahp.State{Permission: rapid.SampledFrom([]ahp.Permission{"none", "allow", "ask"}).Draw(rt, "before")}
		c, err := h.Begin(t.Context(), ahptest.ToolBefore("e", `{"command":"ls"}`), ahptest.FullCapabilities(ahp.ToolBefore), state, harness.DispatchOptions{})
		if err != nil {
			rt.Fatal(err)
		}
		before := &ahp.Outcome{Permission: state.Permission, Flow: ahp.FlowStateNone, Event: ahptest.ToolBefore("e", `{"command":"ls"}`)}
		for x := c.Next(); x != nil; x = c.Next() {
			reply, err := x.Send()
			if err == nil {
				err = x.Stage(reply)
			}
			var now *ahp.Outcome
			if err == nil {
				now, err = x.Accept(nil)
			} else {
				now, err = x.Fail(err)
			}
			if err != nil {
				rt.Fatal(err)
			}
			checkStep(rt, before, now)
			before = now
		}
		out, err := c.Finish()
		if err != nil {
			rt.Fatal(err)
		}
		if ended := out.Permission == ahp.PermissionDeny || out.Flow == ahp.FlowStateStop; !ended && len(out.Trace) != len(parties) {
			rt.Fatalf("%d of %d were asked", len(out.Trace), len(parties))
		}
	})
}

func checkStep(rt *rapid.T, before, now *ahp.Outcome) {
	changed := !before.Event.Tool.Input.Equal(now.Event.Tool.Input)
	if before.Permission.Stricter(now.Permission) && !(before.Permission == ahp.PermissionAllow && changed) {
		rt.Fatalf("%s became %s", before.Permission, now.Permission)
	}
	if before.Permission == ahp.PermissionDeny || before.Flow == ahp.FlowStateStop {
		rt.Fatal("somebody was asked after the end")
	}
	if len(now.Messages) < len(before.Messages) || len(now.Injections) < len(before.Injections) || len(now.Denials) < len(before.Denials) {
		rt.Fatal("something accepted is gone")
	}
	last := now.Trace[len(now.Trace)-1]
	if last.Kind == ahp.AnswerFailure {
		if changed || len(now.Messages) != len(before.Messages) || last.Effects != nil {
			rt.Fatalf("a refused reply left something: %+v", now)
		}
		if (last.Policy == ahp.FailClosed) != (now.Permission == ahp.PermissionDeny) {
			rt.Fatalf("policy %s, permission %s", last.Policy, now.Permission)
		}
	}
	if changed && before.Candidate != nil && now.Candidate != nil && now.CandidateBy == before.CandidateBy {
		rt.Fatal("a result of another input was kept")
	}
}

// exchangeModel is what an exchange ought to be after some calls.
type exchangeModel struct {
	phase   string // new, sent, staged, failed, accepted, failed-open, failed-closed, cancelled
	ignored int
	end     time.Time
}

func (m *exchangeModel) settled() bool {
	return !slices.Contains([]string{"new", "sent", "staged", "failed"}, m.phase)
}

// TestExchangeIsAStateMachine plays random calls, in any order, with time passing
// between them, and compares with a model: what settles first wins, nothing is
// published twice, and cancellation wins over everything that isn't published.
func TestExchangeIsAStateMachine(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		policy := rapid.SampledFrom([]ahp.FailurePolicy{ahp.FailOpen, ahp.FailClosed}).Draw(rt, "policy")
		call := rapid.SampledFrom([]string{"send", "stage", "garbage", "accept", "fail", "failOpen", "cancel", "later"})
		calls := rapid.SliceOfN(call, 1, 12).Draw(rt, "calls")
		var err error
		synctest.Test(t, func(t *testing.T) { err = playCalls(t, policy, calls) })
		if err != nil {
			rt.Fatal(err)
		}
	})
}

func playCalls(t *testing.T, policy ahp.FailurePolicy, calls []string) error {
	link := ahptest.NewFake(ahptest.Says(&ahp.Notice{Text: "x"}))
	h := newHarness(t, harnessOptions(), party{link: link, subs: []ahp.Subscription{ahptest.Intercept(policy, time.Second, "tool.before")}})
	defer h.Close()
	c := chainOf(t, h, "e", harness.DispatchOptions{})
	x, m := c.Next(), &exchangeModel{phase: "new"}
	good, err := ahp.EncodeEffects(ahp.StringID("e"), []ahp.Effect{&ahp.Notice{Text: "x"}})
	if err != nil {
		return err
	}
	published := 0
	for _, op := range calls {
		before := m.phase
		o, err := callExchange(x, op, good)
		if want := m.call(op, policy); kindOf(o, err) != want {
			return fmt.Errorf("%s in phase %s: %v, %v; want %s", op, before, o, err, want)
		}
		if o != nil {
			published++
		}
	}
	if x.Ignored() != m.ignored || published > 1 {
		return fmt.Errorf("%d ignored, want %d; %d outcomes", x.Ignored(), m.ignored, published)
	}
	out, err := c.Finish()
	if (err == nil) != m.settled() {
		return fmt.Errorf("finished in phase %s: %v", m.phase, err)
	}
	if err != nil {
		return nil
	}
	noted := m.phase == "accepted" || m.phase == "accepted cancelled"
	if out.Interrupted != strings.Contains(m.phase, "cancelled") || (len(out.Messages) == 1) != noted {
		return fmt.Errorf("finished in phase %s: %+v", m.phase, out.Outcome)
	}
	return nil
}

func callExchange(x *harness.Exchange, op string, good []byte) (*ahp.Outcome, error) {
	switch op {
	case "send":
		_, err := x.Send()
		return nil, err
	case "stage":
		return nil, x.Stage(good)
	case "garbage":
		return nil, x.Stage([]byte("no"))
	case "accept":
		return x.Accept(nil)
	case "fail":
		return x.Fail(&ahp.Failure{Class: ahp.FailConnect})
	case "failOpen":
		return x.FailOpen()
	case "cancel":
		x.Cancel()
	case "later":
		time.Sleep(400 * time.Millisecond)
	}
	return nil, nil
}

// kindOf names what a call returned.
func kindOf(o *ahp.Outcome, err error) string {
	f := ahp.AsFailure(err)
	switch {
	case o != nil && err == nil:
		return "outcome"
	case err == nil:
		return "ok"
	case f != nil:
		return "failure " + string(f.Class)
	case errors.Is(err, harness.ErrIgnored):
		return "ignored"
	case errors.Is(err, harness.ErrInterrupted):
		return "interrupted"
	case errors.Is(err, harness.ErrNotStaged):
		return "not staged"
	case errors.Is(err, harness.ErrSettled):
		return "settled"
	}
	return "misuse"
}

// call returns what a call ought to return, and notes what it does.
func (m *exchangeModel) call(op string, policy ahp.FailurePolicy) string {
	late := !m.end.IsZero() && !time.Now().Before(m.end)
	over := "settled"
	if m.phase == "cancelled" || m.phase == "accepted cancelled" || m.phase == "failed cancelled" {
		over = "interrupted"
	}
	switch op {
	case "send":
		switch {
		case m.settled():
			return over
		case m.phase != "new":
			return "misuse"
		}
		m.phase, m.end = "sent", time.Now().Add(time.Second)
		return "ok"
	case "stage", "garbage":
		return m.stage(op, late)
	case "accept":
		switch {
		case m.phase == "staged" && late:
			m.phase = "failed"
			return "failure late"
		case m.phase == "staged":
			m.phase = "accepted"
			return "outcome"
		case over == "interrupted":
			return over
		}
		return "not staged"
	case "fail", "failOpen":
		switch {
		case m.settled():
			return over
		case op == "failOpen" && policy == ahp.FailClosed:
			return "misuse"
		}
		m.phase = "failed-" + string(policy)
		return "outcome"
	case "cancel":
		switch {
		case m.phase == "accepted":
			m.phase = "accepted cancelled"
		case m.settled() && over == "settled":
			m.phase = "failed cancelled"
		case !m.settled():
			m.phase = "cancelled"
		}
	}
	return "ok"
}

func (m *exchangeModel) stage(op string, late bool) string {
	switch {
	case m.phase == "new":
		return "misuse"
	case m.phase != "sent":
		m.ignored++
		return "ignored"
	case late:
		m.ignored++
		m.phase = "failed"
		return "failure late"
	case op == "garbage":
		m.phase = "failed"
		return "failure malformed"
	}
	m.phase = "staged"
	return "ok"
}
