package oauth

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/abhed/abhed/internal/strictjson"
)

// resourceMetadata is what counts of a protected resource's metadata (RFC 9728 §2).
type resourceMetadata struct {
	Resource      string   `json:"resource"`
	Issuers       []string `json:"authorization_servers"`
	Scopes        []string `json:"scopes_supported"`
	BearerMethods []string `json:"bearer_methods_supported"`
}

// issuerMetadata is what counts of an issuer's metadata (RFC 8414 §2, OpenID
// Connect Discovery §3, RFC 9207 §3). Nil lists are absent.
type issuerMetadata struct {
	Issuer                string   `json:"issuer"`
	AuthorizationEndpoint string   `json:"authorization_endpoint"`
	TokenEndpoint         string   `json:"token_endpoint"`
	GrantTypes            []string `json:"grant_types_supported"`
	AuthMethods           []string `json:"token_endpoint_auth_methods_supported"`
	ChallengeMethods      []string `json:"code_challenge_methods_supported"`
	SendsIssuer           bool     `json:"authorization_response_iss_parameter_supported"`

	token, authorize *url.URL // the endpoints, checked
}

func bounds() strictjson.Options {
	return strictjson.Options{MaxBytes: maxBodyBytes, MaxDepth: 32}
}

func decodeResource(data []byte) (*resourceMetadata, error) {
	m := new(resourceMetadata)
	if err := strictjson.Unmarshal(data, m, bounds()); err != nil {
		return nil, failure("the metadata of the resource can't be read: it isn't a JSON object of the right shape")
	}
	return m, nil
}

// decodeIssuer reads the metadata of the issuer that was asked, for the flow.
func decodeIssuer(data []byte, c *Client, r rules) (*issuerMetadata, error) {
	m := new(issuerMetadata)
	if err := strictjson.Unmarshal(data, m, bounds()); err != nil {
		return nil, failure("the metadata of the issuer can't be read: it isn't a JSON object of the right shape")
	}
	if m.Issuer != c.Issuer {
		return nil, failure("the metadata is of another issuer than the one that was asked (RFC 8414 §3.3)")
	}
	var err error
	if m.token, err = r.parse(m.TokenEndpoint); err != nil {
		return nil, failure("the issuer's token_endpoint: %v", err)
	}
	grant := "client_credentials"
	if c.Flow == AuthorizationCode {
		grant = "authorization_code"
		if m.authorize, err = r.parse(m.AuthorizationEndpoint); err != nil {
			return nil, failure("the issuer's authorization_endpoint: %v", err)
		}
		if !slices.Contains(m.ChallengeMethods, "S256") {
			return nil, failure("the issuer doesn't say that it checks PKCE with S256")
		}
	}
	// RFC 8414 has a default for an absent list, and issuers that leave it out
	// support more than that; the token endpoint will say.
	if m.GrantTypes != nil && !slices.Contains(m.GrantTypes, grant) {
		return nil, failure("the issuer doesn't support the grant %s", grant)
	}
	return m, nil
}

// wellKnown inserts a well-known suffix between host and path (RFC 8414 §3.1, RFC
// 9728 §3.1).
func wellKnown(u *url.URL, suffix string) string {
	path := u.EscapedPath()
	if path == "/" {
		path = ""
	}
	return u.Scheme + "://" + u.Host + "/.well-known/" + suffix + path
}

// resourceURLs returns where the metadata of the endpoint's resource may be, in
// order (RFC 9728 §3.1, and MCP's fallback to the root).
func resourceURLs(endpoint *url.URL) []string {
	at := wellKnown(endpoint, "oauth-protected-resource")
	root := endpoint.Scheme + "://" + endpoint.Host + "/.well-known/oauth-protected-resource"
	if at == root {
		return []string{at}
	}
	return []string{at, root}
}

// issuerURLs returns where the metadata of an issuer may be, in the order of MCP
// 2025-11-25.
func issuerURLs(issuer *url.URL) []string {
	out := []string{wellKnown(issuer, "oauth-authorization-server"), wellKnown(issuer, "openid-configuration")}
	if path := strings.TrimSuffix(issuer.EscapedPath(), "/"); path != "" {
		out = append(out, issuer.Scheme+"://"+issuer.Host+path+"/.well-known/openid-configuration")
	}
	return out
}

