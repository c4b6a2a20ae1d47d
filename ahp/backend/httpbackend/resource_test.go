package httpbackend_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/backend"
	"github.com/abhed/abhed/ahp/backend/httpbackend"
)

func protected(id string, scopes ...string) httpbackend.Resource {
	return httpbackend.Resource{ID: id, Issuers: []string{"https://issuer.example"}, Scopes: scopes, Verify: func(_ context.Context, token string) error {
		switch token {
		case "good":
			return nil
		case "narrow":
			return fmt.Errorf("of somebody: %w", httpbackend.ErrScope)
		case "broken":
			return errors.New("the database says secret-text")
		}
		return httpbackend.ErrToken
	}}
}

func TestResourceServer(t *testing.T) {
	r := protected("https://policy.example.com/ahp", "ahp.intercept", "ahp.observe")
	h := httpbackend.Handler(backend.New(backend.Func(deny), backend.Options{}), httpbackend.Options{Resource: &r})
	note, err := (&ahp.Observe{Event: ahptest.ToolBefore("e", `{}`)}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	const challenge = `Bearer resource_metadata="https://policy.example.com/.well-known/oauth-protected-resource/ahp", scope="ahp.intercept ahp.observe"`
	for name, tt := range map[string]struct {
		auth      []string
		status    int
		challenge string
	}{
		"no token":           {nil, 401, challenge},
		"a good token":       {[]string{"Bearer good"}, 202, ""},
		"in lower case":      {[]string{"bearer good"}, 202, ""},
		"a bad token":        {[]string{"Bearer bad"}, 401, challenge + `, error="invalid_token"`},
		"too narrow":         {[]string{"Bearer narrow"}, 403, challenge + `, error="insufficient_scope"`},
		"cannot be verified": {[]string{"Bearer broken"}, 503, ""},
		"another scheme":     {[]string{"Basic good"}, 401, challenge},
		"an empty token":     {[]string{"Bearer "}, 401, challenge},
		"two headers":        {[]string{"Bearer good", "Bearer good"}, 401, challenge},
	} {
		t.Run(name, func(t *testing.T) {
			req := httptest.NewRequest("POST", "/ahp", strings.NewReader(string(note)))
			req.Header["Authorization"] = tt.auth
			req.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			h.ServeHTTP(w, req)
			if w.Code != tt.status || w.Body.Len() > 0 || w.Header().Get("WWW-Authenticate") != tt.challenge || strings.Contains(fmt.Sprint(w.Header()), "secret-text") {
				t.Errorf("%d %q %v", w.Code, w.Body, w.Header())
			}
		})
	}
}

func TestResourceMetadata(t *testing.T) {
	for id, path := range map[string]string{
		"https://policy.example.com":         "/.well-known/oauth-protected-resource",
		"https://policy.example.com/":        "/.well-known/oauth-protected-resource",
		"https://policy.example.com/a/b":     "/.well-known/oauth-protected-resource/a/b",
		"https://policy.example.com:8443/a/": "/.well-known/oauth-protected-resource/a/",
	} {
		r := protected(id, "ahp.intercept")
		if got := r.MetadataPath(); got != path {
			t.Errorf("%s: %s", id, got)
		}
		h := httpbackend.Handler(backend.New(backend.Func(deny), backend.Options{}), httpbackend.Options{Resource: &r})
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		want := `{"resource":"` + id + `","authorization_servers":["https://issuer.example"],"scopes_supported":["ahp.intercept"],"bearer_methods_supported":["header"]}`
		if w.Code != 200 || w.Body.String() != want || w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		w = httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("POST", path, nil))
		if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "GET, HEAD" {
			t.Errorf("POST: %d %v", w.Code, w.Header())
		}
	}
}

// TestBadOptionsPanic holds that options which would leave the endpoint open, or
// its challenges broken, don't get as far as serving.
func TestBadOptionsPanic(t *testing.T) {
	good := protected("https://policy.example.com/")
	change := func(f func(*httpbackend.Resource)) httpbackend.Options {
		r := good
		f(&r)
		return httpbackend.Options{Resource: &r}
	}
	for name, o := range map[string]httpbackend.Options{
		"both":       {Token: "x", Resource: &good},
		"no verify":  change(func(r *httpbackend.Resource) { r.Verify = nil }),
		"no issuers": change(func(r *httpbackend.Resource) { r.Issuers = nil }),
		"no id":      change(func(r *httpbackend.Resource) { r.ID = "" }),
		"a quote":    change(func(r *httpbackend.Resource) { r.ID = `https://policy.example.com/"` }),
		"a user":     change(func(r *httpbackend.Resource) { r.ID = "https://u@policy.example.com/" }),
		"a query":    change(func(r *httpbackend.Resource) { r.ID = "https://policy.example.com/?x" }),
		"a scope":    change(func(r *httpbackend.Resource) { r.Scopes = []string{`a"b`} }),
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			httpbackend.Handler(backend.New(backend.Func(deny), backend.Options{}), o)
		}()
	}
}

type failing struct{}

func (failing) Handle(context.Context, []byte) ([]byte, error) { return nil, errors.New("secret-text") }

// TestFailedServer holds that a notification which the server failed to take isn't
// called malformed, and that an observer which panics took it.
func TestFailedServer(t *testing.T) {
	note, err := (&ahp.Observe{Event: ahptest.ToolBefore("e", `{}`)}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	for want, server := range map[int]httpbackend.Server{500: failing{}, 202: backend.New(panicking{backend.Func(deny)}, backend.Options{})} {
		s := httptest.NewServer(httpbackend.Handler(server, httpbackend.Options{}))
		if status, body := post(t, s, string(note)); status != want || body != "" {
			t.Errorf("%d %q, want %d", status, body, want)
		}
		s.Close()
	}
}

type panicking struct{ backend.Func }

func (panicking) Observe(context.Context, *ahp.Event) { panic("observer") }
