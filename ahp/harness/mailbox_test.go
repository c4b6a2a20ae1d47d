package harness

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// stuckLink takes nothing.
type stuckLink struct{}

func (stuckLink) Exchange(ctx context.Context, _ []byte) ([]byte, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (l stuckLink) Notify(ctx context.Context, msg []byte) error {
	_, err := l.Exchange(ctx, msg)
	return err
}

func (stuckLink) Close() error { return nil }

// TestMailboxIsBounded holds that observations for a backend that doesn't take them
// are bounded in number and in bytes, and that those beyond are reported.
func TestMailboxIsBounded(t *testing.T) {
	for _, tt := range []struct{ size, sent, dropped int }{
		{1, maxQueued + 5, 4}, // one is on its way
		{14 << 20, 8, 3},
	} {
		synctest.Test(t, func(t *testing.T) {
			dropped := 0
			h := &Harness{done: make(chan struct{}), opts: Options{ObserveTimeout: time.Hour, CloseTimeout: time.Second}}
			h.ctx, h.cancel = context.WithCancel(context.Background())
			h.deliver, h.cancelDeliver = context.WithCancel(context.Background())
			b := &backend{link: stuckLink{}}
			h.backends = []*backend{b}
			h.opts.OnDelivery = func(d Delivery) {
				if h.deliver.Err() == nil {
					dropped++
				}
			}
			msg := make([]byte, tt.size)
			for range tt.sent {
				group := newDeliveries()
				group.add(1)
				if err := h.post(b, letter{ctx: context.Background(), until: time.Now().Add(time.Hour), msg: msg, queued: time.Now(), group: group}); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
			}
			if dropped != tt.dropped {
				t.Errorf("%d bytes: %d of %d were dropped, want %d", tt.size, dropped, tt.sent, tt.dropped)
			}
			h.Close()
			if b.mail.bytes != 0 || b.mail.running {
				t.Errorf("%d bytes are still counted, running %v", b.mail.bytes, b.mail.running)
			}
		})
	}
}
