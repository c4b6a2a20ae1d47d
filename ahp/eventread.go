package ahp

import (
	"reflect"
	"strings"
	"sync"
)

// eventPlan is the event table in terms of member indexes of Event.
type eventPlan struct {
	*plan
	// envelope members are of the same shape in every event.
	envelope              bits
	typeIndex, itemsIndex int
	need, may, never      [len(eventRules)]bits
	enums                 [len(eventRules)]map[int]*field
	envelopeRequired      bits
}

// theEventPlan is built once, at first use.
var theEventPlan = sync.OnceValue(newEventPlan)

func newEventPlan() *eventPlan {
	p := &eventPlan{plan: planOf(reflect.TypeFor[Event]())}
	all := func(list string) (b bits) {
		for name := range strings.FieldsSeq(list) {
			b.set(p.byName[name])
		}
		return b
	}
	p.envelope, p.envelopeRequired = all(envelopeMembers), all(envelopeRequired)
	p.typeIndex, p.itemsIndex = p.byName["type"], p.byName["items"]
	for i := range eventRules {
		rule := &eventRules[i]
		p.need[i], p.may[i], p.never[i] = all(rule.need), all(rule.may+" items"), all(rule.never)
		p.enums[i] = map[int]*field{}
		for name, values := range rule.enumsByMember() {
			f := p.fields[p.byName[name]]
			f.enum = values
			p.enums[i][p.byName[name]] = &f
		}
	}
	return p
}

// eventReader is the state of decoding one event.
type eventReader struct {
	*reader
	plan *eventPlan
	// row is the index of the event's type in the table, -1 while unknown.
	row   int
	seen  bits
	event *Event
	value reflect.Value
}

// event decodes an event.
func (r *reader) event() (*Event, error) {
	if r.dec.PeekKind() != '{' {
		return nil, r.mismatch("AHP-TB-001", "an event object")
	}
	if _, err := r.dec.ReadToken(); err != nil {
		return nil, err
	}
	e := new(Event)
	er := &eventReader{reader: r, plan: theEventPlan(), row: -1, event: e, value: reflect.ValueOf(e).Elem()}
	var waiting []deferred
	for r.dec.PeekKind() == '"' {
		name, err := r.name()
		if err != nil {
			return nil, err
		}
		i, ok := er.plan.byName[string(name)]
		switch {
		case !ok:
			err = r.keep(&e.Unknown, string(name))
		case er.row < 0 && i != er.plan.typeIndex && !er.plan.envelope.has(i):
			waiting, err = r.later(waiting, i)
		default:
			err = er.member(r, i)
		}
		if err != nil {
			return nil, err
		}
	}
	if _, err := r.dec.ReadToken(); err != nil {
		return nil, err
	}
	for i := range waiting {
		if er.row < 0 {
			break
		}
		if err := er.member(waiting[i].sub(), waiting[i].index); err != nil {
			return nil, err
		}
	}
	return e, er.finish()
}

// member decodes member i with r, as the event's type has it.
func (er *eventReader) member(r *reader, i int) error {
	f := &er.plan.fields[i]
	if i == er.plan.typeIndex {
		return er.readType()
	}
	if !er.plan.envelope.has(i) {
		switch row := er.row; {
		case er.plan.never[row].has(i):
			if err := r.dec.SkipValue(); err != nil {
				return err
			}
			return r.failed("AHP-CORE-003", "member "+quote(f.name), "none in "+string(er.event.Type))
		case !er.plan.need[row].has(i) && !er.plan.may[row].has(i):
			return r.keep(&er.event.Unknown, f.name)
		}
		if narrowed, ok := er.plan.enums[er.row][i]; ok {
			f = narrowed
		}
	}
	er.seen.set(i)
	if i == er.plan.itemsIndex {
		return r.items(eventRules[er.row].messages, &er.event.Items)
	}
	return r.value(er.plan.rule, f, er.value.Field(f.index))
}

func (er *eventReader) readType() error {
	if er.dec.PeekKind() != '"' {
		return er.mismatch("AHP-TB-001", "an event type")
	}
	raw, err := er.dec.ReadValue()
	if err != nil {
		return err
	}
	b, err := unquoted(raw)
	if err != nil {
		return err
	}
	er.seen.set(er.plan.typeIndex)
	for i := range eventRules {
		if string(eventRules[i].name) == string(b) {
			er.row, er.event.Type = i, eventRules[i].name
			return nil
		}
	}
	e := er.failed("AHP-CORE-003", "the event type "+quote(string(b)), "one of the 32 event types of revision "+Version)
	e.Kind = KindEvent
	return e
}

// finish holds the rules of the whole event.
func (er *eventReader) finish() error {
	need := er.plan.envelopeRequired
	if er.row >= 0 {
		for w := range need {
			need[w] |= er.plan.need[er.row][w]
		}
	}
	for i := range er.plan.fields {
		if need.has(i) && !er.seen.has(i) {
			rule := "AHP-CORE-003"
			if er.event.Type == ToolBefore {
				rule = "AHP-TB-001"
			}
			where := "every event"
			if er.row >= 0 {
				where = string(er.event.Type)
			}
			return er.failed(rule, "no member "+quote(er.plan.fields[i].name), "that member in "+where)
		}
	}
	if eventRules[er.row].closedTurn {
		if f := checkTurn(er.event); f != nil {
			return er.fault(er.plan.rule, f)
		}
	}
	if c := eventRules[er.row].check; c != nil {
		if f := c(er.event); f != nil {
			return er.fault(er.plan.rule, f)
		}
	}
	return nil
}

// writeEvent encodes e with the members that its type has.
func (w *writer) event(e *Event) {
	if e == nil {
		w.fail("", "nil", "an event")
		return
	}
	p := theEventPlan()
	row := -1
	for i := range eventRules {
		if eventRules[i].name == e.Type {
			row = i
		}
	}
	if row < 0 {
		w.fail("/type", "the event type "+quote(string(e.Type)), "one of the 32 event types")
		return
	}
	v := reflect.ValueOf(e).Elem()
	w.buf = append(w.buf, '{')
	first := true
	for i := range p.fields {
		f := &p.fields[i]
		fv := v.Field(f.index)
		need := p.need[row].has(i) || p.envelopeRequired.has(i)
		if !need && absent(f, fv) {
			continue
		}
		if !need && !p.may[row].has(i) && !p.envelope.has(i) {
			w.fail("/"+f.name, "member "+quote(f.name), "none in "+string(e.Type))
			return
		}
		w.member(f.name, &first)
		if i == p.itemsIndex {
			w.items(eventRules[row].messages, e.Items)
		} else {
			w.value(f, fv)
		}
	}
	w.unknown(e.Unknown, first, func(name string) bool {
		i, is := p.byName[name]
		return is && (p.need[row].has(i) || p.may[row].has(i) || p.never[row].has(i) || p.envelope.has(i) || p.envelopeRequired.has(i))
	})
	w.buf = append(w.buf, '}')
}

// items writes the items of an event in the form that its type has.
func (w *writer) items(messages bool, items Items) {
	if messages != (items.Messages != nil) && !(items.Messages == nil && items.Parts == nil) || items.Messages != nil && items.Parts != nil {
		w.fail("/items", "items of the other form", map[bool]string{true: "messages", false: "bare parts"}[messages])
		return
	}
	if messages {
		f := field{kind: isObjects, elem: reflect.TypeFor[Message]()}
		w.value(&f, reflect.ValueOf(items.Messages))
		return
	}
	f := field{kind: isObjects, elem: reflect.TypeFor[Part]()}
	w.value(&f, reflect.ValueOf(items.Parts))
}
