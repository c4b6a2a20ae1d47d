package event

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/abhed/abhed/internal/strictjson"
)

// text appends a string of a payload, or the reference to it if it is too long
// for the line.
func (c *Encoder) text(b []byte, s string) ([]byte, error) {
	if c.Check != nil && !c.Check(s) {
		return b, unclean("it holds text that may not be recorded")
	}
	if c.BlobOver > 0 && len(s) > c.BlobOver {
		if !utf8.ValidString(s) {
			return b, unclean("it isn't valid UTF-8")
		}
		return c.appendBlob(b, s), nil
	}
	b, ok := strictjson.AppendString(b, s)
	if !ok {
		return b, unclean("it isn't valid UTF-8")
	}
	return b, nil
}

// raw appends a Raw value in canonical form; no value at all is null.
func (c *Encoder) raw(b []byte, r Raw) ([]byte, error) {
	if len(r) == 0 {
		return append(b, "null"...), nil
	}
	r, err := canonical(r)
	if err != nil {
		return b, unclean(err.Error())
	}
	if !c.allowed(r) {
		return b, unclean("it holds text that may not be recorded")
	}
	long := c.BlobOver > 0 && len(r) > c.BlobOver
	if long || bytes.Contains(r, []byte(`$blob"`)) {
		if r, err = c.takeBlobs(r); err != nil {
			return b, err
		}
	}
	return append(b, r...), nil
}

// allowed puts r, which is canonical, to Check: as a whole, and each string in it
// that has escapes as it reads without them.
func (c *Encoder) allowed(r Raw) bool {
	if c.Check == nil {
		return true
	}
	if !c.Check(string(r)) {
		return false
	}
	if bytes.IndexByte(r, '\\') < 0 {
		return true
	}
	for i := 0; i < len(r); i++ {
		if r[i] != '"' {
			continue
		}
		start := i
		for i++; r[i] != '"'; i++ {
			if r[i] == '\\' {
				i++
			}
		}
		if bytes.IndexByte(r[start:i], '\\') < 0 {
			continue
		}
		text, err := jsontext.AppendUnquote(nil, r[start:i+1])
		if err != nil || !c.Check(string(text)) {
			return false
		}
	}
	return true
}

// canonical returns r in canonical form, r itself if it is.
func canonical(r Raw) (Raw, error) {
	if strictjson.IsCanonical(r) {
		return r, nil
	}
	if err := strictjson.Check(r, strictjson.Options{MaxBytes: MaxRaw}); err != nil {
		return nil, err
	}
	r = bytes.Clone(r)
	err := r.Canonicalize(jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false))
	return r, err
}

// appendBlob sets s aside and appends the reference to it.
func (c *Encoder) appendBlob(b []byte, s string) []byte {
	sum := sha256.Sum256([]byte(s))
	blob := Blob{SHA256: hex.EncodeToString(sum[:]), Text: s}
	c.blobs = append(c.blobs, blob)
	b = append(b, `{"$blob":{"sha256":"`...)
	b = append(b, blob.SHA256...)
	b = append(b, `","size":`...)
	b = strconv.AppendInt(b, int64(len(s)), 10)
	return append(b, "}}"...)
}

// appendString appends s, which is valid UTF-8, as a canonical JSON string.
func appendString(b []byte, s string) []byte {
	b, _ = strictjson.AppendString(b, s)
	return b
}
