package main

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/backend"
)

func call(id string) *ahp.Intercept {
	return &ahp.Intercept{Event: ahptest.ToolBefore(id, `{}`), Capabilities: *ahp.NewCapabilities(ahp.ToolBefore, ahp.EffectDeny)}
}

// TestQueueEndsWithTheHarness holds that a call stops waiting when the harness has
// given up, so that nobody decides about what is over.
func TestQueueEndsWithTheHarness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(time.Minute)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		_, err := q.judge(ctx, call("e"))
		if waiting, _ := q.list(); !errors.Is(err, backend.ErrUnavailable) || len(waiting) != 0 || time.Since(began) != time.Second {
			t.Errorf("%v, %d wait, after %v", err, len(waiting), time.Since(began))
		}
	})
}

// TestQueueIsBounded holds that one call too many is denied at once, and that each
// decision settles one call.
func TestQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(time.Minute)
		ended := make(chan int, maxPending)
		for range maxPending {
			go func() {
				effects, _ := q.judge(t.Context(), call("e"))
				ended <- len(effects)
			}()
		}
		synctest.Wait()
		effects, err := q.judge(t.Context(), call("more"))
		if err != nil || len(effects) != 1 || effects[0].EffectType() != ahp.EffectDeny {
			t.Errorf("one too many: %v, %v", effects, err)
		}
		waiting, _ := q.list()
		for i, p := range waiting {
			if !q.decide(p.id, decision{deny: i == 0}) || q.decide(p.id, decision{}) {
				t.Error("not decided once")
			}
		}
		denied := 0
		for range maxPending {
			denied += <-ended
		}
		if denied != 1 {
			t.Errorf("%d denied", denied)
		}
	})
}
