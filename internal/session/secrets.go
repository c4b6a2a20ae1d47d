package session

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/url"
	"slices"
	"sort"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	// minSecret is the shortest value that is treated as a secret, in bytes: a
	// shorter one would be found by chance.
	minSecret = 8
	// redacted stands in the record where a secret was.
	redacted = "[secret]"
)

// secrets finds registered values in text, in all their forms at once. It is
// immutable and safe for concurrent use; nil finds nothing.
//
// The search looks at the last two bytes of a window as long as the shortest
// form and skips as far as no form can end there, so its cost hardly depends on
// the number of secrets.
type secrets struct {
	min   int
	skip  [1 << 12]uint8
	forms map[uint16][]string // by the window's last two bytes, longest first
}

// newSecrets prepares the search for values.
func newSecrets(values [][]byte) (*secrets, error) {
	set := map[string]bool{}
	for i, v := range values {
		v = bytes.TrimSpace(v)
		if len(v) < minSecret {
			return nil, fmt.Errorf("secret %d of %d has %d bytes: at least %d are needed, or it would be found everywhere; choose a longer one or don't mark it as secret", i+1, len(values), len(v), minSecret)
		}
		for _, f := range formsOf(string(v)) {
			set[f] = true
		}
	}
	if len(set) == 0 {
		return nil, nil
	}
	m := &secrets{min: 255, forms: map[uint16][]string{}}
	for f := range set {
		m.min = min(m.min, len(f))
	}
	for i := range m.skip {
		m.skip[i] = uint8(m.min - 1)
	}
	for f := range set {
		for i := range m.min - 1 {
			b := block(f[i], f[i+1])
			m.skip[b] = min(m.skip[b], uint8(m.min-2-i))
		}
		last := block(f[m.min-2], f[m.min-1])
		m.forms[last] = append(m.forms[last], f)
	}
	for _, list := range m.forms {
		sort.Slice(list, func(i, j int) bool { return len(list[i]) > len(list[j]) })
	}
	return m, nil
}

func block(a, b byte) uint16 { return (uint16(a)<<4 ^ uint16(b)) & (1<<12 - 1) }

// find returns where the first form in s from offset from on lies, or -1.
func (m *secrets) find(s string, from int) (start, end int) {
	for i := from + m.min - 1; i < len(s); {
		b := block(s[i-1], s[i])
		if n := m.skip[b]; n > 0 {
			i += int(n)
			continue
		}
		at := i - m.min + 1
		for _, f := range m.forms[b] {
			if strings.HasPrefix(s[at:], f) {
				return at, at + len(f)
			}
		}
		i++
	}
	return -1, -1
}

// has reports whether s holds a form of a secret, line breaks within it or not.
func (m *secrets) has(s string) bool {
	if m == nil {
		return false
	}
	if at, _ := m.find(s, 0); at >= 0 {
		return true
	}
	joined, _ := joinLines(s, false)
	if joined == "" {
		return false
	}
	at, _ := m.find(joined, 0)
	return at >= 0
}

// replace returns s with every form of a secret replaced.
func (m *secrets) replace(s string) string {
	if m == nil {
		return s
	}
	s = m.replaceIn(s, s, nil)
	if joined, places := joinLines(s, true); joined != "" {
		s = m.replaceIn(s, joined, places)
	}
	return s
}

// replaceIn replaces what is found in view, whose byte i is byte places[i] of s
// (byte i if places is nil).
func (m *secrets) replaceIn(s, view string, places []int) string {
	place := func(i int) int {
		if places == nil {
			return i
		}
		return places[i]
	}
	var out strings.Builder
	done := 0
	for from := 0; ; {
		start, end := m.find(view, from)
		if start < 0 {
			break
		}
		out.WriteString(s[done:place(start)])
		out.WriteString(redacted)
		done = place(end-1) + 1
		from = end
	}
	if done == 0 {
		return s
	}
	out.WriteString(s[done:])
	return out.String()
}

