package rpcmode

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/abhed/abhed/internal/control"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/run"
)

const (
	// defaultBuffer is what a zero Options.Buffer means.
	defaultBuffer = 10_000
	// defaultPatience is what a zero Options.Patience means.
	defaultPatience = 5 * time.Second
	// betweenNotes is the time between two notes about a slow reader.
	betweenNotes = time.Second
)

// Options says where requests come from and replies go to.
type Options struct {
	In  io.Reader
	Out io.Writer
	// Buffer is how many events may wait for the reader of Out until the run waits
	// too; 0 means 10,000. Whatever it is, 64 MiB of them are the most.
	Buffer int
	// Signals ends the service with each signal that it delivers: the exit code is 128
	// and its number. nil means that signals are not heard. Who gives it should see to
	// it that they don't also end the context.
	Signals <-chan os.Signal
	// Patience is how long, at the end, the reader of Out may take nothing before what
	// is left for it is given up; 0 means 5 s.
	Patience time.Duration
}

// Ended is why a service ended, if it was neither quit nor the end of In.
type Ended struct {
	// Code is the exit code that the process should have.
	Code int
	Msg  string
	Err  error
}

// Error returns the message.
func (e *Ended) Error() string { return e.Msg }

// Unwrap returns the cause.
func (e *Ended) Unwrap() error { return e.Err }

// ExitCode is the exit code of a process whose Serve returned err.
func ExitCode(err error) int {
	var e *Ended
	switch {
	case err == nil:
		return 0
	case errors.As(err, &e):
		return e.Code
	}
	return 1
}

// Serve answers requests until one of them is quit, In ends, Out breaks, a signal
// comes or ctx ends, which with the cause *control.Interrupted counts as SIGINT
// (reason user_interrupt), else as SIGTERM. The session ends first. The error is nil
// or an *Ended. While Serve runs, SIGPIPE doesn't end the process.
func Serve(ctx context.Context, engine control.Engine, o Options) error {
	pipes := make(chan os.Signal, 1)
	signal.Notify(pipes, syscall.SIGPIPE)
	defer signal.Stop(pipes)
	s := newServer(context.WithoutCancel(ctx), engine, o)
	g := run.New(s.base)
	items := make(chan item)
	go s.read(newLineReader(o.In, maxLine), items)
	go s.write()
	g.Go(s.runs.loop)
	g.Go(s.sides.loop)
	g.Go(s.noteWaits)
	g.Go(func(bug context.Context) error { s.watch(ctx, bug, o.Signals); return nil })
	g.Go(func(context.Context) error { defer close(s.deaf); s.dispatch(items); return nil })

	<-s.over
	s.out.release()
	<-s.deaf
	s.runs.close(s.ending.cause())
	s.sides.close(s.ending.cause())
	bug := g.Wait()
	closed := run.Protect(s.close)
	if s.ending.quit && bug == nil && closed == nil {
		s.out.inOrder(encode("bye", s.ending.id, nil))
	}
	return s.result(bug, closed, s.out.finish(s.patience))
}

// server is the state of one service.
type server struct {
	engine control.Engine
	// base is the context of all that is asked of the engine.
	base     context.Context
	out      *output
	patience time.Duration
	methods  []method
	desk     *desk
	slow     slowness
	// runs does prompts and compactions; sides does all else that asks the engine, so
	// that it waits neither for those nor for a reader that makes them wait.
	runs, sides *lane
	// sided ends with the last job that was given to sides; only dispatch uses it.
	sided <-chan struct{}

	mu     sync.Mutex
	open   *opened
	failed *control.Error // why the last start failed

	// over ends when something ends the service, of which ending is the first.
	over   chan struct{}
	once   sync.Once
	ending ending
	// deaf ends when no request is taken any more.
	deaf chan struct{}
}

