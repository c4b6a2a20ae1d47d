package oauth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Authorization is one request for a person's consent. It is used by one goroutine.
type Authorization struct {
	// Issuer, Resource, ClientID and Scopes are what to tell the person: who asks,
	// whom, for what.
	Issuer, Resource, ClientID string
	Scopes                     []string

	endpoint             *url.URL
	state, verifier      string
	redirect             *url.URL
	redirectURI          string
	requireIssuer, taken bool
}

// URL returns the address that the person's browser must open, for a redirect URI
// of the host's choice: http to this machine, https, or a scheme of its own in
// reverse-DNS form (RFC 8252). It can be asked once. Its scheme is https, or http
// to this machine, so that it is safe to hand to an opener of browsers as one
// argument; it must not pass a shell.
func (a *Authorization) URL(redirectURI string) (string, error) {
	if a.taken {
		return "", errors.New("oauth: the URL of an authorization was asked for twice")
	}
	u, err := url.Parse(redirectURI)
	if err != nil || u.Scheme == "" || u.Fragment != "" || u.User != nil || u.RawQuery != "" {
		return "", errors.New("oauth: the redirect URI isn't an absolute URL without query, fragment and user")
	}
	own := strings.Contains(u.Scheme, ".")
	if u.Scheme != "https" && !(u.Scheme == "http" && isLoopback(u)) && !own {
		return "", errors.New("oauth: the redirect URI is neither on this machine, nor https, nor of a reverse-DNS scheme")
	}
	a.taken, a.redirect, a.redirectURI = true, u, redirectURI
	sum := sha256.Sum256([]byte(a.verifier))
	q := a.endpoint.Query()
	for name, value := range map[string]string{
		"response_type": "code", "client_id": a.ClientID, "redirect_uri": redirectURI, "state": a.state, "resource": a.Resource,
		"code_challenge": base64.RawURLEncoding.EncodeToString(sum[:]), "code_challenge_method": "S256",
	} {
		q.Set(name, value)
	}
	q.Del("scope")
	if len(a.Scopes) > 0 {
		q.Set("scope", strings.Join(a.Scopes, " "))
	}
	out := *a.endpoint
	out.RawQuery = q.Encode()
	return out.String(), nil
}

func newAuthorization(m *issuerMetadata, c *Client) *Authorization {
	return &Authorization{
		Issuer: c.Issuer, Resource: c.Resource, ClientID: c.ClientID, Scopes: slices.Clone(c.Scopes),
		endpoint: m.authorize, state: randomText(), verifier: randomText(), requireIssuer: m.SendsIssuer,
	}
}

// randomText returns 256 bits as 43 unreserved characters.
func randomText() string {
	b := make([]byte, 32)
	rand.Read(b) // never fails
	return base64.RawURLEncoding.EncodeToString(b)
}

// code checks the URL that the browser was redirected to and returns its code.
func (a *Authorization) code(redirected string) (string, error) {
	if len(redirected) > maxBodyBytes {
		return "", failure("the redirect to this client is longer than %d bytes", maxBodyBytes)
	}
	u, err := url.Parse(redirected)
	if err != nil || !a.taken || u.Scheme != a.redirect.Scheme || u.Host != a.redirect.Host || u.EscapedPath() != a.redirect.EscapedPath() || u.Opaque != a.redirect.Opaque {
		return "", failure("what the host returned isn't a redirect to its redirect URI")
	}
	q, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return "", failure("the query of the redirect can't be read")
	}
	for _, name := range []string{"code", "state", "iss", "error"} {
		if len(q[name]) > 1 {
			return "", failure("the redirect holds %s twice", name)
		}
	}
	if subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(a.state)) != 1 {
		return "", failure("the redirect's state is another one: it doesn't answer this request")
	}
	if q.Has("iss") && q.Get("iss") != a.Issuer || !q.Has("iss") && a.requireIssuer {
		return "", failure("the redirect doesn't come from the issuer that was asked (RFC 9207)")
	}
	if q.Has("error") {
		return "", failure("the authorization was refused: %s", errorCode(q.Get("error")))
	}
	if q.Get("code") == "" {
		return "", failure("the redirect holds no code")
	}
	return q.Get("code"), nil
}

// authorize has a person grant a token.
func (s *session) authorize(ctx context.Context, m *issuerMetadata, c *Client, now func() time.Time) (*grant, error) {
	a := newAuthorization(m, c)
	redirected, err := s.opts.Authorize(ctx, a)
	if err != nil {
		return nil, failure("nobody granted the authorization") // the host's text may quote the redirect
	}
	code, err := a.code(redirected)
	if err != nil {
		return nil, err
	}
	form := url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {a.redirectURI}, "code_verifier": {a.verifier}}
	return s.request(ctx, m, c, form, now)
}
