package policy

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// A text that is matched may hold unknown stretches: what an expansion of the
// shell will put there. They are written as one of these bytes. No command that
// holds one of them itself is ever matched (it is unjudgeable).
const (
	anyText  = 0 // any text, also none, also with spaces
	anyDigit = 1 // a number
	anyName  = 2 // any text without a slash: what a glob gives
)

const unknownBytes = "\x00\x01\x02"

// tokenKind is what one token of a pattern accepts.
type tokenKind uint8

const (
	tokLit    tokenKind = iota // the byte
	tokOne                     // one character
	tokStar                    // any text
	tokOneIn                   // one character but a separator
	tokStarIn                  // any text without a separator
)

type token struct {
	kind tokenKind
	lit  byte
}

// pattern is a compiled pattern of a rule. It is immutable.
type pattern struct {
	tokens []token
	// prefix is the literal text before the first wildcard.
	prefix string
	// separators are the bytes that the "In" tokens don't accept.
	separators string
	// all reports that the pattern is a lone "*" or "**".
	all bool
	// literal reports that there is no wildcard at all.
	literal bool
}

// compileText compiles a pattern in which "*" and "?" cross everything.
func compileText(s string) *pattern {
	return finish(tokenize(s, tokOne, tokStar), "")
}

// compilePathPattern compiles a pattern in which only "**" crosses "/". "**/"
// also accepts nothing, and so does a last "/**".
func compilePathPattern(s string) []*pattern {
	// The optional pieces multiply into variants; there are few of them in any
	// real pattern, and each further one only doubles what is left, so a bound of
	// four optional pieces keeps sixteen variants.
	variants := []string{norm.NFC.String(s)}
	for range 4 {
		var more []string
		for _, v := range variants {
			if rest, ok := strings.CutSuffix(v, "/**"); ok && rest != "" && !strings.HasSuffix(rest, `\`) {
				more = append(more, rest)
			}
			for i := 0; i+3 <= len(v); i++ {
				if v[i:i+3] == "**/" && (i == 0 || v[i-1] == '/') {
					more = append(more, v[:i]+v[i+3:])
				}
			}
		}
		before := len(variants)
		variants = appendNew(variants, more)
		if len(variants) == before {
			break
		}
	}
	out := make([]*pattern, 0, len(variants))
	for _, v := range variants {
		if v != "" {
			out = append(out, finish(tokenize(v, tokOneIn, tokStarIn), "/"))
		}
	}
	return out
}

func appendNew(list, more []string) []string {
	for _, m := range more {
		seen := false
		for _, l := range list {
			seen = seen || l == m
		}
		if !seen {
			list = append(list, m)
		}
	}
	return list
}

// compileURLPattern compiles a pattern of an absolute URL: up to the first slash
// after "://" the wildcards stay within the host, after it they cross
// everything.
func compileURLPattern(s string) *pattern {
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok {
		return compileText(s)
	}
	authority, path := rest, ""
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		authority, path = rest[:i], rest[i:]
	}
	tokens := tokenize(strings.ToLower(scheme+"://"+authority), tokOneIn, tokStarIn)
	for i, t := range tokens {
		if t.kind == tokStar {
			tokens[i].kind = tokStarIn
		}
	}
	return finish(append(tokens, tokenize(path, tokOne, tokStar)...), "/?#@\\")
}

func tokenize(s string, one, star tokenKind) []token {
	out := make([]token, 0, len(s))
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '\\':
			i++
			out = append(out, token{tokLit, s[i]})
		case '?':
			out = append(out, token{kind: one})
		case '*':
			k := star
			for i+1 < len(s) && s[i+1] == '*' {
				i++
				k = tokStar
			}
			out = append(out, token{kind: k})
		default:
			out = append(out, token{tokLit, c})
		}
	}
	return out
}

func finish(tokens []token, separators string) *pattern {
	p := &pattern{tokens: tokens, separators: separators}
	var b strings.Builder
	for _, t := range tokens {
		if t.kind != tokLit {
			break
		}
		b.WriteByte(t.lit)
	}
	p.prefix = b.String()
	p.literal = len(p.prefix) == len(tokens)
	p.all = len(tokens) == 1 && tokens[0].kind == tokStar
	return p
}

// checkEscapes returns what is wrong with the escapes of a pattern, or "".
func checkEscapes(s string) string {
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			continue
		}
		i++
		if i == len(s) {
			return `it ends in a lone "\"; write "\\" for a backslash`
		}
		if s[i] != '*' && s[i] != '?' && s[i] != '\\' {
			return `"\" stands only before "*", "?" or "\"; write "\\" for a backslash`
		}
	}
	return ""
}

// matches reports whether p matches s whatever its unknown stretches turn out
// to be.
func (p *pattern) matches(s string) bool {
	if p.all {
		return true
	}
	if !strings.HasPrefix(s, p.prefix) {
		return false
	}
	if p.literal {
		return len(s) == len(p.prefix)
	}
	return p.run(s, false)
}

// possible reports whether p matches s for some value of its unknown stretches.
// Without any it is the same as matches.
func (p *pattern) possible(s string) bool {
	if p.all {
		return true
	}
	known := s
	if i := strings.IndexAny(s, unknownBytes); i >= 0 {
		known = s[:i]
	} else {
		return p.matches(s)
	}
	n := min(len(known), len(p.prefix))
	if known[:n] != p.prefix[:n] {
		return false
	}
	return p.run(s, true)
}

// run simulates the pattern as an automaton, in time proportional to the length
// of s times that of the pattern. With some an unknown stretch is any text that
// it can be; without, only a wildcard that accepts all of that accepts it.
func (p *pattern) run(s string, some bool) bool {
	var buf [2][96]bool
	cur, next := buf[0][:], buf[1][:]
	if n := len(p.tokens) + 1; n > len(cur) {
		cur, next = make([]bool, n), make([]bool, n)
	} else {
		cur, next = cur[:n], next[:n]
	}
	cur[0] = true
	p.skipStars(cur)
	for i := 0; i < len(s); {
		c := s[i]
		size := 1
		switch {
		case c <= anyName && some:
			p.consumeAny(cur, next, c)
		case c <= anyName:
			p.consumeAll(cur, next, c)
		default:
			if c >= utf8.RuneSelf {
				_, size = utf8.DecodeRuneInString(s[i:])
			}
			p.consume(cur, next, s[i:i+size])
		}
		i += size
		p.skipStars(next)
		cur, next = next, cur
		clear(next)
	}
	return cur[len(p.tokens)]
}

// skipStars lets every reached wildcard for any text accept nothing.
func (p *pattern) skipStars(states []bool) {
	for i, t := range p.tokens {
		if states[i] && (t.kind == tokStar || t.kind == tokStarIn) {
			states[i+1] = true
		}
	}
}

// consume moves every state over one character. A literal character of several
// bytes is that many tokens.
func (p *pattern) consume(cur, next []bool, char string) {
	for i, t := range p.tokens {
		if !cur[i] {
			continue
		}
		switch t.kind {
		case tokLit:
			if p.literalAt(i, char) {
				next[i+len(char)] = true
			}
		case tokOne:
			next[i+1] = true
		case tokStar:
			next[i] = true
		case tokOneIn:
			next[i+1] = next[i+1] || !p.separates(char)
		case tokStarIn:
			next[i] = next[i] || !p.separates(char)
		}
	}
}

func (p *pattern) literalAt(i int, char string) bool {
	if i+len(char) > len(p.tokens) {
		return false
	}
	for k := range len(char) {
		if t := p.tokens[i+k]; t.kind != tokLit || t.lit != char[k] {
			return false
		}
	}
	return true
}

func (p *pattern) separates(char string) bool {
	return len(char) == 1 && strings.Contains(p.separators, char)
}

// consumeAny moves the states over every text that an unknown stretch can be.
func (p *pattern) consumeAny(cur, next []bool, class byte) {
	for i := range cur {
		if cur[i] && (class != anyDigit || i < len(p.tokens) && p.tokens[i].kind >= tokStar && p.tokens[i].kind != tokOneIn) {
			next[i] = true // nothing, or a wildcard that takes it whole
		}
	}
	for i, t := range p.tokens {
		if (cur[i] || next[i]) && p.accepts(t, class) {
			next[i+1] = true
		}
	}
}

// accepts reports whether t accepts some character of the class.
func (p *pattern) accepts(t token, class byte) bool {
	if t.kind != tokLit || class == anyText {
		return true
	}
	if class == anyDigit {
		return t.lit >= '0' && t.lit <= '9' || t.lit == '-'
	}
	return t.lit != '/'
}

// consumeAll moves the states over an unknown stretch as a whole: only a
// wildcard that accepts all that it can be moves.
func (p *pattern) consumeAll(cur, next []bool, class byte) {
	for i, t := range p.tokens {
		if cur[i] && (t.kind == tokStar || t.kind == tokStarIn && class != anyText) {
			next[i] = true
		}
	}
}
