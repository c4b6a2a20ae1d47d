package extension

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/abhed/abhed/internal/proc"
	"github.com/abhed/abhed/internal/run"
)

const (
	// closeGrace is how long a process may take to end once its input is closed.
	closeGrace = time.Second
	// stderrTail is how many of the last bytes of standard error go with a death.
	stderrTail = 4 << 10
	// exitWait is how long a stream that has ended waits for the exit status.
	exitWait = 250 * time.Millisecond
)

// stream is one process and the conversation with it: one request at a time, one
// reply each. It ends by fail or by close, whichever is first, and then the
// process is killed and reaped.
//
// Three goroutines belong to it: one reads, one watches for the process's end,
// and while there is a request one carries it out; an interrupted caller leaves
// the last behind, which throws the late reply away or finds the stream dead, and
// until then keeps the turn.
type stream struct {
	child *proc.Child
	// onDeath is called once, after the process was reaped, unless the stream was
	// closed. It must not call the stream.
	onDeath func(*failure)
	// trace sees what is exchanged; nil means nobody does.
	trace func(sent bool, line []byte)
	turn  chan struct{} // holds one token: whoever has it may ask
	work  *run.Group

	mu     sync.Mutex // guards what follows
	seq    int64
	frame  framer
	want   chan outcome // where the reply in flight goes, else nil
	dead   *failure     // why the stream has ended, else nil
	deadCh chan struct{}
	gone   chan struct{} // closed when the process was reaped and the death told
}

// outcome is what became of a request. Both may be set: a complete reply that
// was followed by something that nobody asked for.
type outcome struct {
	reply []byte
	fail  *failure
}

// answer is a decoded outcome.
type answer struct {
	reply *reply
	fail  *failure
}

// newStream starts the process.
func newStream(spec proc.Spec, trace func(sent bool, line []byte), onDeath func(*failure)) (*stream, error) {
	child, err := proc.Start(spec)
	if err != nil {
		return nil, err
	}
	s := &stream{
		child: child, onDeath: onDeath, trace: trace, turn: make(chan struct{}, 1), work: run.New(context.Background()),
		deadCh: make(chan struct{}), gone: make(chan struct{}),
	}
	s.turn <- struct{}{}
	s.work.Go(func(context.Context) error { s.readAll(); return nil })
	s.work.Go(func(context.Context) error {
		// Descendants may hold the pipes open for ever; the extension is the process
		// that was configured, and its end is the extension's.
		<-child.Done()
		child.Kill()
		return nil
	})
	return s, nil
}

// request sends r and waits for its reply, at most timeout from the moment at
// which it begins to be written. When ctx ends first, the answer is a failure of
// class interrupted and the stream stays in step.
func (s *stream) request(ctx context.Context, r *request, timeout time.Duration) answer {
	interrupted := answer{fail: &failure{class: failInterrupted, msg: "interrupted before it had answered"}}
	if ctx.Err() != nil {
		return interrupted
	}
	select {
	case <-s.turn:
	case <-ctx.Done():
		return interrupted
	case <-s.deadCh:
		return s.ended(ctx)
	}
	done := make(chan answer, 1)
	if !s.start(func() {
		a := answer{fail: &failure{class: failBug, msg: "this program failed while asking"}}
		_ = run.Protect(func() error { a = s.exchange(r, timeout); return nil })
		s.turn <- struct{}{}
		done <- a
	}) {
		s.turn <- struct{}{}
		return s.ended(ctx)
	}
	select {
	case a := <-done:
		return a
	case <-ctx.Done():
		return interrupted
	}
}

// ended returns why the stream has ended, after that was recorded.
func (s *stream) ended(ctx context.Context) answer {
	select {
	case <-s.gone:
	case <-ctx.Done():
	}
	return answer{fail: s.failure()}
}

// start runs f in a goroutine of the stream, unless the stream has ended: its
// owner may be waiting for the last goroutine.
func (s *stream) start(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dead != nil {
		return false
	}
	s.work.Go(func(context.Context) error { f(); return nil })
	return true
}

