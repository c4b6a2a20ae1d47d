package harness_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/harness"
)

// TestSettledOnce holds under every race that one of Accept, FailOpen and Cancel
// settles an exchange, and that the outcome is its.
func TestSettledOnce(t *testing.T) {
	link := ahptest.NewFake(ahptest.Says(&ahp.Notice{Text: "noted"}))
	h := newHarness(t, harnessOptions(), intercepts(link, ahp.FailOpen))
	for range 200 {
		c, x := stagedOf(t, h, "e")
		var (
			race           sync.WaitGroup
			accepted, open *ahp.Outcome
		)
		race.Go(func() { accepted, _ = x.Accept(nil) })
		race.Go(func() { open, _ = x.FailOpen() })
		race.Go(x.Cancel)
		race.Wait()
		out, err := c.Finish()
		if err != nil || !out.Interrupted || accepted != nil && open != nil {
			t.Fatalf("accepted %v, opened %v, %+v, %v", accepted, open, out, err)
		}
		if len(out.Trace) != 1 || (accepted != nil) != (len(out.Messages) == 1) {
			t.Fatalf("accepted %v: %+v", accepted != nil, out.Outcome)
		}
	}
}

// TestConcurrentReplies holds that of replies which are staged at the same time one
// is, and that the others count as ignored.
func TestConcurrentReplies(t *testing.T) {
	h := newHarness(t, harnessOptions(), intercepts(ahptest.NewFake(nil), ahp.FailClosed))
	for range 100 {
		x := exchangeOf(t, h, "e")
		if _, err := x.Send(); err != nil {
			t.Fatal(err)
		}
		var race sync.WaitGroup
		errs := make([]error, 4)
		for i := range errs {
			reply, err := ahp.EncodeEffects(ahp.StringID("e"), []ahp.Effect{&ahp.Notice{Text: string(rune('0' + i))}})
			if err != nil {
				t.Fatal(err)
			}
			race.Go(func() { errs[i] = x.Stage(reply) })
		}
		race.Wait()
		staged := slices.Index(errs, nil)
		o, err := x.Accept(nil)
		if err != nil || staged < 0 || !slices.Equal(o.Messages, []string{string(rune('0' + staged))}) || x.Ignored() != 3 {
			t.Fatalf("staged %v, %d ignored: %+v, %v", errs, x.Ignored(), o, err)
		}
	}
}

// TestCancelledBeforeAcceptance holds that the end of the call's context beats a
// staged reply and either policy, and that a deadline of it is told from a cancel.
func TestCancelledBeforeAcceptance(t *testing.T) {
	for _, policy := range []ahp.FailurePolicy{ahp.FailOpen, ahp.FailClosed} {
		for _, expires := range []bool{false, true} {
			inBubble(t, policy, func(t *testing.T, h *harness.Harness) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				play := func() (*harness.Chain, *harness.Exchange) {
					c, err := h.Begin(ctx, ahptest.ToolBefore("e", `{}`), noAllow(), nil, harness.DispatchOptions{})
					if err != nil {
						t.Fatal(err)
					}
					x := c.Next()
					reply, err := x.Send()
					if err == nil {
						err = x.Stage(reply)
					}
					if err != nil {
						t.Fatal(err)
					}
					return c, x
				}
				accepted, first := play()
				opened, second := play()
				unstaged, err := h.Begin(ctx, ahptest.ToolBefore("e", `{}`), noAllow(), nil, harness.DispatchOptions{})
				if err != nil {
					t.Fatal(err)
				}
				third := unstaged.Next()
				reply, err := third.Send()
				if err != nil {
					t.Fatal(err)
				}
				if expires {
					time.Sleep(2 * time.Second)
				} else {
					cancel()
				}
				if o, err := first.Accept(nil); !errors.Is(err, harness.ErrInterrupted) || o != nil {
					t.Errorf("%s: accepted: %+v, %v", policy, o, err)
				}
				if o, err := second.Fail(&ahp.Failure{Class: ahp.FailConnect}); !errors.Is(err, harness.ErrInterrupted) || o != nil {
					t.Errorf("%s: failed: %+v, %v", policy, o, err)
				}
				if err := third.Stage(reply); !errors.Is(err, harness.ErrInterrupted) || third.Ignored() != 1 {
					t.Errorf("%s: staged: %v, %d ignored", policy, err, third.Ignored())
				}
				for _, c := range []*harness.Chain{accepted, opened, unstaged} {
					out, err := c.Finish()
					if err != nil || !out.Interrupted || out.Expired != expires || out.Denial() != nil || out.Changed || out.MayExecute() {
						t.Errorf("%s: %+v, %v", policy, out, err)
					}
				}
			})
		}
	}
}
