package oauth_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/oauth"
)

// clock is a clock that a test moves.
type clock struct{ offset atomic.Int64 }

func (c *clock) now() time.Time          { return time.Now().Add(time.Duration(c.offset.Load())) }
func (c *clock) advance(d time.Duration) { c.offset.Add(int64(d)) }

func open(t *testing.T, s *ahptest.OAuthServer, flow oauth.Flow, o oauth.Options) *oauth.Source {
	t.Helper()
	source, err := oauth.New(s.Endpoint, s.Client(flow), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { source.Close() })
	return source
}

// value returns what a token sends to the server's endpoint.
func value(t *testing.T, s *ahptest.OAuthServer, token oauth.Token) string {
	t.Helper()
	u, err := url.Parse(s.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	header, err := token.Header(u)
	if err != nil {
		t.Fatal(err)
	}
	return header
}

// TestConcurrentCallersShareAnAcquisition holds that a hundred callers make one
// token request, and that cancelling some of them, the first among them, takes the
// token from none of the others.
func TestConcurrentCallersShareAnAcquisition(t *testing.T) {
	s := ahptest.NewOAuthServer(t, ahptest.OAuthOptions{})
	asked, release := make(chan struct{}), make(chan struct{})
	o := s.Options()
	o.Authorize = func(ctx context.Context, a *oauth.Authorization) (string, error) {
		close(asked)
		<-release
		return s.Person(ctx, a)
	}
	source := open(t, s, oauth.AuthorizationCode, o)
	first, cancel := context.WithCancel(t.Context())
	gone := make(chan error)
	go func() {
		_, err := source.Token(first)
		gone <- err
	}()
	<-asked
	var wg sync.WaitGroup
	errs, values := make([]error, 100), make([]oauth.Token, 100)
	started := make(chan struct{}, 100)
	for i := range errs {
		wg.Go(func() {
			started <- struct{}{}
			values[i], errs[i] = source.Token(t.Context())
		})
	}
	for range errs {
		<-started
	}
	cancel()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("the cancelled caller: %v", err)
	}
	late, stop := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer stop()
	if _, err := source.Token(late); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the late caller: %v", err)
	}
	close(release)
	wg.Wait()
	for i, err := range errs {
		if err != nil || value(t, s, values[i]) != value(t, s, values[0]) {
			t.Fatalf("caller %d: %v", i, err)
		}
	}
	if n := s.Count("/token"); n != 1 {
		t.Errorf("%d token requests", n)
	}
}

// TestAllGiveUp holds that an acquisition goes on when nobody waits any more, so
// that what a person granted isn't lost.
func TestAllGiveUp(t *testing.T) {
	s := ahptest.NewOAuthServer(t, ahptest.OAuthOptions{})
	asked, release := make(chan struct{}), make(chan struct{})
	o := s.Options()
	o.Authorize = func(ctx context.Context, a *oauth.Authorization) (string, error) {
		close(asked)
		<-release
		return s.Person(ctx, a)
	}
	source := open(t, s, oauth.AuthorizationCode, o)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-asked
		cancel()
	}()
	if _, err := source.Token(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	close(release)
	if _, err := source.Token(t.Context()); err != nil || s.Count("GET /authorize") != 1 {
		t.Errorf("%v, %q", err, s.Requests())
	}
}

