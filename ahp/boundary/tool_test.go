package boundary_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/boundary"
	"github.com/abhed/abhed/ahp/elicitation"
	"github.com/abhed/abhed/ahp/harness"
	"github.com/abhed/abhed/ahp/transport"
)

const input = `{"command":"ls"}`

// TestToolStatuses has one row per way in which a call can end. Each says whether
// the executor runs, on what, what the model reads, and what is observed.
func TestToolStatuses(t *testing.T) {
	const before, after, asks, resolved, failure = ahp.ToolBefore, ahp.ToolAfter, ahp.ToolPermissionRequest, ahp.ToolPermissionResolved, ahp.HookFailure
	rewrite := &ahp.Modify{Target: ahp.TargetInput, Operation: ahp.OpReplace, Value: ahp.Raw(`{"command":"pwd"}`)}
	edit := &ahp.Modify{Target: ahp.TargetOutput, Operation: ahp.OpReplace, Value: ahp.Raw(messageValue(ahp.RoleTool, "edited"))}
	var cancel context.CancelFunc
	type ran func(context.Context) (boundary.ToolOutput, error)
	gives := func(text string, err error) ran {
		return func(context.Context) (boundary.ToolOutput, error) { return boundary.ToolOutput{Text: text}, err }
	}
	ok := gives("out", nil)
	for _, tt := range []struct {
		name     string
		judge    ahptest.Judge
		approve  func(context.Context, boundary.Approval) (bool, error)
		exec     ran
		status   boundary.Status
		outcome  string
		input    string // what the executor gets; "" where it doesn't run
		output   string
		observed []ahp.EventType
	}{
		{"ran", nil, nil, ok, boundary.Ran, "ok", input, "out", []ahp.EventType{before, after}},
		{"ran on the effective input", at(before, rewrite), nil, ok, boundary.Ran, "ok", `{"command":"pwd"}`, "out", []ahp.EventType{before, after}},
		{"ran, and the output is edited", at(after, edit), nil, ok, boundary.Ran, "ok", input, "edited", []ahp.EventType{before, after}},
		{"ran without output", nil, nil, gives("", nil), boundary.Ran, "ok", input, "", []ahp.EventType{before, after}},
		{"failed", nil, nil, gives("half", errors.New("exit 1")), boundary.Failed, "error", input, "half", []ahp.EventType{before, after}},
		{"failed without output", nil, nil, gives("", errors.New("exit 1")), boundary.Failed, "error", input, "exit 1", []ahp.EventType{before, after}},
		{"its own time was up", nil, nil, gives("", context.DeadlineExceeded), boundary.Failed, "timeout", input, "context deadline exceeded", []ahp.EventType{before, after}},
		{"it gave up", nil, nil, gives("", context.Canceled), boundary.Failed, "cancelled", input, "context canceled", []ahp.EventType{before, after}},
		{"the harness's own rules", nil, nil, gives("", &boundary.Refusal{Reason: "read-only"}), boundary.Refused, "denied", input, "read-only", []ahp.EventType{before, after}},
		{"denied", at(before, deny), nil, ok, boundary.Denied, "denied", "", "not here", []ahp.EventType{before, after}},
		{"denied, whatever the approval", at(before, &ahp.Ask{}, deny), approves(true), ok, boundary.Denied, "denied", "", "not here", []ahp.EventType{before, after}},
		{"denied, and the refusal can't be edited", both(at(before, deny), func(_ context.Context, q *ahp.Intercept) ([]ahp.Effect, error) {
			if q.Event.Type == after && q.Capabilities.Has(ahp.EffectModify) {
				return []ahp.Effect{edit}, nil
			}
			return nil, nil
		}), nil, ok, boundary.Denied, "denied", "", "not here", []ahp.EventType{before, after}},
		{"nobody to ask about it", failsAt(before), nil, ok, boundary.Denied, "denied", "", "A required policy check", []ahp.EventType{before, failure, after}},
		{"nobody to ask about the result", failsAt(after), nil, ok, boundary.Withheld, "ok", input, "The result was withheld", []ahp.EventType{before, after, failure}},
		{"stopped", at(before, stop), nil, ok, boundary.Stopped, "", "", "", []ahp.EventType{before}},
		{"stopped before an approval", at(before, &ahp.Ask{}, stop), approves(true), ok, boundary.Stopped, "", "", "", []ahp.EventType{before}},
		{"stopped and denied", at(before, stop, deny), nil, ok, boundary.Denied, "denied", "", "not here", []ahp.EventType{before, after}},
		{"stopped after it", at(after, stop), nil, ok, boundary.Ran, "ok", input, "out", []ahp.EventType{before, after}},
		{"supplied text", at(before, returns(`"given"`)), nil, ok, boundary.Supplied, "ok", "", "given", []ahp.EventType{before, after}},
		{"supplied null", at(before, returns(`null`)), nil, ok, boundary.Supplied, "ok", "", "null", []ahp.EventType{before, after}},
		{"supplied object", at(before, returns(`{"b": 1.50, "a": []}`)), nil, ok, boundary.Supplied, "ok", "", `{"a":[],"b":1.50}`, []ahp.EventType{before, after}},
		{"supplied and edited", both(at(before, returns(`1`)), at(after, edit)), nil, ok, boundary.Supplied, "ok", "", "edited", []ahp.EventType{before, after}},
		{"approved", at(before, &ahp.Ask{}), approves(true), ok, boundary.Ran, "ok", input, "out", []ahp.EventType{before, asks, resolved, after}},
		{"approved, and supplied", at(before, &ahp.Ask{}, returns(`1`)), approves(true), ok, boundary.Supplied, "ok", "", "1", []ahp.EventType{before, asks, resolved, after}},
		{"refused", at(before, &ahp.Ask{}), approves(false), ok, boundary.Refused, "denied", "", "The operation needs an approval", []ahp.EventType{before, asks, resolved, after}},
		{"refused, and nothing supplied", at(before, &ahp.Ask{}, returns(`1`)), approves(false), ok, boundary.Refused, "denied", "", "The operation needs an approval", []ahp.EventType{before, asks, resolved, after}},
		{"nobody to approve", at(before, &ahp.Ask{}), nil, ok, boundary.Refused, "denied", "", "The operation needs an approval", []ahp.EventType{before, asks, resolved, after}},
		{"the prompt failed", at(before, &ahp.Ask{}), func(context.Context, boundary.Approval) (bool, error) { return true, errors.New("no tty") }, ok, boundary.Refused, "denied", "",
			"The operation needs an approval", []ahp.EventType{before, asks, resolved, after}},
		{"the prompt panicked", at(before, &ahp.Ask{}), func(context.Context, boundary.Approval) (bool, error) { panic("tty") }, ok, boundary.Refused, "denied", "",
			"The operation needs an approval", []ahp.EventType{before, asks, resolved, after}},
		{"denied at the prompt", both(at(before, &ahp.Ask{}), at(asks, deny)), approves(true), ok, boundary.Denied, "denied", "", "not here", []ahp.EventType{before, asks, after}},
		{"stopped at the prompt", both(at(before, &ahp.Ask{}), at(asks, stop)), approves(true), ok, boundary.Stopped, "", "", "", []ahp.EventType{before, asks}},
		{"rewritten at the prompt", both(at(before, &ahp.Ask{}, returns(`1`)), at(asks, rewrite)), approves(true), ok, boundary.Ran, "ok", `{"command":"pwd"}`, "out", []ahp.EventType{before, asks, resolved, after}},
		{"cancelled while asked", cancelsAt(before, &cancel), nil, ok, boundary.Interrupted, "", "", "", nil},
		{"cancelled at the prompt", at(before, &ahp.Ask{}), func(context.Context, boundary.Approval) (bool, error) { cancel(); return true, nil }, ok, boundary.Interrupted, "", "", "", []ahp.EventType{before, asks}},
		{"cancelled while asked at the prompt", both(at(before, &ahp.Ask{}), cancelsAt(asks, &cancel)), approves(true), ok, boundary.Interrupted, "", "", "", []ahp.EventType{before}},
		{"cancelled while it ran", nil, nil, func(ctx context.Context) (boundary.ToolOutput, error) {
			cancel()
			return boundary.ToolOutput{}, ctx.Err()
		}, boundary.Interrupted, "cancelled", input, "", []ahp.EventType{before, after}},
		{"cancelled when it was done", nil, nil, func(context.Context) (boundary.ToolOutput, error) {
			cancel()
			return boundary.ToolOutput{Text: "out"}, nil
		}, boundary.Interrupted, "ok", input, "", []ahp.EventType{before, after}},
		{"cancelled while asked about the result", cancelsAt(after, &cancel), nil, ok, boundary.Interrupted, "ok", input, "", []ahp.EventType{before}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var ctx context.Context
			ctx, cancel = context.WithCancel(t.Context())
			defer cancel()
			w := newWorld(t, boundary.Options{Approve: tt.approve}, tt.judge)
			var got []string
			r, err := w.Tool(ctx, boundary.ToolCall{ID: "c", Name: "bash", Input: ahp.Raw(input)}, func(ctx context.Context, in ahp.Raw) (boundary.ToolOutput, error) {
				got = append(got, string(in))
				return tt.exec(ctx)
			})
			if err != nil {
				t.Fatal(err)
			}
			want := []string{tt.input}
			if tt.input == "" {
				want = nil
			}
			if !slices.Equal(got, want) {
				t.Errorf("the executor got %q, want %q", got, want)
			}
			if r.Status != tt.status || r.Outcome != tt.outcome {
				t.Errorf("status %s, outcome %q, want %s, %q", r.Status, r.Outcome, tt.status, tt.outcome)
			}
			if !strings.HasPrefix(r.Text(), tt.output) || tt.output == "" && r.Text() != "" {
				t.Errorf("output %q, want %q", r.Text(), tt.output)
			}
			if executed := tt.input != "" && tt.status != boundary.Refused; r.Executed != executed {
				t.Errorf("executed %v", r.Executed)
			}
			types, events := w.observed(t)
			if !sameSet(types, tt.observed) {
				t.Errorf("observed %q, want %q", types, tt.observed)
			}
			checkEvents(t, events)
		})
	}
}

