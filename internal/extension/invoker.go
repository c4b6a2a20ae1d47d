package extension

import (
	"context"
	"fmt"
	"sync"

	"github.com/abhed/abhed/internal/policy"
)

// invoker runs the tools of one extension in a process of their own, which is
// started at the first call and anew after every failure. Calls are serial.
type invoker struct {
	ext  *ext
	turn chan struct{} // holds one token: whoever has it may use proc
	// life ends when the host is closed, and with it every call in progress.
	life context.Context
	end  context.CancelFunc

	mu   sync.Mutex
	proc *stream // nil while there is none; set by who has the turn
}

func newInvoker(e *ext) *invoker {
	v := &invoker{ext: e, turn: make(chan struct{}, 1)}
	v.life, v.end = context.WithCancel(context.Background())
	v.turn <- struct{}{}
	return v
}

// run carries out one call and counts it. When ctx ends first, the process is
// killed, so that nothing of an interrupted call goes on.
func (v *invoker) run(ctx context.Context, call policy.Call) answer {
	a := v.carryOut(ctx, call)
	v.ext.mu.Lock()
	defer v.ext.mu.Unlock()
	v.ext.stats.addTool(a.fail)
	return a
}

func (v *invoker) carryOut(ctx context.Context, call policy.Call) answer {
	r := newRequest(eventInvokeTool, v.ext.opts.SessionID)
	r.call(call)
	if err := r.subject(call); err != nil {
		return answer{fail: &failure{class: failBug, msg: err.Error()}}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(v.life, cancel)()
	select {
	case <-v.turn:
	case <-ctx.Done():
		return answer{fail: &failure{class: failInterrupted, msg: "interrupted before it was run"}}
	}
	defer func() { v.turn <- struct{}{} }()
	s, fail := v.process()
	if fail != nil {
		return answer{fail: fail}
	}
	a := s.request(ctx, r, v.ext.cfg.InvokeTimeout)
	if a.fail != nil {
		s.close(false)
		v.set(nil)
	}
	v.ext.heed(eventInvokeTool, a.reply)
	return a
}

// process returns the running process, started if need be.
func (v *invoker) process() (*stream, *failure) {
	if v.life.Err() != nil {
		return nil, &failure{class: failClosed, msg: "the extension host was closed"}
	}
	if s := v.current(); s != nil {
		if s.failure() == nil {
			return s, nil
		}
		s.close(false)
		v.set(nil)
	}
	e := v.ext
	spec, err := e.cfg.spec(e.opts.Confine, e.stderrSink())
	if err != nil {
		return nil, &failure{class: failStart, msg: err.Error()}
	}
	var s *stream
	ready := make(chan struct{})
	s, err = newStream(spec, e.opts.trace, func(f *failure) {
		<-ready
		msg := fmt.Sprintf("its tool process %d has failed, and is started anew at the next call: %s: %s", s.child.Pid(), f.class, f.msg)
		if tail := s.child.StderrTail(); tail != "" {
			msg += "; its standard error ended with: " + tail
		}
		e.logged("warning", msg)
	})
	close(ready)
	if err != nil {
		return nil, &failure{class: failStart, msg: err.Error()}
	}
	v.set(s)
	return s, nil
}

func (v *invoker) current() *stream {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.proc
}

func (v *invoker) set(s *stream) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.proc = s
}

// pid returns the id of the running process, or 0.
func (v *invoker) pid() int {
	if s := v.current(); s != nil && s.failure() == nil {
		return s.child.Pid()
	}
	return 0
}

// close ends the process. Calls in progress fail, later ones too.
func (v *invoker) close() {
	v.end()
	<-v.turn
	if s := v.current(); s != nil {
		s.close(true)
	}
	v.turn <- struct{}{}
}