// TestExpiry holds that a token is replaced before it expires, by the refresh token
// where there is one, each of which is used once.
func TestExpiry(t *testing.T) {
	for flow, grant := range map[oauth.Flow]string{oauth.ClientCredentials: "client_credentials", oauth.AuthorizationCode: "refresh_token"} {
		var c clock
		s := ahptest.NewOAuthServer(t, ahptest.OAuthOptions{ExpiresIn: 10 * time.Minute})
		o := s.Options()
		o.Now = c.now
		source := open(t, s, flow, o)
		get := func() string {
			token, err := source.Token(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return value(t, s, token)
		}
		first := get()
		c.advance(9 * time.Minute)
		if get() != first {
			t.Errorf("%s: the token was replaced a minute early", flow)
		}
		c.advance(45 * time.Second) // 15 s are left
		second := get()
		c.advance(10 * time.Minute)
		if third := get(); second == first || third == second {
			t.Errorf("%s: an expired token is used", flow)
		}
		if n := s.Count(grant); n < 2 || s.Count("/token") != 3 || s.Count("/.well-known/") != 1 {
			t.Errorf("%s: requests %q", flow, s.Requests())
		}
		c.advance(2 * time.Hour)
		if get(); s.Count("/.well-known/") != 2 {
			t.Errorf("%s: old metadata is used: %q", flow, s.Requests())
		}
	}
}

// TestFailuresHoldBack holds that a failing issuer isn't asked again at once, that
// the pause grows and ends, and that a person isn't asked again for minutes, but by
// Login.
func TestFailuresHoldBack(t *testing.T) {
	var c clock
	fault := ahptest.OAuthFault{}
	for _, f := range ahptest.OAuthFaults() {
		if f.Name == "invalid_client" {
			fault = f
		}
	}
	s := ahptest.NewOAuthServer(t, ahptest.OAuthOptions{Fault: fault})
	o := s.Options()
	o.Now = c.now
	source := open(t, s, oauth.ClientCredentials, o)
	for range 60 { // half a second each
		if _, err := source.Token(t.Context()); ahp.AsFailure(err) == nil || !strings.Contains(err.Error(), "invalid_client") {
			t.Fatal(err)
		}
		c.advance(500 * time.Millisecond)
	}
	if n := s.Count("/token"); n != 5 { // at 0, 1, 3, 7, 15 s
		t.Errorf("%d token requests in 30 s", n)
	}

	asked := 0
	o.Authorize = func(context.Context, *oauth.Authorization) (string, error) {
		asked++
		return "", errors.New("closed " + ahptest.OAuthSecret)
	}
	person := open(t, s, oauth.AuthorizationCode, o)
	for range 4 {
		if _, err := person.Token(t.Context()); ahp.AsFailure(err) == nil || strings.Contains(err.Error(), ahptest.OAuthSecret) {
			t.Fatal(err)
		}
		c.advance(time.Minute)
	}
	if asked != 1 {
		t.Errorf("a person was asked %d times in four minutes", asked)
	}
	if err := person.Login(t.Context()); err == nil || asked != 2 {
		t.Errorf("login: %v, asked %d times", err, asked)
	}
}

// TestNewTokensThatAreRefused holds that an endpoint which refuses all tokens makes
// a source neither ask the issuer for each call, nor ask a person.
func TestNewTokensThatAreRefused(t *testing.T) {
	s := ahptest.NewOAuthServer(t, ahptest.OAuthOptions{})
	source := open(t, s, oauth.AuthorizationCode, s.Options())
	token, err := source.Token(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := source.Refused(token, http.Header{}); ahp.AsFailure(err) == nil {
		t.Errorf("got %v", err)
	}
	if _, err := source.Token(t.Context()); ahp.AsFailure(err) == nil || s.Count("/token") != 1 {
		t.Errorf("%v, %q", err, s.Requests())
	}
	if err := source.Refused(token, http.Header{}); err != nil {
		t.Errorf("a refusal of an old token counts: %v", err)
	}
}

// TestChallengeContradictsTheRegistration holds that a challenge can't change the
// registered issuer, and that the failure says what is wrong.
func TestChallengeContradictsTheRegistration(t *testing.T) {
	for _, f := range ahptest.OAuthFaults() {
		if f.Name != "other_issuer" && f.Name != "wrong_resource" && f.Name != "resource_missing" {
			continue
		}
		s := ahptest.NewOAuthServer(t, ahptest.OAuthOptions{Fault: f})
		source := open(t, s, oauth.ClientCredentials, s.Options())
		token, err := source.Token(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		source.Accepted(token)
		u, _ := url.Parse(s.Endpoint)
		where := fmt.Sprintf(`Bearer resource_metadata="http://%s/.well-known/oauth-protected-resource/ahp"`, u.Host)
		if err := source.Refused(token, http.Header{"Www-Authenticate": {where}}); err != nil {
			t.Fatal(err)
		}
		_, err = source.Token(t.Context())
		if f.Name == "resource_missing" {
			if err != nil { // the registration needs no advertisement
				t.Errorf("%s: %v", f.Name, err)
			}
			continue
		}
		if ahp.AsFailure(err) == nil || !strings.Contains(err.Error(), "registered") || s.Count("/token") != 1 {
			t.Errorf("%s: %v, %q", f.Name, err, s.Requests())
		}
	}
}

// TestMetadataOrder holds the order of MCP 2025-11-25 for an issuer with a path and
// for one without.
func TestMetadataOrder(t *testing.T) {
	const oauthPath, openid = "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"
	for _, tt := range []struct {
		path  string
		place int
		want  []string
	}{
		{"", 1, []string{oauthPath}},
		{"", 2, []string{oauthPath, openid}},
		{"/a/b", 1, []string{oauthPath + "/a/b"}},
		{"/a/b", 2, []string{oauthPath + "/a/b", openid + "/a/b"}},
		{"/a/b", 3, []string{oauthPath + "/a/b", openid + "/a/b", "/a/b" + openid}},
	} {
		s := ahptest.NewOAuthServer(t, ahptest.OAuthOptions{IssuerPath: tt.path, Metadata: tt.place})
		if _, err := open(t, s, oauth.ClientCredentials, s.Options()).Token(t.Context()); err != nil {
			t.Errorf("%+v: %v", tt, err)
		}
		var got []string
		for _, r := range s.Requests() {
			if path, ok := strings.CutPrefix(r, "GET "); ok {
				got = append(got, path)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(tt.want) {
			t.Errorf("%+v: asked %q", tt, got)
		}
	}
}

// TestTokensAreBound holds that a token goes to its resource alone and that nothing
// prints it.
func TestTokensAreBound(t *testing.T) {
	s := ahptest.NewOAuthServer(t, ahptest.OAuthOptions{})
	source := open(t, s, oauth.ClientCredentials, s.Options())
	token, err := source.Token(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	secret := strings.TrimPrefix(value(t, s, token), "Bearer ")
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x"} {
		if got := fmt.Sprintf(verb, token) + fmt.Sprintf(verb, &token); strings.Contains(got, secret) || strings.Contains(got, fmt.Sprintf("%x", secret)) {
			t.Errorf("%s prints the token: %s", verb, got)
		}
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if got := fmt.Sprintf(verb, source); strings.Contains(got, secret) {
			t.Errorf("%s prints the source's token: %s", verb, got)
		}
	}
	if text, err := token.MarshalText(); err != nil || strings.Contains(string(text), secret) {
		t.Errorf("%s, %v", text, err)
	}
	at, _ := url.Parse(s.Endpoint)
	for _, elsewhere := range []string{
		"http://127.0.0.1:1/ahp", "https://" + at.Host + "/ahp", "http://" + at.Host + "/", "http://" + at.Host + "/ahpx", "http://" + at.Host + "/ahp/../x",
		"http://" + at.Host + "/ahp/%2e%2e/x", "http://u@" + at.Host + "/ahp", "http://localhost:" + at.Port() + "/ahp", "http://" + at.Host + "/AHP",
	} {
		u, err := url.Parse(elsewhere)
		if err != nil {
			t.Fatal(err)
		}
		if header, err := token.Header(u); err == nil || header != "" {
			t.Errorf("a token for %s goes to %s", s.Endpoint, elsewhere)
		}
	}
	if _, err := (oauth.Token{}).Header(at); err == nil {
		t.Error("no token has a header")
	}
}

// TestAuthorizationURL holds which redirect URIs a host may choose, and what the
// browser is sent to.
func TestAuthorizationURL(t *testing.T) {
	s := ahptest.NewOAuthServer(t, ahptest.OAuthOptions{Scopes: []string{"ahp.intercept", "ahp.observe"}})
	o := s.Options()
	o.Authorize = func(_ context.Context, a *oauth.Authorization) (string, error) {
		for _, bad := range []string{
			"", "/callback", "http://client.example/callback", "javascript:alert(1)", "http://127.0.0.1/#x", "http://u@127.0.0.1/", "http://127.0.0.1/?state=1", "file:///x", "myapp:/x",
		} {
			if got, err := a.URL(bad); err == nil {
				t.Errorf("redirect URI %q gives %s", bad, got)
			}
		}
		at, err := a.URL("com.example.client:/callback")
		u, err2 := url.Parse(at)
		if err != nil || err2 != nil {
			t.Errorf("%q, %v, %v", at, err, err2)
			return "", err
		}
		q := u.Query()
		if q.Get("resource") != s.Endpoint || q.Get("code_challenge_method") != "S256" || q.Get("scope") != "ahp.intercept ahp.observe" || len(q.Get("state")) < 43 || a.Issuer != s.Issuer {
			t.Errorf("asked %v", q)
		}
		if _, err := a.URL("com.example.client:/callback"); err == nil {
			t.Error("one authorization has two URLs")
		}
		return "com.example.other:/callback?code=x&state=" + q.Get("state"), nil
	}
	if _, err := open(t, s, oauth.AuthorizationCode, o).Token(t.Context()); ahp.AsFailure(err) == nil || !strings.Contains(err.Error(), "redirect URI") {
		t.Errorf("a redirect to another client: %v", err)
	}
}

func TestClosed(t *testing.T) {
	s := ahptest.NewOAuthServer(t, ahptest.OAuthOptions{})
	source := open(t, s, oauth.ClientCredentials, s.Options())
	source.Close()
	source.Close()
	if _, err := source.Token(t.Context()); ahp.AsFailure(err) == nil || len(s.Requests()) != 0 {
		t.Errorf("%v, %q", err, s.Requests())
	}
}

// A source gives the same token until it expires.
func ExampleNew() {
	source, err := oauth.New("https://policy.example.com/ahp", oauth.Client{
		Resource: "https://policy.example.com/", Issuer: "https://login.example.com/tenant", ClientID: "harness",
		Flow: oauth.ClientCredentials, SecretRef: "keychain:policy",
	}, oauth.Options{ResolveSecret: func(context.Context, string) (string, error) { return "", errors.New("locked") }})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer source.Close()
	fmt.Println(source.Ready(context.Background()))
	// Output: ahp: auth: the clientSecretRef didn't resolve to a secret
}
