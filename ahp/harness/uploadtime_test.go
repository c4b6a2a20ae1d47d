package harness_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/harness"
)

// slowReceiver confirms after a while, or ends with the context.
type slowReceiver struct {
	takes time.Duration

	mu                     sync.Mutex
	began, cancelled, done int
	closed                 int
}

func (r *slowReceiver) Upload(ctx context.Context, _ []byte) (*ahp.Receipt, error) {
	r.count(&r.began)
	select {
	case <-time.After(r.takes):
		r.count(&r.done)
		return &ahp.Receipt{Ref: "r"}, nil
	case <-ctx.Done():
		r.count(&r.cancelled)
		return nil, ctx.Err()
	}
}

func (r *slowReceiver) Close() error {
	r.count(&r.closed)
	return nil
}

func (r *slowReceiver) count(n *int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*n++
}

// slowly returns a host with one attachment, "local:1" of six bytes, and r as every
// receiver.
func slowly(r *slowReceiver) *harness.Content {
	lib := newLibrary(map[string]string{"local:1": "pixels"}, nil)
	lib.content.Receiver = func(ahp.SubscriptionID, *ahp.Upload) (harness.Receiver, error) { return r, nil }
	return &lib.content
}

func within(d time.Duration, maxBytes int64) *ahp.Upload {
	return &ahp.Upload{Endpoint: "https://r.example/", TimeoutMs: d.Milliseconds(), MaxBytes: maxBytes}
}

// TestTimesOfUploads holds whose time bounds what, in virtual time.
func TestTimesOfUploads(t *testing.T) {
	for name, c := range map[string]struct {
		takes, upload, decision, budget time.Duration
		asked                           bool
		after                           time.Duration // when the outcome is there
		expired                         bool
	}{
		"longer than the decision may":  {takes: 3 * time.Second, upload: 5 * time.Second, decision: time.Second, asked: true, after: 3 * time.Second},
		"longer than it may itself":     {takes: 9 * time.Second, upload: 5 * time.Second, decision: time.Second, after: 5 * time.Second},
		"longer than the whole call":    {takes: 9 * time.Second, upload: 5 * time.Second, decision: time.Second, budget: 2 * time.Second, after: 2 * time.Second, expired: true},
		"a part of the whole call":      {takes: time.Second, upload: 5 * time.Second, decision: time.Second, budget: 2 * time.Second, asked: true, after: time.Second},
		"a time that no clock can hold": {takes: time.Second, upload: 1<<63 - 1, decision: time.Second, asked: true, after: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &slowReceiver{takes: c.takes}
				fake := ahptest.NewFake(nil)
				defer fake.Close()
				sub := uploading(ahp.FailClosed, within(c.upload, 100))
				sub.TimeoutMs = ahptest.Int64(c.decision.Milliseconds())
				h := newHarness(t, harness.Options{Content: slowly(r)}, party{fake, []ahp.Subscription{sub}})
				began := time.Now()
				out, err := h.Dispatch(t.Context(), prompt("e", image("p1", "local:1")), ahptest.FullCapabilities(ahp.TurnStart), nil, harness.DispatchOptions{Budget: c.budget})
				if err != nil {
					t.Fatal(err)
				}
				if asked := len(fake.Requests()) == 1; asked != c.asked || out.MayExecute() != c.asked || out.Expired != c.expired {
					t.Errorf("asked %v, %+v", asked, out.Trace)
				}
				if got := time.Since(began); got != c.after {
					t.Errorf("after %v, want %v", got, c.after)
				}
				h.Close()
				if r.closed != 1 || r.began != r.done+r.cancelled {
					t.Errorf("%d closed, %d began, %d done, %d cancelled", r.closed, r.began, r.done, r.cancelled)
				}
			})
		})
	}
}

// TestInterruptedUploadEnds holds that nothing goes on for a call that was given up.
func TestInterruptedUploadEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &slowReceiver{takes: time.Hour}
		h := newHarness(t, harness.Options{Content: slowly(r)}, party{ahptest.NewFake(nil), []ahp.Subscription{uploading(ahp.FailOpen, within(time.Hour, 100))}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		out, err := h.Dispatch(ctx, prompt("e", image("p1", "local:1")), ahptest.FullCapabilities(ahp.TurnStart), nil, harness.DispatchOptions{})
		if err != nil || !out.Interrupted {
			t.Fatalf("%+v, %v", out, err)
		}
		synctest.Wait()
		if r.cancelled != 1 {
			t.Error("the upload goes on")
		}
		h.Close()
	})
}

