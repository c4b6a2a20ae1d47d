package ahp

import (
	"bytes"
	"reflect"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/abhed/abhed/internal/strictjson"
)

// reader decodes one JSON value by plans. It makes one pass over the text; the
// offset of a fault is found by a second pass, which only faulty text pays for.
type reader struct {
	dec *jsontext.Decoder
	// base is the pointer of the value that dec reads.
	base string
}

func itoa(i int) string { return strconv.Itoa(i) }

// quote shows at most 40 bytes of s.
func quote(s string) string {
	if len(s) > 40 {
		s = s[:40] + "…"
	}
	return strconv.Quote(s)
}

// failed returns an Error at the value that was read last.
func (r *reader) failed(rule, found, expected string) *Error {
	return &Error{Kind: KindShape, Pointer: r.base + string(r.dec.StackPointer()), Offset: -1, Found: found, Expected: expected, Requirement: rule}
}

// mismatch reads the next value, which has the wrong type, and returns an Error
// at it.
func (r *reader) mismatch(rule, expected string) error {
	k := r.dec.PeekKind()
	if err := r.dec.SkipValue(); err != nil {
		return err
	}
	return r.failed(rule, strictjson.KindName(k), expected)
}

// fault turns f, found in the object that was read last, into an Error.
func (r *reader) fault(rule string, f *fault) error {
	e := r.failed(rule, f.found, f.expected)
	if f.at != "" {
		e.Pointer += "/" + f.at
	}
	return e
}

// name reads a member's name; the bytes are valid until the next read.
func (r *reader) name() ([]byte, error) {
	v, err := r.dec.ReadValue()
	if err != nil {
		return nil, err
	}
	return unquoted(v)
}

// unquoted returns the text of a JSON string, which it may share.
func unquoted(v []byte) ([]byte, error) {
	if bytes.IndexByte(v, '\\') < 0 {
		return v[1 : len(v)-1], nil
	}
	return jsontext.AppendUnquote(nil, v)
}

// object decodes an object into the struct v by p.
func (r *reader) object(p *plan, v reflect.Value) error {
	if r.dec.PeekKind() != '{' {
		return r.mismatch(p.rule, "an object")
	}
	if _, err := r.dec.ReadToken(); err != nil {
		return err
	}
	var seen bits
	for r.dec.PeekKind() == '"' {
		name, err := r.name()
		if err != nil {
			return err
		}
		i, ok := p.byName[string(name)]
		switch {
		case ok:
			seen.set(i)
			err = r.value(p.rule, &p.fields[i], v.Field(p.fields[i].index))
		case p.open:
			err = r.keep(p.unknownOf(v), string(name))
		default:
			err = r.failed(p.rule, "unknown member "+quote(string(name)), "only members that the object has")
		}
		if err != nil {
			return err
		}
	}
	if _, err := r.dec.ReadToken(); err != nil {
		return err
	}
	for w := range seen {
		if p.need[w]&^seen[w] != 0 {
			return r.missing(p, &seen)
		}
	}
	if p.check != nil {
		if f := p.check(v.Addr().Interface()); f != nil {
			return r.fault(p.rule, f)
		}
	}
	return nil
}

func (r *reader) missing(p *plan, seen *bits) error {
	for i := range p.fields {
		if p.need.has(i) && !seen.has(i) {
			return r.failed(p.rule, "no member "+quote(p.fields[i].name), "that member")
		}
	}
	return nil
}

// value decodes one member into v.
func (r *reader) value(rule string, f *field, v reflect.Value) error {
	if f.null_ && r.dec.PeekKind() == 'n' {
		return r.dec.SkipValue()
	}
	switch f.kind {
	case isString:
		s, err := r.text(rule, f)
		v.SetString(s)
		return err
	case isStringPtr:
		s, err := r.text(rule, f)
		v.Set(reflect.ValueOf(&s))
		return err
	case isBool:
		b, err := r.boolean(rule)
		v.SetBool(b)
		return err
	case isBoolPtr:
		b, err := r.boolean(rule)
		v.Set(reflect.ValueOf(&b))
		return err
	case isInt:
		n, err := r.integer(rule, f)
		v.SetInt(n)
		return err
	case isIntPtr:
		n, err := r.integer(rule, f)
		v.Set(reflect.ValueOf(&n))
		return err
	case isRaw:
		raw, err := r.raw(rule, f.format)
		*v.Addr().Interface().(*Raw) = raw
		return err
	case isObject:
		return r.object(planOf(f.elem), v)
	case isObjectPtr:
		n := reflect.New(f.elem)
		v.Set(n)
		return r.object(planOf(f.elem), n.Elem())
	case isEffects:
		return r.effects(v.Addr().Interface().(*[]Effect))
	case isStrings, isObjects, isRaws:
		return r.list(rule, f, v)
	default:
		return r.mapping(rule, f, v)
	}
}

// text reads a string and applies the rules of f.
func (r *reader) text(rule string, f *field) (string, error) {
	if r.dec.PeekKind() != '"' {
		return "", r.mismatch(rule, "a string")
	}
	raw, err := r.dec.ReadValue()
	if err != nil {
		return "", err
	}
	b, err := unquoted(raw)
	if err != nil {
		return "", err
	}
	if f.enum != nil {
		for _, e := range f.enum {
			if string(b) == e {
				return e, nil
			}
		}
		return "", r.failed(rule, quote(string(b)), oneOf(f.enum))
	}
	s := common(b)
	if f.min1 && s == "" {
		return "", r.failed(rule, `""`, "a text that isn't empty")
	}
	if what, ok := grammar(f.format, s); !ok {
		return "", r.failed(rule, quote(s), what)
	}
	return s, nil
}

