package harness_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/harness"
	"github.com/abhed/abhed/ahp/transport"
)

// onlyIf returns a Judge that gives effects while the input contains part.
func onlyIf(part string, effects ...ahp.Effect) ahptest.Judge {
	return func(_ context.Context, q *ahp.Intercept) ([]ahp.Effect, error) {
		if strings.Contains(string(q.Event.Tool.Input), part) {
			return effects, nil
		}
		return nil, nil
	}
}

func replace(input string) *ahp.Modify {
	return &ahp.Modify{Target: ahp.TargetInput, Operation: ahp.OpReplace, Value: ahp.Raw(input)}
}

// TestAskAgain plays what a gate does after a backend changed the input: everybody
// before it is asked once more about the final input, as a new event that nobody
// observes, and the observers of the first event get it with the final input.
func TestAskAgain(t *testing.T) {
	a := ahptest.NewFake(onlyIf("rm", &ahp.Deny{Reason: "no rm"}))
	b := ahptest.NewFake(onlyIf("ls", replace(`{"command":"rm x"}`)))
	c, audit := ahptest.NewFake(nil), ahptest.NewFake(nil)
	h := newHarness(t, harness.Options{}, intercepts(a, ahp.FailClosed), intercepts(b, ahp.FailClosed), intercepts(c, ahp.FailClosed),
		party{link: audit, subs: []ahp.Subscription{ahptest.Observe("*")}})

	first, err := h.Dispatch(t.Context(), ahptest.ToolBefore("e1", `{"command":"ls"}`), noAllow(), nil, harness.DispatchOptions{HoldObservers: true})
	if err != nil {
		t.Fatal(err)
	}
	if !first.Changed || first.ChangedBy.Backend != "test.b1" || first.Permission != ahp.PermissionNone {
		t.Fatalf("first: %+v", first.Outcome)
	}
	if n := len(audit.Observed()); n != 0 {
		t.Fatalf("%d observations before the release", n)
	}
	var again []ahp.SubscriptionID
	for _, answer := range first.Trace {
		if answer.By == first.ChangedBy {
			break
		}
		again = append(again, answer.By)
	}
	second := *first.Event
	second.ID = "e2"
	caps := &ahp.Capabilities{Effects: []ahp.EffectType{ahp.EffectDeny, ahp.EffectAsk, ahp.EffectMessage}}
	state := &ahp.State{Permission: first.Permission}
	out, err := h.Dispatch(t.Context(), &second, caps, state, harness.DispatchOptions{Only: again, NoObservers: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Trace) != 1 || out.Permission != ahp.PermissionDeny || out.Denial().Reason != "no rm" || out.Denial().Synthetic {
		t.Fatalf("second: %+v", out.Outcome)
	}
	if got := a.Requests()[1]; got.Event.Call.ID != "call-e1" || got.Event.ID != "e2" || got.State == nil {
		t.Errorf("asked again as %+v", got.Event)
	}
	if len(b.Requests()) != 1 || len(c.Requests()) != 1 {
		t.Error("those at and after the change were asked again")
	}
	if err := first.Release(out.Event); err == nil {
		t.Error("another event was released")
	}
	final := *out.Event
	final.ID = "e1"
	if err := first.Release(&final); err != nil {
		t.Fatal(err)
	}
	settle(t, first)
	seen := audit.Observed()
	if len(seen) != 1 || seen[0].ID != "e1" || string(seen[0].Tool.Input) != `{"command":"rm x"}` {
		t.Errorf("observed %+v", seen)
	}
	if err := first.Release(nil); err != nil || len(audit.Observed()) != 1 {
		t.Error("released twice")
	}
}

func TestCancellationBeatsEverything(t *testing.T) {
	for _, policy := range []ahp.FailurePolicy{ahp.FailOpen, ahp.FailClosed} {
		synctest.Test(t, func(t *testing.T) {
			first := ahptest.NewFake(ahptest.Says(replace(`{"command":"accepted"}`), &ahp.Notice{Text: "accepted"}))
			asked := make(chan struct{})
			hung := ahptest.NewFake(func(ctx context.Context, _ *ahp.Intercept) ([]ahp.Effect, error) {
				close(asked)
				<-ctx.Done()
				return []ahp.Effect{&ahp.Deny{Reason: "too late"}}, nil
			})
			after, audit := ahptest.NewFake(nil), ahptest.NewFake(nil)
			h := newHarness(t, harness.Options{}, intercepts(first, policy), intercepts(hung, policy), intercepts(after, policy),
				party{link: audit, subs: []ahp.Subscription{ahptest.Observe("*")}})
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				<-asked
				cancel()
			}()
			out, err := h.Dispatch(ctx, ahptest.ToolBefore("e", `{}`), noAllow(), nil, harness.DispatchOptions{})
			if err != nil {
				t.Fatal(err)
			}
			settle(t, out)
			if !out.Interrupted || out.MayExecute() || out.Permission != ahp.PermissionNone || len(out.Messages) != 1 || !out.Changed {
				t.Errorf("outcome %+v", out.Outcome)
			}
			if last := out.Trace[len(out.Trace)-1]; last.Kind != ahp.AnswerInterrupted || len(out.Trace) != 2 {
				t.Errorf("trace %+v", out.Trace)
			}
			if len(after.Messages())+len(audit.Messages()) != 0 {
				t.Error("something was started after the interruption")
			}
			h.Close()
		})
	}
}

