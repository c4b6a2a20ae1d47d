package main

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// object is a JSON object whose members keep their order: name, value, name,
// value. Values are object, list, []string, string, int64, int and bool.
type object []any

// list is a JSON list.
type list []any

// with returns o with further members.
func (o object) with(members ...any) object { return append(o[:len(o):len(o)], members...) }

// encode returns v as indented JSON with a final newline. Anything that isn't made
// of the types above is a bug here.
func encode(v any) ([]byte, error) {
	compact, err := appendValue(nil, v)
	if err != nil {
		return nil, err
	}
	out := jsontext.Value(compact)
	if err := out.Indent(jsontext.WithIndent("  ")); err != nil {
		return nil, err
	}
	return append(out, '\n'), nil
}

func appendValue(b []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case string:
		return jsontext.AppendQuote(b, v)
	case bool:
		return fmt.Appendf(b, "%t", v), nil
	case int, int64:
		return fmt.Appendf(b, "%d", v), nil
	case []string:
		items := make(list, len(v))
		for i := range v {
			items[i] = v[i]
		}
		return appendValue(b, items)
	case list:
		b = append(b, '[')
		for i := range v {
			if i > 0 {
				b = append(b, ',')
			}
			var err error
			if b, err = appendValue(b, v[i]); err != nil {
				return nil, err
			}
		}
		return append(b, ']'), nil
	case object:
		return appendObject(b, v)
	}
	return nil, fmt.Errorf("no JSON for a value of type %T", v)
}

func appendObject(b []byte, o object) ([]byte, error) {
	if len(o)%2 != 0 {
		return nil, fmt.Errorf("an object with %d names and values", len(o))
	}
	b = append(b, '{')
	for i := 0; i < len(o); i += 2 {
		name, ok := o[i].(string)
		if !ok {
			return nil, fmt.Errorf("the name %v isn't a string", o[i])
		}
		if i > 0 {
			b = append(b, ',')
		}
		var err error
		if b, err = jsontext.AppendQuote(b, name); err != nil {
			return nil, err
		}
		b = append(b, ':')
		if b, err = appendValue(b, o[i+1]); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}
