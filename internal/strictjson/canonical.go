package strictjson

import (
	"bytes"
	"unicode/utf8"
)

// AppendString appends s to b as a canonical JSON string (RFC 8785 §3.2.2.2): only
// what must be escaped is. It reports whether s is valid UTF-8; if not, what it
// appended is of no use.
func AppendString(b []byte, s string) ([]byte, bool) {
	const hexDigits = "0123456789abcdef"
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if plain[c] {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				return b, false
			}
			i += n
			continue
		}
		b = append(b, s[start:i]...)
		if short := shortEscape(c); short != 0 {
			b = append(b, '\\', short)
		} else {
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		i++
		start = i
	}
	b = append(b, s[start:]...)
	return append(b, '"'), true
}

// plain marks the bytes that stand for themselves in a JSON string.
var plain = func() (t [256]bool) {
	for c := ' '; c < utf8.RuneSelf; c++ {
		t[c] = c != '"' && c != '\\'
	}
	return t
}()

// shortEscape returns the letter that follows the backslash, or 0.
func shortEscape(c byte) byte {
	switch c {
	case '"', '\\':
		return c
	case '\b':
		return 'b'
	case '\t':
		return 't'
	case '\n':
		return 'n'
	case '\f':
		return 'f'
	case '\r':
		return 'r'
	}
	return 0
}

// maxQuick is the nesting up to which IsCanonical looks.
const maxQuick = 64

// IsCanonical reports whether r is canonical JSON (gate.md §1) beyond doubt. It
// may say no to a canonical value (deep nesting, names that need care), never yes
// to another: it spares the common case a second parse.
func IsCanonical(r []byte) bool { return canonicalValue(r, 0, 0) == len(r) && len(r) > 0 }

// canonicalValue returns the offset behind the value at r[i], or -1.
func canonicalValue(r []byte, i, depth int) int {
	if i >= len(r) || depth > maxQuick {
		return -1
	}
	switch c := r[i]; {
	case c == '{' || c == '[':
		return canonicalItems(r, i, depth)
	case c == '"':
		return canonicalString(r, i)
	case c == '-' || c >= '0' && c <= '9':
		return number(r, i)
	}
	for _, lit := range []string{"true", "false", "null"} {
		if len(r)-i >= len(lit) && string(r[i:i+len(lit)]) == lit {
			return i + len(lit)
		}
	}
	return -1
}

// canonicalItems follows an object or a list from its opening bracket.
func canonicalItems(r []byte, i, depth int) int {
	object, end := r[i] == '{', r[i]+2
	if i++; i < len(r) && r[i] == end {
		return i + 1
	}
	var last []byte
	for first := true; ; first = false {
		if object {
			name := plainName(r, i)
			if name == nil || !first && bytes.Compare(last, name) >= 0 {
				return -1
			}
			last = name
			if i += len(name) + len(`""`); i >= len(r) || r[i] != ':' {
				return -1
			}
			i++
		}
		i = canonicalValue(r, i, depth+1)
		if i < 0 || i >= len(r) || r[i] != ',' && r[i] != end {
			return -1
		}
		if i++; r[i-1] == end {
			return i
		}
	}
}

// plainName returns the member name at r[i] if it consists of ASCII characters
// that need no escape, so that comparing bytes is comparing UTF-16 units.
func plainName(r []byte, i int) []byte {
	if i >= len(r) || r[i] != '"' {
		return nil
	}
	for j := i + 1; j < len(r); j++ {
		if plain[r[j]] {
			continue
		}
		if r[j] == '"' {
			return r[i+1 : j]
		}
		return nil
	}
	return nil
}

func canonicalString(r []byte, i int) int {
	for i++; i < len(r); {
		switch c := r[i]; {
		case plain[c]:
			i++
		case c == '"':
			return i + 1
		case c < ' ':
			return -1
		case c == '\\':
			n := escape(r[i:])
			if n == 0 {
				return -1
			}
			i += n
		case c >= utf8.RuneSelf:
			u, n := utf8.DecodeRune(r[i:])
			if u == utf8.RuneError && n == 1 {
				return -1
			}
			i += n
		}
	}
	return -1
}

// escape returns the length of the escape sequence at the start of r if it is
// the canonical one, or 0.
func escape(r []byte) int {
	if len(r) < 2 {
		return 0
	}
	switch r[1] {
	case '"', '\\', 'b', 't', 'n', 'f', 'r':
		return 2
	case 'u':
		if len(r) < 6 || r[2] != '0' || r[3] != '0' || r[4] != '0' && r[4] != '1' {
			return 0
		}
		low := bytes.IndexByte([]byte("0123456789abcdef"), r[5])
		if low < 0 || shortEscape((r[4]-'0')<<4|byte(low)) != 0 {
			return 0
		}
		return 6
	}
	return 0
}

// number returns the offset behind the number literal at r[i], or -1; literals
// stay as written.
func number(r []byte, i int) int {
	digits := func() bool {
		start := i
		for i < len(r) && r[i] >= '0' && r[i] <= '9' {
			i++
		}
		return i > start
	}
	if r[i] == '-' {
		i++
	}
	if i < len(r) && r[i] == '0' {
		i++
	} else if !digits() {
		return -1
	}
	if i < len(r) && r[i] == '.' {
		if i++; !digits() {
			return -1
		}
	}
	if i < len(r) && (r[i] == 'e' || r[i] == 'E') {
		i++
		if i < len(r) && (r[i] == '+' || r[i] == '-') {
			i++
		}
		if !digits() {
			return -1
		}
	}
	return i
}
