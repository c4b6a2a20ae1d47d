package conformance

import (
	"context"
	"strings"

	"github.com/abhed/abhed/ahp"
)

// envelopeChecks are about JSON-RPC messages that are valid.
func envelopeChecks() []backendCheck {
	return []backendCheck{
		base(root, "AHP-RPC-001.a AHP-RPC-002.a AHP-VER-001 AHP-DEC-001",
			"A valid decision request is answered with one valid response", runRoot).after(),
		base("id.text", "AHP-RPC-001.b", "An id of any text comes back unchanged", runIDText),
		base("id.integer", "AHP-RPC-001.c", "An integer id comes back as the same integer", runIDInteger),
		base("id.mismatch", "AHP-RPC-002.b", "A decision request whose id isn't its event's is refused", runIDMismatch),
		base("id.invalid", "AHP-RPC-001.d", "A message whose id is neither text nor integer gets no result", runIDInvalid),
		base("rpc.member-order", "AHP-RPC-001.e", "Members in another order, and white space, change nothing", runMemberOrder),
		base("rpc.minimal", "AHP-CORE-003.h", "An event without session, native data and extensions is answered", runMinimal),
		base("large", "AHP-RPC-001.n", "A message of several megabytes is answered", runLarge),
		base("state", "AHP-CORE-003.i", "The pending decision is accepted in all of its forms", runState),
	}
}

func runRoot(ctx context.Context, p *probe, e *backendEnv) error {
	event := e.event()
	m, err := made(intercepting(e.id(), event, everything(event)), 0)
	if err != nil {
		return err
	}
	return e.accepts(ctx, p, m)
}

// withID gives the request and its event an id.
func withID(id string) []edit { return []edit{set("id", id), set("params.event.id", id)} }

func runIDText(ctx context.Context, p *probe, e *backendEnv) error {
	unique := e.id()
	var list []variant
	for name, id := range map[string]string{
		"digits":     "17" + strings.TrimPrefix(unique, "conform-"),
		"blanks":     "  " + unique + "  ",
		"case":       strings.ToUpper(unique),
		"escapes":    unique + "\"\\/\u0001\n\u007f",
		"characters": unique + " é ü 日本 \U0001F512 \u2028",
		"long":       unique + strings.Repeat("x", 1000),
		"literal":    "null",
		"number":     "1e3",
	} {
		list = append(list, variant{name: name, edits: withID(id)})
	}
	return e.each(ctx, p, sorted(list), func(a *answer, m *message) error {
		_, err := p.wantEffects(a, m)
		return err
	})
}

func runIDInteger(ctx context.Context, p *probe, e *backendEnv) error {
	l, err := e.open(p)
	if err != nil {
		return err
	}
	for _, id := range []int{7, 0, -3, 1 << 40} {
		m, err := made(discovering(id), 0)
		if err != nil {
			return err
		}
		a, err := l.ask(ctx, m)
		if err != nil {
			return err
		}
		if s := peek(a.raw); s == nil || s.ID == nil || !sameID(s.ID, m.id) {
			return p.failf("the id of the answer is %q, expected %s", s.idText(), m.id)
		}
	}
	return nil
}

func runIDMismatch(ctx context.Context, p *probe, e *backendEnv) error {
	other := e.id()
	m, err := e.request(ahp.KindCorrelation, set("id", other))
	if err != nil {
		return err
	}
	a, err := e.asked(ctx, p, m)
	if err != nil {
		return err
	}
	return p.wantError(a, ahp.StringID(other), true, ahp.CodeInvalidRequest, ahp.CodeInvalidParams)
}

func runIDInvalid(ctx context.Context, p *probe, e *backendEnv) error {
	l, err := e.open(p)
	if err != nil {
		return err
	}
	for _, id := range []any{nil, "", true, 1.5, object{"id": "x"}, []any{"x"}} {
		m, err := e.request(ahp.KindEnvelope, set("id", id))
		if err != nil {
			return err
		}
		came, err := l.tell(ctx, m)
		if err != nil {
			return err
		}
		for _, line := range came {
			if s := peek(line); s != nil && s.Result != nil {
				return p.failf("a message with the id %v was answered with a result", id)
			}
		}
	}
	return nil
}

