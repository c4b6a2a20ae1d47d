package selfprotect

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

const (
	// maxCommand bounds a command that is parsed, in bytes; a longer one is treated
	// as one that can't be parsed.
	maxCommand = 256 << 10
	// maxNesting bounds how deep one is nested, maxDepth how many shells and programs
	// within others are followed, and maxSteps how many commands are judged.
	maxNesting, maxDepth, maxSteps = 80, 12, 4096
	// maxPlaces bounds the working directories that are possible at once.
	maxPlaces = 8
)

// shell goes through one command of the shell as the shell would run it, as far as
// that can be told. Of what may be one or the other it keeps both.
type shell struct {
	*judgement
	vars map[string]*variable
	// cwds are the possible working directories.
	cwds []string
	// visited are the working directories of before, to which it may go back.
	visited []string
	// defined are the names of functions and aliases, which mean what they please, with
	// what they print.
	defined map[string]string
	depth   int
	steps   *int
	// executes says that a program is run whose text isn't here, and texts are those
	// that are written somewhere.
	executes bool
	texts    []string
	// starts says that an agent is started.
	starts bool
}

func (j *judgement) run(command string, dirs []string) { j.runWith(command, dirs, nil) }

// runWith judges a command that runs in one of dirs.
func (j *judgement) runWith(command string, dirs []string, env map[string]string) {
	s := &shell{judgement: j, vars: map[string]*variable{}, defined: map[string]string{}, steps: new(int)}
	for _, d := range dirs {
		if !slices.Contains(s.cwds, d) && len(s.cwds) < maxPlaces {
			s.cwds = append(s.cwds, d)
		}
	}
	for name, value := range env {
		s.set(name, text(value))
	}
	s.switchVariables(env)
	s.script(command, "")
	s.written()
	if j.budget < 0 { // the rest can't be told
		j.code(command)
	}
}

// written judges the texts that a command wrote somewhere, where it may run them.
func (s *shell) written() {
	texts := s.texts
	for _, t := range texts {
		if s.starts {
			s.settings(t)
		}
		if s.executes && !s.done() {
			s.code(t)
			s.patch(t, s.cwds)
			if list, ok := s.judgement.set.parse(t); ok {
				s.subshell(list, "")
			}
		}
	}
}

// script judges a text that a shell runs, and returns what it prints as far as that
// is known.
func (s *shell) script(src, stdin string) string {
	src = plainText(src)
	if strings.TrimSpace(src) == "" || s.done() {
		return ""
	}
	if s.depth++; s.depth > maxDepth {
		s.code(src)
		return anyText
	}
	defer func() { s.depth-- }()
	list, ok := s.judgement.set.parse(src)
	if !ok {
		s.code(src)
		if s.depth == 1 && s.found == nil {
			s.words(src)
		}
		return anyText
	}
	s.dotglob = s.dotglob || strings.Contains(src, "dotglob")
	return s.stmts(list, stdin)
}

// words judges a command that can't be parsed by each of its words.
func (s *shell) words(src string) {
	for w := range strings.FieldsFuncSeq(src, func(r rune) bool { return r <= ' ' || strings.ContainsRune("\"'`();|&<>", r) }) {
		if literals(w) < 4 {
			continue
		}
		if m := s.touches(w); m.relation == direct {
			s.deny(m.place)
		}
	}
}

// parse reads a text as bash does.
func (s *Set) parse(src string) ([]*syntax.Stmt, bool) {
	if len(src) > maxCommand || strings.IndexByte(src, 0) >= 0 || deep(src) {
		return nil, false
	}
	parser, _ := s.parsers.Get().(*syntax.Parser)
	defer s.parsers.Put(parser)
	f, err := parser.Parse(strings.NewReader(src), "")
	if err != nil {
		return nil, false
	}
	syntax.Walk(f, quoteGlobs)
	return f.Stmts, true
}

// The characters of a glob, and the marks that stand for them where they are quoted
// and so mean themselves.
const globs, marks = "*?[(", "\x04\x05\x06\x07"

// swapped returns s with each character of from replaced by that of to.
func swapped(s, from, to string) string {
	if !strings.ContainsAny(s, from) {
		return s
	}
	return strings.Map(func(r rune) rune {
		if i := strings.IndexRune(from, r); i >= 0 {
			return rune(to[i])
		}
		return r
	}, s)
}

// quoteGlobs marks what is quoted in a syntax tree.
func quoteGlobs(n syntax.Node) bool {
	switch n := n.(type) {
	case *syntax.SglQuoted:
		if !n.Dollar {
			n.Value = swapped(n.Value, globs, marks)
		}
	case *syntax.DblQuoted:
		for _, p := range n.Parts {
			if lit, is := p.(*syntax.Lit); is {
				lit.Value = swapped(lit.Value, globs, marks)
			}
		}
	}
	return true
}

// plainText returns a text as it was before its quoted globs were marked.
func plainText(s string) string { return swapped(s, marks, globs) }

// deep reports whether a text may be nested so deep that to parse it takes too long.
func deep(src string) bool {
	depth, most := 0, 0
	for i := range len(src) {
		switch src[i] {
		case '(', '{':
			depth++
			most = max(most, depth)
		case ')', '}':
			depth = max(depth-1, 0)
		}
	}
	return most > maxNesting || strings.Count(src, "then")+strings.Count(src, "do") > 2000 || strings.Count(src, "`") > 400
}

