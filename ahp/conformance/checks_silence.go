package conformance

import (
	"context"
	"strings"

	"github.com/abhed/abhed/ahp"
)

// silenceChecks are about notifications: nothing comes back, ever.
func silenceChecks() []backendCheck {
	observe := func(id, requirements, about string, run func(context.Context, *probe, *backendEnv) error) backendCheck {
		return must(id, requirements, ProfileObservation, about, everywhere(), run).level(MustNot)
	}
	return []backendCheck{
		observe("observe.valid", "AHP-RPC-002.c", "An observation of any event gets no answer", runObserveValid),
		observe("observe.malformed", "AHP-RPC-002.c", "A malformed observation gets no answer", runObserveMalformed),
		observe("observe.version", "AHP-VER-001.d", "An observation of an unsupported revision gets no answer", runObserveVersion),
		observe("observe.event", "AHP-RPC-002.c", "An observation of an unknown event gets no answer", runObserveEvent),
		observe("observe.id", "AHP-RPC-002.c", "An observation with an id gets no result", runObserveID),
		base("notification.unknown", "AHP-RPC-002.c", "A notification of an unknown method gets no answer", runNotifyUnknown).level(MustNot),
		base("notification.intercept", "AHP-RPC-002.c", "A decision request without an id gets no answer", runNotifyIntercept).level(MustNot),
		must("observe.between", "AHP-RPC-002.c", ProfileObservation, "Observations between requests leave the answers alone", []Binding{StdioPersistent, HTTP}, runObserveBetween),
	}
}

// silent holds that each notification gets no answer.
func silent(ctx context.Context, p *probe, e *backendEnv, variants ...variant) error {
	l, err := e.open(p)
	if err != nil {
		return err
	}
	for i, v := range variants {
		m, err := e.observation(v.breaks, v.edits...)
		if err != nil {
			return err
		}
		if i == len(variants)-1 {
			err = p.quiet(ctx, l, m)
		} else {
			var came [][]byte
			if came, err = l.tell(ctx, m); err == nil && len(came) > 0 {
				err = p.failf("%q came for a message that calls for no answer", clip(came[0]))
			}
		}
		if err != nil {
			return named(v.name, err)
		}
	}
	return nil
}

func runObserveValid(ctx context.Context, p *probe, e *backendEnv) error {
	var variants []variant
	for _, event := range samples("") {
		variants = append(variants, variant{name: event["type"].(string), edits: []edit{func(m object) {
			id, _ := at(m, "params.event.id")
			event["id"] = id["id"]
			m["params"].(object)["event"] = event
		}}})
	}
	return silent(ctx, p, e, variants...)
}

func runObserveMalformed(ctx context.Context, p *probe, e *backendEnv) error {
	return silent(ctx, p, e,
		variant{"no time", ahp.KindShape, []edit{drop("params.event.time")}},
		variant{"no params", ahp.KindEnvelope, []edit{drop("params")}},
		variant{"params of another type", ahp.KindShape, []edit{set("params", []any{})}},
		variant{"another JSON-RPC version", ahp.KindEnvelope, []edit{set("jsonrpc", "1.0")}})
}

func runObserveVersion(ctx context.Context, p *probe, e *backendEnv) error {
	return silent(ctx, p, e, variant{"a later one", ahp.KindVersion, []edit{set("params.protocolVersion", "2099-12-31")}})
}

func runObserveEvent(ctx context.Context, p *probe, e *backendEnv) error {
	return silent(ctx, p, e, variant{"an unknown one", ahp.KindEvent, []edit{set("params.event.type", "tool.teleport")}})
}

func runObserveID(ctx context.Context, p *probe, e *backendEnv) error {
	l, err := e.open(p)
	if err != nil {
		return err
	}
	m, err := e.observation(ahp.KindEnvelope, set("id", e.id()))
	if err != nil {
		return err
	}
	came, err := l.tell(ctx, m)
	if err != nil {
		return err
	}
	for _, line := range came {
		if s := peek(line); s != nil && s.Result != nil {
			return p.failf("an observation was answered with a result")
		}
	}
	return nil
}

// quietly holds that a message, which is no observation, gets no answer.
func quietly(ctx context.Context, p *probe, e *backendEnv, m message, err error) error {
	if err != nil {
		return err
	}
	l, err := e.open(p)
	if err != nil {
		return err
	}
	return p.quiet(ctx, l, m)
}

func runNotifyUnknown(ctx context.Context, p *probe, e *backendEnv) error {
	m, err := e.observation(ahp.KindMethod, set("method", "hooks/teleport"))
	return quietly(ctx, p, e, m, err)
}

func runNotifyIntercept(ctx context.Context, p *probe, e *backendEnv) error {
	m, err := e.request(ahp.KindEnvelope, drop("id"))
	return quietly(ctx, p, e, m, err)
}

func runObserveBetween(ctx context.Context, p *probe, e *backendEnv) error {
	l, err := e.open(p)
	if err != nil {
		return err
	}
	for i := range 20 {
		// Large and small ones in turn: they may take the backend longer than a request.
		note, err := e.observation(0, set("params.event.native", strings.Repeat("x", i%3*40_000)))
		if err != nil {
			return err
		}
		came, err := l.tell(ctx, note)
		if err != nil {
			return err
		}
		if len(came) > 0 {
			return p.failf("%q came for an observation", clip(came[0]))
		}
		m, err := e.plain()
		if err != nil {
			return err
		}
		a, err := l.ask(ctx, m)
		if err != nil {
			return err
		}
		if _, err := p.wantEffects(a, &m); err != nil {
			return err
		}
	}
	return nil
}
