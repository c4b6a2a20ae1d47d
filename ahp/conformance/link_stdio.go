package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/abhed/abhed/internal/proc"
)

// stdioLink is a process that stays, and its two streams.
type stdioLink struct {
	env   *backendEnv
	p     *probe
	n     int
	child *proc.Child
	lines lineReader
	// answered holds the ids that have their answer.
	answered map[string]bool
	// strays are the lines that were no answer to what was asked.
	strays [][]byte
	// settled tells that the peer has answered, so that what comes now isn't what
	// it says when it starts.
	settled bool
}

// lineReader splits what a process writes into lines.
type lineReader struct {
	child *proc.Child
	buf   []byte
	eof   bool
}

var errLongLine = errors.New("a line of more than 32 MiB")

// next returns the next line without its newline, io.EOF at the end of the output,
// or ctx's error, which loses nothing.
func (r *lineReader) next(ctx context.Context) ([]byte, error) {
	searched := 0
	for {
		if i := bytes.IndexByte(r.buf[searched:], '\n'); i >= 0 {
			line := bytes.Clone(r.buf[:searched+i])
			r.buf = r.buf[searched+i+1:]
			return line, nil
		}
		searched = len(r.buf)
		switch {
		case r.eof && len(r.buf) > 0:
			line := r.buf
			r.buf = nil
			return line, nil
		case r.eof:
			return nil, io.EOF
		case len(r.buf) > maxAnswer:
			return nil, errLongLine
		}
		chunk, err := r.child.Read(ctx)
		r.buf = append(r.buf, chunk...)
		switch {
		case errors.Is(err, io.EOF):
			r.eof = true
		case err != nil:
			return nil, err
		}
	}
}

func (e *backendEnv) openStdio(p *probe) (*stdioLink, error) {
	n := p.connection()
	child, err := e.start(p, n)
	if err != nil {
		return nil, err
	}
	return &stdioLink{env: e, p: p, n: n, child: child, lines: lineReader{child: child}, answered: map[string]bool{}}, nil
}

// start runs the peer's command; it is ended when the check is over.
func (e *backendEnv) start(p *probe, n int) (*proc.Child, error) {
	child, err := proc.Start(e.spec())
	if err != nil {
		e.notStarted(err)
		return nil, p.failf("the process doesn't start: %v", err)
	}
	p.happened(n, "process started")
	p.atEnd(func() {
		e.finish(child)
		e.keepStderr(child.StderrTail())
	})
	return child, nil
}

// finish ends a process politely, so that it can bring what it keeps in order;
// not one that was seen not to follow.
func (e *backendEnv) finish(child *proc.Child) {
	select {
	case <-child.Done():
		child.Kill() // what it left behind
		return
	default:
	}
	if e.seenHanging() {
		child.Kill()
	} else if child.Stop().Signal != 0 {
		e.impatient()
	}
}

// ask sends m and returns the first line that is an answer.
func (l *stdioLink) ask(ctx context.Context, m message) (*answer, error) {
	return l.askRaw(ctx, m, append(m.raw[:len(m.raw):len(m.raw)], '\n'))
}

// askRaw is ask with the bytes that are written in m's place, in pieces.
func (l *stdioLink) askRaw(ctx context.Context, m message, pieces ...[]byte) (*answer, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, l.env.opts.Timeout)
	defer cancel()
	l.p.record(l.n, ToPeer, bytes.TrimSuffix(bytes.Join(pieces, nil), []byte("\n")))
	written := make(chan error, 1)
	go func() { written <- l.writeAll(ctx, pieces) }()
	a, err := l.await(ctx, m)
	if err != nil {
		cancel()
	}
	if werr := <-written; err == nil && werr != nil && ctx.Err() != nil {
		err = l.p.failf("the peer answered without reading the whole message")
	}
	l.answered[m.idText()] = true
	l.settled = true
	return a, err
}