func (s *shell) stmts(list []*syntax.Stmt, stdin string) string {
	var out strings.Builder
	for _, st := range list {
		out.WriteString(s.stmt(st, stdin))
		if out.Len() > maxValue {
			return anyText
		}
		if s.done() {
			break
		}
	}
	return out.String()
}

// subshell judges statements whose "cd" ends with them.
func (s *shell) subshell(list []*syntax.Stmt, stdin string) string {
	outer := s.cwds
	defer func() { s.cwds = outer }()
	return s.stmts(list, stdin)
}

// maybe judges what may run or not.
func (s *shell) maybe(run func()) {
	before := s.cwds
	run()
	s.cwds = union(s.cwds, before)
}

func union(a, b []string) []string {
	out := slices.Clone(a)
	for _, d := range b {
		if !slices.Contains(out, d) && len(out) < maxPlaces {
			out = append(out, d)
		}
	}
	return out
}

// stmt judges one statement, with the texts that it is given to read, and returns
// what it prints as far as that is known.
func (s *shell) stmt(st *syntax.Stmt, stdin string) string {
	if *s.steps++; *s.steps > maxSteps {
		s.tooMuch(st)
		return anyText
	}
	outer := s.cwds
	written := false
	for _, r := range st.Redirs {
		in, has, writes := s.redirect(r)
		if has {
			stdin = in
		}
		written = written || writes
	}
	out := ""
	if st.Cmd != nil {
		out = s.command(st.Cmd, stdin)
	}
	if st.Background || st.Coprocess || st.Disown {
		s.cwds = outer
	}
	if written {
		s.texts = append(s.texts, out)
	}
	return out
}

// tooMuch judges what is left of a command that is too long to be followed.
func (s *shell) tooMuch(st *syntax.Stmt) {
	var b strings.Builder
	if syntax.NewPrinter().Print(&b, st) == nil {
		s.code(b.String())
	}
}

func (s *shell) command(c syntax.Command, stdin string) string {
	switch c := c.(type) {
	case *syntax.CallExpr:
		return s.call(c, stdin)
	case *syntax.BinaryCmd:
		return s.binary(c, stdin)
	case *syntax.Block:
		return s.stmts(c.Stmts, stdin)
	case *syntax.Subshell:
		return s.subshell(c.Stmts, stdin)
	case *syntax.IfClause:
		return s.ifClause(c, stdin)
	case *syntax.WhileClause:
		out := s.stmts(c.Cond, stdin)
		s.maybe(func() { out += s.stmts(c.Do, stdin) })
		return out
	case *syntax.ForClause:
		return s.forClause(c, stdin)
	case *syntax.CaseClause:
		out := ""
		s.one(c.Word)
		for _, item := range c.Items {
			s.maybe(func() { out += s.stmts(item.Stmts, stdin) })
		}
		return out
	case *syntax.FuncDecl:
		if c.Name != nil && c.Body != nil {
			s.defined[c.Name.Value] = anyText
			s.maybe(func() { s.defined[c.Name.Value] = s.stmt(c.Body, anyText) })
		}
	case *syntax.TimeClause:
		if c.Stmt != nil {
			return s.stmt(c.Stmt, stdin)
		}
	case *syntax.CoprocClause:
		return s.stmt(c.Stmt, anyText)
	case *syntax.DeclClause:
		s.declare(c)
	default: // tests and arithmetic: what they substitute
		s.inner(c)
	}
	return ""
}

func (s *shell) binary(c *syntax.BinaryCmd, stdin string) string {
	switch c.Op {
	case syntax.AndStmt:
		before := s.cwds
		out := s.stmt(c.X, stdin)
		out += s.stmt(c.Y, stdin)
		s.cwds = union(s.cwds, before)
		return out
	case syntax.OrStmt:
		before := s.cwds
		out := s.stmt(c.X, stdin)
		after := s.cwds
		s.cwds = union(before, after)
		out += s.stmt(c.Y, stdin)
		s.cwds = union(s.cwds, after)
		return out
	}
	outer := s.cwds // each side of a pipe is a subshell
	out := s.stmt(c.X, stdin)
	s.cwds = outer
	out = s.stmt(c.Y, out)
	s.cwds = outer
	return out
}

func (s *shell) ifClause(c *syntax.IfClause, stdin string) string {
	out := ""
	for ; c != nil; c = c.Else {
		out += s.stmts(c.Cond, stdin)
		s.maybe(func() { out += s.stmts(c.Then, stdin) })
	}
	return out
}

func (s *shell) forClause(c *syntax.ForClause, stdin string) string {
	if iter, ok := c.Loop.(*syntax.WordIter); ok {
		for _, w := range s.expand(iter.Items, 0) {
			s.set(iter.Name.Value, text(w))
		}
		if !iter.InPos.IsValid() {
			s.set(iter.Name.Value, text(anyText))
		}
	} else {
		s.inner(c.Loop)
	}
	out := ""
	s.maybe(func() { out = s.stmts(c.Do, stdin) })
	return out
}

// inner judges the commands that are substituted anywhere in n.
func (s *shell) inner(n syntax.Node) {
	syntax.Walk(n, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CmdSubst:
			s.subshell(n.Stmts, "")
			return false
		case *syntax.ProcSubst:
			s.subshell(n.Stmts, anyText)
			return false
		}
		return true
	})
}
