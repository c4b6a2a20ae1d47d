package ahp

import (
	"reflect"
	"slices"
)

// Capabilities says which effects a request accepts: a backend may return these
// and nothing else (§9).
type Capabilities struct {
	Effects []EffectType `json:"effects" ahp:"req,uniq"`
	// Modify is set exactly where Effects lists "modify".
	Modify map[Target]ModifyCapability `json:"modify" ahp:"min1,enum=input|output|prompt|request|response|content|instructions|summary|workspace"`
	// Flow is set exactly where Effects lists "flow".
	Flow *FlowCapability `json:"flow"`
	// Inject is set exactly where Effects lists "inject".
	Inject      *InjectCapability      `json:"inject"`
	Elicitation *ElicitationCapability `json:"elicitation"`
	Unknown     `json:"-"`
}

// ModifyCapability says how one target may be edited; at least one is true.
type ModifyCapability struct {
	Replace bool `json:"replace" ahp:"req"`
	Merge   bool `json:"merge" ahp:"req"`
	Unknown `json:"-"`
}

// FlowCapability says which flow operations are accepted. The two counts are set
// where "continue" is.
type FlowCapability struct {
	Operations             []FlowOperation `json:"operations" ahp:"req,min1,uniq,enum=stop|continue"`
	RemainingContinuations *int64          `json:"remainingContinuations" ahp:"nonneg"`
	ContinuationCount      *int64          `json:"continuationCount" ahp:"nonneg"`
	MaxContinuations       *int64          `json:"maxContinuations" ahp:"nonneg"`
	Unknown                `json:"-"`
}

// InjectCapability says how context may be injected.
type InjectCapability struct {
	Context ContextInjection `json:"context" ahp:"req"`
	Unknown `json:"-"`
}

// ContextInjection says when injected context may be added. Append is true.
type ContextInjection struct {
	Append    bool       `json:"append" ahp:"req"`
	DeliverAt []Delivery `json:"deliverAt" ahp:"req,min1,uniq,enum=now|next_turn"`
	Unknown   `json:"-"`
}

// ElicitationCapability says in which modes an elicitation may be answered; the
// modes are independent.
type ElicitationCapability struct {
	Form    *ElicitationMode `json:"form"`
	URL     *ElicitationMode `json:"url"`
	Unknown `json:"-"`
}

// ElicitationMode is an empty object.
type ElicitationMode struct {
	Unknown `json:"-"`
}

// Has reports whether c lists the effect.
func (c *Capabilities) Has(t EffectType) bool { return c != nil && slices.Contains(c.Effects, t) }

func checkModifyCapability(c *ModifyCapability) *fault {
	if !c.Replace && !c.Merge {
		return &fault{found: "neither replace nor merge", expected: "at least one of them true"}
	}
	return nil
}

func checkFlowCapability(c *FlowCapability) *fault {
	if slices.Contains(c.Operations, FlowContinue) && (c.RemainingContinuations == nil || c.ContinuationCount == nil) {
		return &fault{found: "no remainingContinuations or continuationCount", expected: "both with \"continue\""}
	}
	return nil
}

func checkCapabilities(c *Capabilities) *fault {
	for i, e := range c.Effects {
		if !e.Known() && !isReverseDNS(string(e)) {
			return &fault{at: "effects/" + itoa(i), found: quote(string(e)), expected: "one of the eight effects"}
		}
	}
	blocks := []struct {
		effect EffectType
		set    bool
	}{{EffectModify, c.Modify != nil}, {EffectFlow, c.Flow != nil}, {EffectInject, c.Inject != nil}}
	for _, b := range blocks {
		if c.Has(b.effect) != b.set {
			return &fault{found: "the block " + quote(string(b.effect)) + " and the effect not together", expected: "both or neither"}
		}
	}
	if c.Inject != nil && !c.Inject.Context.Append {
		return &fault{at: "inject/context/append", found: "false", expected: "true"}
	}
	return nil
}

// bounded returns how c goes beyond what may be advertised at t, or nil (§10).
func (c *Capabilities) bounded(t EventType) *fault {
	rule := ruleOf(t)
	for i, e := range c.Effects {
		if rule == nil || !hasWord(rule.effects, string(e)) {
			return &fault{at: "effects/" + itoa(i), found: quote(string(e)), expected: "an effect that " + string(t) + " allows: " + rule.effectsOrNone()}
		}
	}
	for target := range c.Modify {
		if target != rule.target {
			return &fault{at: "modify/" + string(target), found: "the target " + quote(string(target)), expected: quote(string(rule.target)) + " at " + string(t)}
		}
	}
	if c.Flow != nil {
		for i, op := range c.Flow.Operations {
			if !hasWord(rule.flow, string(op)) {
				return &fault{at: "flow/operations/" + itoa(i), found: quote(string(op)), expected: "an operation that " + string(t) + " allows"}
			}
		}
	}
	return nil
}

func (r *eventRule) effectsOrNone() string {
	if r == nil || r.effects == "" {
		return "none"
	}
	return r.effects
}

