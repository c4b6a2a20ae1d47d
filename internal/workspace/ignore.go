package workspace

import (
	"strings"
	"unicode/utf8"
)

// maxIgnoreFile bounds the size of an ignore file that is honoured, in bytes.
const maxIgnoreFile = 1 << 20

// rules are the patterns of one ignore file, or of several that count the same.
type rules struct {
	list []rule
}

// rule is one line of an ignore file.
type rule struct {
	kind     ruleKind
	lead     string // text that comes before the pattern; see splitLead
	pattern  string // without marks and outer slashes
	negate   bool
	dirOnly  bool
	anchored bool // compared with the path below the file's folder, else with the name
}

type ruleKind uint8

const (
	literal ruleKind = iota // the whole text
	suffix                  // "*" and then the text
	prefix                  // the text and then "*"
	general
)

// parseRules reads an ignore file by git's documented rules (gitignore(5)).
func parseRules(data string) rules {
	var r rules
	data = strings.TrimPrefix(data, "\uFEFF")
	for line := range strings.SplitSeq(data, "\n") {
		if rule, ok := parseRule(strings.TrimSuffix(line, "\r")); ok {
			r.list = append(r.list, rule)
		}
	}
	return r
}

func parseRule(line string) (rule, bool) {
	line = trimTrailing(line)
	if line == "" || line[0] == '#' {
		return rule{}, false
	}
	var r rule
	if line[0] == '!' {
		r.negate = true
		line = line[1:]
	}
	if rest, ok := strings.CutSuffix(line, "/"); ok {
		r.dirOnly = true
		line = rest
	}
	r.anchored = strings.ContainsRune(line, '/')
	line = strings.TrimPrefix(line, "/")
	if line == "" {
		return rule{}, false
	}
	// "**/name" is the same as "name" at any depth, and the cheaper.
	if rest, ok := strings.CutPrefix(line, "**/"); ok && !strings.ContainsRune(rest, '/') {
		r.anchored, line = false, rest
	}
	r.kind, r.pattern = classify(line)
	if r.kind == general && r.anchored {
		r.lead, r.pattern = splitLead(r.pattern)
	}
	return r, true
}

// splitLead cuts off the text before the first special character. Git compares that
// text first and then takes what follows for a whole pattern, so that the "**" of
// "a**/b" begins one and crosses folders, although its documentation says that it
// doesn't.
func splitLead(pattern string) (lead, rest string) {
	i := strings.IndexAny(pattern, special)
	return pattern[:i], pattern[i:]
}

// special are the characters that make a pattern more than a text.
const special = `*?[\`

func classify(line string) (ruleKind, string) {
	switch {
	case !strings.ContainsAny(line, special):
		return literal, line
	case line[0] == '*' && len(line) > 1 && !strings.ContainsAny(line[1:], special+"/"):
		return suffix, line[1:]
	case strings.HasSuffix(line, "*") && len(line) > 1 && !strings.ContainsAny(line[:len(line)-1], special+"/"):
		return prefix, line[:len(line)-1]
	}
	return general, line
}

// trimTrailing drops trailing spaces that no backslash protects.
func trimTrailing(s string) string {
	for strings.HasSuffix(s, " ") {
		slashes := 0
		for i := len(s) - 2; i >= 0 && s[i] == '\\'; i-- {
			slashes++
		}
		if slashes%2 == 1 {
			break
		}
		s = s[:len(s)-1]
	}
	return s
}

// verdict is what ignore files say of a path.
type verdict uint8

const (
	silent verdict = iota
	ignored
	included
)

// judge returns what the last matching rule says of a path below the file's folder.
func (r rules) judge(rel, name string, dir bool) verdict {
	for i := len(r.list) - 1; i >= 0; i-- {
		rule := &r.list[i]
		if rule.dirOnly && !dir {
			continue
		}
		subject := name
		if rule.anchored {
			subject = rel
		}
		if rule.matches(subject) {
			if rule.negate {
				return included
			}
			return ignored
		}
	}
	return silent
}

func (r *rule) matches(s string) bool {
	switch r.kind {
	case literal:
		return s == r.pattern
	case suffix:
		return strings.HasSuffix(s, r.pattern) && (!r.anchored || !strings.ContainsRune(s, '/'))
	case prefix:
		return strings.HasPrefix(s, r.pattern) && (!r.anchored || !strings.ContainsRune(s, '/'))
	}
	rest, ok := strings.CutPrefix(s, r.lead)
	return ok && wildmatch(r.pattern, rest)
}

// level is the ignore rules that a folder adds to those of the folders above it.
type level struct {
	up   *level
	base string // path of the folder below the walk's top; "" is the top itself
	// above is how the path of a thing below the top begins as seen from this
	// folder, for folders above the top.
	above string
	rules rules
}

// ignores reports whether a path below the top of the walk is ignored. The innermost
// folder with an opinion decides. The folders above it are not ignored themselves,
// since a walk doesn't go into an ignored one.
func (l *level) ignores(rel, name string, dir bool) bool {
	for ; l != nil; l = l.up {
		if len(l.rules.list) == 0 {
			continue
		}
		below := rel
		if l.base != "" {
			below = rel[len(l.base)+1:]
		}
		if v := l.rules.judge(l.above+below, name, dir); v != silent {
			return v == ignored
		}
	}
	return false
}

func decodeRune(s string) (rune, int) {
	if s[0] < utf8.RuneSelf {
		return rune(s[0]), 1
	}
	return utf8.DecodeRuneInString(s)
}

func runeLen(s string) int {
	_, n := decodeRune(s)
	return n
}
