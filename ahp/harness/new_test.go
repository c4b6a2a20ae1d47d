package harness_test

import (
	"strings"
	"testing"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/harness"
	"github.com/abhed/abhed/ahp/transport"
	"github.com/abhed/abhed/ahp/transport/httptransport"
)

// TestNewRefuses changes one thing of a good registration or manifest at a time.
func TestNewRefuses(t *testing.T) {
	tests := map[string]struct {
		change func(*ahp.Registration, *ahp.Manifest)
		want   string
	}{
		"nothing":                    {func(*ahp.Registration, *ahp.Manifest) {}, ""},
		"the transport":              {func(_ *ahp.Registration, m *ahp.Manifest) { m.Transports = []string{"stdio"} }, `transport "http"`},
		"the authentication":         {func(_ *ahp.Registration, m *ahp.Manifest) { m.Authentication = []string{} }, `authentication "bearer"`},
		"a timeout beyond the limit": {func(_ *ahp.Registration, m *ahp.Manifest) { m.Limits.MaxTimeoutMs = ahptest.Int64(50) }, "timeoutMs"},
		"a timeout below the limit":  {func(_ *ahp.Registration, m *ahp.Manifest) { m.Limits.MinTimeoutMs = ahptest.Int64(5000) }, "timeoutMs"},
		"a scope": {func(r *ahp.Registration, m *ahp.Manifest) {
			m.ManagedPolicy.Scopes = []string{"user"}
			r.Hooks[0].Subscriptions[0].Scope = "project"
		}, "scope"},
		"an event that isn't offered": {func(_ *ahp.Registration, m *ahp.Manifest) { m.Events = m.Events[:2] }, "selects nothing"},
		"a family of nothing":         {func(r *ahp.Registration, _ *ahp.Manifest) { r.Hooks[0].Subscriptions[0].Events = []string{"nothing.*"} }, "selects nothing"},
		"a missing credential":        {func(r *ahp.Registration, _ *ahp.Manifest) { r.Hooks[0].Authentication.TokenEnv = "AHP_TEST_UNSET" }, "AHP_TEST_UNSET"},
		"plain http to the world":     {func(r *ahp.Registration, _ *ahp.Manifest) { r.Hooks[0].Transport.URL = "http://policy.example.com/" }, "plain http"},
		"uploads": {func(r *ahp.Registration, _ *ahp.Manifest) {
			r.Hooks[0].Subscriptions[0].Upload = &ahp.Upload{Endpoint: "https://x.example/", TimeoutMs: 1, MaxBytes: 1}
		}, "uploads"},
		"the same backend twice": {func(r *ahp.Registration, _ *ahp.Manifest) { r.Hooks = append(r.Hooks, r.Hooks[0]) }, "each backend once"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			reg := &ahp.Registration{ProtocolVersion: ahp.Version, Hooks: []ahp.Backend{{
				ID: "test.http", Transport: ahp.TransportConfig{Type: ahp.TransportHTTP, URL: "https://policy.example.com/"},
				Authentication: &ahp.Authentication{Type: "bearer", TokenEnv: "AHP_TEST_TOKEN"},
				Subscriptions:  []ahp.Subscription{ahptest.Intercept(ahp.FailClosed, time.Second, "tool.before")},
			}}}
			m := ahptest.Manifest()
			tt.change(reg, m)
			h, err := harness.New(reg, harness.Options{Manifest: m, Open: func(b *ahp.Backend) (transport.Transport, error) {
				return httptransport.New(b, httptransport.Options{LookupEnv: func(name string) (string, bool) { return "token", name == "AHP_TEST_TOKEN" }})
			}})
			if err == nil {
				defer h.Close()
			}
			switch {
			case tt.want == "" && err != nil:
				t.Error(err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("got %v, want an error with %q", err, tt.want)
			}
		})
	}
}

func TestNewOpensStdioOnly(t *testing.T) {
	reg := &ahp.Registration{ProtocolVersion: ahp.Version, Hooks: []ahp.Backend{{
		ID: "test.http", Transport: ahp.TransportConfig{Type: ahp.TransportHTTP, URL: "http://localhost:1/"},
		Subscriptions: []ahp.Subscription{ahptest.Observe("*")},
	}}}
	if _, err := harness.New(reg, harness.Options{Manifest: ahptest.Manifest()}); err == nil || !strings.Contains(err.Error(), "httptransport.New") {
		t.Errorf("an HTTP backend without Open: got %v", err)
	}
	reg.Hooks[0].Transport = ahptest.StdioConfig(t, "", ahp.LifecyclePerEvent)
	h, err := harness.New(reg, harness.Options{Manifest: ahptest.Manifest()})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if !h.Subscribed(ahp.SessionEnd, ahp.ModeObserve) || h.Subscribed(ahp.ToolBefore, ahp.ModeIntercept) {
		t.Error("Subscribed is wrong")
	}
}

func TestDiscover(t *testing.T) {
	if _, err := harness.Discover(t.Context(), ahptest.NewFake(nil)); err == nil || !strings.Contains(err.Error(), "rpc_error") {
		t.Errorf("got %v", err)
	}
}

// TestFilters holds that a filter never drops a call of unknown kind (§15).
func TestFilters(t *testing.T) {
	sub := ahptest.Intercept(ahp.FailClosed, time.Minute, "tool.before")
	sub.Filters = &ahp.Filters{ToolKinds: []string{"shell"}, Paths: []string{"native"}}
	for _, tt := range []struct {
		kind, path string
		want       int
	}{{"shell", "native", 1}, {"file_read", "native", 0}, {"", "native", 1}, {"quantum", "native", 1}, {"shell", "remote", 0}} {
		fake := ahptest.NewFake(nil)
		h := newHarness(t, harness.Options{}, party{link: fake, subs: []ahp.Subscription{sub}})
		e := ahptest.ToolBefore("e", `{}`)
		e.Tool.Kind, e.Path = tt.kind, tt.path
		if _, err := h.Dispatch(t.Context(), e, noAllow(), nil, harness.DispatchOptions{}); err != nil {
			t.Fatal(err)
		}
		if got := len(fake.Requests()); got != tt.want {
			t.Errorf("kind %q on path %q: asked %d times, want %d", tt.kind, tt.path, got, tt.want)
		}
	}
}