// TestObservationAfterASlowUpload gives the observation its own time once the upload
// is done, and what comes after it too.
func TestObservationAfterASlowUpload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &slowReceiver{takes: 20 * time.Second}
		watch := ahptest.NewFake(nil)
		sub := ahptest.Observe("turn.start")
		sub.Upload = within(time.Minute, 100)
		var failed []harness.Delivery
		h := newHarness(t, harness.Options{Content: slowly(r), ObserveTimeout: time.Second, CloseTimeout: time.Minute, OnDelivery: func(d harness.Delivery) {
			if d.Failure != nil {
				failed = append(failed, d)
			}
		}}, party{watch, []ahp.Subscription{sub}})
		for _, e := range []*ahp.Event{prompt("e1", image("p1", "local:1")), prompt("e2")} { // one right behind the other
			if _, err := h.Observe(t.Context(), e); err != nil {
				t.Fatal(err)
			}
		}
		h.Close()
		if len(watch.Observed()) != 2 || refOf(partOf(watch.Observed()[0], "p1")) != "r" || len(failed) != 0 {
			t.Errorf("observed %d, failed %+v", len(watch.Observed()), failed)
		}
	})
}

// TestReceiverIsNotAskedForTooMuch holds maxBytes against a receiver that would
// take anything.
func TestReceiverIsNotAskedForTooMuch(t *testing.T) {
	r := &slowReceiver{}
	h := newHarness(t, harness.Options{Content: slowly(r)}, party{ahptest.NewFake(nil), []ahp.Subscription{uploading(ahp.FailOpen, within(time.Minute, 5))}})
	if out := begin(t, h, prompt("e", image("p1", "local:1"))); out.Trace[0].Content == nil || r.began != 0 {
		t.Errorf("%+v, %d uploads", out.Trace[0], r.began)
	}
}

// TestManyAttachments holds the bound on how many are uploaded.
func TestManyAttachments(t *testing.T) {
	r := &slowReceiver{}
	content := slowly(r)
	content.Open = func(context.Context, *ahp.Event, *ahp.Part) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader("x")), nil
	}
	fake := ahptest.NewFake(nil)
	h := newHarness(t, harness.Options{Content: content}, party{fake, []ahp.Subscription{uploading(ahp.FailOpen, within(time.Minute, 100))}})
	var parts []ahp.Part
	for i := range 70 {
		parts = append(parts, image(fmt.Sprint("p", i), fmt.Sprint("local:", i)))
	}
	out := begin(t, h, prompt("e", parts...))
	gaps := 0
	for _, p := range fake.Requests()[0].Event.Items.Messages[0].Parts {
		if p.Gap != nil {
			gaps++
		}
	}
	if out.Trace[0].Content == nil || r.done != 64 || gaps != 6 {
		t.Errorf("%+v, %d uploads, %d gaps", out.Trace[0], r.done, gaps)
	}
}

// TestInjectedRefs holds that an injection can't carry what its backend wasn't given.
func TestInjectedRefs(t *testing.T) {
	for ref, ok := range map[string]bool{"": true, "made up": false} {
		h, _, _ := twoReceivers(t, func(q *ahp.Intercept) []ahp.Effect {
			p := *partOf(q.Event, "p1")
			if ref != "" {
				p.Body = &ahp.BodyRef{Ref: ref}
			}
			return []ahp.Effect{&ahp.Inject{DeliverAt: ahp.DeliverNow, Messages: []ahp.Message{{ID: "m", Role: ahp.RoleUser, Parts: []ahp.Part{p}}}}}
		})
		if out := begin(t, h, prompt("e", image("p1", "local:1"))); out.MayExecute() != ok || (out.Trace[0].Failure == nil) != ok {
			t.Errorf("%q: %+v", ref, out.Trace)
		}
	}
}
