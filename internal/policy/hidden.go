package policy

import (
	"io/fs"
	"path"
	"path/filepath"
)

// Hidden returns the files and folders that exist and that a deny rule of read
// matches, with links resolved, so that a sandbox can hide them from commands
// (gate.md §3). At most limit entries are looked at; complete is false if there
// were more, and then something may be missing.
//
// A rule without a pattern, or with one that matches everything ("read", "*",
// "read(**)"), names no file and adds nothing: it forbids the tool, and hiding
// every file would leave no command to run. Do not assume that what is made later
// is hidden: only evaluation sees that.
func (r *Ruleset) Hidden(roots []string, home string, limit int) (paths []string, complete bool) {
	return r.existing(toolRead, roots, home, limit)
}

// Frozen returns the files and folders that exist and that a deny rule of write
// matches, with links resolved, so that a sandbox can keep commands from writing
// them; otherwise it is like Hidden. What rules of every tool match
// ("*(secret/**)") is in both lists; what only a rule of edit matches is in
// neither.
//
// Do not assume that a path which doesn't exist yet can't be made: only evaluation
// sees that.
func (r *Ruleset) Frozen(roots []string, home string, limit int) (paths []string, complete bool) {
	return r.existing(toolWrite, roots, home, limit)
}

// existing returns what exists and a deny rule of a tool matches.
func (r *Ruleset) existing(tool string, roots []string, home string, limit int) (paths []string, complete bool) {
	in := &Input{Call: Call{Roots: roots}, Env: Env{Home: home}}
	h := &hiding{e: &evaluation{rules: r, in: in}, left: limit, seen: map[string]bool{}}
	h.e.paths.home = home
	h.e.roots.given = roots
	if home != "" {
		h.e.homes.given = []string{home}
	}
	for _, rule := range r.deny {
		if rule.path == nil || rule.bare || !rule.tool.matches(tool) {
			continue
		}
		for _, base := range h.bases(rule.path.base) {
			h.search(rule, base)
		}
	}
	return h.found, h.left > 0
}

// hiding is one search for what must be hidden.
type hiding struct {
	e     *evaluation
	found []string
	seen  map[string]bool
	left  int
}

func (h *hiding) bases(b pathBase) []string {
	switch b {
	case baseAbsolute:
		return []string{"/"}
	case baseHome:
		return h.e.homes.get(h.e)
	default:
		return h.e.roots.get(h.e)
	}
}

// search finds what rule matches below base: the stretch of the pattern without
// wildcards leads to where a walk has to begin.
func (h *hiding) search(r *rule, base string) {
	start, err := filepath.EvalSymlinks(path.Join(base, r.path.head))
	if err != nil {
		return
	}
	if r.path.tail == "" || r.path.tail == "**" {
		h.add(start)
		return
	}
	_ = filepath.WalkDir(start, func(p string, d fs.DirEntry, err error) error {
		if h.left--; h.left <= 0 {
			return fs.SkipAll
		}
		if err != nil {
			return nil // what can't be listed can't be read by that way either
		}
		forms := &PathForms{Given: p, Absolute: p, Place: Place{Path: p}}
		if !h.e.matchesPath(r.path, forms, false) {
			return nil
		}
		h.add(p)
		if d.IsDir() {
			return fs.SkipDir
		}
		return nil
	})
}

// add keeps a path and, for a link, what it leads to.
func (h *hiding) add(p string) {
	if real, err := filepath.EvalSymlinks(p); err == nil {
		p = real
	}
	if !h.seen[p] {
		h.seen[p] = true
		h.found = append(h.found, p)
	}
}

// ReadDenied returns a function that reports whether a deny or ask rule of read
// matches an absolute path, or whether it lies in one of the protected ones: what a search
// through many files must leave out. It returns nil if nothing can match. The
// function may be called from several goroutines.
func (r *Ruleset) ReadDenied(roots []string, home string, protected []string) func(path string) bool {
	e := &evaluation{rules: r, in: &Input{Call: Call{Roots: roots}, Env: Env{Home: home}}}
	e.paths.home = home
	e.roots.given = roots
	if home != "" {
		e.homes.given = []string{home}
	}
	e.roots.get(e) // resolved here once, so that the function only reads
	e.homes.get(e)
	dirs := e.places(protected)
	var rules []*pathRule
	for _, list := range [...][]*rule{r.deny, r.ask} {
		for _, rule := range list {
			if rule.path != nil && !rule.bare && rule.tool.matches(toolRead) {
				rules = append(rules, rule.path)
				e.aliases(rule.path) // found here, so that the function only reads
			}
		}
	}
	if len(rules) == 0 && len(dirs) == 0 {
		return nil
	}
	return func(p string) bool {
		if inside(p, dirs, false) {
			return true
		}
		forms := &PathForms{Given: p, Absolute: p, Place: Place{Path: p}}
		for _, rule := range rules {
			if e.matchesPath(rule, forms, false) {
				return true
			}
		}
		return false
	}
}
