package ahp

import "reflect"

// EffectType names one of the eight effects (§8).
type EffectType string

// The effects.
const (
	EffectDeny    EffectType = "deny"
	EffectAllow   EffectType = "allow"
	EffectAsk     EffectType = "ask"
	EffectModify  EffectType = "modify"
	EffectMessage EffectType = "message"
	EffectReturn  EffectType = "return"
	EffectFlow    EffectType = "flow"
	EffectInject  EffectType = "inject"
)

// Effect is one of the eight effects: a closed set of *Deny, *Allow, *Ask,
// *Modify, *Notice, *Return, *Flow and *Inject.
type Effect interface {
	// EffectType returns the effect's name on the wire.
	EffectType() EffectType
	wire() *wireEffect
}

// Deny refuses the operation. It wins over everything.
type Deny struct {
	// Reason isn't empty.
	Reason string
	// Code is a reverse-DNS name, or "".
	Code       string
	Extensions Extensions
}

// Allow may skip an ordinary prompt of the host. It can't beat a deny or an ask.
type Allow struct{}

// Ask requires the host's approval before the operation runs.
type Ask struct{}

// Target names what a modify effect edits.
type Target string

// The targets; each event has at most one (§10).
const (
	TargetInput        Target = "input"
	TargetOutput       Target = "output"
	TargetPrompt       Target = "prompt"
	TargetRequest      Target = "request"
	TargetResponse     Target = "response"
	TargetContent      Target = "content"
	TargetInstructions Target = "instructions"
	TargetSummary      Target = "summary"
	TargetWorkspace    Target = "workspace"
)

// Operation is how a modify effect edits.
type Operation string

// The operations. Merge overwrites top-level members of an object, and appends to
// a list.
const (
	OpReplace Operation = "replace"
	OpMerge   Operation = "merge"
)

// Modify edits the effective value of the operation. Value is an object for
// "input" and "workspace", a list of text parts for "instructions" and
// "summary", an object or a list of messages for "content", and a list of
// messages for every other target.
type Modify struct {
	Target    Target
	Operation Operation
	Value     Raw
}

// Notice is the effect "message": a text for the user.
type Notice struct {
	Text string
}

// Return supplies a result, so that the operation isn't executed.
type Return struct {
	// Value is any JSON; null, false, 0 and "" are real values.
	Value Raw
}

// FlowOperation is what a flow effect asks of the turn.
type FlowOperation string

// The flow operations.
const (
	FlowStop     FlowOperation = "stop"
	FlowContinue FlowOperation = "continue"
)

// Flow stops the turn, for a Reason, or asks for one step more, perhaps with an
// Instruction.
type Flow struct {
	Operation   FlowOperation
	Reason      string
	Instruction string
}

// Delivery says when injected context is added.
type Delivery string

// The deliveries.
const (
	DeliverNow      Delivery = "now"
	DeliverNextTurn Delivery = "next_turn"
)

// Inject adds messages to the model's context.
type Inject struct {
	DeliverAt Delivery
	Messages  []Message
}

// EffectType returns EffectDeny.
func (*Deny) EffectType() EffectType { return EffectDeny }

// EffectType returns EffectAllow.
func (*Allow) EffectType() EffectType { return EffectAllow }

// EffectType returns EffectAsk.
func (*Ask) EffectType() EffectType { return EffectAsk }

// EffectType returns EffectModify.
func (*Modify) EffectType() EffectType { return EffectModify }

// EffectType returns EffectMessage.
func (*Notice) EffectType() EffectType { return EffectMessage }

// EffectType returns EffectReturn.
func (*Return) EffectType() EffectType { return EffectReturn }

// EffectType returns EffectFlow.
func (*Flow) EffectType() EffectType { return EffectFlow }

// EffectType returns EffectInject.
func (*Inject) EffectType() EffectType { return EffectInject }

