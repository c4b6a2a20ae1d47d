package edit

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of the search for what may have been meant.
const (
	maxLines   = 50_000
	maxCompare = 300 // bytes of a line
	maxShown   = 12  // lines
)

var numbered = regexp.MustCompile(`(?m)^ *\d+\t`)

// notFound says that old is not in text, and what is there that comes nearest.
func notFound(text, old string) string {
	msg := "old_string was not found."
	if numbered.MatchString(old) && !numbered.MatchString(text) {
		return msg + " It seems to hold the line numbers that read shows; leave those out."
	}
	have, want := strings.SplitN(text, "\n", maxLines), strings.Split(old, "\n")
	at, alike := lookAlike(have, want)
	if !alike {
		if at = mostSimilar(have, want); at < 0 {
			return msg + " Nothing like it is in the file; read it again."
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s The nearest text is at line %d:\n", msg, at+1)
	for i := at; i < min(len(have), at+min(len(want), maxShown)); i++ {
		fmt.Fprintf(&b, "%d\t%s\n", i+1, clip(have[i], 300))
	}
	b.WriteString(difference(have, want, at))
	return b.String()
}

// lookAlike finds where the lines are the same but for white space and characters
// that look alike. The first and the last line of want may be parts of lines.
func lookAlike(have, want []string) (int, bool) {
	folded := make([]string, len(have))
	for i, l := range have {
		folded[i] = fold(l)
	}
	goal := make([]string, len(want))
	blank := true
	for i, l := range want {
		goal[i] = fold(l)
		blank = blank && goal[i] == ""
	}
	if blank {
		return 0, false
	}
	last := len(goal) - 1
	for at := 0; at+last < len(have); at++ {
		ok := true
		for k := 0; ok && k <= last; k++ {
			line := folded[at+k]
			switch {
			case last == 0:
				ok = strings.Contains(line, goal[0])
			case k == 0:
				ok = strings.HasSuffix(line, goal[0])
			case k == last:
				ok = strings.HasPrefix(line, goal[last])
			default:
				ok = line == goal[k]
			}
		}
		if ok {
			return at, true
		}
	}
	return 0, false
}

// fold maps what looks alike to one form: all white space to nothing, typographic
// quotes and dashes to those of ASCII, invisible characters to nothing.
func fold(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r < utf8.RuneSelf: // most of them, and quickly
			if unicode.IsSpace(r) {
				return -1
			}
		case unicode.IsSpace(r), unicode.Is(unicode.Cf, r), unicode.Is(unicode.Zs, r):
			return -1
		case strings.ContainsRune("‘’‚‛′", r):
			return '\''
		case strings.ContainsRune("“”„‟″", r):
			return '"'
		case strings.ContainsRune("‐‑‒–—―−", r):
			return '-'
		}
		return r
	}, s)
}

// mostSimilar returns the line at which want most likely was meant to begin, or -1.
// It goes by the longest line of want, as that is the least likely to be elsewhere.
func mostSimilar(have, want []string) int {
	key := 0
	for i, l := range want {
		if len(strings.TrimSpace(l)) > len(strings.TrimSpace(want[key])) {
			key = i
		}
	}
	goal := newMeasure(want[key])
	best, at := 0.5, -1
	for i, l := range have {
		if s := goal.similarity(l); s > best {
			best, at = s, i
		}
	}
	if at < 0 {
		return -1
	}
	return max(0, at-key)
}

// measure compares lines with one line by their pairs of neighbouring bytes.
type measure struct {
	index [1 << 16]int16 // of a pair in count, from 1; 0 is none
	count []int16
	left  []int16
	total int
}

func newMeasure(line string) *measure {
	m := &measure{count: []int16{0}}
	line = forCompare(line)
	for i := 0; i+1 < len(line); i++ {
		at := &m.index[pair(line, i)]
		if *at == 0 {
			*at = int16(len(m.count))
			m.count = append(m.count, 0)
		}
		m.count[*at]++
		m.total++
	}
	m.left = make([]int16, len(m.count))
	return m
}

func forCompare(line string) string {
	line = strings.TrimSpace(line)
	return line[:min(len(line), maxCompare)]
}

func pair(s string, i int) uint16 { return uint16(s[i])<<8 | uint16(s[i+1]) }

// similarity is the share of pairs that line has in common with the measure's.
func (m *measure) similarity(line string) float64 {
	line = forCompare(line)
	if m.total == 0 || len(line) < 2 {
		return 0
	}
	copy(m.left, m.count)
	common := 0
	for i := 0; i+1 < len(line); i++ {
		if at := m.index[pair(line, i)]; m.left[at] > 0 {
			m.left[at]--
			common++
		}
	}
	return 2 * float64(common) / float64(m.total+len(line)-1)
}

// difference says where the first line that differs does so, in code points, since
// what looks the same needn't be.
func difference(have, want []string, at int) string {
	for k, line := range want {
		if at+k >= len(have) {
			return fmt.Sprintf("The file ends there; old_string has %d more lines.", len(want)-k)
		}
		got, offset := have[at+k], 0
		if strings.Contains(got, line) && (len(want) == 1 || (k == 0 && strings.HasSuffix(got, line)) ||
			(k == len(want)-1 && strings.HasPrefix(got, line)) || got == line) {
			continue
		}
		if k == 0 { // it may be the end of a line, or a part of one
			offset = align(got, line)
		}
		n := commonPrefix(got[offset:], line)
		return fmt.Sprintf("Line %d, column %d: the file has %s where old_string has %s.", at+k+1,
			utf8.RuneCountInString(got[:offset+n])+1, pointAt(got[offset+n:]), pointAt(line[n:]))
	}
	return ""
}

// align returns the position in line from which it agrees with part the longest.
func align(line, part string) int {
	best, at := commonPrefix(line, part), 0
	for i := range line[:min(len(line), 2*maxCompare)] {
		if n := commonPrefix(line[i:], part); n > best {
			best, at = n, i
		}
	}
	return at
}

// commonPrefix returns how many bytes two strings have in common, in whole characters.
func commonPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) {
		r, size := utf8.DecodeRuneInString(a[n:])
		q, _ := utf8.DecodeRuneInString(b[n:])
		if r != q || (r == utf8.RuneError && a[n] != b[n]) {
			break
		}
		n += size
	}
	return min(n, len(a), len(b))
}

func pointAt(s string) string {
	if s == "" {
		return "the end of the line"
	}
	r, size := utf8.DecodeRuneInString(s)
	switch {
	case r == utf8.RuneError && size == 1:
		return fmt.Sprintf("the byte 0x%02X", s[0])
	case r == ' ':
		return "U+0020 (space)"
	case r == '\t':
		return "U+0009 (tab)"
	case r == '\u00a0':
		return "U+00A0 (no-break space)"
	case unicode.IsGraphic(r) && !unicode.IsSpace(r):
		return fmt.Sprintf("U+%04X (%c)", r, r)
	}
	return fmt.Sprintf("U+%04X", r)
}
