package agent_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/agent"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/tool"
)

// steer says text and fails unless it is taken as wanted.
func steer(t *testing.T, l *agent.Loop, text string, running bool) {
	t.Helper()
	if got, err := l.Steer(text); err != nil || got != running {
		t.Errorf("steering with %q: running %v, %v; want running %v", text, got, err, running)
	}
}

// steered returns the texts that the record holds as said during a run.
func steered(log *memLog) []string {
	var out []string
	for _, m := range of[*event.UserMessage](log) {
		if m.Steered {
			out = append(out, m.Text)
		}
	}
	return out
}

// TestSteeringReachesTheNextRequest says two things while a tool runs, and one while
// the model answers: the run goes on with it.
func TestSteeringReachesTheNextRequest(t *testing.T) {
	for _, name := range []string{"read", "write"} {
		var l *agent.Loop
		run := func(context.Context, tool.Grant) tool.Result {
			steer(t, l, "one\x00", true)
			steer(t, l, "two", true)
			return tool.OK("ran")
		}
		answer := func() *model.Response {
			steer(t, l, "three", true)
			return says("done")
		}
		b := setup(t, run, calls(name, "{}"), answer, says("all done"))
		l = agent.New(b.opts)
		res := l.Run(t.Context(), agent.Prompt{Text: "go"})
		want(t, res, agent.ReasonCompleted)
		w := []string{"go", "<c1>", "c1=ran", "one", "two", "done", "three"}
		if got := texts(b.model.last().Messages); len(got) != 7 || !strings.HasPrefix(got[3], "one") || !slices.Equal(slices.Replace(got, 3, 4, "one"), w) {
			t.Errorf("%s: the model was sent %q, want %q", name, got, w)
		}
		if len(b.model.asked) != 3 || res.Text != "all done" {
			t.Errorf("%s: %d requests, text %q", name, len(b.model.asked), res.Text)
		}
		if got := steered(b.log); len(got) != 3 || strings.Contains(got[0], "\x00") {
			t.Errorf("%s: recorded as said during the run: %q", name, got)
		}
	}
}

// TestSteeringBetweenRuns holds that what is said while nothing runs comes before
// the next prompt, and that a run that has just answered takes nothing more.
func TestSteeringBetweenRuns(t *testing.T) {
	var l *agent.Loop
	b := setup(t, nil, says("first"), says("second"))
	b.opts.Extensions = &fakeExtensions{atEnd: func() {
		if len(b.model.asked) == 1 {
			steer(t, l, "late", false)
		}
	}}
	l = agent.New(b.opts)
	steer(t, l, "before", false)
	want(t, l.Run(t.Context(), agent.Prompt{Text: "go"}), agent.ReasonCompleted)
	steer(t, l, "between", false)
	want(t, l.Run(t.Context(), agent.Prompt{Text: "more"}), agent.ReasonCompleted)
	w := []string{"before", "go", "first", "late", "between", "more"}
	if got := texts(b.model.last().Messages); !slices.Equal(got, w) {
		t.Errorf("the model was sent %q, want %q", got, w)
	}
}

// TestRefusedSteering lets an extension, or a backend, refuse one of three texts, and
// a backend change one.
func TestRefusedSteering(t *testing.T) {
	no := &agent.Refusal{By: "x", Reason: "not now"}
	for _, who := range []string{"extension", "backend"} {
		b := setup(t, nil, says("done"))
		if who == "extension" {
			b.opts.Extensions = &fakeExtensions{submit: func(text string) *agent.Refusal {
				if text == "bad" {
					return no
				}
				return nil
			}}
		}
		b.opts.Hooks = &fakeHooks{ask: func(_ agent.At, m agent.Moment) *agent.Say {
			in, is := m.(*agent.Inbound)
			switch {
			case is && in.Text == "bad" && who == "backend":
				return &agent.Say{Refusal: no}
			case is && in.Text == "odd":
				return &agent.Say{Text: "even", By: []string{"y"}}
			}
			return nil
		}}
		l := agent.New(b.opts)
		for _, text := range []string{"good", "bad", "odd"} {
			steer(t, l, text, false)
		}
		want(t, l.Run(t.Context(), agent.Prompt{Text: "go"}), agent.ReasonCompleted)
		if got, w := texts(b.model.last().Messages), []string{"good", "even", "go"}; !slices.Equal(got, w) {
			t.Errorf("%s: the model was sent %q, want %q", who, got, w)
		}
		if n := of[*event.Notice](b.log); len(n) != 1 || !strings.Contains(n[0].Text, "x: not now") {
			t.Errorf("%s: the record doesn't say who refused it: %+v", who, n)
		}
		for _, d := range b.log.events {
			if m, is := d.Payload.(*event.UserMessage); is && m.Text == "even" && (d.Trust != event.TrustUntrusted || !slices.Equal(m.RewrittenBy, []string{"y"})) {
				t.Errorf("%s: what a backend wrote has trust %s, by %v", who, d.Trust, m.RewrittenBy)
			}
		}
	}
}

