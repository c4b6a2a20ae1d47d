package httptransport_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/transport"
	"github.com/abhed/abhed/ahp/transport/httptransport"
)

func TestMain(m *testing.M) {
	askIfChild()
	goleak.VerifyTestMain(m)
}

var _ transport.Transport = (*httptransport.Transport)(nil)

func backendAt(url string) *ahp.Backend {
	return &ahp.Backend{ID: "test.http", Transport: ahp.TransportConfig{Type: ahp.TransportHTTP, URL: url}}
}

func withToken(b *ahp.Backend) *ahp.Backend {
	b.Authentication = &ahp.Authentication{Type: "bearer", TokenEnv: "AHP_TOKEN"}
	return b
}

func serve(t *testing.T, h http.HandlerFunc) *httptest.Server {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

func open(t *testing.T, b *ahp.Backend, opts httptransport.Options) *httptransport.Transport {
	t.Helper()
	link, err := httptransport.New(b, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { link.Close() })
	return link
}

func TestHeaders(t *testing.T) {
	var got http.Header
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Clone()
		w.Header().Set("Content-Type", "application/json; charset=UTF-8")
		http.SetCookie(w, &http.Cookie{Name: "a", Value: "b"})
		w.Write([]byte(`{"ok":1}`))
	})
	tokens := map[string]string{"AHP_TOKEN": "first"}
	link := open(t, withToken(backendAt(s.URL)), httptransport.Options{LookupEnv: func(n string) (string, bool) { v, ok := tokens[n]; return v, ok }})
	for _, token := range []string{"first", "second"} {
		tokens["AHP_TOKEN"] = token
		out, err := link.Exchange(t.Context(), []byte(`{}`))
		if err != nil || string(out) != `{"ok":1}` {
			t.Fatalf("%s, %v", out, err)
		}
		if got.Get("Authorization") != "Bearer "+token || got.Get("Content-Type") != "application/json" || got.Get("Cookie") != "" {
			t.Errorf("headers %v", got)
		}
	}
	for _, bad := range []string{"", "two words", "line\nfeed"} {
		tokens["AHP_TOKEN"] = bad
		_, err := link.Exchange(t.Context(), []byte(`{}`))
		if f := ahp.AsFailure(err); f == nil || f.Class != ahp.FailAuth || bad != "" && strings.Contains(err.Error(), bad) {
			t.Errorf("token %q: %v", bad, err)
		}
		if link.Ready(t.Context()) == nil {
			t.Errorf("ready with token %q", bad)
		}
	}
}

func TestTokenRef(t *testing.T) {
	b := backendAt("https://policy.example.com/")
	b.Authentication = &ahp.Authentication{Type: "bearer", TokenRef: "vault:x"}
	link := open(t, b, httptransport.Options{ResolveRef: func(context.Context, string) (string, error) { return "", errors.New("secret-text") }})
	if err := link.Ready(t.Context()); ahp.AsFailure(err) == nil || strings.Contains(err.Error(), "secret-text") {
		t.Errorf("got %v", err)
	}
}

func TestRefused(t *testing.T) {
	oauth := backendAt("https://policy.example.com/")
	oauth.Authentication = &ahp.Authentication{Type: "oauth"}
	ref := backendAt("https://policy.example.com/")
	ref.Authentication = &ahp.Authentication{Type: "bearer", TokenRef: "vault:x"}
	for name, b := range map[string]*ahp.Backend{
		"plain http to the world": backendAt("http://policy.example.com/"),
		"a name that looks local": backendAt("http://localhost.example.com/"),
		"stdio":                   {ID: "test.x", Transport: ahp.TransportConfig{Type: ahp.TransportStdio, Command: "x"}},
		"oauth":                   oauth,
		"an unresolvable ref":     ref,
	} {
		if _, err := httptransport.New(b, httptransport.Options{}); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
	for _, url := range []string{"http://localhost:1/", "http://127.8.9.10:1/", "http://[::1]:1/", "https://policy.example.com/"} {
		link, err := httptransport.New(backendAt(url), httptransport.Options{})
		if err != nil {
			t.Error(err)
			continue
		}
		link.Close()
	}
}

func TestConnectionRefused(t *testing.T) {
	s := httptest.NewServer(nil)
	url := s.URL
	s.Close()
	_, err := open(t, backendAt(url), httptransport.Options{}).Exchange(t.Context(), []byte(`{}`))
	if f := ahp.AsFailure(err); f == nil || f.Class != ahp.FailConnect {
		t.Errorf("got %v", err)
	}
}

// hanging is a server that answers when its client has gone.
func hanging(t *testing.T) (*httptest.Server, chan struct{}) {
	asked := make(chan struct{}, 1)
	return serve(t, func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) // else the server doesn't notice that the client goes
		asked <- struct{}{}
		<-r.Context().Done()
	}), asked
}

func TestCancelAndClose(t *testing.T) {
	s, asked := hanging(t)
	link := open(t, backendAt(s.URL), httptransport.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-asked
		cancel()
	}()
	_, err := link.Exchange(ctx, []byte(`{}`))
	if !errors.Is(err, context.Canceled) || ahp.AsFailure(err) != nil {
		t.Errorf("cancelled: %v", err)
	}
	go func() {
		<-asked
		link.Close()
	}()
	_, err = link.Exchange(t.Context(), []byte(`{}`))
	if f := ahp.AsFailure(err); f == nil || f.Class != ahp.FailShutdown {
		t.Errorf("closed: %v", err)
	}
	if f := ahp.AsFailure(link.Notify(t.Context(), []byte(`{}`))); f == nil || f.Class != ahp.FailShutdown {
		t.Error("a message after Close")
	}
}

func TestSlowBodyIsBounded(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Write([]byte(`{"jsonrpc":`))
		io.Copy(io.Discard, r.Body)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := open(t, backendAt(s.URL), httptransport.Options{}).Exchange(ctx, []byte(`{}`))
	if f := ahp.AsFailure(err); f == nil || f.Class != ahp.FailDeadline {
		t.Errorf("got %v", err)
	}
}

func TestNotifyStatuses(t *testing.T) {
	status := 0
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
	link := open(t, backendAt(s.URL), httptransport.Options{})
	for _, status = range []int{202, 204} {
		if err := link.Notify(t.Context(), []byte(`{}`)); err != nil {
			t.Errorf("%d: %v", status, err)
		}
	}
	for _, status = range []int{200, 201, 400, 500} {
		if err := link.Notify(t.Context(), []byte(`{}`)); ahp.AsFailure(err) == nil {
			t.Errorf("%d: %v", status, err)
		}
	}
}

func TestCallersClientKeepsItsPolicyOut(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/elsewhere" {
			t.Error("a redirect was followed")
		}
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	})
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return nil }, Transport: &http.Transport{DisableKeepAlives: true}}
	_, err := open(t, backendAt(s.URL), httptransport.Options{Client: client}).Exchange(t.Context(), []byte(`{}`))
	if f := ahp.AsFailure(err); f == nil || f.Class != ahp.FailHTTPStatus {
		t.Errorf("got %v", err)
	}
}
