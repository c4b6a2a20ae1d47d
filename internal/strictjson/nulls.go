package strictjson

import (
	"encoding"
	"errors"
	"reflect"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

var (
	rawType    = reflect.TypeFor[jsontext.Value]()
	customType = []reflect.Type{
		reflect.TypeFor[json.UnmarshalerFrom](), reflect.TypeFor[json.Unmarshaler](), reflect.TypeFor[encoding.TextUnmarshaler](),
	}
	// noNulls makes the library ask refuseNull about every value that it decodes. It is
	// a constant for us. There is one for all calls, because the library remembers in
	// it, as it does for all types in its own package, which of them it concerns.
	noNulls = json.UnmarshalFromFunc(refuseNull)
)

// misplacedNull is what refuseNull fails with: nobody else returns one, so that what
// code of a type's own returns isn't taken for it.
type misplacedNull struct{ fault Error }

func (e *misplacedNull) Error() string { return e.fault.Error() }

// refuseNull refuses a null that is about to be decoded into v, a pointer to a place
// that can't hold one: the library would leave the zero value there silently. All
// else is the library's.
func refuseNull(dec *jsontext.Decoder, v any) error {
	if dec.PeekKind() != 'n' {
		return errors.ErrUnsupported
	}
	t := reflect.TypeOf(v).Elem()
	if t.Kind() == reflect.Pointer || opaque(t) {
		return errors.ErrUnsupported
	}
	if err := dec.SkipValue(); err != nil {
		return err
	}
	return &misplacedNull{Error{Pointer: string(dec.StackPointer()), Offset: dec.InputOffset() - int64(len("null")), Msg: "found null, expected " + expected(t)}}
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
