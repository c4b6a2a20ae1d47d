package ahp

import (
	"bytes"
	"reflect"

	"github.com/go-json-experiment/json/jsontext"
)

// effects reads a list of effects; any fault in it is of KindEffect.
func (r *reader) effects(out *[]Effect) error {
	if r.dec.PeekKind() != '[' {
		return asEffect(r.mismatch("AHP-DEC-001", "a list of effects"))
	}
	if _, err := r.dec.ReadToken(); err != nil {
		return err
	}
	list := []Effect{}
	for {
		k := r.dec.PeekKind()
		if k == ']' || k == jsontext.KindInvalid {
			break
		}
		e, err := r.effect()
		if err != nil {
			return asEffect(err)
		}
		list = append(list, e)
	}
	*out = list
	_, err := r.dec.ReadToken()
	return err
}

// asEffect gives an Error of this package the kind KindEffect.
func asEffect(err error) error {
	if e, ok := err.(*Error); ok {
		e.Kind = KindEffect
	}
	return err
}

func (r *reader) effect() (Effect, error) {
	p := planOf(reflect.TypeFor[wireEffect]())
	if r.dec.PeekKind() != '{' {
		return nil, r.mismatch(p.rule, "an effect object")
	}
	if _, err := r.dec.ReadToken(); err != nil {
		return nil, err
	}
	var (
		w    wireEffect
		seen bits
		v    = reflect.ValueOf(&w).Elem()
	)
	for r.dec.PeekKind() == '"' {
		name, err := r.name()
		if err != nil {
			return nil, err
		}
		i, ok := p.byName[string(name)]
		if !ok {
			return nil, r.failed(p.rule, "unknown member "+quote(string(name)), "only members that the effect has")
		}
		seen.set(i)
		if err := r.value(p.rule, &p.fields[i], v.Field(p.fields[i].index)); err != nil {
			return nil, err
		}
	}
	if _, err := r.dec.ReadToken(); err != nil {
		return nil, err
	}
	if err := r.effectMembers(p, &w, &seen); err != nil {
		return nil, err
	}
	return r.build(&w)
}

// effectMembers holds which members the effect must and may have.
func (r *reader) effectMembers(p *plan, w *wireEffect, seen *bits) error {
	if !seen.has(p.byName["type"]) {
		return r.failed(p.rule, "no member \"type\"", "that member")
	}
	var rule *effectRule
	for i := range effectRules {
		if string(effectRules[i].name) == w.Type {
			rule = &effectRules[i]
		}
	}
	if rule == nil {
		return r.fault(p.rule, &fault{at: "type", found: "the effect " + quote(w.Type), expected: "one of the eight effects"})
	}
	for i := range p.fields {
		name := p.fields[i].name
		switch need := hasWord(rule.need, name); {
		case need && !seen.has(i):
			return r.failed(rule.rule, "no member "+quote(name), "that member in the effect "+w.Type)
		case !need && seen.has(i) && !hasWord(rule.may, name):
			return r.fault(rule.rule, &fault{at: name, found: "member " + quote(name), expected: "none in the effect " + w.Type})
		}
	}
	return nil
}

// build makes the typed effect and holds the rules of its values.
func (r *reader) build(w *wireEffect) (Effect, error) {
	switch EffectType(w.Type) {
	case EffectDeny:
		return &Deny{Reason: w.Reason, Code: w.Code, Extensions: w.Extensions}, nil
	case EffectAllow:
		return &Allow{}, nil
	case EffectAsk:
		return &Ask{}, nil
	case EffectMessage:
		return &Notice{Text: *w.Text}, nil
	case EffectReturn:
		return &Return{Value: w.Value}, nil
	case EffectFlow:
		return r.buildFlow(w)
	case EffectInject:
		return r.buildInject(w)
	}
	return r.buildModify(w)
}

func (r *reader) buildFlow(w *wireEffect) (Effect, error) {
	f := &Flow{Operation: FlowOperation(w.Operation), Reason: w.Reason, Instruction: w.Instruction}
	var bad *fault
	switch {
	case f.Operation != FlowStop && f.Operation != FlowContinue:
		bad = &fault{at: "operation", found: quote(w.Operation), expected: `"stop" or "continue"`}
	case f.Operation == FlowStop && w.Reason == "":
		bad = &fault{found: "no reason", expected: "one with \"stop\""}
	case f.Operation == FlowStop && w.Instruction != "":
		bad = &fault{at: "instruction", found: "an instruction", expected: "none with \"stop\""}
	case f.Operation == FlowContinue && w.Reason != "":
		bad = &fault{at: "reason", found: "a reason", expected: "none with \"continue\""}
	}
	if bad != nil {
		return nil, r.fault("AHP-DEC-001", bad)
	}
	return f, nil
}

func (r *reader) buildInject(w *wireEffect) (Effect, error) {
	switch {
	case w.Target != "context":
		return nil, r.fault("AHP-DEC-001", &fault{at: "target", found: quote(w.Target), expected: `"context"`})
	case w.Operation != "append":
		return nil, r.fault("AHP-DEC-001", &fault{at: "operation", found: quote(w.Operation), expected: `"append"`})
	}
	var items Items
	if err := r.inside("value", w.Value).items(true, &items); err != nil {
		return nil, err
	}
	return &Inject{DeliverAt: Delivery(w.DeliverAt), Messages: items.Messages}, nil
}

func (r *reader) buildModify(w *wireEffect) (Effect, error) {
	m := &Modify{Target: Target(w.Target), Operation: Operation(w.Operation), Value: w.Value}
	if m.Operation != OpReplace && m.Operation != OpMerge {
		return nil, r.fault("AHP-EDIT-001", &fault{at: "operation", found: quote(w.Operation), expected: `"replace" or "merge"`})
	}
	sub := r.inside("value", w.Value)
	kind := jsontext.Value(w.Value).Kind()
	var err error
	switch m.Target {
	case TargetInput, TargetWorkspace:
		if kind != '{' {
			err = sub.mismatch("AHP-EDIT-001", "an object")
		}
	case TargetInstructions, TargetSummary:
		err = sub.textParts(new([]Part))
	case TargetContent:
		if kind != '{' {
			err = sub.items(true, new(Items))
		}
	case TargetOutput, TargetPrompt, TargetRequest, TargetResponse:
		err = sub.items(true, new(Items))
	default:
		err = r.fault("AHP-EDIT-001", &fault{at: "target", found: quote(w.Target), expected: "a target of modify"})
	}
	if err != nil {
		return nil, err
	}
	return m, nil
}

// textParts reads a list of text parts.
func (r *reader) textParts(out *[]Part) error {
	f := field{kind: isObjects, format: "text", elem: reflect.TypeFor[Part]()}
	return r.list("AHP-CONTENT-001", &f, reflect.ValueOf(out).Elem())
}

// inside returns a reader of value, which is the named member of the object that
// r read last.
func (r *reader) inside(name string, value Raw) *reader {
	base := r.base + string(r.dec.StackPointer()) + "/" + name
	return &reader{dec: jsontext.NewDecoder(bytes.NewReader(value)), base: base}
}
