package harness_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/harness"
	"github.com/abhed/abhed/internal/strictjson"
)

func edits(t *testing.T, op ahp.Operation, list []ahp.Message) *ahp.Modify {
	t.Helper()
	value, err := strictjson.Marshal(list)
	if err != nil {
		t.Error(err)
	}
	return &ahp.Modify{Target: ahp.TargetPrompt, Operation: op, Value: value}
}

// twoReceivers returns a harness whose first backend answers by judge, and whose
// second remembers what it is then shown; each has a scope of its own.
func twoReceivers(t *testing.T, judge func(q *ahp.Intercept) []ahp.Effect) (h *harness.Harness, second *ahptest.Fake, s *ahptest.UploadServer) {
	s = ahptest.NewUploadServer(t, ahptest.UploadOptions{Tokens: map[string]string{"token-one": "a", "token-two": "b"}})
	lib := newLibrary(map[string]string{"local:1": "pixels", "local:2": "others"}, map[string]string{"ONE": "token-one", "TWO": "token-two"})
	first := ahptest.NewFake(func(_ context.Context, q *ahp.Intercept) ([]ahp.Effect, error) { return judge(q), nil })
	second = ahptest.NewFake(nil)
	sub := func(env string) []ahp.Subscription {
		u := uploading(ahp.FailClosed, s.Config(env))
		u.Events = []string{"turn.start", "model.request.before"}
		return []ahp.Subscription{u}
	}
	return newHarness(t, harness.Options{Content: &lib.content}, party{first, sub("ONE")}, party{second, sub("TWO")}), second, s
}

// TestEffectsWithRefs gives the same attachment back in every way that is right,
// and in ways that aren't.
func TestEffectsWithRefs(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(list []ahp.Message) []ahp.Message
		ok   bool
		// parts are the ids of the effective event's attachments, with the host's names.
		parts []string
	}{
		"as it was":     {func(l []ahp.Message) []ahp.Message { return l }, true, []string{"p1 local:1", "p2 local:2"}},
		"one removed":   {func(l []ahp.Message) []ahp.Message { l[0].Parts = slices.Delete(l[0].Parts, 1, 2); return l }, true, []string{"p2 local:2"}},
		"both removed":  {func(l []ahp.Message) []ahp.Message { l[0].Parts = l[0].Parts[:1]; return l }, true, nil},
		"order changed": {func(l []ahp.Message) []ahp.Message { slices.Reverse(l[0].Parts); return l }, true, []string{"p2 local:2", "p1 local:1"}},
		"in another message": {func(l []ahp.Message) []ahp.Message {
			return append(l, ahp.Message{ID: "new", Role: ahp.RoleUser, Parts: []ahp.Part{l[0].Parts[1]}})
		}, true, []string{"p1 local:1", "p2 local:2", "p1 local:1"}},
		"another ref":     {func(l []ahp.Message) []ahp.Message { l[0].Parts[1].Body = &ahp.BodyRef{Ref: "made up"}; return l }, false, nil},
		"the host's name": {func(l []ahp.Message) []ahp.Message { l[0].Parts[1].Body = &ahp.BodyRef{Ref: "local:2"}; return l }, false, nil},
		"refs exchanged": {func(l []ahp.Message) []ahp.Message {
			l[0].Parts[1].Body, l[0].Parts[2].Body = l[0].Parts[2].Body, l[0].Parts[1].Body
			return l
		}, false, nil},
		"another media type": {func(l []ahp.Message) []ahp.Message { l[0].Parts[1].MediaType = "image/jpeg"; return l }, false, nil},
		"another id":         {func(l []ahp.Message) []ahp.Message { l[0].Parts[1].ID = "p9"; return l }, false, nil},
		"another category":   {func(l []ahp.Message) []ahp.Message { l[0].Parts[1].Category = "reasoning"; return l }, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			h, second, s := twoReceivers(t, func(q *ahp.Intercept) []ahp.Effect {
				return []ahp.Effect{edits(t, ahp.OpReplace, c.edit(q.Event.Items.Messages))}
			})
			out := begin(t, h, prompt("e", image("p1", "local:1"), image("p2", "local:2")))
			if !c.ok {
				f := out.Trace[0].Failure
				if f == nil || f.Class != ahp.FailEffect || out.Denial() == nil || len(second.Requests()) != 0 {
					t.Fatalf("%+v", out.Trace)
				}
				return
			}
			if !out.MayExecute() {
				t.Fatalf("%+v", out.Trace[0].Failure)
			}
			var got []string
			for _, m := range out.Event.Items.Messages {
				for _, p := range m.Parts {
					if p.Body != nil {
						got = append(got, p.ID+" "+p.Body.Ref)
					}
				}
			}
			if !slices.Equal(got, c.parts) {
				t.Errorf("effective attachments %q, want %q", got, c.parts)
			}
			// The second backend sees the same, by refs of its own scope.
			n := 0
			for _, m := range second.Requests()[0].Event.Items.Messages {
				for _, p := range m.Parts {
					if p.Body == nil {
						continue
					}
					want := map[string]string{"p1": "pixels", "p2": "others"}[p.ID]
					if body := stored(t, s, "b", p.Body.Ref); body != want {
						t.Errorf("part %s is %q", p.ID, body)
					}
					n++
				}
			}
			if n != len(c.parts) {
				t.Errorf("the second backend was shown %d attachments, want %d", n, len(c.parts))
			}
		})
	}
}

