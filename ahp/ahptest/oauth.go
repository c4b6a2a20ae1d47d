package ahptest

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/backend"
	"github.com/abhed/abhed/ahp/backend/httpbackend"
	"github.com/abhed/abhed/ahp/oauth"
)

// OAuthSecret is the client's secret at an OAuthServer. Nothing but the token
// endpoint may ever see it.
const OAuthSecret = "s3cret/of+the client:"

// OAuthOptions tunes an OAuthServer. The zero value is a server without fault at
// which every feature works.
type OAuthOptions struct {
	// Fault is how it misbehaves; the zero fault is not at all.
	Fault OAuthFault
	// Handler answers at the protected endpoint; nil answers without effects.
	Handler backend.Handler
	// ExpiresIn is the life of access tokens, in whole seconds; zero means an hour.
	ExpiresIn time.Duration
	// IssuerPath is the path of the issuer's identifier, such as "/tenant".
	IssuerPath string
	// Metadata names the only well-known place of the issuer's metadata: 1, 2 or 3 in
	// the order of MCP 2025-11-25; zero means the first.
	Metadata int
	// AuthMethod is how the client must authenticate; empty means
	// client_secret_basic; "none" means a public client.
	AuthMethod string
	// AnyResource gives tokens for every resource, not for the endpoint alone.
	AnyResource bool
	// NoRefresh leaves refresh tokens out.
	NoRefresh bool
	// TLS serves both over TLS, with a certificate that RootCAs verifies.
	TLS bool
	// Scopes are those that the endpoint wants.
	Scopes []string
}

// OAuthServer is an authorization server with an AHP backend that it protects, each
// at a port of this machine. It checks what a client must send, PKCE and the
// resource included. Its methods may be called from any goroutine.
type OAuthServer struct {
	// Issuer is the issuer's identifier, Endpoint the URL of the protected backend,
	// which is the resource's identifier too.
	Issuer, Endpoint string

	o            OAuthOptions
	base         string // the authorization server's origin
	resourceBase string
	roots        *x509.CertPool // nil without TLS
	closing      chan struct{}

	mu       sync.Mutex
	requests []string
	auths    []string
	codes    map[string]url.Values // the authorization request of each unused code
	tokens   map[string]time.Time  // the expiry of each access token
	refresh  map[string]bool
}

// NewOAuthServer starts the two servers; they end with the test.
func NewOAuthServer(t testing.TB, o OAuthOptions) *OAuthServer {
	t.Helper()
	if o.ExpiresIn == 0 {
		o.ExpiresIn = time.Hour
	}
	if o.AuthMethod == "" {
		o.AuthMethod = "client_secret_basic"
	}
	if o.Handler == nil {
		o.Handler = backend.Func(func(context.Context, *ahp.Intercept) ([]ahp.Effect, error) { return nil, nil })
	}
	s := &OAuthServer{o: o, closing: make(chan struct{}), codes: map[string]url.Values{}, tokens: map[string]time.Time{}, refresh: map[string]bool{}}
	issuer := httptest.NewUnstartedServer(http.HandlerFunc(s.serveIssuer))
	endpoint := httptest.NewUnstartedServer(nil)
	scheme, start := "http://", (*httptest.Server).Start
	if o.TLS {
		scheme, start = "https://", (*httptest.Server).StartTLS
	}
	s.base, s.resourceBase = scheme+issuer.Listener.Addr().String(), scheme+endpoint.Listener.Addr().String()
	s.Issuer, s.Endpoint = s.base+o.IssuerPath, s.resourceBase+"/ahp"
	endpoint.Config.Handler = s.protected()
	start(issuer)
	start(endpoint)
	if o.TLS { // the package signs both with one certificate
		s.roots = x509.NewCertPool()
		s.roots.AddCert(issuer.Certificate())
	}
	t.Cleanup(func() {
		close(s.closing)
		issuer.Close()
		endpoint.Close()
	})
	return s
}

