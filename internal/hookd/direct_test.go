package hookd

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/transport"
)

// TestDirectFailsAsTheTransportDoes holds that whoever asks can't tell by which way rules
// were asked, and that a message that may take long has a deadline that holds.
func TestDirectFailsAsTheTransportDoes(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	late, stop := context.WithDeadline(t.Context(), time.Unix(1, 0))
	defer stop()
	refusal := &ahp.Failure{Class: ahp.FailLaunch, Detail: "no rules"}
	handlers := map[string]transport.Handler{
		"an answer": func(_ context.Context, msg []byte) ([]byte, error) { return append([]byte("re: "), msg...), nil },
		"a failure": func(context.Context, []byte) ([]byte, error) { return nil, refusal },
		"an error":  func(context.Context, []byte) ([]byte, error) { return nil, errors.New("odd") },
		"a panic":   func(context.Context, []byte) ([]byte, error) { panic("odd") },
		"no deadline": func(ctx context.Context, _ []byte) ([]byte, error) {
			if _, is := ctx.Deadline(); is {
				return []byte("a deadline"), nil
			}
			return []byte("none"), nil
		},
	}
	for name, handle := range handlers {
		for what, ctx := range map[string]context.Context{"in time": t.Context(), "cancelled": over, "late": late} {
			whole, short := transport.InProcess(handle), directly(handle)
			reply, err := whole.Exchange(ctx, []byte(`{"a":1}`))
			got, failed := short.Exchange(ctx, []byte(`{"a":1}`))
			f, g := ahp.AsFailure(err), ahp.AsFailure(failed)
			if string(got) != string(reply) || (err == nil) != (failed == nil) || (f == nil) != (g == nil) || f != nil && f.Class != g.Class {
				t.Errorf("%s, %s: found %s %v, expected %s %v", name, what, got, failed, reply, err)
			}
			if err := errors.Join(whole.Close(), short.Close()); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestDirectCountsTheDeadline holds the same of a context that ends meanwhile.
func TestDirectCountsTheDeadline(t *testing.T) {
	for _, end := range []error{context.DeadlineExceeded, context.Canceled} {
		ctx, cancel := context.WithCancel(t.Context())
		if end == context.DeadlineExceeded {
			ctx, cancel = context.WithTimeout(t.Context(), time.Millisecond)
		}
		d := directly(func(ctx context.Context, _ []byte) ([]byte, error) {
			if end == context.Canceled {
				cancel()
			}
			<-ctx.Done()
			return nil, errors.New("gone")
		})
		_, err := d.Exchange(ctx, []byte("{}"))
		cancel()
		f := ahp.AsFailure(err)
		if is := f != nil && f.Class == ahp.FailDeadline; is != (end == context.DeadlineExceeded) || !errors.Is(err, end) {
			t.Errorf("%v: found %v", end, err)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestDirectLeavesWhatIsLarge holds that a large message doesn't hold its asker up beyond
// the deadline.
func TestDirectLeavesWhatIsLarge(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	release := make(chan struct{})
	d := directly(func(context.Context, []byte) ([]byte, error) {
		<-release
		return []byte("{}"), nil
	})
	_, err := d.Exchange(ctx, make([]byte, maxDirect+1))
	close(release)
	if f := ahp.AsFailure(err); f == nil || f.Class != ahp.FailDeadline {
		t.Errorf("found %v, expected a deadline", err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}