// TestPartsThatShareBytes shows one attachment as two parts, and two with the same
// bytes to a receiver that calls both the same: the parts stay apart.
func TestPartsThatShareBytes(t *testing.T) {
	lib := newLibrary(map[string]string{"local:1": "same", "local:2": "same"}, nil)
	lib.content.Receiver = func(ahp.SubscriptionID, *ahp.Upload) (harness.Receiver, error) {
		return badReceiver(func() (*ahp.Receipt, error) { return &ahp.Receipt{Ref: "same bytes"}, nil }), nil
	}
	first := ahptest.NewFake(func(_ context.Context, q *ahp.Intercept) ([]ahp.Effect, error) {
		list := q.Event.Items.Messages
		slices.Reverse(list[0].Parts)
		return []ahp.Effect{edits(t, ahp.OpReplace, list)}, nil
	})
	h := newHarness(t, harness.Options{Content: &lib.content}, party{first, []ahp.Subscription{uploading(ahp.FailClosed, &ahp.Upload{Endpoint: "https://r.example/", TimeoutMs: 1000, MaxBytes: 10})}})
	out := begin(t, h, prompt("e", image("p1", "local:1"), image("p2", "local:2"), image("p3", "local:1")))
	if !out.MayExecute() {
		t.Fatalf("%+v", out.Trace)
	}
	for id, want := range map[string]string{"p1": "local:1", "p2": "local:2", "p3": "local:1"} {
		if got := refOf(partOf(out.Event, id)); got != want {
			t.Errorf("%s is %q, want %q", id, got, want)
		}
	}
	if lib.opens("local:1") != 1 {
		t.Errorf("opened %d times", lib.opens("local:1"))
	}
}

// TestRefsOfAnotherRequest gives a ref of an earlier request, which its receiver
// still knows.
func TestRefsOfAnotherRequest(t *testing.T) {
	var before []ahp.Message
	h, _, _ := twoReceivers(t, func(q *ahp.Intercept) []ahp.Effect {
		if before == nil {
			before = q.Event.Items.Messages
			return nil
		}
		return []ahp.Effect{edits(t, ahp.OpMerge, before)}
	})
	if out := begin(t, h, prompt("e1", image("p1", "local:1"))); !out.MayExecute() {
		t.Fatalf("%+v", out.Trace)
	}
	if out := begin(t, h, prompt("e2", image("p1", "local:1"))); out.Trace[0].Failure == nil || out.Trace[0].Failure.Class != ahp.FailEffect {
		t.Errorf("%+v", out.Trace[0])
	}
}

