package harness

import (
	"context"
	"time"

	"github.com/abhed/abhed/ahp"
)

const (
	// firstPause is the pause before the first retry; it doubles up to maxPause.
	firstPause = 50 * time.Millisecond
	maxPause   = time.Second
	// maxRetries bounds Options.Retries.
	maxRetries = 16
)

// retryable reports whether the same request may be answered if it is sent again
// soon. Only what kept a request from being answered is retried, never an answer,
// however bad: a backend that was understood once would be asked twice (§14).
//
//	connect, exit             yes: a connection or a process is made anew
//	http_status               408, 425, 429 and 5xx: the server says so itself
//	launch, auth              no: what is missing will be missing
//	deadline, late            no: there is no time left
//	malformed, rpc_error, id_mismatch, version, event, effect
//	                          no: that was the answer
//	closed                    no
//	any that is Final         no: a certificate that isn't valid stays so
func retryable(f *ahp.Failure) bool {
	if f.Final {
		return false
	}
	switch f.Class {
	case ahp.FailConnect, ahp.FailExit:
		return true
	case ahp.FailHTTPStatus:
		return f.Status == 408 || f.Status == 425 || f.Status == 429 || f.Status >= 500
	}
	return false
}

// pause waits before retry n, from 1. It is false, at once, if the deadline would
// come first, and as soon as ctx ends.
func pause(ctx context.Context, deadline time.Time, n int) bool {
	d := min(firstPause<<(n-1), maxPause)
	if time.Until(deadline) <= d {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
