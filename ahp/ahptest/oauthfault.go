package ahptest

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/oauth"
)

// OAuthFault is one way in which an authorization server or a protected endpoint
// misbehaves. The zero fault is none.
type OAuthFault struct {
	Name, About string
	// Flow is the one in which the fault shows.
	Flow oauth.Flow
	// Discovered says that the fault shows only where no credential is registered and
	// the client is in the local trust policy.
	Discovered bool
	// Class and Says are what a harness must see: the class of the failure, and words
	// of its detail.
	Class ahp.FailureClass
	Says  string

	metadata, token  map[string]any // replaced members; nil removes one
	issuer, resource func(*OAuthServer, http.ResponseWriter, *http.Request) bool
	redirect         func(*OAuthServer, url.Values)
}

// OAuthFaults returns the menu of misbehaviour.
func OAuthFaults() []OAuthFault {
	var out []OAuthFault
	for _, f := range [][]OAuthFault{metadataFaults(), tokenFaults(), redirectFaults(), resourceFaults(), challengeFaults()} {
		out = append(out, f...)
	}
	for i := range out {
		if out[i].Class == "" {
			out[i].Class = ahp.FailAuth
		}
		if out[i].Flow == "" {
			out[i].Flow = oauth.ClientCredentials
		}
	}
	return out
}

func metadataFaults() []OAuthFault {
	says := func(name, about, says string, metadata map[string]any) OAuthFault {
		return OAuthFault{Name: name, About: about, Says: says, metadata: metadata}
	}
	does := func(name, about, says string, act func(*OAuthServer, http.ResponseWriter)) OAuthFault {
		return OAuthFault{Name: name, About: about, Says: says, issuer: func(s *OAuthServer, w http.ResponseWriter, r *http.Request) bool {
			if s.isMetadata(r) {
				act(s, w)
			}
			return s.isMetadata(r)
		}}
	}
	code := func(f OAuthFault) OAuthFault {
		f.Flow = oauth.AuthorizationCode
		return f
	}
	return []OAuthFault{
		says("wrong_issuer", "its metadata names another issuer", "another issuer", map[string]any{"issuer": "https://issuer.example"}),
		says("no_issuer", "its metadata names no issuer", "another issuer", map[string]any{"issuer": nil}),
		does("metadata_redirect", "its metadata is a redirect", "redirect", func(s *OAuthServer, w http.ResponseWriter) {
			w.Header().Set("Location", s.base+"/elsewhere")
			w.WriteHeader(http.StatusTemporaryRedirect)
		}),
		does("metadata_huge", "its metadata is endless", "more than 65536 bytes", func(_ *OAuthServer, w http.ResponseWriter) {
			sendJSON(w, 200, map[string]any{"issuer": strings.Repeat("x", 1<<20)})
		}),
		does("metadata_duplicate", "its metadata names two issuers", "can't be read", func(s *OAuthServer, w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			w.Write([]byte(`{"issuer":"https://a.example","issuer":` + strconv.Quote(s.Issuer) + `,"token_endpoint":` + strconv.Quote(s.base+"/token") + `}`))
		}),
		does("metadata_html", "it has a page for every path", "no metadata", func(_ *OAuthServer, w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/html")
			w.Write([]byte("<html>"))
		}),
		does("metadata_500", "its metadata is a server error", "HTTP status 500", func(_ *OAuthServer, w http.ResponseWriter) { w.WriteHeader(500) }),
		says("plain_token_endpoint", "its token endpoint is plain http elsewhere", "not https", map[string]any{"token_endpoint": "http://issuer.example/token"}),
		says("user_token_endpoint", "its token endpoint's URL has a user", "user", map[string]any{"token_endpoint": "https://a:b@issuer.example/token"}),
		says("private_token_endpoint", "its token endpoint is in a private network", "isn't a public address", map[string]any{"token_endpoint": "https://10.1.2.3/token"}),
		says("cloud_token_endpoint", "its token endpoint is a cloud's metadata service", "isn't a public address", map[string]any{"token_endpoint": "https://169.254.169.254/token"}),
		says("mapped_token_endpoint", "its token endpoint is a private address in IPv6 dress", "isn't a public address", map[string]any{"token_endpoint": "https://[::ffff:10.1.2.3]/token"}),
		says("relative_token_endpoint", "its token endpoint is a path", "absolute", map[string]any{"token_endpoint": "/token"}),
		says("no_client_credentials", "it doesn't support the grant", "doesn't support", map[string]any{"grant_types_supported": []string{"authorization_code"}}),
		says("no_known_auth_method", "it wants a signed assertion of the client", "neither by", map[string]any{"token_endpoint_auth_methods_supported": []string{"private_key_jwt"}}),
		code(says("no_pkce", "it doesn't speak of PKCE", "PKCE", map[string]any{"code_challenge_methods_supported": nil})),
		code(says("plain_pkce", "it knows only plain PKCE", "PKCE", map[string]any{"code_challenge_methods_supported": []string{"plain"}})),
		code(says("script_authorization_endpoint", "its authorization endpoint is a script", "authorization_endpoint", map[string]any{"authorization_endpoint": "javascript:alert(1)//https://x"})),
		code(says("file_authorization_endpoint", "its authorization endpoint is a file", "authorization_endpoint", map[string]any{"authorization_endpoint": "file:///etc/passwd"})),
	}
}

