package app_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/backend"
	"github.com/abhed/abhed/ahp/backend/httpbackend"
	"github.com/abhed/abhed/internal/app"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/hooklog"
	"github.com/abhed/abhed/internal/model/modeltest"
	"github.com/abhed/abhed/internal/require"
	"github.com/abhed/abhed/internal/trust"
)

// init serves the demo's backend where a registration of a test names this binary
// as the command.
func init() {
	if len(os.Args) > 1 && os.Args[1] == app.DemoBackendCommand {
		os.Exit(app.DemoBackend(context.Background(), app.System{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}))
	}
}

// registrationText registers one HTTP backend for one event.
func registrationText(id, url, on, mode string) string {
	more := ""
	if mode == "intercept" {
		more = `"timeoutMs":5000,"failurePolicy":"fail-closed",`
	}
	return fmt.Sprintf(`{"protocolVersion":"draft","hooks":[{"id":%q,"transport":{"type":"http","url":%q},"subscriptions":[
		{"events":[%q],"mode":%q,%s"content":{"default":"body"}}]}]}`, id, url, on, mode, more)
}

// judged serves a backend over HTTP and registers it for one event.
func (w *world) judged(on ahp.EventType, judge backend.Func) {
	w.t.Helper()
	server := httptest.NewServer(httpbackend.Handler(backend.New(judge, backend.Options{}), httpbackend.Options{}))
	w.t.Cleanup(server.Close)
	w.opts.Registration = w.put(filepath.Join(w.home, "reg.json"), registrationText("org.test.judge", server.URL, string(on), "intercept"))
}

// TestWhereRegistrationsAreRead puts a registration into every place. Each names
// another address of one server, which notes who was asked, in order. One that is named
// where it would be found is asked once (I012), beside by another name.
func TestWhereRegistrationsAreRead(t *testing.T) {
	tests := []struct {
		name string
		set  func(w *world)
		want []string
	}{
		{"usual places", func(*world) {}, []string{"managed", "user"}},
		{"trusted workspace", func(w *world) { w.opts.TrustWorkspace = true }, []string{"managed", "user", "workspace"}},
		{"a registration trusted by ahp trust", func(w *world) { w.trust() }, []string{"managed", "user", "workspace"}},
		{"settings", func(w *world) { w.settings(`{"ahp":{"registration":"named.json"}}`) }, []string{"managed", "named"}},
		{"flag", func(w *world) {
			w.settings(`{"ahp":{"registration":"named.json"}}`)
			w.opts.Registration, w.opts.TrustWorkspace = filepath.Join(w.home, "flag.json"), true
		}, []string{"managed", "flag"}},
		{"the user's, named", func(w *world) { w.opts.Registration = filepath.Join(w.home, ".config", "ahp", "registration.json") }, []string{"managed", "user"}},
		{"the managed one, named", func(w *world) { w.opts.Registration = filepath.Join(w.home, "managed", "registration.json") }, []string{"managed"}},
		{"the managed one, by another name", func(w *world) {
			w.opts.Registration = filepath.Join(w.home, "also.json")
			if err := os.Symlink(filepath.Join(w.home, "managed", "registration.json"), w.opts.Registration); err != nil {
				w.t.Fatal(err)
			}
		}, []string{"managed"}},
		{"managed settings", func(w *world) {
			w.managed(`{"ahp":{"registration":"../named.json"}}`)
			w.opts.TrustWorkspace = true
		}, []string{"managed", "named"}},
		{"managed settings and flag", func(w *world) {
			w.managed(`{"ahp":{"registration":"../named.json"}}`)
			w.opts.Registration = filepath.Join(w.home, "flag.json")
		}, []string{"managed", "named", "flag"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, call("write", markerArgs), done())
			var mu sync.Mutex
			var asked []string
			mux := http.NewServeMux()
			server := httptest.NewServer(mux)
			defer server.Close()
			for name, file := range map[string]string{
				"managed": filepath.Join(w.home, "managed", "registration.json"), "user": filepath.Join(w.home, ".config", "ahp", "registration.json"),
				"workspace": filepath.Join(w.dir, ".ahp", "registration.json"), "named": filepath.Join(w.home, "named.json"), "flag": filepath.Join(w.home, "flag.json"),
			} {
				judge := func(context.Context, *ahp.Intercept) ([]ahp.Effect, error) {
					mu.Lock()
					defer mu.Unlock()
					asked = append(asked, name)
					return nil, nil
				}
				mux.Handle("/"+name, httpbackend.Handler(backend.New(backend.Func(judge), backend.Options{}), httpbackend.Options{}))
				w.put(file, registrationText("org.test."+name, server.URL+"/"+name, "tool.before", "intercept"))
			}
			w.opts.Mode = "accept-edits"
			tt.set(w)
			r := w.run(t.Context())
			mu.Lock()
			defer mu.Unlock()
			if r.code != 0 || !w.has("marker") || !slices.Equal(asked, tt.want) {
				t.Errorf("exit %d, asked %v, want %v\n%s", r.code, asked, tt.want, r.err)
			}
		})
	}
}