// writeAll writes the pieces with a pause between them.
func (l *stdioLink) writeAll(ctx context.Context, pieces [][]byte) error {
	for i, piece := range pieces {
		if i > 0 {
			select {
			case <-time.After(splitPause):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if err := l.child.Write(ctx, piece); err != nil {
			return err
		}
	}
	return nil
}

// splitPause is the time between two parts of a line that is written in parts.
const splitPause = 30 * time.Millisecond

// await reads up to the answer to m.
func (l *stdioLink) await(ctx context.Context, m message) (*answer, error) {
	a := &answer{}
	for {
		line, err := l.lines.next(ctx)
		if err != nil {
			return nil, l.silent(err)
		}
		l.p.record(l.n, FromPeer, line)
		s := peek(line)
		id := s.idText()
		if !s.answers() && !looksLikeAnswer(line) || id != "" && id != "null" && l.answered[id] && id != m.idText() {
			if len(l.strays) == maxStrays {
				return nil, l.p.failf("more than %d lines that are no answer, the last one %q", maxStrays, clip(line))
			}
			l.strays = append(l.strays, line)
			a.extra = append(a.extra, line)
			continue
		}
		a.raw = line
		return a, nil
	}
}

// looksLikeAnswer reports whether a line that the strict reader refuses was meant
// as a response.
func looksLikeAnswer(line []byte) bool {
	return bytes.Contains(line, []byte(`"jsonrpc"`)) || bytes.HasPrefix(bytes.TrimSpace(line), []byte("["))
}

// silent returns the finding that no answer came.
func (l *stdioLink) silent(err error) error {
	switch {
	case errors.Is(err, io.EOF):
		select {
		case <-l.child.Done():
			return l.p.failf("the process ended (%s) instead of answering%s", l.child.Exit(), said(l.child))
		case <-time.After(drainTime):
		}
		return l.p.failf("the process closed its standard output instead of answering")
	case errors.Is(err, context.DeadlineExceeded):
		return l.p.failf("no answer within %s", l.env.opts.Timeout)
	case errors.Is(err, errLongLine):
		return l.p.failf("%v", err)
	}
	return fmt.Errorf("reading the peer's output: %w", err)
}

// said quotes the last line of a process's standard error.
func said(c *proc.Child) string {
	tail := bytes.TrimSpace([]byte(c.StderrTail()))
	if len(tail) == 0 {
		return ""
	}
	if i := bytes.LastIndexByte(tail, '\n'); i >= 0 {
		tail = tail[i+1:]
	}
	return fmt.Sprintf("; its standard error ends with %q", clip(tail))
}

// tell sends m between two requests: what comes before the second one's answer was
// for m.
func (l *stdioLink) tell(ctx context.Context, m message) ([][]byte, error) {
	if !l.settled {
		if err := l.fence(ctx); err != nil {
			return nil, err
		}
	}
	if err := m.check(); err != nil {
		return nil, err
	}
	fence, err := l.env.plain()
	if err == nil {
		err = fence.check()
	}
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, l.env.opts.Timeout)
	defer cancel()
	for _, sent := range []message{m, fence} {
		l.p.record(l.n, ToPeer, sent.raw)
		if err := l.child.Write(ctx, append(sent.raw[:len(sent.raw):len(sent.raw)], '\n')); err != nil {
			return nil, l.p.failf("the peer doesn't read: %v", err)
		}
	}
	var came [][]byte
	for {
		a, err := l.await(ctx, fence)
		if err != nil {
			return nil, err
		}
		if peek(a.raw).idText() == fence.idText() {
			l.answered[fence.idText()] = true
			// Whatever m was, it must not spoil what comes after it.
			_, err = l.p.wantEffects(a, &fence)
			return came, err
		}
		if came = append(came, a.raw); len(came) > maxStrays {
			return nil, l.p.failf("more than %d answers to one message", maxStrays)
		}
	}
}

// fence asks something plain.
func (l *stdioLink) fence(ctx context.Context) error {
	m, err := l.env.plain()
	if err != nil {
		return err
	}
	_, err = l.ask(ctx, m)
	return err
}

// drain closes the peer's input and returns what it then writes.
func (l *stdioLink) drain(ctx context.Context) [][]byte {
	l.closeInput()
	ctx, cancel := context.WithTimeout(ctx, drainTime)
	defer cancel()
	var out [][]byte
	for {
		line, err := l.lines.next(ctx)
		if err != nil || len(out) == maxStrays {
			return out
		}
		l.p.record(l.n, FromPeer, line)
		out = append(out, line)
	}
}

func (l *stdioLink) closeInput() {
	l.child.CloseInput()
	l.p.happened(l.n, "standard input closed")
}

// exit waits until the process has ended; nil if it doesn't within the grace.
func (l *stdioLink) exit(ctx context.Context) *proc.Exit {
	return l.env.awaitExit(ctx, l.p, l.n, l.child)
}

func (e *backendEnv) awaitExit(ctx context.Context, p *probe, n int, child *proc.Child) *proc.Exit {
	grace := time.NewTimer(e.opts.Grace)
	defer grace.Stop()
	select {
	case <-child.Done():
		exit := child.Exit()
		p.happened(n, "process ended: %s", exit)
		return &exit
	case <-grace.C:
		p.happened(n, "process still runs after %s", e.opts.Grace)
	case <-ctx.Done():
	}
	return nil
}
