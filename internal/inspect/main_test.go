package inspect_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/backend"
	"github.com/abhed/abhed/ahp/transport"
	"github.com/abhed/abhed/internal/inspect"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// hook is one backend behind, in this program.
type hook struct {
	id     string
	policy ahp.FailurePolicy
	// more is more subscriptions, as JSON.
	more    string
	events  string // the intercepted ones, "*" if empty
	handler transport.Handler
}

// judging returns a transport's handler for a backend's.
func judging(h backend.Handler) transport.Handler {
	s := backend.New(h, backend.Options{})
	return func(ctx context.Context, msg []byte) ([]byte, error) {
		reply, _ := s.Handle(ctx, msg)
		return reply, nil
	}
}

// registration returns the document that registers the hooks.
func registration(t testing.TB, hooks ...hook) *ahp.Registration {
	t.Helper()
	var list []string
	for _, h := range hooks {
		events, policy := h.events, h.policy
		if events == "" {
			events = "*"
		}
		if policy == "" {
			policy = ahp.FailClosed
		}
		list = append(list, fmt.Sprintf(`{"id":%q,"transport":{"type":"stdio","command":"x","lifecycle":"persistent"},"subscriptions":[`+
			`{"events":[%q],"mode":"intercept","timeoutMs":20000,"failurePolicy":%q,"content":{"default":"body"}}%s]}`, h.id, events, policy, h.more))
	}
	reg, err := ahp.DecodeRegistration([]byte(`{"protocolVersion":"draft","hooks":[` + strings.Join(list, ",") + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	return reg
}

const observing = `,{"events":["*"],"mode":"observe","content":{"default":"body"}}`

// opener opens the hooks inside the program.
func opener(hooks ...hook) func(*ahp.Backend) (transport.Transport, error) {
	return func(b *ahp.Backend) (transport.Transport, error) {
		for _, h := range hooks {
			if h.id == b.ID {
				return transport.InProcess(h.handler), nil
			}
		}
		return nil, fmt.Errorf("no hook %s", b.ID)
	}
}

// started is an Inspector behind a real server.
type started struct {
	*inspect.Inspector
	server *httptest.Server
}

func start(t testing.TB, opts inspect.Options, hooks ...hook) *started {
	t.Helper()
	if len(hooks) > 0 {
		opts.Registration, opts.Open = registration(t, hooks...), opener(hooks...)
	}
	i, err := inspect.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(i.Handler())
	t.Cleanup(func() {
		if err := i.Close(); err != nil {
			t.Error(err)
		}
		s.CloseClientConnections()
		s.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	return &started{i, s}
}

// page is the address of something below the page.
func (s *started) page(name string) string { return s.server.URL + s.PagePath() + name }

// get reads an address to its end.
func get(t testing.TB, url string) (int, string) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// post sends one message, and returns the answer.
func (s *started) post(t testing.TB, msg string) (int, string) {
	t.Helper()
	resp, err := http.Post(s.server.URL+inspect.Path, "application/json", strings.NewReader(msg))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// toolBefore returns a request about a command.
func toolBefore(id, session, command string, effects ...string) string {
	if len(effects) == 0 {
		effects = []string{"deny", "ask", "message"}
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"method":"hooks/intercept","params":{"protocolVersion":"draft","capabilities":{"effects":["%s"]},"event":%s}}`,
		id, strings.Join(effects, `","`), toolEvent(id, session, command))
}

func toolEvent(id, session, command string) string {
	return fmt.Sprintf(`{"id":%q,"source":"urn:test","type":"tool.before","time":"2026-01-01T00:00:00Z","session":{"id":%s},"call":{"id":"c"},"path":"native",`+
		`"tool":{"name":"bash","origin":"native","input":{"command":%s}}}`, id, asJSON(session), asJSON(command))
}

func asJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func observed(event string) string {
	return `{"jsonrpc":"2.0","method":"hooks/observe","params":{"protocolVersion":"draft","event":` + event + `}}`
}

// served returns a transport's handler that hands messages to an Inspector as its
// HTTP endpoint does.
func served(i *inspect.Inspector) transport.Handler {
	h := i.Handler()
	return func(ctx context.Context, msg []byte) ([]byte, error) {
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "http://localhost"+inspect.Path, strings.NewReader(string(msg)))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Body.Bytes(), nil
	}
}
