package conformance

import (
	"context"
	"mime"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"

	"github.com/abhed/abhed/ahp"
)

// httpChecks are about the HTTP binding.
func httpChecks() []backendCheck {
	h := func(id, requirements, about string, run func(context.Context, *probe, *backendEnv) error) backendCheck {
		return must(id, requirements, ProfileHTTP, about, []Binding{HTTP}, run)
	}
	return []backendCheck{
		h("http.status", "AHP-HTTP-001.a", "A request is answered with status 200", runStatus),
		h("http.type", "AHP-HTTP-001.a AHP-HTTP-001", "An answer is application/json in UTF-8", runType),
		h("http.errors", "AHP-HTTP-001.c", "A JSON-RPC error comes with status 200", runErrorStatus).level(Should),
		h("http.redirect", "AHP-HTTP-001.d", "A message isn't sent elsewhere", runRedirect).level(MustNot),
		h("http.notification", "AHP-HTTP-001.b", "A notification is answered with 202 or 204", runNotification).after(root, "http.redirect"),
		h("http.method", "AHP-HTTP-001.d", "Another method than POST does nothing", runMethod).level(MustNot),
		h("http.allow", "AHP-HTTP-001.e", "Another method is answered with 405 and Allow", runAllow).level(Should).after("http.method"),
		h("http.request-type", "AHP-HTTP-001.d", "A body of another media type gets no result", runRequestType).level(MustNot),
		h("http.unsupported", "AHP-HTTP-001.e", "A body of another media type is answered with 415", runUnsupportedType).level(Should).after("http.request-type"),
		h("http.charset", "AHP-HTTP-001", "application/json with charset=utf-8 is JSON's media type", runCharset),
		h("http.too-large", "AHP-HTTP-001.e", "A body beyond the bound is answered with 413", runTooLarge).level(Should).after("strict.size"),
		h("http.connection", "AHP-HTTP-001.g", "A connection serves several requests", runConnection).level(Should),
		h("http.concurrent", "AHP-HTTP-001.f", "Requests at the same time get their own answers", runConcurrent),
	}
}

// posted sends a plain request with changes over a new link.
func posted(ctx context.Context, p *probe, e *backendEnv, changes ...change) (*answer, *message, error) {
	m, err := e.plain()
	if err != nil {
		return nil, nil, err
	}
	a, err := e.openHTTP(p).post(ctx, m, changes...)
	return a, &m, err
}

func method(name string) change { return func(r *http.Request) { r.Method = name } }

func mediaType(value string) change {
	return func(r *http.Request) { r.Header.Set("Content-Type", value) }
}

func runStatus(ctx context.Context, p *probe, e *backendEnv) error {
	a, _, err := posted(ctx, p, e)
	if err != nil {
		return err
	}
	if a.status != http.StatusOK {
		return p.failf("status %d, expected 200", a.status)
	}
	return nil
}

func runType(ctx context.Context, p *probe, e *backendEnv) error {
	a, _, err := posted(ctx, p, e)
	if err != nil {
		return err
	}
	value := a.header.Get("Content-Type")
	media, params, err := mime.ParseMediaType(value)
	charset, has := params["charset"]
	if err != nil || media != "application/json" || has && !strings.EqualFold(charset, "utf-8") {
		return p.failf("the answer's Content-Type is %q, expected application/json", value)
	}
	if coding := a.header.Get("Content-Encoding"); coding != "" {
		return p.failf("the answer's Content-Encoding is %q, which the request didn't ask for", coding)
	}
	return nil
}

func runErrorStatus(ctx context.Context, p *probe, e *backendEnv) error {
	l := e.openHTTP(p)
	for _, v := range []variant{
		{"an unknown method", ahp.KindMethod, []edit{set("method", "hooks/teleport")}},
		{"params that don't fit", ahp.KindShape, []edit{drop("params.event")}},
		{"an unsupported revision", ahp.KindVersion, []edit{set("params.protocolVersion", "2099-12-31")}},
	} {
		m, err := e.request(v.breaks, v.edits...)
		if err != nil {
			return err
		}
		a, err := l.post(ctx, m)
		if err != nil {
			return err
		}
		if a.status != http.StatusOK {
			return p.failf("%s: status %d, expected a JSON-RPC error with status 200", v.name, a.status)
		}
	}
	return nil
}

