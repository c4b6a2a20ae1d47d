package selfprotect

import (
	"path"
	"strings"
)

// search is what find and its like are told.
type search struct {
	starts, names []string
	// actions are the commands that it starts with what it finds.
	actions [][]string
}

// readSearch reads the arguments of a search. What it writes itself is judged here.
func (s *shell) readSearch(args []string) search {
	var q search
	for i := 0; i < len(args); i++ {
		switch a := args[i]; a {
		case "-name", "-iname", "-path", "-wholename", "-ipath", "-regex":
			if i++; i < len(args) {
				q.names = append(q.names, args[i])
			}
		case "-fprint", "-fprintf", "-fls", "-fprint0":
			if i++; i < len(args) {
				s.named(args[i])
			}
		case "-delete":
			q.actions = append(q.actions, []string{"rm", "-r", "{}"})
		case "-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch":
			end := i + 1
			for end < len(args) && args[end] != ";" && args[end] != "+" {
				end++
			}
			q.actions = append(q.actions, args[min(i+1, len(args)):end])
			i = end
		default:
			if !strings.HasPrefix(a, "-") && len(q.names) == 0 && len(q.starts) < 16 {
				q.starts = append(q.starts, a)
			}
		}
	}
	if len(q.starts) == 0 {
		q.starts = []string{"."}
	}
	return q
}

// keeps reports whether a search may find a file, or a folder above it.
func (s *shell) keeps(q search, p string) bool {
	for _, n := range q.names {
		n = s.folded(path.Base(strings.TrimSuffix(n, "$")))
		fits := n == "*" || strings.ContainsAny(n, `\+|`)
		for part := range strings.SplitSeq(s.folded(p), "/") {
			fits = fits || part != "" && glob(n, part)
		}
		if !fits {
			return false
		}
	}
	return true
}

// find judges a search that does something with what it finds, and returns what it
// prints that is protected.
func (s *shell) find(c *command) string {
	q := s.readSearch(c.args)
	keep := func(p string) bool { return s.keeps(q, p) }
	var found []string
	for _, start := range q.starts {
		for _, dir := range s.cwds {
			full := s.join(dir, start)
			m := s.at(dir, start)
			if m.relation == direct {
				found = append(found, full)
			}
			if isPattern(full) {
				if m.relation != apart {
					found = append(found, full+"/"+anyText)
				}
				continue
			}
			s.beneath(full, func(p string) bool {
				if len(found) < 64 && keep(p) {
					found = append(found, p)
				}
				return false
			})
			s.beneathAround(full, keep, &found)
		}
	}
	for _, a := range q.actions {
		s.acts(a, found, c)
	}
	if len(found) == 0 {
		return anyText
	}
	return strings.Join(found, "\n")
}

func (s *shell) folded(name string) string { return s.judgement.set.folded(name) }

// beneathAround adds the existing files of a host's folder that a search finds.
func (s *shell) beneathAround(dir string, keep func(string) bool, found *[]string) {
	real := s.look.real(dir)
	parts := s.judgement.set.split(real)
	for i := range parts {
		n := s.judgement.set.anywhere
		for _, name := range parts[i:] {
			if n = n.child(name); n == nil {
				break
			}
		}
		if n == nil || n == s.judgement.set.anywhere {
			continue
		}
		for _, e := range n.next {
			if full := s.present(real, e.name); full != "" && keep(full) && len(*found) < 128 {
				*found = append(*found, full)
			}
		}
	}
}

// acts judges what a search does with what it finds.
func (s *shell) acts(action, found []string, c *command) {
	if len(action) == 0 {
		return
	}
	for _, f := range append(found, anyText) {
		words := make([]string, 0, len(action)+1)
		put := false
		for _, w := range action {
			put = put || strings.Contains(w, "{}")
			words = append(words, strings.ReplaceAll(w, "{}", f))
		}
		if !put {
			words = append(words, f)
		}
		s.judge(words, c.assigns, anyText)
	}
}
