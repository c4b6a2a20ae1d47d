package event

import (
	"reflect"

	"github.com/abhed/abhed/internal/strictjson"
)

// MapStrings returns a copy of p in which every text is what f makes of it: the
// strings, and in Raw values the strings, member names and number literals. f
// must return valid UTF-8.
//
// A Raw value that isn't JSON, or that can't be rewritten member by member (two
// names become one, or f still finds something in its JSON text), becomes a JSON
// string that holds f of its text. p is not changed.
func MapStrings(p Payload, f func(string) string) Payload {
	src := reflect.ValueOf(p).Elem()
	dst := reflect.New(src.Type())
	mapValue(dst.Elem(), src, f)
	if u, ok := p.(*Unknown); ok {
		// A type is a name of the record's, not text of anybody's.
		body := dst.Interface().(*Unknown).Body
		if len(body) == 0 || body[0] != '{' {
			body, _ = strictjson.Marshal(map[string]Raw{"text": body})
		}
		return &Unknown{Kind: u.Kind, Body: body}
	}
	return dst.Interface().(Payload)
}

func mapValue(dst, src reflect.Value, f func(string) string) {
	if src.Type() == rawType {
		dst.SetBytes(mapRaw(src.Bytes(), f))
		return
	}
	switch src.Kind() {
	case reflect.String:
		dst.SetString(f(src.String()))
	case reflect.Pointer:
		if !src.IsNil() {
			dst.Set(reflect.New(src.Type().Elem()))
			mapValue(dst.Elem(), src.Elem(), f)
		}
	case reflect.Slice:
		if !src.IsNil() {
			dst.Set(reflect.MakeSlice(src.Type(), src.Len(), src.Len()))
			for i := range src.Len() {
				mapValue(dst.Index(i), src.Index(i), f)
			}
		}
	case reflect.Struct:
		for i := range src.NumField() {
			mapValue(dst.Field(i), src.Field(i), f)
		}
	default:
		dst.Set(src)
	}
}

func mapRaw(r Raw, f func(string) string) Raw {
	if len(r) == 0 {
		return nil
	}
	c, err := canonical(r)
	if err != nil {
		return appendString(nil, f(string(r)))
	}
	out, err := transcode(c, transcoder{
		name: func(s string) (string, error) { return f(s), nil },
		text: func(s string) (Raw, error) { return appendString(nil, f(s)), nil },
		number: func(s string) (Raw, error) {
			if m := f(s); m != s {
				return appendString(nil, m), nil
			}
			return nil, nil
		},
	})
	if err != nil {
		return appendString(nil, f(string(c)))
	}
	if s := string(out); f(s) != s {
		return appendString(nil, f(s))
	}
	return out
}
