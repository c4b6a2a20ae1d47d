package selfprotect

import (
	"path"
	"strings"
)

// Unknown stretches of a word: anyText stands for any text.
const anyText = "\x01"

// node is a tree of names. Its keys are single components of paths.
type node struct {
	next []edge
	// place is set where a protected path ends.
	place *Place
	// some is any place beneath.
	some *Place
}

// edge is a child and its name. There are few in one node, so that a list of them is
// searched as fast as a map, and made much faster.
type edge struct {
	name string
	to   *node
	// glob tells that the name holds a "*".
	glob bool
}

// add adds a place under a path that begins and ends with a name.
func (n *node) add(rel string, p *Place) {
	for more := true; more; {
		if n.some == nil {
			n.some = p
		}
		var name string
		name, rel, more = strings.Cut(rel, "/")
		child := n.named(name)
		if child == nil {
			child = &node{}
			n.next = append(n.next, edge{name, child, strings.Contains(name, "*")})
		}
		n = child
	}
	if n.some == nil {
		n.some = p
	}
	if n.place == nil || p.Folder {
		n.place = p
	}
}

// named returns the child of exactly this name, or nil.
func (n *node) named(name string) *node {
	for i := range n.next {
		if n.next[i].name == name {
			return n.next[i].to
		}
	}
	return nil
}

// child returns the nodes that a name leads to.
func (n *node) child(name string) *node {
	if c := n.named(name); c != nil {
		return c
	}
	for i := range n.next {
		e := &n.next[i]
		if !e.glob {
			continue
		}
		if is, err := path.Match(e.name, name); err == nil && is {
			return e.to
		}
	}
	return nil
}

// relation is how a path stands to the nearest place.
type relation uint8

const (
	apart relation = iota
	// around is a folder of the host's or of AHP's own in which a place lies.
	around
	// direct is the place itself or what lies beneath it.
	direct
)

// match is a place that a path has to do with.
type match struct {
	relation relation
	place    *Place
}

func (m *match) raise(to match) {
	if to.relation > m.relation {
		*m = to
	}
}

// shared are folders that hold much else, so that naming them isn't yet about what
// is protected in them.
func shared(name string) bool {
	switch name {
	case ".config", ".local", "state", "etc", "documents", "Documents", ".github", ".agents", "library", "Library":
		return true
	}
	return false
}

// walk follows parts, which are literal, from n.
func (n *node) walk(parts []string, own bool) match {
	for _, name := range parts {
		own = own || !shared(name)
		if n = n.child(name); n == nil {
			return match{}
		}
		if n.place != nil && n.place.Folder {
			return match{direct, n.place}
		}
	}
	switch {
	case n.place != nil:
		return match{direct, n.place}
	case own && n.some != nil:
		return match{around, n.some}
	}
	return match{}
}

// maxWalk bounds the steps in which one pattern is compared with a tree.
const maxWalk = 1 << 14

// walker compares patterns with a tree of names.
type walker struct {
	// dots says that "*" matches a leading dot.
	dots  bool
	steps int
}

// likeness is how much of a pattern and of the names that it is compared with are the
// same text, folders that hold much else apart: what is unknown of a pattern could be
// any name, and so it counts only where enough of it is known.
type likeness struct {
	// same counts the bytes of the pattern that are no unknown stretch, all those of
	// the names.
	same, all int
	// begun says that a name was compared, sure that the first one was known but for
	// globs, and part that some of it was.
	begun, sure, part bool
}

// with returns the likeness after a name and the part of the pattern that it was
// compared with.
func (l likeness) with(pat, name string) likeness {
	if shared(name) {
		return l
	}
	n := literals(pat)
	l.same, l.all = l.same+n, l.all+len(name)
	if !l.begun {
		l.begun = true
		l.part = n > 1 || n > 0 && pat[0] == '.'
		l.sure = l.part && !strings.Contains(pat, anyText)
	}
	return l
}

func (l likeness) enough() bool { return l.sure || l.part && 2*l.same >= l.all }