// TestDeadlineIsAbsolute holds that one subscription's deadline spans waiting and
// answering, and that each starts anew.
func TestDeadlineIsAbsolute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(d time.Duration) *ahptest.Fake {
			return ahptest.NewFake(func(ctx context.Context, _ *ahp.Intercept) ([]ahp.Effect, error) {
				select {
				case <-time.After(d):
				case <-ctx.Done():
				}
				return []ahp.Effect{&ahp.Notice{Text: d.String()}}, nil
			})
		}
		sub := func(f *ahptest.Fake) party {
			return party{link: f, subs: []ahp.Subscription{ahptest.Intercept(ahp.FailOpen, 500*time.Millisecond, "tool.before")}}
		}
		h := newHarness(t, harness.Options{}, sub(slow(400*time.Millisecond)), sub(slow(600*time.Millisecond)), sub(slow(450*time.Millisecond)))
		began := time.Now()
		out := dispatch(t, h, "e")
		if took := time.Since(began); took != 1350*time.Millisecond {
			t.Errorf("took %v", took)
		}
		if !slices.Equal(out.Messages, []string{"400ms", "450ms"}) || out.Trace[1].Failure.Class != ahp.FailDeadline || out.Trace[1].Milliseconds != 500 {
			t.Errorf("outcome %+v", out.Outcome)
		}
		h.Close()
	})
}

// lateLink returns a valid reply just after the deadline, as a transport may.
type lateLink struct{ transport.Transport }

func (lateLink) Exchange(ctx context.Context, msg []byte) ([]byte, error) {
	<-ctx.Done()
	id, _ := ahp.MessageID(msg)
	return ahp.EncodeEffects(id, []ahp.Effect{&ahp.Notice{Text: "late"}, replace(`{"command":"late"}`)})
}
func (lateLink) Close() error { return nil }

func TestLateReplyIsNotAccepted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, harness.Options{}, intercepts(lateLink{}, ahp.FailClosed))
		out := dispatch(t, h, "e")
		if f := out.Trace[0].Failure; f == nil || f.Class != ahp.FailLate || out.Changed || len(out.Messages) != 0 || out.Permission != ahp.PermissionDeny {
			t.Errorf("outcome %+v, %v", out.Outcome, f)
		}
		h.Close()
	})
}

