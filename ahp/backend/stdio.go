package backend

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/abhed/abhed/ahp"
)

// Bounds of the observations that wait for a slow Observe; when they are reached,
// reading pauses. A message counts as one, and once more per unit of its size.
const (
	maxWaiting  = 256
	waitingUnit = 256 << 10
)

// weight is what a message counts for.
func weight(msg []byte) int { return 1 + len(msg)/waitingUnit }

// ServeStdio answers the messages on in, one per line, with one line each on out,
// until in ends or ctx does (§16). Requests are answered one after the other;
// observations are handled beside them, in order. It returns when everything that
// was read has been handled, nil at the end of in, and ctx's error otherwise. in
// is closed when ctx ends, if it can be.
func (s *Server) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	if c, ok := in.(io.Closer); ok {
		defer context.AfterFunc(ctx, func() { c.Close() })()
	}
	notes := newNotes()
	var observing sync.WaitGroup
	observing.Go(func() {
		// What goes wrong is reported there; a notification has no reply.
		for notes.take(func(msg []byte) { s.Handle(ctx, msg) }) {
		}
	})
	defer observing.Wait()
	defer close(notes.waiting)

	r := bufio.NewReaderSize(in, 64<<10)
	for {
		line, err := readLine(r)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if len(bytes.TrimSpace(line)) > 0 {
			if err := s.serveLine(ctx, line, notes, out); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, errTooLong):
			reply := encodeError(ahp.ID{}, &ahp.RPCError{Code: ahp.CodeParse, Message: err.Error()})
			if _, err := out.Write(append(reply, '\n')); err != nil {
				return fmt.Errorf("backend: write a reply: %w", err)
			}
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("backend: read a message: %w", err)
		}
	}
}

// notes holds the observations that wait; taken holds a token for each unit of
// their weight.
type notes struct {
	waiting chan []byte
	taken   chan struct{}
}

func newNotes() *notes {
	return &notes{waiting: make(chan []byte, maxWaiting), taken: make(chan struct{}, maxWaiting)}
}

// take waits for the next message and gives it to handle; false at the end.
func (n *notes) take(handle func(msg []byte)) bool {
	msg, ok := <-n.waiting
	if !ok {
		return false
	}
	handle(msg)
	for range weight(msg) {
		<-n.taken
	}
	return true
}

// add waits for room. It has one caller at a time, so that two can't each hold a
// part of what both need.
func (n *notes) add(ctx context.Context, msg []byte) {
	for range weight(msg) {
		select {
		case n.taken <- struct{}{}:
		case <-ctx.Done():
			return
		}
	}
	n.waiting <- bytes.Clone(msg) // there is room: each that waits holds a token
}

// serveLine handles one line; it fails only if the reply can't be written.
func (s *Server) serveLine(ctx context.Context, line []byte, notes *notes, out io.Writer) error {
	if _, isRequest := ahp.MessageID(line); !isRequest {
		if p, err := ahp.Peek(line); err == nil && p.Method == ahp.MethodObserve {
			notes.add(ctx, line)
			return nil
		}
	}
	reply, _ := s.Handle(ctx, line)
	if reply == nil {
		return nil
	}
	if _, err := out.Write(append(reply[:len(reply):len(reply)], '\n')); err != nil {
		return fmt.Errorf("backend: write a reply: %w", err)
	}
	return nil
}

var errTooLong = fmt.Errorf("a line of more than %d bytes", ahp.MaxMessageBytes)

// readLine returns the next line without its end. The last line may lack one. Of
// a line that is too long nothing is returned but errTooLong.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	tooLong := false
	for {
		part, err := r.ReadSlice('\n')
		if !tooLong {
			line = append(line, part...)
		}
		if len(line) > ahp.MaxMessageBytes+1 {
			tooLong, line = true, nil
		}
		switch {
		case err == bufio.ErrBufferFull:
			continue
		case tooLong && err == nil:
			return nil, errTooLong
		}
		return bytes.TrimSuffix(line, []byte("\n")), err
	}
}

// Main serves h on standard input and output and ends the program: with 0 at the
// end of input or on SIGTERM or SIGINT, with 1 after a failure. What goes wrong is
// told on standard error. It suits both lifecycles of a stdio backend.
func Main(h Handler, opts Options) {
	if opts.OnError == nil {
		opts.OnError = func(err error) { fmt.Fprintln(os.Stderr, err) }
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- New(h, opts).ServeStdio(ctx, os.Stdin, os.Stdout) }()
	var err error
	select {
	case err = <-ended:
	case <-ctx.Done():
		// A read of standard input may not be wakeable: the program ends anyway.
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}
