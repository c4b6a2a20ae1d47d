package app_test

import (
	"context"
	"fmt"
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
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/model/modeltest"
)

// extension configures one extension with a script, and mode accept-edits.
func (w *world) extension(more, script string) {
	w.t.Helper()
	file := w.put(filepath.Join(w.home, "ext.sh"), script)
	w.settings(fmt.Sprintf(`{"permissions":{"mode":"accept-edits"},"extensions":[{"name":"ext","command":"sh","args":[%q]%s}]}`, file, more))
}

// TestExtensionsHearBothEnds notes what an extension is told of a session, in one
// that completes and in one that fails.
func TestExtensionsHearBothEnds(t *testing.T) {
	for reason, turn := range map[string]modeltest.Turn{"completed": done(), "error": {Faults: []modeltest.Fault{modeltest.Status(401, `{}`)}}} {
		w := newWorld(t, turn)
		w.opts.Mode = "plan"
		w.extension(`,"env":{"HEARD":"heard"},"cwd":"`+w.home+`"`, `while IFS= read -r r; do case $r in
*'"event":"session_'*) printf '%s\n' "$r" >> "$HEARD" ;; esac; echo '{}'; done`)
		r := w.run(t.Context())
		data, _ := os.ReadFile(filepath.Join(w.home, "heard"))
		lines := strings.Split(strings.TrimSpace(string(data)), "\n")
		if len(lines) != 2 || !has(lines[0], `"event":"session_start"`, fmt.Sprintf(`"workspace":%q`, w.dir), `"model":"env/test"`, `"mode":"plan"`) ||
			!has(lines[1], `"event":"session_end"`, fmt.Sprintf(`"reason":%q`, reason)) {
			t.Errorf("%s: exit %d, the extension heard\n%s\n%s", reason, r.code, data, r.err)
		}
	}
}

// TestSilentExtension configures how long an extension may be silent, and what it
// means.
func TestSilentExtension(t *testing.T) {
	for failure, marker := range map[string]bool{"block": false, "ask": false, "skip": true} {
		w := newWorld(t, call("write", markerArgs), done())
		w.extension(`,"events":["tool_call"],"timeout_ms":50,"on_failure":"`+failure+`"`, `while IFS= read -r r; do case $r in
*'"event":"tool_call"'*) ;; *) echo '{}' ;; esac; done`)
		r := w.run(t.Context())
		var dead *event.ExtensionChanged
		for _, e := range w.events(r) {
			if p, ok := e.Payload.(*event.ExtensionChanged); ok && p.State == "dead" {
				dead = p
			}
		}
		if r.code != 0 || w.has("marker") != marker || dead == nil || dead.OnFailure != failure || !strings.Contains(dead.Cause, "50ms") {
			t.Errorf("%s: exit %d, marker %t, want %t; %+v\n%s", failure, r.code, w.has("marker"), marker, dead, r.err)
		}
	}
}

func has(s string, all ...string) bool {
	for _, part := range all {
		if !strings.Contains(s, part) {
			return false
		}
	}
	return true
}

// TestBackendsHearTheEnd holds the reason that observers are told.
func TestBackendsHearTheEnd(t *testing.T) {
	for reason, turn := range map[string]modeltest.Turn{"completed": done(), "error": {Faults: []modeltest.Fault{modeltest.Status(401, `{}`)}}} {
		heard := &ends{}
		server := httptest.NewServer(httpbackend.Handler(backend.New(heard, backend.Options{}), httpbackend.Options{}))
		w := newWorld(t, turn)
		w.opts.Registration = w.put(filepath.Join(w.home, "reg.json"), registrationText("org.test.ends", server.URL, "session.end", "observe"))
		r := w.run(t.Context())
		server.Close()
		heard.mu.Lock()
		if !slices.Equal(heard.list, []string{reason + " " + reason}) {
			t.Errorf("%s: exit %d, heard %v: %s", reason, r.code, heard.list, r.err)
		}
		heard.mu.Unlock()
	}
}

// ends notes the ends of sessions.
type ends struct {
	mu   sync.Mutex
	list []string
}

func (*ends) Intercept(context.Context, *ahp.Intercept) ([]ahp.Effect, error) { return nil, nil }

func (e *ends) Observe(_ context.Context, ev *ahp.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = append(e.list, ev.Reason+" "+ev.Outcome)
}

