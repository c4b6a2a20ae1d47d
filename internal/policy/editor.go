package policy

import "strings"

// vim judges the commands on the command line of an editor of that kind, and
// those that it reads without a screen.
func (a *analyzer) vim(p *part, name string, stdin *word) {
	args := p.words[1:]
	silent := name == "ex"
	for i := 0; i < len(args); i++ {
		t := args[i].text
		switch {
		case t == "--":
			return
		case (t == "-c" || t == "--cmd") && i+1 < len(args):
			i++
			a.exCommand(p, args[i])
		case strings.HasPrefix(t, "+") && len(t) > 1:
			a.exCommand(p, word{text: t[1:], unknown: args[i].unknown})
		case strings.HasPrefix(t, "-c") && len(t) > 2:
			a.exCommand(p, word{text: t[2:], unknown: args[i].unknown})
		case t == "-es" || t == "-Es" || t == "-e" || t == "-s" && i+1 == len(args):
			silent = true
		}
	}
	if silent {
		a.lines(p, stdin, a.exCommand)
	}
}

// exVerbs are commands of editors that start nothing. It is never changed.
var exVerbs = names{"", "q", "quit", "qa", "qall", "wq", "wqa", "wqall", "w", "wa", "wall", "write", "x", "xa", "exit", "set", "se", "setlocal", "syntax", "syn", "s", "d", "delete",
	"m", "move", "t", "co", "copy", "j", "join", "p", "print", "n", "next", "prev", "nu", "number", "retab", "sort", "e", "edit", "enew", "noh", "nohlsearch", "u", "undo", "r", "read",
	"a", "i", "c", "k", "l", "f", "h", "help", "y", "g", "v", "G", "V", "P", "Q", "H", "E", "W", "filetype", "colorscheme", "split", "sp", "vsplit", "vs", "tabe", "tabnew", "F", "z"}

// exCommand judges commands for an editor: what follows "!" is run by a shell.
func (a *analyzer) exCommand(p *part, w word) {
	if w.unknown && strings.Trim(w.text, unknownBytes) == "" {
		a.fault("the editor command in %q is not known before it runs", show(joinWords(p.words)))
		return
	}
	for s := strings.ReplaceAll(w.text, "\n", "|"); s != ""; {
		s = strings.TrimLeft(s, ": \t0123456789$.,%;'<>|")
		if s == "" {
			return
		}
		if s[0] == '/' || s[0] == '?' {
			s = sedUntil(s[1:], s[0]) // where to
			continue
		}
		verb := s[:len(s)-len(strings.TrimLeft(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"))]
		if after := strings.TrimPrefix(s[len(verb):], "!"); (verb == "g" || verb == "v") && after != "" {
			s = sedUntil(after[1:], after[0])
			continue
		}
		segment, rest, _ := strings.Cut(s, "|")
		if bang := shellBang(segment, verb); bang >= 0 {
			a.literal(p, s[bang+1:])
			return
		}
		if why := exFault(s, segment, verb); why != "" {
			a.fault("%s in %q can run a program", why, show(segment))
			return
		}
		s = rest
	}
}

// shellBang returns where a "!" stands in an editor command after which a shell
// reads, or -1; after most verbs it only insists.
func shellBang(segment, verb string) int {
	bang := strings.IndexByte(segment, '!')
	insists := bang == len(verb) && verb != "" && verb != "r" && !strings.HasPrefix(segment[bang:], "! ")
	if insists || strings.HasPrefix(verb, "norm") {
		return -1
	}
	return bang
}

// exFault says what in an editor command may run a program, or returns "".
func exFault(s, segment, verb string) string {
	substitutes := (verb == "s" || verb == "su" || verb == "sub" || verb == "substitute") && len(verb) < len(segment) && strings.IndexByte("/#,:@", segment[len(verb)]) >= 0
	switch {
	case strings.HasPrefix(verb, "norm"):
		if strings.ContainsAny(strings.TrimPrefix(s[len(verb):], "!"), ":!@\x12") {
			return "the keys"
		}
	case strings.Contains(segment, `\=`):
		return "the expression"
	case substitutes:
	case !exVerbs.has(verb) || verb == "" && strings.IndexByte("@*", s[0]) >= 0:
		return "the editor command"
	case strings.HasPrefix(verb, "se") && (strings.Contains(segment, "sh") || strings.Contains(segment, "p=") || strings.Contains(segment, "prg") || strings.Contains(segment, "expr")):
		return "the setting"
	case strings.Contains(segment, " +"):
		return "the command after \"+\""
	}
	return ""
}