func tokenFaults() []OAuthFault {
	says := func(name, about, says string, token map[string]any) OAuthFault {
		return OAuthFault{Name: name, About: about, Says: says, token: token}
	}
	does := func(name, about, says string, act func(*OAuthServer, http.ResponseWriter, *http.Request)) OAuthFault {
		return OAuthFault{Name: name, About: about, Says: says, issuer: func(s *OAuthServer, w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == "/token" {
				act(s, w, r)
			}
			return r.URL.Path == "/token"
		}}
	}
	hangs := does("token_hangs", "its token endpoint never answers", "", func(s *OAuthServer, _ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-s.closing:
		}
	})
	hangs.Class = ahp.FailDeadline
	return []OAuthFault{
		hangs,
		says("token_type", "it gives a token of type mac", "another type", map[string]any{"token_type": "mac"}),
		says("token_no_type", "it gives a token without type", "another type", map[string]any{"token_type": nil}),
		says("token_expired", "its token expires at once", "expired", map[string]any{"expires_in": 0}),
		says("token_missing", "it gives no token", "no access token", map[string]any{"access_token": nil}),
		says("token_injects", "its token holds a line feed and a header", "no access token", map[string]any{"access_token": "x\r\nX-Evil: 1"}),
		says("token_list", "its token is a list", "can't be read", map[string]any{"access_token": []string{"x"}}),
		says("token_huge", "its token is endless", "more than 65536 bytes", map[string]any{"access_token": strings.Repeat("x", 1<<20)}),
		says("token_unknown_to_endpoint", "its token isn't valid at the endpoint", "refused a new token", map[string]any{"access_token": "of-another-resource"}),
		does("token_redirect", "its token endpoint redirects", "redirect", func(s *OAuthServer, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", s.base+"/elsewhere")
			w.WriteHeader(http.StatusTemporaryRedirect)
		}),
		does("token_html", "its token endpoint answers with a page", "expected 200 and JSON", func(_ *OAuthServer, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			w.Write([]byte("<html>"))
		}),
		does("token_500", "its token endpoint has a server error with secrets", "HTTP status 500", func(_ *OAuthServer, w http.ResponseWriter, _ *http.Request) {
			sendJSON(w, 500, map[string]any{"error": "server_error", "error_description": OAuthSecret})
		}),
		does("error_secret", "its error holds the client's secret, in code and description", "an unknown error", func(_ *OAuthServer, w http.ResponseWriter, _ *http.Request) {
			sendJSON(w, 400, map[string]any{"error": "wrong " + OAuthSecret, "error_description": OAuthSecret, "error_uri": "https://issuer.example/?" + OAuthSecret})
		}),
		does("invalid_client", "it doesn't know the client", "invalid_client", func(_ *OAuthServer, w http.ResponseWriter, _ *http.Request) {
			sendJSON(w, 401, map[string]any{"error": "invalid_client"})
		}),
		does("token_coded", "its token endpoint answers in a content encoding", "content encoding", func(_ *OAuthServer, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "br")
			sendJSON(w, 200, map[string]any{})
		}),
	}
}

