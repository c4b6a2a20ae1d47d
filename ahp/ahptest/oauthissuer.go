package ahptest

import (
	"crypto/sha256"
	"encoding/base64"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/abhed/abhed/internal/strictjson"
)

// serveIssuer is the authorization server.
func (s *OAuthServer) serveIssuer(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
	what := r.Method + " " + r.URL.Path
	if r.URL.Path == "/token" {
		what += " " + r.PostFormValue("grant_type")
	}
	s.note(what)
	if s.o.Fault.issuer != nil && s.o.Fault.issuer(s, w, r) {
		return
	}
	switch r.URL.Path {
	case s.metadataPath():
		s.serveMetadata(w)
	case "/authorize":
		s.serveAuthorize(w, r)
	case "/token":
		s.serveToken(w, r)
	default:
		http.NotFound(w, r)
	}
}

func (s *OAuthServer) metadataPath() string {
	switch s.o.Metadata {
	case 2:
		return "/.well-known/openid-configuration" + s.o.IssuerPath
	case 3:
		return s.o.IssuerPath + "/.well-known/openid-configuration"
	}
	return "/.well-known/oauth-authorization-server" + s.o.IssuerPath
}

func (s *OAuthServer) isMetadata(r *http.Request) bool { return r.URL.Path == s.metadataPath() }

func (s *OAuthServer) serveMetadata(w http.ResponseWriter) {
	m := map[string]any{
		"issuer": s.Issuer, "authorization_endpoint": s.base + "/authorize", "token_endpoint": s.base + "/token",
		"response_types_supported": []string{"code"}, "grant_types_supported": []string{"authorization_code", "client_credentials", "refresh_token"},
		"token_endpoint_auth_methods_supported": []string{s.o.AuthMethod}, "code_challenge_methods_supported": []string{"S256"},
		"authorization_response_iss_parameter_supported": true,
	}
	maps.Copy(m, s.o.Fault.metadata)
	maps.DeleteFunc(m, func(_ string, v any) bool { return v == nil })
	sendJSON(w, http.StatusOK, m)
}

func sendJSON(w http.ResponseWriter, status int, v any) {
	b, err := strictjson.Marshal(v)
	if err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "application/json;charset=UTF-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	w.Write(b)
}

// serveAuthorize grants every well-formed request, as if somebody had agreed.
func (s *OAuthServer) serveAuthorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	back, err := url.Parse(q.Get("redirect_uri"))
	if err != nil || back.Hostname() != "127.0.0.1" || q.Get("client_id") != "harness" {
		http.Error(w, "no such client", http.StatusBadRequest)
		return
	}
	out := url.Values{"state": q["state"], "iss": {s.Issuer}}
	switch {
	case q.Get("response_type") != "code", q.Get("code_challenge_method") != "S256", len(q.Get("code_challenge")) != 43, q.Get("state") == "":
		out.Set("error", "invalid_request")
	case !s.serves(q.Get("resource")):
		out.Set("error", "invalid_target")
	default:
		code := newSecretText()
		s.mu.Lock()
		s.codes[code] = q
		s.mu.Unlock()
		out.Set("code", code)
	}
	if s.o.Fault.redirect != nil {
		s.o.Fault.redirect(s, out)
	}
	back.RawQuery = out.Encode()
	w.Header().Set("Location", back.String())
	w.WriteHeader(http.StatusFound)
}

// serveToken checks a token request as strictly as the RFCs allow.
func (s *OAuthServer) serveToken(w http.ResponseWriter, r *http.Request) {
	if code := s.judge(r); code != "" {
		status := http.StatusBadRequest
		if code == "invalid_client" {
			status = http.StatusUnauthorized
		}
		sendJSON(w, status, map[string]any{"error": code, "error_description": "client_secret=" + OAuthSecret})
		return
	}
	token := newSecretText()
	out := map[string]any{"access_token": token, "token_type": "bearer", "expires_in": int(s.o.ExpiresIn / time.Second)}
	s.mu.Lock()
	s.tokens[token] = time.Now().Add(s.o.ExpiresIn)
	if !s.o.NoRefresh && r.PostForm.Get("grant_type") != "client_credentials" {
		again := newSecretText()
		s.refresh[again] = true
		out["refresh_token"] = again
	}
	s.mu.Unlock()
	maps.Copy(out, s.o.Fault.token)
	maps.DeleteFunc(out, func(_ string, v any) bool { return v == nil })
	sendJSON(w, http.StatusOK, out)
}

// judge returns the error code of a token request, or "".
func (s *OAuthServer) judge(r *http.Request) string {
	if r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/x-www-form-urlencoded" || r.URL.RawQuery != "" {
		return "invalid_request"
	}
	f := r.PostForm
	for name, values := range f {
		if len(values) != 1 {
			return "invalid_request: " + name
		}
	}
	if !s.knows(r) {
		return "invalid_client"
	}
	if !s.serves(f.Get("resource")) {
		return "invalid_target"
	}
	for _, scope := range strings.Fields(f.Get("scope")) {
		if !strings.HasPrefix(scope, "ahp.") {
			return "invalid_scope"
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch f.Get("grant_type") {
	case "client_credentials":
		if s.o.AuthMethod == "none" {
			return "unauthorized_client"
		}
		return ""
	case "refresh_token":
		if !s.refresh[f.Get("refresh_token")] {
			return "invalid_grant"
		}
		delete(s.refresh, f.Get("refresh_token")) // they rotate
		return ""
	case "authorization_code":
		return s.redeem(f)
	}
	return "unsupported_grant_type"
}

// serves reports whether tokens are given for the resource.
func (s *OAuthServer) serves(resource string) bool {
	return resource == s.Endpoint || s.o.AnyResource && resource != ""
}

// redeem uses up a code. The lock is held.
func (s *OAuthServer) redeem(f url.Values) string {
	asked, ok := s.codes[f.Get("code")]
	delete(s.codes, f.Get("code"))
	sum := sha256.Sum256([]byte(f.Get("code_verifier")))
	if !ok || asked.Get("redirect_uri") != f.Get("redirect_uri") || asked.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(sum[:]) {
		return "invalid_grant"
	}
	return ""
}

// knows reports whether the client authenticates in the one way that it must.
func (s *OAuthServer) knows(r *http.Request) bool {
	id, secret, basic := r.BasicAuth()
	switch s.o.AuthMethod {
	case "none":
		return !basic && r.PostForm.Get("client_id") == "harness" && !r.PostForm.Has("client_secret")
	case "client_secret_post":
		return !basic && r.PostForm.Get("client_id") == "harness" && r.PostForm.Get("client_secret") == OAuthSecret
	}
	id, _ = url.QueryUnescape(id)
	secret, _ = url.QueryUnescape(secret)
	return basic && id == "harness" && secret == OAuthSecret && !r.PostForm.Has("client_secret")
}