// sameSet compares without regard to order: news of failures comes when it comes.
func sameSet(a, b []ahp.EventType) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// checkEvents holds what all events of one call have in common.
func checkEvents(t *testing.T, events []*ahp.Event) {
	t.Helper()
	ids := map[string]bool{}
	for _, e := range events {
		if ids[e.ID] || len(e.ID) != 36 || e.ID[14] != '7' {
			t.Errorf("id %q of %s isn't a new UUIDv7", e.ID, e.Type)
		}
		ids[e.ID] = true
		if e.Session == nil || e.Session.ID != "s" || e.Source != "urn:ahp:test" {
			t.Errorf("%s has the envelope %v, %q", e.Type, e.Session, e.Source)
		}
		if e.Call != nil && (e.Call.ID != "c" || e.Call.Synthesized) {
			t.Errorf("%s has the call %v", e.Type, e.Call)
		}
		if e.Type == ahp.ToolAfter && e.ParentEventID == "" {
			t.Error("tool.after without the event before it")
		}
	}
}

func TestToolCallIDs(t *testing.T) {
	w := newWorld(t, boundary.Options{}, nil)
	turn, err := w.TurnStart(t.Context(), boundary.TurnInput{ID: "t1"})
	if err != nil {
		t.Fatal(err)
	}
	r, err := w.Tool(t.Context(), boundary.ToolCall{Name: "bash", Kind: "shell", Input: ahp.Raw(input), Turn: turn.Turn}, func(context.Context, ahp.Raw) (boundary.ToolOutput, error) {
		return boundary.ToolOutput{Text: "bad \xff byte", FileChanges: []ahp.FileChange{{Path: "a", Change: "deleted"}}}, nil
	})
	if err != nil || r.Text() != "bad \uFFFD byte" {
		t.Errorf("%q, %v", r.Text(), err)
	}
	_, events := w.observed(t)
	before, after := events[1], events[2]
	if !r.Call.Synthesized || *before.Call != r.Call || *after.Call != r.Call || after.ParentEventID != before.ID {
		t.Errorf("calls %v, %v, %v, parent %q of %q", r.Call, before.Call, after.Call, after.ParentEventID, before.ID)
	}
	if after.Turn.ID != "t1" || after.DurationMs == nil || len(after.FileChanges) != 1 || after.Tool.Kind != "shell" || after.Path != "native" {
		t.Errorf("after %+v", after)
	}
}

