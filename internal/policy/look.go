package policy

import (
	"fmt"
	"path"
	"strings"
)

// looks are the deny and ask rules of read and write that look at the words and
// redirections of commands (gate.md §3).
type looks struct {
	deny, ask []look
}

// look is one such rule.
type look struct {
	rule *rule
	// reads and writes say which redirections it is about; words are looked at by
	// both.
	reads, writes bool
}

func makeLooks(r *Ruleset) looks {
	pick := func(list []*rule) []look {
		var out []look
		for _, r := range list {
			l := look{rule: r, reads: r.tool.matches(toolRead), writes: r.tool.matches(toolWrite)}
			if (l.reads || l.writes) && !r.tool.any || r.tool.any && r.path != nil {
				out = append(out, l)
			}
		}
		return out
	}
	return looks{deny: pick(r.deny), ask: pick(r.ask)}
}

// lookFor returns the first rule of read or write that a redirection or a word
// of the command matches.
func (e *evaluation) lookFor(list []look) finding {
	for _, l := range list {
		for i := range e.shell.targets {
			t := &e.shell.targets[i]
			if t.device || t.writes && !l.writes || !t.writes && !l.reads {
				continue
			}
			if l.rule.bare {
				return finding{l.rule, fmt.Sprintf("a redirection to %q", show(t.target.text))}
			}
			for k := range t.forms {
				if e.matchesPath(l.rule.path, &t.forms[k], false) {
					return finding{l.rule, fmt.Sprintf("the command redirects to or from %q", show(t.target.text))}
				}
			}
		}
		if l.rule.path == nil || l.rule.bare {
			continue // a rule without pattern is about the tool, not about words
		}
		for _, p := range e.shell.parts {
			if w, ok := e.lookAt(l, p, false); ok {
				return finding{l.rule, fmt.Sprintf("the command names %q", show(w))}
			}
		}
	}
	return finding{}
}

// possibleLook says which word may turn out to be a path that a rule of read or
// write matches, or returns "".
func (e *evaluation) possibleLook() string {
	for n, list := range [...][]look{e.rules.looks.deny, e.rules.looks.ask} {
		for _, l := range list {
			if l.rule.path == nil {
				continue
			}
			for i := range e.shell.targets {
				t := &e.shell.targets[i]
				relevant := t.writes && l.writes || !t.writes && l.reads
				if !t.device && relevant && e.lookAtText(l.rule.path, t.target, t.cwd, true) {
					return fmt.Sprintf("the redirection to %q may turn out to match %s", show(t.target.text), l.rule.ref)
				}
			}
			// The sandbox hides what a deny rule of read is about, so a word of which
			// nothing is known need not be asked about there.
			hidden := n == 0 && l.reads && !l.writes && e.in.Env.TierProcess
			for _, p := range e.shell.parts {
				if w, ok := e.lookAt(l, p, true); ok && !(hidden && strings.Trim(w, unknownBytes) == "") {
					return fmt.Sprintf("%q may turn out to match %s", show(w), l.rule.ref)
				}
			}
		}
	}
	return ""
}

// lookAt reports whether a word of a part matches a path rule; with some, whether
// a word that isn't wholly known may match it.
func (e *evaluation) lookAt(l look, p *part, some bool) (string, bool) {
	for i, w := range p.ownWords() {
		if i == 0 && !strings.Contains(w.text, "/") {
			continue // a program found in PATH
		}
		if e.lookAtText(l.rule.path, w, p.cwd, some) {
			return w.text, true
		}
	}
	for _, as := range p.assigns {
		if e.lookAtText(l.rule.path, as.value, p.cwd, some) {
			return as.value.text, true
		}
	}
	return "", false
}

// lookAtText reports whether a path rule matches a known word, seen from some
// directory that is possible; with some, whether it may match a word that isn't
// wholly known, or a relative one in a directory that isn't.
func (e *evaluation) lookAtText(r *pathRule, w word, at *cwds, some bool) bool {
	if w.text == "" || len(w.text) > maxPath || some && !w.unknown && !at.unknown || !some && w.unknown {
		return false
	}
	for _, s := range pathsIn(w.text) {
		s = processView(s)
		if some {
			if (w.unknown || !path.IsAbs(s)) && e.possiblePath(r, s, at) {
				return true
			}
			continue
		}
		for _, d := range at.dirs {
			// An option is hardly the name of a link, so it is compared as text.
			option := w.text[0] == '-' && !strings.ContainsAny(w.text, "=/")
			if option && e.matchesForm(r, path.Join(d, s), false, false) || !option && e.literalPath(r, s, d) {
				return true
			}
			if path.IsAbs(s) {
				break
			}
		}
	}
	return false
}

// literalPath reports whether a path rule matches s, seen from dir.
func (e *evaluation) literalPath(r *pathRule, s, dir string) bool {
	given := s
	if strings.HasPrefix(given, "~") {
		given = "./" + given // the shell has expanded what it expands
		if rest, ok := strings.CutPrefix(s, "~/"); ok && e.in.Env.Home != "" {
			given = e.in.Env.Home + "/" + rest // but some programs do so too
		}
	}
	if f, err := e.resolve(dir, given); err == nil {
		return e.matchesPath(r, &f, false)
	}
	abs := given
	if !path.IsAbs(given) {
		abs = dir + "/" + given
	}
	return e.matchesForm(r, path.Clean(abs), false, false)
}

// possiblePath reports whether a path rule may match s, some of which, or whose
// directory, is unknown.
func (e *evaluation) possiblePath(r *pathRule, s string, at *cwds) bool {
	switch {
	case s[0] == anyText:
		// It may begin anywhere, so it may be any path that ends so.
		return r.matches(s, false, true) || r.matches("\x00/"+s, false, true)
	case path.IsAbs(s):
		return e.matchesForm(r, cleanWord(s), false, true)
	case at.unknown:
		return r.matches("\x00/"+s, false, true) || r.matches(s, false, true)
	}
	for _, d := range at.dirs {
		if e.matchesForm(r, cleanWord(d+"/"+s), false, true) {
			return true
		}
	}
	return false
}
