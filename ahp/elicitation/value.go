package elicitation

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/strictjson"
)

// value is one JSON value of a text that has passed the strict door. The zero value
// stands for an absent member.
type value struct {
	raw     []byte
	at      int64 // byte offset in the text
	pointer string
}

// parser reads values and keeps the first fault, after which it reads nothing.
type parser struct{ err error }

// open passes text through the strict door.
func (p *parser) open(text []byte) value {
	err := strictjson.Check(text, strictjson.Options{MaxBytes: MaxTextBytes})
	if err != nil {
		out := &ahp.Error{Kind: ahp.KindSyntax, Found: err.Error(), Expected: "one strict JSON object", Err: err}
		if door, ok := err.(*strictjson.Error); ok {
			out.Pointer, out.Offset, out.Found = door.Pointer, door.Offset, door.Msg
		}
		p.err = out
		return value{}
	}
	body := bytes.TrimLeft(text, " \t\r\n")
	return value{raw: bytes.TrimRight(body, " \t\r\n"), at: int64(len(text) - len(body))}
}

func (v value) there() bool { return v.raw != nil }

func (v value) kind() jsontext.Kind { return jsontext.Value(v.raw).Kind() }

func (v value) kindName() string { return strictjson.KindName(v.kind()) }

func (p *parser) refuse(v value, found, expected string) {
	if p.err == nil {
		p.err = &ahp.Error{Kind: ahp.KindShape, Pointer: v.pointer, Offset: v.at, Found: found, Expected: expected}
	}
}

// quote shows at most 40 bytes of s.
func quote(s string) string {
	if len(s) > 40 {
		s = s[:40] + "…"
	}
	return strconv.Quote(s)
}

// object is the members of a JSON object, in the order of the text.
type object struct {
	value
	names   []string
	members map[string]value
}

// object reads the members of v. With known, every other member is refused.
func (p *parser) object(v value, known ...string) object {
	o := object{value: v, members: map[string]value{}}
	if p.err == nil && v.kind() != '{' {
		p.refuse(v, v.kindName(), "an object")
	}
	if p.err != nil {
		return o
	}
	p.each(v, func(name string, member value) {
		if known != nil && !slices.Contains(known, name) {
			p.refuse(member, "unknown member "+quote(name), "one of "+strings.Join(known, ", "))
		}
		o.names = append(o.names, name)
		o.members[name] = member
	})
	return o
}

// list reads the items of v.
func (p *parser) list(v value) []value {
	if p.err == nil && v.kind() != '[' {
		p.refuse(v, v.kindName(), "a list")
	}
	if p.err != nil {
		return nil
	}
	out := []value{}
	p.each(v, func(_ string, item value) { out = append(out, item) })
	return out
}

// each calls f for what the object or list v holds, up to the first fault.
func (p *parser) each(v value, f func(name string, in value)) {
	dec := jsontext.NewDecoder(bytes.NewReader(v.raw))
	isObject := v.kind() == '{'
	_, err := dec.ReadToken()
	for i := 0; err == nil && p.err == nil; i++ {
		if k := dec.PeekKind(); k == '}' || k == ']' {
			return
		}
		name := strconv.Itoa(i)
		if isObject {
			var t jsontext.Token
			if t, err = dec.ReadToken(); err != nil {
				break
			}
			name = t.String()
		}
		var raw jsontext.Value
		if raw, err = dec.ReadValue(); err != nil {
			break
		}
		end := dec.InputOffset()
		f(name, value{raw: v.raw[end-int64(len(raw)) : end], at: v.at + end - int64(len(raw)), pointer: v.pointer + "/" + escape(name)})
	}
	if err != nil {
		p.refuse(v, err.Error(), "what the strict door let in") // a bug, and still no way in
	}
}

// escape writes a name as a token of a JSON pointer (RFC 6901).
func escape(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}

// need returns the member with the name, which must be there.
func (p *parser) need(o object, name string) value {
	v := o.members[name]
	if !v.there() {
		p.refuse(o.value, "no member "+quote(name), "that member")
	}
	return v
}

// text reads a string; an absent member is "".
func (p *parser) text(v value) string {
	switch {
	case p.err != nil || !v.there():
		return ""
	case v.kind() != '"':
		p.refuse(v, v.kindName(), "a string")
		return ""
	}
	b, err := jsontext.AppendUnquote(nil, v.raw)
	if err != nil {
		p.refuse(v, err.Error(), "a string")
	}
	return string(b)
}

// oneOf reads a string that must be among list.
func (p *parser) oneOf(v value, list ...string) string {
	s := p.text(v)
	if p.err == nil && v.there() && !slices.Contains(list, s) {
		p.refuse(v, quote(s), "one of "+strings.Join(list, ", "))
	}
	return s
}

// texts reads a list of strings; an absent member is nil.
func (p *parser) texts(v value) []string {
	if p.err != nil || !v.there() {
		return nil
	}
	out := []string{}
	for _, item := range p.list(v) {
		out = append(out, p.text(item))
	}
	return out
}

// number reads any number; an absent member is nil.
func (p *parser) number(v value) *decimal {
	switch {
	case p.err != nil || !v.there():
		return nil
	case v.kind() != '0':
		p.refuse(v, v.kindName(), "a number")
		return nil
	}
	d, ok := parseDecimal(string(v.raw))
	if !ok {
		p.refuse(v, quote(string(v.raw)), "a number with an exponent of at most six digits")
		return nil
	}
	return &d
}

// count reads an integer of 0 or more; an absent member is nil.
func (p *parser) count(v value) *int64 {
	d := p.number(v)
	if d == nil {
		return nil
	}
	n, ok := d.count()
	if !ok {
		p.refuse(v, quote(string(v.raw)), "an integer of 0 or more")
		return nil
	}
	return &n
}

// copy keeps v as it is; an absent member is nil.
func (v value) copy() ahp.Raw {
	if !v.there() {
		return nil
	}
	return slices.Clone(v.raw)
}
