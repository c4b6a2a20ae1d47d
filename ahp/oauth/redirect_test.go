package oauth

import (
	"net/url"
	"strings"
	"testing"

	"github.com/abhed/abhed/ahp"
)

// TestRedirects holds what the redirect of a browser must be to give a code.
func TestRedirects(t *testing.T) {
	const back = "http://127.0.0.1:1/callback"
	at, err := url.Parse("https://login.example/authorize")
	if err != nil {
		t.Fatal(err)
	}
	client := &Client{Issuer: "https://login.example", Resource: "https://a.example/ahp", ClientID: "c", Flow: AuthorizationCode}
	for query, want := range map[string]struct{ plain, sends bool }{ // a code from an issuer that sends no iss, and from one that does
		"code=x&state=S": {true, false},
		"code=x&state=S&iss=https://login.example":                                 {true, true},
		"code=x&state=S&iss=https://login.example/":                                {false, false},
		"code=x&state=S&iss=":                                                      {false, false},
		"code=x&state=s":                                                           {false, false},
		"code=x":                                                                   {false, false},
		"state=S&iss=https://login.example":                                        {false, false},
		"code=x&code=y&state=S&iss=https://login.example":                          {false, false},
		"code=x&state=S&state=s&iss=https://login.example":                         {false, false},
		"code=x&state=S&iss=https://login.example&iss=https://evil.example":        {false, false},
		"code=x&state=S&iss=https://login.example&error=access_denied":             {false, false},
		"code=x&state=S&iss=https://login.example&error=access_denied&error=other": {false, false},
	} {
		for sends, want := range map[bool]bool{false: want.plain, true: want.sends} {
			a := newAuthorization(&issuerMetadata{authorize: at, SendsIssuer: sends}, client)
			if _, err := a.code(back + "?code=x&state=" + a.state); err == nil {
				t.Error("a code before the browser was sent anywhere")
			}
			if _, err := a.URL(back); err != nil {
				t.Fatal(err)
			}
			query := strings.ReplaceAll(query, "state=S", "state="+a.state)
			if code, err := a.code(back + "?" + query); (err == nil) != want || want && code != "x" || !want && (code != "" || ahp.AsFailure(err) == nil) {
				t.Errorf("%s, the issuer sends iss: %v: %q, %v", query, sends, code, err)
			}
		}
	}
}

// TestDecodeIssuer holds what an issuer must say of itself to be used.
func TestDecodeIssuer(t *testing.T) {
	const good = `{"issuer":"https://login.example","token_endpoint":"https://login.example/t","authorization_endpoint":"https://login.example/a","code_challenge_methods_supported":["plain","S256"]}`
	for in, want := range map[string]struct{ machine, person bool }{ // client credentials, and with a person
		good: {true, true},
		strings.Replace(good, `login.example"`, `login.example/"`, 1):               {false, false},
		strings.Replace(good, "https://login.example", "https://evil.example", 1):   {false, false},
		strings.Replace(good, `"issuer"`, `"Issuer"`, 1):                            {false, false},
		strings.Replace(good, `"plain","S256"`, `"plain"`, 1):                       {true, false},
		strings.Replace(good, `"code_challenge_methods_supported"`, `"other"`, 1):   {true, false},
		strings.Replace(good, "https://login.example/t", "http://login.example", 1): {false, false},
		strings.Replace(good, "https://login.example/t", "http://127.0.0.1", 1):     {false, false},
		strings.Replace(good, "https://login.example/a", "http://127.0.0.1", 1):     {true, false},
		strings.Replace(good, "{", `{"grant_types_supported":["implicit"],`, 1):     {false, false},
	} {
		for flow, want := range map[Flow]bool{ClientCredentials: want.machine, AuthorizationCode: want.person} {
			m, err := decodeIssuer([]byte(in), &Client{Issuer: "https://login.example", Flow: flow}, rules{})
			if (err == nil) != want || !want && (m != nil || ahp.AsFailure(err) == nil) {
				t.Errorf("%s: %s: %v", flow, in, err)
			}
		}
	}
}

// TestCloseForgets: what a closed source held is gone from it.
func TestCloseForgets(t *testing.T) {
	endpoint, err := parseEndpoint("https://a.example/ahp")
	if err != nil {
		t.Fatal(err)
	}
	s := newSource(endpoint, Options{})
	s.current, s.refresh = Token{value: "x", resource: endpoint}, "y"
	if err := s.Close(); err != nil || !s.current.IsZero() || s.refresh != "" {
		t.Errorf("%v, tokens left: %v", err, !s.current.IsZero() || s.refresh != "")
	}
}

// TestChallengeToAnotherPort: on one machine each port may be another's, so a challenge
// leads to metadata at the endpoint's own, and nobody else is asked.
func TestChallengeToAnotherPort(t *testing.T) {
	endpoint, err := parseEndpoint("http://127.0.0.1:1/ahp")
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{"http://127.0.0.1:2/m", "http://localhost:1/m", "http://[::1]:1/m", "https://127.0.0.1:1/m", "http://127.0.0.2:1/m"} {
		s := newSession(&Options{}, true)
		m, err := s.resource(t.Context(), endpoint, &wants{metadata: at})
		s.end()
		if ahp.AsFailure(err) == nil || m != nil || s.left != maxRequests {
			t.Errorf("%s: %+v, %v, after %d requests", at, m, err, maxRequests-s.left)
		}
	}
}
