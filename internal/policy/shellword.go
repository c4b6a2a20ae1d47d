package policy

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// word is a word of a command after quote removal. Where an expansion stands
// that isn't literal, text holds one of the unknown bytes.
type word struct {
	text    string
	unknown bool
}

// wordBuilder collects the text of one word.
type wordBuilder struct {
	a       *analyzer
	buf     []byte
	unknown bool
	// open is where a bracket expression began that isn't closed in the same
	// literal, plus one.
	open int
}

func (b *wordBuilder) any(class byte) {
	b.unknown = true
	b.buf = append(b.buf, class)
}

// literal appends text that stands for itself.
func (b *wordBuilder) literal(s string) {
	for i := range len(s) {
		c := s[i]
		if c <= anyName {
			c = 3 // as little a sensible character, and no unknown byte
		}
		b.buf = append(b.buf, c)
	}
}

// expand returns the words that w becomes: several after brace expansion.
func (a *analyzer) expand(w *syntax.Word) []word {
	if lit := plain(w); lit != "" {
		return []word{{text: lit}}
	}
	a.inner(w)
	split := syntax.Word{Parts: w.Parts} // the tree itself stays as it was parsed
	if !syntax.SplitBraces(&split) {
		return []word{a.single(w.Parts)}
	}
	var out []word
	for _, parts := range a.braces(split.Parts) {
		out = append(out, a.single(parts))
	}
	return out
}

// one returns w as a single word; brace expansion isn't done.
func (a *analyzer) one(w *syntax.Word) word {
	if w == nil {
		return word{}
	}
	if lit := plain(w); lit != "" {
		return word{text: lit}
	}
	a.inner(w)
	return a.single(w.Parts)
}

// plain returns the text of a word that is nothing but itself, or "".
func plain(w *syntax.Word) string {
	if len(w.Parts) != 1 {
		return ""
	}
	lit, ok := w.Parts[0].(*syntax.Lit)
	if !ok || strings.ContainsAny(lit.Value, "\\*?[{~") {
		return ""
	}
	return lit.Value
}

// braces expands the brace expressions among parts, at most maxWords in all.
func (a *analyzer) braces(parts []syntax.WordPart) [][]syntax.WordPart {
	out := [][]syntax.WordPart{nil}
	for _, p := range parts {
		br, ok := p.(*syntax.BraceExp)
		var choices [][]syntax.WordPart
		switch {
		case !ok:
			choices = [][]syntax.WordPart{{p}}
		case br.Sequence:
			choices = sequence(br)
		default:
			for _, e := range br.Elems {
				choices = append(choices, a.braces(e.Parts)...)
			}
		}
		if a.words += len(out) * len(choices); a.words > maxWords*8 || len(out)*len(choices) > maxWords {
			a.fault("its brace expansions make too many words")
			return [][]syntax.WordPart{nil}
		}
		next := make([][]syntax.WordPart, 0, len(out)*len(choices))
		for _, o := range out {
			for _, c := range choices {
				next = append(next, append(o[:len(o):len(o)], c...))
			}
		}
		out = next
	}
	return out
}

// sequence returns the elements of {x..y}, or one unknown element if they are
// many.
func sequence(br *syntax.BraceExp) [][]syntax.WordPart {
	lit := func(s string) []syntax.WordPart { return []syntax.WordPart{&syntax.Lit{Value: s}} }
	from, to := br.Elems[0].Lit(), br.Elems[1].Lit()
	if len(br.Elems) == 2 && len(from) == 1 && len(to) == 1 && from[0] >= 'A' && to[0] >= 'A' {
		var out [][]syntax.WordPart
		lo, hi := min(from[0], to[0]), max(from[0], to[0])
		for c := lo; c <= hi; c++ {
			if c != '\\' {
				out = append(out, lit(string(rune(c))))
			}
		}
		return out
	}
	return [][]syntax.WordPart{{&syntax.ParamExp{Length: true}}} // a number
}

func (a *analyzer) single(parts []syntax.WordPart) word {
	b := wordBuilder{a: a, buf: make([]byte, 0, 64)}
	for i, p := range parts {
		b.part(p, i == 0, len(parts) == 1)
	}
	if b.open > 0 {
		b.buf = append(b.buf[:b.open-1], anyText)
	}
	return word{text: string(b.buf), unknown: b.unknown}
}

func (b *wordBuilder) part(p syntax.WordPart, first, alone bool) {
	switch p := p.(type) {
	case *syntax.Lit:
		b.unquoted(p.Value, first, alone)
	case *syntax.SglQuoted:
		if p.Dollar {
			b.literal(ansiC(p.Value))
		} else {
			b.literal(p.Value)
		}
	case *syntax.DblQuoted:
		for _, q := range p.Parts {
			if lit, ok := q.(*syntax.Lit); ok {
				b.doubleQuoted(lit.Value)
			} else {
				b.part(q, false, false)
			}
		}
	case *syntax.ParamExp:
		if isNumber(p) {
			b.any(anyDigit)
		} else {
			b.any(anyText)
		}
	case *syntax.ArithmExp:
		b.any(anyDigit)
	case *syntax.ProcSubst:
		b.literal("/dev/fd/")
		b.any(anyDigit)
	default: // command substitution, extended globs, and what is to come
		b.any(anyText)
	}
}

