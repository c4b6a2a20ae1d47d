package abhed

import (
	"iter"
	"sync"
	"time"

	"github.com/abhed/abhed/internal/control"
	"github.com/abhed/abhed/internal/event"
)

// maxQueued is how many events may wait for one loop over Session.Events.
const maxQueued = 10_000

// Event is one event of the record.
type Event struct {
	// Seq is its number, from 1.
	Seq  int64
	Time time.Time
	// Type names its kind, such as "tool.ended".
	Type string
	// AgentID names the sub-agent that it belongs to; "" is the main agent.
	AgentID string
	// JSON is the event as it is recorded: one JSON object. It is the receiver's.
	JSON []byte
}

// sink passes on what happens to the functions and loops of the program.
type sink struct {
	onEvent func(Event)
	onDelta func(Delta)

	mu    sync.Mutex // guards what follows
	ended bool
	loops map[*loop]bool

	free chan struct{} // ends when nobody waits for a loop any more
	once sync.Once
}

// loop is one loop over the events.
type loop struct {
	events chan Event
	left   chan struct{} // ends when the loop is left
}

var _ control.Sink = (*sink)(nil)

func newSink(onEvent func(Event), onDelta func(Delta)) *sink {
	return &sink{onEvent: onEvent, onDelta: onDelta, loops: map[*loop]bool{}, free: make(chan struct{})}
}

// Event hears an event.
func (s *sink) Event(e event.Event) {
	s.mu.Lock()
	var loops []*loop
	for l := range s.loops {
		loops = append(loops, l)
	}
	s.mu.Unlock()
	if s.onEvent == nil && len(loops) == 0 {
		return
	}
	out := Event{Seq: e.Seq, Time: e.Time, Type: string(e.Payload.Type()), AgentID: event.AgentOf(e.Payload)}
	b, err := event.Encode(e)
	if err != nil {
		b = []byte("null") // it is in the record, so it can be encoded
	}
	out.JSON = b
	if s.onEvent != nil {
		s.onEvent(out)
	}
	for _, l := range loops {
		mine := out
		mine.JSON = append([]byte(nil), b...)
		l.send(mine, s.free)
	}
}

// send waits for room unless the loop is left or free ends.
func (l *loop) send(e Event, free <-chan struct{}) {
	select {
	case l.events <- e:
		return
	default:
	}
	select {
	case l.events <- e:
	case <-l.left:
	case <-free:
	}
}

// Delta hears a piece of text.
func (s *sink) Delta(d control.Delta) {
	if s.onDelta != nil {
		s.onDelta(d)
	}
}

// follow returns the events from now on.
func (s *sink) follow() iter.Seq[Event] {
	l := &loop{make(chan Event, maxQueued), make(chan struct{})}
	s.mu.Lock()
	if s.ended {
		close(l.events)
	} else {
		s.loops[l] = true
	}
	s.mu.Unlock()
	return func(yield func(Event) bool) {
		defer s.leave(l)
		for e := range l.events {
			if !yield(e) {
				return
			}
		}
	}
}

// leave forgets a loop. Whoever waits for it goes on.
func (s *sink) leave(l *loop) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-l.left:
	default:
		close(l.left)
	}
	delete(s.loops, l)
}

// release lets nobody wait for a loop any more.
func (s *sink) release() { s.once.Do(func() { close(s.free) }) }

// end ends every loop, when nothing is said any more.
func (s *sink) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	s.ended = true
	for l := range s.loops {
		close(l.events)
	}
}
