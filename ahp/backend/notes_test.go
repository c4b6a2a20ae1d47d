package backend

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/abhed/abhed/ahp"
)

// TestWaitingObservationsAreBounded holds that adding pauses before what waits
// fills the memory, that the largest message has room, and that the end of the
// context ends the pause.
func TestWaitingObservationsAreBounded(t *testing.T) {
	for _, tt := range []struct{ size, fit int }{{1, maxWaiting}, {8 << 20, 7}, {ahp.MaxMessageBytes, 3}} {
		synctest.Test(t, func(t *testing.T) {
			n := newNotes()
			ctx, cancel := context.WithCancel(context.Background())
			added := 0
			done := make(chan struct{})
			go func() {
				defer close(done)
				for ctx.Err() == nil {
					n.add(ctx, make([]byte, tt.size))
					added++
				}
			}()
			synctest.Wait()
			if added != tt.fit {
				t.Errorf("%d bytes: %d fit, want %d", tt.size, added, tt.fit)
			}
			n.take(func([]byte) {})
			synctest.Wait()
			if added != tt.fit+1 {
				t.Errorf("%d bytes: %d after one was taken", tt.size, added)
			}
			cancel()
			<-done
		})
	}
}
