package policy

import (
	"slices"
	"strings"
)

// This file is about programs whose own little languages can start a command. It
// sees the commands that stand there literally; what such a language computes is
// beyond it, as the package comment says.

// script judges the literal scripts in the arguments of some programs, and those
// that they read. stdin is what p is given to read, if that is literal.
func (a *analyzer) script(p *part, name string, stdin *word) {
	args := p.words[1:]
	if stdin == nil && a.input != nil {
		w := unknownValue() // what is left of it when p runs isn't known
		stdin = &w
	}
	switch name {
	case "sed", "gsed":
		o := scanAll(args, "efl", "expression", "file", "line-length")
		a.scripts(p, o, "e expression", "f file", stdin, a.sed)
	case "awk", "gawk", "mawk", "nawk", "goawk":
		o := scanOptions(args, "Fvfeli", []string{"field-separator", "assign", "file", "source", "load", "include"})
		a.scripts(p, o, "e source", "f file", stdin, a.awk)
	case "vi", "vim", "nvim", "view", "gvim", "vimdiff", "ex", "rvim":
		a.vim(p, name, stdin)
	case "ed", "red":
		a.lines(p, stdin, a.exCommand)
	case "less", "more", "pg":
		for _, w := range args {
			if strings.HasPrefix(w.text, "+") {
				a.exCommand(p, word{text: strings.TrimLeft(w.text, "+"), unknown: w.unknown})
			}
		}
	case "make", "gmake", "bmake":
		a.makeArguments(args)
	case "at", "batch":
		if scanAll(args, "qft").has("lcdrf") != hitYes && stdin != nil {
			a.text(p, *stdin)
		}
	case "crontab":
		if o := scanAll(args, "u"); o.has("lr") != hitYes && (len(o.rest) == 0 || o.rest[0].text == "-") {
			a.lines(p, stdin, a.cronLine)
		}
	case "gdb", "lldb":
		for _, v := range scanAll(args, "o", "ex", "eval-command", "iex", "one-line").values {
			a.debugCommand(p, v.word)
		}
		for i, w := range args {
			if (w.text == "-ex" || w.text == "-iex") && i+1 < len(args) {
				a.debugCommand(p, args[i+1])
			}
		}
	case "psql", "mysql", "mariadb", "sqlite3":
		for _, w := range args {
			for _, mark := range []string{`\!`, ".shell", ".system"} {
				if _, command, ok := strings.Cut(w.text, mark); ok && (mark[0] == '\\' || name == "sqlite3") {
					a.text(p, word{text: strings.TrimSpace(command), unknown: strings.ContainsAny(command, unknownBytes)})
				}
			}
		}
	}
}

// scripts judges the scripts of sed and awk: those of options, or else the first
// operand.
func (a *analyzer) scripts(p *part, o options, inline, file string, stdin *word, judge func(*part, word)) {
	found := false
	for _, v := range o.values {
		switch {
		case v.in(inline):
			found = true
			judge(p, v.word)
		case v.in(file):
			found = true
			if deviceInput(v.word.text) {
				a.fault("%q reads its script from an input that isn't judged", show(joinWords(p.words)))
			}
		}
	}
	if !found && len(o.rest) > 0 {
		judge(p, o.rest[0])
	}
}

// lines judges every line of a literal input; an unknown one can't be.
func (a *analyzer) lines(p *part, stdin *word, judge func(*part, word)) {
	if stdin == nil {
		return
	}
	if stdin.unknown {
		a.fault("%q reads commands from an input that isn't known before it runs", show(joinWords(p.words)))
		return
	}
	for line := range strings.SplitSeq(stdin.text, "\n") {
		judge(p, word{text: line})
	}
}

// literal follows a command in a script of p, as far as it is known.
func (a *analyzer) literal(p *part, command string) {
	if command = strings.TrimSpace(command); command != "" {
		a.text(p, word{text: command, unknown: strings.ContainsAny(command, unknownBytes)})
	}
}

