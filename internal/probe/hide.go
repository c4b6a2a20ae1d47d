package probe

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	redacted = "[redacted]"
	// minSecret is the shortest secret that is looked for.
	minSecret = 4
	// minStart is the shortest start of a secret that is hidden where a text was cut.
	minStart = 6
	// maxText bounds each text of a report, in bytes.
	maxText = 600
)

// hider keeps secrets and what a terminal obeys out of texts.
type hider struct {
	// forms are the secrets in every form in which an endpoint may echo them, the
	// longest first.
	forms []string
	// scheme matches the value of an Authorization header, whatever it is.
	scheme *regexp.Regexp
}

func newHider(secrets [][]byte) *hider {
	h := &hider{scheme: regexp.MustCompile(`(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}`)}
	for _, raw := range secrets {
		raw = bytes.TrimSpace(raw)
		if len(raw) < minSecret {
			continue
		}
		s := string(raw)
		quoted := strconv.Quote(s)
		quoted = quoted[1 : len(quoted)-1]
		forms := []string{s, quoted, strings.ReplaceAll(quoted, `\"`, "'"), url.QueryEscape(s), url.PathEscape(s), hex.EncodeToString(raw),
			base64.StdEncoding.EncodeToString(raw), base64.RawStdEncoding.EncodeToString(raw), base64.URLEncoding.EncodeToString(raw), base64.RawURLEncoding.EncodeToString(raw)}
		for _, f := range forms {
			if !slices.Contains(h.forms, f) {
				h.forms = append(h.forms, f)
			}
		}
	}
	slices.SortStableFunc(h.forms, func(a, b string) int { return len(b) - len(a) })
	return h
}

// clean returns s in one line of bounded length, without secrets and control
// characters.
func (h *hider) clean(s string) string {
	s = strings.Map(plain, strings.ToValidUTF8(s, "\uFFFD"))
	for _, f := range h.forms {
		s = strings.ReplaceAll(s, f, redacted)
	}
	s = h.scheme.ReplaceAllString(s, "${1} "+redacted)
	s = h.starts(s)
	if len(s) <= maxText {
		return s
	}
	cut := maxText
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

// starts hides the start of a secret where somebody before us has cut the text.
func (h *hider) starts(s string) string {
	var b strings.Builder
	pieces := strings.SplitAfter(s, "…")
	for i, piece := range pieces {
		if i == len(pieces)-1 {
			b.WriteString(piece)
			break
		}
		text := strings.TrimRight(strings.TrimSuffix(piece, "…"), `"' `)
		rest := piece[len(text):]
		b.WriteString(h.withoutStart(text))
		b.WriteString(rest)
	}
	return b.String()
}

func (h *hider) withoutStart(text string) string {
	for _, f := range h.forms {
		for n := min(len(f)-1, len(text)); n >= minStart; n-- {
			if strings.HasSuffix(text, f[:n]) {
				return text[:len(text)-n] + redacted
			}
		}
	}
	return text
}

// plain replaces what a terminal or a reader's eye would be misled by.
func plain(c rune) rune {
	switch {
	case c == '\n' || c == '\t' || c == '\r':
		return ' '
	case unicode.IsControl(c), unicode.Is(unicode.Cf, c), c == '\u2028', c == '\u2029':
		return '\uFFFD'
	}
	return c
}
