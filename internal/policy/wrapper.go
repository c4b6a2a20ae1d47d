package policy

import (
	"slices"
	"strings"
)

// simple notes a simple command with at least one word and follows what it runs.
func (a *analyzer) simple(p *part, stdin *word) {
	if p.words[0].text == "--" && len(p.words) > 1 {
		p.words = p.words[1:] // what ends the options of a wrapper before it
	}
	a.add(p)
	if a.full() {
		return
	}
	program := p.words[0]
	if program.unknown || program.text == "" || !printable(program.text) || program.text[0] == '=' {
		a.fault("the program in %q is not known before it runs", show(joinWords(p.words)))
		return
	}
	name := base(program.text)
	if programFold {
		name = strings.ToLower(name)
	}
	p.inert = inert.has(name)
	outer := a.via
	defer func() { a.via = outer }()
	switch {
	case slices.Contains(shells, name):
		a.via = name
		a.shell(p, name, stdin)
	case slices.Contains(foreignShells, name):
		if len(p.words) > 1 {
			a.fault("%s has a grammar that isn't judged", name)
		}
	case name == "find" || name == "gfind" || name == "fd" || name == "fdfind" || name == "bfs":
		a.via = name
		a.find(p)
	default:
		if w, ok := wrappers.row(name); ok {
			a.via = name
			a.wrapped(p, w, stdin)
			return
		}
		if name == "git" {
			a.git(p)
		} else if a.runsArguments(p, name, stdin); a.runner(p, stdin) {
			return
		}
		a.builtin(p, name)
	}
}

// printable reports whether s holds no character that isn't seen.
func printable(s string) bool {
	for _, r := range s {
		if r > 0x7e && invisible(r) || r < ' ' || r == 0x7f {
			return false
		}
	}
	return true
}

// run follows the command in words, found inside the wrapper p.
func (a *analyzer) run(p *part, words []word, assigns []assign, stdin *word) {
	if len(words) == 0 {
		return
	}
	p.wrapper = true
	if a.wrappers++; a.wrappers > maxWrappers {
		a.fault("its wrappers are nested too deeply")
	} else {
		if n := len(p.words) - len(words); n > 0 && &p.words[n] == &words[0] && a.cwd == p.cwd {
			p.own = n
		}
		a.simple(&part{words: words, assigns: assigns}, stdin)
	}
	a.wrappers--
}

// text follows a command string found inside the wrapper p.
func (a *analyzer) text(p *part, w word) {
	p.wrapper = true
	if w.unknown {
		a.fault("the command string in %q is not known before it runs", show(joinWords(p.words)))
		return
	}
	outer := a.cwd
	a.source(w.text, "")
	a.cwd = a.cwd.join(outer)
}

// wrapped follows what a wrapper of the table runs.
func (a *analyzer) wrapped(p *part, w wrapper, stdin *word) {
	o := scan(p.words[1:], w.short, w.long, w.permutes)
	if o.unknown {
		a.fault("what %q runs is not known before it runs", show(joinWords(p.words)))
		return
	}
	outer := a.cwd
	defer func() { a.cwd = outer }()
	for _, v := range o.values {
		switch {
		case v.in(w.chdir):
			a.chdir(v.word)
		case v.in(w.command) && strings.Contains(w.command, "split"):
			a.splitString(p, v.word, o.rest, stdin)
			return
		case v.in(w.command):
			a.text(p, v.word)
		}
	}
	rest := o.rest
	var assigns []assign
	for w.assigns && len(rest) > 0 {
		name, value, ok := strings.Cut(rest[0].text, "=")
		if rest[0].unknown && !ok {
			break
		}
		if !ok || name == "" {
			break
		}
		as := assign{name: name, value: word{text: value, unknown: rest[0].unknown}}
		assigns = append(assigns, as)
		a.sets(name, as.value, setByPart)
		rest = rest[1:]
	}
	rest = rest[min(w.operands, len(rest)):]
	if w.permutes || slices.ContainsFunc(o.flags, func(f optionValue) bool { return f.in(w.after) }) {
		return
	}
	a.wrappedRest(p, w, o, rest, assigns, stdin)
}

