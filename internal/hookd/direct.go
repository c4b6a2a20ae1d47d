package hookd

import (
	"context"
	"errors"
	"fmt"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/transport"
	"github.com/abhed/abhed/internal/run"
)

// maxDirect bounds the message that is judged at once: within it, rules take less than
// any deadline.
const maxDirect = 16 << 10

// direct asks the rules of this program in the goroutine that waits for them, which a
// goroutine for each message would make wait longer: it has to be started, and to grow
// its stack. What could take its time, or comes when there is none, goes the other way.
type direct struct {
	transport.Transport
	handle transport.Handler
}

func directly(h transport.Handler) transport.Transport {
	return &direct{Transport: transport.InProcess(h), handle: h}
}

// Exchange answers as that of the transport does.
func (d *direct) Exchange(ctx context.Context, msg []byte) (reply []byte, err error) {
	if len(msg) > maxDirect || ctx.Err() != nil {
		return d.Transport.Exchange(ctx, msg)
	}
	err = run.Protect(func() (err error) {
		reply, err = d.handle(ctx, msg)
		return err
	})
	if err == nil || ahp.AsFailure(err) != nil {
		return reply, err
	}
	switch ended := ctx.Err(); {
	case errors.Is(ended, context.DeadlineExceeded):
		return nil, &ahp.Failure{Class: ahp.FailDeadline, Detail: "the deadline passed while the rules judged", Err: ended}
	case ended != nil:
		return nil, fmt.Errorf("cancelled while the rules judged: %w", ended)
	}
	return nil, &ahp.Failure{Class: ahp.FailConnect, Detail: err.Error(), Err: err}
}
