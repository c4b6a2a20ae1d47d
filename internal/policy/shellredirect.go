package policy

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// idle reports whether a command does nothing, so that its redirections only make
// or empty files.
func idle(c syntax.Command) bool {
	call, ok := c.(*syntax.CallExpr)
	if !ok {
		return c == nil
	}
	if len(call.Args) != 1 {
		return len(call.Args) == 0
	}
	lit := call.Args[0].Lit()
	return lit == ":" || lit == "true"
}

// redirect notes a redirection. It returns what it gives to read, which of a file
// is unknown, or nil if it gives nothing.
func (a *analyzer) redirect(r *syntax.Redirect, bare bool) *word {
	if r.N != nil && strings.HasPrefix(r.N.Value, "{") {
		a.setsNamed(word{text: strings.Trim(r.N.Value, "{}")}, word{}, setInShell)
	}
	if r.Op == syntax.Hdoc || r.Op == syntax.DashHdoc {
		if r.Hdoc == nil {
			return &word{}
		}
		a.inner(r.Hdoc)
		body := a.heredoc(r)
		return &body
	}
	words := a.expand(r.Word)
	target := word{text: string(rune(anyText)), unknown: true}
	if len(words) == 1 {
		target = words[0]
	}
	empties := r.Op == syntax.RdrOut || r.Op == syntax.RdrClob || r.Op == syntax.RdrAll
	out := redir{target: target, bare: bare && empties, cwd: a.cwd}
	var in *word
	switch r.Op {
	case syntax.WordHdoc:
		target.text += "\n"
		return &target
	case syntax.RdrIn:
		in = &word{text: string(rune(anyText)), unknown: true}
	case syntax.DplIn:
		in = &word{text: string(rune(anyText)), unknown: true}
		if isDescriptor(target.text) {
			return in
		}
	case syntax.DplOut:
		if isDescriptor(target.text) {
			return nil
		}
		out.writes = true
	default:
		out.writes = true
	}
	a.addRedir(out)
	return in
}

// addRedir notes a file that is read or written.
func (a *analyzer) addRedir(r redir) {
	if len(a.out.redirs) >= maxParts {
		a.fault("it has more than %d redirections", maxParts)
		return
	}
	a.out.redirs = append(a.out.redirs, r)
}

// isDescriptor reports whether the target of ">&" or "<&" is a descriptor and so
// no file.
func isDescriptor(s string) bool {
	s = strings.TrimSuffix(s, "-")
	return strings.Trim(s, "0123456789\x01") == ""
}

// heredoc returns the body of a here-document as the program reads it.
func (a *analyzer) heredoc(r *syntax.Redirect) word {
	b := wordBuilder{a: a}
	quoted := len(r.Word.Parts) != 1
	if lit, ok := r.Word.Parts[0].(*syntax.Lit); !quoted {
		quoted = !ok || strings.Contains(lit.Value, `\`)
	}
	for _, p := range r.Hdoc.Parts {
		lit, ok := p.(*syntax.Lit)
		switch {
		case !ok:
			b.part(p, false, false)
		case quoted:
			b.literal(lit.Value)
		default:
			b.doubleQuoted(lit.Value)
		}
	}
	text := string(b.buf)
	if r.Op == syntax.DashHdoc {
		lines := strings.Split(text, "\n")
		for i, l := range lines {
			lines[i] = strings.TrimLeft(l, "\t")
		}
		text = strings.Join(lines, "\n")
	}
	return word{text: text, unknown: b.unknown}
}
