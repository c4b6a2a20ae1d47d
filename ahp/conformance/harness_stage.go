package conformance

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/strictjson"
)

// stage is the suite as the backends of one play.
type stage struct {
	env  *harnessEnv
	play *play
	dir  string
	log  *playLog
	keys []string // by backend

	listener net.Listener
	server   *http.Server
	relays   sync.WaitGroup
	handlers sync.WaitGroup
	ctx      context.Context
	cancel   context.CancelFunc

	mu       sync.Mutex
	closed   bool
	err      error // a fault of the suite
	links    int
	arrivals []*arrival
	conns    map[net.Conn]bool
	names    [][]string // of the environment, by link
	strays   []*arrival // what came where a redirect led
}

// arrival is one message of the harness as it came.
type arrival struct {
	backend, link int
	raw           []byte
	// at is when it came, and answered when the answer was written; zero for none.
	at, answered time.Time
	// line and reply are the numbers of the two in the transcript.
	line, reply int
	// body is the message read leniently; nil if it is no JSON object.
	body object
	// call is the number of the call that it is about, or -1.
	call int
	// early tells that the call's file was there when the message came, hasty that it
	// was when it was answered.
	early, hasty bool
	// framing says what is wrong with how the message was sent; "" is nothing.
	framing string
	header  http.Header
	// nth counts the messages of the same method, type, call and backend, from 0.
	nth int
	// busy tells that another decision was pending.
	busy bool
}

func (a *arrival) method() string {
	s, _ := a.body["method"].(string)
	return s
}

// event is the event of the message, or an empty object.
func (a *arrival) event() object {
	params, _ := a.body["params"].(object)
	event, _ := params["event"].(object)
	return event
}

func (a *arrival) eventType() ahp.EventType {
	s, _ := a.event()["type"].(string)
	return ahp.EventType(s)
}

// asks reports whether the message asks for a decision about a tool call.
func (a *arrival) asks() bool {
	return a.method() == ahp.MethodIntercept && a.eventType() == ahp.ToolBefore
}

// open starts to listen.
func (e *harnessEnv) open(ctx context.Context, p *play, dir string) (*stage, error) {
	s := &stage{env: e, play: p, dir: dir, log: &playLog{redact: e.redact}, conns: map[net.Conn]bool{}}
	for range p.backends {
		var random [12]byte
		if _, err := rand.Read(random[:]); err != nil {
			return nil, err
		}
		s.keys = append(s.keys, hex.EncodeToString(random[:]))
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s.listener = listener
	s.ctx, s.cancel = context.WithCancel(ctx)
	if e.binding == HTTP {
		s.server = &http.Server{Handler: http.HandlerFunc(s.serveHTTP), ErrorLog: e.quiet, BaseContext: func(net.Listener) context.Context { return s.ctx }}
		s.relays.Go(func() { _ = s.server.Serve(listener) }) // ends with close
		return s, nil
	}
	s.relays.Go(s.accept)
	return s, nil
}

// close ends everything that the stage has started.
func (s *stage) close() {
	s.cancel()
	s.listener.Close()
	if s.server != nil {
		s.server.Close()
	}
	s.mu.Lock()
	s.closed = true
	for c := range s.conns {
		c.Close()
	}
	s.mu.Unlock()
	s.relays.Wait()
	s.handlers.Wait()
}

// settle waits, for a bounded time, until what the command has sent has come.
func (s *stage) settle(ctx context.Context) {
	bounded, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	for bounded.Err() == nil {
		s.mu.Lock()
		n := len(s.conns)
		s.mu.Unlock()
		if n == 0 {
			return
		}
		select {
		case <-time.After(2 * time.Millisecond): // polls what other processes do
		case <-bounded.Done():
		}
	}
}

// seen hands over what came.
func (s *stage) seen(r *played) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.arrivals, r.strays, r.names = slices.Clone(s.arrivals), slices.Clone(s.strays), slices.Clone(s.names)
	r.lines = s.log.all()
	if r.err == nil {
		r.err = s.err
	}
}

