package httptransport

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/oauth"
)

// credential proves to one endpoint who the harness is. It is made for that
// endpoint and used for no other: the endpoint of events and the one of uploads
// have a credential each, and none inherits the other's (§18). Its methods may be
// called from any goroutine. Errors are *ahp.Failure of class auth, unless ctx
// ended, and hold no secret.
type credential interface {
	// ready reports why the credential can't be had now, or nil. It asks only this
	// machine.
	ready(ctx context.Context) error
	// prove returns what to send with the next request.
	prove(ctx context.Context) (proof, error)
	// accepted is told that a request with p was not refused with 401.
	accepted(p proof)
	// refused is told that a request with p got a 401 with these headers. Nil means
	// that another try with a new proof makes sense; an error is what the call fails
	// with.
	refused(p proof, response http.Header) error
	// close ends what the credential started and waits for it.
	close()
}

// proof is what one request is sent with. The zero proof sends nothing.
type proof struct {
	header string      // the value of the Authorization header
	token  oauth.Token // where it comes from, if from a source of tokens
}

// newCredential returns the credential of a configuration for the endpoint; a nil
// configuration gives none, or what opts.Trust has for the endpoint. What is wrong
// with the configuration is the error; whether the secret is there shows in ready.
func newCredential(auth *ahp.Authentication, endpoint string, opts Options) (credential, error) {
	if opts.OAuth.ResolveSecret == nil {
		opts.OAuth.ResolveSecret = opts.ResolveRef
	}
	switch {
	case auth == nil:
		if !slices.ContainsFunc(opts.Trust, func(c oauth.Client) bool { return c.Covers(endpoint) }) {
			return anonymous{}, nil
		}
		return newTokens(endpoint, func() (*oauth.Source, error) { return oauth.NewTrusting(endpoint, opts.Trust, opts.OAuth) })
	case auth.Type == "oauth":
		return newTokens(endpoint, func() (*oauth.Source, error) {
			return oauth.New(endpoint, oauth.FromAuthentication(auth), opts.OAuth)
		})
	case auth.Type != "bearer":
		return nil, fmt.Errorf("authentication %.20q isn't supported; use bearer or oauth", auth.Type)
	case auth.TokenRef != "" && opts.ResolveRef == nil:
		return nil, errors.New("nothing here resolves the tokenRef; use tokenEnv")
	}
	if opts.LookupEnv == nil {
		opts.LookupEnv = os.LookupEnv
	}
	return &bearer{env: auth.TokenEnv, ref: auth.TokenRef, lookup: opts.LookupEnv, resolve: opts.ResolveRef}, nil
}

// sendAs sends the requests that build makes with cred's header: one, and after a
// 401 at most one more, if cred says that this makes sense. Whoever calls closes
// the body of the response, whose status may be anything but 401. client must not
// follow redirects, so that the header never leaves the endpoint.
func sendAs(ctx context.Context, client *http.Client, cred credential, build func(context.Context) (*http.Request, error)) (*http.Response, error) {
	for final := false; ; final = true {
		p, err := cred.prove(ctx)
		if err != nil {
			return nil, err
		}
		req, err := build(ctx)
		if err != nil {
			return nil, connectFailure(err)
		}
		if p.header != "" {
			req.Header.Set("Authorization", p.header)
		}
		resp, err := client.Do(req)
		if err != nil {
			return nil, connectFailure(err)
		}
		if resp.StatusCode != http.StatusUnauthorized {
			cred.accepted(p)
			return resp, nil
		}
		resp.Body.Close()
		if err := cred.refused(p, resp.Header); err != nil {
			return nil, err
		}
		if final {
			return nil, unauthorized()
		}
	}
}

func unauthorized() error {
	return &ahp.Failure{Class: ahp.FailAuth, Detail: "HTTP status 401: the credential was refused"}
}

// anonymous sends no credential.
type anonymous struct{}

func (anonymous) ready(context.Context) error          { return nil }
func (anonymous) prove(context.Context) (proof, error) { return proof{}, nil }
func (anonymous) accepted(proof)                       {}
func (anonymous) close()                               {}
func (anonymous) refused(proof, http.Header) error {
	return &ahp.Failure{Class: ahp.FailAuth, Detail: "HTTP status 401: the endpoint wants a credential, and none is configured"}
}

// bearer sends a token that something outside holds. It is asked for each message,
// so that the token may be renewed. A refusal is final: no other identity is tried.
type bearer struct {
	env, ref string
	lookup   func(name string) (string, bool)
	resolve  func(ctx context.Context, ref string) (string, error)
}

func (b *bearer) ready(ctx context.Context) error {
	_, err := b.prove(ctx)
	return err
}

func (b *bearer) prove(ctx context.Context) (proof, error) {
	if b.ref != "" {
		token, err := b.resolve(ctx, b.ref)
		if err != nil || !isToken(token) {
			// The resolver's text may hold the secret; it isn't repeated.
			return proof{}, &ahp.Failure{Class: ahp.FailAuth, Detail: "the tokenRef didn't resolve to a bearer token"}
		}
		return proof{header: "Bearer " + token}, nil
	}
	token, ok := b.lookup(b.env)
	if !ok || !isToken(token) {
		return proof{}, &ahp.Failure{Class: ahp.FailAuth, Detail: fmt.Sprintf("the environment variable %s holds no bearer token", b.env)}
	}
	return proof{header: "Bearer " + token}, nil
}

func (b *bearer) accepted(proof)                   {}
func (b *bearer) close()                           {}
func (b *bearer) refused(proof, http.Header) error { return unauthorized() }

// tokens sends the tokens of a source.
type tokens struct {
	source   *oauth.Source
	endpoint *url.URL
}

func newTokens(endpoint string, open func() (*oauth.Source, error)) (credential, error) {
	u, err := url.Parse(endpoint)
	if err != nil {
		return nil, errors.New("the URL can't be parsed")
	}
	source, err := open()
	if err != nil {
		return nil, err
	}
	return &tokens{source, u}, nil
}

func (t *tokens) ready(ctx context.Context) error { return t.source.Ready(ctx) }
func (t *tokens) accepted(p proof)                { t.source.Accepted(p.token) }
func (t *tokens) close()                          { t.source.Close() }

func (t *tokens) prove(ctx context.Context) (proof, error) {
	token, err := t.source.Token(ctx)
	if err != nil || token.IsZero() {
		return proof{}, err
	}
	header, err := token.Header(t.endpoint)
	return proof{header, token}, err
}

func (t *tokens) refused(p proof, response http.Header) error {
	return t.source.Refused(p.token, response)
}

// isToken reports whether s can be sent as a bearer token in one header line.
func isToken(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return s != ""
}
