package httptransport_test

import (
	"context"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/backend"
	"github.com/abhed/abhed/ahp/backend/httpbackend"
	"github.com/abhed/abhed/ahp/harness"
	"github.com/abhed/abhed/ahp/oauth"
	"github.com/abhed/abhed/ahp/transport"
	"github.com/abhed/abhed/ahp/transport/httptransport"
)

func allowAll(context.Context, *ahp.Intercept) ([]ahp.Effect, error) { return nil, nil }

// TestI195Redirects holds that no redirect is followed, to another host, port,
// scheme or path, whatever its status: the credential, cookies and the message
// reach nobody else, and the answer is an operational failure.
func TestI195Redirects(t *testing.T) {
	elsewhere := hostOf(t, "a redirect was followed")
	secureElsewhere := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a redirect was followed over TLS") }))
	defer secureElsewhere.Close()
	at, _ := url.Parse(elsewhere.URL)
	for _, status := range []int{301, 302, 303, 307, 308} {
		for _, target := range []string{elsewhere.URL, "http://localhost:" + at.Port() + "/", secureElsewhere.URL, "//" + at.Host + "/", "/other", "", "file:///etc/passwd"} {
			var asked atomic.Int32
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if asked.Add(1); r.URL.Path != "/" || r.Header.Get("Authorization") != "Bearer t0k3n" || r.Header.Get("Cookie") != "" {
					t.Errorf("%s with %v", r.URL, r.Header)
				}
				http.SetCookie(w, &http.Cookie{Name: "session", Value: "x"})
				w.Header().Set("Location", target)
				w.WriteHeader(status)
			})
			jar, _ := cookiejar.New(nil)
			for _, client := range []*http.Client{nil, {Jar: jar, Transport: &http.Transport{DisableKeepAlives: true}}} {
				link := open(t, withToken(backendAt(s.URL)), httptransport.Options{Client: client, LookupEnv: func(string) (string, bool) { return "t0k3n", true }})
				for _, send := range []func() error{
					func() error { _, err := link.Exchange(t.Context(), message(t)); return err },
					func() error { return link.Notify(t.Context(), note(t)) },
				} {
					asked.Store(0)
					err := send()
					if f := ahp.AsFailure(err); f == nil || f.Class != ahp.FailHTTPStatus || f.Status != status || asked.Load() != 1 {
						t.Errorf("%d to %q: %v, %d requests", status, target, err, asked.Load())
					}
				}
			}
		}
	}
}

// TestI195Siblings is the same for a secure endpoint that sends to plain http, and
// for one that redirects only who has a token of OAuth.
func TestI195Siblings(t *testing.T) {
	elsewhere := hostOf(t, "a redirect was followed")
	secure := httptest.NewTLSServer(http.RedirectHandler(elsewhere.URL, http.StatusPermanentRedirect))
	defer secure.Close()
	client := secure.Client()
	client.CheckRedirect = nil
	link := open(t, withToken(backendAt(secure.URL)), httptransport.Options{Client: client, LookupEnv: func(string) (string, bool) { return "t0k3n", true }})
	if _, err := link.Exchange(t.Context(), message(t)); ahp.AsFailure(err) == nil || ahp.AsFailure(err).Status != 308 {
		t.Errorf("from https to http: %v", err)
	}
	for _, f := range ahptest.OAuthFaults() {
		if f.Name != "endpoint_redirect" {
			continue
		}
		for _, secure := range []bool{false, true} {
			s := ahptest.NewOAuthServer(t, ahptest.OAuthOptions{Fault: f, TLS: secure})
			opts := discovering(s, oauth.ClientCredentials)
			opts.Client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: s.RootCAs()}, DisableKeepAlives: true}}
			for _, flow := range []oauth.Flow{"", oauth.ClientCredentials} {
				_, err := open(t, s.Backend(flow), opts).Exchange(t.Context(), message(t))
				if f := ahp.AsFailure(err); f == nil || f.Status != 307 || s.Count("elsewhere") != 0 {
					t.Errorf("flow %q: %v, %q", flow, err, s.Requests())
				}
			}
			if got := s.Authorizations(); len(got) != 3 || got[0] != "" || got[1] == "" || got[2] == "" {
				t.Errorf("credentials %q", got)
			}
		}
	}
}

// handshakes serves TLS with the configuration and counts the connections.
func handshakes(t *testing.T, config *tls.Config) (*httptest.Server, *atomic.Int32) {
	var n atomic.Int32
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a message came through") }))
	s.TLS = config
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			n.Add(1)
		}
	}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s, &n
}

