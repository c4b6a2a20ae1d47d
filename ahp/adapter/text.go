package adapter

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxReason bounds a text that a host is told, in bytes.
const MaxReason = 4 << 10

// Clean returns s for a host's answer: valid UTF-8 without control characters but line
// feeds and tabs, and without what changes the direction of text or hides in it, of at
// most MaxReason bytes. Hosts pass such texts on raw to a terminal or to a model.
func Clean(s string) string {
	s = strings.TrimSpace(Printable(s))
	if len(s) <= MaxReason {
		return s
	}
	const more = " […]"
	cut := MaxReason - len(more)
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + more
}

// Reason returns s as the words of a refusal: see Words. Blank ones become some, because
// hosts take a refusal with a blank reason for none.
func Reason(s string) string {
	if s = Words(s); s == "" {
		return "A policy refused this."
	}
	return s
}

// Words returns s for a place where a host expects words. Those that look like JSON get
// a word in front: there are hosts that read JSON wherever words are expected, and what
// says nothing of a decision then lets the call run.
func Words(s string) string {
	s = strings.TrimFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) })
	if s == "" || !strings.ContainsAny(s[:1], `{["-0123456789`) && s != "true" && s != "false" && s != "null" {
		return s
	}
	return "Policy: " + s
}

// Printable is Clean without the bound, for content that isn't ours to cut.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == utf8.RuneError || unicode.IsControl(r) || unicode.Is(unicode.Cf, r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, ""))
}
