package selfprotect

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

const (
	// maxValues bounds the values of a variable that are kept, and maxVersions the
	// combinations of values that a command is judged with.
	maxValues, maxVersions = 16, 24
	// maxFields bounds the words that a command may become.
	maxFields = 4096
	// maxValue bounds the bytes of a value and of what a command prints that are kept;
	// what is longer is unknown.
	maxValue = 64 << 10
)

// variable is every value that a variable may have, the newest last.
type variable struct{ values []expand.Variable }

func text(s string) expand.Variable {
	return expand.Variable{Set: true, Kind: expand.String, Str: s}
}

// set notes a value.
func (s *shell) set(name string, v expand.Variable) {
	v.Str = plainText(v.Str)
	v.List = slices.Clone(v.List)
	for i := range v.List {
		v.List[i] = plainText(v.List[i])
	}
	if s.budget--; len(v.Str) > maxValue || len(v.List) > maxFields {
		v = text(anyText)
	}
	at := s.vars[name]
	if at == nil {
		at = &variable{}
		s.vars[name] = at
		if known, is := s.known(name); is { // it may not be reached
			at.values = append(at.values, known)
		}
	}
	if len(at.values) == maxValues {
		at.values = slices.Delete(at.values, maxValues/2, maxValues/2+1)
	}
	at.values = append(at.values, v)
}

// known returns the value of a variable that every shell has.
func (s *shell) known(name string) (expand.Variable, bool) {
	home := s.homeText()
	switch name {
	case "HOME":
		return text(home), true
	case "PWD", "HOME +":
		return text(s.cwds[0]), true
	case "IFS":
		return text(" \t\n"), true
	case "XDG_CONFIG_HOME":
		return text(home + "/.config"), true
	case "XDG_STATE_HOME":
		return text(home + "/.local/state"), true
	case "CODEX_HOME":
		return text(home + "/.codex"), true
	case "CLAUDE_CONFIG_DIR":
		return text(home + "/.claude"), true
	case "COPILOT_HOME":
		return text(home + "/.copilot"), true
	case "PI_CODING_AGENT_DIR":
		return text(home + "/.pi/agent"), true
	case "CLAUDE_PROJECT_DIR", "GEMINI_PROJECT_DIR", "QWEN_PROJECT_DIR", "CRUSH_PROJECT_DIR":
		if len(s.roots) > 0 {
			return text(s.roots[0]), true
		}
	}
	return expand.Variable{}, false
}

// version says which values the variables have: pick that one of a variable, or,
// with oldest, the first of all, and nothing for the one that is unset.
type version struct {
	name   string
	pick   int
	oldest bool
	unset  string
	// whole says that words aren't split.
	whole bool
}

// environ is the variables as an expansion sees them.
type environ struct {
	s *shell
	v version
}

// Get returns a variable.
func (e environ) Get(name string) expand.Variable {
	switch {
	case name == e.v.unset:
		return expand.Variable{}
	case e.v.whole && name == "IFS":
		return text("")
	}
	if at := e.s.vars[name]; at != nil {
		switch {
		case e.v.oldest:
			return at.values[0]
		case e.v.name == name:
			return at.values[e.v.pick]
		}
		return at.values[len(at.values)-1]
	}
	if v, is := e.s.known(name); is {
		return v
	}
	switch name {
	case "@", "*":
		return expand.Variable{Set: true, Kind: expand.Indexed, List: []string{anyText}}
	}
	return text(anyText)
}

// Each is there for the expansion of names by a prefix, which isn't followed.
func (e environ) Each(func(string, expand.Variable) bool) {}

// Set notes what an expansion assigns.
func (e environ) Set(name string, v expand.Variable) error {
	e.s.set(name, v)
	return nil
}

func (s *shell) config(v version) *expand.Config {
	return &expand.Config{
		Env: environ{s, v},
		CmdSubst: func(w io.Writer, c *syntax.CmdSubst) error {
			out := strings.TrimRight(s.subshell(c.Stmts, ""), "\n")
			if len(out) > maxValue {
				out = anyText
			}
			_, err := io.WriteString(w, out)
			return err
		},
		ProcSubst: func(p *syntax.ProcSubst) (string, error) {
			s.texts = append(s.texts, s.subshell(p.Stmts, anyText))
			return "/dev/fd/63", nil
		},
	}
}

