package bash

import (
	"context"
	"io"

	"github.com/abhed/abhed/internal/proc"
)

// ending says why the output ended.
type ending uint8

const (
	closed      ending = iota // nobody holds it any more
	held                      // the shell has ended, but something holds it open
	timedOut                  // the time limit
	interrupted               // the context
)

// stream takes the output of a command; write gets it in pieces.
type stream struct{ write func([]byte) }

// follow takes the output until it ends, the shell ends, or ctx does.
func (s stream) follow(ctx context.Context, child *proc.Child) ending {
	shell, ended := context.WithCancel(ctx)
	defer ended()
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-child.Done():
			ended()
		case <-shell.Done():
		}
	}()
	defer func() { ended(); <-watched }()
	for {
		p, err := child.Read(shell)
		s.write(p)
		switch {
		case err == io.EOF:
			return s.waitForShell(ctx, child)
		case err == nil:
		case ctx.Err() != nil:
			return timedOut
		case shell.Err() != nil:
			return s.linger(ctx, child)
		default:
			return closed // the stream broke, which can't be repaired
		}
	}
}

// waitForShell waits for a shell that has closed its output and runs on.
func (s stream) waitForShell(ctx context.Context, child *proc.Child) ending {
	select {
	case <-child.Done():
		return closed
	case <-ctx.Done():
		return timedOut
	}
}

// linger takes what is still in the pipe after the shell has ended.
func (s stream) linger(ctx context.Context, child *proc.Child) ending {
	ctx, cancel := context.WithTimeout(ctx, lingering)
	defer cancel()
	for {
		wait, stop := context.WithTimeout(ctx, quiet)
		p, err := child.Read(wait)
		stop()
		s.write(p)
		if err == io.EOF {
			return closed
		}
		if err != nil {
			return held
		}
	}
}

// end ends what runs and takes the last output.
func (s stream) end(child *proc.Child, how ending) proc.Exit {
	var exit proc.Exit
	if how == timedOut || how == interrupted {
		exit = child.Stop()
	} else {
		exit = child.Kill() // the shell has ended; this is for what it left behind
	}
	if how == held {
		return exit // what comes now is not of the command
	}
	for {
		p, err := child.Read(context.Background()) // from memory
		s.write(p)
		if err != nil {
			return exit
		}
	}
}
