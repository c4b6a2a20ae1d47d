package selfprotect

import (
	"path"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// command is a simple command in one version.
type command struct {
	// name is the program's, without its folder.
	name string
	args []string
	// assigns are the assignments before it, as NAME=VALUE.
	assigns []string
	// stdin is what it is given to read, as far as that is known.
	stdin string
	// foreign says that the program lies where no system keeps its own.
	foreign bool
}

// call judges a simple command and returns what it prints.
func (s *shell) call(c *syntax.CallExpr, stdin string) string {
	var assigns []string
	for _, as := range c.Assigns {
		assigns = append(assigns, s.assign(as))
	}
	if len(c.Args) == 0 {
		return ""
	}
	var out []string
	for _, v := range s.versions(c.Args) {
		if s.done() {
			break
		}
		before := s.cwds
		words := s.fields(c.Args, v)
		printed := s.judge(words, assigns, stdin)
		if v != (version{}) { // a "cd" in one version needn't be the one that happens
			s.cwds = union(s.cwds, before)
		}
		if printed != "" {
			out = append(out, printed)
		}
	}
	return strings.Join(out, "\n")
}

// judge judges the words of a simple command.
func (s *shell) judge(words, assigns []string, stdin string) string {
	if len(words) == 0 || s.done() {
		return ""
	}
	if *s.steps++; *s.steps > maxSteps {
		for _, w := range words {
			s.code(w)
		}
		return anyText
	}
	c := &command{name: path.Base(words[0]), args: words[1:], assigns: assigns, stdin: stdin}
	if dir := path.Dir(words[0]); strings.Contains(words[0], "/") {
		c.foreign = !systemFolder(dir)
	}
	printed, defined := s.defined[c.name]
	c.foreign = c.foreign || defined || isPattern(c.name) && c.name != "["
	if strings.ContainsAny(words[0], " \t\n;") { // a command that is one word
		return s.script(strings.Join(words, " "), stdin)
	}
	switch c.name { // what these take is no name of a file, or they read globs themselves
	case "git", "find", "fd", "fdfind", "awk", "gawk", "mawk", "nawk", "sed", "gsed", "pkill", "pgrep", "killall", "echo", "printf", "grep":
		for i := range c.args {
			c.args[i] = plainText(c.args[i])
		}
	}
	if inner, env, is := s.wrapped(c); is {
		return s.judge(inner, append(assigns, env...), stdin)
	}
	s.guard(c)
	if c.foreign {
		s.changes(c.args)
		if defined {
			return printed
		}
		return anyText
	}
	return s.program(c)
}

func systemFolder(dir string) bool {
	switch dir {
	case "/bin", "/usr/bin", "/sbin", "/usr/sbin", "/usr/local/bin", "/opt/homebrew/bin":
		return true
	}
	return false
}

// wrapper says how a program is read that starts another one: which of its options
// take a value of their own, and how many operands stand before the program.
type wrapper struct {
	values   string
	operands int
}

// wrappers are programs that start another one.
func wrappers(name string) (wrapper, bool) {
	switch name {
	case "nohup", "command", "builtin", "setsid", "exec", "then", "busybox", "toybox", "!", "catchsegv", "fakeroot":
		return wrapper{values: " -a "}, true
	case "time":
		return wrapper{values: " -f -o "}, true
	case "sudo", "doas":
		return wrapper{values: " -u -g -p -C -h -R -D -T -U -r -t "}, true
	case "env":
		return wrapper{values: " -u -C --unset --chdir "}, true
	case "nice":
		return wrapper{values: " -n "}, true
	case "ionice":
		return wrapper{values: " -c -n "}, true
	case "timeout":
		return wrapper{values: " -s -k ", operands: 1}, true
	case "chrt", "taskset", "flock", "chroot":
		return wrapper{values: " -w -E -u ", operands: 1}, true
	case "stdbuf":
		return wrapper{values: " -i -o -e "}, true
	case "strace", "ltrace", "unshare", "watch", "caffeinate", "setpriv", "prlimit", "firejail", "rtk":
		return wrapper{values: " -e -p -n -o -t -w "}, true
	}
	return wrapper{}, false
}

// wrapped returns the words that a program starts, with the variables that it sets.
func (s *shell) wrapped(c *command) (words, env []string, is bool) {
	w, is := wrappers(c.name)
	if !is || c.foreign {
		return nil, nil, false
	}
	operands := w.operands
	for i := 0; i < len(c.args); i++ {
		a := c.args[i]
		name, value, set := strings.Cut(a, "=")
		switch {
		case c.name == "command" && (a == "-v" || a == "-V"):
			return nil, nil, false
		case c.name == "env" && (a == "-S" || strings.HasPrefix(a, "--split-string") || strings.HasPrefix(a, "-S")):
			s.script(strings.Join(append([]string{strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(a, "--split-string"), "-S"), "=")}, c.args[i+1:]...), " "), c.stdin)
			return nil, nil, false
		case c.name == "flock" && a == "-c" && i+1 < len(c.args):
			s.script(c.args[i+1], c.stdin)
			return nil, nil, false
		case c.name == "sudo" && (a == "-e" || a == "--edit"):
			return nil, nil, false // it edits its operands
		case (c.name == "env" || c.name == "sudo") && (a == "-C" || a == "-D" || a == "--chdir") && i+1 < len(c.args):
			s.chdir(c.args[i+1])
			i++
		case strings.HasPrefix(a, "--chdir="):
			s.chdir(value)
		case strings.HasPrefix(a, "-"):
			if strings.Contains(w.values, " "+a+" ") {
				if i++; a == "-o" && i < len(c.args) {
					s.changes(c.args[i : i+1])
				}
			}
		case set && isName(name) && (c.name == "env" || c.name == "sudo" || c.name == "doas"):
			env = append(env, a)
			s.setVariable(name, value)
		case operands > 0:
			operands--
		default:
			return c.args[i:], env, true
		}
	}
	return nil, nil, false
}

