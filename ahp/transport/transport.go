// Package transport carries AHP messages between a harness and a backend: over
// the standard streams of a process that stays or that runs once per event, and
// inside the program. HTTP is in the package httptransport, so that a program
// without HTTP backends doesn't pay for net/http.
//
// It guarantees that every wait ends with the caller's context, that a message of
// more than 16 MiB neither leaves nor arrives, that a backend's process is run
// directly with a small environment and is ended and reaped, and that a reply is
// handed to the request that it belongs to or to nobody. Whatever keeps a backend
// from being asked is an *ahp.Failure with its class.
//
// Do not assume that a reply is valid: a transport moves bytes, and whoever asked
// decodes them. Do not assume that a notification arrived.
package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/abhed/abhed/ahp"
)

// Transport carries messages to one backend. All methods may be called from any
// goroutine.
type Transport interface {
	// Exchange sends a request and returns the reply, undecoded. It returns when
	// ctx ends. The error is an *ahp.Failure, or wraps context.Canceled if the
	// caller gave up; any other is a bug, and a harness lets no failure policy open
	// it. msg must not change before the return. The reply is the caller's.
	Exchange(ctx context.Context, msg []byte) ([]byte, error)
	// Notify sends a notification. It returns when the message was handed over, or
	// when ctx ends. Its errors are those of Exchange.
	Notify(ctx context.Context, msg []byte) error
	// Close ends what the transport started and waits for that, for a bounded
	// time. Pending calls fail with class closed. It may be repeated.
	Close() error
}

// checkMessage returns what makes msg unfit for any transport.
func checkMessage(msg []byte) error {
	if len(msg) > ahp.MaxMessageBytes {
		return &ahp.Failure{Class: ahp.FailMalformed, Detail: fmt.Sprintf("the message has %d bytes, the limit is %d", len(msg), ahp.MaxMessageBytes)}
	}
	if bytes.IndexByte(msg, '\n') >= 0 {
		return errors.New("bug: a message with a line feed can't be framed")
	}
	return nil
}

// ended returns the error for a ctx that ended while the transport was doing
// something.
func ended(ctx context.Context, doing string) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &ahp.Failure{Class: ahp.FailDeadline, Detail: "the deadline passed while " + doing, Err: ctx.Err()}
	}
	return fmt.Errorf("cancelled while %s: %w", doing, ctx.Err())
}

func closedFailure() error {
	return &ahp.Failure{Class: ahp.FailShutdown, Detail: "the transport is closed"}
}

// excerpt returns the start of untrusted output for a message.
func excerpt(b []byte) string {
	if len(b) > 80 {
		return fmt.Sprintf("%q…", b[:80])
	}
	return fmt.Sprintf("%q", b)
}