func (a *analyzer) wrappedRest(p *part, w wrapper, o options, rest []word, assigns []assign, stdin *word) {
	// Some take "-c STRING" or further options after their operands.
	if w.command != "" && len(rest) > 0 {
		more := scanOptions(rest, w.short, w.long)
		if more.unknown {
			a.fault("what %q runs is not known before it runs", show(joinWords(p.words)))
			return
		}
		for _, v := range more.values {
			if v.in(w.command) {
				a.text(p, v.word)
				return
			}
		}
		rest = more.rest
	}
	if w.appends {
		a.xargs(p, o, rest)
		return
	}
	if w.shell && len(rest) > 0 {
		a.text(p, word{text: joinWords(rest), unknown: slices.ContainsFunc(rest, func(w word) bool { return w.unknown })})
		return
	}
	a.run(p, rest, assigns, stdin)
}

// xargs follows xargs and parallel: the command with what they put in unknown.
func (a *analyzer) xargs(p *part, o options, rest []word) {
	parallel := base(p.words[0].text) == "parallel"
	if i := slices.IndexFunc(rest, func(w word) bool { return strings.HasPrefix(w.text, ":::") }); parallel && i >= 0 {
		rest = rest[:i]
	}
	if len(rest) == 0 {
		if parallel {
			a.fault("parallel reads its commands from an input that isn't known before it runs")
		}
		return // xargs alone only prints
	}
	if parallel && strings.ContainsAny(joinWords(rest), "\\;&|<>()$`\"' \n") {
		// It joins its words for a shell.
		unknown := slices.ContainsFunc(rest, func(w word) bool { return w.unknown })
		a.text(p, word{text: joinWords(rest), unknown: unknown})
	}
	marks := []string{"{}"}
	for _, v := range o.values {
		if v.name == "I" && v.word.text != "" {
			marks = append(marks, v.word.text)
		}
	}
	same := true
	out := make([]word, 0, len(rest)+1)
	for _, w := range rest {
		for _, m := range marks {
			if strings.Contains(w.text, m) {
				w = word{text: strings.ReplaceAll(w.text, m, "\x00"), unknown: true}
				same = false
			}
		}
		out = append(out, w)
	}
	if same && !parallel {
		p.own = len(p.words) - len(rest)
	}
	a.run(p, append(out, word{text: "\x00", unknown: true}), nil, nil)
}

// splitString follows `env -S STRING words…`.
func (a *analyzer) splitString(p *part, s word, rest []word, stdin *word) {
	if s.unknown || strings.ContainsAny(s.text, "\\$'\"#") {
		a.fault("the string of %q is split by rules that aren't judged", show(joinWords(p.words)))
		return
	}
	words := []word{{text: "env"}}
	for _, f := range strings.Fields(s.text) {
		words = append(words, word{text: f})
	}
	a.run(p, append(words, rest...), nil, stdin)
}

// shell follows what a shell runs: a command string, a file (a part of its own,
// nothing more), or its standard input.
func (a *analyzer) shell(p *part, name string, stdin *word) {
	o := scanShellOptions(p.words[1:])
	a.shellFlags(p.words[1:])
	outer := a.zsh
	a.zsh = a.zsh || name == "zsh"
	defer func() { a.zsh = outer }()
	switch {
	case o.unknown:
		a.fault("what %q runs is not known before it runs", show(joinWords(p.words)))
	case o.command && len(o.rest) == 0:
		a.fault("the command string of %s is missing", name)
	case o.command:
		a.text(p, o.rest[0])
	case o.informs:
	case len(o.rest) > 0 && !o.stdin && !deviceInput(o.rest[0].text):
	case stdin != nil:
		a.text(p, *stdin)
	default:
		a.fault("%s reads its commands from an input that isn't known before it runs", name)
	}
}

// deviceInput reports whether a file name leads to an open descriptor, and so to
// text that nobody sees.
func deviceInput(s string) bool {
	return s == "-" || s == "/dev/stdin" || strings.HasPrefix(s, "/dev/fd/") || strings.HasPrefix(s, "/proc/")
}

