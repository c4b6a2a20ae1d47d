package oauth

import (
	"net/url"
	"testing"
	"testing/synctest"
	"time"
)

// TestDeafHost holds that Close waits for an acquisition that runs, but not for ever
// for a host whose callback ignores its context.
func TestDeafHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource(&url.URL{}, Options{})
		s.pending = &acquisition{done: make(chan struct{})}
		start := time.Now()
		if err := s.Close(); err == nil || time.Since(start) != closeTime {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		time.AfterFunc(time.Second, func() { close(s.pending.done) })
		start = time.Now()
		if err := s.Close(); err != nil || time.Since(start) != time.Second || s.ctx.Err() == nil {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}
