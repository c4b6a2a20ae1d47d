package oauth_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/oauth"
)

// TestPersonIsLeftInPeace holds that an endpoint which accepts each token once, and
// an issuer without refresh tokens, don't make a browser open for each call.
func TestPersonIsLeftInPeace(t *testing.T) {
	var c clock
	s := ahptest.NewOAuthServer(t, ahptest.OAuthOptions{NoRefresh: true})
	o := s.Options()
	o.Now = c.now
	source := open(t, s, oauth.AuthorizationCode, o)
	got := 0
	for range 60 {
		if token, err := source.Token(t.Context()); err == nil {
			got++
			source.Accepted(token)
			if err := source.Refused(token, http.Header{}); err != nil {
				t.Fatal(err)
			}
		} else if ahp.AsFailure(err) == nil {
			t.Fatal(err)
		}
		c.advance(10 * time.Second)
	}
	if n := s.Count("GET /authorize"); n != 2 || got != 2 {
		t.Errorf("a person was asked %d times in ten minutes, for %d tokens", n, got)
	}
	if err := source.Login(t.Context()); err != nil || s.Count("GET /authorize") != 3 {
		t.Errorf("login: %v, %q", err, s.Requests())
	}
}

// TestTrustFollowsTheEndpoint holds that without a registered client the choice is
// made anew when the endpoint moves to another issuer that is trusted as well, and
// that the old issuer's refresh token isn't shown to the new one.
func TestTrustFollowsTheEndpoint(t *testing.T) {
	var now atomic.Value // of the endpoint's issuer
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"resource":"http://%s/ahp","authorization_servers":[%q]}`, r.Host, now.Load())
	}))
	defer front.Close()
	first := ahptest.NewOAuthServer(t, ahptest.OAuthOptions{AnyResource: true})
	second := ahptest.NewOAuthServer(t, ahptest.OAuthOptions{AnyResource: true})
	a, b := first.Client(oauth.AuthorizationCode), second.Client(oauth.AuthorizationCode)
	a.Resource, b.Resource = front.URL+"/ahp", front.URL+"/ahp"
	o := first.Options() // its person can use both
	source, err := oauth.NewTrusting(front.URL+"/ahp", []oauth.Client{b, a}, o)
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	token, err := source.Token(t.Context())
	if err != nil || !token.IsZero() {
		t.Fatalf("before a challenge: %v, %v", token, err)
	}
	challenge := http.Header{"Www-Authenticate": {`Bearer resource_metadata="` + front.URL + `/.well-known/oauth-protected-resource/ahp"`}}
	for _, s := range []*ahptest.OAuthServer{first, second} {
		now.Store(s.Issuer)
		if err := source.Refused(token, challenge); err != nil {
			t.Fatal(err)
		}
		if err := source.Login(t.Context()); err != nil {
			t.Fatal(err)
		}
		if token, err = source.Token(t.Context()); err != nil {
			t.Fatal(err)
		}
		source.Accepted(token)
		if s.Count("GET /authorize") != 1 || s.Count("refresh_token") != 0 {
			t.Errorf("requests %q", s.Requests())
		}
	}
}

// TestChallengeIsForgotten holds that a discovery which failed leaves the endpoint a
// chance to be asked without a token again, since it may have changed its mind.
func TestChallengeIsForgotten(t *testing.T) {
	for _, f := range ahptest.OAuthFaults() {
		if f.Name != "resource_missing" {
			continue
		}
		s := ahptest.NewOAuthServer(t, ahptest.OAuthOptions{Fault: f})
		source, err := oauth.NewTrusting(s.Endpoint, []oauth.Client{s.Client(oauth.ClientCredentials)}, s.Options())
		if err != nil {
			t.Fatal(err)
		}
		defer source.Close()
		for range 3 {
			if token, err := source.Token(t.Context()); err != nil || !token.IsZero() {
				t.Fatalf("%v, %v", token, err)
			}
			if err := source.Refused(oauth.Token{}, http.Header{}); err != nil {
				t.Fatal(err)
			}
			if _, err := source.Token(t.Context()); ahp.AsFailure(err) == nil {
				t.Fatal(err)
			}
			if err := source.Refused(oauth.Token{}, http.Header{"Www-Authenticate": {"Basic"}}); ahp.AsFailure(err) == nil {
				t.Errorf("another scheme: %v", err)
			}
		}
		if n := s.Count("oauth-protected-resource"); n != 2 { // both places, once
			t.Errorf("requests %q", s.Requests())
		}
	}
}
