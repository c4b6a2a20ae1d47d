package ahp

import (
	"bytes"
	"reflect"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// mapping reads an object whose member names are data.
func (r *reader) mapping(rule string, f *field, v reflect.Value) error {
	if r.dec.PeekKind() != '{' {
		return r.mismatch(rule, "an object")
	}
	if _, err := r.dec.ReadToken(); err != nil {
		return err
	}
	m := reflect.MakeMap(v.Type())
	for r.dec.PeekKind() == '"' {
		b, err := r.name()
		if err != nil {
			return err
		}
		key := string(b)
		if f.kind == isExtensions && !isReverseDNS(key) {
			return r.failed("AHP-EXT-001", quote(key), "a reverse-DNS name")
		}
		if f.kind == isObjectMap && !slices.Contains(f.enum, key) {
			if err := r.dec.SkipValue(); err != nil {
				return err
			}
			continue
		}
		elem := reflect.New(v.Type().Elem()).Elem()
		if err := r.entry(rule, f, elem); err != nil {
			return err
		}
		m.SetMapIndex(reflect.ValueOf(key).Convert(v.Type().Key()), elem)
	}
	if _, err := r.dec.ReadToken(); err != nil {
		return err
	}
	if f.min1 && m.Len() == 0 {
		return r.failed(rule, "an object without a known member", "at least one member")
	}
	v.Set(m)
	return nil
}

func (r *reader) entry(rule string, f *field, elem reflect.Value) error {
	switch f.kind {
	case isExtensions:
		raw, err := r.raw(rule, "")
		elem.Set(reflect.ValueOf(raw))
		return err
	case isIntMap:
		n, err := r.integer(rule, f)
		elem.SetInt(n)
		return err
	case isStringMap:
		s, err := r.text(rule, f)
		elem.SetString(s)
		return err
	}
	return r.object(planOf(f.elem), elem)
}

// items reads the items of an event: messages or bare parts.
func (r *reader) items(messages bool, out *Items) error {
	f := field{kind: isObjects}
	if messages {
		f.elem = reflect.TypeFor[Message]()
		return r.list("AHP-CONTENT-001", &f, reflect.ValueOf(&out.Messages).Elem())
	}
	f.elem = reflect.TypeFor[Part]()
	return r.list("AHP-CONTENT-001", &f, reflect.ValueOf(&out.Parts).Elem())
}

// deferred is a member that was read before it was known how to read it.
type deferred struct {
	index   int
	pointer string
	raw     []byte
}

// later keeps the next value, which is that of member index, for later.
func (r *reader) later(list []deferred, index int) ([]deferred, error) {
	raw, err := r.dec.ReadValue()
	if err != nil {
		return list, err
	}
	return append(list, deferred{index: index, pointer: r.base + string(r.dec.StackPointer()), raw: bytes.Clone(raw)}), nil
}

// sub returns a reader of a deferred value.
func (d *deferred) sub() *reader {
	return &reader{dec: jsontext.NewDecoder(bytes.NewReader(d.raw)), base: d.pointer}
}
