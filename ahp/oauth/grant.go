package oauth

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/abhed/abhed/internal/strictjson"
)

const (
	maxTokenBytes = 16 << 10
	maxLifetime   = 366 * 24 * time.Hour
	// skew is how long before its expiry a token is no longer used: at most a
	// quarter of its life.
	skew = 30 * time.Second
)

// grant is what a token request gave.
type grant struct {
	access, refresh string
	expires         time.Time // zero: the issuer doesn't say
}

// tokenResponse is what counts of a token response (RFC 6749 §5.1).
type tokenResponse struct {
	AccessToken  string `json:"access_token"`
	TokenType    string `json:"token_type"`
	ExpiresIn    *int64 `json:"expires_in"` // seconds
	RefreshToken string `json:"refresh_token"`
}

// decodeGrant reads a token response that came between the times sent and now.
func decodeGrant(data []byte, sent time.Time) (*grant, error) {
	var r tokenResponse
	if err := strictjson.Unmarshal(data, &r, bounds()); err != nil {
		return nil, failure("the token response can't be read: it isn't a JSON object of the right shape")
	}
	switch {
	case !strings.EqualFold(r.TokenType, "Bearer"):
		return nil, failure("the issuer gave a token of another type than Bearer")
	case !isTokenText(r.AccessToken):
		return nil, failure("the issuer gave no access token that fits into a header")
	case r.RefreshToken != "" && (len(r.RefreshToken) > maxTokenBytes):
		return nil, failure("the issuer gave a refresh token of more than %d bytes", maxTokenBytes)
	}
	g := &grant{access: r.AccessToken, refresh: r.RefreshToken}
	if r.ExpiresIn != nil {
		life := maxLifetime
		if *r.ExpiresIn < int64(maxLifetime/time.Second) {
			life = time.Duration(max(*r.ExpiresIn, 0)) * time.Second
		}
		if life == 0 {
			return nil, failure("the issuer gave a token that has expired already")
		}
		g.expires = sent.Add(life - min(skew, life/4))
	}
	return g, nil
}

// isTokenText reports whether s is a b64token of RFC 6750 §2.1, within the bound.
func isTokenText(s string) bool {
	body := strings.TrimRight(s, "=")
	for i := range len(body) {
		if !isAlnum(body[i]) && strings.IndexByte("-._~+/", body[i]) < 0 {
			return false
		}
	}
	return body != "" && len(s) <= maxTokenBytes
}

// errorResponse is what counts of an error of the issuer (RFC 6749 §5.2). Its
// description is text of the server and isn't even read.
type errorResponse struct {
	Error string `json:"error"`
}

// errorCode returns the code if it is a known one, so that nothing that a server
// makes up gets into a message.
func errorCode(code string) string {
	known := []string{
		"invalid_request", "invalid_client", "invalid_grant", "unauthorized_client", "unsupported_grant_type", "invalid_scope", "invalid_target",
		"access_denied", "unsupported_response_type", "server_error", "temporarily_unavailable", "interaction_required", "login_required", "consent_required",
	}
	if slices.Contains(known, code) {
		return code
	}
	return "an unknown error"
}

// tokenError is a token request that the issuer refused.
type tokenError struct {
	code string
	err  error
}

// Error returns the failure's text.
func (e *tokenError) Error() string { return e.err.Error() }

// Unwrap returns the failure.
func (e *tokenError) Unwrap() error { return e.err }

// request asks the token endpoint for a token: form names the grant, and the
// resource and the client are added to each.
func (s *session) request(ctx context.Context, m *issuerMetadata, c *Client, form url.Values, now func() time.Time) (*grant, error) {
	form.Set("resource", c.Resource)
	header := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
	if err := s.authenticate(ctx, m, c, form, header); err != nil {
		return nil, err
	}
	req, err := http.NewRequest(http.MethodPost, m.token.String(), strings.NewReader(form.Encode()))
	if err != nil {
		return nil, failure("the token endpoint can't be asked")
	}
	req.Header = header
	sent := now()
	a, err := s.do(ctx, req)
	switch {
	case err != nil:
		return nil, err
	case a.status == http.StatusOK && a.json:
		return decodeGrant(a.body, sent)
	case a.status >= 300 && a.status < 400:
		return nil, failure("the token endpoint redirects, which isn't followed")
	case a.status >= 400 && a.status < 500 && a.json:
		var e errorResponse
		if strictjson.Unmarshal(a.body, &e, bounds()) == nil {
			code := errorCode(e.Error)
			return nil, &tokenError{code, failure("the issuer refused the token request: %s", code)}
		}
	}
	return nil, failure("the token endpoint answers with HTTP status %d, expected 200 and JSON", a.status)
}

// authenticate adds who the client is: by HTTP Basic or in the form, as the
// issuer's metadata says, Basic first; or by its id alone where it has no secret.
func (s *session) authenticate(ctx context.Context, m *issuerMetadata, c *Client, form url.Values, header http.Header) error {
	offers := func(method string) bool {
		if m.AuthMethods == nil {
			return method == "client_secret_basic" // RFC 8414 §2
		}
		return slices.Contains(m.AuthMethods, method)
	}
	if c.SecretRef == "" {
		if m.AuthMethods != nil && !offers("none") {
			return failure("the issuer wants a client secret, and no clientSecretRef is configured")
		}
		form.Set("client_id", c.ClientID)
		return nil
	}
	secret, err := s.opts.ResolveSecret(ctx, c.SecretRef)
	if err != nil || secret == "" {
		// The resolver's text may hold the secret; it isn't repeated.
		return failure("the clientSecretRef didn't resolve to a secret")
	}
	switch {
	case offers("client_secret_basic"):
		req := http.Request{Header: header}
		req.SetBasicAuth(url.QueryEscape(c.ClientID), url.QueryEscape(secret)) // RFC 6749 §2.3.1
	case offers("client_secret_post"):
		form.Set("client_id", c.ClientID)
		form.Set("client_secret", secret)
	default:
		return failure("the issuer takes a client secret neither by client_secret_basic nor by client_secret_post")
	}
	return nil
}

// withScopes adds the client's scopes to form, where it has any.
func withScopes(form url.Values, c *Client) url.Values {
	if len(c.Scopes) > 0 {
		form.Set("scope", strings.Join(c.Scopes, " "))
	}
	return form
}
