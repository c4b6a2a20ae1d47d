package httptransport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/abhed/abhed/ahp"
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
	// header returns the value of the Authorization header; "" sends none.
	header(ctx context.Context) (string, error)
	// accepted is told that a request with this header was not refused with 401.
	accepted(value string)
	// refused is told that a request with this header got a 401 with these response
	// headers. Nil means that another try with a new header makes sense; the error
	// is what the call fails with. final says that there will be no other try.
	refused(ctx context.Context, value string, response http.Header, final bool) error
	// close ends what the credential started and waits for it.
	close()
}

// newCredential returns the credential of a configuration for the endpoint; a nil
// configuration gives none. What is wrong with the configuration is the error;
// whether the secret is there shows in ready.
func newCredential(auth *ahp.Authentication, endpoint string, opts Options) (credential, error) {
	switch {
	case auth == nil:
		return anonymous{}, nil
	case auth.Type != "bearer":
		return nil, fmt.Errorf("authentication %.20q isn't supported; use bearer", auth.Type)
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
		value, err := cred.header(ctx)
		if err != nil {
			return nil, err
		}
		req, err := build(ctx)
		if err != nil {
			return nil, connectFailure(err)
		}
		if value != "" {
			req.Header.Set("Authorization", value)
		}
		resp, err := client.Do(req)
		if err != nil {
			return nil, connectFailure(err)
		}
		if resp.StatusCode != http.StatusUnauthorized {
			cred.accepted(value)
			return resp, nil
		}
		io.CopyN(io.Discard, resp.Body, 4<<10) // so that the connection can be used again
		resp.Body.Close()
		if err := cred.refused(ctx, value, resp.Header, final); err != nil {
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

func (anonymous) ready(context.Context) error            { return nil }
func (anonymous) header(context.Context) (string, error) { return "", nil }
func (anonymous) accepted(string)                        {}
func (anonymous) close()                                 {}
func (anonymous) refused(context.Context, string, http.Header, bool) error {
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
	_, err := b.header(ctx)
	return err
}

func (b *bearer) header(ctx context.Context) (string, error) {
	if b.ref != "" {
		token, err := b.resolve(ctx, b.ref)
		if err != nil || !isToken(token) {
			// The resolver's text may hold the secret; it isn't repeated.
			return "", &ahp.Failure{Class: ahp.FailAuth, Detail: "the tokenRef didn't resolve to a bearer token"}
		}
		return "Bearer " + token, nil
	}
	token, ok := b.lookup(b.env)
	if !ok || !isToken(token) {
		return "", &ahp.Failure{Class: ahp.FailAuth, Detail: fmt.Sprintf("the environment variable %s holds no bearer token", b.env)}
	}
	return "Bearer " + token, nil
}

func (b *bearer) accepted(string) {}
func (b *bearer) close()          {}
func (b *bearer) refused(context.Context, string, http.Header, bool) error {
	return unauthorized()
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
