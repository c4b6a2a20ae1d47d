package policy

import (
	"slices"
	"strings"
)

// builtinSets judges what a builtin sets.
func (a *analyzer) builtinSets(name string, args []word) {
	all := func(words []word, how setKind) {
		for _, w := range words {
			a.setsNamed(w, unknownValue(), how)
		}
	}
	valuesOf := func(o options, letter string) {
		for _, v := range o.values {
			if v.name == letter {
				all([]word{v.word}, setInShell)
			}
		}
	}
	switch name {
	case "export", "declare", "typeset", "local", "readonly":
		a.declares(name, args)
	case "read":
		o := scanOptions(args, "adinNptu", nil)
		valuesOf(o, "a")
		all(o.rest, setInShell)
	case "mapfile", "readarray":
		o := scanOptions(args, "dnOsuCc", nil)
		all(o.rest[:min(1, len(o.rest))], setInShell)
	case "printf":
		o := scanOptions(args, "v", nil)
		valuesOf(o, "v")
	case "wait", "compgen":
		letter := map[string]string{"wait": "p", "compgen": "V"}[name]
		valuesOf(scanOptions(args, letter+map[string]string{"compgen": "oAGWFCXPS"}[name], nil), letter)
	case "getopts":
		if len(args) > 1 {
			all(args[1:2], setInShell)
		}
	case "unset":
		o := scanOptions(args, "", nil)
		if o.has("f") != hitYes {
			for _, w := range o.rest {
				a.setsNamed(w, word{}, setForAll)
			}
		}
	case "let":
		for _, w := range args {
			a.arithmetic(w.text)
		}
	case "test", "[":
		for i, w := range args {
			if i > 0 && args[i-1].text == "-v" {
				_, subscript, _ := strings.Cut(w.text, "[")
				a.arithmetic(subscript)
			}
		}
	case "set":
		a.shellFlags(args)
	case "shopt":
		a.shoptFlags(args)
	}
}

// shoptFlags judges "shopt -o", which sets what "set -o" sets.
func (a *analyzer) shoptFlags(args []word) {
	if !slices.ContainsFunc(args, func(w word) bool { return strings.HasPrefix(w.text, "-") && strings.Contains(w.text, "o") }) {
		return
	}
	for _, w := range args {
		a.shellFlags([]word{{text: "-o"}, w})
	}
}

// shellFlags judges the options of "set" and of a shell's own command line.
func (a *analyzer) shellFlags(args []word) {
	for i, w := range args {
		named := i > 0 && strings.HasPrefix(args[i-1].text, "-") && strings.Contains(args[i-1].text, "o")
		flags := len(w.text) > 1 && w.text[0] == '-' && w.text[1] != '-'
		switch {
		case named && w.text == "histexpand" || flags && strings.Contains(w.text, "H"):
			a.fault("history expansion can put any command in the place of \"!\"")
		case named && w.text == "keyword" || flags && strings.Contains(w.text, "k"):
			a.fault("the shell option \"keyword\" makes assignments of arguments")
		case named && w.text == "allexport" || flags && strings.Contains(w.text, "a"):
			a.out.variables.allexport = true
		}
		if !flags && !named {
			return // parameters
		}
	}
}
