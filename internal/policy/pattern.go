package policy

import (
	"math/bits"
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
	// must is the longest literal run: no text without it matches.
	must string
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
	var run []byte
	keep := func(at int) {
		if at == len(run) {
			p.prefix = string(run)
		}
		if len(run) > len(p.must) {
			p.must = string(run)
		}
		run = run[:0]
	}
	for i, t := range tokens {
		if t.kind == tokLit {
			run = append(run, t.lit)
		} else {
			keep(i)
		}
	}
	keep(len(tokens))
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
		if strings.IndexByte(`*?\{}`, s[i]) < 0 {
			return `"\" stands only before "*", "?", "\", "{" or "}"; write "\\" for a backslash`
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
	if !strings.Contains(s[len(p.prefix):], p.must) && len(p.must) > len(p.prefix) {
		return false
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

// states is a set of positions in a pattern, position i being before token i.
type states []uint64

func (s states) add(i int) { s[i>>6] |= 1 << (i & 63) }

func (s states) has(i int) bool { return s[i>>6]&(1<<(i&63)) != 0 }

// run simulates the pattern as an automaton, in time proportional to the length
// of s times that of the pattern. With some an unknown stretch is any text that
// it can be; without, only a wildcard that accepts all of that accepts it.
func (p *pattern) run(s string, some bool) bool {
	var buf [2][4]uint64
	cur, next := states(buf[0][:]), states(buf[1][:])
	if n := len(p.tokens)>>6 + 1; n > len(cur) {
		cur, next = make(states, n), make(states, n)
	} else {
		cur, next = cur[:n], next[:n]
	}
	p.reach(cur, 0)
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
			if !p.consume(cur, next, s[i:i+size]) {
				return false
			}
		}
		i += size
		cur, next = next, cur
		clear(next)
	}
	return cur.has(len(p.tokens))
}

// reach adds position i, and what is reached from it without any text.
func (p *pattern) reach(set states, i int) {
	set.add(i)
	for i < len(p.tokens) && (p.tokens[i].kind == tokStar || p.tokens[i].kind == tokStarIn) {
		i++
		set.add(i)
	}
}

// consume moves every state over one character, and reports whether any is left.
// A literal character of several bytes is that many tokens.
func (p *pattern) consume(cur, next states, char string) bool {
	alive := false
	for w, set := range cur {
		for ; set != 0; set &= set - 1 {
			i := w<<6 + bits.TrailingZeros64(set)
			if i == len(p.tokens) {
				continue
			}
			to := -1
			switch t := p.tokens[i]; t.kind {
			case tokLit:
				if t.lit == char[0] && p.literalAt(i, char) {
					to = i + len(char)
				}
			case tokOne:
				to = i + 1
			case tokStar:
				to = i
			case tokOneIn:
				if !p.separates(char) {
					to = i + 1
				}
			case tokStarIn:
				if !p.separates(char) {
					to = i
				}
			}
			if to >= 0 {
				p.reach(next, to)
				alive = true
			}
		}
	}
	return alive
}

func (p *pattern) literalAt(i int, char string) bool {
	if len(char) == 1 {
		return true // the caller compared the first byte
	}
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
	return len(char) == 1 && strings.IndexByte(p.separators, char[0]) >= 0
}

// consumeAny moves the states over every text that an unknown stretch can be.
func (p *pattern) consumeAny(cur, next states, class byte) {
	for i := 0; i <= len(p.tokens); i++ {
		if !cur.has(i) && !next.has(i) {
			continue
		}
		if class != anyDigit {
			next.add(i) // it may be nothing
		}
		if i == len(p.tokens) {
			continue
		}
		t := p.tokens[i]
		if !p.accepts(t, class) {
			continue
		}
		if t.kind == tokStar || t.kind == tokStarIn {
			next.add(i)
		}
		p.reach(next, i+1)
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
func (p *pattern) consumeAll(cur, next states, class byte) {
	for i, t := range p.tokens {
		if cur.has(i) && (t.kind == tokStar || t.kind == tokStarIn && class != anyText) {
			p.reach(next, i)
		}
	}
}
