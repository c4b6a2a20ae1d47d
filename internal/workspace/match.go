package workspace

import "strings"

// wildmatch reports whether name matches a pattern of git's ignore files: "?" and
// "[…]" are one character other than "/", "*" any number of those, and "**" as a
// whole component any number of components. "\" makes the next character literal.
// Matching is by bytes but for "?" and "[…]", which take a whole UTF-8 character.
// The time is bounded by the product of the lengths, since only the last "*" and
// the last "**" are ever taken back.
func wildmatch(pattern, name string) bool {
	var star, deep struct {
		p, n int
		set  bool
	}
	p, n := 0, 0
	for {
		if p == len(pattern) {
			if n == len(name) {
				return true
			}
		} else if next, end, ok := deepStar(pattern, p); ok {
			if end { // whatever is left; "a/**" has not matched "a" itself, for its "/"
				return true
			}
			deep.p, deep.n, deep.set = next, n, true
			star.set = false
			p = next
			continue
		} else if pattern[p] == '*' {
			for p < len(pattern) && pattern[p] == '*' {
				p++
			}
			star.p, star.n, star.set = p, n, true
			continue
		} else if n < len(name) {
			if np, nn, ok := one(pattern, p, name, n); ok {
				p, n = np, nn
				continue
			}
		}
		// Take back: first the last "*", within its component, then the last "**".
		if star.set && star.n < len(name) && name[star.n] != '/' {
			star.n++
			p, n = star.p, star.n
			continue
		}
		if !deep.set {
			return false
		}
		slash := strings.IndexByte(name[deep.n:], '/')
		if slash < 0 {
			return false
		}
		deep.n += slash + 1
		p, n = deep.p, deep.n
		star.set = false
	}
}

// deepStar reports whether a component of two or more "*" begins at p, where what
// follows it begins, and whether nothing follows.
func deepStar(pattern string, p int) (next int, end, ok bool) {
	if p > 0 && pattern[p-1] != '/' {
		return 0, false, false
	}
	next = p
	for next < len(pattern) && pattern[next] == '*' {
		next++
	}
	switch {
	case next-p < 2:
		return 0, false, false
	case next == len(pattern):
		return next, true, true
	case pattern[next] == '/':
		return next + 1, false, true
	}
	return 0, false, false
}

// one matches one character of name against one element of pattern.
func one(pattern string, p int, name string, n int) (np, nn int, ok bool) {
	switch c := pattern[p]; c {
	case '?':
		if name[n] == '/' {
			return 0, 0, false
		}
		return p + 1, n + runeLen(name[n:]), true
	case '[':
		r, size := decodeRune(name[n:])
		end, in := class(pattern[p:], r)
		if end == 0 || !in || r == '/' {
			return 0, 0, false
		}
		return p + end, n + size, true
	case '\\':
		if p+1 == len(pattern) {
			return 0, 0, false // as git: such a pattern matches nothing
		}
		return p + 2, n + 1, pattern[p+1] == name[n]
	default:
		return p + 1, n + 1, c == name[n]
	}
}

// class evaluates the bracket expression at the start of pattern. end is 0 if it is
// not closed; then the pattern matches nothing.
func class(pattern string, r rune) (end int, in bool) {
	i := 1
	negate := i < len(pattern) && (pattern[i] == '!' || pattern[i] == '^')
	if negate {
		i++
	}
	for first := true; i < len(pattern); first = false {
		if pattern[i] == ']' && !first {
			return i + 1, in != negate
		}
		if name, size, ok := namedClass(pattern[i:]); ok {
			in = in || inNamed(name, r)
			i += size
			continue
		}
		low, size, ok := classRune(pattern[i:])
		if !ok {
			return 0, false
		}
		i += size
		high := low
		if i+1 < len(pattern) && pattern[i] == '-' && pattern[i+1] != ']' {
			if high, size, ok = classRune(pattern[i+1:]); !ok {
				return 0, false
			}
			i += 1 + size
		}
		in = in || (low <= r && r <= high)
	}
	return 0, false
}

func classRune(s string) (r rune, size int, ok bool) {
	if s[0] == '\\' {
		if len(s) == 1 {
			return 0, 0, false
		}
		r, size = decodeRune(s[1:])
		return r, size + 1, true
	}
	r, size = decodeRune(s)
	return r, size, true
}

func namedClass(s string) (name string, size int, ok bool) {
	rest, ok := strings.CutPrefix(s, "[:")
	if !ok {
		return "", 0, false
	}
	name, _, ok = strings.Cut(rest, ":]")
	return name, len(name) + 4, ok
}

// inNamed is about ASCII, as git's own is.
func inNamed(name string, r rune) bool {
	lower, upper, digit := 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9'
	switch name {
	case "alpha":
		return lower || upper
	case "digit":
		return digit
	case "alnum":
		return lower || upper || digit
	case "lower":
		return lower
	case "upper":
		return upper
	case "xdigit":
		return digit || 'a' <= r && r <= 'f' || 'A' <= r && r <= 'F'
	case "space":
		return r == ' ' || '\t' <= r && r <= '\r'
	case "blank":
		return r == ' ' || r == '\t'
	case "cntrl":
		return r < ' ' || r == 0x7f
	case "print":
		return ' ' <= r && r < 0x7f
	case "graph":
		return ' ' < r && r < 0x7f
	case "punct":
		return ' ' < r && r < 0x7f && !lower && !upper && !digit
	}
	return false
}
