package harness_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/harness"
	"github.com/abhed/abhed/ahp/transport"
)

// TestHookFailures holds that what a harness tells of failed backends is a valid
// event for each, without a word of theirs, and that it reaches the others.
func TestHookFailures(t *testing.T) {
	secret := func(class ahp.FailureClass) transport.Transport {
		return &failing{failure: &ahp.Failure{Class: class, Detail: "dial https://s3cret@host"}, n: 1 << 20}
	}
	audit := ahptest.NewFake(nil)
	opened := intercepts(secret(ahp.FailConnect), ahp.FailOpen)
	closed := intercepts(secret(ahp.FailAuth), ahp.FailClosed)
	closed.subs = append(closed.subs, ahptest.Observe("*"))
	h := newHarness(t, harnessOptions(), opened, intercepts(ahptest.NewFake(nil), ahp.FailOpen), closed,
		party{link: audit, subs: []ahp.Subscription{ahptest.Observe("hook.failure")}})
	e := ahptest.ToolBefore("e", "{}")
	e.Session, e.Turn = &ahp.Session{ID: "s"}, &ahp.Turn{ID: "t"}
	out, err := h.Dispatch(t.Context(), e, noAllow(), nil, harness.DispatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	news := harness.HookFailures(&out.Outcome, time.Unix(0, 0), func() string { n++; return fmt.Sprintf("f%d", n) })
	var got []string
	for _, f := range news {
		if err := f.Event.Validate(); err != nil {
			t.Errorf("%s: %v", f.By.Backend, err)
		}
		if f.Event.ParentEventID != "e" || f.Event.Source != e.Source || f.Event.Session != e.Session || f.Event.Turn != e.Turn || strings.Contains(f.Event.Failure.Reason, "s3cret") {
			t.Errorf("%+v", f.Event)
		}
		got = append(got, f.By.Backend+" "+f.Event.Failure.BackendID+" "+f.Event.Failure.Policy+" "+strings.SplitN(f.Event.Failure.Reason, ":", 2)[0])
		d, err := h.ObserveOthers(t.Context(), f.Event, f.By.Backend)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"test.b0 test.b0 fail-open connect", "test.b2 test.b2 fail-closed auth"}
	if !slices.Equal(got, want) || len(audit.Observed()) != 2 {
		t.Errorf("%q, %d observed", got, len(audit.Observed()))
	}
}

// TestEveryClassHasAReason holds that no class is told as unknown, and that an
// interruption is no failure.
func TestEveryClassHasAReason(t *testing.T) {
	o := &ahp.Outcome{Event: ahptest.ToolBefore("e", "{}"), Trace: []ahp.Answer{{Kind: ahp.AnswerInterrupted, Failure: &ahp.Failure{Class: ahp.FailDeadline}}}}
	for _, class := range ahp.FailureClasses() {
		o.Trace = append(o.Trace, ahp.Answer{By: ahp.SubscriptionID{Backend: "a.b"}, Kind: ahp.AnswerFailure, Failure: &ahp.Failure{Class: class}, Policy: ahp.FailOpen})
	}
	news := harness.HookFailures(o, time.Now(), func() string { return "f" })
	if len(news) != len(ahp.FailureClasses()) {
		t.Errorf("%d events", len(news))
	}
	for i, f := range news {
		if !strings.HasPrefix(f.Event.Failure.Reason, string(ahp.FailureClasses()[i])+": ") {
			t.Errorf("%s: %q", ahp.FailureClasses()[i], f.Event.Failure.Reason)
		}
	}
}

// TestTraceIsFitForARecord holds what every answer of a trace tells: who was asked,
// what they said, how long it took, how often it was tried, and what a failure was
// met with.
func TestTraceIsFitForARecord(t *testing.T) {
	slow := ahptest.NewFake(func(ctx context.Context, _ *ahp.Intercept) ([]ahp.Effect, error) {
		<-ctx.Done()
		return nil, nil
	})
	h := newHarness(t, harness.Options{},
		intercepts(&failing{failure: &ahp.Failure{Class: ahp.FailConnect, Detail: "d"}, n: 1}, ahp.FailOpen),
		party{link: slow, subs: []ahp.Subscription{ahptest.Intercept(ahp.FailOpen, 100*time.Millisecond, "tool.before")}},
		intercepts(ahptest.NewFake(ahptest.Says(replace(`{"command":"x"}`))), ahp.FailClosed),
		intercepts(ahptest.NewFake(ahptest.Says(&ahp.Deny{Reason: "r"})), ahp.FailClosed))
	out := dispatch(t, h, "e")
	if len(out.Trace) != 4 {
		t.Fatalf("%d answers", len(out.Trace))
	}
	for i, a := range out.Trace {
		if a.By.Backend != fmt.Sprintf("test.b%d", i) || a.Kind == ahp.AnswerEffects != (a.Failure == nil) || (a.Failure == nil) != (a.Policy == "") {
			t.Errorf("%d: %+v", i, a)
		}
	}
	first, second, third, last := out.Trace[0], out.Trace[1], out.Trace[2], out.Trace[3]
	if first.Attempts != 2 || first.Earlier[0].Detail != "d" || first.Milliseconds < 50 {
		t.Errorf("first: %+v", first)
	}
	if second.Attempts != 1 || second.Failure.Class != ahp.FailDeadline || second.Policy != ahp.FailOpen || second.Milliseconds < 100 {
		t.Errorf("second: %+v", second)
	}
	if !third.Changed || len(third.Effects) != 1 || last.Changed || last.Effects[0].(*ahp.Deny).Reason != "r" {
		t.Errorf("third %+v, last %+v", third, last)
	}
}

// TestQuotedReplies holds that the failure of a reply which isn't JSON quotes its
// first 80 bytes with control characters made visible, and that nothing of it gets
// into what a model may read or what others are told. A reply that is JSON is
// not quoted.
func TestQuotedReplies(t *testing.T) {
	long := "[dotenv] loaded\t\x1b[31m3\x1b[0m " + strings.Repeat("x", 100)
	for reply, want := range map[string]string{
		"[dotenv] loaded 3": `; the reply is "[dotenv] loaded 3"`,
		long:                `; the reply starts with "[dotenv] loaded\t\x1b[31m3\x1b[0m ` + strings.Repeat("x", 80-27) + `"`,
		"a\u202eb\xff\r":    `; the reply is "a\u202eb\xff\r"`,
		"":                  `; the reply is ""`,
		`{"jsonrpc":"2.0"}`: "",
	} {
		link := transport.InProcess(func(context.Context, []byte) ([]byte, error) { return []byte(reply), nil })
		out := dispatch(t, newHarness(t, harness.Options{}, intercepts(link, ahp.FailClosed)), "e")
		f := out.Trace[0].Failure
		if f == nil || f.Class != ahp.FailMalformed || !strings.HasSuffix(f.Detail, want) || want == "" && strings.Contains(f.Detail, "the reply ") {
			t.Errorf("%q: %v", reply, f)
			continue
		}
		if d := out.Denial(); d == nil || d.Reason != harness.SyntheticReason || len(out.Messages) != 0 {
			t.Errorf("%q: %+v", reply, out.Outcome)
		}
		for _, news := range harness.HookFailures(&out.Outcome, time.Unix(0, 0), func() string { return "f" }) {
			if reason := news.Event.Failure.Reason; reason != "malformed: the reply was no valid message" {
				t.Errorf("%q: told %q", reply, reason)
			}
		}
	}
}