// TestToolBugs holds that no bug ends in a status that allows something.
func TestToolBugs(t *testing.T) {
	exec := func(context.Context, ahp.Raw) (boundary.ToolOutput, error) {
		return boundary.ToolOutput{Text: "out"}, nil
	}
	t.Run("panic", func(t *testing.T) {
		w := newWorld(t, boundary.Options{}, nil)
		r, err := w.Tool(t.Context(), boundary.ToolCall{ID: "c", Name: "bash", Input: ahp.Raw(input)}, func(context.Context, ahp.Raw) (boundary.ToolOutput, error) {
			panic("secret")
		})
		if err == nil || r.OK() || !r.Executed || r.Outcome != "error" || strings.Contains(r.Text(), "secret") {
			t.Errorf("%+v, %v", r.Verdict, err)
		}
		_, events := w.observed(t)
		if e := events[1]; e.Error == nil || strings.Contains(e.Error.Message, "secret") {
			t.Errorf("observed %+v", e.Error)
		}
	})
	t.Run("a panic is no refusal", func(t *testing.T) {
		w := newWorld(t, boundary.Options{}, nil)
		r, err := w.Tool(t.Context(), boundary.ToolCall{ID: "c", Name: "bash", Input: ahp.Raw(input)}, func(context.Context, ahp.Raw) (boundary.ToolOutput, error) {
			panic(&boundary.Refusal{Reason: "nothing ran"})
		})
		if err == nil || r.Status != boundary.Failed || !r.Executed || r.Outcome != "error" {
			t.Errorf("%+v, %v", r.Verdict, err)
		}
	})
	t.Run("invalid call", func(t *testing.T) {
		for _, w := range []*world{newWorld(t, boundary.Options{}, nil), newWorld(t, boundary.Options{})} {
			r, err := w.Tool(t.Context(), boundary.ToolCall{Name: "bash", Input: ahp.Raw(`[]`)}, exec)
			if err == nil || r.Status != boundary.None || r.Executed {
				t.Errorf("%+v, %v", r.Verdict, err)
			}
		}
	})
	t.Run("a result that can't be sent", func(t *testing.T) {
		w := newWorld(t, boundary.Options{}, nil)
		r, err := w.Tool(t.Context(), boundary.ToolCall{Name: "bash", Input: ahp.Raw(input)}, func(context.Context, ahp.Raw) (boundary.ToolOutput, error) {
			return boundary.ToolOutput{Text: strings.Repeat("x", ahp.MaxMessageBytes)}, nil
		})
		if err == nil || r.Status != boundary.Withheld || !r.Executed || r.Output != nil {
			t.Errorf("%+v, %v", r.Verdict, err)
		}
	})
	t.Run("closed", func(t *testing.T) {
		w := newWorld(t, boundary.Options{}, nil)
		w.h.Close()
		r, err := w.Tool(t.Context(), boundary.ToolCall{Name: "bash", Input: ahp.Raw(input)}, exec)
		if err == nil || r.Status != boundary.None || r.Executed {
			t.Errorf("%+v, %v", r.Verdict, err)
		}
	})
}

