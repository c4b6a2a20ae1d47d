package mcp

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// visible returns a server's text without what a person doesn't see and a model
// reads: control, bidi, zero-width and tag characters, variation selectors and
// invisible letters. Line ends and tabs stay; CR LF becomes LF.
func visible(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs):
			return -1
		case r >= 0xFE00 && r <= 0xFE0F, r >= 0xE0000 && r <= 0xE0FFF:
			return -1
		case r == '\u2028' || r == '\u2029':
			return '\n'
		}
		switch r { // letters and marks that are drawn as nothing
		case 0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180B, 0x180C, 0x180D, 0x180F, 0x3164, 0xFFA0:
			return -1
		}
		return r
	}, s)
}

// cut bounds a text and says how much was cut.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	n := runeStart(s, limit)
	return s[:n] + fmt.Sprintf(" …(%d bytes cut)", len(s)-n)
}

// cutMiddle keeps the beginning and the end of a text.
func cutMiddle(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	head := runeStart(s, limit*3/4)
	tail := runeStart(s, len(s)-limit/4)
	return s[:head] + fmt.Sprintf("\n[… %d of %d bytes cut here; ask for less at a time …]\n", tail-head, len(s)) + s[tail:]
}

// runeStart returns the last position up to n at which a character begins.
func runeStart(s string, n int) int {
	for i := 0; i < utf8.UTFMax && n > 0 && n < len(s) && !utf8.RuneStart(s[n]); i++ {
		n--
	}
	return n
}

// quoted shows a server's word, for example the name of a tool, in a message.
func quoted(s string) string { return fmt.Sprintf("%q", cut(s, 100)) }

// redactor takes secrets out of texts.
type redactor struct{ secrets []string }

// minSecret is the length from which a value is taken for a secret: shorter ones,
// as "1" or "true", would make texts unreadable and hide nothing.
const minSecret = 5

// newRedactor returns the redactor of a server's secrets.
func newRedactor(cfg *Server) *redactor {
	r := &redactor{}
	add := func(s string) {
		if s = strings.TrimSpace(s); len(s) >= minSecret && !slices.Contains(r.secrets, s) {
			r.secrets = append(r.secrets, s)
		}
	}
	for _, entry := range cfg.Env {
		_, value, _ := strings.Cut(entry, "=")
		add(value)
	}
	for _, value := range cfg.Headers {
		add(value)
		if scheme, token, ok := strings.Cut(value, " "); ok && len(scheme) < 10 {
			add(token) // Bearer and its like
		}
	}
	for _, s := range urlSecrets(cfg.URL) {
		add(s)
	}
	// A secret may be part of another one.
	slices.SortFunc(r.secrets, func(a, b string) int { return len(b) - len(a) })
	return r
}

func (r *redactor) clean(s string) string {
	for _, secret := range r.secrets {
		s = strings.ReplaceAll(s, secret, "[secret]")
	}
	return s
}
