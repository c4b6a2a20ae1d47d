package chain

import (
	"bytes"
	"errors"
	"fmt"
	"math/bits"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// removed stands in the place of what was scrubbed.
const removed = "[removed]"

// minSecret is the shortest value that Scrubber takes, in bytes: a shorter one would
// be found in everything.
const minSecret = 8

// Scrubber returns a function that takes secrets out of an event before it is logged.
// It replaces, in every string value of the event, the given values and what is shaped
// like a credential: tokens of well-known issuers, private keys, authorization headers,
// passwords in URLs, in assignments and behind options; and the whole value of a member
// whose name says that it is one, and the strings of a list that it holds. Member
// names, numbers and the order of members stay. It fails on a value of less than 8
// bytes. The event must be valid JSON; one without a finding is returned itself, so
// canonical form stays.
func Scrubber(values []string) (func(event []byte) ([]byte, error), error) {
	var pairs []string
	for _, v := range values {
		if len(v) < minSecret {
			return nil, fmt.Errorf("a value of %d bytes is too short to be scrubbed; at least %d are needed", len(v), minSecret)
		}
		pairs = append(pairs, v, removed)
	}
	s := &scrubber{shapes: shapes()}
	if len(pairs) > 0 {
		s.literal = strings.NewReplacer(pairs...)
	}
	for i := range s.shapes {
		for _, word := range s.shapes[i].words {
			s.begins[pair(word[0], word[1])] |= 1 << i
		}
	}
	return s.scrub, nil
}

type scrubber struct {
	// literal replaces the given values; nil for none.
	literal *strings.Replacer
	shapes  []shape
	// begins has, for each pair of bytes, the shapes of which a word may begin so, as
	// bits; some pairs share a place, and those that differ in case do.
	begins [1024]uint16
}

func pair(first, second byte) int { return int(first&31)<<5 | int(second&31) }

var errNotJSON = errors.New("the event isn't valid JSON, so it can't be scrubbed")

// scrub walks over the strings of an event.
func (s *scrubber) scrub(event []byte) ([]byte, error) {
	var out []byte // what is changed, up to event[from]
	from := 0
	// For each open container, and for the member at hand, whether its name says that
	// its string is a secret.
	lists, secret := make([]bool, 0, 32), false
	for i := 0; i < len(event); i++ {
		switch event[i] {
		case '{', '[':
			lists = append(lists, secret && event[i] == '[')
			secret = lists[len(lists)-1]
		case '}', ']':
			if len(lists) == 0 {
				return nil, errNotJSON
			}
			lists = lists[:len(lists)-1]
			secret = len(lists) > 0 && lists[len(lists)-1]
		case ',':
			secret = len(lists) > 0 && lists[len(lists)-1]
		case '"':
			end := stringEnd(event, i)
			if end < 0 {
				return nil, errNotJSON
			}
			quoted := event[i:end]
			if isName(event, end) {
				secret = namesSecret(quoted)
				i = end - 1
				continue
			}
			with, changed, err := s.value(quoted, secret)
			if err != nil {
				return nil, err
			}
			if changed {
				out = append(append(out, event[from:i]...), with...)
				from = end
			}
			i = end - 1
		}
	}
	if len(lists) > 0 {
		return nil, errNotJSON
	}
	if out == nil {
		return event, nil
	}
	return append(out, event[from:]...), nil
}

// isName reports whether the string that ends at event[end] is the name of a member.
func isName(event []byte, end int) bool {
	for ; end < len(event); end++ {
		switch event[end] {
		case ' ', '\t', '\r', '\n':
			continue
		}
		return event[end] == ':'
	}
	return false
}

// value returns what stands in the place of a quoted string, if anything else.
func (s *scrubber) value(quoted []byte, secret bool) (with []byte, changed bool, err error) {
	if secret {
		return []byte(`"` + removed + `"`), true, nil
	}
	escaped := bytes.IndexByte(quoted, '\\') >= 0
	// The words are plain letters and signs, which only \u can hide.
	hidden := escaped && (bytes.Contains(quoted, []byte(`\u`)) || bytes.Contains(quoted, []byte(`\/`)))
	found := s.suspects(quoted)
	if s.literal == nil && found == 0 && !hidden {
		return nil, false, nil
	}
	plain, err := jsontext.AppendUnquote(nil, quoted)
	if err != nil {
		return nil, false, fmt.Errorf("%w: %w", errNotJSON, err)
	}
	before := string(plain)
	text := before
	if s.literal != nil {
		text = s.literal.Replace(text)
	}
	if hidden {
		found = s.suspects([]byte(text))
	}
	for i := range s.shapes {
		if found&(1<<i) != 0 {
			text = s.shapes[i].replace(text)
		}
	}
	if text == before {
		return nil, false, nil
	}
	with, err = jsontext.AppendQuote(nil, text)
	return with, true, err
}

// suspects returns the shapes of which a word is in text, as bits: without one there
// is nothing to look for.
func (s *scrubber) suspects(text []byte) uint16 {
	var found uint16
	for i := 1; i < len(text); i++ {
		maybe := s.begins[pair(text[i-1], text[i])] &^ found
		for ; maybe != 0; maybe &= maybe - 1 {
			if n := bits.TrailingZeros16(maybe); s.shapes[n].at(text[i-1:]) {
				found |= 1 << n
			}
		}
	}
	return found
}

// namesSecret reports whether a member of this name, which is quoted, holds a
// credential: by its end, as DB_PASSWORD does.
func namesSecret(quoted []byte) bool {
	name := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(name, '\\') >= 0 {
		plain, err := jsontext.AppendUnquote(nil, quoted)
		if err != nil {
			return true
		}
		name = plain
	}
	for _, end := range [...]string{"password", "passwd", "passphrase", "secret", "token", "authorization", "apikey", "accesskey", "privatekey",
		"credential", "credentials", "cookie"} {
		if endsWith(name, end) {
			return true
		}
	}
	return false
}

// endsWith reports whether name ends with the lower-case word, whatever its case and
// whichever of - _ . stand in it.
func endsWith(name []byte, word string) bool {
	at := len(name) - 1
	for i := len(word) - 1; i >= 0; i-- {
		for at >= 0 && (name[at] == '-' || name[at] == '_' || name[at] == '.') {
			at--
		}
		if at < 0 || lower(name[at]) != word[i] {
			return false
		}
		at--
	}
	return true
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