// exchange carries out one request. Its caller holds the turn.
func (s *stream) exchange(r *request, timeout time.Duration) answer {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	want, seq, dead := s.expect()
	if dead != nil {
		<-s.gone // its death is recorded before anybody acts on it
		return answer{fail: dead}
	}
	line := r.line(seq)
	if s.trace != nil {
		s.trace(true, line)
	}
	if err := s.child.Write(ctx, line); err != nil {
		// What it wrote meanwhile answers something that it has not read.
		s.fail(s.writeFailure(err, r.event, timeout))
		<-s.gone
		return answer{fail: s.failure()}
	}
	var out outcome
	select {
	case out = <-want:
	case <-ctx.Done():
		s.failWaiting(want, &failure{class: failTimeout, msg: fmt.Sprintf("no reply to %s within %v", r.event, timeout)})
		out = <-want
	}
	if out.fail != nil {
		<-s.gone
	}
	if out.reply == nil {
		return answer{fail: out.fail}
	}
	if s.trace != nil {
		s.trace(false, out.reply)
	}
	rep, fail := decodeReply(out.reply)
	if fail == nil && rep.seq != nil && *rep.seq != seq {
		fail = &failure{class: failStep, msg: fmt.Sprintf("the reply to request %d says seq %d: the stream is out of step", seq, *rep.seq)}
	}
	if fail != nil {
		s.fail(fail)
		<-s.gone
		return answer{fail: fail}
	}
	return answer{reply: rep, fail: out.fail}
}

// expect opens the stream for the reply to the next request.
func (s *stream) expect() (want chan outcome, seq int64, dead *failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dead != nil {
		return nil, 0, s.dead
	}
	s.seq++
	s.want = make(chan outcome, 1)
	return s.want, s.seq, nil
}

// writeFailure says why a request could not be written.
func (s *stream) writeFailure(err error, event string, timeout time.Duration) *failure {
	if errors.Is(err, context.DeadlineExceeded) {
		return &failure{class: failTimeout, msg: fmt.Sprintf("it did not read the %s request within %v", event, timeout)}
	}
	return s.endFailure("closed its standard input", "")
}

// endFailure describes the end of a pipe: by the end of the process, if that is
// what it was.
func (s *stream) endFailure(closed, when string) *failure {
	timer := time.NewTimer(exitWait)
	defer timer.Stop()
	select {
	case <-s.child.Done():
		return &failure{class: failExit, msg: "the process ended" + when + ": " + s.child.Exit().String()}
	case <-timer.C:
		return &failure{class: failExit, msg: "it " + closed + when + " and went on running"}
	}
}

// readAll reads until the output ends, which a kill brings about.
func (s *stream) readAll() {
	for {
		chunk, err := s.child.Read(context.Background())
		s.take(chunk)
		if err == nil {
			continue
		}
		when := ""
		s.mu.Lock()
		if s.frame.partial() {
			when = " in the middle of a reply"
		}
		s.mu.Unlock()
		s.fail(s.endFailure("closed its standard output", when))
		return
	}
}

// take handles output of the process.
func (s *stream) take(p []byte) {
	if len(p) == 0 {
		return
	}
	s.mu.Lock()
	if s.dead != nil {
		s.mu.Unlock()
		return
	}
	var rep []byte
	var fail *failure
	if s.want != nil {
		rep, p, fail = s.frame.feed(p)
	}
	if fail == nil && len(p) > 0 {
		fail = &failure{class: failStep, msg: "it wrote " + quoteStart(p) + ", which answers no request; a request gets exactly one reply"}
	}
	if rep != nil {
		s.want <- outcome{rep, fail}
		s.want = nil
	}
	first := fail != nil && s.end(fail)
	s.mu.Unlock()
	if first {
		s.bury(true)
	}
}

// fail ends the stream for the given reason, unless it has ended.
func (s *stream) fail(f *failure) {
	s.mu.Lock()
	first := s.end(f)
	s.mu.Unlock()
	if first {
		s.bury(true)
	}
}

// failWaiting is fail, but only while the request that waits on want is still
// unanswered.
func (s *stream) failWaiting(want chan outcome, f *failure) {
	s.mu.Lock()
	first := s.want == want && s.end(f)
	s.mu.Unlock()
	if first {
		s.bury(true)
	}
}

// end marks the stream as ended and tells whoever waits. It reports whether it
// was the first; then the caller buries. s.mu is held.
func (s *stream) end(f *failure) bool {
	if s.dead != nil {
		return false
	}
	s.dead = f
	if s.want != nil {
		s.want <- outcome{fail: f}
		s.want = nil
	}
	close(s.deadCh)
	return true
}

// bury kills and reaps the process and tells of its death.
func (s *stream) bury(tell bool) {
	defer close(s.gone)
	s.child.Kill()
	if tell {
		s.onDeath(s.failure())
	}
}

// failure returns why the stream has ended, or nil.
func (s *stream) failure() *failure {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dead
}

// close ends the process, with the usual grace if polite, and waits until nothing
// of the stream is left. It reports whether the stream was alive until then.
func (s *stream) close(polite bool) (alive bool) {
	s.mu.Lock()
	alive = s.end(&failure{class: failClosed, msg: "the extension host was closed"})
	s.mu.Unlock()
	if alive {
		if polite {
			s.child.Stop()
		}
		s.bury(false)
	}
	<-s.gone
	_ = s.work.Wait() // its functions return nil; a panic of one has been told by fail or costs only this stream
	return alive
}