// versions returns the combinations of values to judge words with.
func (s *shell) versions(words []*syntax.Word) []version {
	out := []version{{}}
	add := func(v version) {
		if len(out) < maxVersions {
			out = append(out, v)
		}
	}
	seen := map[string]bool{}
	many := 0
	for _, w := range words {
		if plain(w) != "" {
			continue
		}
		syntax.Walk(w, func(n syntax.Node) bool {
			p, is := n.(*syntax.ParamExp)
			if !is || p.Param == nil {
				return true
			}
			name := p.Param.Value
			if p.Exp != nil && !seen[name+":"] {
				seen[name+":"] = true
				add(version{unset: name})
			}
			if at := s.vars[name]; at != nil && !seen[name] {
				seen[name] = true
				if len(at.values) > 1 {
					many++
				}
				for i := range len(at.values) - 1 {
					add(version{name: name, pick: i})
				}
			}
			return true
		})
	}
	if many > 1 {
		out = append(out, version{oldest: true})
	}
	return out
}

// plain returns the text of a word that is nothing but itself, or "".
func plain(w *syntax.Word) string {
	if len(w.Parts) != 1 {
		return ""
	}
	lit, ok := w.Parts[0].(*syntax.Lit)
	if !ok || strings.ContainsAny(lit.Value, "\\{~") {
		return ""
	}
	return lit.Value
}

// fields returns the words that words become in one version.
func (s *shell) fields(words []*syntax.Word, v version) []string {
	out := make([]string, 0, len(words))
	for _, w := range words {
		if lit := plain(w); lit != "" {
			out = append(out, lit)
			continue
		}
		list, err := s.split(w, v)
		if err != nil {
			list = []string{s.rough(w)}
		}
		if len(out)+len(list) > maxFields {
			s.budget = -1
			return out
		}
		out = append(out, list...)
	}
	return out
}

// split expands a word, as far as that makes no more than can be looked at.
func (s *shell) split(w *syntax.Word, v version) ([]string, error) {
	return s.try(func() ([]string, error) {
		var out []string
		size := 0
		for f, err := range expand.FieldsSeq(s.config(v), w) {
			if err != nil {
				return nil, err
			}
			out = append(out, f)
			if size += len(f) + 1; len(out) > maxFields || size > 4*maxValue || s.done() {
				s.budget = min(s.budget, -1)
				return out, nil
			}
		}
		s.budget -= size >> 8
		return out, nil
	})
}

// try runs an expansion. What the library panics over is an expansion that can't be
// told.
func (s *shell) try(do func() ([]string, error)) (list []string, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("expansion: %v", r)
		}
	}()
	return do()
}

// rough returns the literal pieces of a word that can't be expanded.
func (s *shell) rough(w *syntax.Word) string {
	var b strings.Builder
	var parts func(list []syntax.WordPart)
	parts = func(list []syntax.WordPart) {
		for _, p := range list {
			switch p := p.(type) {
			case *syntax.Lit:
				b.WriteString(strings.ReplaceAll(p.Value, `\`, ""))
			case *syntax.SglQuoted:
				b.WriteString(p.Value)
			case *syntax.DblQuoted:
				parts(p.Parts)
			default:
				s.inner(p)
				b.WriteString(anyText)
			}
		}
	}
	parts(w.Parts)
	return b.String()
}

// expand returns what words may become in all versions, at most limit versions of
// them if that isn't 0.
func (s *shell) expand(words []*syntax.Word, limit int) []string {
	var out []string
	for i, v := range s.versions(words) {
		if limit > 0 && i == limit {
			break
		}
		for _, f := range s.fields(words, v) {
			if !slices.Contains(out, f) {
				out = append(out, f)
			}
		}
	}
	return out
}

// values returns what a word may become where it isn't split.
func (s *shell) values(w *syntax.Word) []string {
	if w == nil {
		return []string{""}
	}
	if lit := plain(w); lit != "" {
		return []string{lit}
	}
	var out []string
	for _, v := range s.versions([]*syntax.Word{w}) {
		v.whole = true
		list, err := s.split(w, v)
		switch {
		case err != nil:
			list = []string{s.rough(w)}
		case len(list) != 1: // of braces or a list: each, and all
			list = append([]string{strings.Join(list, " ")}, list...)
		}
		for _, t := range list {
			if !slices.Contains(out, t) {
				out = append(out, t)
			}
		}
	}
	return out
}

func (s *shell) one(w *syntax.Word) string {
	if w == nil {
		return ""
	}
	return s.values(w)[0]
}
