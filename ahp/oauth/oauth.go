// Package oauth obtains access tokens for AHP endpoints: one Source for one
// resource, one issuer and one client (§18; RFC 6749, 7636, 8414, 8707, 9207, 9728).
//
// It guarantees that the issuer, the client and its secret come from local
// configuration alone, and that what a server advertises can only agree or fail;
// that every token request names the resource, and a token goes to URLs within that
// resource and nowhere else; that PKCE with S256 protects each authorization code;
// that no redirect is followed; that a discovered URL leads to https on a public
// address, which is checked on the address that is dialled; that concurrent callers
// share one acquisition, which none of them can cancel for the others; that sizes,
// times and the number of requests are bounded; and that a failure holds back the
// next try. No error holds a secret or a server's text.
//
// Do not assume that a token outlives the process: tokens, and refresh tokens, are
// kept in memory only. Do not assume that a public address is a trustworthy one.
// Behind a proxy that resolves names itself, the check of addresses is only as good
// as the local resolver.
//
// Failures are *ahp.Failure of class auth: the endpoint could not be asked, and the
// failure policy of the subscription applies.
package oauth

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"time"

	"github.com/abhed/abhed/ahp"
)

// Flow is how a token is asked for.
type Flow string

// The flows of a registration (§15).
const (
	// ClientCredentials needs no person, and a secret.
	ClientCredentials Flow = "client_credentials"
	// AuthorizationCode asks a person through Options.Authorize, with PKCE.
	AuthorizationCode Flow = "authorization_code_pkce"
)

// Client names a client of one issuer for one resource. All of it is local
// configuration. It holds no secret.
type Client struct {
	// Resource is the identifier of the protected resource: an http or https URL
	// without query, fragment or user, of the endpoint's origin, whose path the
	// endpoint's path continues.
	Resource string
	// Issuer is the issuer's identifier as it stands in its metadata, character
	// for character.
	Issuer string
	// ClientID is the client's name at the issuer.
	ClientID string
	Flow     Flow
	// SecretRef refers to the client's secret (Options.ResolveSecret); empty means
	// a public client, which ClientCredentials doesn't allow.
	SecretRef string
	// Scopes are those that may be asked for; empty means that none is named.
	Scopes []string
}

// FromAuthentication returns the client of a registration's authentication of type
// "oauth".
func FromAuthentication(a *ahp.Authentication) Client {
	return Client{Resource: a.Resource, Issuer: a.Issuer, ClientID: a.ClientID, Flow: Flow(a.Flow), SecretRef: a.ClientSecretRef, Scopes: slices.Clone(a.Scopes)}
}

// Options is what the host lends to a Source. The zero value serves no flow: one
// needs ResolveSecret, the other Authorize.
type Options struct {
	// ResolveSecret finds the client secret that SecretRef names. It is asked for
	// each token request.
	ResolveSecret func(ctx context.Context, ref string) (string, error)
	// Authorize has a person grant the request. It chooses a redirect URI, has a
	// browser open a.URL of it, and returns the whole URL that the browser was
	// redirected to. Its context lasts ten minutes, whatever becomes of the calls
	// that wait for the token; it must return when that ends. It runs once at a time,
	// and not again within five minutes, but for Login. See Loopback.
	Authorize func(ctx context.Context, a *Authorization) (redirected string, err error)
	// AllowAddress is the local policy for addresses that aren't public: it reports
	// whether an issuer or a discovered URL may lead to this one. Nil allows none.
	// Where the endpoint itself is on this machine, so may the others be, unasked.
	AllowAddress func(netip.Addr) bool
	// Proxy chooses a proxy; nil means http.ProxyFromEnvironment. Plain http goes
	// to this machine only and never through a proxy.
	Proxy func(*http.Request) (*url.URL, error)
	// RootCAs are the certificate authorities; nil means the platform's.
	RootCAs *x509.CertPool
	// Now is the clock for expiry and for holding back; nil means time.Now.
	Now func() time.Time
}

