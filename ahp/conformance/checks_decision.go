package conformance

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/harness"
)

// decisionChecks are about effects.
func decisionChecks() []backendCheck {
	decision := func(id, requirements, about string, run func(context.Context, *probe, *backendEnv) error) backendCheck {
		return must(id, requirements, ProfileToolInterception, about, everywhere(), run)
	}
	return []backendCheck{
		decision("events.claimed", "AHP-DEC-001.a AHP-CONTENT-001 AHP-EDIT-001", "Every event type that is claimed is answered with effects", runClaimed),
		decision("events.all", "AHP-DEC-001.a AHP-DEC-001.b", "Every other event type is answered with valid effects, or with -32002", runAllEvents),
		decision("effects.full", "AHP-DEC-001 AHP-CAP-001", "Where everything is advertised the effects are valid", runFull),
		decision("effects.narrow", "AHP-CAP-001.a AHP-CAP-002", "Where little is advertised nothing else is returned", runNarrow),
		decision("effects.message", "AHP-CAP-001.a", "Where only messages, or nothing, may be returned nothing else is", runMessageOnly),
		decision("effects.options", "AHP-CAP-001.b", "The options of edits, flow and elicitation are kept", runOptions),
		base("duplicate", "AHP-CORE-004", "A repeated event is answered equivalently", runDuplicate).after(root, "effects.full"),
		base("extensions", "AHP-EXT-001", "An unknown extension is accepted and changes no decision", runExtensions).after(root, "effects.full"),
		decision("deny", "AHP-DEC-002", "What is to be denied is denied, even where only deny is advertised", runDeny),
	}
}

func runClaimed(ctx context.Context, p *probe, e *backendEnv) error {
	l, err := e.open(p)
	if err != nil {
		return err
	}
	for _, t := range e.opts.Events {
		for _, event := range samples(t) {
			m, err := made(intercepting(e.id(), event, everything(event)), 0)
			if err != nil {
				return err
			}
			a, err := l.ask(ctx, m)
			if err == nil {
				_, err = p.wantEffects(a, &m)
			}
			if err != nil {
				return named(string(t), err)
			}
		}
	}
	return nil
}

// interceptable returns the samples of what can be intercepted, but for those of
// the given types.
func interceptable(without ...ahp.EventType) []object {
	skip := map[ahp.EventType]bool{}
	for _, t := range without {
		skip[t] = true
	}
	var out []object
	for _, event := range samples("") {
		if t := ahp.EventType(event["type"].(string)); t.Interceptable() && !skip[t] {
			out = append(out, event)
		}
	}
	return out
}

func runAllEvents(ctx context.Context, p *probe, e *backendEnv) error {
	l, err := e.open(p)
	if err != nil {
		return err
	}
	taken := map[string]bool{}
	var names []string
	for _, event := range interceptable(e.opts.Events...) {
		name := event["type"].(string)
		m, err := made(intercepting(e.id(), event, everything(event)), 0)
		if err != nil {
			return err
		}
		a, err := l.ask(ctx, m)
		switch {
		case err != nil:
		case unsupported(a):
			err = p.wantError(a, m.id, false, ahp.CodeUnsupportedEvent)
		default:
			if _, err = p.wantEffects(a, &m); err == nil && !taken[name] {
				taken[name] = true
				names = append(names, name)
			}
		}
		if err != nil {
			return named(name, err)
		}
	}
	if len(names) > 0 {
		p.note("also answers %s", strings.Join(names, ", "))
	}
	return nil
}

// within holds that the answer to each input is valid for capabilities that narrow
// makes of the full ones.
func (e *backendEnv) within(ctx context.Context, p *probe, l link, name string, narrow func(object) object) (effects int, err error) {
	for _, input := range e.inputs() {
		event := e.event()
		m, err := made(intercepting(e.id(), event, narrow(everything(event))), 0, input)
		if err != nil {
			return effects, err
		}
		a, err := l.ask(ctx, m)
		if err != nil {
			return effects, named(name, err)
		}
		got, err := p.wantEffects(a, &m)
		if err != nil {
			return effects, named(name, err)
		}
		effects += len(got)
	}
	return effects, nil
}

func runFull(ctx context.Context, p *probe, e *backendEnv) error {
	l, err := e.open(p)
	if err != nil {
		return err
	}
	n, err := e.within(ctx, p, l, "everything advertised", func(c object) object { return c })
	if err == nil && n == 0 {
		p.note("the peer returned no effect for anything that was tried; an input that it denies shows more (deny input)")
	}
	return err
}

func runNarrow(ctx context.Context, p *probe, e *backendEnv) error {
	l, err := e.open(p)
	if err != nil {
		return err
	}
	// A harness always offers deny at tool.before (AHP-CAP-002).
	for _, more := range [][]ahp.EffectType{
		nil, {ahp.EffectMessage}, {ahp.EffectAsk}, {ahp.EffectAllow, ahp.EffectMessage}, {ahp.EffectModify}, {ahp.EffectReturn}, {ahp.EffectFlow}, {ahp.EffectInject},
	} {
		keep := append([]ahp.EffectType{ahp.EffectDeny}, more...)
		if _, err := e.within(ctx, p, l, fmt.Sprintf("%v advertised", keep), func(c object) object { return only(c, keep...) }); err != nil {
			return err
		}
	}
	return nil
}

