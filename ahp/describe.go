package ahp

import (
	"maps"
	"reflect"
	"strings"
)

// Description is the shape rules of this package as data, for programs that write
// them down in another form, such as JSON Schema. It is read off what the decoders
// use, and is no second copy; the rules that span members are in neither.
type Description struct {
	// Shapes holds each kind of object once, every one before those that it is made
	// of.
	Shapes []Shape
	// Envelope names the members of Event that every event type may have, and
	// EnvelopeRequired those that it must.
	Envelope, EnvelopeRequired []string
	// Events is the event table in the order of the specification (§6). The bounds
	// of capabilities are for EventType.Effects, Target and FlowOperations.
	Events []EventShape
	// Effects is the effect table (§8): which members of the Shape "Effect" each
	// effect has.
	Effects []EffectShape
}

// Shape describes one kind of object.
type Shape struct {
	// Name is that of the Go type; "Effect" has the members of all effects.
	Name string
	// Open objects ignore unknown members; others refuse them (§4).
	Open    bool
	Members []Member
}

// Member describes one member of an object.
type Member struct {
	Name string
	// Type is "string", "boolean", "integer", "object", "any" for any JSON value,
	// "extensions" for an object with reverse-DNS names, or "items" for a list that
	// holds messages or bare parts, by event type.
	Type string
	// List and Map tell that the member is a list of such values, or an object whose
	// names are data.
	List, Map bool
	// Of names the Shape of an object; "" is any object.
	Of string
	// Required members are always there; Nullable ones may be null.
	Required, Nullable bool
	// NotEmpty bounds a string, list or map; EachNotEmpty the strings of a list.
	NotEmpty, EachNotEmpty, Unique bool
	// Positive integers are 1 or more, NonNegative ones 0 or more.
	Positive, NonNegative bool
	// Closed tells that the objects of a list are closed here, if not elsewhere.
	Closed bool
	// Enum holds the allowed strings; of a map of objects, the known names: others
	// are ignored.
	Enum []string
	// Format is a grammar (uri, time, rdns, sha256, httpurl, https, env, currency), or
	// what a value of type "any" is: num is a number of 0 or more, strint a string
	// or an integer. A list of parts of the format text holds text parts alone.
	Format string
}

// EventShape describes one event type. A member of Event that is in none of its
// lists, nor in the envelope, is ignored in such an event.
type EventShape struct {
	Type EventType
	// Messages tells that items are messages, and not bare parts.
	Messages                      bool
	Required, Optional, Forbidden []string
	// Enums holds the allowed strings of members that have others elsewhere.
	Enums map[string][]string
}

// EffectShape describes one effect, which has no other members.
type EffectShape struct {
	Type               EffectType
	Required, Optional []string
}

// Describe returns the description of this revision. The result is the caller's.
func Describe() Description {
	d := Description{Envelope: append(strings.Fields(envelopeMembers), "type"), EnvelopeRequired: strings.Fields(envelopeRequired)}
	seen := map[reflect.Type]bool{}
	for _, t := range []reflect.Type{
		reflect.TypeFor[Event](), reflect.TypeFor[wireEffect](), reflect.TypeFor[Capabilities](), reflect.TypeFor[State](),
		reflect.TypeFor[Manifest](), reflect.TypeFor[Registration](), reflect.TypeFor[RPCError](), reflect.TypeFor[Receipt](),
	} {
		d.add(t, seen)
	}
	for i := range eventRules {
		r := &eventRules[i]
		e := EventShape{Type: r.name, Messages: r.messages, Required: strings.Fields(r.need), Optional: strings.Fields(r.may),
			Forbidden: strings.Fields(r.never), Enums: map[string][]string{}}
		maps.Insert(e.Enums, r.enumsByMember())
		d.Events = append(d.Events, e)
	}
	for i := range effectRules {
		r := &effectRules[i]
		d.Effects = append(d.Effects, EffectShape{Type: r.name, Required: strings.Fields(r.need), Optional: strings.Fields(r.may)})
	}
	return d
}

// add describes t and what it is made of, unless that was done.
func (d *Description) add(t reflect.Type, seen map[reflect.Type]bool) {
	if seen[t] {
		return
	}
	seen[t] = true
	p := planOf(t)
	s := Shape{Name: shapeName(t), Open: p.open}
	for i := range p.fields {
		s.Members = append(s.Members, describeMember(&p.fields[i]))
	}
	d.Shapes = append(d.Shapes, s)
	for i := range p.fields {
		if p.fields[i].kind.holdsObjects() {
			d.add(p.fields[i].elem, seen)
		}
	}
}

func (k fieldKind) holdsObjects() bool {
	return k == isObject || k == isObjectPtr || k == isObjects || k == isObjectMap
}

func shapeName(t reflect.Type) string {
	if t == reflect.TypeFor[wireEffect]() {
		return "Effect"
	}
	return t.Name()
}

func describeMember(f *field) Member {
	m := Member{Name: f.name, Required: f.req, Nullable: f.null_, NotEmpty: f.min1, EachNotEmpty: f.each1, Unique: f.uniq,
		Positive: f.pos, NonNegative: f.nonneg, Closed: f.closed, Enum: append([]string(nil), f.enum...), Format: f.format}
	switch f.kind {
	case isString, isStringPtr, isStrings, isStringMap:
		m.Type = "string"
	case isBool, isBoolPtr:
		m.Type = "boolean"
	case isInt, isIntPtr, isIntMap:
		m.Type = "integer"
	case isExtensions:
		m.Type = "extensions"
	case isItems:
		m.Type = "items"
	case isRaw, isRaws:
		m.Type = "any"
		if f.format == "obj" {
			m.Type, m.Format = "object", ""
		}
	default:
		m.Type, m.Of = "object", shapeName(f.elem)
	}
	m.List = f.kind == isStrings || f.kind == isRaws || f.kind == isObjects
	m.Map = f.kind == isIntMap || f.kind == isStringMap || f.kind == isObjectMap
	return m
}
