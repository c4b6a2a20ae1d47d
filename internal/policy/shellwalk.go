package policy

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// stmts walks through statements that run one after the other.
func (a *analyzer) stmts(list []*syntax.Stmt) {
	for _, s := range list {
		a.stmt(s, nil)
	}
}

// subshell walks through statements whose "cd" ends with them.
func (a *analyzer) subshell(list []*syntax.Stmt) {
	outer := a.cwd
	a.stmts(list)
	a.cwd = outer
}

// maybe walks through statements that may run or not.
func (a *analyzer) maybe(list []*syntax.Stmt) {
	before := a.cwd
	a.stmts(list)
	a.cwd = a.cwd.join(before)
}

// repeated walks through statements that may run any number of times, each after
// the "cd" of the other rounds.
func (a *analyzer) repeated(walk func()) {
	before := a.cwd
	parts, redirs := len(a.out.parts), len(a.out.redirs)
	walk()
	if a.cwd == before {
		return
	}
	unknown := &cwds{dirs: before.dirs, unknown: true}
	for _, p := range a.out.parts[parts:] {
		p.cwd = unknown
	}
	for i := redirs; i < len(a.out.redirs); i++ {
		a.out.redirs[i].cwd = unknown
	}
	a.cwd = unknown
}

// stmt walks through one statement. stdin is what a construct around it gives
// it to read, if that is literal.
func (a *analyzer) stmt(s *syntax.Stmt, stdin *word) {
	if a.full() {
		a.fault("it has more than %d parts", maxParts)
		return
	}
	outer := a.cwd
	for _, r := range s.Redirs {
		if in := a.redirect(r, idle(s.Cmd)); in != nil {
			stdin = in
		}
	}
	if s.Cmd != nil {
		around := a.input
		if stdin != nil {
			a.input = stdin
		}
		a.command(s.Cmd, stdin)
		a.input = around
	}
	if s.Background || s.Coprocess || s.Disown {
		a.cwd = outer
	}
}

// command walks through a simple or compound command.
func (a *analyzer) command(c syntax.Command, stdin *word) {
	switch c := c.(type) {
	case *syntax.CallExpr:
		a.call(c, stdin)
	case *syntax.BinaryCmd:
		a.binary(c, stdin)
	case *syntax.Block:
		a.stmts(c.Stmts)
	case *syntax.Subshell:
		a.subshell(c.Stmts)
	case *syntax.IfClause:
		a.ifClause(c)
	case *syntax.WhileClause:
		a.repeated(func() { a.stmts(c.Cond); a.stmts(c.Do) })
	case *syntax.ForClause:
		if iter, ok := c.Loop.(*syntax.WordIter); ok {
			a.loopVariable(iter)
		} else {
			a.inner(c.Loop)
			a.evaluating(c.Loop)
			a.arithmeticTree(c.Loop)
		}
		a.repeated(func() { a.stmts(c.Do) })
	case *syntax.CaseClause:
		a.inner(c.Word)
		for _, item := range c.Items {
			for _, p := range item.Patterns {
				a.inner(p)
			}
			a.maybe(item.Stmts)
		}
	case *syntax.FuncDecl:
		a.function(c)
	case *syntax.TimeClause:
		a.timed(c, stdin)
	case *syntax.CoprocClause:
		if c.Name != nil {
			a.sets(a.one(c.Name).text, unknownValue(), setInShell)
		}
		outer := a.cwd
		a.stmt(c.Stmt, nil)
		a.cwd = outer
	case *syntax.DeclClause:
		a.declaration(c)
	case *syntax.TestClause:
		a.inner(c)
		a.evaluating(c)
	case *syntax.ArithmCmd, *syntax.LetClause:
		a.inner(c)
		a.evaluating(c)
		a.arithmeticTree(c)
	default:
		a.fault("it holds a construct that isn't judged")
	}
}