// wireEffect has the members of all effects; effectRules says which effect has
// which.
type wireEffect struct {
	Type        string     `json:"type" ahp:"req"`
	Reason      string     `json:"reason" ahp:"min1"`
	Code        string     `json:"code" ahp:"rdns"`
	Extensions  Extensions `json:"extensions"`
	Target      string     `json:"target" ahp:"min1"`
	Operation   string     `json:"operation" ahp:"min1"`
	DeliverAt   string     `json:"deliverAt" ahp:"enum=now|next_turn"`
	Value       Raw        `json:"value"`
	Text        *string    `json:"text"`
	Instruction string     `json:"instruction" ahp:"min1"`
}

type effectRule struct {
	name      EffectType
	need, may string
	rule      string
}

var effectRules = [...]effectRule{
	{name: EffectDeny, need: "type reason", may: "code extensions", rule: "AHP-DEC-001"},
	{name: EffectAllow, need: "type", rule: "AHP-DEC-001"},
	{name: EffectAsk, need: "type", rule: "AHP-DEC-001"},
	{name: EffectModify, need: "type target operation value", rule: "AHP-EDIT-001"},
	{name: EffectMessage, need: "type text", rule: "AHP-DEC-001"},
	{name: EffectReturn, need: "type value", rule: "AHP-DEC-001"},
	{name: EffectFlow, need: "type operation", may: "reason instruction", rule: "AHP-DEC-001"},
	{name: EffectInject, need: "type target operation deliverAt value", rule: "AHP-CONTENT-001"},
}

// Known reports whether t is one of the eight effects.
func (t EffectType) Known() bool {
	for i := range effectRules {
		if effectRules[i].name == t {
			return true
		}
	}
	return false
}

func (e *Deny) wire() *wireEffect {
	return &wireEffect{Type: "deny", Reason: e.Reason, Code: e.Code, Extensions: e.Extensions}
}
func (*Allow) wire() *wireEffect { return &wireEffect{Type: "allow"} }
func (*Ask) wire() *wireEffect   { return &wireEffect{Type: "ask"} }
func (e *Modify) wire() *wireEffect {
	return &wireEffect{Type: "modify", Target: string(e.Target), Operation: string(e.Operation), Value: nonNil(e.Value)}
}
func (e *Notice) wire() *wireEffect { return &wireEffect{Type: "message", Text: &e.Text} }
func (e *Return) wire() *wireEffect { return &wireEffect{Type: "return", Value: nonNil(e.Value)} }
func (e *Flow) wire() *wireEffect {
	return &wireEffect{Type: "flow", Operation: string(e.Operation), Reason: e.Reason, Instruction: e.Instruction}
}
func (e *Inject) wire() *wireEffect {
	list := encodeMessages(e.Messages)
	return &wireEffect{Type: "inject", Target: "context", Operation: "append", DeliverAt: string(e.DeliverAt), Value: list}
}

func nonNil(r Raw) Raw {
	if r == nil {
		return Raw("null")
	}
	return r
}

// encodeMessages returns the messages as a JSON list; a list that can't be
// encoded gives a text that isn't JSON, which the writer refuses in its place.
func encodeMessages(m []Message) Raw {
	w := &writer{}
	f := field{kind: isObjects, elem: reflect.TypeFor[Message]()}
	w.value(&f, reflect.ValueOf(m))
	if b, err := w.done(); err == nil {
		return b
	}
	return Raw("\xff")
}

// effect writes one effect, which is an Effect.
func (w *writer) effect(e any) {
	eff, ok := e.(Effect)
	if !ok || reflect.ValueOf(e).IsNil() {
		w.fail("", "a nil effect", "one of the eight effects")
		return
	}
	w.object(planOf(reflect.TypeFor[wireEffect]()), reflect.ValueOf(eff.wire()).Elem())
}

// EncodeEffect returns e as JSON. It checks e's shape.
func EncodeEffect(e Effect) (Raw, error) {
	w := &writer{}
	w.effect(e)
	b, err := w.done()
	if err != nil {
		return nil, err
	}
	if _, err := DecodeEffects(append(append([]byte{'['}, b...), ']')); err != nil {
		return nil, withoutOffset(err)
	}
	return b, nil
}

// DecodeEffects decodes a list of effects, refusing the whole list for one
// that is unknown or malformed (§4, §8).
func DecodeEffects(data []byte) ([]Effect, error) {
	var out []Effect
	err := open(data, func(r *reader) error { return r.effects(&out) })
	return out, err
}