// Token is an access token that is bound to a resource. The zero Token is none. No
// verb of package fmt shows its value.
type Token struct {
	value    string
	resource *url.URL
}

// IsZero reports whether there is no token.
func (t Token) IsZero() bool { return t.value == "" }

// Header returns the value of the Authorization header for a request to u, or an
// error where u isn't within the resource that the token was issued for.
func (t Token) Header(u *url.URL) (string, error) {
	if t.value == "" || !within(t.resource, u) {
		return "", errors.New("oauth: the token isn't for this URL")
	}
	return "Bearer " + t.value, nil
}

// Format writes a placeholder for every verb.
func (t Token) Format(f fmt.State, _ rune) { fmt.Fprint(f, "[access token]") }

// MarshalText returns a placeholder.
func (t Token) MarshalText() ([]byte, error) { return []byte("[access token]"), nil }

// New returns a source of tokens for the endpoint's URL by the registered client c.
// It asks nobody before the first token is wanted. Close must be called.
func New(endpoint string, c Client, o Options) (*Source, error) {
	u, err := parseEndpoint(endpoint)
	if err != nil {
		return nil, err
	}
	if err := checkClient(&c, u, &o); err != nil {
		return nil, err
	}
	s := newSource(u, o)
	s.chosen = &c
	return s, nil
}

// NewTrusting returns a source for an endpoint without a registered credential. It
// gives no token until the endpoint has refused a request with a challenge; then it
// reads the protected resource's metadata, and picks the first client of trusted
// whose resource is the one described and whose issuer is among those named there.
// trusted is the local policy: only clients whose resource covers the endpoint are
// looked at, and one at least must. Close must be called.
func NewTrusting(endpoint string, trusted []Client, o Options) (*Source, error) {
	u, err := parseEndpoint(endpoint)
	if err != nil {
		return nil, err
	}
	s := newSource(u, o)
	for _, c := range trusted {
		if r, err := parseResource(c.Resource); err != nil || !within(r, u) {
			continue
		}
		if err := checkClient(&c, u, &o); err != nil {
			return nil, err
		}
		s.trusted = append(s.trusted, c)
	}
	if len(s.trusted) == 0 {
		return nil, errors.New("oauth: no trusted client's resource covers the endpoint")
	}
	return s, nil
}

// Covers reports whether the resource of c covers the endpoint's URL.
func (c Client) Covers(endpoint string) bool {
	u, err := parseEndpoint(endpoint)
	if err != nil {
		return false
	}
	r, err := parseResource(c.Resource)
	return err == nil && within(r, u)
}

func checkClient(c *Client, endpoint *url.URL, o *Options) error {
	r, err := parseResource(c.Resource)
	if err != nil {
		return err
	}
	rules := rules{local: isLoopback(endpoint)}
	switch {
	case !within(r, endpoint):
		return errors.New("oauth: the endpoint isn't within the resource; a token would go to another server")
	case c.ClientID == "":
		return errors.New("oauth: the client has no id")
	case c.Flow == ClientCredentials && c.SecretRef == "":
		return errors.New("oauth: the flow client_credentials needs a clientSecretRef")
	case c.SecretRef != "" && o.ResolveSecret == nil:
		return errors.New("oauth: nothing here resolves the clientSecretRef")
	case c.Flow == AuthorizationCode && o.Authorize == nil:
		return errors.New("oauth: the flow authorization_code_pkce needs a person, and nothing here can ask one")
	case c.Flow != ClientCredentials && c.Flow != AuthorizationCode:
		return fmt.Errorf("oauth: the flow %.30q isn't client_credentials or authorization_code_pkce", c.Flow)
	}
	for _, scope := range c.Scopes {
		if !isScope(scope) {
			return fmt.Errorf("oauth: %.30q can't be a scope", scope)
		}
	}
	issuer, err := rules.parse(c.Issuer)
	if err != nil {
		return fmt.Errorf("oauth: the issuer: %w", err)
	}
	if issuer.RawQuery != "" || issuer.ForceQuery {
		return errors.New("oauth: the issuer has a query")
	}
	return nil
}