// trust trusts the workspace's registration as it is.
func (w *world) trust() {
	w.t.Helper()
	file := filepath.Join(w.dir, ".ahp", "registration.json")
	content, err := os.ReadFile(file)
	if err != nil {
		w.t.Fatal(err)
	}
	state, err := hooklog.StateDir(w.home)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := os.MkdirAll(state, 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := trust.Open(filepath.Join(state, "trust.json")).Add(file, content); err != nil {
		w.t.Fatal(err)
	}
}

// TestChangedAfterTrust: a trusted registration that was changed or taken away stops
// the start, and isn't left out. One that was never trusted is, and named.
func TestChangedAfterTrust(t *testing.T) {
	w := newWorld(t, call("write", markerArgs), done())
	text := registrationText("org.test.x", "http://127.0.0.1:9/", "session.end", "observe")
	file := filepath.Join(w.dir, ".ahp", "registration.json")
	w.put(file, text)
	if r := w.run(t.Context()); r.code != 0 || !strings.Contains(strings.Join(strings.Fields(r.err), " "), "is ignored, because nobody has trusted it") {
		t.Errorf("never trusted: exit %d: %s", r.code, r.err)
	}
	w.trust()
	w.put(file, text+"\n")
	if r := w.run(t.Context()); r.code != 2 || !strings.Contains(r.err, "isn't trusted now") || !strings.Contains(r.err, "abhed trust") {
		t.Errorf("changed: exit %d: %s", r.code, r.err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if r := w.run(t.Context()); r.code != 2 || !strings.Contains(r.err, "was trusted and is gone") {
		t.Errorf("gone: exit %d: %s", r.code, r.err)
	}
}

// TestRegistrationsAtFault stops a run for what is wrong with any registration, and
// says where.
func TestRegistrationsAtFault(t *testing.T) {
	valid := func(id string) string { return registrationText(id, "http://127.0.0.1:9/", "session.end", "observe") }
	for name, tt := range map[string]struct {
		set  func(w *world, managed, user string)
		says []string
	}{
		"a backend in two files": {func(w *world, managed, user string) {
			w.put(managed, valid("org.test.twice"))
			w.put(user, valid("org.test.twice"))
		}, []string{filepath.Join("ahp", "registration.json") + ":1:", "org.test.twice", filepath.Join("managed", "registration.json")}},
		"no JSON": {func(w *world, _, user string) { w.put(user, "{\n  x") }, []string{filepath.Join("ahp", "registration.json") + ":2:3: "}},
		"writable by others": {func(w *world, _, user string) {
			if err := os.Chmod(w.put(user, valid("org.test.user")), 0o666); err != nil {
				w.t.Fatal(err)
			}
		}, []string{"can't be trusted", filepath.Join("ahp", "registration.json"), "mode 0666", "chmod go-w"}},
		"the managed one writable by others": {func(w *world, managed, _ string) {
			if err := os.Chmod(w.put(managed, valid("org.test.managed")), 0o664); err != nil {
				w.t.Fatal(err)
			}
			w.opts.Registration = w.put(filepath.Join(w.home, "flag.json"), valid("org.test.flag"))
		}, []string{"can't be trusted", filepath.Join("managed", "registration.json"), "mode 0664"}},
	} {
		w := newWorld(t, call("write", markerArgs), done())
		w.opts.Mode = "accept-edits"
		tt.set(w, filepath.Join(w.home, "managed", "registration.json"), filepath.Join(w.home, ".config", "ahp", "registration.json"))
		r := w.run(t.Context())
		if r.code != 2 || w.has("marker") || len(w.server.Requests()) != 0 {
			t.Errorf("%s: exit %d, marker %t, %d requests", name, r.code, w.has("marker"), len(w.server.Requests()))
		}
		for _, part := range tt.says {
			if !strings.Contains(r.err, part) {
				t.Errorf("%s: %q isn't said in %s", name, part, r.err)
			}
		}
	}
}

// TestBackendPerEvent runs a backend that is started anew for each event, and
// counts the starts.
func TestBackendPerEvent(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	sh := require.Path(t, "sh")
	for lifecycle, starts := range map[string]int{"per_event": 3, "persistent": 1} {
		w := newWorld(t,
			call("write", `{"path":"release/x","content":""}`),
			modeltest.Turn{Expect: "refused by backend org.test.demo", Calls: []modeltest.Call{{ID: "c2", Name: "write", Args: markerArgs}, {ID: "c3", Name: "read", Args: `{"path":"marker"}`}}},
			done())
		w.opts.Registration = w.put(filepath.Join(w.home, "reg.json"), fmt.Sprintf(`{"protocolVersion":"draft","hooks":[{"id":"org.test.demo",
			"transport":{"type":"stdio","command":%q,"args":["-c","echo x >> starts; exec \"$1\" \"$2\"","sh",%q,%q],"lifecycle":%q},
			"subscriptions":[{"events":["tool.before"],"mode":"intercept","timeoutMs":20000,"failurePolicy":"fail-closed","content":{"default":"body"}}]}]}`,
			sh, self, app.DemoBackendCommand, lifecycle))
		w.opts.Mode = "accept-edits"
		r := w.run(t.Context())
		if v := w.server.Violations(); r.code != 0 || len(v) > 0 || w.has("release") || !w.has("marker") || !strings.Contains(outcome(w.events(r), "c3"), "1\tx") {
			t.Errorf("%s: exit %d, %v\n%s", lifecycle, r.code, v, r.err)
		}
		// It is started in the folder of its registration.
		if data, _ := os.ReadFile(filepath.Join(w.home, "starts")); strings.Count(string(data), "x") != starts {
			t.Errorf("%s: started %d times, want %d", lifecycle, strings.Count(string(data), "x"), starts)
		}
		for _, e := range w.events(r) {
			if p, ok := e.Payload.(*event.BackendFailed); ok {
				t.Errorf("%s: %+v", lifecycle, p)
			}
		}
	}
}

// TestContextOfSessionStart gives the model context before its first request.
func TestContextOfSessionStart(t *testing.T) {
	w := newWorld(t, done())
	w.judged(ahp.SessionStart, func(_ context.Context, q *ahp.Intercept) ([]ahp.Effect, error) {
		m := ahp.TextMessage("m1", ahp.RoleDeveloper, "the house uses tabs")
		return backend.Answer(q, &ahp.Inject{DeliverAt: ahp.DeliverNow, Messages: []ahp.Message{m}}, &ahp.Notice{Text: "hello from the house"})
	})
	r := w.run(t.Context())
	if r.code != 0 || !strings.Contains(r.err, "hello from the house") {
		t.Fatalf("exit %d: %s", r.code, r.err)
	}
	if got, want := sent(w.server.Requests()[0])[1:], []string{"user the house uses tabs", "user do it"}; !slices.Equal(got, want) {
		t.Errorf("the model was sent %q, want %q", got, want)
	}
	var said []string
	for _, e := range w.events(r) {
		if p, ok := e.Payload.(*event.UserMessage); ok {
			said = append(said, fmt.Sprintf("%s %s %s", e.Actor, e.Trust, p.Text))
		}
	}
	if want := []string{"system untrusted the house uses tabs", "user operator do it"}; !slices.Equal(said, want) {
		t.Errorf("the record has %q, want %q", said, want)
	}
}

// sent is what a request says, a line for each message.
func sent(q modeltest.Request) []string {
	var out []string
	for _, m := range q.Messages {
		line := m.Role
		if text := m.Text(); text != "" {
			line += " " + text
		}
		for _, c := range m.ToolCalls {
			line += fmt.Sprintf(" [%s %s %s]", c.ID, c.Function.Name, c.Function.Arguments)
		}
		if m.ToolCallID != nil {
			line += " for " + *m.ToolCallID
		}
		out = append(out, line)
	}
	return out
}

// TestResumeSendsWhatWasSaid goes on with a session: the model is sent the earlier
// messages as they were, calls and results included.
func TestResumeSendsWhatWasSaid(t *testing.T) {
	reply := call("read", `{"path":"a"}`)
	reply.Text = "I look."
	w := newWorld(t, reply, modeltest.Turn{Text: "seen"}, modeltest.Turn{Text: "I know"}, modeltest.Turn{Text: "still"})
	w.write("a", "what is in it\n")
	first := w.run(t.Context())
	if first.code != 0 {
		t.Fatalf("exit %d: %s", first.code, first.err)
	}
	w.opts.Resume, w.opts.Prompt = strings.TrimSuffix(filepath.Base(first.record), ".jsonl"), "and now?"
	second := w.run(t.Context())
	w.opts.Resume, w.opts.Continue, w.opts.Prompt = "", true, "and then?"
	third := w.run(t.Context())
	for _, r := range []result{second, third} {
		if r.code != 0 || r.record != first.record {
			t.Fatalf("exit %d, record %s: %s", r.code, r.record, r.err)
		}
	}
	want := []string{"user do it", `assistant I look. [call_1 read {"path":"a"}]`, "tool 1\twhat is in it\n for call_1", "assistant seen", "user and now?"}
	for _, q := range w.server.Requests()[2:] {
		if got := sent(q)[1:]; !slices.Equal(got, want) {
			t.Errorf("the model was sent %q\nwant %q", got, want)
		}
		want = append(want, "assistant I know", "user and then?")
	}
	if v := w.server.Violations(); len(v) > 0 {
		t.Error(v)
	}
	var turns []int
	for _, e := range w.events(third) {
		if p, ok := e.Payload.(*event.TurnStarted); ok {
			turns = append(turns, p.Turn)
		}
	}
	if !slices.Equal(turns, []int{1, 2, 3, 4}) {
		t.Errorf("the turns are numbered %v", turns)
	}
}

// TestSecretsStayOutOfTheRecord lets the model and a file say what must not be
// recorded.
func TestSecretsStayOutOfTheRecord(t *testing.T) {
	values := []string{"key-for-tests", "of-the-variable", "of-the-file-of-secrets"}
	said := strings.Join(values, " and ")
	w := newWorld(t,
		modeltest.Turn{Text: "I found " + said, Calls: []modeltest.Call{{ID: "c1", Name: "write", Args: fmt.Sprintf(`{"path":"out","content":%q}`, said)}, {ID: "c2", Name: "read", Args: `{"path":"out"}`}}},
		modeltest.Turn{Text: "bye " + said})
	w.settings(`{"permissions":{"mode":"accept-edits"},"secrets":{"env":["HOUSE_SECRET"],"files":["token"]}}`)
	w.put(filepath.Join(w.home, "token"), values[2]+"\n")
	w.env = append(w.env, "HOUSE_SECRET="+values[1])
	r := w.run(t.Context())
	if data, err := os.ReadFile(filepath.Join(w.dir, "out")); r.code != 0 || err != nil || string(data) != said {
		t.Fatalf("exit %d, the file has %q, %v: %s", r.code, data, err, r.err)
	}
	data, err := os.ReadFile(r.record)
	if err != nil || !strings.Contains(string(data), "I found ") {
		t.Fatalf("%v; the record lacks what was said", err)
	}
	for _, v := range values {
		if strings.Contains(string(data), v) {
			t.Errorf("the record holds %q", v)
		}
	}
	w.env = append(w.env, "HOUSE_SECRET=short")
	if r := w.run(t.Context()); r.code != 2 || !strings.Contains(r.err, "HOUSE_SECRET") || strings.Contains(r.err, "short,") {
		t.Errorf("a secret that is too short: exit %d, %s", r.code, r.err)
	}
}

// TestCostLimit bounds what a run may cost, and refuses a limit that can't be held.
func TestCostLimit(t *testing.T) {
	usage := &modeltest.Usage{Prompt: 1000, Completion: 100} // 0.0012 dollars
	read := modeltest.Turn{Calls: []modeltest.Call{{ID: "c1", Name: "read", Args: `{"path":"a"}`}}, Usage: usage}
	again := read
	again.Calls = []modeltest.Call{{ID: "c2", Name: "read", Args: `{"path":"a"}`}}
	price := `"models":{"env/test":{"price":{"input":1,"output":2}}}`
	tests := []struct {
		name, settings string
		flag           float64
		code, requests int
		says           string
	}{
		{"settings", `{"limits":{"max_cost_usd":0.001},` + price + `}`, 0, 3, 1, "max_cost"},
		{"flag", `{` + price + `}`, 0.002, 3, 2, "max_cost"},
		{"enough", `{` + price + `}`, 1, 0, 3, ""},
		{"no price", `{}`, 1, 2, 0, "env/test"},
		{"half a price", `{"models":{"env/test":{"price":{"input":1}}}}`, 1, 2, 0, "price.input and .output"},
	}
	for _, tt := range tests {
		w := newWorld(t, read, again, modeltest.Turn{Text: "done", Usage: usage})
		w.settings(tt.settings)
		w.opts.MaxCost = tt.flag
		if r := w.run(t.Context()); r.code != tt.code || len(w.server.Requests()) != tt.requests || !strings.Contains(r.err, tt.says) {
			t.Errorf("%s: exit %d, want %d; %d requests, want %d\n%s", tt.name, r.code, tt.code, len(w.server.Requests()), tt.requests, r.err)
		}
	}
}
