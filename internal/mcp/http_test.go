package mcp_test

import (
	"bufio"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/abhed/abhed/internal/mcp"
)

const bearer = "Bearer very-secret-token"

// web is a server of the SDK over HTTP that wants a token.
type web struct {
	*httptest.Server
	mcp     *sdk.Server
	handler atomic.Pointer[sdk.StreamableHTTPHandler]

	mu      sync.Mutex
	methods []string
	calls   int
}

func newWeb(t *testing.T, jsonOnly bool) *web {
	t.Helper()
	w := &web{mcp: sdk.NewServer(&sdk.Implementation{Name: "web", Version: "1"}, nil)}
	w.mcp.AddTool(&sdk.Tool{Name: "echo", Description: "says it again", InputSchema: map[string]any{"type": "object"}}, func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		w.mu.Lock()
		w.calls++
		w.mu.Unlock()
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(req.Params.Arguments)}}}, nil
	})
	w.mcp.AddTool(&sdk.Tool{Name: "hang", InputSchema: map[string]any{"type": "object"}}, func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		w.note("hanging")
		<-ctx.Done()
		w.note("let go")
		return nil, ctx.Err()
	})
	w.mcp.AddTool(&sdk.Tool{Name: "ask", InputSchema: map[string]any{"type": "object"}}, func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		res, err := req.Session.Elicit(ctx, &sdk.ElicitParams{Mode: "form", Message: "Which team?", RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{"team": map[string]any{"type": "string"}}}})
		if err != nil {
			return nil, err
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: fmt.Sprint(res.Action, " ", res.Content)}}}, nil
	})
	w.restart(jsonOnly)
	w.Server = httptest.NewServer(http.HandlerFunc(w.serve))
	t.Cleanup(func() {
		for session := range w.mcp.Sessions() { // those that nobody said goodbye to
			_ = session.Close()
		}
		w.Server.Close()
	})
	return w
}

// restart forgets all sessions.
func (w *web) restart(jsonOnly bool) {
	w.handler.Store(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return w.mcp }, &sdk.StreamableHTTPOptions{JSONResponse: jsonOnly}))
}

func (w *web) note(s string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.methods = append(w.methods, s)
}

func (w *web) saw(s string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Contains(strings.Join(w.methods, "\n"), s)
}

func (w *web) serve(out http.ResponseWriter, req *http.Request) {
	w.note(req.Method)
	if req.Header.Get("Authorization") != bearer {
		http.Error(out, "who are you, "+req.Header.Get("Authorization"), http.StatusUnauthorized)
		return
	}
	w.handler.Load().ServeHTTP(out, req)
}

func (w *web) config() mcp.Server {
	return mcp.Server{Name: "web", URL: w.URL + "/mcp?key=query-secret", Headers: map[string]string{"Authorization": bearer}}
}

func TestHTTP(t *testing.T) {
	t.Parallel()
	for _, jsonOnly := range []bool{false, true} {
		t.Run(fmt.Sprint(jsonOnly), func(t *testing.T) {
			t.Parallel()
			w := newWeb(t, jsonOnly)
			cfg := w.config()
			cfg.ReadOnly = []string{"echo"}
			r := start(t, mcp.Options{}, cfg)
			r.wantNames("mcp__web__ask", "mcp__web__echo", "mcp__web__hang")
			r.works("mcp__web__echo", `{"n":12345678901234567890,"x":1.50}`, `{"n":12345678901234567890,"x":1.50}`)
			if st := r.States()[0]; st.Transport != "http" || st.State != mcp.StateReady || st.Pid != 0 {
				t.Errorf("state %+v", st)
			}
			r.Close()
			if !w.saw("DELETE") {
				t.Error("the session was not ended")
			}
		})
	}
}

func TestHTTPSessionLost(t *testing.T) {
	t.Parallel()
	w := newWeb(t, false)
	r := start(t, mcp.Options{}, w.config())
	r.works("mcp__web__echo", `{}`, `{}`)
	w.restart(false)
	r.works("mcp__web__echo", `{"a":2}`, `{"a":2}`)
	if w.calls != 2 {
		t.Errorf("the server was called %d times, expected 2", w.calls)
	}
	if st := r.States()[0]; st.Restarts != 1 || st.State != mcp.StateReady {
		t.Errorf("state %+v", st)
	}
	r.noticed("no longer knows the session")
}

func TestHTTPRefused(t *testing.T) {
	t.Parallel()
	w := newWeb(t, false)
	bad := w.config()
	bad.Headers = map[string]string{"Authorization": "Bearer wrong-secret"}
	gone := mcp.Server{Name: "gone", URL: "http://127.0.0.1:1/mcp?key=query-secret"}
	elsewhere := httptest.NewServer(http.RedirectHandler(w.URL, http.StatusTemporaryRedirect))
	t.Cleanup(elsewhere.Close)
	begin := time.Now()
	r := start(t, mcp.Options{}, bad, gone, mcp.Server{Name: "moved", URL: elsewhere.URL, Headers: map[string]string{"Authorization": bearer}})
	if time.Since(begin) > 5*time.Second {
		t.Errorf("the start took %v", time.Since(begin))
	}
	r.wantNames()
	r.noticed("status 401 Unauthorized; check the headers", "http://127.0.0.1:1/mcp could not be reached", "the server redirects")
	all := r.rec.text() + fmt.Sprint(r.States())
	for _, secret := range []string{"query-secret", "wrong-secret", "very-secret"} {
		if strings.Contains(all, secret) {
			t.Errorf("%s is shown in %s", secret, all)
		}
	}
	if w.saw("GET") || w.saw("DELETE") {
		t.Error("more was sent than one request")
	}
}

