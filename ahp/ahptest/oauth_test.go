package ahptest_test

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/internal/strictjson"
)

func TestOAuthMenu(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range ahptest.OAuthFaults() {
		if seen[f.Name] || f.About == "" || f.Flow == "" || f.Class == "" || f.Class == ahp.FailAuth && f.Says == "" {
			t.Errorf("the fault %q is incomplete or there twice", f.Name)
		}
		seen[f.Name] = true
	}
}

// code has the server grant an authorization, with a change to the request, and
// returns the redirect's query.
func code(t *testing.T, s *ahptest.OAuthServer, change func(url.Values)) url.Values {
	t.Helper()
	q := url.Values{
		"response_type": {"code"}, "client_id": {"harness"}, "redirect_uri": {"http://127.0.0.1:1/cb"}, "state": {"s"}, "resource": {s.Endpoint},
		"code_challenge": {"E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"}, "code_challenge_method": {"S256"}, // RFC 7636, appendix B
	}
	if change != nil {
		change(q)
	}
	browser := &http.Transport{DisableKeepAlives: true}
	req, err := http.NewRequest(http.MethodGet, s.Issuer+"/authorize?"+q.Encode(), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := browser.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	back, err := url.Parse(resp.Header.Get("Location"))
	if err != nil {
		t.Fatal(err)
	}
	return back.Query()
}

// TestOAuthServerIsStrict holds that the server refuses what a client must not do,
// so that a test which gets a token through it proves something.
func TestOAuthServerIsStrict(t *testing.T) {
	s := ahptest.NewOAuthServer(t, ahptest.OAuthOptions{})
	for name, change := range map[string]func(url.Values){
		"no PKCE":          func(q url.Values) { q.Del("code_challenge") },
		"plain PKCE":       func(q url.Values) { q.Set("code_challenge_method", "plain") },
		"no state":         func(q url.Values) { q.Del("state") },
		"no resource":      func(q url.Values) { q.Del("resource") },
		"another resource": func(q url.Values) { q.Set("resource", "https://x.example/") },
		"another response": func(q url.Values) { q.Set("response_type", "token") },
		"another redirect": func(q url.Values) { q.Set("redirect_uri", "https://x.example/") },
	} {
		if q := code(t, s, change); q.Get("code") != "" {
			t.Errorf("%s: got a code", name)
		}
	}
	const verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
	form := func(code string) url.Values {
		return url.Values{"grant_type": {"authorization_code"}, "code": {code}, "code_verifier": {verifier}, "redirect_uri": {"http://127.0.0.1:1/cb"}, "resource": {s.Endpoint}}
	}
	for name, tt := range map[string]struct {
		change func(url.Values)
		secret string
		want   string
	}{
		"all right":        {func(url.Values) {}, ahptest.OAuthSecret, ""},
		"another secret":   {func(url.Values) {}, "x", "invalid_client"},
		"no verifier":      {func(f url.Values) { f.Del("code_verifier") }, ahptest.OAuthSecret, "invalid_grant"},
		"another verifier": {func(f url.Values) { f.Set("code_verifier", verifier+"x") }, ahptest.OAuthSecret, "invalid_grant"},
		"another redirect": {func(f url.Values) { f.Set("redirect_uri", "http://127.0.0.1:1/") }, ahptest.OAuthSecret, "invalid_grant"},
		"no resource":      {func(f url.Values) { f.Del("resource") }, ahptest.OAuthSecret, "invalid_target"},
		"two resources":    {func(f url.Values) { f.Add("resource", "x") }, ahptest.OAuthSecret, "invalid_request: resource"},
		"another grant":    {func(f url.Values) { f.Set("grant_type", "password") }, ahptest.OAuthSecret, "unsupported_grant_type"},
		"another scope":    {func(f url.Values) { f.Set("scope", "admin") }, ahptest.OAuthSecret, "invalid_scope"},
	} {
		f := form(code(t, s, nil).Get("code"))
		tt.change(f)
		if got := token(t, s, f, tt.secret)["error"]; (got == nil) != (tt.want == "") || got != nil && got != tt.want {
			t.Errorf("%s: %v, want %q", name, got, tt.want)
		}
	}
	f := form(code(t, s, nil).Get("code"))
	first, second := token(t, s, f, ahptest.OAuthSecret), token(t, s, f, ahptest.OAuthSecret)
	if first["error"] != nil || second["error"] != "invalid_grant" {
		t.Errorf("a code that is used twice: %v, %v", first, second)
	}
	again := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {first["refresh_token"].(string)}, "resource": {s.Endpoint}}
	if a, b := token(t, s, again, ahptest.OAuthSecret), token(t, s, again, ahptest.OAuthSecret); a["error"] != nil || b["error"] != "invalid_grant" {
		t.Errorf("a refresh token that is used twice: %v, %v", a, b)
	}
	if err := s.Verify(t.Context(), first["access_token"].(string)); err != nil {
		t.Error(err)
	}
	s.Revoke(true)
	if s.Verify(t.Context(), first["access_token"].(string)) == nil {
		t.Error("a revoked token is valid")
	}
}

func token(t *testing.T, s *ahptest.OAuthServer, f url.Values, secret string) map[string]any {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, s.Issuer+"/token", strings.NewReader(f.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.SetBasicAuth("harness", url.QueryEscape(secret))
	client := &http.Transport{DisableKeepAlives: true}
	resp, err := client.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]any{}
	if err := strictjson.Unmarshal(body, &out, strictjson.Options{}); err != nil {
		t.Fatal(err)
	}
	return out
}
