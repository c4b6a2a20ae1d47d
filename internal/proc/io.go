package proc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"
)

// past is a deadline that has always passed: setting it wakes a blocked call.
var past = time.Unix(1, 0)

// input is our end of the child's standard input.
type input struct {
	turn   chan struct{} // holds one token: whoever has it writes
	broken bool          // a write did not finish; belongs to who has the turn
	mu     sync.Mutex    // guards file
	file   *os.File      // nil when closed or never there
}

func newInput(f *os.File) *input {
	in := &input{turn: make(chan struct{}, 1), file: f}
	in.turn <- struct{}{}
	return in
}

// Write writes all of p or fails. It waits at most until ctx ends, for other
// writers and for a child that doesn't read. A write that did not finish leaves
// the child unusable: later ones fail with ErrBroken. A ctx that had ended before
// anything could be written does no harm. p is not kept.
func (c *Child) Write(ctx context.Context, p []byte) error {
	if err := c.stdin.write(ctx, p); err != nil {
		return fmt.Errorf("%s: write to its standard input: %w", c.spec.name(), err)
	}
	return nil
}

func (in *input) write(ctx context.Context, p []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case <-in.turn:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { in.turn <- struct{}{} }()

	in.mu.Lock()
	file := in.file
	in.mu.Unlock()
	switch {
	case file == nil:
		return ErrInputClosed
	case in.broken:
		return ErrBroken
	}
	n, err := writeUntil(ctx, file, p)
	if err == nil {
		return nil
	}
	in.broken = true
	if errors.Is(err, os.ErrClosed) {
		err = ErrInputClosed
	}
	return fmt.Errorf("%d of %d bytes written: %w", n, len(p), err)
}

// writeUntil writes p to f until ctx ends.
func writeUntil(ctx context.Context, f *os.File, p []byte) (int, error) {
	if ctx.Done() == nil {
		return f.Write(p)
	}
	woken := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		f.SetWriteDeadline(past)
		close(woken)
	})
	n, err := f.Write(p)
	if !stop() {
		<-woken // else its deadline could hit the next write
		f.SetWriteDeadline(time.Time{})
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = ctx.Err()
	}
	return n, err
}

func (in *input) close() error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.file == nil {
		return nil
	}
	err := in.file.Close()
	in.file = nil
	return err
}

// CloseInput closes the child's standard input. A Write in progress fails. Closing
// twice does nothing.
func (c *Child) CloseInput() error { return c.stdin.close() }

// output is our end of the child's standard output.
type output struct {
	turn   chan struct{} // holds one token: whoever has it reads
	file   *os.File
	buf    []byte        // used by who has the turn
	ending chan struct{} // closed when a blocked reader must leave
	ended  chan struct{} // closed after rest is complete and file closed
	mu     sync.Mutex    // orders ending against setting a deadline
	rest   []byte        // what was left in the pipe at the end; belongs to who has the turn
}

func newOutput(f *os.File) *output {
	out := &output{turn: make(chan struct{}, 1), file: f,
		ending: make(chan struct{}), ended: make(chan struct{})}
	out.turn <- struct{}{}
	return out
}

// Read returns the next output, at most 64 KiB, as soon as there is some; io.EOF
// when all who held the pipe have closed it, or after Stop or Kill. It waits until
// ctx ends, and then no data is lost: the next Read returns it. The slice is the
// caller's.
func (c *Child) Read(ctx context.Context) ([]byte, error) {
	p, err := c.stdout.read(ctx)
	if err != nil && err != io.EOF {
		return nil, fmt.Errorf("%s: read its standard output: %w", c.spec.name(), err)
	}
	return p, err
}

func (out *output) read(ctx context.Context) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case <-out.turn:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	p, err, again := out.readFile(ctx)
	out.turn <- struct{}{}
	if !again {
		return p, err
	}
	select {
	case <-out.ended:
		return out.read(ctx)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// readFile reads once while holding the turn. again means that the stream is being
// ended: the rest comes from memory once it has.
func (out *output) readFile(ctx context.Context) (p []byte, err error, again bool) {
	select {
	case <-out.ended:
		if len(out.rest) == 0 {
			return nil, io.EOF, false
		}
		p = out.rest[:min(len(out.rest), maxChunk)]
		out.rest = out.rest[len(p):]
		return p[:len(p):len(p)], nil, false
	case <-out.ending:
		return nil, nil, true
	default:
	}
	if out.buf == nil {
		out.buf = make([]byte, maxChunk)
	}
	n, err := out.readUntil(ctx)
	if n > 0 {
		return append([]byte(nil), out.buf[:n]...), nil, false
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		select {
		case <-out.ending:
			return nil, nil, true
		default:
			return nil, ctx.Err(), false
		}
	}
	return nil, err, false
}

func (out *output) readUntil(ctx context.Context) (int, error) {
	if ctx.Done() == nil {
		return out.file.Read(out.buf)
	}
	woken := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		out.file.SetReadDeadline(past)
		close(woken)
	})
	n, err := out.file.Read(out.buf)
	if !stop() {
		<-woken
		out.mu.Lock()
		select {
		case <-out.ending: // its deadline must stay
		default:
			out.file.SetReadDeadline(time.Time{})
		}
		out.mu.Unlock()
	}
	return n, err
}

// end takes what is in the pipe into memory and closes it. It is called once.
func (out *output) end() {
	out.mu.Lock()
	close(out.ending)
	out.file.SetReadDeadline(past)
	out.mu.Unlock()
	<-out.turn
	out.rest = drain(out.file, maxDrain)
	out.file.Close()
	close(out.ended)
	out.turn <- struct{}{}
}

// drain returns what can be read from f without waiting, at most limit bytes.
func drain(f *os.File, limit int) []byte {
	f.SetReadDeadline(time.Time{})
	raw, err := f.SyscallConn()
	if err != nil {
		return nil
	}
	var all []byte
	buf := make([]byte, 32<<10)
	for len(all) < limit {
		n := 0
		err := raw.Read(func(fd uintptr) bool {
			for {
				n, err = syscall.Read(int(fd), buf)
				if err != syscall.EINTR {
					return true
				}
			}
		})
		if err != nil || n <= 0 {
			break
		}
		all = append(all, buf[:n]...)
	}
	return all[:min(len(all), limit)]
}