// loopVariable walks through the words that the variable of a loop goes through.
func (a *analyzer) loopVariable(iter *syntax.WordIter) {
	value := word{}
	for _, w := range iter.Items {
		for _, x := range a.expand(w) {
			if !isNumeral(x.text) {
				value = unknownValue()
			}
			a.sets(iter.Name.Value, x, setInShell)
		}
	}
	if !iter.InPos.IsValid() {
		value = unknownValue()
	}
	a.sets(iter.Name.Value, value, setInShell)
}

func (a *analyzer) binary(c *syntax.BinaryCmd, stdin *word) {
	switch c.Op {
	case syntax.AndStmt, syntax.OrStmt:
		before := a.cwd
		a.stmt(c.X, stdin)
		between := a.cwd
		if c.Op == syntax.OrStmt {
			a.cwd = before.join(between)
		}
		a.stmt(c.Y, stdin)
		a.cwd = a.cwd.join(before).join(between)
	default: // pipes: each side is a subshell, and reads what nobody knows
		outer := a.cwd
		a.stmt(c.X, stdin)
		a.cwd = outer
		a.stmt(c.Y, &word{text: string(rune(anyText)), unknown: true})
		a.cwd = outer
	}
}

func (a *analyzer) ifClause(c *syntax.IfClause) {
	for ; c != nil; c = c.Else {
		a.stmts(c.Cond)
		a.maybe(c.Then)
	}
}

// function walks through the body of a function, which may run later and
// anywhere.
func (a *analyzer) function(c *syntax.FuncDecl) {
	if c.Name == nil || c.Body == nil {
		a.fault("it holds a function without a name")
		return
	}
	name := unescape(c.Name.Value)
	a.cdUnknown = a.cdUnknown || name == "cd" || name == "pushd"
	outer := a.cwd
	a.defining = append(a.defining, name)
	a.cwd = &cwds{dirs: outer.dirs, unknown: true}
	before := len(a.out.parts)
	a.stmt(c.Body, nil)
	a.defining = a.defining[:len(a.defining)-1]
	if bomb(c.Body, name, a.out.parts[before:]) {
		a.out.bombs = append(a.out.bombs, name)
	}
	a.cwd = outer
	if changesDir(a.out.parts[before:]) {
		a.cwd = &cwds{dirs: outer.dirs, unknown: true}
	}
}

func changesDir(parts []*part) bool {
	return slices.ContainsFunc(parts, func(p *part) bool {
		return len(p.words) > 0 && slices.Contains([]string{"cd", "pushd", "popd"}, p.words[0].text)
	})
}

// bomb reports whether the body of a function starts the function again beside
// itself, in a pipe or in the background.
func bomb(body *syntax.Stmt, name string, parts []*part) bool {
	again := slices.ContainsFunc(parts, func(p *part) bool {
		return len(p.words) > 0 && p.words[0].text == name
	})
	if !again {
		return false
	}
	beside := false
	syntax.Walk(body, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Stmt:
			beside = beside || n.Background
		case *syntax.BinaryCmd:
			beside = beside || n.Op == syntax.Pipe || n.Op == syntax.PipeAll
		case *syntax.CmdSubst, *syntax.ProcSubst, *syntax.CoprocClause:
			beside = true
		}
		return !beside
	})
	return beside
}

