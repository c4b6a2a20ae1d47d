package ahp

import (
	"bytes"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/abhed/abhed/internal/strictjson"
)

// Raw is one JSON value as text: an opaque value that passes through unchanged,
// but for white space. A nil Raw is an absent member; Raw("null") is a null.
type Raw []byte

// MarshalJSON returns r; an empty r is null.
func (r Raw) MarshalJSON() ([]byte, error) {
	if len(r) == 0 {
		return []byte("null"), nil
	}
	return r, nil
}

// UnmarshalJSON keeps a copy of data.
func (r *Raw) UnmarshalJSON(data []byte) error {
	*r = bytes.Clone(data)
	return nil
}

// IsObject reports whether r looks like a JSON object: it does not check it.
func (r Raw) IsObject() bool { return jsontext.Value(r).Kind() == '{' }

// Equal reports whether r and other are the same JSON value; the order of
// members and the spelling of strings don't matter, the spelling of numbers does.
func (r Raw) Equal(other Raw) bool {
	return bytes.Equal(r, other) || strictjson.Equal(r, other)
}

// ID is a JSON-RPC id: a non-empty string or an integer. The zero ID is none.
// IDs are comparable; they correlate and carry no authority.
type ID struct {
	// text is the JSON text: a quoted string in its shortest form, or an integer
	// as it was written.
	text string
}

// StringID returns the id s; an empty s gives the zero ID.
func StringID(s string) ID {
	if s == "" {
		return ID{}
	}
	q, err := jsontext.AppendQuote(nil, s)
	if err != nil {
		return ID{}
	}
	return ID{text: string(q)}
}

// IntID returns the id n.
func IntID(n int64) ID { return ID{text: strconv.FormatInt(n, 10)} }

// IsZero reports whether id is none.
func (id ID) IsZero() bool { return id.text == "" }

// String returns the id as JSON text, and "null" for none.
func (id ID) String() string {
	if id.text == "" {
		return "null"
	}
	return id.text
}

// shown returns the id for a message: at most some 40 bytes of it.
func (id ID) shown() string {
	if s, ok := id.Value(); ok {
		return quote(s)
	}
	if s := id.String(); len(s) <= 40 {
		return s
	}
	return id.String()[:40] + "…"
}

// Value returns the string of a string id; ok is false for any other id.
func (id ID) Value() (s string, ok bool) {
	if len(id.text) == 0 || id.text[0] != '"' {
		return "", false
	}
	b, err := jsontext.AppendUnquote(nil, id.text)
	return string(b), err == nil
}

// parseID reads an id from a JSON value; ok is false if it is no id.
func parseID(v []byte) (id ID, ok bool) {
	switch k := jsontext.Value(v).Kind(); k {
	case '"':
		b, err := jsontext.AppendUnquote(nil, v)
		if err != nil || len(b) == 0 {
			return ID{}, false
		}
		return StringID(string(b)), true
	case '0':
		if !isIntegral(v) {
			return ID{}, false
		}
		return ID{text: string(v)}, true
	}
	return ID{}, false
}