func runRedirect(ctx context.Context, p *probe, e *backendEnv) error {
	l := e.openHTTP(p)
	note, err := e.observation(0)
	if err != nil {
		return err
	}
	good, err := e.plain()
	if err != nil {
		return err
	}
	for _, m := range []message{good, note} {
		a, err := l.post(ctx, m)
		if err != nil {
			return err
		}
		if a.status >= 300 && a.status < 400 {
			return p.failf("status %d sends the message to %q; harnesses don't follow", a.status, a.header.Get("Location"))
		}
	}
	return nil
}

func runNotification(ctx context.Context, p *probe, e *backendEnv) error {
	note, err := e.observation(0)
	if err != nil {
		return err
	}
	a, err := e.openHTTP(p).post(ctx, note)
	if err != nil {
		return err
	}
	if a.status != http.StatusAccepted && a.status != http.StatusNoContent {
		return p.failf("status %d, expected 202 or 204", a.status)
	}
	return nil
}

func runMethod(ctx context.Context, p *probe, e *backendEnv) error {
	for _, name := range []string{http.MethodGet, http.MethodPut, http.MethodPatch} {
		a, _, err := posted(ctx, p, e, method(name))
		if err != nil {
			return err
		}
		if s := peek(a.raw); a.status < 300 || s != nil && s.Result != nil {
			return p.failf("%s: status %d, expected a refusal", name, a.status)
		}
	}
	return nil
}

func runAllow(ctx context.Context, p *probe, e *backendEnv) error {
	a, _, err := posted(ctx, p, e, method(http.MethodPut))
	if err != nil {
		return err
	}
	if a.status != http.StatusMethodNotAllowed || !strings.Contains(a.header.Get("Allow"), http.MethodPost) {
		return p.failf("status %d, Allow %q, expected 405 and Allow: POST", a.status, a.header.Get("Allow"))
	}
	return nil
}

func runRequestType(ctx context.Context, p *probe, e *backendEnv) error {
	for _, media := range []string{"text/plain", "application/x-www-form-urlencoded"} {
		a, _, err := posted(ctx, p, e, mediaType(media))
		if err != nil {
			return err
		}
		if s := peek(a.raw); s != nil && s.Result != nil {
			return p.failf("a body of type %s was answered with a result", media)
		}
	}
	return nil
}

func runUnsupportedType(ctx context.Context, p *probe, e *backendEnv) error {
	a, _, err := posted(ctx, p, e, mediaType("text/plain"))
	if err != nil {
		return err
	}
	if a.status != http.StatusUnsupportedMediaType {
		return p.failf("status %d, expected 415", a.status)
	}
	return nil
}

func runCharset(ctx context.Context, p *probe, e *backendEnv) error {
	for _, value := range []string{"application/json; charset=utf-8", "application/json;charset=UTF-8", "Application/JSON"} {
		a, m, err := posted(ctx, p, e, mediaType(value))
		if err != nil {
			return err
		}
		if _, err := p.wantEffects(a, m); err != nil {
			return named(value, err)
		}
	}
	return nil
}

func runTooLarge(ctx context.Context, p *probe, e *backendEnv) error {
	m, err := e.oversized()
	if err != nil {
		return err
	}
	a, err := e.openHTTP(p).post(ctx, m)
	if err != nil {
		return err
	}
	if a.status != http.StatusRequestEntityTooLarge {
		return p.failf("status %d, expected 413", a.status)
	}
	return nil
}

func runConnection(ctx context.Context, p *probe, e *backendEnv) error {
	l := e.openHTTP(p)
	reused := false
	trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { reused = info.Reused }}
	for range 3 {
		m, err := e.plain()
		if err != nil {
			return err
		}
		if _, err := l.post(httptrace.WithClientTrace(ctx, trace), m); err != nil {
			return err
		}
	}
	if !reused {
		return p.failf("each request needed a connection of its own")
	}
	return nil
}

// runConcurrent sends requests at the same time. Their ids end in "-together",
// which means nothing to a peer.
func runConcurrent(ctx context.Context, p *probe, e *backendEnv) error {
	l := e.openHTTP(p)
	errs := make([]error, 8)
	var all sync.WaitGroup
	for i := range errs {
		m, err := e.request(0, withID(e.id()+"-together")...)
		if err != nil {
			return err
		}
		all.Go(func() {
			a, err := l.post(ctx, m)
			if err == nil {
				_, err = p.wantEffects(a, &m)
			}
			errs[i] = err
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
