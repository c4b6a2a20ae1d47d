// Package modelserver plays a model on loopback for tests that run real coding
// agents: it answers in the form of whichever API the agent speaks and follows a
// script, so that a run needs no network, no login and no model.
//
// It guarantees that the turn it plays depends on nothing but the request: as
// many tool results as a request holds, so far has the script been played. A
// client that asks again gets the same turn again, and two conversations don't
// disturb each other. Every request is kept, and what it told the model.
//
// Do not assume that it checks requests as the real services do, that its
// figures of tokens mean anything, or that the order of the requests is that in
// which a client began to send them.
package modelserver

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/abhed/abhed/internal/strictjson"
)

// maxBody bounds a request's body in bytes, as sent and unpacked.
const maxBody = 32 << 20

// Call is one tool call of the model.
type Call struct {
	// Name is the tool's, as the client offers it.
	Name string
	// Args is a JSON object.
	Args string
}

// Turn is one answer of the model: what it says, and what it calls.
type Turn struct {
	Text  string
	Calls []Call
}

// Options are a server's; the zero value will do.
type Options struct {
	// MainTool is a tool that a request must offer to belong to the conversation
	// that the script plays. Empty: any tool will do. All other requests (titles,
	// summaries, classifications) get the smallest answer that fits the schema
	// they ask for, or a short text.
	MainTool string
	// OnTurn, if not nil, is called with the index of the turn before each answer in
	// that conversation. It may be called for several requests at once.
	OnTurn func(turn int)
}

// Request is one request as the server saw it.
type Request struct {
	Method, Path string
	// API is the API it was made in; empty if it asked nothing of a model.
	API API
	// Main says that it belonged to the conversation that the script plays; Turn is
	// then the index of the turn that was played.
	Main bool
	Turn int
	// Tools are the names of the tools that it offered.
	Tools []string
	// Results are the texts of the tool results that it told the model, in order.
	Results []string
	// Body is the body, unpacked. It is the receiver's.
	Body []byte
	// Err says why the request was refused; it got status 400 then.
	Err error
}

// Server plays a script to whoever asks. It is an http.Handler, safe for
// concurrent use.
type Server struct {
	script []Turn
	opts   Options

	mu   sync.Mutex
	seen []Request
}

// New returns a server that plays the script; its last turn is repeated for ever.
// It fails if the script is empty or the arguments of a call are no JSON object.
func New(script []Turn, opts Options) (*Server, error) {
	if len(script) == 0 {
		return nil, fmt.Errorf("modelserver: a script of no turns; want at least one")
	}
	for i, turn := range script {
		for _, call := range turn.Calls {
			var args map[string]any
			if err := strictjson.Unmarshal([]byte(call.Args), &args, strictjson.Options{}); err != nil {
				return nil, fmt.Errorf("modelserver: turn %d: arguments of %s: want a JSON object: %w", i, call.Name, err)
			}
		}
	}
	return &Server{script: slices.Clone(script), opts: opts}, nil
}

// Requests returns what was asked so far, in the order of arrival.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

// Called says whether the script's first turn was played: whether the client
// got as far as being told to call a tool.
func (s *Server) Called() bool {
	return slices.ContainsFunc(s.Requests(), func(r Request) bool { return r.Main && r.Err == nil })
}

// Told returns the texts of all tool results that the model was told, each once,
// in the order in which they first came.
func (s *Server) Told() []string {
	var out []string
	for _, r := range s.Requests() {
		for _, text := range r.Results {
			if !slices.Contains(out, text) {
				out = append(out, text)
			}
		}
	}
	return out
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	req := Request{Method: r.Method, Path: r.URL.Path}
	defer func() {
		s.mu.Lock()
		s.seen = append(s.seen, req)
		s.mu.Unlock()
	}()
	if req.Body, req.Err = readBody(r); req.Err != nil {
		http.Error(w, req.Err.Error(), http.StatusBadRequest)
		return
	}
	if r.Method != http.MethodPost {
		writeJSON(w, about(r.URL.Path))
		return
	}
	api, asked := apiOf(r.URL.Path)
	if !asked {
		writeJSON(w, countOf(r.URL.Path))
		return
	}
	q, err := api.read(req.Body)
	if err != nil {
		req.Err = fmt.Errorf("%s: %w", r.URL.Path, err)
		http.Error(w, req.Err.Error(), http.StatusBadRequest)
		return
	}
	q.stream = q.stream || strings.HasSuffix(r.URL.Path, ":streamGenerateContent")
	req.API, req.Tools, req.Results = api, q.tools, q.results
	req.Main = len(q.tools) > 0 && (s.opts.MainTool == "" || slices.Contains(q.tools, s.opts.MainTool))
	turn := Turn{Text: aside(q.schema)}
	if req.Main {
		req.Turn = s.turnAfter(len(q.results))
		turn = s.script[req.Turn]
		if s.opts.OnTurn != nil {
			s.opts.OnTurn(req.Turn)
		}
	}
	api.write(w, answer{query: q, turn: turn, n: req.Turn})
}

// turnAfter returns the index of the turn that is due once the model was told so
// many results.
func (s *Server) turnAfter(results int) int {
	for i, turn := range s.script {
		if results -= len(turn.Calls); results < 0 || len(turn.Calls) == 0 {
			return i
		}
	}
	return len(s.script) - 1
}

// readBody returns the request's body, unpacked.
func readBody(r *http.Request) ([]byte, error) {
	in := io.Reader(r.Body)
	switch coding := r.Header.Get("Content-Encoding"); coding {
	case "", "identity":
	case "gzip":
		unpacked, err := gzip.NewReader(in)
		if err != nil {
			return nil, fmt.Errorf("body in gzip: %w", err)
		}
		in = unpacked
	default:
		return nil, fmt.Errorf("body in coding %q: can read gzip or none", coding)
	}
	body, err := io.ReadAll(io.LimitReader(in, maxBody+1))
	if err != nil {
		return nil, fmt.Errorf("reading the body: %w", err)
	}
	if len(body) > maxBody {
		return nil, fmt.Errorf("body of more than %d bytes", maxBody)
	}
	return body, nil
}

// about answers what clients ask about the service itself: the list of models,
// in the forms of all APIs at once, or an empty object.
func about(path string) any {
	if !strings.HasSuffix(strings.TrimRight(path, "/"), "models") {
		return object{}
	}
	var data, models []any
	for _, id := range []string{"mock-model", "gpt-5.5", "claude-sonnet-4-5", "gemini-2.5-pro"} {
		data = append(data, object{"id": id, "object": "model", "type": "model", "display_name": id, "created": 1, "owned_by": "test"})
		models = append(models, object{"name": "models/" + id})
	}
	if strings.Contains(path, "v1beta") {
		return object{"models": models}
	}
	return object{"object": "list", "data": data, "models": []any{}, "has_more": false}
}

// countOf answers a request that counts tokens or asks something unknown.
func countOf(path string) any {
	if strings.HasSuffix(path, "/count_tokens") || strings.HasSuffix(path, ":countTokens") {
		return object{"input_tokens": 100, "totalTokens": 100}
	}
	return object{}
}