// ending is what ended the service.
type ending struct {
	quit bool
	id   event.Raw // of quit
	// code is an exit code and err why, for an end that is no good one.
	code int
	err  error
	// reason is that of a run that is going on.
	reason string
}

func (e *ending) cause() error {
	if e.reason != "" {
		return &control.Interrupted{Reason: e.reason}
	}
	return &control.Interrupted{Reason: "shutdown"}
}

func newServer(base context.Context, engine control.Engine, o Options) *server {
	buffer, patience := o.Buffer, o.Patience
	if buffer <= 0 {
		buffer = defaultBuffer
	}
	if patience <= 0 {
		patience = defaultPatience
	}
	s := &server{
		engine: engine, base: base, out: newOutput(o.Out, buffer), patience: patience, methods: methods(), desk: newDesk(),
		over: make(chan struct{}), deaf: make(chan struct{}),
	}
	bug := func(err error) { s.end(ending{code: 1, err: err}) }
	s.runs, s.sides = newLane(bug), newLane(bug)
	return s
}

// end ends the service; the first call counts.
func (s *server) end(e ending) {
	s.once.Do(func() {
		s.ending = e
		close(s.over)
	})
}

// write writes replies until there are no more.
func (s *server) write() {
	if err := run.Protect(func() error { s.out.write(); return nil }); err != nil {
		s.out.fail(err)
	}
}

// watch waits for what ends the service from outside. bug ends when a goroutine of
// the service failed.
func (s *server) watch(ctx, bug context.Context, signals <-chan os.Signal) {
	select {
	case <-s.over:
	case <-bug.Done():
		s.end(ending{code: 1, err: context.Cause(bug)})
	case <-s.out.broken:
		s.end(ending{code: 1, err: fmt.Errorf("the reader of the replies is gone: %w", s.out.fault())})
	case sig := <-signals:
		s.end(signalled(sig))
	case <-ctx.Done():
		var i *control.Interrupted
		if errors.As(context.Cause(ctx), &i) && i.Reason == "user_interrupt" {
			s.end(signalled(os.Interrupt))
			return
		}
		s.end(signalled(syscall.SIGTERM))
	}
}

func signalled(sig os.Signal) ending {
	e := ending{code: 1, reason: "shutdown", err: fmt.Errorf("ended by the signal %v", sig)}
	if n, is := sig.(syscall.Signal); is {
		e.code = 128 + int(n)
	}
	if sig == os.Interrupt {
		e.reason = "user_interrupt"
	}
	return e
}

// noteWaits puts into the record that the run had to wait, once it goes on freely.
// What it hears too soon after a note is for the next, or for the end of the prompt.
func (s *server) noteWaits(context.Context) error {
	var last time.Time
	for {
		select {
		case <-s.over:
			return nil
		case <-s.out.calm:
			if o, _ := s.current(); o != nil && time.Since(last) > betweenNotes {
				last = time.Now()
				s.slow.note(o.session, s.out.maxLines)
			}
		}
	}
}

// close closes the session, if there is one.
func (s *server) close() error {
	o, _ := s.current()
	if o == nil {
		return nil
	}
	s.slow.note(o.session, s.out.maxLines)
	return o.session.Close()
}

// result says how the service ended.
func (s *server) result(bug, closed error, written bool) error {
	switch {
	case s.ending.code > 128:
		return &Ended{Code: s.ending.code, Msg: s.ending.err.Error(), Err: s.ending.err}
	case bug != nil:
		return &Ended{Code: 1, Msg: bug.Error(), Err: bug}
	case closed != nil:
		return &Ended{Code: 1, Msg: "the session did not end well: " + closed.Error(), Err: closed}
	case s.ending.err != nil:
		return &Ended{Code: s.ending.code, Msg: s.ending.err.Error(), Err: s.ending.err}
	case !written && s.ending.quit:
		return &Ended{Code: 1, Msg: "the replies could not all be written: their reader is gone or takes nothing", Err: s.out.fault()}
	}
	return nil
}
