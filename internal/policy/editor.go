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
var exVerbs = set("", "q", "quit", "qa", "qall", "wq", "wqa", "wqall", "w", "wa", "wall", "write", "x", "xa", "exit", "set", "se", "setlocal", "syntax", "syn", "s", "d", "delete",
	"m", "move", "t", "co", "copy", "j", "join", "p", "print", "n", "next", "prev", "nu", "number", "retab", "sort", "e", "edit", "enew", "noh", "nohlsearch", "u", "undo", "r", "read",
	"a", "i", "c", "k", "l", "f", "h", "help", "y", "g", "v", "G", "V", "P", "Q", "H", "E", "W", "filetype", "colorscheme", "split", "sp", "vsplit", "vs", "tabe", "tabnew", "F", "z")

// exCommand judges one line of commands for an editor: what follows "!" is run by
// a shell.
func (a *analyzer) exCommand(p *part, w word) {
	s := w.text
	if strings.Trim(s, unknownBytes) == "" && w.unknown {
		a.fault("the editor command in %q is not known before it runs", show(joinWords(p.words)))
		return
	}
	for s != "" {
		s = strings.TrimLeft(s, ": \t0123456789$.,%;'<>")
		segment, rest, _ := strings.Cut(s, "|")
		verb := s[:len(s)-len(strings.TrimLeft(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"))]
		bang := strings.IndexByte(segment, '!')
		switch {
		case strings.HasPrefix(s, "/") || strings.HasPrefix(s, "?"):
			return // a search
		case bang >= 0 && !(bang == len(verb) && verb != "" && verb != "r" && !strings.HasPrefix(segment[bang:], "! ")):
			a.literal(p, s[bang+1:])
			return
		case strings.Contains(segment, `\=`) || !exVerbs[verb]:
			if verb != "" && strings.HasPrefix(verb, "s") && len(verb) < len(segment) && strings.IndexByte("/#,:@", segment[len(verb)]) >= 0 && !strings.Contains(segment, `\=`) {
				return // "s", or "sg", with its delimiter
			}
			a.fault("the editor command %q can run a program", show(segment))
			return
		case strings.HasPrefix(verb, "se") && (strings.Contains(segment, "sh") || strings.Contains(segment, "p=") || strings.Contains(segment, "prg") || strings.Contains(segment, "expr")):
			a.fault("the editor setting %q can name a program", show(segment))
			return
		case (verb == "g" || verb == "v") && strings.Contains(segment, "/"):
			s = segment[strings.LastIndexByte(segment, '/')+1:]
			continue
		case verb == "s":
			return
		}
		s = rest
	}
}
