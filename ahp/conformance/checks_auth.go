package conformance

import (
	"bytes"
	"context"
	"fmt"
	"net/http"

	"github.com/abhed/abhed/ahp"
)

// authChecks are about the bearer token, where there is one.
func authChecks() []backendCheck {
	auth := func(id, requirements, about string, run func(context.Context, *probe, *backendEnv) error) backendCheck {
		return must(id, requirements, ProfileHTTP, about, []Binding{HTTP}, run)
	}
	return []backendCheck{
		auth("auth.missing", "AHP-AUTH-001.a", "Without a credential there is 401 and no answer", runAuthMissing),
		auth("auth.wrong", "AHP-AUTH-001.a", "With a wrong credential there is 401 and no answer", runAuthWrong),
		auth("auth.echo", "AHP-SEC-001.a", "The credential appears in no answer", runAuthEcho).level(MustNot),
	}
}

func authorization(value string) change {
	return func(r *http.Request) {
		r.Header.Del("Authorization")
		if value != "" {
			r.Header.Set("Authorization", value)
		}
	}
}

// unauthorized holds that a request and a notification with the header are
// answered with 401.
func unauthorized(ctx context.Context, p *probe, e *backendEnv, value string) error {
	l := e.openHTTP(p)
	good, err := e.plain()
	if err != nil {
		return err
	}
	note, err := e.observation(0)
	if err != nil {
		return err
	}
	for _, m := range []message{good, note} {
		a, err := l.post(ctx, m, authorization(value))
		if err != nil {
			return err
		}
		if s := peek(a.raw); a.status != http.StatusUnauthorized || s != nil && s.Result != nil {
			return p.failf("status %d, expected 401 and no answer", a.status)
		}
	}
	return nil
}

func runAuthMissing(ctx context.Context, p *probe, e *backendEnv) error {
	if e.target.Token == "" {
		return p.notApplicable("no token was given")
	}
	return unauthorized(ctx, p, e, "")
}

func runAuthWrong(ctx context.Context, p *probe, e *backendEnv) error {
	if e.target.Token == "" {
		return p.notApplicable("no token was given")
	}
	for _, value := range []string{"Bearer " + e.target.Token + "x", "Bearer " + e.target.Token[1:], "Basic " + e.target.Token, e.target.Token} {
		if err := unauthorized(ctx, p, e, value); err != nil {
			return err
		}
	}
	return nil
}

func runAuthEcho(ctx context.Context, p *probe, e *backendEnv) error {
	if e.target.Token == "" {
		return p.notApplicable("no token was given")
	}
	l := e.openHTTP(p)
	good, err := e.plain()
	if err != nil {
		return err
	}
	messages := []message{good, {raw: []byte("{"), breaks: ahp.KindSyntax}}
	for _, v := range []variant{
		{"", ahp.KindMethod, []edit{set("method", "hooks/teleport")}},
		{"", ahp.KindShape, []edit{drop("params.event")}},
		{"", ahp.KindVersion, []edit{set("params.protocolVersion", "2099-12-31")}},
		{"", ahp.KindEvent, []edit{set("params.event.type", "tool.teleport")}},
	} {
		m, err := e.request(v.breaks, v.edits...)
		if err != nil {
			return err
		}
		messages = append(messages, m)
	}
	for _, m := range messages {
		a, err := l.post(ctx, m)
		if err != nil {
			return err
		}
		if bytes.Contains(a.raw, []byte(e.target.Token)) || bytes.Contains(fmt.Append(nil, a.header), []byte(e.target.Token)) {
			return p.failf("the answer holds the token that the request carried")
		}
	}
	return nil
}
