package tool

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// validate checks arguments against the schema.
func (e *entry) validate(args map[string]any) error {
	if err := e.schema.Validate(args); err != nil {
		return fmt.Errorf("%s. The tool takes: %s", strings.TrimSuffix(lastClause(err.Error()), "."), strings.Join(e.members, ", "))
	}
	return nil
}

// lastClause drops the chain of schema locations that the validator puts before
// what was wrong.
func lastClause(s string) string {
	for {
		head, tail, ok := strings.Cut(s, ": ")
		if !ok || !strings.HasPrefix(head, "validating ") {
			return s
		}
		s = tail
	}
}

// Clean returns s as text that every API takes: valid UTF-8 without NUL. A bad
// byte and a NUL are written as \xNN, so that nothing is lost silently.
func Clean(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if (r == utf8.RuneError && n == 1) || r == 0 {
			fmt.Fprintf(&b, `\x%02x`, s[i])
		} else {
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}

// Name returns the name of a file as it is shown within a line: like Clean, and with
// control characters escaped, since a name may hold line breaks and would else pass
// for lines of its own.
func Name(s string) string {
	s = Clean(s)
	if !strings.ContainsFunc(s, breaks) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if !breaks(r) {
			b.WriteRune(r)
			continue
		}
		quoted := strconv.QuoteRuneToASCII(r)
		b.WriteString(quoted[1 : len(quoted)-1])
	}
	return b.String()
}

// breaks reports whether a character may end a line, or do worse.
func breaks(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' }
