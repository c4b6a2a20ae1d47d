package selfprotect

import (
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

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
