package conformance

import (
	"bytes"
	"context"
	"time"
)

// Bounds of what a peer may send.
const (
	// maxAnswer is the longest line or body that is read.
	maxAnswer = 32 << 20
	// maxStrays is how many lines that nobody asked for are kept.
	maxStrays = 1000
	// drainTime is how long is waited for what a peer may still say after the last
	// answer.
	drainTime = 300 * time.Millisecond
)

// link is a way to one peer, for the time of one check.
type link interface {
	// ask sends a message that calls for one answer, and returns it. It fails if
	// none comes in time.
	ask(ctx context.Context, m message) (*answer, error)
	// tell sends a message that calls for no answer, and returns the messages that
	// came all the same.
	tell(ctx context.Context, m message) ([][]byte, error)
	// drain says that nothing more will be sent, and returns what the peer then
	// says.
	drain(ctx context.Context) [][]byte
}

// quiet holds that a message gets no answer, now or later.
func (p *probe) quiet(ctx context.Context, l link, m message) error {
	came, err := l.tell(ctx, m)
	if err != nil {
		return err
	}
	if len(came) == 0 {
		came = l.drain(ctx)
	}
	if len(came) > 0 {
		return p.failf("%q came for a message that calls for no answer", clip(came[0]))
	}
	return nil
}

// clip shortens a message for a reason.
func clip(b []byte) []byte {
	b = bytes.TrimSpace(b)
	if len(b) > 120 {
		return append(bytes.Clone(b[:120]), "…"...)
	}
	return b
}