// runMessageOnly looks at every event but tool.before, where deny is always
// offered. An error instead of effects is no effect that wasn't offered.
func runMessageOnly(ctx context.Context, p *probe, e *backendEnv) error {
	l, err := e.open(p)
	if err != nil {
		return err
	}
	refused := 0
	for _, event := range interceptable(ahp.ToolBefore) {
		for _, keep := range [][]ahp.EffectType{{ahp.EffectMessage}, {}} {
			m, err := made(intercepting(e.id(), event, only(everything(event), keep...)), 0)
			if err != nil {
				return err
			}
			a, err := l.ask(ctx, m)
			if err != nil {
				return err
			}
			if s := peek(a.raw); s != nil && s.Error != nil {
				refused++
				continue
			}
			if _, err := p.wantEffects(a, &m); err != nil {
				return named(fmt.Sprintf("%s with %v advertised", event["type"], keep), err)
			}
		}
	}
	if refused > 0 {
		p.note("%d requests were answered with an error, which is no effect", refused)
	}
	return nil
}

// runOptions narrows the options of effects, not the list. Events that the peer
// doesn't take are left out.
func runOptions(ctx context.Context, p *probe, e *backendEnv) error {
	l, err := e.open(p)
	if err != nil {
		return err
	}
	for _, event := range interceptable() {
		options := narrowings(event)
		for _, name := range slices.Sorted(maps.Keys(options)) {
			m, err := made(intercepting(e.id(), event, everything(event)), 0, options[name])
			if err != nil {
				return err
			}
			a, err := l.ask(ctx, m)
			if err != nil {
				return err
			}
			q := m.intercept()
			if s := peek(a.raw); q == nil || s != nil && s.Error != nil {
				continue
			}
			if err := keepsOptions(p, q, a); err != nil {
				return named(fmt.Sprintf("%s with %s", event["type"], name), err)
			}
		}
	}
	return nil
}

// keepsOptions is wantEffects for a request of any event.
func keepsOptions(p *probe, q *ahp.Intercept, a *answer) error {
	o, err := harness.Evaluate(q, a.raw)
	var broken *ahp.Error
	switch {
	case errors.As(err, &broken):
		return p.failf("the answer breaks the protocol: %v", broken)
	case err != nil:
		return err
	}
	if e := q.Event.Elicitation; e != nil && !granted(q, e.Mode) {
		for _, effect := range o.Trace[0].Effects {
			if effect.EffectType() != ahp.EffectMessage {
				return p.failf("effect %s, though the request grants no answer in mode %s", effect.EffectType(), e.Mode)
			}
		}
	}
	return nil
}

// narrowings returns what can be taken from the options of an event's full
// capabilities.
func narrowings(event object) map[string]edit {
	out := map[string]edit{}
	caps := everything(event)
	if modify, is := caps["modify"].(object); is {
		for target := range modify {
			out["no replacing"] = set("params.capabilities.modify", object{target: object{"replace": false, "merge": true}})
			if !hidesText(event) {
				out["no merging"] = set("params.capabilities.modify", object{target: object{"replace": true, "merge": false}})
			}
		}
	}
	if flow, is := caps["flow"].(object); is && len(flow["operations"].([]any)) > 1 {
		out["no continuation left"] = set("params.capabilities.flow", object{"operations": []any{"stop", "continue"}, "remainingContinuations": 0, "continuationCount": 3, "maxContinuations": 3})
		out["no continuing"] = set("params.capabilities.flow", object{"operations": []any{"stop"}})
	}
	if _, is := caps["inject"]; is {
		out["injections for the next turn alone"] = set("params.capabilities.inject", object{"context": object{"append": true, "deliverAt": []any{"next_turn"}}})
	}
	if _, is := caps["elicitation"]; is {
		out["no mode granted"] = set("params.capabilities.elicitation", object{})
	}
	return out
}

func runDeny(ctx context.Context, p *probe, e *backendEnv) error {
	if !e.ofTool() || e.opts.DenyInput == nil {
		return p.notApplicable("no tool input is known that the peer denies; give one (deny input)")
	}
	l, err := e.open(p)
	if err != nil {
		return err
	}
	for _, narrow := range []func(object) object{
		func(c object) object { return c }, func(c object) object { return only(c, ahp.EffectDeny) },
	} {
		event := e.event()
		m, err := made(intercepting(e.id(), event, narrow(everything(event))), 0, set("params.event.tool.input", e.opts.DenyInput))
		if err != nil {
			return err
		}
		a, err := l.ask(ctx, m)
		if err != nil {
			return err
		}
		effects, err := p.wantEffects(a, &m)
		if err != nil {
			return err
		}
		denied := false
		for _, effect := range effects {
			denied = denied || effect.EffectType() == ahp.EffectDeny
		}
		if !denied {
			return p.failf("no deny among the effects [%s]", gist(effects))
		}
	}
	return nil
}
