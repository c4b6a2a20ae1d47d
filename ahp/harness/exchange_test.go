package harness_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/harness"
	"github.com/abhed/abhed/ahp/transport"
)

func harnessOptions() harness.Options { return harness.Options{Retries: -1} }

// exchangeOf starts a chain about a tool.before and returns its first exchange.
func exchangeOf(t *testing.T, h *harness.Harness, id string) *harness.Exchange {
	t.Helper()
	return chainOf(t, h, id, harness.DispatchOptions{}).Next()
}

func chainOf(t *testing.T, h *harness.Harness, id string, opts harness.DispatchOptions) *harness.Chain {
	t.Helper()
	c, err := h.Begin(t.Context(), ahptest.ToolBefore(id, `{"command":"ls"}`), noAllow(), nil, opts)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// stagedOf returns a chain whose first exchange has a staged reply.
func stagedOf(t *testing.T, h *harness.Harness, id string) (*harness.Chain, *harness.Exchange) {
	t.Helper()
	c := chainOf(t, h, id, harness.DispatchOptions{})
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

func wantClass(t *testing.T, err error, class ahp.FailureClass) {
	t.Helper()
	if f := ahp.AsFailure(err); f == nil || f.Class != class {
		t.Errorf("want a failure of class %s, got %v", class, err)
	}
}

// inBubble runs f in virtual time with a harness of one interceptor that notes,
// under policy and with a deadline of ten seconds.
func inBubble(t *testing.T, policy ahp.FailurePolicy, f func(t *testing.T, h *harness.Harness)) {
	synctest.Test(t, func(t *testing.T) {
		link := ahptest.NewFake(ahptest.Says(&ahp.Notice{Text: "noted"}, replace(`{"command":"new"}`)))
		h := newHarness(t, harnessOptions(), party{link: link, subs: []ahp.Subscription{ahptest.Intercept(policy, 10*time.Second, "tool.before")}})
		f(t, h)
		h.Close()
	})
}

// TestNothingIsPublishedBeforeAccept holds that a staged reply is nobody's outcome.
func TestNothingIsPublishedBeforeAccept(t *testing.T) {
	inBubble(t, ahp.FailOpen, func(t *testing.T, h *harness.Harness) {
		c, x := stagedOf(t, h, "e")
		if c.Next() != nil {
			t.Error("another was asked while a reply waits")
		}
		o, err := x.Accept(nil)
		if err != nil || !slices.Equal(o.Messages, []string{"noted"}) || !o.Changed || len(o.Trace) != 1 {
			t.Fatalf("%+v, %v", o, err)
		}
		if _, err := x.Accept(nil); !errors.Is(err, harness.ErrNotStaged) {
			t.Errorf("accepted twice: %v", err)
		}
		if _, err := x.Fail(&ahp.Failure{Class: ahp.FailConnect}); !errors.Is(err, harness.ErrSettled) {
			t.Errorf("failed after it was accepted: %v", err)
		}
		if _, err := x.FailOpen(); !errors.Is(err, harness.ErrSettled) {
			t.Errorf("opened after it was accepted: %v", err)
		}
		if _, err := x.Send(); !errors.Is(err, harness.ErrSettled) {
			t.Errorf("sent after it was accepted: %v", err)
		}
		out, err := c.Finish()
		if err != nil || !out.Changed || len(out.Trace) != 1 {
			t.Errorf("%+v, %v", out, err)
		}
		if _, err := c.Finish(); err == nil {
			t.Error("finished twice")
		}
	})
}

// TestAuthorisationAfterTheDeadline holds that a callback which takes too long, or
// during which the call is cancelled, publishes nothing (§14).
func TestAuthorisationAfterTheDeadline(t *testing.T) {
	for _, policy := range []ahp.FailurePolicy{ahp.FailOpen, ahp.FailClosed} {
		inBubble(t, policy, func(t *testing.T, h *harness.Harness) {
			c, x := stagedOf(t, h, "late")
			_, err := x.Accept(func(ctx context.Context, o *ahp.Outcome) error {
				<-ctx.Done() // and yet it agrees
				return nil
			})
			wantClass(t, err, ahp.FailLate)
			o, err := x.Fail(err)
			if err != nil || o.Changed || o.Messages != nil || (o.Permission == ahp.PermissionDeny) != (policy == ahp.FailClosed) || o.Trace[0].Milliseconds != 10_000 {
				t.Errorf("%s: %+v, %v", policy, o, err)
			}
			if _, err := c.Finish(); err != nil {
				t.Error(err)
			}

			c, x = stagedOf(t, h, "cancelled")
			_, err = x.Accept(func(ctx context.Context, o *ahp.Outcome) error {
				x.Cancel() // no lock is held
				return context.Cause(ctx)
			})
			if !errors.Is(err, harness.ErrInterrupted) {
				t.Errorf("%s: %v", policy, err)
			}
			out, err := c.Finish()
			if err != nil || !out.Interrupted || out.Expired || out.Changed || out.MayExecute() || out.Trace[0].Kind != ahp.AnswerInterrupted {
				t.Errorf("%s: %+v, %v", policy, out, err)
			}
		})
	}
}

// TestAuthorisationRefused holds that what isn't authorised stays staged, with the
// deadline running.
func TestAuthorisationRefused(t *testing.T) {
	inBubble(t, ahp.FailClosed, func(t *testing.T, h *harness.Harness) {
		_, x := stagedOf(t, h, "e")
		no := errors.New("not now")
		for _, refuse := range []func(context.Context, *ahp.Outcome) error{
			func(_ context.Context, o *ahp.Outcome) error {
				if string(o.Event.Tool.Input) != `{"command":"new"}` {
					t.Errorf("asked to authorise %s", o.Event.Tool.Input)
				}
				return no
			},
			func(context.Context, *ahp.Outcome) error { panic("our own") },
		} {
			if o, err := x.Accept(refuse); err == nil || o != nil || errors.Is(err, harness.ErrNotStaged) {
				t.Errorf("%+v, %v", o, err)
			}
		}
		if o, err := x.Accept(nil); err != nil || !o.Changed {
			t.Errorf("%+v, %v", o, err)
		}
	})
}

// TestFirstReplyDecides holds that the first reply counts, a bad one too.
func TestFirstReplyDecides(t *testing.T) {
	inBubble(t, ahp.FailOpen, func(t *testing.T, h *harness.Harness) {
		good := func(id string) []byte {
			b, err := ahp.EncodeEffects(ahp.StringID(id), []ahp.Effect{&ahp.Notice{Text: "another"}})
			if err != nil {
				t.Fatal(err)
			}
			return b
		}
		x := exchangeOf(t, h, "unsent")
		if err := x.Stage(good("unsent")); err == nil || errors.Is(err, harness.ErrIgnored) {
			t.Errorf("staged a reply to nothing: %v", err)
		}
		for name, bad := range map[string]struct {
			reply string
			class ahp.FailureClass
		}{
			"garbage":      {"no", ahp.FailMalformed},
			"another id":   {string(good("other")), ahp.FailIDMismatch},
			"unadvertised": {`{"jsonrpc":"2.0","id":"unadvertised","result":{"protocolVersion":"draft","effects":[{"type":"allow"}]}}`, ahp.FailEffect},
		} {
			x := exchangeOf(t, h, name)
			if _, err := x.Send(); err != nil {
				t.Fatal(err)
			}
			wantClass(t, x.Stage([]byte(bad.reply)), bad.class)
			for range 2 {
				if err := x.Stage(good(name)); !errors.Is(err, harness.ErrIgnored) {
					t.Errorf("%s: then %v", name, err)
				}
			}
			if _, err := x.Accept(nil); !errors.Is(err, harness.ErrNotStaged) || x.Ignored() != 2 {
				t.Errorf("%s: accepted, %v; %d ignored", name, err, x.Ignored())
			}
			o, err := x.FailOpen()
			if err != nil || o.Messages != nil || o.Trace[0].Failure.Class != bad.class || o.Trace[0].Policy != ahp.FailOpen {
				t.Errorf("%s: %+v, %v", name, o, err)
			}
		}
	})
}

// TestLateReplyIsIgnored holds that a reply which comes to Stage after the deadline
// is counted and fails the exchange.
func TestLateReplyIsIgnored(t *testing.T) {
	inBubble(t, ahp.FailClosed, func(t *testing.T, h *harness.Harness) {
		x := exchangeOf(t, h, "e")
		reply, err := x.Send()
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second) // the deadline is in the middle of it
		wantClass(t, x.Stage(reply), ahp.FailLate)
		if x.Ignored() != 1 {
			t.Errorf("%d ignored", x.Ignored())
		}
	})
}

// TestGivingUp holds that only a fail-open subscription can be given up, and that
// this ends a pending Send.
func TestGivingUp(t *testing.T) {
	for _, policy := range []ahp.FailurePolicy{ahp.FailOpen, ahp.FailClosed} {
		synctest.Test(t, func(t *testing.T) {
			hung := ahptest.NewFake(func(ctx context.Context, _ *ahp.Intercept) ([]ahp.Effect, error) {
				<-ctx.Done()
				return nil, nil
			})
			h := newHarness(t, harnessOptions(), intercepts(hung, policy))
			x := exchangeOf(t, h, "e")
			sent := make(chan error, 1)
			go func() {
				_, err := x.Send()
				sent <- err
			}()
			synctest.Wait()
			o, err := x.FailOpen()
			if policy == ahp.FailClosed {
				if err == nil || o != nil {
					t.Errorf("a fail-closed subscription was given up: %+v", o)
				}
				o, err = x.Fail(&ahp.Failure{Class: ahp.FailDeadline, Detail: "the person left"})
			}
			if err != nil || o.Trace[0].Failure.Class != ahp.FailDeadline || o.Trace[0].Attempts != 1 || (o.Denial() != nil) != (policy == ahp.FailClosed) {
				t.Errorf("%s: %+v, %v", policy, o, err)
			}
			if err := <-sent; !errors.Is(err, harness.ErrSettled) {
				t.Errorf("%s: Send returned %v", policy, err)
			}
			h.Close()
		})
	}
}

// TestUnaskedIsNoPass holds that a chain which nobody played to its end comes to no
// outcome.
func TestUnaskedIsNoPass(t *testing.T) {
	inBubble(t, ahp.FailOpen, func(t *testing.T, h *harness.Harness) {
		if out, err := chainOf(t, h, "a", harness.DispatchOptions{}).Finish(); err == nil {
			t.Errorf("nobody was asked: %+v", out.Outcome)
		}
		c, x := stagedOf(t, h, "b")
		if out, err := c.Finish(); err == nil {
			t.Errorf("nothing was accepted: %+v", out.Outcome)
		}
		if _, err := x.Fail(errors.New("our own bug")); err == nil {
			t.Error("a bug was opened")
		}
		c = chainOf(t, h, "c", harness.DispatchOptions{})
		c.Next().Fail(errors.New("our own bug"))
		if c.Next() != nil {
			t.Error("the chain goes on after a bug")
		}
		if out, err := c.Finish(); err == nil {
			t.Errorf("a bug was opened: %+v", out.Outcome)
		}
	})
}

// TestExchangesAreIndependent holds that many exchanges with one backend may be
// pending at once, and that cancelling one leaves the others.
func TestExchangesAreIndependent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 20
		var mu sync.Mutex
		gates := map[string]chan struct{}{}
		link := transport.InProcess(func(ctx context.Context, msg []byte) ([]byte, error) {
			id, _ := ahp.MessageID(msg)
			mu.Lock()
			gate := make(chan struct{})
			gates[id.String()] = gate
			mu.Unlock()
			select {
			case <-gate:
			case <-ctx.Done():
			}
			return ahp.EncodeEffects(id, []ahp.Effect{&ahp.Notice{Text: id.String()}})
		})
		h := newHarness(t, harnessOptions(), intercepts(link, ahp.FailClosed))
		var all []*harness.Exchange
		var sends sync.WaitGroup
		results := make([]error, n)
		for i := range n {
			x := exchangeOf(t, h, string(rune('a'+i)))
			all = append(all, x)
			sends.Go(func() {
				reply, err := x.Send()
				if err == nil {
					err = x.Stage(reply)
				}
				results[i] = err
			})
		}
		synctest.Wait()
		all[3].Cancel()
		for i := n - 1; i >= 0; i-- { // the other way round
			close(gates[ahp.StringID(string(rune('a'+i))).String()])
			synctest.Wait()
		}
		sends.Wait()
		for i, x := range all {
			o, err := x.Accept(nil)
			switch {
			case i == 3 && errors.Is(err, harness.ErrInterrupted) && errors.Is(results[i], harness.ErrInterrupted):
			case i != 3 && err == nil && len(o.Messages) == 1 && o.Messages[0] == ahp.StringID(string(rune('a'+i))).String():
			default:
				t.Errorf("%d: %+v, %v, %v", i, o, err, results[i])
			}
		}
		h.Close()
	})
}

