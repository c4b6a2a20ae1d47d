package oauth

import (
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/abhed/abhed/ahp"
)

func TestWellKnown(t *testing.T) {
	for issuer, want := range map[string][]string{
		"https://a.example":     {"https://a.example/.well-known/oauth-authorization-server", "https://a.example/.well-known/openid-configuration"},
		"https://a.example/":    {"https://a.example/.well-known/oauth-authorization-server", "https://a.example/.well-known/openid-configuration"},
		"https://a.example:8/t": {"https://a.example:8/.well-known/oauth-authorization-server/t", "https://a.example:8/.well-known/openid-configuration/t", "https://a.example:8/t/.well-known/openid-configuration"},
	} {
		u, err := url.Parse(issuer)
		if err != nil {
			t.Fatal(err)
		}
		if got := issuerURLs(u); !slices.Equal(got, want) {
			t.Errorf("%s: %q", issuer, got)
		}
	}
	u, _ := url.Parse("https://a.example/ahp?x=y")
	want := []string{"https://a.example/.well-known/oauth-protected-resource/ahp", "https://a.example/.well-known/oauth-protected-resource"}
	if got := resourceURLs(u); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestDecodeGrant(t *testing.T) {
	sent := time.Unix(1e9, 0)
	for in, life := range map[string]time.Duration{
		`{"access_token":"x","token_type":"Bearer","expires_in":3600}`:                   time.Hour - skew,
		`{"access_token":"x","token_type":"BEARER","expires_in":8}`:                      6 * time.Second,
		`{"access_token":"x","token_type":"Bearer","expires_in":9223372036854775807}`:    maxLifetime - skew,
		`{"access_token":"x","token_type":"Bearer","scope":"a","id_token":[{"x":null}]}`: 0,
	} {
		g, err := decodeGrant([]byte(in), sent)
		if err != nil || life == 0 && !g.expires.IsZero() || life != 0 && g.expires.Sub(sent) != life {
			t.Errorf("%s: %+v, %v", in, g, err)
		}
	}
	for _, in := range []string{
		``, `null`, `[]`, `{}`, `{"access_token":"x"}`, `{"access_token":null,"token_type":"Bearer"}`, `{"access_token":"x","token_type":"Bearer","expires_in":-1}`, `{"access_token":"x","token_type":"Bearer","expires_in":"60"}`,
		`{"access_token":"x","token_type":"Bearer","expires_in":1e30}`, `{"access_token":"x","access_token":"y","token_type":"Bearer"}`, `{"access_token":"x y","token_type":"Bearer"}`, `{"access_token":"é","token_type":"Bearer"}`,
		`{"access_token":"=","token_type":"Bearer"}`, `{"Access_Token":"x","token_type":"Bearer"}`, `{"access_token":"` + strings.Repeat("x", maxTokenBytes+1) + `","token_type":"Bearer"}`,
	} {
		if g, err := decodeGrant([]byte(in), sent); err == nil {
			t.Errorf("%.80s gives %+v", in, g)
		}
	}
}

// FuzzDecoders holds that what a server sends gives a usable value or an
// operational failure that quotes nothing of it.
func FuzzDecoders(f *testing.F) {
	for _, s := range []string{
		`{}`, `null`, `{"resource":"https://a.example","authorization_servers":["https://i.example"],"scopes_supported":["a"]}`, `{"access_token":"x","token_type":"Bearer","expires_in":60,"refresh_token":"r"}`,
		`{"issuer":"https://i.example","token_endpoint":"https://i.example/token","authorization_endpoint":"https://i.example/a","code_challenge_methods_supported":["S256"]}`,
		`{"issuer":"https://i.example","token_endpoint":"http://127.0.0.1/token"}`,
	} {
		f.Add([]byte(s))
	}
	trusted := []Client{{Resource: "https://a.example", Issuer: "https://i.example", ClientID: "c", Flow: AuthorizationCode, Scopes: []string{"a"}}}
	f.Fuzz(func(t *testing.T, data []byte) {
		if m, err := decodeResource(data); err == nil {
			c, err := choose(m, &wants{}, trusted)
			if err == nil && (c.Issuer != trusted[0].Issuer || !slices.Contains(m.Issuers, c.Issuer) || !sameResource(m.Resource, c.Resource)) {
				t.Errorf("%s chooses %+v", data, c)
			}
			wantFailure(t, err)
		} else {
			wantFailure(t, err)
		}
		m, err := decodeIssuer(data, &trusted[0], rules{})
		if err == nil && (m.Issuer != trusted[0].Issuer || m.token.Scheme != "https" || m.authorize.Scheme != "https" || m.token.User != nil) {
			t.Errorf("%s gives %+v", data, m)
		}
		wantFailure(t, err)
		g, err := decodeGrant(data, time.Unix(0, 0))
		if err == nil && strings.ContainsFunc(g.access, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
			t.Errorf("%s gives %+v", data, g)
		}
		wantFailure(t, err)
	})
}

func wantFailure(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		return
	}
	if f := ahp.AsFailure(err); f == nil || f.Class != ahp.FailAuth || len(f.Detail) > 200 {
		t.Errorf("got %v", err)
	}
}
