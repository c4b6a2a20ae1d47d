package selfprotect

import (
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
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
)

// variable is every value that a variable may have, the newest last.
type variable struct{ values []expand.Variable }

func text(s string) expand.Variable {
	return expand.Variable{Set: true, Kind: expand.String, Str: s}
}

// set notes a value.
func (s *shell) set(name string, v expand.Variable) {
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
			_, err := io.WriteString(w, strings.TrimRight(s.subshell(c.Stmts, ""), "\n"))
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
		list, err := s.try(func() ([]string, error) { return expand.Fields(s.config(v), w) })
		if err != nil {
			list = []string{s.rough(w)}
		}
		if len(out)+len(list) > maxFields {
			for _, each := range list {
				s.deny(s.judgement.set.mention(each, false))
			}
			continue
		}
		out = append(out, list...)
	}
	return out
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
		list, err := s.try(func() ([]string, error) { return expand.Fields(s.config(v), w) })
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

// declare goes through export, declare, local and their like.
func (s *shell) declare(c *syntax.DeclClause) {
	ref := false
	for _, as := range c.Args {
		if as.Naked && as.Name == nil && as.Value != nil {
			ref = ref || strings.Contains(as.Value.Lit(), "n") && strings.HasPrefix(as.Value.Lit(), "-")
			for _, v := range s.values(as.Value) {
				if name, value, is := strings.Cut(v, "="); is {
					s.set(name, text(value))
				}
			}
			continue
		}
		if as.Name != nil && !as.Naked {
			s.assign(as)
			if ref && as.Value != nil {
				s.set(as.Name.Value, expand.Variable{Set: true, Kind: expand.NameRef, Str: s.one(as.Value)})
			}
		}
	}
}

// assign notes an assignment and returns it as text.
func (s *shell) assign(as *syntax.Assign) string {
	name := as.Name.Value
	if as.Array != nil {
		v := expand.Variable{Set: true, Kind: expand.Indexed}
		words := make([]*syntax.Word, 0, len(as.Array.Elems))
		for _, e := range as.Array.Elems {
			if e.Value == nil {
				continue
			}
			words = append(words, e.Value)
			if e.Index != nil { // by name: any of its values
				for _, t := range s.values(e.Value) {
					s.set(name, text(t))
				}
			}
		}
		v.List = s.fields(words, version{})
		if as.Append {
			if at := s.vars[name]; at != nil {
				last := at.values[len(at.values)-1]
				v.List = append(slices.Clone(last.List), v.List...)
			}
		}
		s.set(name, v)
		return name
	}
	last := ""
	for _, t := range slices.Backward(s.values(as.Value)) {
		if as.Append {
			if at := s.vars[name]; at != nil {
				t = at.values[len(at.values)-1].String() + t
			}
		}
		s.set(name, text(t))
		last = t
	}
	s.setVariable(name, last)
	return name + "=" + last
}

// positional sets the parameters of the shell.
func (s *shell) positional(args []string) {
	s.set("@", expand.Variable{Set: true, Kind: expand.Indexed, List: args})
	s.set("*", expand.Variable{Set: true, Kind: expand.Indexed, List: args})
	for i, a := range args[:min(len(args), 64)] {
		s.set(strconv.Itoa(i+1), text(a))
	}
}

// redirect judges a redirection. It returns what it gives to read, if it does, and
// whether it writes.
func (s *shell) redirect(r *syntax.Redirect) (in string, has, writes bool) {
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc:
		return s.heredoc(r), true, false
	case syntax.WordHdoc:
		return strings.Join(s.values(r.Word), "\n"), true, false
	case syntax.RdrIn, syntax.DplIn:
		for _, t := range s.values(r.Word) {
			in = s.fileText(t)
		}
		return in, true, false
	}
	for _, t := range s.expand([]*syntax.Word{r.Word}, 0) {
		if r.Op == syntax.DplOut && strings.Trim(t, "0123456789-") == "" {
			continue
		}
		writes = true
		for _, dir := range s.cwds {
			if m := s.at(dir, t); m.relation == direct {
				s.deny(m.place)
			}
		}
	}
	return "", false, writes
}

// fileText returns what is known of the text in a file that is given to read.
func (s *shell) fileText(name string) string {
	for _, dir := range s.cwds {
		if path.Ext(name) == ".patch" || path.Ext(name) == ".diff" {
			return fileMark + s.join(dir, name)
		}
	}
	return anyText
}

// fileMark begins a text that stands for what is in a file.
const fileMark = "\x02file:"

// heredoc returns the body of a here-document as the program reads it.
func (s *shell) heredoc(r *syntax.Redirect) string {
	if r.Hdoc == nil {
		return ""
	}
	quoted := len(r.Word.Parts) != 1
	if lit, ok := r.Word.Parts[0].(*syntax.Lit); !quoted {
		quoted = !ok || strings.Contains(lit.Value, `\`)
	}
	body := ""
	if quoted {
		for _, p := range r.Hdoc.Parts {
			if lit, ok := p.(*syntax.Lit); ok {
				body += lit.Value
			}
		}
	} else {
		list, err := s.try(func() ([]string, error) {
			t, err := expand.Document(s.config(version{}), r.Hdoc)
			return []string{t}, err
		})
		if err != nil {
			list = []string{s.rough(r.Hdoc)}
		}
		body = list[0]
	}
	s.texts = append(s.texts, body)
	return body
}