// TestI199SelfSigned holds that a backend with a certificate that nobody vouches for
// fails with words about the certificate, at once and with one connection for each of
// at most two attempts, and that the failure policy decides.
func TestI199SelfSigned(t *testing.T) {
	for _, policy := range []ahp.FailurePolicy{ahp.FailOpen, ahp.FailClosed} {
		s, connections := handshakes(t, nil)
		b := withToken(backendAt(s.URL))
		b.Subscriptions = []ahp.Subscription{ahptest.Intercept(policy, 30*time.Second, "tool.before")}
		h, err := harness.New(&ahp.Registration{ProtocolVersion: ahp.Version, Hooks: []ahp.Backend{*b}}, harness.Options{Manifest: ahptest.Manifest(), Open: func(b *ahp.Backend) (transport.Transport, error) {
			return httptransport.New(b, httptransport.Options{LookupEnv: func(string) (string, bool) { return "t0k3n", true }})
		}})
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		start := time.Now()
		out, err := h.Dispatch(t.Context(), ahptest.ToolBefore("e", `{}`), ahptest.FullCapabilities(ahp.ToolBefore), nil, harness.DispatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("it took %v", took)
		}
		f := out.Trace[0].Failure
		if f == nil || f.Class != ahp.FailConnect || !strings.Contains(f.Detail, "certificate") || strings.Contains(f.Detail, "t0k3n") {
			t.Errorf("failure %v", f)
		}
		if out.MayExecute() != (policy == ahp.FailOpen) {
			t.Errorf("%s: may execute: %v", policy, out.MayExecute())
		}
		if n := connections.Load(); int(n) != out.Trace[0].Attempts || n > 2 {
			t.Errorf("%s: %d connections for %d attempts", policy, n, out.Trace[0].Attempts)
		}
	}
}

// TestI199Siblings holds the same for other servers whose TLS is no good, and for
// an issuer's.
func TestI199Siblings(t *testing.T) {
	old := &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}
	s, connections := handshakes(t, old)
	trusting := s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	_, err := open(t, backendAt(s.URL), httptransport.Options{}).Exchange(t.Context(), message(t))
	if f := ahp.AsFailure(err); f == nil || f.Class != ahp.FailConnect || !strings.Contains(f.Detail, "version") || connections.Load() != 1 {
		t.Errorf("TLS 1.1: %v, %d connections", err, connections.Load())
	}

	named, _ := handshakes(t, nil)
	at, _ := url.Parse(named.URL)
	pool := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusting}, DisableKeepAlives: true}
	_, err = open(t, backendAt("https://localhost:"+at.Port()+"/"), httptransport.Options{Client: &http.Client{Transport: pool}}).Exchange(t.Context(), message(t))
	if f := ahp.AsFailure(err); f == nil || f.Class != ahp.FailConnect || !strings.Contains(f.Detail, "localhost") {
		t.Errorf("a certificate of another name: %v", err)
	}

	issuer := ahptest.NewOAuthServer(t, ahptest.OAuthOptions{TLS: true})
	opts := httptransport.Options{OAuth: issuer.Options()}
	opts.OAuth.RootCAs = nil
	start := time.Now()
	link := open(t, issuer.Backend(oauth.ClientCredentials), opts)
	for range 20 {
		_, err = link.Exchange(t.Context(), message(t))
		if f := ahp.AsFailure(err); f == nil || f.Class != ahp.FailAuth || !strings.Contains(f.Detail, "certificate") {
			t.Fatalf("an issuer's certificate: %v", err)
		}
	}
	if took := time.Since(start); took > 2*time.Second || len(issuer.Requests()) > 0 || len(issuer.Authorizations()) > 0 {
		t.Errorf("%v, %q, %q", took, issuer.Requests(), issuer.Authorizations())
	}
}

// TestKeepAlive holds that messages one after the other, whatever is answered to
// them, use one connection, and that those of eight at a time use a few.
func TestKeepAlive(t *testing.T) {
	var connections atomic.Int32
	s := httptest.NewUnstartedServer(httpbackend.Handler(backend.New(backend.Func(allowAll), backend.Options{}), httpbackend.Options{}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	s.Start()
	defer s.Close()
	link := open(t, backendAt(s.URL), httptransport.Options{})
	for range 50 {
		if _, err := link.Exchange(t.Context(), message(t)); err != nil {
			t.Fatal(err)
		}
		if err := link.Notify(t.Context(), note(t)); err != nil {
			t.Fatal(err)
		}
		if _, err := link.Exchange(t.Context(), []byte(`{"jsonrpc":"2.0","id":1,"method":"hooks/nothing","params":{}}`)); err != nil {
			t.Fatal(err)
		}
		if err := link.Notify(t.Context(), []byte(`{"jsonrpc":"2.0","method":"hooks/observe"}`)); ahp.AsFailure(err) == nil || ahp.AsFailure(err).Status != 400 {
			t.Fatal(err)
		}
	}
	if n := connections.Load(); n != 1 {
		t.Errorf("%d connections for messages one after the other", n)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				if _, err := link.Exchange(t.Context(), message(t)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if n := connections.Load(); n > 32 { // a dial may lose against a connection that becomes free
		t.Errorf("%d connections for 400 messages, eight at a time", n)
	}
}
