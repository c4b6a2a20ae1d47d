package policy

import (
	"fmt"
	"iter"
	"path"
	"slices"
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

// lookFor returns a rule of read or write that a redirection or a word of the
// command matches: the first that is found.
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
	}
	words := slices.DeleteFunc(slices.Clone(list), func(l look) bool {
		return l.rule.path == nil || l.rule.bare // a rule without pattern is about the tool, not about words
	})
	if len(words) == 0 {
		return finding{}
	}
	seen := seenWords{}
	for _, p := range e.shell.parts {
		for w := range p.pathWords() {
			if seen.again(w, p.cwd) {
				continue
			}
			if r := e.lookAtWord(words, w, p.cwd); r != nil {
				return finding{r, fmt.Sprintf("the command names %q", show(w.text))}
			}
		}
	}
	return finding{}
}

// possibleLook says which word may turn out to be a path that a rule of read or
// write matches, or returns "".
func (e *evaluation) possibleLook() string {
	if e.manyFiles {
		return fmt.Sprintf("it names more than %d files", maxFiles)
	}
	for n, list := range [...][]look{e.rules.looks.deny, e.rules.looks.ask} {
		for _, l := range list {
			if l.rule.path == nil {
				continue
			}
			for i := range e.shell.targets {
				t := &e.shell.targets[i]
				relevant := t.writes && l.writes || !t.writes && l.reads
				if !t.device && relevant && e.mayBePath(l.rule.path, t.target, t.cwd) {
					return fmt.Sprintf("the redirection to %q may turn out to match %s", show(t.target.text), l.rule.ref)
				}
			}
			// The sandbox hides what a deny rule of read is about, so a word of which
			// nothing is known need not be asked about there.
			hidden := n == 0 && l.reads && !l.writes && e.in.Env.TierProcess
			for _, p := range e.shell.parts {
				for w := range p.pathWords() {
					if !((hidden || p.appended) && strings.Trim(w.text, unknownBytes) == "") && e.mayBePath(l.rule.path, w, p.cwd) {
						return fmt.Sprintf("%q may turn out to match %s", show(w.text), l.rule.ref)
					}
				}
			}
		}
	}
	return ""
}

// pathWords gives the words of a part that may be files.
func (p *part) pathWords() iter.Seq[word] {
	return func(yield func(word) bool) {
		for i, w := range p.ownWords() {
			if i == 0 && !strings.Contains(w.text, "/") {
				continue // a program found in PATH
			}
			if !yield(w) {
				return
			}
		}
		for _, as := range p.assigns {
			if !yield(as.value) {
				return
			}
		}
	}
}

// seenWords keeps words from being looked at again.
type seenWords map[seenWord]bool

type seenWord struct {
	text string
	at   *cwds
}

// again reports whether a word was seen in the same directories before.
func (s seenWords) again(w word, at *cwds) bool {
	k := seenWord{w.text, at}
	if s[k] {
		return true
	}
	s[k] = true
	return false
}

// lookAtWord returns a rule that matches a known word, seen from some directory
// that is possible, or nil.
func (e *evaluation) lookAtWord(list []look, w word, at *cwds) *rule {
	if w.text == "" || len(w.text) > maxPath || w.unknown {
		return nil
	}
	// An option is hardly the name of a link, so it is compared as text.
	option := w.text[0] == '-' && !strings.ContainsAny(w.text, "=/")
	for _, s := range pathsIn(w.text) {
		s = processView(s)
		for _, d := range at.dirs {
			forms, text := PathForms{}, path.Join(d, s)
			if !option {
				forms, text = e.wordForms(s, d)
			}
			for _, l := range list {
				if text != "" && e.reaches(l.rule.path, text, false, false) || text == "" && e.matchesPath(l.rule.path, &forms, false) {
					return l.rule
				}
			}
			if path.IsAbs(s) {
				break
			}
		}
	}
	return nil
}

// mayBePath reports whether a path rule may match a word that isn't wholly known,
// or a relative one in a directory that isn't.
func (e *evaluation) mayBePath(r *pathRule, w word, at *cwds) bool {
	if w.text == "" || len(w.text) > maxPath || !w.unknown && !at.unknown {
		return false
	}
	for _, s := range pathsIn(w.text) {
		s = processView(s)
		if (w.unknown || !path.IsAbs(s)) && e.possiblePath(r, s, at) {
			return true
		}
	}
	return false
}

// wordForms resolves a word as a file seen from dir; what can't be resolved is
// returned as text.
func (e *evaluation) wordForms(s, dir string) (forms PathForms, text string) {
	given := s
	if strings.HasPrefix(given, "~") {
		given = "./" + given // the shell has expanded what it expands
		if rest, ok := strings.CutPrefix(s, "~/"); ok && e.in.Env.Home != "" {
			given = e.in.Env.Home + "/" + rest // but some programs do so too
		}
	}
	if len(e.resolved) < maxFiles {
		if f, err := e.resolve(dir, given); err == nil {
			return f, ""
		}
	} else {
		e.manyFiles = true
	}
	if !path.IsAbs(given) {
		given = dir + "/" + given
	}
	return PathForms{}, path.Clean(given)
}

// possiblePath reports whether a path rule may match s, some of which, or whose
// directory, is unknown.
func (e *evaluation) possiblePath(r *pathRule, s string, at *cwds) bool {
	switch {
	case s[0] == anyText, !path.IsAbs(s) && at.unknown:
		// It may begin anywhere, so it may be any path that ends so.
		return slices.ContainsFunc(append([]*pathRule{r}, e.aliases(r)...), func(r *pathRule) bool {
			return r.matches(s, false, true) || r.matches("\x00/"+s, false, true)
		})
	case path.IsAbs(s):
		return e.reaches(r, cleanWord(s), false, true)
	}
	for _, d := range at.dirs {
		if e.reaches(r, cleanWord(d+"/"+s), false, true) {
			return true
		}
	}
	return false
}