// isNumber reports whether an expansion always gives a number.
func isNumber(p *syntax.ParamExp) bool {
	if p.Length {
		return true
	}
	if p.Param == nil || p.Exp != nil || p.Excl || p.Repl != nil || p.Slice != nil || p.Index != nil {
		return false
	}
	switch p.Param.Value {
	case "?", "#", "$", "!":
		return true
	}
	return false
}

// unquoted appends a literal in which backslashes quote and globs and tildes
// expand.
func (b *wordBuilder) unquoted(s string, first, alone bool) {
	if first && strings.HasPrefix(s, "~") {
		s = b.tilde(s, alone)
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '\\':
			if i++; i < len(s) && s[i] != '\n' {
				b.literal(s[i : i+1])
			}
		case '*', '?':
			b.any(anyName)
		case '[':
			if end := strings.IndexByte(s[i:], ']'); end > 1 {
				b.any(anyName)
				i += end
			} else {
				b.buf = append(b.buf, c)
				// The closing bracket may come in a later piece of the word.
				if !alone && b.open == 0 {
					b.unknown, b.open = true, len(b.buf)
				}
			}
		default:
			b.literal(s[i : i+1])
		}
	}
}

// tilde appends what the tilde prefix of s becomes and returns the rest.
func (b *wordBuilder) tilde(s string, alone bool) string {
	user, rest, slash := strings.Cut(s[1:], "/")
	if slash {
		rest = "/" + rest
	}
	switch {
	case strings.Contains(user, `\`):
		return s // a quoted character: no tilde expansion
	case user == "" && (slash || alone) && b.a.homeKnown && b.a.env.Home != "":
		b.literal(b.a.env.Home)
	case user == "" && !slash && !alone:
		// "~" before something quoted isn't expanded, before an expansion it may be.
		b.any(anyText)
	default:
		b.any(anyText)
	}
	return rest
}

// doubleQuoted appends a literal inside double quotes or a here-document.
func (b *wordBuilder) doubleQuoted(s string) {
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			switch s[i+1] {
			case '$', '`', '"', '\\':
				i++
			case '\n':
				i++
				continue
			}
		}
		b.literal(s[i : i+1])
	}
}

// ansiC decodes the inside of $'…'.
func ansiC(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var out []byte
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			out = append(out, s[i])
			continue
		}
		i++
		if k := strings.IndexByte("abeEfnrtv", s[i]); k >= 0 {
			out = append(out, "\a\b\x1b\x1b\f\n\r\t\v"[k])
			continue
		}
		if strings.IndexByte(`\'"?`, s[i]) >= 0 {
			out = append(out, s[i])
			continue
		}
		r, n, wide := ansiCode(s[i:])
		switch {
		case n == 0:
			out = append(out, '\\', s[i])
			continue
		case r == 0:
			return string(out) // the shell's string ends here
		case wide:
			out = utf8.AppendRune(out, r)
		default:
			out = append(out, byte(r))
		}
		i += n - 1
	}
	return string(out)
}

// ansiCode reads the numeric escape at the start of s, which begins after its
// backslash. n is its length in bytes, zero if it is none; wide reports that r is
// a character and not a byte.
func ansiCode(s string) (r rune, n int, wide bool) {
	switch c := s[0]; {
	case c >= '0' && c <= '7':
		r, n = number(s, 8, 3)
		return r & 0xff, n, false
	case c == 'x' && strings.HasPrefix(s[1:], "{"):
		// The shell reads \x{…} too, with or without the closing brace.
		// Of many digits the last two count.
		_, digits := number(s[2:], 16, len(s))
		r, _ = number(s[2+max(digits-2, 0):2+digits], 16, 2)
		n = 2 + digits
		if strings.HasPrefix(s[n:], "}") {
			n++
		}
		return r & 0xff, n, false
	case c == 'x':
		r, n = number(s[1:], 16, 2)
	case c == 'u':
		r, n = number(s[1:], 16, 4)
		wide = true
	case c == 'U':
		r, n = number(s[1:], 16, 8)
		wide = true
	case c == 'c' && len(s) > 1:
		r, n = rune(s[1]&0x1f), 1
	}
	if n == 0 {
		return 0, 0, false
	}
	return r, n + 1, wide
}

// number reads at most limit digits.
func number(s string, radix, limit int) (r rune, n int) {
	for n < len(s) && n < limit {
		if _, err := strconv.ParseUint(s[n:n+1], radix, 8); err != nil {
			break
		}
		n++
	}
	v, _ := strconv.ParseUint(s[:n], radix, 32)
	return rune(v), n
}