// firstDocument returns the first of the URLs' documents that is there. Not there
// means a client error or another media type, which is how sites answer for paths
// that they don't know; anything else ends the search.
func (s *session) firstDocument(ctx context.Context, what string, urls []string) ([]byte, error) {
	for _, raw := range urls {
		u, err := s.rules.parse(raw)
		if err != nil {
			return nil, failure("the URL of the metadata of the %s: %v", what, err)
		}
		req, err := http.NewRequest(http.MethodGet, u.String(), nil)
		if err != nil {
			return nil, failure("the URL of the metadata of the %s can't be asked", what)
		}
		a, err := s.do(ctx, req)
		switch {
		case err != nil:
			return nil, err
		case a.status == http.StatusOK && a.json:
			return a.body, nil
		case a.status >= 300 && a.status < 400:
			return nil, failure("the metadata of the %s is a redirect, which isn't followed", what)
		case a.status == http.StatusOK, a.status >= 400 && a.status < 500 && a.status != http.StatusTooManyRequests:
		default:
			return nil, failure("the metadata of the %s: HTTP status %d, expected 200", what, a.status)
		}
	}
	return nil, failure("there is no metadata of the %s at %d well-known places", what, len(urls))
}

// issuer fetches and checks the metadata of the client's issuer.
func (s *session) issuer(ctx context.Context, c *Client) (*issuerMetadata, error) {
	u, err := s.rules.parse(c.Issuer)
	if err != nil {
		return nil, failure("the issuer: %v", err)
	}
	doc, err := s.firstDocument(ctx, "issuer", issuerURLs(u))
	if err != nil {
		return nil, err
	}
	return decodeIssuer(doc, c, s.rules)
}

// resource fetches the metadata of the endpoint's resource: from where the
// challenge says, else from the well-known places.
func (s *session) resource(ctx context.Context, endpoint *url.URL, w *wants) (*resourceMetadata, error) {
	urls := resourceURLs(endpoint)
	if w.metadata != "" {
		u, err := s.rules.parse(w.metadata)
		if err != nil {
			return nil, failure("the challenge's resource_metadata: %v", err)
		}
		// On this machine the ports belong to whoever: an endpoint speaks for its own.
		if isLoopback(u) && origin(u) != origin(endpoint) {
			return nil, failure("the challenge's resource_metadata is at another port of this machine")
		}
		urls = []string{w.metadata}
	}
	doc, err := s.firstDocument(ctx, "resource", urls)
	if err != nil {
		return nil, err
	}
	return decodeResource(doc)
}

// choose picks the client for what the metadata says, by the local policy's order,
// with the scopes that are both wanted and permitted.
func choose(m *resourceMetadata, w *wants, trusted []Client) (*Client, error) {
	if m.BearerMethods != nil && !slices.Contains(m.BearerMethods, "header") {
		return nil, failure("the resource takes tokens, but not in a header")
	}
	described := false
	for _, c := range trusted {
		if !sameResource(c.Resource, m.Resource) {
			continue
		}
		described = true
		if !slices.Contains(m.Issuers, c.Issuer) {
			continue
		}
		return c.narrowed(m.Scopes, w.scopes)
	}
	if !described {
		return nil, failure("the metadata is of another resource than the endpoint's (RFC 9728 §3.3)")
	}
	return nil, failure("none of the %d issuers that the resource names is trusted for it here", len(m.Issuers))
}

// narrowed returns c with those of its scopes that the endpoint wants: by its
// challenge, else by its metadata, else all.
func (c Client) narrowed(supported, challenged []string) (*Client, error) {
	wanted := supported
	if challenged != nil {
		wanted = challenged
	}
	if len(wanted) == 0 || len(c.Scopes) == 0 {
		return &c, nil
	}
	c.Scopes = slices.DeleteFunc(slices.Clone(c.Scopes), func(s string) bool { return !slices.Contains(wanted, s) })
	if len(c.Scopes) == 0 {
		// To name none would mean the issuer's choice instead of the local one.
		return nil, failure("the endpoint wants scopes of which none is permitted here")
	}
	return &c, nil
}

// contradiction reports how what a challenge leads to differs from the registered
// client, or nil. The registration decides; this only says why it can't work.
func contradiction(m *resourceMetadata, c *Client) error {
	switch {
	case !sameResource(m.Resource, c.Resource):
		return failure("the endpoint says that it is another resource than the registered one")
	case !slices.Contains(m.Issuers, c.Issuer):
		return failure("the endpoint takes no tokens of the registered issuer")
	}
	return nil
}
