package ahp

import (
	"bytes"
	"reflect"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/abhed/abhed/internal/strictjson"
)

// writer encodes by plans: members in the order of the struct's fields, optional
// ones only where they are set, no white space. The first error stays.
type writer struct {
	buf []byte
	err error
}

func (w *writer) fail(pointer, found, expected string) {
	if w.err == nil {
		w.err = &Error{Kind: KindShape, Pointer: pointer, Offset: -1, Found: found, Expected: expected}
	}
}

// done returns the text, or the first error.
func (w *writer) done() ([]byte, error) {
	if w.err != nil {
		return nil, w.err
	}
	return w.buf, nil
}

// message returns the text of a whole message, or the first error; a text that no
// receiver may accept is one.
func (w *writer) message() ([]byte, error) {
	b, err := w.done()
	switch {
	case err != nil:
		return nil, err
	case len(b) > MaxMessageBytes:
		w.fail("", itoa(len(b))+" bytes", "a message of at most "+itoa(MaxMessageBytes))
	case tooDeep(b):
		w.fail("", "a deeper nesting", "a message of at most "+itoa(MaxDepth)+" levels")
	}
	return w.done()
}

// tooDeep reports whether valid JSON is nested deeper than MaxDepth.
func tooDeep(b []byte) bool {
	if bytes.Count(b, []byte("{"))+bytes.Count(b, []byte("[")) <= MaxDepth {
		return false
	}
	return strictjson.TooDeep(b, MaxDepth) >= 0
}

func (w *writer) member(name string, first *bool) {
	if !*first {
		w.buf = append(w.buf, ',')
	}
	*first = false
	w.buf = append(w.buf, '"')
	w.buf = append(w.buf, name...)
	w.buf = append(w.buf, '"', ':')
}

func (w *writer) text(s string) {
	b, err := jsontext.AppendQuote(w.buf, s)
	if err != nil {
		w.fail("", "text that isn't valid UTF-8: "+quote(s), "valid UTF-8")
		return
	}
	w.buf = b
}

// raw writes r without white space, checked: it may come from anywhere.
func (w *writer) raw(r Raw) {
	if len(r) == 0 {
		w.buf = append(w.buf, "null"...)
		return
	}
	b, err := jsontext.AppendFormat(w.buf, []byte(r))
	if err != nil {
		w.fail("", "a value that isn't strict JSON: "+err.Error(), "one JSON value")
		return
	}
	w.buf = b
}

// absent reports whether an optional member is left out.
func absent(f *field, v reflect.Value) bool {
	switch f.kind {
	case isStrings, isObjects, isRaws, isRaw, isIntMap, isStringMap, isObjectMap, isEffects, isExtensions:
		return v.IsNil()
	case isItems:
		return v.Interface().(Items).IsZero()
	}
	return v.IsZero()
}

func (w *writer) object(p *plan, v reflect.Value) {
	w.buf = append(w.buf, '{')
	first := true
	for i := range p.fields {
		f := &p.fields[i]
		fv := v.Field(f.index)
		if f.req || !absent(f, fv) {
			w.member(f.name, &first)
			w.value(f, fv)
		}
	}
	if p.unknown >= 0 {
		w.unknown(v.Field(p.unknown).Interface().(Unknown), first, func(name string) bool { _, is := p.byName[name]; return is })
	}
	w.buf = append(w.buf, '}')
}

func (w *writer) value(f *field, v reflect.Value) {
	switch f.kind {
	case isString:
		w.text(v.String())
	case isStringPtr:
		w.text(v.Elem().String())
	case isBool:
		w.buf = strconv.AppendBool(w.buf, v.Bool())
	case isBoolPtr:
		w.buf = strconv.AppendBool(w.buf, v.Elem().Bool())
	case isInt:
		w.buf = strconv.AppendInt(w.buf, v.Int(), 10)
	case isIntPtr:
		w.buf = strconv.AppendInt(w.buf, v.Elem().Int(), 10)
	case isRaw:
		w.raw(v.Bytes())
	case isObject:
		w.object(planOf(f.elem), v)
	case isObjectPtr:
		switch {
		case !v.IsNil():
			w.object(planOf(f.elem), v.Elem())
		case f.null_:
			w.buf = append(w.buf, "null"...)
		default:
			w.fail("/"+f.name, "no "+f.name, "that member")
		}
	case isStrings, isObjects, isRaws, isEffects:
		w.list(f, v)
	default:
		w.mapping(f, v)
	}
}

func (w *writer) list(f *field, v reflect.Value) {
	w.buf = append(w.buf, '[')
	for i := range v.Len() {
		if i > 0 {
			w.buf = append(w.buf, ',')
		}
		switch item := v.Index(i); f.kind {
		case isStrings:
			w.text(item.String())
		case isRaws:
			w.raw(item.Bytes())
		case isEffects:
			w.effect(item.Interface())
		default:
			w.object(planOf(f.elem), item)
		}
	}
	w.buf = append(w.buf, ']')
}

// mapping writes a map with its keys in order, so that equal values have equal
// texts.
func (w *writer) mapping(f *field, v reflect.Value) {
	keys := make([]string, 0, v.Len())
	for _, k := range v.MapKeys() {
		keys = append(keys, k.String())
	}
	slices.Sort(keys)
	w.buf = append(w.buf, '{')
	for i, key := range keys {
		if i > 0 {
			w.buf = append(w.buf, ',')
		}
		w.text(key)
		w.buf = append(w.buf, ':')
		switch item := v.MapIndex(reflect.ValueOf(key).Convert(v.Type().Key())); f.kind {
		case isExtensions:
			w.raw(item.Bytes())
		case isIntMap:
			w.buf = strconv.AppendInt(w.buf, item.Int(), 10)
		case isStringMap:
			w.text(item.String())
		default:
			w.object(planOf(f.elem), item)
		}
	}
	w.buf = append(w.buf, '}')
}
