package httptransport_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/backend"
	"github.com/abhed/abhed/ahp/harness"
	"github.com/abhed/abhed/ahp/oauth"
	"github.com/abhed/abhed/ahp/transport"
	"github.com/abhed/abhed/ahp/transport/httptransport"
)

// message is a valid request.
func message(t testing.TB) []byte {
	t.Helper()
	msg, err := (&ahp.Intercept{Event: ahptest.ToolBefore("e", `{}`), Capabilities: *ahptest.FullCapabilities(ahp.ToolBefore)}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	return msg
}

// note is a valid notification.
func note(t testing.TB) []byte {
	t.Helper()
	msg, err := (&ahp.Observe{Event: ahptest.ToolBefore("e", `{}`)}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	return msg
}

// discovering returns options with a local trust policy for the server.
func discovering(s *ahptest.OAuthServer, flow oauth.Flow) httptransport.Options {
	return httptransport.Options{OAuth: s.Options(), Trust: []oauth.Client{
		{Resource: "https://other.example/", Issuer: s.Issuer, ClientID: "harness", Flow: oauth.ClientCredentials, SecretRef: "other"},
		s.Client(flow),
	}}
}

func TestOAuthFaults(t *testing.T) {
	for _, f := range ahptest.OAuthFaults() {
		t.Run(f.Name, func(t *testing.T) {
			s := ahptest.NewOAuthServer(t, ahptest.OAuthOptions{Fault: f})
			b, opts := s.Backend(f.Flow), httptransport.Options{OAuth: s.Options()}
			if f.Discovered {
				b, opts = s.Backend(""), discovering(s, f.Flow)
			}
			bound := 20 * time.Second
			if f.Class == ahp.FailDeadline {
				bound = 200 * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(t.Context(), bound)
			defer cancel()
			link := open(t, b, opts)
			_, err := link.Exchange(ctx, message(t))
			failure := ahp.AsFailure(err)
			if failure == nil || failure.Class != f.Class || !strings.Contains(failure.Detail, f.Says) {
				t.Fatalf("got %v, want class %s that says %q", err, f.Class, f.Says)
			}
			everything := fmt.Sprintf("%+v %#v %v", err, failure, failure.Err)
			for _, secret := range []string{ahptest.OAuthSecret, "s3cret", "X-Evil"} {
				if strings.Contains(everything, secret) {
					t.Errorf("the failure holds a secret: %s", everything)
				}
			}
			if s.Count("/elsewhere") > 0 {
				t.Error("a redirect was followed")
			}
			if n := len(s.Requests()); n > 8 {
				t.Errorf("%d requests: %q", n, s.Requests())
			}
			if f.Class != ahp.FailAuth {
				return
			}
			// The next call fails at once, and asks no issuer.
			before := s.Count(" /token") + s.Count("oauth-authorization-server")
			if _, err := link.Exchange(ctx, message(t)); ahp.AsFailure(err) == nil || ahp.AsFailure(err).Class != ahp.FailAuth {
				t.Errorf("the second call: %v", err)
			}
			if after := s.Count(" /token") + s.Count("oauth-authorization-server"); after != before {
				t.Errorf("the second call asked the issuer: %q", s.Requests())
			}
		})
	}
}

func TestOAuthRegistered(t *testing.T) {
	for _, flow := range []oauth.Flow{oauth.ClientCredentials, oauth.AuthorizationCode} {
		for _, method := range []string{"client_secret_basic", "client_secret_post", "none"} {
			if flow == oauth.ClientCredentials && method == "none" {
				continue
			}
			t.Run(string(flow)+"/"+method, func(t *testing.T) {
				s := ahptest.NewOAuthServer(t, ahptest.OAuthOptions{AuthMethod: method, Scopes: []string{"ahp.intercept"}, IssuerPath: "/tenant"})
				link := open(t, s.Backend(flow), httptransport.Options{OAuth: s.Options()})
				if err := link.Ready(t.Context()); err != nil {
					t.Fatal(err)
				}
				if err := link.Login(t.Context()); err != nil {
					t.Fatal(err)
				}
				for range 3 {
					out, err := link.Exchange(t.Context(), message(t))
					if err != nil || !strings.Contains(string(out), `"effects":[]`) {
						t.Fatalf("%s, %v", out, err)
					}
				}
				if err := link.Notify(t.Context(), note(t)); err != nil {
					t.Fatal(err)
				}
				if s.Count("/token") != 1 || s.Count("oauth-protected-resource") != 0 {
					t.Errorf("requests %q", s.Requests())
				}
				for _, a := range s.Authorizations() {
					if !strings.HasPrefix(a, "Bearer ") {
						t.Errorf("sent %q before a credential was had", a)
					}
				}
			})
		}
	}
}

// TestOAuthReplacesARevokedTokenOnce holds that a token which used to be accepted is
// replaced, once in a call, by the refresh token where there is one, and that a
// person is asked again only where that is gone too.
func TestOAuthReplacesARevokedTokenOnce(t *testing.T) {
	s := ahptest.NewOAuthServer(t, ahptest.OAuthOptions{})
	opts := httptransport.Options{OAuth: s.Options()}
	var late atomic.Int64
	opts.OAuth.Now = func() time.Time { return time.Now().Add(time.Duration(late.Load())) }
	link := open(t, s.Backend(oauth.AuthorizationCode), opts)
	exchange := func() error {
		_, err := link.Exchange(t.Context(), message(t))
		return err
	}
	for i, revoke := range []func(){func() {}, func() { s.Revoke(false) }, func() { s.Revoke(true) }} {
		late.Add(int64(6 * time.Minute)) // a person isn't asked twice within five
		revoke()
		if err := exchange(); err != nil {
			t.Fatalf("%d: %v", i, err)
		}
	}
	if s.Count("GET /authorize") != 2 || s.Count("refresh_token") != 2 || s.Count("authorization_code") != 2 {
		t.Errorf("requests %q", s.Requests())
	}
	if n := len(s.Authorizations()); n != 5 {
		t.Errorf("%d requests reached the endpoint, want one, and two for each revocation", n)
	}
}

func TestOAuthDiscovered(t *testing.T) {
	for _, flow := range []oauth.Flow{oauth.ClientCredentials, oauth.AuthorizationCode} {
		s := ahptest.NewOAuthServer(t, ahptest.OAuthOptions{Scopes: []string{"ahp.intercept"}})
		link := open(t, s.Backend(""), discovering(s, flow))
		for range 2 {
			if _, err := link.Exchange(t.Context(), message(t)); err != nil {
				t.Fatal(err)
			}
		}
		if got := s.Authorizations(); len(got) != 3 || got[0] != "" || got[1] == "" || got[1] != got[2] {
			t.Errorf("credentials %q, want none and then one token twice", got)
		}
		if s.Count("oauth-protected-resource") != 1 || s.Count("/token") != 1 {
			t.Errorf("requests %q", s.Requests())
		}
	}
}

// TestNoDiscoveryUnasked holds that without a local trust policy for the endpoint a
// challenge leads nowhere, and that a registered bearer token that is refused is
// not exchanged for anything, trust policy or not.
func TestNoDiscoveryUnasked(t *testing.T) {
	s := ahptest.NewOAuthServer(t, ahptest.OAuthOptions{})
	elsewhere := s.Client(oauth.ClientCredentials)
	elsewhere.Resource = "https://policy.example.com/"
	anonymous, bearer := s.Backend(""), withToken(s.Backend(""))
	trusting := discovering(s, oauth.ClientCredentials)
	trusting.LookupEnv = func(string) (string, bool) { return "wrong", true }
	for name, tt := range map[string]struct {
		backend *ahp.Backend
		opts    httptransport.Options
		sent    string
	}{
		"no policy":                  {anonymous, httptransport.Options{OAuth: s.Options()}, ""},
		"a policy for another place": {anonymous, httptransport.Options{OAuth: s.Options(), Trust: []oauth.Client{elsewhere}}, ""},
		"a registered bearer token":  {bearer, trusting, "Bearer wrong"},
	} {
		before := len(s.Authorizations())
		_, err := open(t, tt.backend, tt.opts).Exchange(t.Context(), message(t))
		if f := ahp.AsFailure(err); f == nil || f.Class != ahp.FailAuth {
			t.Errorf("%s: %v", name, err)
		}
		if got := s.Authorizations()[before:]; len(got) != 1 || got[0] != tt.sent {
			t.Errorf("%s: sent %q", name, got)
		}
		if got := s.Requests(); len(got) != 0 {
			t.Errorf("%s: asked %q", name, got)
		}
	}
}

// TestRegisteredOAuthDoesNotFallBack holds that a registered client whose issuer
// refuses it gives way to nothing: not to the trust policy, and not to a request
// without a credential.
func TestRegisteredOAuthDoesNotFallBack(t *testing.T) {
	s := ahptest.NewOAuthServer(t, ahptest.OAuthOptions{})
	b := s.Backend(oauth.ClientCredentials)
	b.Authentication.ClientID = "somebody"
	_, err := open(t, b, discovering(s, oauth.ClientCredentials)).Exchange(t.Context(), message(t))
	if f := ahp.AsFailure(err); f == nil || f.Class != ahp.FailAuth || !strings.Contains(f.Detail, "invalid_client") {
		t.Errorf("got %v", err)
	}
	if got := s.Authorizations(); len(got) != 0 {
		t.Errorf("sent %q", got)
	}
}

func TestOAuthConfigurations(t *testing.T) {
	s := ahptest.NewOAuthServer(t, ahptest.OAuthOptions{})
	for name, change := range map[string]func(*ahp.Authentication, *httptransport.Options){
		"a resource elsewhere":  func(a *ahp.Authentication, _ *httptransport.Options) { a.Resource = "https://policy.example.com/" },
		"a resource beside":     func(a *ahp.Authentication, _ *httptransport.Options) { a.Resource = s.Endpoint + "/deeper" },
		"no secret":             func(a *ahp.Authentication, _ *httptransport.Options) { a.ClientSecretRef = "" },
		"nothing that resolves": func(_ *ahp.Authentication, o *httptransport.Options) { o.OAuth.ResolveSecret = nil },
		"nobody to ask": func(a *ahp.Authentication, o *httptransport.Options) {
			a.Flow, o.OAuth.Authorize = "authorization_code_pkce", nil
		},
		"another flow":              func(a *ahp.Authentication, _ *httptransport.Options) { a.Flow = "password" },
		"an issuer in plain text":   func(a *ahp.Authentication, _ *httptransport.Options) { a.Issuer = "http://issuer.example" },
		"an issuer with a password": func(a *ahp.Authentication, _ *httptransport.Options) { a.Issuer = "https://u:pw@issuer.example" },
		"a scope with a space":      func(a *ahp.Authentication, _ *httptransport.Options) { a.Scopes = []string{"a b"} },
	} {
		b, opts := s.Backend(oauth.ClientCredentials), httptransport.Options{OAuth: s.Options()}
		change(b.Authentication, &opts)
		if _, err := httptransport.New(b, opts); err == nil || strings.Contains(err.Error(), "pw@") {
			t.Errorf("%s: %v", name, err)
		}
	}
	unresolved := s.Backend(oauth.ClientCredentials)
	unresolved.Authentication.ClientSecretRef = "vault:nothing"
	if err := open(t, unresolved, httptransport.Options{OAuth: s.Options()}).Ready(t.Context()); ahp.AsFailure(err) == nil {
		t.Errorf("ready without its secret: %v", err)
	}
}

// TestOAuthCancelAndClose holds that a caller who gives up gets its own error, and
// that Close ends an acquisition that a person will never finish.
func TestOAuthCancelAndClose(t *testing.T) {
	s := ahptest.NewOAuthServer(t, ahptest.OAuthOptions{})
	opts := httptransport.Options{OAuth: s.Options()}
	asked := make(chan struct{}, 1)
	opts.OAuth.Authorize = func(ctx context.Context, _ *oauth.Authorization) (string, error) {
		asked <- struct{}{}
		<-ctx.Done()
		return "", ctx.Err()
	}
	link := open(t, s.Backend(oauth.AuthorizationCode), opts)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-asked
		cancel()
	}()
	if _, err := link.Exchange(ctx, message(t)); !errors.Is(err, context.Canceled) || ahp.AsFailure(err) != nil {
		t.Errorf("cancelled: %v", err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := link.Exchange(ctx, message(t)); ahp.AsFailure(err) == nil || ahp.AsFailure(err).Class != ahp.FailDeadline {
		t.Errorf("late: %v", err)
	}
	done := make(chan error)
	go func() {
		_, err := link.Exchange(t.Context(), message(t))
		done <- err
	}()
	link.Close()
	if err := <-done; ahp.AsFailure(err) == nil {
		t.Errorf("closed: %v", err)
	}
	if len(asked) != 0 {
		t.Error("a person was asked twice")
	}
}

// TestHostPanicIsABug holds that a panic of the host's callback is no operational
// failure, which a policy could open.
func TestHostPanicIsABug(t *testing.T) {
	s := ahptest.NewOAuthServer(t, ahptest.OAuthOptions{})
	opts := httptransport.Options{OAuth: s.Options()}
	opts.OAuth.ResolveSecret = func(context.Context, string) (string, error) { panic("host") }
	link := open(t, s.Backend(oauth.ClientCredentials), opts)
	for range 2 {
		if _, err := link.Exchange(t.Context(), message(t)); err == nil || ahp.AsFailure(err) != nil {
			t.Errorf("got %v", err)
		}
	}
}

// TestManifestDecidesOnAuthentication holds that a harness whose manifest doesn't
// list oauth refuses a registration with it, and that one that lists it gets its
// decision with a token, over TLS on both ways.
func TestManifestDecidesOnAuthentication(t *testing.T) {
	s := ahptest.NewOAuthServer(t, ahptest.OAuthOptions{TLS: true, Handler: backend.Func(func(_ context.Context, q *ahp.Intercept) ([]ahp.Effect, error) {
		return backend.Answer(q, &ahp.Deny{Reason: "not today"})
	})})
	b := s.Backend(oauth.ClientCredentials)
	b.Subscriptions = []ahp.Subscription{ahptest.Intercept(ahp.FailOpen, 10*time.Second, "tool.before")}
	reg := &ahp.Registration{ProtocolVersion: ahp.Version, Hooks: []ahp.Backend{*b}}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: s.RootCAs()}, DisableKeepAlives: true}}
	start := func(kinds ...string) (*harness.Harness, error) {
		m := ahptest.Manifest()
		m.Authentication = kinds
		return harness.New(reg, harness.Options{Manifest: m, Open: func(b *ahp.Backend) (transport.Transport, error) {
			return httptransport.New(b, httptransport.Options{OAuth: s.Options(), Client: client})
		}})
	}
	if _, err := start("bearer"); err == nil || !strings.Contains(err.Error(), `authentication "oauth"`) {
		t.Errorf("got %v", err)
	}
	h, err := start("bearer", "oauth")
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	out, err := h.Dispatch(t.Context(), ahptest.ToolBefore("e", `{}`), ahptest.FullCapabilities(ahp.ToolBefore), nil, harness.DispatchOptions{})
	if err != nil || out.Denial() == nil || out.Denial().Reason != "not today" {
		t.Errorf("%+v, %v", out, err)
	}
}

// hostOf returns a server that fails the test if it is asked for anything.
func hostOf(t *testing.T, why string) *httptest.Server {
	return serve(t, func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s: %s %s %v", why, r.Method, r.URL, r.Header) })
}