// TestSteeringIsNotLost ends a run before what was said is delivered, in each way
// that there is; the next run begins with it, each text once.
func TestSteeringIsNotLost(t *testing.T) {
	for _, how := range []string{"limit", "interrupt in the tool", "interrupt in the hook", "hook broken", "failure", "stop"} {
		t.Run(how, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var l *agent.Loop
			broken := false
			run := func(context.Context, tool.Grant) tool.Result {
				steer(t, l, "one", true)
				steer(t, l, "two", true)
				broken = true
				if how == "interrupt in the tool" {
					cancel()
				}
				return tool.OK("ran")
			}
			b := setup(t, run, calls("write", "{}"), says("done"))
			h := &fakeHooks{wants: func(at ahp.EventType, _ ahp.Mode) bool { return at == ahp.UserMessageInbound }, ask: func(_ agent.At, m agent.Moment) *agent.Say {
				in, is := m.(*agent.Inbound)
				if !is || !broken || in.Text != "two" {
					return nil
				}
				switch how {
				case "interrupt in the hook":
					cancel()
					return &agent.Say{Refusal: &agent.Refusal{Interrupted: true}}
				case "hook broken":
					return &agent.Say{Refusal: &agent.Refusal{Err: fmt.Errorf("broken")}}
				}
				return nil
			}}
			b.opts.Hooks = h
			switch how {
			case "limit":
				b.opts.Limits.Turns = 1
			case "stop":
				b.gate.stop = "enough"
			case "failure":
				b.gate.rule = func(agent.Proposal) agent.Ruling {
					run(ctx, tool.Grant{})
					return &agent.Broken{Err: fmt.Errorf("broken")}
				}
			}
			l = agent.New(b.opts)
			if res := l.Run(ctx, agent.Prompt{Text: "go"}); res.Reason == agent.ReasonCompleted {
				t.Fatal("the run was to end early")
			}
			if n := len(b.model.asked); n != 1 {
				t.Errorf("%d requests in the run that ended", n)
			}
			broken = false
			before := steered(b.log)
			l.Run(t.Context(), agent.Prompt{Text: "more"})
			if got := steered(b.log); !slices.Equal(got, []string{"one", "two"}) {
				t.Errorf("delivered %q in the first run, %q in all", before, got)
			}
		})
	}
}

// TestSteeringIsBounded holds the number of texts that wait, and their size.
func TestSteeringIsBounded(t *testing.T) {
	for _, size := range []int{1, 1 << 20} {
		b := setup(t, nil, says("done"), says("done"))
		l := agent.New(b.opts)
		n := 0
		for ; n < 1000; n++ {
			if _, err := l.Steer(strings.Repeat("x", size)); err != nil {
				break
			}
		}
		if w := map[int]int{1: 256, 1 << 20: 4}[size]; n != w {
			t.Errorf("%d texts of %d bytes were taken, want %d", n, size, w)
		}
		want(t, l.Run(t.Context(), agent.Prompt{Text: "go"}), agent.ReasonCompleted)
		if got := len(b.model.asked[0].Messages); got != n+1 {
			t.Errorf("%d messages were sent, want %d", got, n+1)
		}
		steer(t, l, "there is room again", false)
	}
}