// find follows -exec and its like, of find and of fd.
func (a *analyzer) find(p *part) {
	words := p.words[1:]
	fd := strings.HasPrefix(base(p.words[0].text), "fd")
	for i := 0; i < len(words); i++ {
		var first []word
		switch t := words[i].text; {
		case slices.Contains([]string{"-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"}, t):
		case fd && (strings.HasPrefix(t, "--exec=") || strings.HasPrefix(t, "--exec-batch=")):
			_, value, _ := strings.Cut(t, "=")
			first = []word{{text: value, unknown: words[i].unknown}}
		case fd && fdCluster(t) > 0:
			if rest := t[fdCluster(t):]; rest != "" {
				first = []word{{text: rest, unknown: words[i].unknown}}
			}
		case !fd && slices.Contains([]string{"-fprint", "-fprint0", "-fprintf", "-fls"}, t) && i+1 < len(words):
			i++
			a.addRedir(redir{target: words[i], writes: true, cwd: a.cwd})
			continue
		default:
			continue
		}
		end := i + 1
		for end < len(words) && words[end].text != ";" && !(words[end].text == "+" && words[end-1].text == "{}") {
			end++
		}
		a.findExec(p, words[i].text, append(first, words[i+1:end]...), fd)
		i = end
	}
}

// fdCluster returns where the command begins in a word of single letters that ends
// in -x or -X of fd, or zero.
func fdCluster(t string) int {
	i := strings.IndexAny(t, "xX")
	if i < 1 || t[0] != '-' || strings.Trim(t[1:i], "HIuUsigaLlp0q1F") != "" {
		return 0
	}
	return i + 1
}

// findExec follows one command of find, with the files that it finds unknown. fd
// appends them where no place is named.
func (a *analyzer) findExec(p *part, option string, inner []word, fd bool) {
	named := false
	for k, w := range inner {
		for _, mark := range []string{"{}", "{/}", "{//}", "{.}", "{/.}"} {
			if strings.Contains(w.text, mark) && (fd || mark == "{}") {
				w = word{text: strings.ReplaceAll(w.text, mark, string(rune(anyText))), unknown: true}
				named = true
			}
		}
		inner[k] = w
	}
	if fd && !named {
		inner = append(inner, unknownValue())
	}
	outer := a.cwd
	if strings.HasSuffix(option, "dir") {
		a.cwd = &cwds{dirs: outer.dirs, unknown: true}
	}
	a.run(p, inner, nil, nil)
	a.cwd = outer
}

// runner follows a program that the settings name as a runner: `ssh HOST …`,
// `docker exec … NAME …`. The command is what follows the first word that isn't
// an option, or "--". It reports whether p is a runner.
func (a *analyzer) runner(p *part, stdin *word) bool {
	for _, r := range a.env.Runners {
		names := strings.Fields(r)
		if len(names) == 0 || len(p.words) < len(names) || base(p.words[0].text) != names[0] {
			continue
		}
		fits := true
		for i, n := range names[1:] {
			fits = fits && p.words[i+1].text == n
		}
		if !fits {
			continue
		}
		a.via = r
		rest := p.words[len(names):]
		for len(rest) > 0 && strings.HasPrefix(rest[0].text, "-") && rest[0].text != "--" {
			known := knownRunnerOption(names[0], rest[0].text)
			rest = rest[1:]
			if known && len(rest) > 0 {
				rest = rest[1:]
			}
		}
		if len(rest) > 0 && rest[0].text != "--" {
			rest = rest[1:]
		}
		if len(rest) > 0 && rest[0].text == "--" {
			rest = rest[1:]
		}
		if len(rest) == 0 {
			return true
		}
		unknown := slices.ContainsFunc(rest, func(w word) bool { return w.unknown })
		if names[0] == "ssh" {
			a.text(p, word{text: joinWords(rest), unknown: unknown})
		} else {
			a.run(p, rest, nil, stdin)
		}
		return true
	}
	return false
}

// knownRunnerOption reports whether an option of a runner takes the next word as
// its value.
func knownRunnerOption(runner, option string) bool {
	if strings.HasPrefix(option, "--") {
		return !strings.Contains(option, "=") && slices.Contains([]string{
			"--user", "--env", "--env-file", "--workdir", "--name", "--volume", "--mount", "--network", "--publish",
			"--container", "--namespace", "--context", "--entrypoint", "--platform", "--detach-keys", "--index", "--file", "--project-name",
		}, option)
	}
	letters := "uewvpcnhm"
	if runner == "ssh" {
		letters = "BbcDEeFIiJLlmOoPpQRSWw"
	}
	return len(option) == 2 && strings.Contains(letters, option[1:])
}