func redirectFaults() []OAuthFault {
	f := func(name, about, says string, change func(*OAuthServer, url.Values)) OAuthFault {
		return OAuthFault{Name: name, About: about, Says: says, Flow: oauth.AuthorizationCode, redirect: change}
	}
	return []OAuthFault{
		f("wrong_state", "the redirect answers another request", "state", func(_ *OAuthServer, q url.Values) { q.Set("state", "x") }),
		f("no_state", "the redirect has no state", "state", func(_ *OAuthServer, q url.Values) { q.Del("state") }),
		f("two_states", "the redirect has two states", "twice", func(_ *OAuthServer, q url.Values) { q.Add("state", "x") }),
		f("two_codes", "the redirect has two codes", "twice", func(_ *OAuthServer, q url.Values) { q.Add("code", "x") }),
		f("no_code", "the redirect has no code", "no code", func(_ *OAuthServer, q url.Values) { q.Del("code") }),
		f("other_code", "the redirect has a code that wasn't given", "invalid_grant", func(_ *OAuthServer, q url.Values) { q.Set("code", "x") }),
		f("wrong_iss", "the redirect comes from another issuer", "issuer", func(_ *OAuthServer, q url.Values) { q.Set("iss", "https://issuer.example") }),
		f("no_iss", "the redirect doesn't name the issuer, though the metadata says so", "issuer", func(_ *OAuthServer, q url.Values) { q.Del("iss") }),
		f("denied", "the person refuses", "access_denied", func(_ *OAuthServer, q url.Values) {
			q.Del("code")
			q.Set("error", "access_denied")
			q.Set("error_description", OAuthSecret)
		}),
		f("denied_with_code", "the redirect has an error beside a code", "an unknown error", func(_ *OAuthServer, q url.Values) { q.Set("error", OAuthSecret) }),
	}
}

// resourceFaults are those of the metadata of the protected resource.
func resourceFaults() []OAuthFault {
	f := func(name, about, says string, act func(*OAuthServer, http.ResponseWriter)) OAuthFault {
		return OAuthFault{Name: name, About: about, Says: says, Discovered: true, resource: func(s *OAuthServer, w http.ResponseWriter, r *http.Request) bool {
			if strings.HasPrefix(r.URL.Path, "/.well-known/") {
				act(s, w)
			}
			return strings.HasPrefix(r.URL.Path, "/.well-known/")
		}}
	}
	document := func(name, about, says string, members func(*OAuthServer) map[string]any) OAuthFault {
		return f(name, about, says, func(s *OAuthServer, w http.ResponseWriter) { sendJSON(w, 200, members(s)) })
	}
	return []OAuthFault{
		document("wrong_resource", "the metadata is of another resource", "another resource", func(s *OAuthServer) map[string]any {
			return map[string]any{"resource": "https://resource.example", "authorization_servers": []string{s.Issuer}}
		}),
		document("resource_elsewhere", "the metadata is of a resource beside the endpoint", "another resource", func(s *OAuthServer) map[string]any {
			return map[string]any{"resource": s.resourceBase + "/other", "authorization_servers": []string{s.Issuer}}
		}),
		document("no_resource", "the metadata names no resource", "another resource", func(s *OAuthServer) map[string]any {
			return map[string]any{"authorization_servers": []string{s.Issuer}}
		}),
		document("other_issuer", "the endpoint takes tokens of an issuer that isn't trusted", "none of the 1 issuers", func(s *OAuthServer) map[string]any {
			return map[string]any{"resource": s.Endpoint, "authorization_servers": []string{"https://issuer.example"}}
		}),
		document("no_issuers", "the metadata names no issuer", "none of the 0 issuers", func(s *OAuthServer) map[string]any {
			return map[string]any{"resource": s.Endpoint}
		}),
		document("token_in_query", "the endpoint wants tokens in the query", "not in a header", func(s *OAuthServer) map[string]any {
			return map[string]any{"resource": s.Endpoint, "authorization_servers": []string{s.Issuer}, "bearer_methods_supported": []string{"query"}}
		}),
		document("resource_huge", "the metadata of the resource is endless", "more than 65536 bytes", func(*OAuthServer) map[string]any {
			return map[string]any{"resource": strings.Repeat("x", 1<<20)}
		}),
		f("resource_redirect", "the metadata of the resource is a redirect", "redirect", func(s *OAuthServer, w http.ResponseWriter) {
			w.Header().Set("Location", s.base+"/elsewhere")
			w.WriteHeader(http.StatusFound)
		}),
		f("resource_missing", "the resource has no metadata", "no metadata of the resource", func(_ *OAuthServer, w http.ResponseWriter) { w.WriteHeader(404) }),
	}
}