// TestSuppliedContentIsShownToOthers has an attachment injected and returned as a
// model's response: the next backend learns of both by its own refs.
func TestSuppliedContentIsShownToOthers(t *testing.T) {
	h, second, s := twoReceivers(t, func(q *ahp.Intercept) []ahp.Effect {
		list := []ahp.Message{{ID: "again", Role: ahp.RoleAssistant, Parts: q.Event.Items.Messages[0].Parts[1:2]}}
		value, err := strictjson.Marshal(list)
		if err != nil {
			t.Error(err)
		}
		return []ahp.Effect{&ahp.Inject{DeliverAt: ahp.DeliverNow, Messages: list}, &ahp.Return{Value: value}}
	})
	e := prompt("e", image("p1", "local:1"))
	e.Type, e.Trigger = ahp.ModelRequestBefore, ""
	e.Model, e.Attempt, e.Params = &ahp.Model{ID: "m", Provider: "p"}, &ahp.Attempt{ID: "a", Number: 1}, ahp.Raw("{}")
	out, err := h.Dispatch(t.Context(), e, ahptest.FullCapabilities(e.Type), nil, harness.DispatchOptions{})
	if err != nil || out.Candidate == nil || len(out.Injections) != 1 {
		t.Fatalf("%+v, %v", out, err)
	}
	if got := refOf(&out.Injections[0].Messages[0].Parts[0]); got != "local:1" {
		t.Errorf("the injection has %q", got)
	}
	if list, err := ahp.DecodeMessages(out.Candidate.Value); err != nil || refOf(&list[0].Parts[0]) != "local:1" {
		t.Errorf("the candidate is %s", out.Candidate.Value)
	}
	st := second.Requests()[0].State
	shown, err := ahp.DecodeEffects(slices.Concat([]byte("["), st.Injections[0], []byte("]")))
	if err != nil {
		t.Fatal(err)
	}
	list, err := ahp.DecodeMessages(st.Candidate.Value)
	if err != nil {
		t.Fatal(err)
	}
	for _, ref := range []string{refOf(&shown[0].(*ahp.Inject).Messages[0].Parts[0]), refOf(&list[0].Parts[0])} {
		if ref != refOf(partOf(second.Requests()[0].Event, "p1")) || stored(t, s, "b", ref) != "pixels" {
			t.Errorf("the second backend was shown %q", ref)
		}
	}
	if n := len(s.Requests()); n != 2 {
		t.Errorf("%d uploads", n)
	}
}

// TestReturnedJSONIsLeftAlone holds that a tool's result is nobody's message.
func TestReturnedJSONIsLeftAlone(t *testing.T) {
	value := ahp.Raw(`[{"id":"m","role":"tool","parts":[{"id":"p","kind":"attachment","mediaType":"image/png","selection":"body","body":{"ref":"any"}}]}]`)
	fake := ahptest.NewFake(ahptest.Says(&ahp.Return{Value: value}))
	h := newHarness(t, harness.Options{}, intercepts(fake, ahp.FailClosed))
	if out := dispatch(t, h, "e"); out.Candidate == nil || string(out.Candidate.Value) != string(value) {
		t.Errorf("%+v", out.Trace)
	}
}

