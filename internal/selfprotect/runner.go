package selfprotect

import (
	"slices"
	"strings"
)

// shellProgram judges a shell that is started.
func (s *shell) shellProgram(c *command) string {
	for i, a := range c.args {
		if strings.HasPrefix(a, "--") && a != "--command" {
			continue
		}
		if a == "--command" || strings.HasPrefix(a, "-") && strings.Contains(a, "c") {
			if i+1 < len(c.args) {
				if i+2 < len(c.args) {
					s.set("0", text(c.args[i+2]))
					s.positional(c.args[min(i+3, len(c.args)):])
				}
				return s.script(c.args[i+1], c.stdin)
			}
		}
	}
	rest := operands(c.args)
	s.changes(rest)
	if len(rest) == 0 || flag(c.args, "s") || rest[0] == "/dev/stdin" || rest[0] == "/dev/fd/0" {
		if len(rest) > 0 {
			s.positional(rest)
		}
		return s.script(known(c.stdin), anyText)
	}
	s.executes = true
	return anyText
}

// xargs judges the program that xargs starts with what it reads.
func (s *shell) xargs(c *command) string {
	i := 0
	replace := ""
	for ; i < len(c.args) && strings.HasPrefix(c.args[i], "-"); i++ {
		a := c.args[i]
		switch {
		case a == "-I" && i+1 < len(c.args):
			i++
			replace = c.args[i]
		case strings.HasPrefix(a, "-I"):
			replace = a[2:]
		case a == "-i" || c.name == "parallel":
			replace = "{}"
		case strings.Contains(" -n -P -L -d -a -E -s -j --max-args --max-procs --arg-file --delimiter ", " "+a+" "):
			i++
		}
	}
	inner := slices.Clone(c.args[i:])
	if c.name == "parallel" && replace == "" {
		replace = "{}"
	}
	for k, a := range inner {
		if a == ":::" {
			c.stdin, inner = strings.Join(inner[k+1:], "\n"), inner[:k]
			break
		}
	}
	given := strings.FieldsFunc(known(c.stdin), func(r rune) bool { return r <= ' ' && r > 2 || r == '"' || r == '\'' })
	if len(given) > 256 {
		given = given[:256]
	}
	if len(inner) == 0 {
		return c.stdin
	}
	if replace == "" {
		return s.judge(append(inner, given...), c.assigns, anyText)
	}
	for _, g := range append(given, anyText) {
		words := make([]string, len(inner))
		put := false
		for k, w := range inner {
			put = put || strings.Contains(w, replace)
			words[k] = strings.ReplaceAll(w, replace, g)
		}
		if !put {
			words = append(words, g)
		}
		if len(words) == 1 {
			s.script(words[0], anyText)
		} else {
			s.judge(words, c.assigns, anyText)
		}
	}
	return anyText
}