// TestFailures holds what is told of a backend that can't be asked: to everybody
// but that backend, and nothing of what it said.
func TestFailures(t *testing.T) {
	w := newWorldOf(t, boundary.Options{}, ahptest.Manifest(), ahp.FailOpen, failsAt(ahp.ToolBefore))
	r, err := w.Tool(t.Context(), boundary.ToolCall{ID: "c", Name: "bash", Input: ahp.Raw(input)}, func(context.Context, ahp.Raw) (boundary.ToolOutput, error) {
		return boundary.ToolOutput{}, nil
	})
	if err != nil || r.Status != boundary.Ran {
		t.Errorf("%s, %v", r.Status, err)
	}
	_, events := w.observed(t)
	i := slices.IndexFunc(events, func(e *ahp.Event) bool { return e.Type == ahp.HookFailure })
	if i < 0 {
		t.Fatal("no hook.failure")
	}
	want := ahp.HookProblem{BackendID: "test.b0", Reason: "rpc_error", Policy: "fail-open"}
	if got := events[i]; got.Failure.BackendID != want.BackendID || got.Failure.Reason != want.Reason || got.Failure.Policy != want.Policy || got.ParentEventID != events[0].ID {
		t.Errorf("%+v of %q, want %+v of %q", got.Failure, got.ParentEventID, want, events[0].ID)
	}
	if n := len(w.fakes[0].Observed()); n != 0 {
		t.Errorf("the failing backend was told %d things", n)
	}
}

