package harness_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/harness"
)

// listener is a Telemetry that remembers what it was told.
type listener struct {
	extensions ahp.Extensions
	mu         sync.Mutex
	told       []string
}

type spanKey struct{}

func (l *listener) say(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.told = append(l.told, fmt.Sprintf(format, args...))
}

func (l *listener) Dispatch(ctx context.Context, e *ahp.Event) (context.Context, func(*ahp.Outcome, error)) {
	l.say("dispatch %s", e.ID)
	return context.WithValue(ctx, spanKey{}, "d"), func(o *ahp.Outcome, err error) { l.say("dispatched %s %v", o.Permission, err) }
}

func (l *listener) Ask(ctx context.Context, e *ahp.Event, by ahp.SubscriptionID) (context.Context, func(ahp.Answer)) {
	l.say("ask %s of %v in %v", by.Backend, string(e.Tool.Input), ctx.Value(spanKey{}))
	return context.WithValue(ctx, spanKey{}, "a"), func(a ahp.Answer) { l.say("answered %s", a.Kind) }
}

func (l *listener) Extensions(ctx context.Context) ahp.Extensions {
	l.say("extensions in %v", ctx.Value(spanKey{}))
	return l.extensions
}

func (l *listener) Delivered(ctx context.Context, d harness.Delivery) {
	l.say("delivered %s in %v", d.By.Backend, ctx.Value(spanKey{}))
}

func TestTelemetryIsTold(t *testing.T) {
	l := &listener{extensions: ahp.Extensions{"org.w3c.trace_context": ahp.Raw(`"t"`), "com.example.own": ahp.Raw(`"theirs"`)}}
	judge, audit := ahptest.NewFake(ahptest.Says(replace(`{"command":"b"}`))), ahptest.NewFake(nil)
	h := newHarness(t, harness.Options{Telemetry: l}, intercepts(judge, ahp.FailClosed),
		party{link: audit, subs: []ahp.Subscription{ahptest.Observe("*")}})
	e := ahptest.ToolBefore("e", `{"command":"a"}`)
	e.Extensions = ahp.Extensions{"com.example.own": ahp.Raw(`"ours"`)}
	out, err := h.Dispatch(t.Context(), e, noAllow(), nil, harness.DispatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	settle(t, out)
	want := []string{
		"dispatch e", `ask test.b0 of {"command":"a"} in d`, "extensions in a", "answered effects",
		"extensions in d", "dispatched none <nil>", "delivered test.b1 in d",
	}
	if !slices.Equal(sortedTail(l.told, 4), sortedTail(want, 4)) {
		t.Errorf("told\n%s", strings.Join(l.told, "\n"))
	}
	for _, seen := range []*ahp.Event{judge.Requests()[0].Event, audit.Observed()[0]} {
		if string(seen.Extensions["org.w3c.trace_context"]) != `"t"` || string(seen.Extensions["com.example.own"]) != `"ours"` {
			t.Errorf("sent the extensions %s", seen.Extensions)
		}
	}
	if len(e.Extensions) != 1 || len(out.Event.Extensions) != 1 {
		t.Error("the effective event has what telemetry added")
	}
}

// sortedTail sorts what comes after the first n: its order is free.
func sortedTail(list []string, n int) []string {
	out := slices.Clone(list)
	slices.Sort(out[min(n, len(out)):])
	return out
}

// TestTelemetryIsLeftOut holds that what can't be sent is left out and changes
// nothing.
func TestTelemetryIsLeftOut(t *testing.T) {
	deep := strings.Repeat("[", 125) + strings.Repeat("]", 125)
	for name, extensions := range map[string]ahp.Extensions{
		"a key that is no name": {"traceparent": ahp.Raw(`"t"`)},
		"no JSON":               {"org.example.a": ahp.Raw(`{"a":1,"a":2}`)},
		"large":                 {"org.example.a": ahp.Raw(`"` + strings.Repeat("x", 9000) + `"`)},
		"deep":                  {"org.example.a": ahp.Raw(deep)},
	} {
		judge := ahptest.NewFake(nil)
		h := newHarness(t, harness.Options{Telemetry: &listener{extensions: extensions}}, intercepts(judge, ahp.FailClosed))
		out := dispatch(t, h, "e")
		if !out.MayExecute() || len(judge.Requests()) != 1 || judge.Requests()[0].Event.Extensions != nil {
			t.Errorf("%s: %+v", name, out.Trace)
		}
	}
}

// brokenTelemetry panics wherever it can.
type brokenTelemetry struct{ late bool }

func (b brokenTelemetry) Dispatch(context.Context, *ahp.Event) (context.Context, func(*ahp.Outcome, error)) {
	if b.late {
		return nil, func(*ahp.Outcome, error) { panic("end of dispatch") }
	}
	panic("dispatch")
}

func (b brokenTelemetry) Ask(context.Context, *ahp.Event, ahp.SubscriptionID) (context.Context, func(ahp.Answer)) {
	if b.late {
		return nil, func(ahp.Answer) { panic("end of ask") }
	}
	panic("ask")
}
func (brokenTelemetry) Extensions(context.Context) ahp.Extensions   { panic("extensions") }
func (brokenTelemetry) Delivered(context.Context, harness.Delivery) { panic("delivered") }

func TestTelemetryPanicsAreContained(t *testing.T) {
	for _, late := range []bool{false, true} {
		judge, audit := ahptest.NewFake(ahptest.Says(&ahp.Deny{Reason: "no"})), ahptest.NewFake(nil)
		h := newHarness(t, harness.Options{Telemetry: brokenTelemetry{late}}, intercepts(judge, ahp.FailOpen),
			party{link: audit, subs: []ahp.Subscription{ahptest.Observe("*")}})
		out := dispatch(t, h, "e")
		settle(t, out)
		if d := out.Denial(); d == nil || d.Reason != "no" || len(audit.Observed()) != 1 {
			t.Errorf("late %v: %+v", late, out.Outcome)
		}
		d, err := h.Observe(t.Context(), ahptest.ToolAfter("f", "x"))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := d.Wait(ctx); err != nil || len(audit.Observed()) != 2 {
			t.Errorf("late %v: %v", late, err)
		}
	}
}