func runMemberOrder(ctx context.Context, p *probe, e *backendEnv) error {
	event := e.event()
	m, err := made(intercepting(e.id(), event, everything(event)), 0)
	if err != nil {
		return err
	}
	params, err := encode(object{"protocolVersion": ahp.Version, "event": event, "capabilities": everything(event)})
	if err != nil {
		return err
	}
	m.raw = []byte(" {\t\"params\" : " + string(params) + " , \"method\":\"hooks/intercept\", \"jsonrpc\" :\t\"2.0\" ,\"id\":" + m.id.String() + " } ")
	return e.accepts(ctx, p, m)
}

func runMinimal(ctx context.Context, p *probe, e *backendEnv) error {
	event := e.event()
	edits := []edit{drop("params.event.native"), drop("params.event.extensions"), drop("params.event.gaps")}
	if e.opts.Events[0] != ahp.SessionStart {
		edits = append(edits, drop("params.event.session"))
	}
	m, err := made(intercepting(e.id(), event, everything(event)), 0, edits...)
	if err != nil {
		return err
	}
	return e.accepts(ctx, p, m)
}

func runLarge(ctx context.Context, p *probe, e *backendEnv) error {
	m, err := e.request(0, set("params.event.native", strings.Repeat("0123456789abcdef", e.opts.LargeBytes/16)))
	if err != nil {
		return err
	}
	return e.accepts(ctx, p, m)
}

// runDuplicate asks the same thing twice, about calls that a policy may well
// object to, with another request in between.
func runDuplicate(ctx context.Context, p *probe, e *backendEnv) error {
	l, err := e.open(p)
	if err != nil {
		return err
	}
	for _, input := range e.inputs() {
		m, err := e.request(0, input)
		if err != nil {
			return err
		}
		between, err := e.plain()
		if err != nil {
			return err
		}
		var first, again []ahp.Effect
		for _, step := range []struct {
			m    message
			into *[]ahp.Effect
		}{{m, &first}, {between, nil}, {m, &again}} {
			a, err := l.ask(ctx, step.m)
			if err != nil {
				return err
			}
			effects, err := p.wantEffects(a, &step.m)
			if err != nil {
				return err
			}
			if step.into != nil {
				*step.into = effects
			}
		}
		if a, b := gist(first), gist(again); a != b {
			return p.failf("the repeated event was answered with [%s], the first time with [%s]", b, a)
		}
	}
	return nil
}

// gist is what a list of effects comes to: all of it but the texts for people.
func gist(effects []ahp.Effect) string {
	var out []string
	for _, effect := range effects {
		switch x := effect.(type) {
		case *ahp.Notice:
			continue
		case *ahp.Deny:
			effect = &ahp.Deny{Reason: "reason", Code: x.Code}
		case *ahp.Flow:
			effect = &ahp.Flow{Operation: x.Operation, Reason: "reason"}
			if x.Operation == ahp.FlowContinue {
				effect = &ahp.Flow{Operation: x.Operation}
			}
		}
		if raw, err := ahp.EncodeEffect(effect); err == nil {
			out = append(out, string(raw))
		}
	}
	return strings.Join(out, " ")
}

func runState(ctx context.Context, p *probe, e *backendEnv) error {
	states := []variant{
		{name: "none", edits: []edit{set("params.state", object{"permission": "none", "candidate": nil})}},
		{name: "allow", edits: []edit{set("params.state", object{"permission": "allow", "candidate": nil, "flow": "none"})}},
		{name: "ask with a candidate of null", edits: []edit{set("params.state", object{"permission": "ask", "candidate": object{"value": nil}})}},
		{name: "deny with stop", edits: []edit{set("params.state", object{"permission": "deny", "candidate": nil, "flow": "stop"})}},
		{name: "continuations and injections", edits: []edit{set("params.state", object{
			"permission": "none", "candidate": object{"value": object{"n": 0}, "provenance": object{"by": "native"}}, "flow": "continue",
			"instructions": []any{"Run the tests."}, "injections": []any{}})}},
	}
	return e.each(ctx, p, states, func(a *answer, m *message) error {
		_, err := p.wantEffects(a, m)
		return err
	})
}
