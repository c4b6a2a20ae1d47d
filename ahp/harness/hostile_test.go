package harness_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/harness"
	"github.com/abhed/abhed/ahp/transport"
)

// nested returns a JSON object of the given depth.
func nested(depth int) string {
	return strings.Repeat(`{"a":`, depth-1) + `{}` + strings.Repeat(`}`, depth-1)
}

// TestEventThatCannotBeSent holds that an input which fits the bounds alone, and
// not within the request, is no operational failure: otherwise whoever writes the
// input could open a fail-open policy.
func TestEventThatCannotBeSent(t *testing.T) {
	small, err := ahptest.ToolBefore("e", `{"a":""}`).Encode()
	if err != nil {
		t.Fatal(err)
	}
	for name, input := range map[string]string{
		"too deep":  nested(ahp.MaxDepth - 2),
		"too large": `{"a":"` + strings.Repeat("x", ahp.MaxMessageBytes-len(small)) + `"}`,
	} {
		fake, audit := ahptest.NewFake(nil), ahptest.NewFake(nil)
		h := newHarness(t, harness.Options{}, intercepts(fake, ahp.FailOpen))
		e := ahptest.ToolBefore("e", input)
		if err := e.Validate(); err != nil {
			t.Fatal(err)
		}
		out, err := h.Dispatch(t.Context(), e, noAllow(), nil, harness.DispatchOptions{})
		if err == nil {
			t.Errorf("%s: no error, asked %d, may execute %v", name, len(fake.Requests()), out.MayExecute())
		}
		// An observer that can't be told changes nothing, and leaves a trace.
		var got *ahp.Failure
		h = newHarness(t, harness.Options{OnDelivery: func(d harness.Delivery) { got = d.Failure }},
			party{link: audit, subs: []ahp.Subscription{ahptest.Observe("*")}})
		out, err = h.Dispatch(t.Context(), e, noAllow(), nil, harness.DispatchOptions{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		settle(t, out)
		if got == nil || got.Class != ahp.FailMalformed {
			t.Errorf("%s: the observation's failure is %v", name, got)
		}
	}
}

// TestHugeTimeout holds that a timeout beyond what the clock can hold is long, and
// not over at once.
func TestHugeTimeout(t *testing.T) {
	for _, ms := range []int64{math.MaxInt64, math.MaxInt64 / 1_000_000 * 2} {
		sub := ahptest.Intercept(ahp.FailOpen, time.Second, "tool.before")
		sub.TimeoutMs = &ms
		h := newHarness(t, harness.Options{}, party{link: ahptest.NewFake(ahptest.Says(&ahp.Deny{Reason: "no"})), subs: []ahp.Subscription{sub}})
		if out := dispatch(t, h, "e"); out.Denial() == nil {
			t.Errorf("%d ms: not denied: %v", ms, out.Trace[0].Failure)
		}
	}
}

// brokenLink breaks the contract of a transport.
type brokenLink struct {
	transport.Transport
	exchange func() ([]byte, error)
}

func (l brokenLink) Exchange(context.Context, []byte) ([]byte, error) { return l.exchange() }
func (l brokenLink) Notify(context.Context, []byte) error {
	_, err := l.exchange()
	return err
}
func (l brokenLink) Close() error { return nil }

// TestBugsOpenNothing holds that no failure policy applies to a bug: the dispatch
// ends with an error even with fail-open, and the program goes on.
func TestBugsOpenNothing(t *testing.T) {
	for name, exchange := range map[string]func() ([]byte, error){
		"a panic":             func() ([]byte, error) { panic("our own") },
		"a panic of a kind":   func() ([]byte, error) { panic(&ahp.Failure{Class: ahp.FailExit}) },
		"an error of no kind": func() ([]byte, error) { return nil, errors.New("framing") },
		"a false cancel":      func() ([]byte, error) { return nil, context.Canceled },
	} {
		h := newHarness(t, harness.Options{}, intercepts(brokenLink{exchange: exchange}, ahp.FailOpen))
		out, err := h.Dispatch(t.Context(), ahptest.ToolBefore("e", "{}"), noAllow(), nil, harness.DispatchOptions{})
		if err == nil || out != nil {
			t.Errorf("%s: %v, %v", name, out, err)
		}
		// Nor does an observer's transport end the program.
		var got *ahp.Failure
		h = newHarness(t, harness.Options{OnDelivery: func(d harness.Delivery) { got = d.Failure }},
			party{link: brokenLink{exchange: exchange}, subs: []ahp.Subscription{ahptest.Observe("*")}})
		settle(t, dispatch(t, h, "f"))
		if got == nil {
			t.Errorf("%s: the observation counts as delivered", name)
		}
	}
}

func TestNothingToDispatch(t *testing.T) {
	h := newHarness(t, harness.Options{}, intercepts(ahptest.NewFake(nil), ahp.FailOpen))
	if _, err := h.Dispatch(t.Context(), nil, noAllow(), nil, harness.DispatchOptions{}); err == nil {
		t.Error("a nil event was dispatched")
	}
	if _, err := h.Observe(t.Context(), nil); err == nil {
		t.Error("a nil event was observed")
	}
	if new(ahp.Outcome).MayExecute() || (*ahp.Outcome)(nil).MayExecute() {
		t.Error("an outcome of no dispatch may execute")
	}
	reg := &ahp.Registration{ProtocolVersion: ahp.Version, Hooks: []ahp.Backend{{
		ID: "test.nil", Transport: ahptest.StdioConfig(t, "", ahp.LifecyclePerEvent), Subscriptions: []ahp.Subscription{ahptest.Observe("*")},
	}}}
	for name, open := range map[string]func(*ahp.Backend) (transport.Transport, error){
		"nothing": func(*ahp.Backend) (transport.Transport, error) { return nil, nil },
		"a panic": func(*ahp.Backend) (transport.Transport, error) { panic("our own") },
	} {
		if _, err := harness.New(reg, harness.Options{Manifest: ahptest.Manifest(), Open: open}); err == nil {
			t.Errorf("Open gave %s, and New no error", name)
		}
	}
}

// TestOnlyWhatIsAdvertised holds that a wildcard covers what the manifest offers
// in the subscription's mode, and no more (§15).
func TestOnlyWhatIsAdvertised(t *testing.T) {
	m := ahptest.Manifest()
	for i := range m.Events {
		switch m.Events[i].Event {
		case ahp.ToolBefore:
			m.Events[i].Modes = []ahp.Mode{ahp.ModeIntercept}
		case ahp.ToolPermissionRequest:
			m.Events[i].Modes, m.Events[i].Capabilities = []ahp.Mode{ahp.ModeObserve}, nil
		}
	}
	audit := ahptest.NewFake(nil)
	h := newHarness(t, harness.Options{Manifest: m}, party{link: audit, subs: []ahp.Subscription{
		ahptest.Observe("tool.*"), ahptest.Intercept(ahp.FailClosed, time.Minute, "*"),
	}})
	if h.Subscribed(ahp.ToolPermissionRequest, ahp.ModeIntercept) || h.Subscribed(ahp.ToolBefore, ahp.ModeObserve) {
		t.Error("subscribed to what isn't offered")
	}
	if !h.Subscribed(ahp.ToolPermissionRequest, ahp.ModeObserve) || !h.Subscribed(ahp.ToolBefore, ahp.ModeIntercept) {
		t.Error("not subscribed to what is offered")
	}
	settle(t, dispatch(t, h, "e"))
	if n := len(audit.Observed()); n != 0 {
		t.Errorf("%d observations of an event that isn't offered for it", n)
	}
}

// TestNothingIsSentAfterInterruption holds that a cancelled call sends no
// observation, not even of an event that was refused before (§13).
func TestNothingIsSentAfterInterruption(t *testing.T) {
	fake := ahptest.NewFake(nil)
	h := newHarness(t, harness.Options{}, intercepts(fake, ahp.FailClosed))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	out, err := h.Dispatch(ctx, ahptest.ToolBefore("e", "{}"), noAllow(), nil, harness.DispatchOptions{ObserveOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	settle(t, out)
	if len(fake.Observed()) != 0 || !out.Interrupted {
		t.Errorf("%d observations, interrupted %v", len(fake.Observed()), out.Interrupted)
	}
}

// TestNativeOfAnError holds that native data needs includeNative wherever it is.
func TestNativeOfAnError(t *testing.T) {
	for _, native := range []bool{false, true} {
		sub := ahptest.Intercept(ahp.FailClosed, time.Minute, "tool.after")
		sub.IncludeNative = native
		fake := ahptest.NewFake(nil)
		h := newHarness(t, harness.Options{}, party{link: fake, subs: []ahp.Subscription{sub}})
		e := ahptest.ToolAfter("e", "out")
		e.Outcome, e.Error = "error", &ahp.Problem{Class: "x", Message: "y", Native: ahp.Raw(`{"token":"t"}`)}
		if _, err := h.Dispatch(t.Context(), e, ahptest.FullCapabilities(ahp.ToolAfter), nil, harness.DispatchOptions{}); err != nil {
			t.Fatal(err)
		}
		if got := fake.Requests()[0].Event.Error.Native != nil; got != native {
			t.Errorf("includeNative %v: native data sent: %v", native, got)
		}
		if e.Error.Native == nil {
			t.Error("the caller's event was changed")
		}
	}
}

// TestMediaTypeCase holds that selection classifies media types without regard to
// case.
func TestMediaTypeCase(t *testing.T) {
	sub := ahptest.Intercept(ahp.FailClosed, time.Minute, "tool.after")
	sub.Content = map[string]ahp.Selection{"default": ahp.SelectBody, "images": ahp.SelectOmit}
	fake := ahptest.NewFake(nil)
	h := newHarness(t, harness.Options{}, party{link: fake, subs: []ahp.Subscription{sub}})
	e := ahptest.ToolAfter("e", "out")
	e.Items.Messages[0].Parts = append(e.Items.Messages[0].Parts, ahp.Part{ID: "p", Kind: ahp.KindAttachment, MediaType: "IMAGE/PNG", Selection: ahp.SelectMetadata})
	if _, err := h.Dispatch(t.Context(), e, ahptest.FullCapabilities(ahp.ToolAfter), nil, harness.DispatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if n := len(fake.Requests()[0].Event.Items.Messages[0].Parts); n != 1 {
		t.Errorf("%d parts, want the text alone", n)
	}
}

// TestEditsStayBounded holds that a backend can't make an event that no other
// could be sent.
func TestEditsStayBounded(t *testing.T) {
	half := `"` + strings.Repeat("x", ahp.MaxMessageBytes/2) + `"`
	grow := ahptest.NewFake(ahptest.Says(&ahp.Modify{Target: ahp.TargetInput, Operation: ahp.OpMerge, Value: ahp.Raw(`{"b":` + half + `}`)}))
	h := newHarness(t, harness.Options{}, intercepts(grow, ahp.FailOpen), intercepts(ahptest.NewFake(nil), ahp.FailClosed))
	out, err := h.Dispatch(t.Context(), ahptest.ToolBefore("e", `{"a":`+half+`}`), noAllow(), nil, harness.DispatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if f := out.Trace[0].Failure; f == nil || f.Class != ahp.FailEffect || out.Changed {
		t.Errorf("failure %v, changed %v", f, out.Changed)
	}
}

// TestCloseIsNoInterruption holds that a dispatch which Close cuts short ends with
// an error: whoever looks for an end of the call's own context sees none.
func TestCloseIsNoInterruption(t *testing.T) {
	for _, policy := range []ahp.FailurePolicy{ahp.FailOpen, ahp.FailClosed} {
		asked := make(chan struct{})
		hung := ahptest.NewFake(func(ctx context.Context, _ *ahp.Intercept) ([]ahp.Effect, error) {
			close(asked)
			<-ctx.Done()
			return nil, nil
		})
		h := newHarness(t, harness.Options{}, intercepts(hung, policy))
		go func() {
			<-asked
			h.Close()
		}()
		out, err := h.Dispatch(t.Context(), ahptest.ToolBefore("e", "{}"), noAllow(), nil, harness.DispatchOptions{})
		if !errors.Is(err, harness.ErrClosed) || out != nil {
			t.Errorf("%s: %v, %v", policy, out, err)
		}
	}
}

// TestOnlyNamesSubscriptions holds that a name that isn't there is an error, and
// not a backend less.
func TestOnlyNamesSubscriptions(t *testing.T) {
	fake := ahptest.NewFake(nil)
	h := newHarness(t, harness.Options{}, party{link: fake, subs: []ahp.Subscription{
		ahptest.Observe("*"), ahptest.Intercept(ahp.FailClosed, time.Minute, "tool.before"),
	}})
	for _, id := range []ahp.SubscriptionID{{Backend: "test.b1"}, {Backend: "test.b0", Index: 2}, {Backend: "test.b0", Index: 0}, {}} {
		if _, err := h.Dispatch(t.Context(), ahptest.ToolBefore("e", "{}"), noAllow(), nil, harness.DispatchOptions{Only: []ahp.SubscriptionID{id}}); err == nil {
			t.Errorf("%+v was accepted", id)
		}
	}
	opts := harness.DispatchOptions{Only: []ahp.SubscriptionID{{Backend: "test.b0", Index: 1}}}
	if _, err := h.Dispatch(t.Context(), ahptest.ToolBefore("e", "{}"), noAllow(), nil, opts); err != nil || len(fake.Requests()) != 1 {
		t.Errorf("asked %d, %v", len(fake.Requests()), err)
	}
}

// TestUncertainFilters holds that a filter whose words this harness doesn't know
// drops nothing (§15).
func TestUncertainFilters(t *testing.T) {
	for _, tt := range []struct {
		filters ahp.Filters
		want    int
	}{
		{ahp.Filters{ToolKinds: []string{"file_read"}}, 0},
		{ahp.Filters{ToolKinds: []string{"file_read", "mcp"}}, 0},
		{ahp.Filters{ToolKinds: []string{"file_read", "Bash"}}, 1},
		{ahp.Filters{ToolKinds: []string{}}, 1},
		{ahp.Filters{Paths: []string{"src/**"}}, 1},
		{ahp.Filters{Paths: []string{}}, 1},
		{ahp.Filters{Paths: []string{"remote"}}, 0},
	} {
		m := ahptest.Manifest()
		m.ToolPaths = append(m.ToolPaths, "remote")
		sub := ahptest.Intercept(ahp.FailClosed, time.Minute, "tool.before")
		sub.Filters = &tt.filters
		fake := ahptest.NewFake(nil)
		h := newHarness(t, harness.Options{Manifest: m}, party{link: fake, subs: []ahp.Subscription{sub}})
		e := ahptest.ToolBefore("e", "{}")
		e.Tool.Kind = "shell"
		if _, err := h.Dispatch(t.Context(), e, noAllow(), nil, harness.DispatchOptions{}); err != nil {
			t.Fatal(err)
		}
		if got := len(fake.Requests()); got != tt.want {
			t.Errorf("%+v: asked %d times, want %d", tt.filters, got, tt.want)
		}
	}
}

func TestEvaluateNothing(t *testing.T) {
	if _, err := harness.Evaluate(&ahp.Intercept{}, []byte("{}")); err == nil {
		t.Error("a request without an event was evaluated")
	}
}

// TestInventedReferences holds that an effect can't refer to uploaded bytes: none
// were uploaded to the backend, so it can know no reference (§8, §19).
func TestInventedReferences(t *testing.T) {
	message := ahp.Message{ID: "m", Role: ahp.RoleTool, Parts: []ahp.Part{
		{ID: "p", Kind: ahp.KindAttachment, MediaType: "image/png", Selection: ahp.SelectBody, Body: &ahp.BodyRef{Ref: "guessed"}},
	}}
	list := ahp.Raw(`[{"id":"m","role":"tool","parts":[{"id":"p","kind":"attachment","mediaType":"image/png","selection":"body","body":{"ref":"guessed"}}]}]`)
	for name, effect := range map[string]ahp.Effect{
		"replace": &ahp.Modify{Target: ahp.TargetOutput, Operation: ahp.OpReplace, Value: list},
		"merge":   &ahp.Modify{Target: ahp.TargetOutput, Operation: ahp.OpMerge, Value: list},
		"inject":  &ahp.Inject{DeliverAt: ahp.DeliverNow, Messages: []ahp.Message{message}},
	} {
		h := newHarness(t, harness.Options{}, party{link: ahptest.NewFake(ahptest.Says(effect)), subs: []ahp.Subscription{ahptest.Intercept(ahp.FailClosed, time.Minute, "tool.*")}})
		out, err := h.Dispatch(t.Context(), ahptest.ToolAfter("e", "x"), ahptest.FullCapabilities(ahp.ToolAfter), nil, harness.DispatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if f := out.Trace[0].Failure; f == nil || f.Class != ahp.FailEffect || out.Changed || out.Injections != nil {
			t.Errorf("%s: %v", name, f)
		}
	}
}

// TestFailClosedDeniesEverywhere holds that a fail-closed failure is a denial also
// at events that no effect can deny, and an opened one leaves its trace.
func TestFailClosedDeniesEverywhere(t *testing.T) {
	start := &ahp.Event{
		ID: "e", Source: "urn:x", Type: ahp.SessionStart, Time: "2026-01-01T00:00:00Z", Session: &ahp.Session{ID: "s"}, Trigger: "startup",
		Harness: &ahp.HarnessInfo{Name: "n", Version: "1"}, PermissionMode: "default", Manifest: ahptest.Manifest(), Items: ahp.MessageItems(),
	}
	permission := ahptest.ToolBefore("e", "{}")
	permission.Type, permission.Suggestions = ahp.ToolPermissionRequest, []ahp.Raw{}
	for _, e := range []*ahp.Event{start, permission, ahptest.ToolBefore("e", "{}"), ahptest.ToolAfter("e", "x")} {
		for _, policy := range []ahp.FailurePolicy{ahp.FailOpen, ahp.FailClosed} {
			failing := transport.InProcess(func(context.Context, []byte) ([]byte, error) { return []byte("no"), nil })
			h := newHarness(t, harness.Options{}, party{link: failing, subs: []ahp.Subscription{ahptest.Intercept(policy, time.Minute, "*")}})
			out, err := h.Dispatch(t.Context(), e, ahptest.FullCapabilities(e.Type), nil, harness.DispatchOptions{})
			if err != nil {
				t.Fatal(err)
			}
			d := out.Denial()
			if closed := policy == ahp.FailClosed; closed != (d != nil) || closed == out.MayExecute() || d != nil && (!d.Synthetic || d.Reason != harness.SyntheticReason) {
				t.Errorf("%s, %s: %+v", e.Type, policy, out.Outcome)
			}
			if a := out.Trace[0]; a.Failure == nil || a.Policy != policy {
				t.Errorf("%s, %s: trace %+v", e.Type, policy, a)
			}
		}
	}
}

// TestLongJudgementKeepsTheDeadline holds that a reply whose effects take long to try
// out holds the call no longer than its deadline and its caller do.
func TestLongJudgementKeepsTheDeadline(t *testing.T) {
	text := strings.Repeat("x", 300<<10)
	for name, tt := range map[string]struct {
		event  *ahp.Event
		effect string
	}{
		"lists":   {ahptest.ToolAfter("e", text), `{"type":"modify","target":"output","operation":"merge","value":[]}`},
		"objects": {ahptest.ToolBefore("e", `{"a":"`+text+`"}`), `{"type":"modify","target":"input","operation":"merge","value":{}}`},
	} {
		const n = 50_000 // minutes of work
		reply := []byte(`{"jsonrpc":"2.0","id":"e","result":{"protocolVersion":"draft","effects":[` + strings.Repeat(tt.effect+",", n) + tt.effect + `]}}`)
		link := transport.InProcess(func(context.Context, []byte) ([]byte, error) { return reply, nil })
		ask := func(ctx context.Context, timeout time.Duration) *harness.Outcome {
			h := newHarness(t, harnessOptions(), party{link, []ahp.Subscription{ahptest.Intercept(ahp.FailClosed, timeout, string(tt.event.Type))}})
			began := time.Now()
			out, err := h.Dispatch(ctx, tt.event, ahptest.FullCapabilities(tt.event.Type), nil, harness.DispatchOptions{})
			if took := time.Since(began); err != nil || out.Changed || took > 15*time.Second {
				t.Fatalf("%s: after %v: %+v, %v", name, took, out, err)
			}
			return out
		}
		if out := ask(t.Context(), 300*time.Millisecond); out.Denial() == nil || !out.Denial().Synthetic {
			t.Errorf("%s: the deadline passed: %+v", name, out.Outcome)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer time.AfterFunc(300*time.Millisecond, cancel).Stop()
		if out := ask(ctx, time.Hour); !out.Interrupted || out.Trace[0].Kind != ahp.AnswerInterrupted {
			t.Errorf("%s: cancelled: %+v", name, out.Outcome)
		}
	}
}