// may follows parts, which may hold unknown stretches and globs, from n. What takes
// too many steps to tell may be anything.
func (w *walker) may(n *node, parts []string, like likeness) match {
	if w.steps--; w.steps < 0 {
		return match{direct, n.some}
	}
	if n.place != nil && (n.place.Folder || len(parts) == 0) {
		if !like.enough() {
			return match{}
		}
		return match{direct, n.place}
	}
	if len(parts) == 0 {
		if like.begun && like.enough() && n.some != nil {
			return match{around, n.some}
		}
		return match{}
	}
	var best match
	pat := parts[0]
	if !isPattern(pat) {
		if c := n.child(pat); c != nil {
			return w.may(c, parts[1:], like.with(pat, pat))
		}
		return best
	}
	unknown := strings.Contains(pat, anyText)
	if unknown && strings.Trim(pat, anyText) == "" && (like.begun || n.some == nil) {
		best.raise(w.may(n, parts[1:], like))
	}
	for _, e := range n.next {
		name, c := e.name, e.to
		if best.relation == direct {
			return best
		}
		if fits(pat, name, w.dots) {
			best.raise(w.may(c, parts[1:], like.with(pat, name)))
		}
		if head, _, _ := strings.Cut(pat, anyText); unknown && strings.HasPrefix(name, head) {
			rest := append([]string{pat[len(head):]}, parts[1:]...)
			best.raise(w.may(c, rest, like.with(head+anyText, name)))
		}
	}
	return best
}

func isPattern(s string) bool { return strings.ContainsAny(s, "*?[\x01(") }

// literals counts the bytes of a pattern that stand for themselves.
func literals(pat string) int {
	n := 0
	for i := 0; i < len(pat); i++ {
		switch pat[i] {
		case '*', '?', 1:
		case '[':
			if end := strings.IndexByte(pat[i:], ']'); end > 0 {
				i += end
			}
			n++
		default:
			n++
		}
	}
	return n
}

// fits reports whether a pattern of one component may stand for a name, which may
// itself hold a "*".
func fits(pat, name string, dots bool) bool {
	if strings.HasPrefix(name, ".") && !dots && (strings.HasPrefix(pat, "*") || strings.HasPrefix(pat, "?")) {
		return false
	}
	return glob(pat, name)
}

// glob compares from the front; a "*" in name stands for any text too.
func glob(pat, name string) bool {
	steps := 0
	return globAt(pat, name, &steps)
}

func globAt(pat, name string, steps *int) bool {
	for pat != "" || name != "" {
		if *steps++; *steps > 4096 {
			return true // too many ways to tell: it may
		}
		switch {
		case len(pat) > 1 && pat[1] == '(' && strings.IndexByte("?*+@!", pat[0]) >= 0:
			_, rest, _ := strings.Cut(pat, ")")
			pat = anyText + rest
		case pat != "" && (pat[0] == '*' || pat[0] == 1):
			for i := 0; i <= len(name); i++ {
				if globAt(pat[1:], name[i:], steps) {
					return true
				}
			}
			return false
		case name != "" && name[0] == '*':
			for i := 0; i <= len(pat); i++ {
				if globAt(pat[i:], name[1:], steps) {
					return true
				}
			}
			return false
		case pat == "" || name == "":
			return false
		case pat[0] == '?':
			pat, name = pat[1:], name[1:]
		case pat[0] == '[' && strings.IndexByte(pat, ']') > 1:
			end := strings.IndexByte(pat, ']')
			if !inBracket(pat[1:end], name[0]) {
				return false
			}
			pat, name = pat[end+1:], name[1:]
		case pat[0] != name[0]:
			return false
		default:
			pat, name = pat[1:], name[1:]
		}
	}
	return true
}

// inBracket reports whether a bracket expression may hold c.
func inBracket(set string, c byte) bool {
	if set[0] == '!' || set[0] == '^' || strings.Contains(set, "[") {
		return true
	}
	for i := 0; i < len(set); i++ {
		if i+2 < len(set) && set[i+1] == '-' {
			if set[i] <= c && c <= set[i+2] {
				return true
			}
			i += 2
			continue
		}
		if set[i] == c {
			return true
		}
	}
	return false
}