func isName(s string) bool {
	for i, c := range []byte(s) {
		if c != '_' && (c|0x20 < 'a' || c|0x20 > 'z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// chdir changes the working directory.
func (s *shell) chdir(dir string) {
	s.visited = union(s.visited, s.cwds)
	var out []string
	from := s.cwds
	if v := s.vars["CDPATH"]; v != nil {
		for _, value := range v.values {
			from = union(from, strings.Split(value.Str, ":"))
		}
	}
	for _, d := range from {
		to := s.join(d, dir)
		if !isPattern(to) {
			if real := s.look.real(to); real != to {
				out = union(out, []string{real})
			}
		}
		out = union(out, []string{to})
	}
	s.cwds = out
}

// touches returns what a word of a command has to do with a place, in any of the
// forms in which a program may take a file from it.
func (s *shell) touches(word string) match {
	var best match
	if word == "" || len(word) > maxPath || strings.Contains(word, "\n") {
		return best
	}
	for _, form := range wordForms(word) {
		for _, dir := range s.cwds {
			if best.raise(s.at(dir, form)); best.relation == direct {
				return best
			}
		}
	}
	return best
}

// wordForms returns what may be the name of a file in a word.
func wordForms(w string) []string {
	out := []string{w}
	if w[0] == '-' {
		out = out[:0]
		if i := strings.IndexAny(w, "/~"); i > 0 {
			out = append(out, w[i:])
		}
		if len(w) > 2 && w[1] != '-' {
			out = append(out, w[2:])
		}
	}
	if !strings.ContainsAny(w, "=:,@%") {
		return out
	}
	lower := strings.ToLower(w)
	if i := strings.Index(lower, "file:"); i >= 0 {
		return append(out, plainFile(w[i:]))
	}
	if strings.Contains(w, "://") {
		return nil
	}
	if strings.Contains(w, "%") {
		out = append(out, plainFile("file:"+w))
	}
	for piece := range strings.FieldsFuncSeq(w, func(r rune) bool { return strings.ContainsRune("=:,@", r) }) {
		if piece != w {
			out = append(out, piece)
		}
	}
	return out
}

// changes judges words of a program that may write what they name.
func (s *shell) changes(words []string) {
	for _, w := range words {
		if s.done() {
			return
		}
		if m := s.touches(w); m.relation != apart {
			s.deny(m.place)
			return
		}
		if strings.ContainsAny(w, " \n\t\"'();") { // a text of its own
			s.deny(s.judgement.set.mention(plainText(w), false))
		}
	}
}

// named judges words that are names of files and nothing else.
func (s *shell) named(words ...string) {
	for _, w := range words {
		if m := s.touches(w); m.relation == direct {
			s.deny(m.place)
		}
	}
}

// trees judges the folders in words whose whole tree is changed.
func (s *shell) trees(words []string, keep func(string) bool) {
	for _, w := range words {
		if w == "" || strings.HasPrefix(w, "-") || s.done() {
			continue
		}
		for _, dir := range s.cwds {
			full := s.join(dir, w)
			if isPattern(full) {
				// A glob's own names are compared; what lies beneath them isn't known.
				full = path.Dir(full)
				if path.Base(w) != "*" && path.Base(w) != ".*" || isPattern(full) {
					continue
				}
				dots := strings.HasPrefix(path.Base(w), ".") || s.dotglob
				s.deny(s.beneath(full, func(p string) bool {
					return keep(p) && (dots || !strings.HasPrefix(strings.TrimPrefix(p, full+"/"), "."))
				}))
				continue
			}
			s.deny(s.beneath(full, keep))
		}
	}
}

// operands returns the words that are no options.
func operands(args []string) []string {
	var out []string
	for i, a := range args {
		if a == "--" {
			return append(out, args[i+1:]...)
		}
		if !strings.HasPrefix(a, "-") || a == "-" {
			out = append(out, a)
		}
	}
	return out
}

// option returns the value of an option, in any of the forms NAME VALUE, NAMEVALUE
// (of one letter) and NAME=VALUE, and whether it is there.
func option(args []string, names ...string) (value string, has bool) {
	for i, a := range args {
		for _, n := range names {
			switch {
			case a == n:
				if i+1 < len(args) {
					value = args[i+1]
				}
				return value, true
			case strings.HasPrefix(a, n+"="):
				return a[len(n)+1:], true
			case len(n) == 2 && strings.HasPrefix(a, n) && !strings.HasPrefix(a, "--"):
				return a[2:], true
			}
		}
	}
	return "", false
}

// flag reports whether one of the letters stands among the short options, or one of
// the words among the long ones.
func flag(args []string, letters string, words ...string) bool {
	for _, a := range args {
		if a == "--" {
			return false
		}
		if strings.HasPrefix(a, "--") {
			for _, w := range words {
				if name, _, _ := strings.Cut(a[2:], "="); len(name) > 1 && strings.HasPrefix(w, name) {
					return true
				}
			}
		} else if len(a) > 1 && a[0] == '-' && strings.ContainsAny(a[1:], letters) {
			return true
		}
	}
	return false
}
