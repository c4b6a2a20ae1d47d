package httpbackend

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/abhed/abhed/internal/strictjson"
)

// ErrToken is what Resource.Verify returns, or wraps, for a token that is unknown,
// expired, revoked, of another issuer or for another resource.
var ErrToken = errors.New("the token isn't valid here")

// ErrScope is what Resource.Verify returns, or wraps, for a valid token without a
// scope that is needed.
var ErrScope = errors.New("the token's scopes don't suffice")

// Resource makes the handler an OAuth resource server (RFC 6750, RFC 9728): it
// accepts the tokens that Verify accepts, answers others with a challenge, and
// serves the metadata that the challenge leads to.
type Resource struct {
	// ID is the resource's identifier: the URL at which harnesses reach the handler,
	// without query and fragment.
	ID string
	// Issuers are the identifiers of the issuers whose tokens are accepted, in the
	// order of preference; at least one.
	Issuers []string
	// Scopes are those that a token needs; empty names none.
	Scopes []string
	// Verify decides on a token, for each request and from many goroutines. It must
	// check the issuer, the expiry and that the token is for this ID: a token for
	// another resource must not be accepted. Nil accepts; ErrToken and ErrScope
	// refuse; any other error means that the token couldn't be verified, and is
	// answered with 503. No text of an error leaves the handler.
	Verify func(ctx context.Context, token string) error
}

// resource is a checked Resource.
type resource struct {
	Resource
	metadataURL, metadataPath string
	document                  []byte
}

// newResource checks r. What is wrong with it is the programmer's error.
func newResource(r Resource) (*resource, error) {
	u, err := url.Parse(r.ID)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.ContainsAny(r.ID, "\"\\ #?") {
		return nil, fmt.Errorf("httpbackend: the resource %q isn't an http or https URL without query, fragment and user", r.ID)
	}
	if r.Verify == nil || len(r.Issuers) == 0 {
		return nil, errors.New("httpbackend: a resource needs Verify and an issuer")
	}
	for _, s := range r.Scopes {
		if s == "" || strings.ContainsFunc(s, func(c rune) bool { return c <= ' ' || c >= 0x7f || c == '"' || c == '\\' }) {
			return nil, fmt.Errorf("httpbackend: %q can't be a scope", s)
		}
	}
	path := u.EscapedPath()
	if path == "/" {
		path = ""
	}
	out := &resource{Resource: r, metadataPath: "/.well-known/oauth-protected-resource" + path}
	out.Issuers, out.Scopes = slices.Clone(r.Issuers), slices.Clone(r.Scopes)
	out.metadataURL = u.Scheme + "://" + u.Host + out.metadataPath
	out.document, err = strictjson.Marshal(struct {
		Resource string   `json:"resource"`
		Issuers  []string `json:"authorization_servers"`
		Scopes   []string `json:"scopes_supported,omitempty"`
		Methods  []string `json:"bearer_methods_supported"`
	}{r.ID, r.Issuers, r.Scopes, []string{"header"}})
	return out, err
}

// MetadataPath returns the path at which a handler with r serves its metadata (RFC
// 9728 §3.1). A mux must lead it to the handler, beside the path of ID itself.
func (r Resource) MetadataPath() string {
	out, err := newResource(r)
	if err != nil {
		return ""
	}
	return out.metadataPath
}

// serveMetadata serves the metadata document, for which no token is needed.
func (r *resource) serveMetadata(w http.ResponseWriter, req *http.Request) {
	if req.Method != http.MethodGet && req.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Write(r.document)
}

// authorize returns the status with which a request is refused, with its challenge
// in header, or 0.
func (r *resource) authorize(ctx context.Context, header http.Header, values []string) int {
	token, ok := bearer(values)
	if !ok {
		header.Set("WWW-Authenticate", r.challenge(""))
		return http.StatusUnauthorized
	}
	switch err := r.Verify(ctx, token); {
	case err == nil:
		return 0
	case errors.Is(err, ErrToken):
		header.Set("WWW-Authenticate", r.challenge("invalid_token"))
		return http.StatusUnauthorized
	case errors.Is(err, ErrScope):
		header.Set("WWW-Authenticate", r.challenge("insufficient_scope"))
		return http.StatusForbidden
	}
	return http.StatusServiceUnavailable
}

func (r *resource) challenge(code string) string {
	out := `Bearer resource_metadata="` + r.metadataURL + `"`
	if len(r.Scopes) > 0 {
		out += `, scope="` + strings.Join(r.Scopes, " ") + `"`
	}
	if code != "" {
		out += `, error="` + code + `"`
	}
	return out
}

// bearer returns the token of the one Authorization header.
func bearer(values []string) (string, bool) {
	if len(values) != 1 {
		return "", false
	}
	scheme, token, ok := strings.Cut(values[0], " ")
	token = strings.TrimLeft(token, " ")
	return token, ok && token != "" && strings.EqualFold(scheme, "bearer")
}
