package httpapi

import (
	"net/http"
	"testing"
	"time"
)

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	cases := []struct {
		name, value string
		want        time.Duration
	}{
		{"Retry-After", "3", 3 * time.Second},
		{"Retry-After", " 1.5 ", 1500 * time.Millisecond},
		{"Retry-After", "Fri, 02 Jan 2026 03:05:05 GMT", time.Minute},
		{"Retry-After", "Fri, 02 Jan 2026 03:00:00 GMT", 0},
		{"Retry-After", "-5", 0},
		{"Retry-After", "NaN", 0},
		{"Retry-After", "1e300", maxRetryAfter},
		{"Retry-After", "soon", 0},
		{"Retry-After-Ms", "250", 250 * time.Millisecond},
		{"X-Other", "250", 0},
	}
	for _, c := range cases {
		if got := retryAfter(http.Header{c.name: {c.value}}, now); got != c.want {
			t.Errorf("%s %q: %v, want %v", c.name, c.value, got, c.want)
		}
	}
}

func TestWaitInAMessage(t *testing.T) {
	for message, want := range map[string]time.Duration{
		"Rate limit reached. Please try again in 11.5s.":        11500 * time.Millisecond,
		"Please try again in 720ms. Visit the page to see more": 720 * time.Millisecond,
		"try again in 7m12.5s":                                  7*time.Minute + 12500*time.Millisecond,
		"You exceeded your quota.\nPlease retry in 34.5s.":      34500 * time.Millisecond,
		"Please try again in 20 seconds.":                       20 * time.Second,
		"Please try again in 20 days.":                          0,
		"Please try again in a minute":                          0,
		"Please try again later.":                               0,
		"Please try again in ":                                  0,
		"try again in 99999h":                                   maxRetryAfter,
		"":                                                      0,
	} {
		if got := waitIn(message); got != want {
			t.Errorf("%q: %v, want %v", message, got, want)
		}
	}
	if me := failed(t, 429, `{"error":{"message":"Please try again in 2s."}}`); me.RetryAfter != 2*time.Second {
		t.Error(me.RetryAfter)
	}
	if me := failed(t, 400, `{"error":{"message":"Fix it and try again in 2s."}}`); me.RetryAfter != 0 {
		t.Error(me.RetryAfter)
	}
}
