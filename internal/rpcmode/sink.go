package rpcmode

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/abhed/abhed/internal/control"
	"github.com/abhed/abhed/internal/event"
)

// sink hears one session and writes what it hears, in its order.
type sink struct {
	out  *output
	slow *slowness
	// desk is nil if the client answers no questions.
	desk   *desk
	deltas bool
	// seq is the number of the last event.
	seq atomic.Int64
}

// Event writes an event, and makes the run wait while there is no room for it.
func (s *sink) Event(e event.Event) {
	s.seq.Store(e.Seq)
	if s.desk != nil {
		s.desk.hear(e.Payload)
	}
	waited := s.out.inOrder(encodeEvent(e))
	if n, is := e.Payload.(*event.Notice); !is || !s.slow.own(n.Text) {
		s.slow.add(waited)
	}
}

// Delta writes a piece of text, if the client wants them.
func (s *sink) Delta(d control.Delta) {
	if s.deltas {
		s.slow.add(s.out.inOrder(encodeDelta(d)))
	}
}

// slowness counts how long the run waited for the reader, until that is noted in the
// record. It can't be noted while it happens: the note would wait too.
type slowness struct {
	mu     sync.Mutex
	waited time.Duration
	times  int
	// text is the note that is being written: to wait with that doesn't count.
	text string
	// noting is held while a note is written, so that who finds nothing to note knows
	// that it has been.
	noting sync.Mutex
}

func (s *slowness) add(waited time.Duration) {
	if waited <= 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waited += waited
	s.times++
}

func (s *slowness) own(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text != "" && s.text == text
}

// take returns what has to be noted, "" for nothing, and counts anew.
func (s *slowness) take(buffer int) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text = ""
	if s.times > 0 {
		s.text = fmt.Sprintf("the program that reads the events was slow: %d times the session waited for it, %s in all, because %d events or %d bytes were waiting for it already",
			s.times, max(s.waited, time.Millisecond).Round(time.Millisecond), buffer, maxWaiting)
	}
	s.waited, s.times = 0, 0
	return s.text
}

// note puts into the record that the run had to wait, if it had.
func (s *slowness) note(session control.Session, buffer int) {
	s.noting.Lock()
	defer s.noting.Unlock()
	if text := s.take(buffer); text != "" {
		// A session that has ended takes no note, and there is no other place for it.
		_ = session.Tune().Note("warning", text)
	}
}