// common returns b as a string, without a copy for what stands in most messages.
func common(b []byte) string {
	switch string(b) {
	case MediaText:
		return MediaText
	case "native":
		return "native"
	case Version:
		return Version
	}
	return string(b)
}

func oneOf(list []string) string {
	s := "one of"
	for i, e := range list {
		if i > 0 {
			s += ","
		}
		s += " " + strconv.Quote(e)
	}
	return s
}

// grammar reports whether s has the format, and how to name it.
func grammar(format, s string) (what string, ok bool) {
	switch format {
	case "uri":
		return "an absolute URI (RFC 3986)", isURI(s)
	case "time":
		return "a date and time with separators and a zone (RFC 3339)", isTime(s)
	case "rdns":
		return "a reverse-DNS name", isReverseDNS(s)
	case "sha256":
		return "64 lower-case hex digits", isSHA256(s)
	case "httpurl":
		_, _, ok := httpHost(s)
		return "an http or https URL", ok
	case "https":
		scheme, _, ok := httpHost(s)
		return "an https URL", ok && scheme == "https"
	case "env":
		return "the name of an environment variable", isEnvName(s)
	case "currency":
		return "a currency of three capitals", isCurrency(s)
	}
	return "", true
}

func (r *reader) boolean(rule string) (bool, error) {
	k := r.dec.PeekKind()
	if k != 't' && k != 'f' {
		return false, r.mismatch(rule, "a boolean")
	}
	return k == 't', r.dec.SkipValue()
}

func (r *reader) integer(rule string, f *field) (int64, error) {
	if r.dec.PeekKind() != '0' {
		return 0, r.mismatch(rule, "an integer")
	}
	raw, err := r.dec.ReadValue()
	if err != nil {
		return 0, err
	}
	n, ok := integerText(raw)
	switch {
	case !ok:
		return 0, r.failed(rule, quote(string(raw)), "an integer")
	case f.pos && n < 1:
		return 0, r.failed(rule, itoa(int(n)), "an integer of 1 or more")
	case f.nonneg && n < 0:
		return 0, r.failed(rule, itoa(int(n)), "an integer of 0 or more")
	}
	return n, nil
}

// raw reads any value that the format allows.
func (r *reader) raw(rule, format string) (Raw, error) {
	k := r.dec.PeekKind()
	v, err := r.dec.ReadValue()
	if err != nil {
		return nil, err
	}
	switch format {
	case "obj":
		if k != '{' {
			return nil, r.failed(rule, strictjson.KindName(k), "an object")
		}
	case "num":
		if k != '0' || isNegative(v) {
			return nil, r.failed(rule, quote(string(v)), "a number of 0 or more")
		}
	case "strint":
		if _, ok := integerText(v); k != '"' && !(k == '0' && ok) {
			return nil, r.failed(rule, strictjson.KindName(k), "a string or an integer")
		}
	}
	return Raw(bytes.Clone(v)), nil
}

// list reads a list of strings, objects or raw values.
func (r *reader) list(rule string, f *field, v reflect.Value) error {
	if r.dec.PeekKind() != '[' {
		return r.mismatch(rule, "a list")
	}
	if _, err := r.dec.ReadToken(); err != nil {
		return err
	}
	if r.dec.PeekKind() == ']' {
		v.Set(reflect.MakeSlice(v.Type(), 0, 0)) // present, and empty
	} else {
		v.SetZero()
		v.Grow(2)
	}
	var seen map[string]bool
	one := field{enum: f.enum, format: f.format, min1: f.each1}
	for n := 0; ; n++ {
		k := r.dec.PeekKind()
		if k == ']' || k == jsontext.KindInvalid {
			break
		}
		if n == v.Cap() {
			v.Grow(n)
		}
		v.SetLen(n + 1)
		if err := r.item(rule, f, &one, v.Index(n)); err != nil {
			return err
		}
		if f.uniq {
			if seen == nil {
				seen = map[string]bool{}
			}
			s := v.Index(n).String()
			if seen[s] {
				return r.failed(rule, "a repeated item", "each item once")
			}
			seen[s] = true
		}
	}
	if _, err := r.dec.ReadToken(); err != nil {
		return err
	}
	if f.min1 && v.Len() == 0 {
		return r.failed(rule, "an empty list", "at least one item")
	}
	return nil
}

func (r *reader) item(rule string, f, one *field, v reflect.Value) error {
	switch f.kind {
	case isStrings:
		s, err := r.text(rule, one)
		v.SetString(s)
		return err
	case isRaws:
		raw, err := r.raw(rule, f.format)
		*v.Addr().Interface().(*Raw) = raw
		return err
	}
	p := planOf(f.elem)
	if f.closed && p.open {
		shut := *p
		shut.open = false
		p = &shut
	}
	if err := r.object(p, v); err != nil {
		return err
	}
	if f.format == "text" && v.Addr().Interface().(*Part).Kind != KindText {
		return r.failed(p.rule, "an attachment", "a text part")
	}
	return nil
}
