// Package chain links the lines of a log so that no line can be changed, removed,
// inserted or moved without a trace, and signs where the log stands.
//
// A log is a file of JSON objects, one a line. Each has seq (1 in the first line,
// no gaps), prev (the previous line's hash, "" in the first) and hash: SHA-256,
// in lower-case hex, over the object's canonical JSON (gate.md §1: RFC 8785 with
// number literals as written) without the member hash. Lines are stored in
// canonical form, so the stored bytes are what was hashed. The session record,
// the hooks' log and the log backend share this form.
//
// It guarantees that a line that passes Checker links to every line before it,
// and that a verified signature covers exactly the named log up to the named
// line. A signature is over the head alone: it vouches for all that is chained
// below.
//
// Do not assume that an unbroken chain is authentic: whoever can write the file
// can compute hashes. Only a signature by a known key, or a head that was
// anchored elsewhere, tells; and neither tells that lines behind it were cut
// off.
package chain

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/abhed/abhed/internal/strictjson"
)

const (
	// HashSize is the length of a hash in hexadecimal digits.
	HashSize = 2 * sha256.Size
	// MaxLine bounds one line in bytes: 16 MiB.
	MaxLine = strictjson.DefaultMaxBytes
	// MaxDepth bounds the nesting of one line: a value of the strict door's
	// default depth fits some levels down.
	MaxDepth = 128 + 8

	memberStart = `"hash":"`
	memberSize  = len(memberStart) + HashSize + len(`",`)
)

// Stamp computes the hash of the canonical object in line, which holds the
// member `"hash":"…",` with 64 digits of any value at offset at, followed by a
// further member; it writes the hash there and returns it. The caller vouches
// for the form.
func Stamp(line []byte, at int) string {
	h := sha256.New()
	h.Write(line[:at])
	h.Write(line[at+memberSize:])
	var sum [sha256.Size]byte
	hex.Encode(line[at+len(memberStart):], h.Sum(sum[:0]))
	start := at + len(memberStart)
	return string(line[start : start+HashSize])
}

// Seal returns object in canonical form with its hash, as one line without line
// end. object must be a JSON object without the member hash and with the members
// seq and prev, which are the caller's to set.
func Seal(object []byte) (line []byte, hash string, err error) {
	if _, err := parseLink(object); err != nil {
		return nil, "", err
	}
	c, err := canonical(object)
	if err != nil {
		return nil, "", err
	}
	sum := sha256.Sum256(c)
	hash = hex.EncodeToString(sum[:])
	// Every sealed object has seq, which sorts behind hash: the new member is
	// put in front of the first name that is greater.
	at, err := insertAt(c)
	if err != nil {
		return nil, "", err
	}
	member := memberStart + hash + `",`
	line = append(append(append(make([]byte, 0, len(c)+len(member)), c[:at]...), member...), c[at:]...)
	return line, hash, nil
}

// insertAt returns the offset in the canonical object c of the first member
// whose name sorts behind "hash".
func insertAt(c []byte) (int, error) {
	at := -1
	_, err := members(c, func(name []byte, start, _ int) bool {
		if string(name) == "hash" {
			at = -1
			return false
		}
		if string(name) > "hash" {
			at = start
			return false
		}
		return true
	})
	if err == nil && at < 0 {
		err = errors.New("the object has a member hash already, expected none")
	}
	return at, err
}

// canonical returns the canonical form of one line.
func canonical(line []byte) ([]byte, error) {
	if err := strictjson.Check(line, strictjson.Options{MaxBytes: MaxLine, MaxDepth: MaxDepth}); err != nil {
		return nil, err
	}
	v := jsontext.Value(bytes.Clone(line))
	err := v.Canonicalize(jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false))
	return v, err
}

// Link is what places a line in its log.
type Link struct {
	Seq  int64
	Prev string
	Hash string
}

// ParseLink reads the link of a line by the strict door.
func ParseLink(line []byte) (Link, error) {
	l, err := parseLink(line)
	if err == nil && !isHash(l.Hash) {
		err = &strictjson.Error{Pointer: "/hash", Msg: "missing or malformed, expected 64 lower-case hexadecimal digits"}
	}
	return l, err
}

func parseLink(line []byte) (Link, error) {
	var w struct {
		Seq  int64  `json:"seq"`
		Prev string `json:"prev"`
		Hash string `json:"hash"`
	}
	err := strictjson.Unmarshal(line, &w, strictjson.Options{MaxBytes: MaxLine, MaxDepth: MaxDepth})
	switch {
	case err != nil:
	case w.Seq < 1:
		err = &strictjson.Error{Pointer: "/seq", Msg: fmt.Sprintf("found %d, expected an integer of 1 or more", w.Seq)}
	case w.Prev != "" && !isHash(w.Prev):
		err = &strictjson.Error{Pointer: "/prev", Msg: "malformed, expected 64 lower-case hexadecimal digits or nothing"}
	}
	return Link{Seq: w.Seq, Prev: w.Prev, Hash: w.Hash}, err
}

func isHash(s string) bool {
	if len(s) != HashSize {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// HashOf computes the hash of a stored line over its bytes as they are, without
// the member hash, and returns it beside the hash that the line states.
func HashOf(line []byte) (computed, stated string, err error) {
	line = bytes.TrimSuffix(line, []byte("\n"))
	from, to := -1, -1
	_, err = members(line, func(name []byte, start, end int) bool {
		if string(name) == "hash" {
			from, to = start, end
			return false
		}
		return true
	})
	if err != nil {
		return "", "", err
	}
	if from < 0 || to-from != memberSize-1 || to >= len(line) || line[to] != ',' {
		return "", "", errors.New(`no member "hash" of 64 digits in canonical place`)
	}
	h := sha256.New()
	h.Write(line[:from])
	h.Write(line[to+1:])
	return hex.EncodeToString(h.Sum(nil)), string(line[from+len(memberStart) : to-1]), nil
}

// members calls f with the name of each member of the compact object c, and the
// offsets of its first byte and behind its last, until f returns false. It looks
// at no more than that needs, so c may be malformed behind.
func members(c []byte, f func(name []byte, start, end int) bool) (int, error) {
	malformed := errors.New("not a compact JSON object")
	if len(c) == 0 || c[0] != '{' {
		return 0, malformed
	}
	for i := 1; i < len(c) && c[i] == '"'; {
		nameEnd := stringEnd(c, i)
		if nameEnd < 0 || nameEnd >= len(c) || c[nameEnd] != ':' {
			return i, malformed
		}
		end := valueEnd(c, nameEnd+1)
		if end < 0 {
			return i, malformed
		}
		if !f(c[i+1:nameEnd-1], i, end) {
			return i, nil
		}
		if end >= len(c) {
			return end, malformed
		}
		if c[end] == '}' {
			return end, nil
		}
		i = end + 1
	}
	return 0, malformed
}

// stringEnd returns the offset behind the string that starts at c[i], or -1.
func stringEnd(c []byte, i int) int {
	for i++; i < len(c); i++ {
		switch c[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return -1
}

// valueEnd returns the offset of the comma or bracket behind the value at c[i],
// or -1.
func valueEnd(c []byte, i int) int {
	depth := 0
	for i < len(c) {
		switch c[i] {
		case '"':
			if i = stringEnd(c, i); i < 0 {
				return -1
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i
			}
			depth--
		case ',':
			if depth == 0 {
				return i
			}
		}
		i++
	}
	return -1
}