func TestHTTPElicitation(t *testing.T) {
	t.Parallel()
	w := newWeb(t, false)
	r := start(t, answers(mcp.ElicitAnswer{Action: "accept", Content: []byte(`{"team":"web"}`)}, nil), w.config())
	r.works("mcp__web__ask", `{}`, "accept map[team:web]")
}

func TestHTTPInterrupt(t *testing.T) {
	t.Parallel()
	w := newWeb(t, false)
	r := start(t, mcp.Options{}, w.config())
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		eventually(func() bool { return w.saw("hanging") })
		cancel()
	}()
	if res := r.runCtx(ctx, "mcp__web__hang", `{}`); !res.IsError || !strings.Contains(res.Content, "interrupted") {
		t.Errorf("got %+v", res)
	}
	if !eventually(func() bool { return w.saw("let go") }) {
		t.Error("the server was not told")
	}
	r.works("mcp__web__echo", `{}`, `{}`)
}

func TestHTTPListChanged(t *testing.T) {
	t.Parallel()
	w := newWeb(t, false)
	r := start(t, mcp.Options{}, w.config())
	if !eventually(func() bool { return w.saw("GET") }) {
		t.Fatal("no stream for what the server has to say")
	}
	w.mcp.RemoveTools("echo")
	r.noticed(`took its tool "echo" away`)
	r.fails("mcp__web__echo", `{}`, "doesn't offer it any more")
}

// TestHTTPHangs is a server that takes connections and says nothing.
func TestHTTPHangs(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		select {
		case <-release:
		case <-req.Context().Done():
		}
	}))
	t.Cleanup(s.Close)
	t.Cleanup(func() { close(release) })
	begin := time.Now()
	r := start(t, mcp.Options{}, mcp.Server{Name: "mute", URL: s.URL, StartTimeout: 200 * time.Millisecond})
	if took := time.Since(begin); took > 3*time.Second {
		t.Errorf("the start took %v", took)
	}
	r.noticed("did not answer within 200ms")
}

// TestHTTPStreamHangs is a server whose stream of notifications never opens: the SDK
// waits for it within the handshake.
func TestHTTPStreamHangs(t *testing.T) {
	t.Parallel()
	w := newWeb(t, false)
	s := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, req *http.Request) {
		if req.Method == http.MethodPost {
			w.serve(out, req)
			return
		}
		<-req.Context().Done()
	}))
	t.Cleanup(s.Close)
	cfg := w.config()
	cfg.URL, cfg.StartTimeout = s.URL, 3*time.Second
	begin := time.Now()
	r := start(t, mcp.Options{}, cfg)
	r.works("mcp__web__echo", `{}`, `{}`)
	r.Close()
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("start and end took %v", took)
	}
}

// TestHTTPNonsense is a server that answers what no client expects.
func TestHTTPNonsense(t *testing.T) {
	t.Parallel()
	answers := map[string]func(http.ResponseWriter){
		"page": func(w http.ResponseWriter) { w.Header().Set("Content-Type", "text/html"); io.WriteString(w, "<p>") },
		"not_json": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, "<p>")
		},
		"endless": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			for range 17 << 4 {
				if _, err := io.WriteString(w, strings.Repeat(" ", 64<<10)); err != nil {
					return
				}
			}
		},
		"endless_event": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/event-stream")
			out := bufio.NewWriter(w)
			out.WriteString("data: ")
			for range 17 << 4 {
				if _, err := out.WriteString(strings.Repeat("x", 64<<10)); err != nil {
					return
				}
			}
			out.WriteString("\n\n")
		},
		"error": func(w http.ResponseWriter) { http.Error(w, "x", http.StatusInternalServerError) },
	}
	var servers []mcp.Server
	for name, answer := range answers {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answer(w) }))
		t.Cleanup(s.Close)
		servers = append(servers, mcp.Server{Name: name, URL: s.URL, StartTimeout: 5 * time.Second})
	}
	r := start(t, mcp.Options{}, servers...)
	for _, st := range r.States() {
		if st.State != mcp.StateFailed || st.Error == "" {
			t.Errorf("state %+v", st)
		}
	}
	r.noticed("status 500")
}

func TestHTTPS(t *testing.T) {
	t.Parallel()
	w := newWeb(t, false)
	s := httptest.NewTLSServer(http.HandlerFunc(w.serve))
	s.Config.ErrorLog = nil
	t.Cleanup(s.Close)
	cfg := w.config()
	cfg.URL = s.URL
	begin := time.Now()
	r := start(t, mcp.Options{}, cfg)
	r.noticed("certificate") // I199
	if time.Since(begin) > 2*time.Second {
		t.Errorf("I199: the refusal took %v", time.Since(begin))
	}
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	r = start(t, mcp.Options{CAFile: ca}, cfg)
	r.works("mcp__web__echo", `{}`, `{}`)
	if err := os.WriteFile(ca, []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := mcp.Start(t.Context(), []mcp.Server{cfg}, mcp.Options{CAFile: ca})
	if se := (*mcp.StartError)(nil); !errors.As(err, &se) || !strings.Contains(err.Error(), "holds no PEM certificate") {
		t.Errorf("a bad ca_file: %v", err)
	}
}
