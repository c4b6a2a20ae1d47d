package harness_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/harness"
)

// stubbornLink ends when it likes, and not when it is told to.
type stubbornLink struct {
	free    chan struct{}
	closing bool // Close doesn't end either
}

func (l stubbornLink) Exchange(context.Context, []byte) ([]byte, error) {
	<-l.free
	return nil, &ahp.Failure{Class: ahp.FailShutdown}
}
func (l stubbornLink) Notify(ctx context.Context, msg []byte) error {
	_, err := l.Exchange(ctx, msg)
	return err
}
func (l stubbornLink) Close() error {
	if l.closing {
		<-l.free
	}
	return nil
}

// TestCloseIsBounded holds that Close returns even if a transport breaks its
// contract, and names what it left.
func TestCloseIsBounded(t *testing.T) {
	for _, closing := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			link := stubbornLink{free: make(chan struct{}), closing: closing}
			h := newHarness(t, harness.Options{}, intercepts(link, ahp.FailOpen))
			ended := make(chan error, 1)
			go func() {
				_, err := h.Dispatch(t.Context(), ahptest.ToolBefore("e", "{}"), noAllow(), nil, harness.DispatchOptions{})
				ended <- err
			}()
			synctest.Wait()
			began := time.Now()
			err := h.Close()
			if took := time.Since(began); err == nil || took != 32*time.Second || !strings.Contains(err.Error(), "transport") {
				t.Errorf("after %v: %v", took, err)
			}
			close(link.free)
			if err := <-ended; !errors.Is(err, harness.ErrClosed) {
				t.Errorf("the dispatch: %v", err)
			}
			synctest.Wait()
		})
	}
}

type panickingLink struct{ stubbornLink }

func (panickingLink) Close() error { panic("our own") }

// TestCloseSurvivesAPanic holds that a transport that panics keeps no other from
// being closed, and that a host's own chain ends with Close.
func TestCloseSurvivesAPanic(t *testing.T) {
	fake := ahptest.NewFake(nil)
	h := newHarness(t, harness.Options{}, intercepts(fake, ahp.FailOpen),
		party{link: panickingLink{}, subs: []ahp.Subscription{ahptest.Observe("*")}})
	c, x := stagedOf(t, h, "e")
	if err := h.Close(); err == nil || !strings.Contains(err.Error(), "test.b1") {
		t.Errorf("closed with %v", err)
	}
	if _, err := fake.Exchange(t.Context(), []byte("{}")); ahp.AsFailure(err) == nil {
		t.Errorf("the other backend is open: %v", err)
	}
	if _, err := x.Accept(nil); !errors.Is(err, harness.ErrClosed) {
		t.Errorf("accepted after Close: %v", err)
	}
	if _, err := c.Finish(); !errors.Is(err, harness.ErrClosed) {
		t.Errorf("finished after Close: %v", err)
	}
	if _, err := h.Begin(t.Context(), ahptest.ToolBefore("e", "{}"), noAllow(), nil, harness.DispatchOptions{}); !errors.Is(err, harness.ErrClosed) {
		t.Errorf("begun after Close: %v", err)
	}
}

// TestObserveAfterInterruption holds that dispatch sends nothing after an
// interruption, and that what the host sends itself arrives even if the call's
// context is over (spec §29, A11).
func TestObserveAfterInterruption(t *testing.T) {
	audit := ahptest.NewFake(nil)
	h := newHarness(t, harness.Options{}, party{link: audit, subs: []ahp.Subscription{ahptest.Observe("*")}})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	e := ahptest.ToolBefore("e", "{}")
	out, err := h.Dispatch(ctx, e, noAllow(), nil, harness.DispatchOptions{})
	if err != nil || !out.Interrupted {
		t.Fatalf("%+v, %v", out, err)
	}
	settle(t, out)
	if err := out.Release(nil); err != nil || len(audit.Observed()) != 0 {
		t.Fatalf("%d observations after an interruption, %v", len(audit.Observed()), err)
	}
	d, err := h.Observe(ctx, e)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Wait(t.Context()); err != nil || len(audit.Observed()) != 1 {
		t.Errorf("%d observations, %v", len(audit.Observed()), err)
	}
}
