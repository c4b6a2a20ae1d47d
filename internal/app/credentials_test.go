package app_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/backend"
	"github.com/abhed/abhed/ahp/backend/httpbackend"
	"github.com/abhed/abhed/internal/app"
	"github.com/abhed/abhed/internal/model/modeltest"
)

// TestTokenReferences gives a backend that wants a bearer token what its
// registration refers to.
func TestTokenReferences(t *testing.T) {
	deny := backend.Func(func(_ context.Context, q *ahp.Intercept) ([]ahp.Effect, error) {
		return backend.Answer(q, &ahp.Deny{Reason: "said behind a token"})
	})
	server := httptest.NewServer(httpbackend.Handler(backend.New(deny, backend.Options{}), httpbackend.Options{Token: "the-token-itself"}))
	defer server.Close()
	for name, tt := range map[string]struct {
		auth string
		code int
		says string
	}{
		"a file":        {`"tokenRef":"file:token"`, 0, "said behind a token"},
		"a variable":    {`"tokenRef":"env:HOUSE_TOKEN"`, 0, "said behind a token"},
		"by its name":   {`"tokenEnv":"HOUSE_TOKEN"`, 0, "said behind a token"},
		"no file":       {`"tokenRef":"file:nothing"`, 2, "nothing"},
		"no variable":   {`"tokenRef":"env:NOTHING"`, 2, "NOTHING"},
		"another store": {`"tokenRef":"vault:x"`, 2, "env:NAME or file:PATH"},
	} {
		w := newWorld(t, call("write", markerArgs), done())
		w.opts.Mode = "accept-edits"
		w.env = append(w.env, "HOUSE_TOKEN=the-token-itself")
		w.put(filepath.Join(w.home, "token"), "the-token-itself\n")
		w.opts.Registration = w.put(filepath.Join(w.home, "reg.json"), fmt.Sprintf(`{"protocolVersion":"draft","hooks":[{"id":"org.test.judge","transport":{"type":"http","url":%q},
			"authentication":{"type":"bearer",%s},"subscriptions":[%s]}]}`, server.URL, tt.auth, intercept(ahp.ToolBefore, "fail-open")))
		r := w.run(t.Context())
		if r.code != tt.code || !strings.Contains(r.err, tt.says) || w.has("marker") || strings.Contains(r.err, "the-token-itself") {
			t.Errorf("%s: exit %d, want %d; marker %t\n%s", name, r.code, tt.code, w.has("marker"), r.err)
		}
	}
}

// TestBackendsAreNotTheAgentsToChange keeps a backend's program in the workspace and
// its token beside it: the agent can't rewrite the one or read the other.
func TestBackendsAreNotTheAgentsToChange(t *testing.T) {
	w := newWorld(t, modeltest.Turn{Calls: []modeltest.Call{
		{ID: "c1", Name: "write", Args: `{"path":"policy.sh","content":"exit 0"}`},
		{ID: "c2", Name: "edit", Args: `{"path":"policy.sh","old_string":"exec","new_string":"#"}`},
		{ID: "c3", Name: "read", Args: `{"path":"token"}`},
		{ID: "c4", Name: "bash", Args: `{"command":"echo x > policy.sh"}`},
		{ID: "c5", Name: "write", Args: markerArgs},
	}}, done())
	w.opts.Mode = "bypass"
	w.write("policy.sh", "exec sleep 60\n")
	w.write("token", "the-token-itself\n")
	server := httptest.NewServer(httpbackend.Handler(backend.New(backend.Func(func(context.Context, *ahp.Intercept) ([]ahp.Effect, error) { return nil, nil }), backend.Options{}), httpbackend.Options{}))
	defer server.Close()
	observe := strings.Replace(observeAll, "*", "session.end", 1)
	w.opts.Registration = w.put(filepath.Join(w.dir, "reg.json"), fmt.Sprintf(`{"protocolVersion":"draft","hooks":[
		{"id":"org.test.sh","transport":{"type":"stdio","command":"sh","args":["policy.sh"],"lifecycle":"per_event"},"subscriptions":[{"events":["turn.end"],"mode":"observe","content":{"default":"omit"}}]},
		{"id":"org.test.http","transport":{"type":"http","url":%q},"authentication":{"type":"bearer","tokenRef":"file:token"},"subscriptions":[%s]}]}`, server.URL, observe))
	r := w.run(t.Context())
	events := w.events(r)
	for _, id := range []string{"c1", "c2", "c3", "c4"} {
		if got := outcome(events, id); !strings.Contains(got, "protected") {
			t.Errorf("%s: %q", id, got)
		}
	}
	if r.code != 0 || !w.has("marker") {
		t.Errorf("exit %d: %s", r.code, r.err)
	}
	// The rules say the same without a run.
	var out, errs safeBuffer
	code := app.Explain(t.Context(), app.ExplainOptions{SettingsOptions: w.opts.SettingsOptions, Tool: "write", Args: `{"path":"policy.sh","content":""}`}, w.system(&out, &errs))
	if code != 0 || !strings.Contains(out.String(), "protected") {
		t.Errorf("explain: exit %d, %s%s", code, out.String(), errs.String())
	}
}