// joinLines returns s without line breaks, as bytes or as the escapes \n and \r
// (of JSON in JSON too), and where each byte lay: base64 is commonly broken into lines. It returns ""
// if there are none.
func joinLines(s string, withPlaces bool) (string, []int) {
	if !strings.Contains(s, "\n") && !strings.Contains(s, `\n`) {
		return "", nil
	}
	b := make([]byte, 0, len(s))
	var places []int
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\n' || s[i] == '\r':
			continue
		case s[i] == '\\':
			end := i
			for end < len(s) && s[end] == '\\' {
				end++
			}
			if end < len(s) && (s[end] == 'n' || s[end] == 'r') {
				i = end
				continue
			}
		}
		b = append(b, s[i])
		if withPlaces {
			places = append(places, i)
		}
	}
	return string(b), places
}

// formsOf returns the forms of v that are looked for, v itself included.
func formsOf(v string) []string {
	texts := []string{v, validText(v), strings.NewReplacer("\r", "", "\n", "").Replace(v)}
	var forms []string
	for _, t := range texts {
		if len(t) < minSecret {
			continue
		}
		forms = append(forms, t)
		forms = append(forms, jsonForms(t)...)
		forms = append(forms, urlForms(t)...)
		forms = append(forms, base64Forms(t)...)
	}
	slices.Sort(forms)
	return slices.Compact(forms)
}

// jsonForms returns s as JSON encoders write it within quotes, and once more
// within a string of its own: JSON text is often a string in JSON.
func jsonForms(s string) []string {
	var forms []string
	for bits := range 16 {
		once := jsonEscape(s, bits&1 != 0, bits&2 != 0, bits&4 != 0, bits&8 != 0)
		forms = append(forms, once, jsonEscape(once, false, false, false, false))
	}
	return forms
}

// jsonEscape escapes what JSON demands and, as encoders differ in it, the slash,
// characters of HTML, everything beyond ASCII, with upper-case digits or lower.
func jsonEscape(s string, slash, html, ascii, upper bool) string {
	format := `\u%04x`
	if upper {
		format = `\u%04X`
	}
	var b strings.Builder
	for i, r := range s {
		short := strings.IndexRune("\"\\\b\t\n\f\r", r)
		switch {
		case r == utf8.RuneError && s[i] != "\uFFFD"[0]:
			b.WriteByte(s[i])
		case short >= 0:
			b.WriteByte('\\')
			b.WriteByte(`"\btnfr`[short])
		case r < ' ', html && (r == '<' || r == '>' || r == '&' || r == '\u2028' || r == '\u2029'):
			fmt.Fprintf(&b, format, r)
		case slash && r == '/':
			b.WriteString(`\/`)
		case ascii && r >= 0x7f:
			for _, u := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(&b, format, u)
			}
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// urlForms returns s percent-encoded as queries, paths and scripts do it.
func urlForms(s string) []string {
	forms := []string{url.QueryEscape(s), url.PathEscape(s), strings.ReplaceAll(url.QueryEscape(s), "+", "%20")}
	// encodeURIComponent leaves these as they are.
	forms = append(forms, strings.NewReplacer("%21", "!", "%27", "'", "%28", "(", "%29", ")", "%2A", "*").Replace(forms[2]))
	for _, f := range slices.Clone(forms) { // as it is done to whole paths
		forms = append(forms, strings.ReplaceAll(f, "%2F", "/"))
	}
	forms = append(forms, (&url.URL{Path: s}).EscapedPath())
	for _, f := range slices.Clone(forms) {
		forms = append(forms, lowerPercent(f))
	}
	return forms
}

func lowerPercent(s string) string {
	b := []byte(s)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i+1:i+3], bytes.ToLower(b[i+1:i+3]))
			i += 2
		}
	}
	return string(b)
}

// base64Forms returns the characters that s fixes in base64 text, for each of
// the three places at which it can start within a group.
func base64Forms(s string) []string {
	var forms []string
	for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for before := range 3 {
			text := enc.EncodeToString([]byte("\x00\x00"[:before] + s))
			bits := 8 * before
			forms = append(forms, text[(bits+5)/6:(bits+8*len(s))/6])
		}
	}
	return forms
}

// validText returns s with every byte that isn't UTF-8 written as \xNN, so that
// no event is lost for it and a reader sees which byte it was.
func validText(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		if r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD") {
			fmt.Fprintf(&b, `\x%02x`, s[i])
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}