// registration returns the document.
func (s *stage) registration() object {
	hooks := []any{}
	for i, b := range s.play.backends {
		hook := object{"id": backendID(i), "transport": s.transport(i), "subscriptions": b.subs}
		if b.bearer && s.env.binding == HTTP {
			hook["authentication"] = object{"type": "bearer", "tokenEnv": varToken}
		}
		hooks = append(hooks, hook)
	}
	return object{"protocolVersion": ahp.Version, "hooks": hooks}
}

func backendID(i int) string { return "org.example.conform." + string(rune('a'+i)) }

func (s *stage) transport(i int) object {
	switch {
	case s.play.backends[i].transport != nil:
		return s.play.backends[i].transport
	case s.env.binding == HTTP:
		return object{"type": "http", "url": "http://" + s.listener.Addr().String() + "/" + s.keys[i]}
	}
	args := []any{}
	for _, a := range s.env.opts.Relay[1:] {
		args = append(args, a)
	}
	args = append(args, s.listener.Addr().String(), s.keys[i])
	lifecycle := ahp.LifecyclePersistent
	if s.env.binding == StdioPerEvent {
		lifecycle = ahp.LifecyclePerEvent
	}
	return object{"type": "stdio", "command": s.env.opts.Relay[0], "args": args, "lifecycle": lifecycle}
}

// arrive notes a message.
func (s *stage) arrive(a *arrival) {
	a.at = time.Now()
	var body object
	if strictjson.Unmarshal(a.raw, &body, strictjson.Options{MaxBytes: maxAnswer}) == nil {
		a.body = body
	}
	a.call = s.callOf(a)
	a.early = s.ranNow(a.call)
	a.line = s.log.add(a.link, FromPeer, a.raw)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, other := range s.arrivals {
		if other.method() == a.method() && other.eventType() == a.eventType() && other.call == a.call && other.backend == a.backend {
			a.nth++
		}
		if a.asks() && other.asks() && other.answered.IsZero() {
			a.busy = true
		}
	}
	s.arrivals = append(s.arrivals, a)
}

// callOf returns the number of the call whose file the message names, or -1.
func (s *stage) callOf(a *arrival) int {
	tool, _ := a.event()["tool"].(object)
	text, err := encode(tool)
	if err != nil {
		return -1
	}
	for i := range s.play.calls {
		if strings.Contains(string(text), "/"+marker(i)) {
			return i
		}
	}
	return -1
}

// ranNow reports whether a call's file is there.
func (s *stage) ranNow(call int) bool {
	if call < 0 {
		return false
	}
	_, err := os.Stat(filepath.Join(s.dir, marker(call)))
	return err == nil
}

// answered notes that the answer to a message was written.
func (s *stage) answered(a *arrival, text []byte) {
	line := s.log.add(a.link, ToPeer, text)
	s.mu.Lock()
	defer s.mu.Unlock()
	a.answered, a.reply = time.Now(), line
}

// reaction returns what the backend does about a message.
func (s *stage) reaction(a *arrival) reaction {
	if answer := s.play.backends[a.backend].answer; answer != nil {
		return answer(s, a)
	}
	return reaction{}
}

// wait holds an answer back and then looks whether the call has run meanwhile.
func (s *stage) wait(a *arrival, d time.Duration) bool {
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-s.ctx.Done():
			return false
		}
	}
	hasty := s.ranNow(a.call)
	s.mu.Lock()
	defer s.mu.Unlock()
	a.hasty = hasty
	return true
}

func (s *stage) link(names []string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.links++
	s.names = append(s.names, names)
	return s.links
}

// playLog is the transcript of a play.
type playLog struct {
	redact func(string) string
	mu     sync.Mutex
	lines  []Line
}

// add writes a line down and returns its number.
func (l *playLog) add(link int, d Direction, text []byte) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.lines) + 1
	readable := (&probe{redact: l.redact}).readable(text)
	l.lines = append(l.lines, Line{Number: n, Connection: link, Direction: d, Text: readable, Bytes: len(text)})
	return n
}

func (l *playLog) all() []Line {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.lines)
}

// happened writes down what is no message.
func (s *stage) happened(link int, format string, args ...any) {
	s.log.add(link, Happened, fmt.Appendf(nil, format, args...))
}

// enter reports whether the stage is still open, and if so keeps it from ending
// before handlers.Done is called.
func (s *stage) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.handlers.Add(1)
	}
	return !s.closed
}