// challengeFaults are those of the endpoint's 401.
func challengeFaults() []OAuthFault {
	f := func(name, about, says string, challenge func(*OAuthServer) string) OAuthFault {
		return OAuthFault{Name: name, About: about, Says: says, Discovered: true, resource: func(s *OAuthServer, w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != "/ahp" {
				return false
			}
			w.Header().Set("WWW-Authenticate", challenge(s))
			w.WriteHeader(http.StatusUnauthorized)
			return true
		}}
	}
	at := func(u string) func(*OAuthServer) string {
		return func(*OAuthServer) string { return `Bearer resource_metadata="` + u + `"` }
	}
	return []OAuthFault{
		{Name: "endpoint_redirect", About: "the endpoint sends who has a token elsewhere", Class: ahp.FailHTTPStatus, Says: "HTTP status 307", resource: func(s *OAuthServer, w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != "/ahp" || r.Header.Get("Authorization") == "" {
				return false
			}
			w.Header().Set("Location", s.base+"/elsewhere")
			w.WriteHeader(http.StatusTemporaryRedirect)
			return true
		}},
		f("always_401", "the endpoint refuses every token", "refused a new token", func(s *OAuthServer) string {
			return `Bearer resource_metadata="` + s.resourceBase + `/.well-known/oauth-protected-resource/ahp"`
		}),
		f("challenge_basic", "the endpoint wants a password", "another scheme", func(*OAuthServer) string { return `Basic realm="x"` }),
		f("challenge_malformed", "the challenge ends in a quoted string", "can't be read", func(*OAuthServer) string { return `Bearer resource_metadata="http://x` }),
		f("challenge_plain", "the challenge leads to plain http elsewhere", "not https", at("http://resource.example/m")),
		f("challenge_private", "the challenge leads into a private network", "isn't a public address", at("https://192.168.0.1/m")),
		f("challenge_cloud", "the challenge leads to a cloud's metadata service", "isn't a public address", at("https://169.254.169.254/latest/meta-data")),
		f("challenge_number", "the challenge leads to this machine by a number", "not https", at("http://2130706433/m")),
		f("challenge_user", "the challenge's URL has a user", "user", at("https://u:p@resource.example/m")),
		f("challenge_file", "the challenge leads to a file", "URL", at("file:///etc/passwd")),
		f("challenge_other_port", "the challenge leads to another service of this machine", "another port", func(s *OAuthServer) string {
			return `Bearer resource_metadata="` + s.base + `/.well-known/oauth-protected-resource"`
		}),
	}
}
