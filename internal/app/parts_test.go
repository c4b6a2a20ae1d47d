package app_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/backend"
	"github.com/abhed/abhed/ahp/backend/httpbackend"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/model/modeltest"
)

// TestConfiguredProvider names the endpoint in the settings. What is configured is
// sent, what isn't is absent.
func TestConfiguredProvider(t *testing.T) {
	w := newWorld(t)
	server := modeltest.NewWith(t, modeltest.Options{APIKey: "secret-of-the-house", Turns: []modeltest.Turn{{Text: "hello"}}})
	w.settings(`{"model":"house/m1","sampling":{"temperature":0,"seed":7},
		"custom_providers":[{"name":"house","api":"openai","base_url":"` + server.URL + `","api_key_env":"HOUSE_KEY","sampling":["temperature","seed","top_p"]}]}`)
	w.env = []string{"HOME=" + w.home, "PATH=" + os.Getenv("PATH"), "HOUSE_KEY=secret-of-the-house"}
	r := w.run(t.Context())
	if r.code != 0 || r.out != "hello\n" {
		t.Fatalf("exit %d: %s%s", r.code, r.out, r.err)
	}
	q := server.Requests()[0]
	if q.Model != "m1" || string(q.Params["temperature"]) != "0" || string(q.Params["seed"]) != "7" {
		t.Errorf("model %q, parameters %v", q.Model, q.Params)
	}
	if _, sent := q.Params["top_p"]; sent {
		t.Error("a parameter that isn't configured was sent")
	}
	w.settings(`{"model":"house/m1","sampling":{"top_k":1},"custom_providers":[{"name":"house","api":"openai","base_url":"` + server.URL + `","sampling":["seed"]}]}`)
	if r := w.run(t.Context()); r.code != 2 || !strings.Contains(r.err, "top_k") || !strings.Contains(r.err, "house") {
		t.Errorf("a parameter that the endpoint doesn't honour: exit %d, %s", r.code, r.err)
	}
}

// watcher denies what a path says and notes every event.
type watcher struct {
	mu   sync.Mutex
	seen []string
}

func (w *watcher) Intercept(_ context.Context, q *ahp.Intercept) ([]ahp.Effect, error) {
	w.note("ask", q.Event)
	if q.Event.Type == ahp.ToolBefore && strings.Contains(string(q.Event.Tool.Input), "forbidden") {
		return backend.Answer(q, &ahp.Deny{Reason: "said over HTTP"})
	}
	if q.Event.Type == ahp.ToolAfter && strings.Contains(string(q.Event.Tool.Input), "last") {
		return backend.Answer(q, &ahp.Flow{Operation: ahp.FlowStop, Reason: "that is enough"})
	}
	return nil, nil
}

func (w *watcher) Observe(_ context.Context, e *ahp.Event) { w.note("tell", e) }

func (w *watcher) note(how string, e *ahp.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = append(w.seen, how+" "+string(e.Type))
}

// TestBackendOverHTTP puts a backend behind real HTTP and lets it stop the run.
func TestBackendOverHTTP(t *testing.T) {
	watch := &watcher{}
	server := httptest.NewServer(httpbackend.Handler(backend.New(watch, backend.Options{}), httpbackend.Options{}))
	defer server.Close()
	w := newWorld(t,
		call("write", `{"path":"forbidden","content":""}`),
		modeltest.Turn{Expect: "said over HTTP", Calls: []modeltest.Call{{ID: "c2", Name: "write", Args: `{"path":"last","content":""}`}}},
		modeltest.Turn{Text: "never asked"})
	w.opts.Mode = "accept-edits"
	w.opts.Registration = filepath.Join(w.home, "registration.json")
	reg := `{"protocolVersion":"draft","hooks":[{"id":"org.test.web","transport":{"type":"http","url":"` + server.URL + `"},"subscriptions":[
		{"events":["tool.before","tool.after","session.start"],"mode":"intercept","timeoutMs":5000,"failurePolicy":"fail-closed","content":{"default":"body"}},
		{"events":["session.end","tool.before"],"mode":"observe","content":{"default":"body"}}]}]}`
	if err := os.WriteFile(w.opts.Registration, []byte(reg), 0o600); err != nil {
		t.Fatal(err)
	}
	r := w.run(t.Context())
	if r.code != 8 || !strings.Contains(r.err, "that is enough") {
		t.Errorf("exit %d: %s", r.code, r.err)
	}
	if w.server.Left() != 1 {
		t.Errorf("%d turns left", w.server.Left())
	}
	if _, err := os.Stat(filepath.Join(w.dir, "forbidden")); err == nil {
		t.Error("the denied file was written")
	}
	watch.mu.Lock()
	defer watch.mu.Unlock()
	for _, want := range []string{"ask session.start", "ask tool.before", "tell tool.before", "ask tool.after", "tell session.end"} {
		found := false
		for _, s := range watch.seen {
			found = found || s == want
		}
		if !found {
			t.Errorf("the backend wasn't told of %q: %v", want, watch.seen)
		}
	}
}

// TestProvidedTool lets the model call a tool of an extension: it is listed,
// judged, run and recorded like any other.
func TestProvidedTool(t *testing.T) {
	script := `while IFS= read -r r; do case $r in
*'"event":"list_tools"'*) echo '{"tools":[{"name":"ticket","description":"look up a ticket","schema":{"type":"object","properties":{"id":{"type":"string"}},"required":["id"]},"mutates":false},
 {"name":"close","description":"close a ticket","schema":{"type":"object","properties":{"id":{"type":"string"}}}}]}' ;;
*'"event":"invoke_tool"'*) echo '{"result":"ticket 7 is open"}' ;;
*) echo '{}' ;; esac; done`
	w := newWorld(t,
		modeltest.Turn{Calls: []modeltest.Call{{ID: "a", Name: "ticket", Args: `{"id":"7"}`}, {ID: "b", Name: "ticket", Args: `{"id":"13"}`}, {ID: "c", Name: "close", Args: `{"id":"7"}`}, {ID: "d", Name: "ticket", Args: `{}`}}},
		modeltest.Turn{Text: "done"})
	file := filepath.Join(w.home, "ticket.sh")
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	w.settings(`{"permissions":{"deny":["ticket(13)"]},"extensions":[{"name":"tickets","command":"sh","args":[` + fmt.Sprintf("%q", file) + `]}]}`)
	r := w.run(t.Context())
	if r.code != 0 {
		t.Fatalf("exit %d: %s", r.code, r.err)
	}
	events := w.events(r)
	for id, want := range map[string]string{"a": "ticket 7 is open", "b": "deny rule ticket(13)", "c": "Nobody can be asked", "d": "can't be used"} {
		if got := outcome(events, id); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", id, got, want)
		}
	}
	listed := false
	for _, tool := range w.server.Requests()[0].Tools {
		listed = listed || strings.Contains(string(tool), `"ticket"`)
	}
	if !listed {
		t.Error("the model wasn't told of the tool")
	}
	for _, e := range events {
		if p, ok := e.Payload.(*event.ExtensionChanged); ok && p.State == "started" && len(p.Tools) != 2 {
			t.Errorf("recorded tools %v", p.Tools)
		}
	}
	// A name that exists already stops the start, and both are named.
	taken := strings.Replace(script, `"ticket"`, `"read"`, 1)
	if err := os.WriteFile(file, []byte(taken), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := w.run(t.Context()); r.code != 2 || !strings.Contains(r.err, "tickets") || !strings.Contains(r.err, `"read"`) {
		t.Errorf("a taken name: exit %d, %s", r.code, r.err)
	}
}
