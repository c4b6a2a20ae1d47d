package app_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/abhed/abhed/internal/agent"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/model/modeltest"
)

// TestReasoningOverASession works for thirty turns with an endpoint that takes only the
// reasoning that it gave, byte for byte, with each turn (I153, I154): one reply is cut,
// the run is interrupted in the middle of another, and goes on from the record. Then
// another provider, which takes no reasoning of others, goes on with the session (I156),
// and at last the first one under another account, which refuses its own seals: they
// are dropped once.
func TestReasoningOverASession(t *testing.T) {
	for _, api := range everyAPI() {
		t.Run(string(api), func(t *testing.T) {
			t.Parallel()
			first, ctx := reasoning(t)
			w := newWorld(t)
			w.opts.Mode, w.opts.Output = "accept-edits", "json"
			w.provider("one", api, first.URL, "")
			if r := w.run(ctx); r.code != 130 {
				t.Fatalf("exit %d, want an interrupt: %s", r.code, r.err)
			}
			w.opts.Continue, w.opts.Prompt = true, "go on"
			r := w.run(t.Context())
			if a := w.answered(r); r.code != 0 || a.Result != "done" || first.Left() != 0 {
				t.Fatalf("exit %d, %d turns left: %s", r.code, first.Left(), r.err)
			}
			requests := first.Requests()
			if body := string(requests[len(requests)-1].Body); api == modeltest.Chat && strings.Count(body, `"reasoning_content":"because`) != 30 {
				t.Errorf("the last request: %s", body)
			}

			second := modeltest.NewWith(t, modeltest.Options{SealKey: "second", RefuseReasoning: true, Turns: []modeltest.Turn{{Text: "taken over", Expect: "go on"}}})
			w.provider("two", api, second.URL, "")
			r = w.run(t.Context())
			if a := w.answered(r); r.code != 0 || a.Result != "taken over" || len(second.Requests()) != 1 {
				t.Errorf("another provider: exit %d, %d requests: %s", r.code, len(second.Requests()), r.err)
			}

			refusals := 1
			if api == modeltest.Chat {
				refusals = 0 // its reasoning isn't sealed
			}
			changed := modeltest.NewWith(t, modeltest.Options{SealKey: "changed", Turns: append(make([]modeltest.Turn, refusals), call("write", markerArgs), done())})
			w.provider("one", api, changed.URL, "")
			r = w.run(t.Context())
			failed := 0
			events := w.events(r)
			for _, f := range payloads[*event.ModelFailed](events) {
				if f.Kind == "replay" && !f.Final {
					failed++
				}
			}
			if a := w.answered(r); r.code != 0 || a.Result != "done" || len(changed.Requests()) != refusals+2 || failed != refusals {
				t.Errorf("another account: exit %d, %d requests, %d refused: %s", r.code, len(changed.Requests()), failed, r.err)
			}
		})
	}
}

// reasoning is an endpoint for thirty turns and an answer, which is strict about its
// reasoning. Some reply is cut and has to be asked for again, and another one interrupts
// the context that is returned.
func reasoning(t *testing.T) (*modeltest.Server, context.Context) {
	ctx, cancel := context.WithCancelCause(t.Context())
	t.Cleanup(func() { cancel(nil) })
	o := modeltest.Options{SealKey: "first", NeedReasoning: true}
	for i := range 30 {
		turn := modeltest.Turn{Reasoning: fmt.Sprintf("because é\u2028<&> \U0001f600 %d%s", i, strings.Repeat(" ", i)), Calls: []modeltest.Call{{ID: fmt.Sprint("c", i), Name: "write", Args: fmt.Sprintf(`{"path":"f%d","content":"x"}`, i)}}}
		switch i {
		case 10:
			cut := turn
			cut.Faults = []modeltest.Fault{modeltest.CutAt(900)}
			o.Turns = append(o.Turns, cut)
		case 20:
			hangs := turn
			hangs.Before = func(i int) {
				if i == 3 {
					cancel(&agent.Interrupted{Reason: agent.ReasonUserInterrupt})
				}
			}
			hangs.Faults = []modeltest.Fault{modeltest.StallAt(900)}
			o.Turns = append(o.Turns, hangs)
		}
		o.Turns = append(o.Turns, turn)
	}
	o.Turns = append(o.Turns, modeltest.Turn{Text: "done"})
	return modeltest.NewWith(t, o), ctx
}

// TestCompactionThatIsOff has settings without compaction and an endpoint that says that
// the conversation is too long (I159): nobody is asked for a summary, the error offers
// another model, and with one the same session goes on, with all that was said. The
// sibling case knows the window, which is full beforehand.
func TestCompactionThatIsOff(t *testing.T) {
	for name, window := range map[string]string{"the endpoint says so": "", "the window is known": `,"models":{"one/m1":{"context_window":40000}}`} {
		for _, api := range everyAPI() {
			t.Run(name+" "+string(api), func(t *testing.T) {
				t.Parallel()
				over := modeltest.Turn{Faults: []modeltest.Fault{modeltest.Status(400, `{"error":{"message":"prompt is too long: 50000 tokens > 40000 maximum"}}`)}}
				write := func(id, path string) modeltest.Turn {
					return modeltest.Turn{Calls: []modeltest.Call{{ID: id, Name: "write", Args: large(path, "MARK"+path)}}, Faults: []modeltest.Fault{modeltest.WholeCalls()}}
				}
				w := speaking(t, api, `,"context":{"compaction":"off","threshold":0.4}`+window, write("c1", "one"), write("c2", "two"), over, modeltest.Turn{Text: "SUMMARY"})
				r := w.run(t.Context())
				a := w.answered(r)
				if n := len(w.server.Requests()); r.code != 1 || n != 3 || !strings.Contains(a.Detail, "compaction is off") || !strings.Contains(a.Detail, "larger window") {
					t.Fatalf("exit %d, %d requests: %s", r.code, n, a.Detail)
				}
				next := modeltest.New(t, done())
				w.provider("two", api, next.URL, `,"context":{"compaction":"off"}`)
				w.opts.Continue, w.opts.Prompt = true, "go on"
				if r := w.run(t.Context()); r.code != 0 || len(next.Requests()) != 1 {
					t.Fatalf("with another model: exit %d, %s", r.code, r.err)
				}
				if body := string(next.Requests()[0].Body); !strings.Contains(body, "MARKone") || !strings.Contains(body, "MARKtwo") {
					t.Errorf("the other model was sent %d bytes without all that was said", len(body))
				}
			})
		}
	}
}