// TestAllowIsUnadvertised holds that a backend can't grant what isn't on offer.
func TestAllowIsUnadvertised(t *testing.T) {
	raw := transport.InProcess(func(_ context.Context, msg []byte) ([]byte, error) {
		id, _ := ahp.MessageID(msg)
		return ahp.EncodeEffects(id, []ahp.Effect{&ahp.Allow{}})
	})
	for policy, want := range map[ahp.FailurePolicy]ahp.Permission{ahp.FailOpen: ahp.PermissionNone, ahp.FailClosed: ahp.PermissionDeny} {
		h := newHarness(t, harness.Options{}, intercepts(raw, policy))
		out, err := h.Dispatch(t.Context(), ahptest.ToolBefore("e", `{}`), noAllow(), nil, harness.DispatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if out.Permission != want || out.Trace[0].Failure.Class != ahp.FailEffect {
			t.Errorf("%s: %+v", policy, out.Outcome)
		}
	}
}

// TestComposition plays chains of responses and compares the outcome (§11).
func TestComposition(t *testing.T) {
	allow, ask, deny := &ahp.Allow{}, &ahp.Ask{}, &ahp.Deny{Reason: "r", Code: "com.example.code"}
	result, stop := &ahp.Return{Value: ahp.Raw(`"v"`)}, &ahp.Flow{Operation: ahp.FlowStop, Reason: "s"}
	other, equal := replace(`{"command":"other"}`), replace(`{ "command" : "\u006cs" }`)
	tests := []struct {
		name       string
		responses  [][]ahp.Effect
		permission ahp.Permission
		candidate  string
		changed    bool
		asked      int
	}{
		{"nothing", [][]ahp.Effect{{}, {}}, ahp.PermissionNone, "", false, 2},
		{"ask then allow", [][]ahp.Effect{{ask}, {allow}}, ahp.PermissionAsk, "", false, 2},
		{"ask doesn't end", [][]ahp.Effect{{ask}, {deny}}, ahp.PermissionDeny, "", false, 2},
		{"deny ends", [][]ahp.Effect{{deny}, {allow}}, ahp.PermissionDeny, "", false, 1},
		{"allow stays", [][]ahp.Effect{{allow}, {}}, ahp.PermissionAllow, "", false, 2},
		{"a change drops allow", [][]ahp.Effect{{allow}, {other}}, ahp.PermissionNone, "", true, 2},
		{"a change keeps ask", [][]ahp.Effect{{ask}, {other}}, ahp.PermissionAsk, "", true, 2},
		{"an equal value changes nothing", [][]ahp.Effect{{allow, result}, {equal}}, ahp.PermissionAllow, `"v"`, false, 2},
		{"a change drops the candidate", [][]ahp.Effect{{result}, {other}}, ahp.PermissionNone, "", true, 2},
		{"a candidate with its change", [][]ahp.Effect{{}, {result, other}}, ahp.PermissionNone, `"v"`, true, 2},
		{"a later candidate", [][]ahp.Effect{{result}, {&ahp.Return{Value: ahp.Raw("null")}}}, ahp.PermissionNone, "null", false, 2},
		{"a change and back", [][]ahp.Effect{{allow}, {other, equal}}, ahp.PermissionAllow, "", false, 2},
		{"stop ends", [][]ahp.Effect{{result, stop}, {deny}}, ahp.PermissionNone, "", false, 1},
		{"ask keeps the candidate", [][]ahp.Effect{{result}, {ask}}, ahp.PermissionAsk, `"v"`, false, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var parties []party
			for _, effects := range tt.responses {
				parties = append(parties, intercepts(ahptest.NewFake(ahptest.Says(effects...)), ahp.FailClosed))
			}
			h := newHarness(t, harness.Options{}, parties...)
			out, err := h.Dispatch(t.Context(), ahptest.ToolBefore("e", `{"command":"ls"}`), ahptest.FullCapabilities(ahp.ToolBefore), nil, harness.DispatchOptions{})
			if err != nil {
				t.Fatal(err)
			}
			candidate := ""
			if out.Candidate != nil {
				candidate = string(out.Candidate.Value)
			}
			if out.Permission != tt.permission || candidate != tt.candidate || out.Changed != tt.changed || len(out.Trace) != tt.asked {
				t.Errorf("got %s, candidate %q, changed %v, asked %d: %v", out.Permission, candidate, out.Changed, len(out.Trace), out.Trace[0].Failure)
			}
		})
	}
}

