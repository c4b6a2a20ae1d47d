package transport_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/transport"
)

// TestInProcessCloseIsBounded holds that Close waits for handlers, though not for
// ever, and says how many it left.
func TestInProcessCloseIsBounded(t *testing.T) {
	for _, tt := range []struct {
		name string
		// ends is how long the handler works after its context ended; -1 is for ever.
		ends, took time.Duration
		left       string
	}{
		{"at once", 0, 0, ""},
		{"soon", time.Second, time.Second, ""},
		{"never", -1, 2 * time.Second, "2 calls"},
	} {
		synctest.Test(t, func(t *testing.T) {
			free := make(chan struct{})
			link := transport.InProcess(func(ctx context.Context, _ []byte) ([]byte, error) {
				<-ctx.Done()
				if tt.ends < 0 {
					<-free
				}
				time.Sleep(tt.ends)
				return nil, nil
			})
			results := make(chan error, 2)
			for range 2 {
				go func() {
					_, err := link.Exchange(context.Background(), []byte("{}"))
					results <- err
				}()
			}
			synctest.Wait()
			began := time.Now()
			err := link.Close()
			if took := time.Since(began); took != tt.took {
				t.Errorf("%s: Close took %v", tt.name, took)
			}
			if (err == nil) != (tt.left == "") || err != nil && !strings.Contains(err.Error(), tt.left) {
				t.Errorf("%s: Close returned %v", tt.name, err)
			}
			for range 2 {
				wantClass(t, <-results, ahp.FailShutdown)
			}
			close(free)
			synctest.Wait()
			if err := link.Close(); err != nil {
				t.Errorf("%s: closed again: %v", tt.name, err)
			}
		})
	}
}

// TestInProcessStartsNothingTooLate holds that a message whose context is over isn't
// handled.
func TestInProcessStartsNothingTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handled := 0
		link := transport.InProcess(func(context.Context, []byte) ([]byte, error) { handled++; return nil, nil })
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := link.Exchange(cancelled, []byte("{}")); !errors.Is(err, context.Canceled) || ahp.AsFailure(err) != nil {
			t.Errorf("cancelled: %v", err)
		}
		expired, cancel := context.WithTimeout(t.Context(), 0)
		defer cancel()
		wantClass(t, link.Notify(expired, []byte("{}")), ahp.FailDeadline)
		synctest.Wait()
		if err := link.Close(); err != nil || handled != 0 {
			t.Errorf("%d messages were handled, %v", handled, err)
		}
	})
}