// sed judges a script of sed: its command "e", the flag "e" of "s", and the files
// that it writes.
func (a *analyzer) sed(p *part, w word) {
	s := w.text
	for s != "" {
		if s = sedAddress(s); s == "" {
			return
		}
		c := s[0]
		s = s[1:]
		line, rest, _ := strings.Cut(s, "\n")
		switch c {
		case 'e':
			if strings.TrimSpace(line) == "" {
				a.fault("the command \"e\" of sed runs what it reads")
			}
			a.literal(p, line)
			s = rest
		case 'w', 'W':
			a.sedWrites(line)
			s = rest
		case 'a', 'i', 'c', 'r', 'R':
			for strings.HasSuffix(line, `\`) && rest != "" {
				line, rest, _ = strings.Cut(rest, "\n")
			}
			s = rest
		case ':', 'b', 't', 'T':
			if i := strings.IndexAny(s, ";\n}"); i >= 0 {
				s = s[i:]
			} else {
				s = ""
			}
		case 's', 'y':
			s = a.sedSubstitute(c, s)
		}
	}
}

// sedWrites notes a file that a script of sed writes.
func (a *analyzer) sedWrites(name string) {
	if name = strings.TrimSpace(name); name != "" {
		a.addRedir(redir{target: word{text: name, unknown: strings.ContainsAny(name, unknownBytes)}, writes: true, cwd: a.cwd})
	}
}

// sedSubstitute reads the rest of "s" or "y" after its letter and returns what
// follows it.
func (a *analyzer) sedSubstitute(c byte, s string) string {
	if s == "" {
		return ""
	}
	delim := s[0]
	s = sedUntil(sedUntil(s[1:], delim), delim)
	for c == 's' && s != "" {
		switch f := s[0]; {
		case f == 'e':
			a.fault("the flag \"e\" of sed runs what it has put together")
		case f == 'w':
			line, rest, _ := strings.Cut(s[1:], "\n")
			a.sedWrites(line)
			return rest
		case !isWordByte(f):
			return s
		}
		s = s[1:]
	}
	return s
}

// sedUntil returns what follows the next delim that no backslash quotes.
func sedUntil(s string, delim byte) string {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case delim:
			return s[i+1:]
		}
	}
	return ""
}

// sedAddress drops addresses, blanks and what else stands before a command.
func sedAddress(s string) string {
	for s != "" {
		switch c := s[0]; {
		case strings.IndexByte(" \t\n;,!~+${}", c) >= 0 || c >= '0' && c <= '9' || c <= anyName:
			s = s[1:]
		case c == '/':
			s = sedUntil(s[1:], '/')
			for s != "" && (s[0] == 'I' || s[0] == 'M') {
				s = s[1:]
			}
		case c == '\\' && len(s) > 1:
			s = sedUntil(s[2:], s[1])
		case c == '#':
			_, s, _ = strings.Cut(s, "\n")
		default:
			return s
		}
	}
	return ""
}

// awk judges a program of awk: system() and pipes, whose command is judged where
// it is one string.
func (a *analyzer) awk(p *part, w word) {
	s := w.text
	for i := strings.IndexByte(s, '@'); i >= 0; {
		rest := s[i+1:]
		name := rest[:len(rest)-len(strings.TrimLeft(rest, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"))]
		if name == "load" || name != "" && strings.HasPrefix(rest[len(name):], "(") {
			a.fault("awk calls what %q names", "@"+name)
			break
		}
		next := strings.IndexByte(rest, '@')
		if next < 0 {
			break
		}
		i += 1 + next
	}
	for rest := s; ; {
		i := strings.Index(rest, "system")
		if i < 0 {
			break
		}
		before, after := rest[:i], strings.TrimLeft(rest[i+6:], " \t")
		rest = rest[i+6:]
		if strings.HasPrefix(after, "(") && !endsInNameByte(before) {
			a.awkString(p, strings.TrimLeft(after[1:], " \t"), ")")
		}
	}
	if strings.Contains(s, "|") {
		a.awkPipes(p, s)
	}
}

// awkPipes judges the pipes of a program: "…" | getline, print | "…".
func (a *analyzer) awkPipes(p *part, s string) {
	prints := false
	for i := 0; i < len(s); i++ {
		switch {
		case strings.IndexByte(";{}\n", s[i]) >= 0:
			prints = false
			continue
		case strings.HasPrefix(s[i:], "print"):
			prints = true
			continue
		case s[i] != '|':
			continue
		case strings.HasPrefix(s[i:], "||"):
			i++
			continue
		}
		after := strings.TrimLeft(s[i+1:], "& \t")
		switch {
		case strings.HasPrefix(after, "getline"):
			before := strings.TrimRight(s[:i], " \t")
			k := strings.LastIndexByte(strings.TrimSuffix(before, `"`), '"')
			if !strings.HasSuffix(before, `"`) || k < 0 {
				a.fault("a pipe of awk runs a command that isn't literal")
				return
			}
			a.awkString(p, before[k:], "")
		case prints:
			a.awkString(p, after, ";}\n")
		}
	}
}

// awkString follows the command in the string that s begins with; it must end in
// one of the bytes of end, or with s.
func (a *analyzer) awkString(p *part, s, end string) {
	if strings.HasPrefix(s, `"`) {
		if k := strings.IndexByte(s[1:], '"'); k >= 0 && !strings.Contains(s[1:1+k], `\`) {
			after := strings.TrimLeft(s[2+k:], " \t")
			if after == "" || strings.IndexByte(end, after[0]) >= 0 {
				a.literal(p, s[1:1+k])
				return
			}
		}
	}
	a.fault("awk runs a command that isn't one literal string")
}

// makeArguments judges what make is told on its command line.
func (a *analyzer) makeArguments(args []word) {
	for _, v := range scanAll(args, "fCIoWE", "file", "makefile", "directory", "eval", "include-dir").values {
		switch {
		case v.name == "f" || v.long && v.in("file makefile"):
			if deviceInput(v.word.text) {
				a.fault("make reads its rules from an input that isn't judged")
			}
		case v.name == "E" || v.long && v.in("eval"):
			a.fault("make evaluates text of its command line")
		}
	}
	for _, w := range args {
		name, value, assigns := strings.Cut(w.text, "=")
		switch {
		case assigns && strings.HasPrefix(strings.TrimRight(name, ":+?"), "MAKEFLAGS"), strings.HasSuffix(name, "!"),
			name == "SHELL" && !slices.Contains(shells, base(value)),
			strings.Contains(value, "$(") || strings.Contains(value, "${") || strings.Contains(value, "`"):
			a.fault("make runs what the variable %q is set to", show(w.text))
		}
	}
}

// cronLine judges the command of one line of a table of cron.
func (a *analyzer) cronLine(p *part, w word) {
	line := strings.TrimSpace(w.text)
	fields := 5
	if strings.HasPrefix(line, "@") {
		fields = 1
	}
	if line == "" || line[0] == '#' {
		return
	}
	for range fields {
		i := strings.IndexAny(line, " \t")
		if i < 0 {
			return
		}
		line = strings.TrimLeft(line[i:], " \t")
	}
	a.literal(p, line)
}

// debugCommand judges a command of a debugger.
func (a *analyzer) debugCommand(p *part, w word) {
	text := strings.TrimSpace(w.text)
	if command, ok := strings.CutPrefix(text, "!"); ok {
		a.literal(p, command)
		return
	}
	verb, rest, _ := strings.Cut(text, " ")
	switch {
	case verb == "shell" || verb == "platform":
		a.literal(p, strings.TrimPrefix(rest, "shell "))
	case w.unknown, slices.Contains([]string{"python", "py", "pi", "pipe", "|", "source", "guile", "make", "script"}, verb):
		a.fault("the debugger command %q can run a program", show(text))
	}
}
