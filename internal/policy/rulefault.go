package policy

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// commandPatternFault says why a pattern can never match a command, or returns
// "". Commands are compared as their words, joined by one space each.
func commandPatternFault(pat string) string {
	head, _, _ := strings.Cut(pat, " ")
	name, _, assigns := strings.Cut(head, "=")
	switch {
	case strings.HasPrefix(pat, " ") || strings.HasSuffix(pat, " "):
		return "it can never match: the compared words have no space before or after them"
	case strings.Contains(pat, "  "):
		return "it can never match: the compared words are joined by one space"
	case assigns && head != pat && isName(name):
		return fmt.Sprintf("it can never match: assignments like %q stand before the compared words; write the command alone", head)
	case len(pat) > maxCommand:
		return fmt.Sprintf("it can never match: it is longer than the %d bytes of a command", maxCommand)
	}
	return ""
}

// commandPatternWarning warns of patterns that match something else than their
// writer may think.
func commandPatternWarning(pat string) string {
	for _, op := range []string{" && ", " || ", " | ", "; ", " > ", " >> ", " < "} {
		if strings.Contains(pat, op) {
			return fmt.Sprintf("a command is judged one simple command at a time, so %q stands here for a quoted word, not for an operator; write a rule for each command", strings.TrimSpace(op))
		}
	}
	return ""
}

// pathPatternFault says why a pattern can never match a path, or returns "".
func pathPatternFault(pat string) string {
	rest := strings.TrimPrefix(pat, "~")
	switch {
	case strings.HasPrefix(pat, "~") && rest != "" && rest[0] != '/':
		return `it can never match: only "~/…", the own home, is known`
	case strings.Contains(rest, "//"):
		return `it can never match: no compared path holds "//"`
	case strings.HasSuffix(rest, "/") && rest != "/":
		return fmt.Sprintf("it can never match: no compared path ends in %q; write %q for what is in the directory", "/", pat+"**")
	case utf8.RuneCountInString(pat) > maxPath:
		return "it can never match: no path is that long"
	}
	if alternatives(pat) {
		return `braces aren't patterns, so it would match only a file of that very name; write one rule for each alternative, or "\{" and "\}" for braces of a name`
	}
	for _, part := range strings.Split(rest, "/") {
		if part == ".." || part == "." && rest != "." {
			return fmt.Sprintf("it can never match: compared paths hold no %q; write the path without it", part)
		}
	}
	return ""
}

// alternatives reports whether a pattern holds braces that a shell would expand:
// "{a,b}" or "{1..3}", with no backslash before a brace.
func alternatives(pat string) bool {
	open, several := false, false
	for i := 0; i < len(pat); i++ {
		switch c := pat[i]; {
		case c == '\\':
			i++
		case c == '{':
			open = true
		case c == ',' || strings.HasPrefix(pat[i:], ".."):
			several = several || open
		case c == '}' && several:
			return true
		}
	}
	return false
}

// urlPatternFault says why a pattern can never match an absolute URL, or returns
// "".
func urlPatternFault(pat string) string {
	if strings.HasPrefix(pat, "*") {
		return ""
	}
	scheme, rest, ok := strings.Cut(pat, "://")
	if !ok || scheme == "" || rest == "" {
		return `it can never match: a URL is absolute, for example "https://example.com/*"`
	}
	return ""
}

// isName reports whether s can name a shell variable.
func isName(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c != '_' && !(c|0x20 >= 'a' && c|0x20 <= 'z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

func (c *compiler) toolNames() []string {
	out := make([]string, 0, len(c.known.Tools))
	for t := range c.known.Tools {
		out = append(out, t)
	}
	return out
}

// suggest returns "; did you mean X?" for the nearest of names, or what there
// is.
func suggest(name string, names []string) string {
	names = slices.Sorted(slices.Values(names))
	best, nearest := len(name)/2+1, ""
	for _, n := range names {
		if d := distance(strings.ToLower(name), strings.ToLower(n)); d < best {
			best, nearest = d, n
		}
	}
	switch {
	case nearest != "":
		return fmt.Sprintf("; did you mean %q?", nearest)
	case len(names) == 0:
		return "; there is none"
	case len(names) > 24:
		return ""
	}
	return "; known are " + strings.Join(names, ", ")
}

// distance is the number of bytes to insert, remove or replace between two
// names. Long names aren't compared.
func distance(a, b string) int {
	if len(a) > 128 || len(b) > 128 {
		return len(a) + len(b)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			next := min(row[j]+1, row[j+1]+1)
			if a[i] == b[j] {
				next = min(next, diagonal)
			} else {
				next = min(next, diagonal+1)
			}
			diagonal, row[j+1] = row[j+1], next
		}
	}
	return row[len(b)]
}

// pathRule is a path pattern, compiled for what it is compared with.
type pathRule struct {
	base     pathBase
	variants []*pattern
	folded   []*pattern
	// head is the path before the first component with a wildcard, unescaped, and
	// tail the pattern of what follows it.
	head, tail string
}

type pathBase uint8

const (
	baseRoot     pathBase = iota // relative to a root
	baseAbsolute                 // "/…"
	baseHome                     // "~/…"
)

func compilePathRule(pat string) *pathRule {
	r := &pathRule{}
	switch {
	case pat == "~":
		r.base, pat = baseHome, "."
	case strings.HasPrefix(pat, "~/"):
		r.base, pat = baseHome, pat[2:]
	case path.IsAbs(pat):
		r.base = baseAbsolute
	}
	r.variants = compilePathPattern(pat)
	r.folded = compilePathPattern(strings.ToLower(foldName(pat, false)))
	for r.tail = strings.TrimPrefix(pat, "/"); r.tail != ""; {
		component, rest, _ := strings.Cut(r.tail, "/")
		literal, ok := literalOf(component)
		if !ok {
			break
		}
		r.head, r.tail = r.head+"/"+literal, rest
	}
	return r
}

// literalOf returns the text that a pattern without wildcards stands for.
func literalOf(pat string) (string, bool) {
	p := compileText(pat)
	return p.prefix, p.literal
}

// escapePattern returns the pattern that matches s alone.
func escapePattern(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `{`, `\{`, `}`, `\}`).Replace(s)
}

// matches reports whether the path text p matches; with some, whether it does
// for some value of its unknown stretches.
func (r *pathRule) matches(p string, fold, some bool) bool {
	list := r.variants
	if fold {
		list = r.folded
	}
	for _, v := range list {
		if some && v.possible(p) || !some && v.matches(p) {
			return true
		}
	}
	return false
}