// TestFailingBackendIsSpared holds that news of a failure doesn't go to the backend
// that failed, even where it observes everything.
func TestFailingBackendIsSpared(t *testing.T) {
	failing, other := ahptest.NewFake(failsAt(ahp.ToolBefore)), ahptest.NewFake(nil)
	links := map[string]transport.Transport{"test.failing": failing, "test.other": other}
	reg := &ahp.Registration{ProtocolVersion: ahp.Version}
	for _, id := range []string{"test.failing", "test.other"} {
		reg.Hooks = append(reg.Hooks, ahp.Backend{ID: id, Transport: ahp.TransportConfig{Type: ahp.TransportStdio, Command: "unused", Lifecycle: ahp.LifecyclePersistent},
			Subscriptions: []ahp.Subscription{ahptest.Intercept(ahp.FailOpen, time.Minute, "tool.before"), ahptest.Observe("hook.failure")}})
	}
	h, err := harness.New(reg, harness.Options{Manifest: boundary.Manifest(), Retries: -1, Open: func(b *ahp.Backend) (transport.Transport, error) { return links[b.ID], nil }})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	b, err := boundary.New(h, boundary.Options{Source: "urn:ahp:test"})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := b.Tool(t.Context(), boundary.ToolCall{Name: "bash", Input: ahp.Raw(input)}, func(context.Context, ahp.Raw) (boundary.ToolOutput, error) {
		return boundary.ToolOutput{}, nil
	}); err != nil || r.Status != boundary.Ran {
		t.Errorf("%s, %v", r.Status, err)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	if n, m := len(failing.Observed()), len(other.Observed()); n != 0 || m != 1 {
		t.Errorf("the failing backend was told %d things, the other %d", n, m)
	}
}

// TestCancelledAtTheLastMoment cancels after everybody has been asked.
func TestCancelledAtTheLastMoment(t *testing.T) {
	var cancel context.CancelFunc
	runs := 0
	for name, call := range map[string]func(context.Context, *world) (boundary.Verdict, error){
		"tool": func(ctx context.Context, w *world) (boundary.Verdict, error) {
			r, err := w.Tool(ctx, boundary.ToolCall{Name: "bash", Input: ahp.Raw(input)}, func(context.Context, ahp.Raw) (boundary.ToolOutput, error) {
				runs++
				return boundary.ToolOutput{}, nil
			})
			return r.Verdict, err
		},
		"model": func(ctx context.Context, w *world) (boundary.Verdict, error) {
			r, err := w.Model(ctx, modelCall(), func(context.Context, ahp.Raw, []ahp.Message) (boundary.ModelOutput, error) {
				runs++
				return boundary.ModelOutput{}, nil
			})
			return r.Verdict, err
		},
		"compact": func(ctx context.Context, w *world) (boundary.Verdict, error) {
			r, err := w.Compact(ctx, boundary.CompactCall{Trigger: "auto"}, func(context.Context, []ahp.Message, []ahp.Part) (string, error) {
				runs++
				return "", nil
			})
			return r.Verdict, err
		},
		"elicit": func(ctx context.Context, w *world) (boundary.Verdict, error) {
			r, err := w.Elicit(ctx, boundary.Elicitation{Server: "srv", Request: ahp.Raw(question)}, func(context.Context, *elicitation.Request) (ahp.Raw, error) {
				runs++
				return ahp.Raw(answer), nil
			})
			return r.Verdict, err
		},
	} {
		ctx, c := context.WithCancel(t.Context())
		cancel = c
		w := newWorld(t, boundary.Options{OnMessage: func(string) { cancel() }}, func(context.Context, *ahp.Intercept) ([]ahp.Effect, error) {
			return []ahp.Effect{&ahp.Notice{Text: "now"}}, nil
		})
		if v, err := call(ctx, w); err != nil || v.Status != boundary.Interrupted || runs != 0 {
			t.Errorf("%s: %s, %d runs, %v", name, v.Status, runs, err)
		}
		c()
	}
}

// TestWhatIsShownCannotChangeWhatRuns has the prompt and the executor write into
// what they were given.
func TestWhatIsShownCannotChangeWhatRuns(t *testing.T) {
	w := newWorld(t, boundary.Options{Approve: func(_ context.Context, a boundary.Approval) (bool, error) {
		e := a.Event
		if len(a.By) != 1 || a.By[0].Backend != "test.b1" || !slices.Equal(a.Notices, []string{"look"}) {
			t.Errorf("asked by %v with %q", a.By, a.Notices)
		}
		copy(e.Tool.Input, `{"command":"rm"}`)
		e.Tool.Name = "other"
		return true, nil
	}}, at(ahp.ToolBefore, &ahp.Notice{Text: "look"}), at(ahp.ToolBefore, &ahp.Ask{}))
	r, err := w.Tool(t.Context(), boundary.ToolCall{Name: "bash", Input: ahp.Raw(input)}, func(_ context.Context, in ahp.Raw) (boundary.ToolOutput, error) {
		if string(in) != input {
			t.Errorf("ran on %s", in)
		}
		copy(in, `{"command":"rm"}`)
		return boundary.ToolOutput{}, nil
	})
	if err != nil || string(r.Input) != input {
		t.Errorf("%s, %v", r.Input, err)
	}
	_, events := w.observed(t)
	for _, e := range events {
		if string(e.Tool.Input) != input || e.Tool.Name != "bash" {
			t.Errorf("%s says %s of %s", e.Type, e.Tool.Input, e.Tool.Name)
		}
	}
}

func TestParseCall(t *testing.T) {
	c, err := boundary.ParseCall([]byte(`{"id":"i","name":"bash","kind":"shell","input":{"command":"ls"}}`))
	if err != nil || c.ID != "i" || c.Name != "bash" || c.Kind != "shell" || string(c.Input) != input {
		t.Errorf("%+v, %v", c, err)
	}
	for _, bad := range []string{"", "[]", `{"name":"x"}`, `{"name":"x","input":[]}`, `{"input":{}}`, `{"name":"","input":{}}`, `{"name":"x","name":"y","input":{}}`,
		`{"Name":"x","input":{}}`, `{"name":"x","input":{},"more":1}`, `{"name":"x","input":null}`, `{"name":"x","input":{}} {}`, `{"name":"x","input":{"a":1,"a":2}}`} {
		if c, err := boundary.ParseCall([]byte(bad)); err == nil {
			t.Errorf("%s was read as %+v", bad, c)
		}
	}
}

func TestNew(t *testing.T) {
	w := newWorld(t, boundary.Options{})
	for _, opts := range []boundary.Options{{}, {Source: "no uri"}, {Source: "urn:x", MaxContinuations: -1}, {Source: "urn:x", Budget: -1}} {
		if _, err := boundary.New(w.h, opts); err == nil {
			t.Errorf("%+v was taken", opts)
		}
	}
	if _, err := boundary.New(nil, boundary.Options{Source: "urn:x"}); err == nil {
		t.Error("no harness was taken")
	}
	if boundary.None.String() != "none" || boundary.Status(99).String() != "status 99" || boundary.Interrupted.String() != "interrupted" {
		t.Error("names of statuses")
	}
	var v boundary.Verdict
	if v.OK() {
		t.Error("the zero Verdict allows something")
	}
}
