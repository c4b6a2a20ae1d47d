package strictjson

import (
	"bytes"
	"encoding"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

var (
	rawType    = reflect.TypeFor[jsontext.Value]()
	customType = []reflect.Type{
		reflect.TypeFor[json.UnmarshalerFrom](), reflect.TypeFor[json.Unmarshaler](), reflect.TypeFor[encoding.TextUnmarshaler](),
	}
)

// checkNulls walks a document that was decoded into v and refuses a null where
// the Go type has no place for one.
func checkNulls(data []byte, v any) error {
	return walk(jsontext.NewDecoder(bytes.NewReader(data)), reflect.TypeOf(v).Elem())
}

func walk(dec *jsontext.Decoder, t reflect.Type) error {
	if opaque(t) {
		return dec.SkipValue()
	}
	kind := dec.PeekKind()
	if kind == 'n' {
		if t.Kind() == reflect.Pointer || t.Kind() == reflect.Interface {
			return dec.SkipValue()
		}
		if err := dec.SkipValue(); err != nil {
			return err
		}
		return &Error{Pointer: string(dec.StackPointer()), Offset: dec.InputOffset() - int64(len("null")), Msg: "found null, expected " + expected(t)}
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
		if opaque(t) {
			return dec.SkipValue()
		}
	}
	switch {
	case kind == '{' && (t.Kind() == reflect.Struct || t.Kind() == reflect.Map):
		return walkObject(dec, t)
	case kind == '[' && (t.Kind() == reflect.Slice || t.Kind() == reflect.Array):
		if _, err := dec.ReadToken(); err != nil {
			return err
		}
		for dec.PeekKind() != ']' {
			if err := walk(dec, t.Elem()); err != nil {
				return err
			}
		}
		_, err := dec.ReadToken()
		return err
	default:
		return dec.SkipValue()
	}
}

func walkObject(dec *jsontext.Decoder, t reflect.Type) error {
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return err
		}
		elem := reflect.TypeFor[any]()
		if t.Kind() == reflect.Map {
			elem = t.Elem()
		} else if f, ok := fieldTypes(t)[name.String()]; ok {
			elem = f
		}
		if err := walk(dec, elem); err != nil {
			return err
		}
	}
	_, err := dec.ReadToken()
	return err
}

// opaque reports whether the library hands the value to code of the type's own,
// or keeps it raw, so that a null is that type's business.
func opaque(t reflect.Type) bool {
	if t == rawType || t.Kind() == reflect.Interface {
		return true
	}
	for _, c := range customType {
		if t.Implements(c) || reflect.PointerTo(t).Implements(c) {
			return true
		}
	}
	return false
}

// fieldTypes returns the types of a struct's members by their JSON name.
func fieldTypes(t reflect.Type) map[string]reflect.Type {
	m := map[string]reflect.Type{}
	for _, f := range reflect.VisibleFields(t) {
		tag, has := f.Tag.Lookup("json")
		name, rest, _ := strings.Cut(tag, ",")
		if !f.IsExported() && !f.Anonymous || tag == "-" {
			continue
		}
		if f.Anonymous && !has || strings.Contains(","+rest+",", ",inline,") || strings.Contains(","+rest+",", ",unknown,") {
			continue
		}
		if name == "" {
			name = f.Name
		}
		if len(f.Index) == 1 || m[name] == nil {
			m[name] = f.Type
		}
	}
	return m
}

// expected names a Go type as a reader of JSON knows it.
func expected(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "a boolean"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return "an integer"
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "an integer of 0 or more"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	default:
		return "another type"
	}
}