// TestCancelByAnEarlierExchange holds that cancelling an exchange which is settled
// interrupts the call whatever the next one is doing, and that nothing of that counts.
func TestCancelByAnEarlierExchange(t *testing.T) {
	for _, moment := range []string{"new", "sent", "staged", "authorised", "accepted"} {
		synctest.Test(t, func(t *testing.T) {
			slow := ahptest.NewFake(func(ctx context.Context, _ *ahp.Intercept) ([]ahp.Effect, error) {
				if moment == "sent" {
					<-ctx.Done()
				}
				return []ahp.Effect{&ahp.Notice{Text: "second"}}, nil
			})
			denies := ahptest.NewFake(ahptest.Says(&ahp.Deny{Reason: "no"}))
			h := newHarness(t, harnessOptions(), intercepts(ahptest.NewFake(ahptest.Says()), ahp.FailOpen), intercepts(slow, ahp.FailOpen), intercepts(denies, ahp.FailClosed))
			c, first := stagedOf(t, h, "e")
			if _, err := first.Accept(nil); err != nil {
				t.Fatal(err)
			}
			second := c.Next()
			cancel := func(at string) {
				if at == moment {
					first.Cancel()
				}
			}
			cancel("new")
			if moment == "sent" {
				time.AfterFunc(time.Second, first.Cancel)
			}
			reply, err := second.Send()
			cancel("staged")
			if err == nil {
				if err = second.Stage(reply); err == nil {
					_, err = second.Accept(func(context.Context, *ahp.Outcome) error {
						cancel("authorised")
						return nil
					})
				}
			}
			cancel("accepted")
			if moment != "accepted" && !errors.Is(err, harness.ErrInterrupted) {
				t.Errorf("%s: %v", moment, err)
			}
			if x := c.Next(); x != nil {
				t.Errorf("%s: %v is asked", moment, x.By())
			}
			out, err := c.Finish()
			if err != nil || !out.Interrupted || out.MayExecute() || (len(out.Messages) > 0) != (moment == "accepted") {
				t.Errorf("%s: %+v, %v", moment, out, err)
			}
			h.Close()
		})
	}
}
