package backend

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

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
// observations are handled beside them, in order. It returns nil at the end of in,
// and ctx's error otherwise, when everything that was read has been handled: after
// ctx's end nothing more is read, and what is being judged has Options.Grace before
// its own context ends; a handler that ignores that for another second is left behind
// and is an error.
//
// in is closed when ctx ends, if it can be. A Read that doesn't end with that, such
// as one of a pipe that is standard input, is left behind: the program should end.
func (s *Server) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	l := &stdioLoop{server: s, ctx: ctx, work: work, out: out, notes: newNotes(), reader: bufio.NewReaderSize(in, 64<<10), busy: newBusy()}
	ended := make(chan error, 1)
	go func() { ended <- l.serve() }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	grace := time.AfterFunc(s.opts.Grace, cancel)
	defer grace.Stop()
	if c, ok := in.(io.Closer); ok {
		c.Close() // wakes a read where that is possible
	}
	// A handler that outlives its context too is not waited for.
	patience := time.NewTimer(s.opts.Grace + time.Second)
	defer patience.Stop()
	select {
	case err := <-ended:
		return err
	case <-l.busy.stop():
	case <-patience.C:
		l.mute()
		err := errors.New("backend: a handler goes on after the end of its context")
		s.report(err)
		return err
	}
	wake := time.NewTimer(20 * time.Millisecond)
	defer wake.Stop()
	select {
	case err := <-ended:
		return err
	case <-wake.C:
		return ctx.Err()
	}
}

// stdioLoop is one run of ServeStdio.
type stdioLoop struct {
	server *Server
	ctx    context.Context // ends the reading
	work   context.Context // the handlers'
	out    io.Writer
	notes  *notes
	reader *bufio.Reader
	busy   *busy

	mu    sync.Mutex // orders replies before mute
	muted bool
}

// mute keeps a handler that is not waited for from writing.
func (l *stdioLoop) mute() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.muted = true
}

// serve handles lines until in ends or ctx does.
func (l *stdioLoop) serve() error {
	var observing sync.WaitGroup
	observing.Go(func() {
		// What goes wrong is reported there; a notification has no reply.
		for l.notes.take(func(msg []byte) { l.server.Handle(l.work, msg) }) {
			l.busy.end()
		}
	})
	defer observing.Wait()
	defer close(l.notes.waiting)
	for {
		line, err := readLine(l.reader)
		if !l.busy.begin() {
			return l.ctx.Err()
		}
		err = l.line(line, err)
		// What is in the buffer has been read, so it is still handled.
		for err == nil && l.lineBuffered() {
			err = l.line(readLine(l.reader))
		}
		l.busy.end()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil && l.ctx.Err() != nil:
			return l.ctx.Err()
		case err != nil:
			return err
		case l.ctx.Err() != nil:
			return l.ctx.Err()
		}
	}
}

// lineBuffered reports whether a whole line can be had without reading.
func (l *stdioLoop) lineBuffered() bool {
	held, _ := l.reader.Peek(l.reader.Buffered())
	return bytes.IndexByte(held, '\n') >= 0
}

// line handles what readLine returned. It fails at the end of the input, and if a
// reply can't be written.
func (l *stdioLoop) line(line []byte, err error) error {
	if len(bytes.TrimSpace(line)) > 0 {
		if err := l.message(line); err != nil {
			return err
		}
	}
	switch {
	case errors.Is(err, errTooLong):
		l.server.report(err)
		return l.write(encodeError(ahp.ID{}, &ahp.RPCError{Code: ahp.CodeParse, Message: err.Error()}))
	case err == nil || errors.Is(err, io.EOF):
		return err
	}
	return fmt.Errorf("backend: read a message: %w", err)
}

// message handles one message.
func (l *stdioLoop) message(msg []byte) error {
	if _, isRequest := ahp.MessageID(msg); !isRequest {
		if p, err := ahp.Peek(msg); err == nil && p.Method == ahp.MethodObserve {
			l.busy.more()
			if !l.notes.add(l.work, msg) {
				l.busy.end()
			}
			return nil
		}
	}
	reply, _ := l.server.Handle(l.work, msg)
	if reply == nil {
		return nil
	}
	return l.write(reply)
}

func (l *stdioLoop) write(reply []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.muted {
		return l.ctx.Err()
	}
	if _, err := l.out.Write(append(reply[:len(reply):len(reply)], '\n')); err != nil {
		return fmt.Errorf("backend: write a reply: %w", err)
	}
	return nil
}

// busy counts what has been read and not yet handled.
type busy struct {
	mu      sync.Mutex
	n       int
	stopped bool
	idle    chan struct{} // closed once stopped and n is 0
}

func newBusy() *busy { return &busy{idle: make(chan struct{})} }

// begin counts one more, and reports false after a stop.
func (b *busy) begin() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopped {
		return false
	}
	b.n++
	return true
}

// more counts one more while another is being handled.
func (b *busy) more() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.n++
}

func (b *busy) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.n--; b.stopped && b.n == 0 {
		close(b.idle)
	}
}

// stop lets nothing more begin; the channel is closed when nothing is left. It is
// called once.
func (b *busy) stop() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopped = true; b.n == 0 {
		close(b.idle)
	}
	return b.idle
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

// add waits for room and reports whether there was some before the end of ctx. It
// has one caller at a time, so that two can't each hold a part of what both need.
func (n *notes) add(ctx context.Context, msg []byte) bool {
	for range weight(msg) {
		select {
		case n.taken <- struct{}{}:
		case <-ctx.Done():
			return false
		}
	}
	n.waiting <- bytes.Clone(msg) // there is room: each that waits holds a token
	return true
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