// TestMatchNarrowsAnExtension lets an extension that blocks everything be asked
// about one folder only.
func TestMatchNarrowsAnExtension(t *testing.T) {
	w := newWorld(t, modeltest.Turn{Calls: []modeltest.Call{
		{ID: "in", Name: "write", Args: `{"path":"guarded/a","content":""}`}, {ID: "out", Name: "write", Args: `{"path":"open/a","content":""}`},
		{ID: "cmd", Name: "bash", Args: `{"command":"echo x > guarded/b"}`}, {ID: "read", Name: "read", Args: `{"path":"guarded/a"}`},
	}}, done())
	w.extension(`,"match":["write(guarded/**)"]`, blocking("guarded is guarded", "*"))
	r := w.run(t.Context())
	events := w.events(r)
	for id, want := range map[string]bool{"in": true, "out": false, "cmd": true, "read": false} {
		if got := outcome(events, id); strings.Contains(got, "refused by extension ext") != want {
			t.Errorf("%s: vetoed, want %t: %q", id, want, got)
		}
	}
	if r.code != 0 || w.has("guarded") || !w.has("open/a") {
		t.Errorf("exit %d: %s", r.code, r.err)
	}
}

// TestRewrittenCallRuns lets an extension change what runs; the record has both.
func TestRewrittenCallRuns(t *testing.T) {
	w := newWorld(t, call("write", markerArgs), done())
	w.extension(`,"events":["tool_call"]`, `while IFS= read -r r; do case $r in
*'"args":{"content":"x"'*|*'"args":{"path":"marker"'*) echo '{"args":{"path":"other","content":"rewritten"}}' ;;
*) echo '{}' ;; esac; done`)
	r := w.run(t.Context())
	data, err := os.ReadFile(filepath.Join(w.dir, "other"))
	if r.code != 0 || w.has("marker") || err != nil || string(data) != "rewritten" {
		t.Errorf("exit %d, the file has %q, %v\n%s", r.code, data, err, r.err)
	}
	var d *event.Decision
	for _, e := range w.events(r) {
		if p, ok := e.Payload.(*event.Decision); ok {
			d = p
		}
	}
	if d == nil || d.Outcome != "run" || string(d.Original) != `{"content":"x","path":"marker"}` || string(d.Final) != `{"content":"rewritten","path":"other"}` ||
		d.OriginalHash == d.FinalHash || d.Subject != "other" {
		t.Errorf("the record has %+v", d)
	}
	if got := sent(w.server.Requests()[1]); !strings.Contains(got[2], markerArgs) {
		t.Errorf("the model is shown another call than it made: %q", got)
	}
}

// TestRedactedResults lets an extension, and then a backend, rewrite a result: the
// model and the record get the rewritten one only.
func TestRedactedResults(t *testing.T) {
	const secret = "AKIA-NOBODY"
	tests := map[string]func(w *world){
		"extension ext": func(w *world) {
			w.extension(`,"events":["tool_result"]`, `while IFS= read -r r; do case $r in
*'"event":"tool_result"'*`+secret+`*) echo '{"content":"[redacted]"}' ;;
*'"event":"tool_call"'*) echo '{"block":true,"reason":"it did not subscribe to this"}' ;;
*) echo '{}' ;; esac; done`)
		},
		"backend org.test.judge": func(w *world) {
			w.judged(ahp.ToolAfter, func(_ context.Context, q *ahp.Intercept) ([]ahp.Effect, error) {
				list := q.Event.Items.Messages
				if !strings.Contains(*list[0].Parts[0].Text, secret) {
					return nil, nil
				}
				value := fmt.Sprintf(`[{"id":%q,"role":"tool","parts":[{"id":"p","kind":"text","mediaType":"text/plain","selection":"body","text":"[redacted]"}]}]`, list[0].ID)
				return backend.Answer(q, &ahp.Modify{Target: ahp.TargetOutput, Operation: ahp.OpReplace, Value: ahp.Raw(value)})
			})
		},
	}
	for by, set := range tests {
		t.Run(by, func(t *testing.T) {
			w := newWorld(t, call("read", `{"path":"a"}`), done())
			w.write("a", secret+"\n")
			set(w)
			r := w.run(t.Context())
			if r.code != 0 || len(w.server.Requests()) != 2 {
				t.Fatalf("exit %d: %s", r.code, r.err)
			}
			got := sent(w.server.Requests()[1])
			if got[len(got)-1] != "tool [redacted] for call_1" || strings.Contains(string(w.server.Requests()[1].Body), secret) {
				t.Errorf("the model was sent %q", got)
			}
			data, err := os.ReadFile(r.record)
			if err != nil || strings.Contains(string(data), secret) {
				t.Errorf("%v, or the record holds what was redacted", err)
			}
			for _, e := range w.events(r) {
				p, ok := e.Payload.(*event.ToolEnded)
				if ok && (p.Content != "[redacted]" || p.OriginalHash == "" || len(p.RewrittenBy) != 1 || !strings.Contains(by, p.RewrittenBy[0])) {
					t.Errorf("the record has %+v", p)
				}
			}
		})
	}
}
