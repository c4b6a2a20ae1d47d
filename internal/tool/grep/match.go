package grep

import (
	"bytes"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
)

const (
	// window is how much text is searched between two looks at whether to go on.
	window = 1 << 20
	// maxAcross bounds the size of a file that is searched across lines, in bytes.
	maxAcross = 8 << 20
)

// matcher finds the lines of a text that match.
type matcher struct {
	re     *regexp.Regexp
	across bool // a match may hold newlines
	// need is a text that every match holds, or nil. Looking for it first is much
	// faster than the expression.
	need []byte
}

// span is a match: lines first to last, from 0.
type span struct{ first, last int }

func newMatcher(a args) (*matcher, error) {
	flags := syntax.Perl &^ syntax.OneLine // ^ and $ are about lines
	if a.IgnoreCase {
		flags |= syntax.FoldCase
	}
	tree, err := syntax.Parse(a.Pattern, flags)
	if err != nil {
		return nil, err
	}
	if !a.Multiline {
		withinLines(tree)
	}
	re, err := regexp.Compile(tree.String())
	if err != nil {
		return nil, fmt.Errorf("it can't be compiled: %w", err)
	}
	m := &matcher{re: re, across: a.Multiline}
	if need := required(tree); len(need) > 1 {
		m.need = need
	}
	return m, nil
}

// withinLines changes the expression so that it can't match a newline and takes a
// line for the whole text. The text can then be searched at once, in linear time,
// as if line by line.
func withinLines(re *syntax.Regexp) {
	switch re.Op {
	case syntax.OpBeginText:
		re.Op = syntax.OpBeginLine
	case syntax.OpEndText:
		re.Op = syntax.OpEndLine
	case syntax.OpAnyChar:
		re.Op = syntax.OpAnyCharNotNL
	case syntax.OpLiteral:
		if slices.Contains(re.Rune, '\n') {
			*re = syntax.Regexp{Op: syntax.OpNoMatch}
		}
	case syntax.OpCharClass:
		re.Rune = withoutNewline(re.Rune)
		if len(re.Rune) == 0 {
			*re = syntax.Regexp{Op: syntax.OpNoMatch}
		}
	}
	for _, sub := range re.Sub {
		withinLines(sub)
	}
}

// withoutNewline takes the newline out of a class, given as pairs of bounds.
func withoutNewline(ranges []rune) []rune {
	var out []rune
	for i := 0; i+1 < len(ranges); i += 2 {
		low, high := ranges[i], ranges[i+1]
		if low > '\n' || high < '\n' {
			out = append(out, low, high)
			continue
		}
		if low < '\n' {
			out = append(out, low, '\n'-1)
		}
		if high > '\n' {
			out = append(out, '\n'+1, high)
		}
	}
	return out
}

// required returns the longest literal that occurs in every match, or nil.
func required(re *syntax.Regexp) []byte {
	switch re.Op {
	case syntax.OpLiteral:
		if re.Flags&syntax.FoldCase == 0 {
			return []byte(string(re.Rune))
		}
	case syntax.OpCapture, syntax.OpPlus:
		return required(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return required(re.Sub[0])
		}
	case syntax.OpConcat:
		var longest []byte
		for _, sub := range re.Sub {
			if lit := required(sub); len(lit) > len(longest) {
				longest = lit
			}
		}
		return longest
	}
	return nil
}

// find calls hit for every match of text, in order; of those that begin on one line
// only for the first. hit returns false to end it; so does goOn, which is asked at
// least once per window. text has no CRLF.
func (m *matcher) find(text []byte, goOn func() bool, hit func(span) bool) {
	line, at := 0, 0 // at is the begin of that line
	for at < len(text) && goOn() {
		end := len(text)
		if !m.across {
			end = lineEnd(text, min(at+window, len(text)))
		}
		from, to, ok := m.next(text[:end], at)
		if !ok {
			if end < len(text) {
				line += bytes.Count(text[at:end], []byte{'\n'})
			}
			at = end
			continue
		}
		start := at + bytes.LastIndexByte(text[at:from], '\n') + 1
		line += bytes.Count(text[at:start], []byte{'\n'})
		// A newline at the end of a match belongs to its line.
		s := span{line, line + bytes.Count(text[from:max(from, to-1)], []byte{'\n'})}
		if !hit(s) {
			return
		}
		line, at = s.last+1, lineEnd(text, max(from, to-1))
	}
}

// lineEnd returns where the line after that of a position begins.
func lineEnd(text []byte, pos int) int {
	if i := bytes.IndexByte(text[pos:], '\n'); i >= 0 {
		return pos + i + 1
	}
	return len(text)
}

// next returns the first match at or after at, which is the begin of a line.
func (m *matcher) next(text []byte, at int) (from, to int, ok bool) {
	for {
		end := len(text)
		if m.need != nil {
			i := bytes.Index(text[at:], m.need)
			if i < 0 {
				return 0, 0, false
			}
			if !m.across { // it is on this line, or on none before the next one
				end = lineEnd(text, at+i)
				at += bytes.LastIndexByte(text[at:at+i], '\n') + 1
			}
		}
		loc := m.re.FindIndex(text[at:end])
		switch {
		case loc != nil && (at+loc[0] < end || text[end-1] != '\n'):
			return at + loc[0], at + loc[1], true
		case end == len(text):
			return 0, 0, false
		}
		at = end
	}
}