// Client returns the client that the server knows, for a flow.
func (s *OAuthServer) Client(flow oauth.Flow) oauth.Client {
	c := oauth.Client{Resource: s.Endpoint, Issuer: s.Issuer, ClientID: "harness", Flow: flow, SecretRef: "test:secret", Scopes: slices.Clone(s.o.Scopes)}
	if s.o.AuthMethod == "none" {
		c.SecretRef = ""
	}
	return c
}

// Options returns what a host lends: the secret, and a person who grants.
func (s *OAuthServer) Options() oauth.Options {
	return oauth.Options{Authorize: s.Person, RootCAs: s.roots, ResolveSecret: func(_ context.Context, ref string) (string, error) {
		if ref != "test:secret" {
			return "", errors.New("no such secret")
		}
		return OAuthSecret, nil
	}}
}

// RootCAs returns what verifies the servers' certificate, or nil without TLS.
func (s *OAuthServer) RootCAs() *x509.CertPool { return s.roots }

// Backend returns the protected endpoint as a registration has it; without a flow
// it has no authentication.
func (s *OAuthServer) Backend(flow oauth.Flow) *ahp.Backend {
	b := &ahp.Backend{ID: "test.oauth", Transport: ahp.TransportConfig{Type: ahp.TransportHTTP, URL: s.Endpoint}}
	if flow != "" {
		c := s.Client(flow)
		b.Authentication = &ahp.Authentication{Type: "oauth", Resource: c.Resource, Issuer: c.Issuer, ClientID: c.ClientID, Flow: string(flow), ClientSecretRef: c.SecretRef, Scopes: c.Scopes}
	}
	return b
}

// Person grants an authorization like a browser whose user agrees, for
// oauth.Options.Authorize.
func (s *OAuthServer) Person(ctx context.Context, a *oauth.Authorization) (string, error) {
	at, err := a.URL("http://127.0.0.1:1/callback")
	if err != nil {
		return "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return "", err
	}
	browser := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: s.roots}}
	resp, err := browser.RoundTrip(req)
	if err != nil {
		return "", err
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusFound {
		return "", errors.New("the authorization endpoint shows an error page: " + resp.Status)
	}
	return resp.Header.Get("Location"), nil
}

// Verify is the endpoint's httpbackend.Resource.Verify.
func (s *OAuthServer) Verify(_ context.Context, token string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if expires, ok := s.tokens[token]; !ok || time.Now().After(expires) {
		return httpbackend.ErrToken
	}
	return nil
}

// Revoke makes all access tokens invalid, and the refresh tokens too if all is set.
func (s *OAuthServer) Revoke(all bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.tokens)
	if all {
		clear(s.refresh)
	}
}

// Requests returns method and path of every request to the authorization server,
// with the grant type for token requests, and to the endpoint's metadata, in order.
func (s *OAuthServer) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Count returns how many of Requests contain the text.
func (s *OAuthServer) Count(text string) int {
	n := 0
	for _, r := range s.Requests() {
		if strings.Contains(r, text) {
			n++
		}
	}
	return n
}

// Authorizations returns the Authorization header of every message that reached the
// endpoint, in order; "" for none.
func (s *OAuthServer) Authorizations() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.auths)
}

func (s *OAuthServer) note(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, what)
}

// protected returns the handler of the endpoint and of its metadata.
func (s *OAuthServer) protected() http.Handler {
	r := &httpbackend.Resource{ID: s.Endpoint, Issuers: []string{s.Issuer}, Scopes: s.o.Scopes, Verify: s.Verify}
	honest := httpbackend.Handler(backend.New(s.o.Handler, backend.Options{}), httpbackend.Options{Resource: r})
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/ahp" {
			s.mu.Lock()
			s.auths = append(s.auths, req.Header.Get("Authorization"))
			s.mu.Unlock()
		} else {
			s.note(req.Method + " " + req.URL.Path)
		}
		if s.o.Fault.resource == nil || !s.o.Fault.resource(s, w, req) {
			honest.ServeHTTP(w, req)
		}
	})
}

func newSecretText() string { return rand.Text() }
