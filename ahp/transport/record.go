package transport

import (
	"bytes"
	"context"
	"time"
)

// Direction says which way a recorded message went.
type Direction string

// The directions.
const (
	ToBackend   Direction = "to_backend"
	FromBackend Direction = "from_backend"
)

// Traffic is one recorded message, or the error that came in place of a reply.
type Traffic struct {
	At        time.Time
	Direction Direction
	// Notification tells that no reply is expected.
	Notification bool
	// Message is a copy of what was sent or received; nil with Err.
	Message []byte
	Err     error
}

// Record returns a transport that passes everything to t and tells sink of it
// first. sink is called from the goroutines of the callers and must be safe for
// that; it must not call the transport.
func Record(t Transport, sink func(Traffic)) Transport { return &recorder{next: t, sink: sink} }

type recorder struct {
	next Transport
	sink func(Traffic)
}

func (r *recorder) Exchange(ctx context.Context, msg []byte) ([]byte, error) {
	r.sink(Traffic{At: time.Now(), Direction: ToBackend, Message: bytes.Clone(msg)})
	reply, err := r.next.Exchange(ctx, msg)
	r.sink(Traffic{At: time.Now(), Direction: FromBackend, Message: bytes.Clone(reply), Err: err})
	return reply, err
}

func (r *recorder) Notify(ctx context.Context, msg []byte) error {
	r.sink(Traffic{At: time.Now(), Direction: ToBackend, Notification: true, Message: bytes.Clone(msg)})
	err := r.next.Notify(ctx, msg)
	if err != nil {
		r.sink(Traffic{At: time.Now(), Direction: FromBackend, Notification: true, Err: err})
	}
	return err
}

// Ready asks the transport below whether its credential is there, if it can tell.
func (r *recorder) Ready(ctx context.Context) error {
	if next, ok := r.next.(interface{ Ready(context.Context) error }); ok {
		return next.Ready(ctx)
	}
	return nil
}

// Judged passes on whether the last reply was a valid message.
func (r *recorder) Judged(valid bool) {
	if next, ok := r.next.(interface{ Judged(bool) }); ok {
		next.Judged(valid)
	}
}

func (r *recorder) Close() error { return r.next.Close() }