func unescape(s string) string { return strings.ReplaceAll(s, `\`, "") }

// timed walks through what the reserved word "time" measures; it counts as a
// wrapper (gate.md §3).
func (a *analyzer) timed(c *syntax.TimeClause, stdin *word) {
	if c.Stmt == nil {
		return
	}
	p := a.add(&part{words: []word{{text: "time"}}, wrapper: true})
	before := len(a.out.parts)
	outer := a.via
	a.via = "time"
	a.stmt(c.Stmt, stdin)
	a.via = outer
	if len(a.out.parts) > before {
		p.words = append(p.words, a.out.parts[before].words...)
	}
}

// declaration walks through export, declare, local and their like.
func (a *analyzer) declaration(c *syntax.DeclClause) {
	p := &part{words: []word{{text: c.Variant.Value}}, inert: true}
	var naked []word
	for _, as := range c.Args {
		if as.Naked && as.Name == nil {
			w := a.one(as.Value)
			a.evaluated(w)
			p.words = append(p.words, w)
			naked = append(naked, w)
			continue
		}
		name := a.assign(p, as)
		if as.Naked {
			naked = append(naked, word{text: name})
		} else {
			name += "=" + p.assigns[len(p.assigns)-1].value.text
		}
		p.words = append(p.words, word{text: name, unknown: strings.ContainsAny(name, unknownBytes)})
	}
	a.add(p)
	a.declares(c.Variant.Value, naked)
}

// assign notes an assignment and returns its name.
func (a *analyzer) assign(p *part, as *syntax.Assign) string {
	out := assign{name: as.Name.Value}
	if as.Index != nil {
		a.inner(as.Index)
		a.arithmeticTree(as.Index)
		out.value.unknown = true
	}
	switch {
	case as.Array != nil:
		a.inner(as.Array)
		out.value = word{text: "\x00", unknown: true}
		for _, e := range as.Array.Elems {
			if e.Value != nil {
				a.evaluated(a.single(e.Value.Parts))
			}
		}
	case as.Value != nil:
		out.value = a.one(as.Value)
		a.evaluated(out.value)
	}
	if as.Naked {
		return out.name
	}
	p.assigns = append(p.assigns, out)
	a.sets(out.name, out.value, setByPart)
	return out.name
}

// call walks through a simple command.
func (a *analyzer) call(c *syntax.CallExpr, stdin *word) {
	p := &part{}
	for _, as := range c.Assigns {
		a.assign(p, as)
	}
	if len(c.Args) == 0 {
		a.add(p)
		return
	}
	for _, w := range c.Args {
		p.words = append(p.words, a.expand(w)...)
	}
	a.simple(p, stdin)
}

// add notes a part that may run here.
func (a *analyzer) add(p *part) *part {
	p.cwd, p.via, p.appended = a.cwd, a.via, a.appends
	if a.full() {
		a.fault("it has more than %d parts", maxParts)
		return p
	}
	a.out.parts = append(a.out.parts, p)
	return p
}

// inner walks through the commands that are substituted anywhere in n.
func (a *analyzer) inner(n syntax.Node) {
	syntax.Walk(n, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CmdSubst:
			a.subshell(n.Stmts)
			return false
		case *syntax.ProcSubst:
			a.subshell(n.Stmts)
			return false
		case *syntax.ParamExp:
			if n.Exp != nil && n.Exp.Op == syntax.OtherParamOps && n.Exp.Word != nil && n.Exp.Word.Lit() == "P" {
				a.fault("${…@P} runs what a variable holds")
			}
			if n.Index != nil || n.Slice != nil {
				a.evaluating(n)
			}
			if n.Index != nil {
				a.arithmeticTree(n.Index)
			}
			if n.Slice != nil && n.Slice.Offset != nil {
				a.arithmeticTree(n.Slice.Offset)
			}
			if n.Slice != nil && n.Slice.Length != nil {
				a.arithmeticTree(n.Slice.Length)
			}
		case *syntax.ArithmExp:
			a.evaluating(n)
			a.arithmeticTree(n)
		}
		a.setsWithin(n)
		return true
	})
}

// evaluating looks at the literals of an arithmetic or test expression, in which
// the shell may run commands out of quoted text.
func (a *analyzer) evaluating(n syntax.Node) {
	syntax.Walk(n, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.SglQuoted:
			a.evaluated(word{text: ansiC(n.Value)})
		case *syntax.Lit:
			if strings.Contains(n.Value, `\$`) || strings.Contains(n.Value, "\\`") {
				a.evaluated(word{text: unescape(n.Value)})
			}
		}
		return true
	})
}

// evaluated looks at literal text that the shell may come to evaluate: a
// substitution in it would run.
func (a *analyzer) evaluated(w word) {
	if strings.Contains(w.text, "$(") || strings.Contains(w.text, "`") {
		a.fault("quoted text %q may be evaluated as a command later", show(w.text))
	}
}
