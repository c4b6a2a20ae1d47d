package rpcmode

import (
	"bytes"

	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/strictjson"
)

// looseID returns the id of a line that is no sound object, or nil. It follows the
// members of the outermost object for as long as they can be told apart, and finds
// the id only if it is there once: of two it is unknown which one was meant.
func looseID(text []byte) event.Raw {
	s := looseScanner{rest: text}
	if !s.take('{') {
		return nil
	}
	var id event.Raw
	for {
		name, ok := s.text()
		if !ok || !s.take(':') {
			return id
		}
		value, ok := s.value()
		if string(name) == `"id"` {
			if id != nil || !ok {
				return nil
			}
			if id = soundID(value); id == nil {
				return nil
			}
		}
		if !ok || !s.take(',') {
			return id
		}
	}
}

// soundID returns value if it may be an id.
func soundID(value []byte) event.Raw {
	if strictjson.Check(value, strictjson.Options{MaxBytes: maxID}) != nil {
		return nil
	}
	id, _ := idOf(event.Raw(bytes.Clone(value)))
	return id
}

// looseScanner cuts text into what looks like JSON.
type looseScanner struct{ rest []byte }

// take takes white space and then c, and reports whether it was there.
func (s *looseScanner) take(c byte) bool {
	s.rest = bytes.TrimLeft(s.rest, " \t\r")
	if len(s.rest) == 0 || s.rest[0] != c {
		return false
	}
	s.rest = s.rest[1:]
	return true
}

// text takes a string, and returns it with its quotes.
func (s *looseScanner) text() ([]byte, bool) {
	whole := bytes.TrimLeft(s.rest, " \t\r")
	if len(whole) == 0 || whole[0] != '"' {
		return nil, false
	}
	for i := 1; i < len(whole); i++ {
		switch whole[i] {
		case '\\':
			i++
		case '"':
			s.rest = whole[i+1:]
			return whole[:i+1], true
		}
	}
	return nil, false
}

// value takes a value: a string, a bracket with all in it, or a run of other bytes.
func (s *looseScanner) value() ([]byte, bool) {
	whole := bytes.TrimLeft(s.rest, " \t\r")
	s.rest = whole
	for depth := 0; len(s.rest) > 0; {
		switch c := s.rest[0]; c {
		case '"':
			text, ok := s.text()
			if !ok || depth == 0 {
				return text, ok && len(s.rest)+len(text) == len(whole)
			}
		case '{', '[':
			depth++
			s.rest = s.rest[1:]
		case '}', ']', ',', ' ', '\t', '\r':
			if depth == 0 {
				taken := whole[:len(whole)-len(s.rest)]
				return taken, len(taken) > 0
			}
			if c == '}' || c == ']' {
				depth--
			}
			s.rest = s.rest[1:]
		default:
			s.rest = s.rest[1:]
		}
	}
	return nil, false
}