// TestObservationsWithUploads holds that an upload ends before its notification,
// that the order at a backend stays, and that a failed upload leaves a gap.
func TestObservationsWithUploads(t *testing.T) {
	hold := make(chan struct{})
	s := ahptest.NewUploadServer(t, ahptest.UploadOptions{Hold: hold})
	lib := newLibrary(map[string]string{"local:1": "pixels"}, nil)
	watch := ahptest.NewFake(nil)
	sub := ahptest.Observe("turn.start", "hook.failure")
	sub.Upload = s.Config("")
	var failed []harness.Delivery
	h := newHarness(t, harness.Options{Content: &lib.content, OnDelivery: func(d harness.Delivery) {
		if d.Failure != nil {
			failed = append(failed, d)
		}
	}}, party{watch, []ahp.Subscription{sub}})
	first, err := h.Observe(t.Context(), prompt("e1", image("p1", "local:1")))
	if err != nil {
		t.Fatal(err)
	}
	second, err := h.Observe(t.Context(), prompt("e2"))
	if err != nil {
		t.Fatal(err)
	}
	third, err := h.Observe(t.Context(), prompt("e3", image("p1", "local:none")))
	if err != nil {
		t.Fatal(err)
	}
	for len(s.Requests()) == 0 {
		time.Sleep(time.Millisecond)
	}
	if len(watch.Observed()) != 0 {
		t.Error("a notification came before the upload that it refers to")
	}
	close(hold)
	for _, d := range []*harness.Deliveries{first, second, third} {
		if err := d.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	h.Close()
	var ids []string
	for _, e := range watch.Observed() {
		ids = append(ids, e.ID)
	}
	if !slices.Equal(ids, []string{"e1", "e2", "e3"}) || len(failed) != 0 {
		t.Fatalf("observed %q, failed %+v", ids, failed)
	}
	if ref := refOf(partOf(watch.Observed()[0], "p1")); stored(t, s, "", ref) != "pixels" {
		t.Errorf("ref %q", ref)
	}
	if p := partOf(watch.Observed()[2], "p1"); p.Gap == nil || p.Body != nil {
		t.Errorf("%+v", p)
	}
}

// TestUncalledInterceptorGetsItsUpload ends a chain early: who was not asked is
// told, with the bytes that were on their way to it already.
func TestUncalledInterceptorGetsItsUpload(t *testing.T) {
	h, second, s := twoReceivers(t, func(*ahp.Intercept) []ahp.Effect { return []ahp.Effect{&ahp.Deny{Reason: "no"}} })
	out := begin(t, h, prompt("e", image("p1", "local:1")))
	if out.Denial() == nil || len(second.Requests()) != 0 || len(second.Observed()) != 1 {
		t.Fatalf("%+v", out.Trace)
	}
	if ref := refOf(partOf(second.Observed()[0], "p1")); stored(t, s, "b", ref) != "pixels" || len(s.Requests()) != 2 {
		t.Errorf("ref %q, %d uploads", ref, len(s.Requests()))
	}
}

// TestRemovedAttachmentIsNotPublished removes what was uploaded already.
func TestRemovedAttachmentIsNotPublished(t *testing.T) {
	h, second, _ := twoReceivers(t, func(q *ahp.Intercept) []ahp.Effect {
		list := q.Event.Items.Messages
		list[0].Parts = list[0].Parts[:1]
		return []ahp.Effect{edits(t, ahp.OpReplace, list)}
	})
	begin(t, h, prompt("e", image("p1", "local:1")))
	for _, msg := range second.Messages() {
		if strings.Contains(string(msg), "p1") || strings.Contains(string(msg), "attachment") {
			t.Errorf("%s", msg)
		}
	}
}

// TestEvaluateWithRefs judges one reply to one request, whose refs are known from
// the request itself.
func TestEvaluateWithRefs(t *testing.T) {
	q := &ahp.Intercept{Event: prompt("e", image("p1", "r1")), Capabilities: *ahptest.FullCapabilities(ahp.TurnStart)}
	for ref, ok := range map[string]bool{"r1": true, "r2": false} {
		reply, err := ahp.EncodeEffects(ahp.StringID("e"), []ahp.Effect{edits(t, ahp.OpMerge, []ahp.Message{{ID: "m", Role: ahp.RoleUser, Parts: []ahp.Part{image("p1", ref)}}})})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := harness.Evaluate(q, reply); (err == nil) != ok {
			t.Errorf("%s: %v", ref, err)
		}
	}
}
