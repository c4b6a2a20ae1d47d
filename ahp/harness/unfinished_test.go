package harness_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/harness"
)

// TestUnfinishedElicitations holds that a request whose chain isn't finished waits as
// long as its call, and that a finish after that is a refusal.
func TestUnfinishedElicitations(t *testing.T) {
	for _, tt := range []struct {
		name         string
		effects      []ahp.Effect
		play, finish bool
		opts         harness.DispatchOptions
		denied       bool
	}{
		{name: "begun"},
		{name: "begun, finished too late", finish: true},
		{name: "only observed", opts: harness.DispatchOptions{ObserveOnly: true}, finish: true},
		{name: "asked", play: true},
		{name: "asked, finished too late", play: true, finish: true},
		{name: "answered, finished too late", effects: []ahp.Effect{&ahp.Return{Value: ahp.Raw(`{"action":"decline"}`)}}, play: true, finish: true},
		{name: "denied, finished too late", effects: []ahp.Effect{&ahp.Deny{Reason: "no"}}, play: true, finish: true, denied: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, _ := elicits(perType(tt.effects, nil))
				h := newHarness(t, harness.Options{}, p)
				defer h.Close()
				ctx, cancel := context.WithCancel(t.Context())
				c, err := h.Begin(ctx, askEvent("q", formText), ahptest.FullCapabilities(ahp.UserElicitationRequest), nil, tt.opts)
				if err != nil {
					t.Fatal(err)
				}
				if tt.play {
					askAll(c)
				}
				synctest.Wait()
				if n := h.Elicitations().Len(); n != 1 {
					t.Errorf("%d wait while the call lives", n)
				}
				cancel()
				synctest.Wait()
				if n := h.Elicitations().Len(); n != 0 {
					t.Errorf("%d wait after the call", n)
				}
				if !tt.finish {
					return
				}
				out, err := c.Finish()
				if err != nil || out.Interrupted == tt.denied || (out.Denial() != nil) != tt.denied || h.Elicitations().Len() != 0 {
					t.Errorf("finished: %v, %+v, %d wait", err, out, h.Elicitations().Len())
				}
			})
		})
	}
}

// TestFinishedElicitationsOutliveTheirCall holds that the end of the context after
// Finish takes nothing away, and that a second Finish doesn't either.
func TestFinishedElicitationsOutliveTheirCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := elicits(nil)
		h := newHarness(t, harness.Options{}, p)
		defer h.Close()
		ctx, cancel := context.WithCancel(t.Context())
		c, err := h.Begin(ctx, askEvent("q", formText), ahptest.FullCapabilities(ahp.UserElicitationRequest), nil, harness.DispatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
		askAll(c)
		if _, err := c.Finish(); err != nil {
			t.Fatal(err)
		}
		cancel()
		synctest.Wait()
		if _, err := c.Finish(); err == nil {
			t.Error("finished twice")
		}
		if out := send(t, h, answerEvent("q", "form", "decline", `{"action":"decline"}`), nil); out.Denial() != nil || h.Elicitations().Len() != 0 {
			t.Errorf("%+v, %d wait", out.Outcome, h.Elicitations().Len())
		}
	})
}

// askAll asks everybody.
func askAll(c *harness.Chain) {
	for x := c.Next(); x != nil; x = c.Next() {
		reply, err := x.Send()
		if err == nil {
			err = x.Stage(reply)
		}
		if err == nil {
			_, err = x.Accept(nil)
		}
		if err != nil {
			_, _ = x.Fail(err)
		}
	}
}