func TestDispatchRefusesBugs(t *testing.T) {
	h := newHarness(t, harness.Options{}, intercepts(ahptest.NewFake(nil), ahp.FailClosed))
	caps := noAllow()
	bad := ahptest.ToolBefore("e", `{}`)
	bad.Path = ""
	tests := map[string]func() error{
		"an invalid event": func() error {
			_, err := h.Dispatch(t.Context(), bad, caps, nil, harness.DispatchOptions{})
			return err
		},
		"an event that is only observed": func() error {
			e := &ahp.Event{ID: "e", Source: "urn:x", Type: ahp.SessionEnd, Time: "2026-01-01T00:00:00Z", Session: &ahp.Session{ID: "s"}, Outcome: "completed"}
			_, err := h.Dispatch(t.Context(), e, &ahp.Capabilities{}, nil, harness.DispatchOptions{})
			return err
		},
		"no capabilities": func() error {
			_, err := h.Dispatch(t.Context(), ahptest.ToolBefore("e", `{}`), nil, nil, harness.DispatchOptions{})
			return err
		},
		"capabilities of another event": func() error {
			_, err := h.Dispatch(t.Context(), ahptest.ToolBefore("e", `{}`), ahptest.FullCapabilities(ahp.ToolAfter), nil, harness.DispatchOptions{})
			return err
		},
		"an impossible state": func() error {
			_, err := h.Dispatch(t.Context(), ahptest.ToolBefore("e", `{}`), caps, &ahp.State{Permission: "maybe"}, harness.DispatchOptions{})
			return err
		},
	}
	for name, call := range tests {
		if err := call(); err == nil {
			t.Errorf("%s: dispatched", name)
		}
	}
}

func TestCloseInterruptsAndRefuses(t *testing.T) {
	asked := make(chan struct{})
	hung := ahptest.NewFake(func(ctx context.Context, _ *ahp.Intercept) ([]ahp.Effect, error) {
		close(asked)
		<-ctx.Done()
		return nil, nil
	})
	h := newHarness(t, harness.Options{}, intercepts(hung, ahp.FailOpen))
	go func() {
		<-asked
		h.Close()
	}()
	if _, err := h.Dispatch(t.Context(), ahptest.ToolBefore("e", `{}`), noAllow(), nil, harness.DispatchOptions{}); !errors.Is(err, harness.ErrClosed) {
		t.Errorf("during Close: %v", err)
	}
	h.Close()
	if _, err := h.Dispatch(t.Context(), ahptest.ToolBefore("e", `{}`), noAllow(), nil, harness.DispatchOptions{}); !errors.Is(err, harness.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	if _, err := h.Observe(t.Context(), ahptest.ToolAfter("e", "x")); !errors.Is(err, harness.ErrClosed) {
		t.Errorf("Observe after Close: %v", err)
	}
}

// TestObserversNeverDelay holds that a decision doesn't wait for an observer that
// hangs, and that Close bounds the wait for it.
func TestObserversNeverDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hung := transport.InProcess(func(ctx context.Context, _ []byte) ([]byte, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		var reports []harness.Delivery
		h := newHarness(t, harness.Options{CloseTimeout: time.Second, OnDelivery: func(d harness.Delivery) { reports = append(reports, d) }},
			party{link: hung, subs: []ahp.Subscription{ahptest.Observe("tool.*")}})
		began := time.Now()
		for _, id := range []string{"e1", "e2", "e3"} {
			dispatch(t, h, id)
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("the decisions took %v", took)
		}
		h.Close()
		if took := time.Since(began); took != time.Second {
			t.Errorf("Close took %v", took)
		}
		if len(reports) != 3 {
			t.Fatalf("%d reports", len(reports))
		}
		for _, r := range reports {
			if r.Failure == nil {
				t.Errorf("%s was delivered", r.EventID)
			}
		}
	})
}