// Validate reports how c breaks the rules of an advertisement at event type t, or
// nil. The error is an *Error. It looks at the value itself, because a harness
// calls it before every decision: a test holds that it agrees with the decoder.
func (c *Capabilities) Validate(t EventType) error {
	f := c.values()
	if f == nil {
		f = checkCapabilities(c)
	}
	if f == nil {
		f = c.bounded(t)
	}
	if f == nil {
		return nil
	}
	return &Error{Kind: KindShape, Pointer: "/" + f.at, Offset: -1, Found: f.found, Expected: f.expected, Requirement: "AHP-CAP-001"}
}

// values holds the rules that the tags of the capability types state.
func (c *Capabilities) values() *fault {
	if i := repeated(c.Effects); i >= 0 {
		return &fault{at: "effects/" + itoa(i), found: "a repeated item", expected: "each item once"}
	}
	for target, m := range c.Modify {
		if f := checkModifyCapability(&m); f != nil {
			f.at = "modify/" + string(target)
			return f
		}
	}
	if c.Modify != nil && len(c.Modify) == 0 {
		return &fault{at: "modify", found: "no target", expected: "at least one"}
	}
	if f := c.Flow; f != nil {
		for _, n := range []*int64{f.RemainingContinuations, f.ContinuationCount, f.MaxContinuations} {
			if n != nil && *n < 0 {
				return &fault{at: "flow", found: "a negative count", expected: "counts of 0 or more"}
			}
		}
		if len(f.Operations) == 0 || repeated(f.Operations) >= 0 {
			return &fault{at: "flow/operations", found: "no operation, or one twice", expected: "at least one, each once"}
		}
		if bad := checkFlowCapability(f); bad != nil {
			bad.at = "flow"
			return bad
		}
	}
	if c.Inject != nil {
		list := c.Inject.Context.DeliverAt
		other := slices.ContainsFunc(list, func(d Delivery) bool { return d != DeliverNow && d != DeliverNextTurn })
		if len(list) == 0 || other || repeated(list) >= 0 {
			return &fault{at: "inject/context/deliverAt", found: "no delivery, an unknown one, or one twice", expected: `"now", "next_turn" or both`}
		}
	}
	return nil
}

// repeated returns the index of the first item that was there before, or -1.
func repeated[T comparable](list []T) int {
	for i := range list {
		if slices.Contains(list[:i], list[i]) {
			return i
		}
	}
	return -1
}

// Accepts reports why an effect may not be returned to a request that advertised
// c, or nil. The error is an *Error of KindCapability or KindApplication, without
// a pointer.
func (c *Capabilities) Accepts(e Effect) error {
	refuse := func(what string) error {
		return &Error{Kind: KindCapability, Offset: -1, Found: what, Expected: "what the request advertised", Requirement: "AHP-CAP-001"}
	}
	if e == nil || reflect.ValueOf(e).IsNil() {
		return refuse("a nil effect")
	}
	if !c.Has(e.EffectType()) {
		return refuse("the effect " + quote(string(e.EffectType())))
	}
	switch e := e.(type) {
	case *Modify:
		m, ok := c.Modify[e.Target]
		if !ok {
			return refuse("the target " + quote(string(e.Target)))
		}
		if e.Operation == OpReplace && !m.Replace || e.Operation == OpMerge && !m.Merge {
			return refuse(string(e.Operation) + " of " + quote(string(e.Target)))
		}
	case *Flow:
		if c.Flow == nil || !slices.Contains(c.Flow.Operations, e.Operation) {
			return refuse("the flow operation " + quote(string(e.Operation)))
		}
		if e.Operation == FlowContinue && !c.Flow.mayContinue() {
			return &Error{Kind: KindApplication, Offset: -1, Found: "a continuation", Expected: "none: no allowance is left", Requirement: "AHP-CAP-001"}
		}
	case *Inject:
		if c.Inject == nil || !slices.Contains(c.Inject.Context.DeliverAt, e.DeliverAt) {
			return refuse("an injection for " + quote(string(e.DeliverAt)))
		}
	}
	return nil
}

// mayContinue reports whether a continuation is left.
func (c *FlowCapability) mayContinue() bool {
	if c.RemainingContinuations == nil || *c.RemainingContinuations <= 0 {
		return false
	}
	return c.MaxContinuations == nil || c.ContinuationCount == nil || *c.ContinuationCount < *c.MaxContinuations
}

// Within reports whether c advertises nothing beyond wider: a request may narrow
// the static manifest and never widen it (§9).
func (c *Capabilities) Within(wider *Capabilities) bool {
	for _, e := range c.Effects {
		if !wider.Has(e) {
			return false
		}
	}
	for target, m := range c.Modify {
		w := wider.Modify[target]
		if m.Replace && !w.Replace || m.Merge && !w.Merge {
			return false
		}
	}
	if c.Flow != nil {
		for _, op := range c.Flow.Operations {
			if wider.Flow == nil || !slices.Contains(wider.Flow.Operations, op) {
				return false
			}
		}
	}
	if c.Inject != nil {
		for _, d := range c.Inject.Context.DeliverAt {
			if wider.Inject == nil || !slices.Contains(wider.Inject.Context.DeliverAt, d) {
				return false
			}
		}
	}
	if e := c.Elicitation; e != nil {
		w := wider.Elicitation
		if e.Form != nil && (w == nil || w.Form == nil) || e.URL != nil && (w == nil || w.URL == nil) {
			return false
		}
	}
	return true
}
