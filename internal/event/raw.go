package event

import (
	"bytes"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/abhed/abhed/internal/strictjson"
)

// blobName is the member that stands for a string kept beside the record. A
// member of a Raw value that has this name, or this name behind further dollar
// signs, is written with one dollar sign more, so that no value that somebody
// sent can be mistaken for a reference.
const blobName = "$blob"

func isBlobName(s string) bool {
	return strings.HasSuffix(s, blobName) && strings.Trim(s[:len(s)-len(blobName)], "$") == ""
}

// takeBlobs replaces long strings in r by references and escapes the names that
// look like one.
func (c *Encoder) takeBlobs(r Raw) (Raw, error) {
	return transcode(r, transcoder{
		name: func(s string) (string, error) {
			if isBlobName(s) {
				return "$" + s, nil
			}
			return s, nil
		},
		text: func(s string) (Raw, error) {
			if c.BlobOver <= 0 || len(s) <= c.BlobOver {
				return nil, nil
			}
			return c.appendBlob(nil, s), nil
		},
	})
}

// putBlobs is the inverse of takeBlobs: it replaces every reference in a stored
// payload by the string that load returns.
func putBlobs(r Raw, load func(sha256 string, size int64) (string, error)) (Raw, error) {
	return transcode(r, transcoder{
		name: func(s string) (string, error) {
			if isBlobName(s) {
				return s[1:], nil
			}
			return s, nil
		},
		ref: load,
	})
}

// transcoder says what to do with the parts of a JSON value; a nil member keeps
// them.
type transcoder struct {
	name   func(string) (string, error)
	text   func(string) (Raw, error) // a nil result keeps the string
	number func(string) (Raw, error) // the literal; a nil result keeps it
	ref    func(sha256 string, size int64) (string, error)
}

// transcode returns r, which is valid JSON, rewritten by t, in canonical form.
// It fails if two members of an object get the same name.
func transcode(r Raw, t transcoder) (Raw, error) {
	var out bytes.Buffer
	dec, enc := jsontext.NewDecoder(bytes.NewReader(r)), jsontext.NewEncoder(&out)
	if err := t.value(dec, enc); err != nil {
		return nil, err
	}
	v := Raw(bytes.TrimSpace(out.Bytes()))
	err := v.Canonicalize(jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false))
	return v, err
}

func (t *transcoder) value(dec *jsontext.Decoder, enc *jsontext.Encoder) error {
	switch dec.PeekKind() {
	case '{':
		return t.object(dec, enc)
	case '[':
		if err := copyToken(dec, enc); err != nil {
			return err
		}
		for dec.PeekKind() != ']' {
			if err := t.value(dec, enc); err != nil {
				return err
			}
		}
		return copyToken(dec, enc)
	case '"':
		return t.string(dec, enc)
	}
	v, err := dec.ReadValue()
	if err != nil {
		return err
	}
	if v.Kind() == '0' && t.number != nil {
		n, err := t.number(string(v))
		if err != nil {
			return err
		}
		if n != nil {
			v = n
		}
	}
	return enc.WriteValue(v)
}

func (t *transcoder) string(dec *jsontext.Decoder, enc *jsontext.Encoder) error {
	tok, err := dec.ReadToken()
	if err != nil {
		return err
	}
	if t.text != nil {
		v, err := t.text(tok.String())
		if err != nil {
			return err
		}
		if v != nil {
			return enc.WriteValue(v)
		}
	}
	return enc.WriteToken(tok)
}

func (t *transcoder) object(dec *jsontext.Decoder, enc *jsontext.Encoder) error {
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	opened := false
	for dec.PeekKind() != '}' {
		tok, err := dec.ReadToken()
		if err != nil {
			return err
		}
		name := tok.String()
		if t.ref != nil && name == blobName {
			return t.reference(dec, enc, opened)
		}
		if !opened {
			if err := enc.WriteToken(jsontext.BeginObject); err != nil {
				return err
			}
			opened = true
		}
		if t.name != nil {
			if name, err = t.name(name); err != nil {
				return err
			}
		}
		if err := enc.WriteToken(jsontext.String(name)); err != nil {
			return err
		}
		if err := t.value(dec, enc); err != nil {
			return err
		}
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	if !opened {
		if err := enc.WriteToken(jsontext.BeginObject); err != nil {
			return err
		}
	}
	return enc.WriteToken(jsontext.EndObject)
}

// reference reads the value of $blob and the end of its object, and writes the
// string it stands for.
func (t *transcoder) reference(dec *jsontext.Decoder, enc *jsontext.Encoder, notFirst bool) error {
	pointer, offset := string(dec.StackPointer()), dec.InputOffset()
	bad := func(msg string) error { return &strictjson.Error{Pointer: pointer, Offset: offset, Msg: msg} }
	v, err := dec.ReadValue()
	if err != nil {
		return err
	}
	var ref struct {
		SHA256 string `json:"sha256"`
		Size   int64  `json:"size"`
	}
	if err := strictjson.Unmarshal(v, &ref, strictjson.Options{RejectUnknown: true}); err != nil {
		return bad("a blob reference can't be read: " + err.Error())
	}
	if !isHash(ref.SHA256) || ref.Size < 0 {
		return bad("a blob reference needs sha256 (64 hexadecimal digits) and size")
	}
	if notFirst || dec.PeekKind() != '}' {
		return bad("there is another member beside $blob, expected none")
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	s, err := t.ref(ref.SHA256, ref.Size)
	if err != nil {
		return err
	}
	return enc.WriteToken(jsontext.String(s))
}

func copyToken(dec *jsontext.Decoder, enc *jsontext.Encoder) error {
	tok, err := dec.ReadToken()
	if err != nil {
		return err
	}
	return enc.WriteToken(tok)
}
