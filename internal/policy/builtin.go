package policy

import (
	"path"
	"slices"
	"strings"
	"unicode"
)

// invisible reports whether a character leaves nothing, or nothing certain, to
// see.
func invisible(r rune) bool {
	return unicode.In(r, unicode.Cf, unicode.Cc, unicode.Zl, unicode.Zp, unicode.Co, unicode.Variation_Selector) ||
		unicode.IsSpace(r) || r == 0x034f || r == 0x115f || r == 0x1160 || r == 0x3164 || r == 0xffa0 || r == unicode.ReplacementChar
}

// inert are programs that never run their arguments. It is never changed.
var inert = names{"echo", "printf", "cat", "head", "tail", "wc", "ls", "stat", "file", "grep", "egrep", "fgrep", "rg", "ag", "ack",
	"git", "man", "info", "which", "whereis", "type", "test", "[", "true", "false", ":", "cd", "pwd", "mkdir", "touch", "cp", "mv",
	"rm", "rmdir", "ln", "diff", "cmp", "sort", "uniq", "cut", "tr", "tee", "basename", "dirname", "realpath", "readlink", "kill",
	"jq", "yq", "sleep", "date", "whoami", "id", "export", "unset", "set", "shift", "read", "return", "exit", "chmod", "chown", "chgrp",
	"gzip", "zip", "unzip", "curl", "wget", "apt", "apt-get", "brew", "dnf", "pip", "pip3", "gh", "apropos", "whatis", "alias", "hash", "trap", "eval"}

// names are few enough that a list of them is searched as fast as a map, and it is laid
// out when the program is linked: every start of it would have to make a map.
type names []string

func (n names) has(name string) bool { return slices.Contains(n, name) }

// table is a list of rows by name, for the same reason.
type table[T any] []tableRow[T]

type tableRow[T any] struct {
	name string
	row  T
}

// row returns the row of a name.
func (t table[T]) row(name string) (row T, is bool) {
	for i := range t {
		if t[i].name == name {
			return t[i].row, true
		}
	}
	return row, false
}

// shellBuiltins are found by the shell itself, not in PATH. Those that run what
// they are given are wrappers or faults and so judged elsewhere. It is never
// changed.
var shellBuiltins = names{":", "[", "alias", "bg", "bind", "break", "builtin", "caller", "cd", "command", "compgen", "complete", "compopt",
	"continue", "declare", "dirs", "disown", "echo", "enable", "eval", "exec", "exit", "export", "false", "fc", "fg", "getopts", "hash",
	"help", "history", "jobs", "kill", "let", "local", "logout", "mapfile", "popd", "printf", "pushd", "pwd", "read", "readarray",
	"readonly", "return", "set", "shift", "shopt", "source", ".", "suspend", "test", "time", "times", "trap", "true", "type", "typeset",
	"ulimit", "umask", "unalias", "unset", "wait"}

// builtin judges what is special about builtins of the shell and a few programs.
func (a *analyzer) builtin(p *part, name string) {
	args := p.words[1:]
	a.builtinSets(name, args)
	switch name {
	case "cd", "pushd":
		if name == "pushd" && len(args) == 0 {
			args = []word{{text: "-"}} // back to where nobody looked
		}
		a.cdCommand(args)
	case "popd":
		a.cwd = &cwds{dirs: a.cwd.dirs, unknown: true}
	case "eval":
		a.via = "eval"
		if len(args) > 0 && args[0].text == "--" {
			args = args[1:]
		}
		if len(args) > 0 {
			unknown := slices.ContainsFunc(args, func(w word) bool { return w.unknown })
			a.text(p, word{text: joinWords(args), unknown: unknown})
		}
	case ".", "source":
		if len(args) > 0 && (args[0].unknown || deviceInput(args[0].text)) {
			a.fault("what %q reads is not known before it runs", show(joinWords(p.words)))
		}
	case "trap":
		if len(args) > 1 && args[0].text != "-" && args[0].text != "-p" && args[0].text != "-l" {
			a.via = "trap"
			if args[0].text == "--" {
				args = args[1:]
			}
			a.text(p, args[0])
		}
	case "alias", "bind", "complete":
		if len(args) > 0 && args[0].text != "-p" {
			a.fault("%s can give another meaning to a name that is used later", name)
		}
	case "jobs", "compgen":
		a.builtinRuns(p, name, args)
	case "hash", "enable":
		if slices.ContainsFunc(args, func(w word) bool {
			return w.unknown || strings.Contains(w.text, "=") || strings.HasPrefix(w.text, "-") && w.text != "-r"
		}) {
			a.fault("%s can give another meaning to a name that is used later", name)
		}
	case "let", "test", "[", "unset", "read", "printf", "mapfile", "readarray", "getopts", "wait", "declare", "typeset", "local", "export", "readonly":
		for _, w := range args {
			if strings.Contains(w.text, "[") && !(name == "[" || name == "test" || name == "printf") || strings.Contains(w.text, "[$(") || strings.Contains(w.text, "[`") {
				a.evaluated(w)
			}
		}
		if name == "mapfile" || name == "readarray" {
			a.callback(p, args)
		}
	case "fc":
		a.fault("fc runs what the history holds")
	}
}

// builtinRuns follows what builtins run that only do so with an option.
func (a *analyzer) builtinRuns(p *part, name string, args []word) {
	switch name {
	case "jobs":
		if i := slices.IndexFunc(args, func(w word) bool { return w.text == "-x" }); i >= 0 {
			a.run(p, args[i+1:], nil, nil)
		}
	case "compgen":
		for _, v := range scanOptions(args, "oAGWFCXPSV", nil).values {
			switch v.name {
			case "C":
				a.textWithMore(p, v.word)
			case "W": // whose words are expanded
				a.evaluated(v.word)
			}
		}
	}
}

// callback follows the -C of mapfile.
func (a *analyzer) callback(p *part, args []word) {
	for _, v := range scanOptions(args, "dnOsuCc", nil).values {
		if v.name == "C" {
			a.textWithMore(p, v.word)
		}
	}
}

// cdCommand follows a change of directory within the command.
func (a *analyzer) cdCommand(args []word) {
	for len(args) > 0 && (args[0].text == "--" || args[0].text == "-P" || args[0].text == "-L" || args[0].text == "-e") {
		args = args[1:]
	}
	before := a.cwd
	switch {
	case a.cdUnknown:
		a.cwd = &cwds{dirs: before.dirs, unknown: true}
	case len(args) == 0 && a.homeKnown && a.env.Home != "":
		a.chdir(word{text: a.env.Home})
	case len(args) == 0 || strings.HasPrefix(args[0].text, "-") || strings.HasPrefix(args[0].text, "+"):
		a.cwd = &cwds{dirs: before.dirs, unknown: true}
	default:
		a.chdir(args[0])
	}
}

// chdir makes target the directory of what follows. A relative target counts
// from each directory that is possible before.
func (a *analyzer) chdir(target word) {
	if target.unknown || target.text == "" {
		a.cwd = &cwds{dirs: a.cwd.dirs, unknown: true}
		return
	}
	if path.IsAbs(target.text) {
		a.cwd = &cwds{dirs: []string{target.text}}
		return
	}
	out := &cwds{unknown: a.cwd.unknown}
	for _, d := range a.cwd.dirs {
		if len(d)+len(target.text) > maxDir {
			out.unknown = true
			continue
		}
		out.dirs = append(out.dirs, d+"/"+target.text)
	}
	a.cwd = out
}
