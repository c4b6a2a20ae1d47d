package selfprotect

import (
	"path"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

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
