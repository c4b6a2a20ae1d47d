package app_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/model/modeltest"
)

// collector takes what is exported over OTLP.
type collector struct {
	mu     sync.Mutex
	bodies map[string]string // by path
	keys   []string
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bodies[r.URL.Path] += string(body)
	c.keys = append(c.keys, r.Header.Get("X-Key"))
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// measured is a run whose settings send telemetry to an address.
func measured(t *testing.T, address string) (*world, *listener) {
	t.Helper()
	w := newWorld(t, call("bash", `{"command":"echo PRIVATE > made"}`), modeltest.Turn{Text: "done"})
	w.opts.Mode, w.opts.Allow = "accept-edits", []string{"bash(echo *)"}
	w.put(filepath.Join(w.home, ".config", "abhed", "config.json"), `{"telemetry":{"otlp_endpoint":"`+address+`","headers_env":{"X-Key":"COLLECTOR_KEY"}}}`)
	w.env = append(w.env, "COLLECTOR_KEY=key-of-the-collector", "TRACEPARENT=00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	l := &listener{}
	w.hooks("org.test.judge", l.serve(t), intercept(ahp.ToolBefore, "fail-closed"))
	return w, l
}

// TestTelemetry sends spans and measurements of a whole run to a collector.
func TestTelemetry(t *testing.T) {
	c := &collector{bodies: map[string]string{}}
	server := httptest.NewServer(c)
	defer server.Close()
	w, l := measured(t, server.URL)
	r := w.run(t.Context())
	if r.code != 0 {
		t.Fatalf("exit %d: %s", r.code, r.err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	spans, values := c.bodies["/v1/traces"], c.bodies["/v1/metrics"]
	for _, want := range []string{"abhed.run", "ahp.dispatch tool.before", "ahp.intercept tool.before", "org.test.judge", "abhed"} {
		if !strings.Contains(spans, want) {
			t.Errorf("the spans lack %q", want)
		}
	}
	if !strings.Contains(values, "ahp.intercept.duration") {
		t.Error("the measurements lack ahp.intercept.duration")
	}
	if strings.Contains(spans+values, "PRIVATE") || strings.Contains(spans+values, "key-of-the-collector") {
		t.Error("telemetry holds content or a credential")
	}
	for _, key := range c.keys {
		if key != "key-of-the-collector" {
			t.Errorf("a request with the key %q", key)
		}
	}
	asked := l.of(ahp.ToolBefore)
	if len(asked) != 1 || !strings.Contains(string(asked[0].Extensions["org.w3c.trace_context"]), `"00-0af7651916cd43dd8448eb211c80319c-`) {
		t.Errorf("the backend got %+v", asked)
	}
}

// TestTelemetryWithoutCollector runs as if there were none, and says so in the
// record.
func TestTelemetryWithoutCollector(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	w, _ := measured(t, server.URL)
	r := w.run(t.Context())
	if r.code != 0 {
		t.Fatalf("exit %d: %s", r.code, r.err)
	}
	told := func(e event.Event) bool {
		p, ok := e.Payload.(*event.ExtensionLogged)
		return ok && p.Name == "telemetry" && strings.Contains(p.Line, "/v1/traces")
	}
	if !slices.ContainsFunc(w.events(r), told) {
		t.Error("the record doesn't tell that the collector is away")
	}
}

// TestTelemetryRefuses starts nothing with settings that can't be right.
func TestTelemetryRefuses(t *testing.T) {
	w, _ := measured(t, "http://collector.example:4318")
	if r := w.run(t.Context()); r.code != 2 || !strings.Contains(r.err, "https or to this machine only") {
		t.Errorf("a header over plain http: exit %d: %s", r.code, r.err)
	}
	w, _ = measured(t, "http://127.0.0.1:1")
	w.env = slices.DeleteFunc(w.env, func(v string) bool { return strings.HasPrefix(v, "COLLECTOR_KEY=") })
	if r := w.run(t.Context()); r.code != 2 || !strings.Contains(r.err, "COLLECTOR_KEY") {
		t.Errorf("a variable that isn't set: exit %d: %s", r.code, r.err)
	}
}
