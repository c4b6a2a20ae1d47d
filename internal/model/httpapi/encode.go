package httpapi

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/strictjson"
)

const maxNameLength = 64

// Quote returns s as a JSON string.
func Quote(s string) []byte { return AppendQuote(nil, s) }

// AppendQuote adds s as a JSON string. It can't fail: bytes that aren't UTF-8 become
// U+FFFD, because a request with broken UTF-8 is refused for ever after.
func AppendQuote(dst []byte, s string) []byte {
	dst, _ = jsontext.AppendQuote(dst, s) // the error says only that bytes were replaced
	return dst
}

// SafeArgs returns a call's arguments as a JSON object's text. Servers parse the
// arguments in the history, and one call with broken ones, kept as it was, would
// make every later request fail; so they are shown to the model wrapped.
func SafeArgs(args string) string {
	trimmed := bytes.TrimLeft([]byte(args), " \t\r\n")
	if len(trimmed) == 0 {
		return "{}"
	}
	if trimmed[0] == '{' && strictjson.Check([]byte(args), strictjson.Options{}) == nil {
		return args
	}
	return string(append(AppendQuote([]byte(`{"invalid_arguments":`), args), '}'))
}

// SafeName returns a call's name in the form that endpoints accept in a history,
// where a model may have called something that was never offered.
func SafeName(name string) string {
	out := []byte(name)
	for i, c := range out {
		alnum := '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
		if !alnum && c != '_' && c != '-' {
			out[i] = '_'
		}
	}
	if len(out) == 0 {
		return "unnamed"
	}
	return string(out[:min(len(out), maxNameLength)])
}

// JoinText returns the texts of m with sep between them.
func JoinText(m *model.Message, sep string) string {
	var out []byte
	for _, p := range m.Parts {
		if p.Text != nil && *p.Text != "" {
			if len(out) > 0 {
				out = append(out, sep...)
			}
			out = append(out, *p.Text...)
		}
	}
	return string(out)
}

// ToolList keeps the encoded form of a request's tools. The zero value with Append
// set is ready.
type ToolList struct {
	// Append adds one tool's encoding; schema is the tool's, or the empty object's
	// where it has none.
	Append func(dst []byte, t model.ToolSpec, schema []byte) []byte
	// Open and Close stand around the tools, if there are some.
	Open, Close string

	tools []model.ToolSpec
	enc   []byte
}

// Encode returns the tools with commas between them, Open before and Close after
// them, nothing for none. A schema that isn't JSON is an error.
func (l *ToolList) Encode(tools []model.ToolSpec) ([]byte, error) {
	same := slices.EqualFunc(tools, l.tools, func(a, b model.ToolSpec) bool {
		return a.Name == b.Name && a.Description == b.Description && bytes.Equal(a.Schema, b.Schema)
	})
	if same {
		return l.enc, nil
	}
	var out []byte
	for i, t := range tools {
		schema := t.Schema
		if len(schema) == 0 {
			schema = []byte(`{"type":"object","properties":{}}`)
		}
		if err := strictjson.Check(schema, strictjson.Options{}); err != nil {
			return nil, fmt.Errorf("the schema of tool %q is not valid JSON: %w", t.Name, err)
		}
		if i > 0 {
			out = append(out, ',')
		} else {
			out = append(out, l.Open...)
		}
		out = l.Append(out, t, schema)
	}
	if len(tools) > 0 {
		out = append(out, l.Close...)
	}
	l.tools, l.enc = slices.Clone(tools), out
	return out, nil
}
