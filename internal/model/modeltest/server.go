// Package modeltest is a model server for tests: it speaks the streaming APIs of
// models (see API) on loopback, plays a list of turns, records what it was asked, and
// misbehaves on demand. The same turns can be played to a client of any API.
//
// The server is strict: a request that a careful endpoint would refuse (a call
// that isn't answered exactly once, two assistant messages in a row, arguments
// that aren't a JSON object) gets status 400, is listed by Violations, and fails
// the test that made the server with New.
//
// Each request takes the next turn, a refused one too. Do not assume that a turn
// stands for a successful reply: its faults may make it a status, a cut or
// silence.
package modeltest

import (
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/abhed/abhed/internal/strictjson"
)

// Call is a tool call of a scripted reply. Args is sent as it is.
type Call struct {
	ID, Name, Args string
}

// Usage is what a reply reports. Prompt includes Cached, and Completion includes
// Reasoning, as chat completions has it; where another API counts otherwise, its
// dialect translates.
type Usage struct {
	Prompt, Cached, Completion, Reasoning int
}

// Turn is one scripted reply.
type Turn struct {
	Text      string
	Reasoning string
	Calls     []Call
	// Finish is the finish reason; "" means tool_calls or stop, by Calls.
	Finish string
	// Usage is what is reported; nil means an estimate from the lengths.
	Usage *Usage
	// Expect must appear in the content of the request's last message; "" means
	// that anything may.
	Expect string
	// Faults are applied in order.
	Faults []Fault
	// Before, if set, is called before frame i (from 0) is written; the frames
	// before it have then been flushed.
	Before func(i int)
}

// Options configures a Server. The zero value has no turns.
type Options struct {
	Turns []Turn
	// APIKey must be sent as bearer token, else the answer is 401; "" takes any.
	APIKey string
	// NeedReasoning refuses assistant messages with tool calls that lack
	// reasoning_content.
	NeedReasoning bool
	// RefuseReasoning refuses messages that hold reasoning.
	RefuseReasoning bool
	// SealKey is what the seals of this server depend on, where the API has some: a
	// seal made under another key is refused.
	SealKey string
}

// Server is a running model server. Its methods may be called by any goroutine.
type Server struct {
	// URL is the base URL to configure, ending in /v1.
	URL string

	http *httptest.Server
	o    Options
	gone chan struct{}
	once sync.Once

	mu         sync.Mutex
	next       int
	requests   []Request
	violations []string
}

// New starts a server that plays turns and is closed at the end of the test,
// which fails if a request broke the rules.
func New(t testing.TB, turns ...Turn) *Server {
	t.Helper()
	return NewWith(t, Options{Turns: turns})
}

// NewWith is New with options.
func NewWith(t testing.TB, o Options) *Server {
	t.Helper()
	s := Start(o)
	t.Cleanup(func() {
		s.Close()
		for _, v := range s.Violations() {
			t.Errorf("model server: %s", v)
		}
	})
	return s
}

// Start starts a server that the caller must Close.
func Start(o Options) *Server {
	s := &Server{o: o, gone: make(chan struct{})}
	s.http = httptest.NewServer(http.HandlerFunc(s.serve))
	s.URL = s.http.URL + "/v1"
	return s
}

// RefusedURL returns a base URL on which nothing listens.
func RefusedURL(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return "http://" + l.Addr().String() + "/v1"
}

// Close ends the server and its stalled replies.
func (s *Server) Close() {
	s.once.Do(func() { close(s.gone) })
	s.http.CloseClientConnections()
	s.http.Close()
}

// Requests returns the requests so far, those refused included.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Violations returns what was wrong with the requests so far.
func (s *Server) Violations() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.violations)
}

// Left returns the number of turns that were not asked for yet.
func (s *Server) Left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(0, len(s.o.Turns)-s.next)
}

// take records a request and returns its turn, or what is wrong with it.
func (s *Server) take(api dialect, r *http.Request, body []byte) (turn Turn, problem string) {
	req, problem := api.decode(s, body)
	req.Header = r.Header.Clone()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, req)
	n := s.next
	s.next++
	if problem == "" && n >= len(s.o.Turns) {
		problem = fmt.Sprintf("the script has %d turns and this is request %d", len(s.o.Turns), n+1)
	}
	if problem == "" {
		turn = s.o.Turns[n]
		if last := req.Messages[len(req.Messages)-1].Text(); !strings.Contains(last, turn.Expect) {
			problem = fmt.Sprintf("the last message should contain %q and is %q", turn.Expect, last)
		}
	}
	if problem != "" {
		seal := strings.HasPrefix(problem, badSeal)
		problem = fmt.Sprintf("request %d: %s", n+1, problem)
		if !seal {
			s.violations = append(s.violations, problem)
		}
	}
	return turn, problem
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	api, known := dialectOf(r.URL.Path)
	if !known || r.Method != http.MethodPost {
		refuse(w, chat(), http.StatusNotFound, "not_found_error", "no such route: "+r.Method+" "+r.URL.Path)
		return
	}
	if key := api.key(r.Header); s.o.APIKey != "" && key != s.o.APIKey {
		refuse(w, api, http.StatusUnauthorized, "authentication_error", "Incorrect API key provided: "+key)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client went away
	}
	turn, problem := s.take(api, r, body)
	if problem != "" {
		refuse(w, api, http.StatusBadRequest, "invalid_request_error", problem)
		return
	}
	p := newPlan(api, turn, s.o.SealKey)
	p.promptGuess = len(body) / 4
	s.play(w, r, p)
}

// refuse answers with an error as the API writes it.
func refuse(w http.ResponseWriter, api dialect, status int, kind, message string) {
	body, err := strictjson.Marshal(api.refusal(kind, message))
	if err != nil {
		body = []byte(`{"error":{"message":"the message is not UTF-8"}}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that is gone needs no answer
}

// play writes the reply that p describes.
func (s *Server) play(w http.ResponseWriter, r *http.Request, p *plan) {
	if p.stallHeaders {
		s.stall(r)
	}
	for name, value := range p.header {
		w.Header().Set(name, value)
	}
	pieces, contentType := p.body()
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", contentType)
	}
	if p.gzip {
		w.Header().Set("Content-Encoding", "gzip")
	}
	if p.status != 0 {
		w.WriteHeader(p.status)
	}
	out := &output{w: w, p: p, gone: s.gone}
	var dst io.Writer = out
	var z *gzip.Writer
	if p.gzip {
		z = gzip.NewWriter(out)
		dst = z
	}
	for i, piece := range pieces {
		if p.turn.Before != nil {
			p.turn.Before(i)
		}
		if _, err := dst.Write(piece); err != nil {
			s.end(w, r, err)
			return
		}
		if z != nil && z.Flush() != nil {
			return
		}
	}
	if z != nil {
		_ = z.Close() // only a client that is gone makes it fail
	}
}

// end does what the error of an output stands for.
func (s *Server) end(w http.ResponseWriter, r *http.Request, err error) {
	switch err {
	case errCut:
		panic(http.ErrAbortHandler) // how a handler breaks its connection
	case errStall:
		s.stall(r)
	}
}

// stall waits until the client or the server goes away. It does not return: a
// handler that did would end its answer properly.
func (s *Server) stall(r *http.Request) {
	select {
	case <-r.Context().Done():
	case <-s.gone:
	}
	panic(http.ErrAbortHandler)
}
