package transport

import (
	"bytes"
	"context"
	"io"
	"sync"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/proc"
)

// perEvent runs a process for each message: one line in, end of input, at most
// one line out, exit 0.
type perEvent struct {
	spec   proc.Spec
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	mu     sync.Mutex // orders Close against new calls
	closed bool
	calls  sync.WaitGroup
}

func newPerEvent(spec proc.Spec) *perEvent {
	t := &perEvent{spec: spec}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	return t
}

func (t *perEvent) Exchange(ctx context.Context, msg []byte) ([]byte, error) {
	out, err := t.run(ctx, msg)
	if err != nil {
		return nil, err
	}
	line, rest, _ := bytes.Cut(out, []byte("\n"))
	switch {
	case len(bytes.TrimSpace(line)) == 0:
		return nil, &ahp.Failure{Class: ahp.FailMalformed, Detail: "the process ended without a reply"}
	case len(rest) > 0:
		return nil, &ahp.Failure{Class: ahp.FailMalformed, Detail: "more than one line of output, which starts with " + excerpt(out)}
	}
	return line, nil
}

// Notify runs the process and waits for its end, at most until ctx ends; what it
// writes is ignored.
func (t *perEvent) Notify(ctx context.Context, msg []byte) error {
	_, err := t.run(ctx, msg)
	return err
}

// run gives msg to a new process and returns its output once it has exited with 0.
func (t *perEvent) run(ctx context.Context, msg []byte) ([]byte, error) {
	if err := checkMessage(msg); err != nil {
		return nil, err
	}
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return nil, closedFailure()
	}
	t.calls.Add(1)
	t.mu.Unlock()
	defer t.calls.Done()
	if ctx.Err() != nil {
		return nil, ended(ctx, "starting the process")
	}
	runCtx, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(t.ctx, stop)()

	child, err := proc.Start(t.spec)
	if err != nil {
		return nil, launchFailure(err)
	}
	defer child.Kill()
	out, err := talk(runCtx, child, msg)
	switch {
	case t.ctx.Err() != nil:
		return nil, closedFailure()
	case ctx.Err() != nil:
		return nil, ended(ctx, "waiting for the process to end")
	}
	return out, err
}

// talk writes msg, reads everything and waits for the exit.
func talk(ctx context.Context, child *proc.Child, msg []byte) ([]byte, error) {
	// A process may exit while a descendant keeps its output open: then what is
	// in the pipe is all there is.
	watch, unwatch := context.WithCancel(ctx)
	var watcher sync.WaitGroup
	watcher.Go(func() {
		select {
		case <-child.Done():
			child.Stop()
		case <-watch.Done():
		}
	})
	defer watcher.Wait()
	defer unwatch()

	// A process that doesn't read its input may still answer, so a failed write is
	// no failure by itself: the exit status and the reply decide.
	writeErr := child.Write(ctx, append(bytes.Clone(msg), '\n'))
	child.CloseInput()
	out, err := readAll(ctx, child)
	if err != nil {
		return nil, err
	}
	select {
	case <-child.Done():
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if exit := child.Exit(); exit != (proc.Exit{}) {
		child.Stop() // its standard error may still be on its way
		return nil, exitFailure(child, "the process failed")
	}
	if writeErr != nil && len(out) == 0 {
		return nil, &ahp.Failure{Class: ahp.FailExit, Detail: "the process ended without reading its input", Err: writeErr}
	}
	return out, nil
}

func readAll(ctx context.Context, child *proc.Child) ([]byte, error) {
	var out []byte
	for {
		p, err := child.Read(ctx)
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		if out = append(out, p...); len(out) > ahp.MaxMessageBytes {
			return nil, &ahp.Failure{Class: ahp.FailMalformed, Detail: "the output is larger than the limit"}
		}
	}
}

// Close kills the processes that run and waits for their calls.
func (t *perEvent) Close() error {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.cancel()
	t.calls.Wait()
	return nil
}
