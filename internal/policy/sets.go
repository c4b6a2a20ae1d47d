package policy

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// This file is about variables that a command line sets. Some of them give other
// names another meaning for what follows, so every construct that can set one
// tells it to sets.

// setKind is how a variable is set.
type setKind uint8

const (
	// setByPart is an assignment that a part carries, where allow rules see it.
	setByPart setKind = iota
	// setInShell is a construct that sets a variable of the shell alone: a loop,
	// "read", an arithmetic expression.
	setInShell
	// setForAll is a construct that may also reach the programs that are started:
	// "export", "unset".
	setForAll
)

// variables are what a command line sets and evaluates.
type variables struct {
	// set are the names that are set other than by a part that says so.
	set map[string]setKind
	// turns is a name that changes which programs are found or loaded, or "".
	turns string
	// texts are names that may come to hold other text than a number, evals those
	// whose text an arithmetic expression evaluates.
	texts, evals map[string]bool
	// allexport reports that whatever is set reaches the programs.
	allexport bool
}

// turningVariables give names another meaning in a way that no rule can follow.
// It is never changed.
var turningVariables = names{"BASH_CMDS", "BASH_ALIASES", "EXECIGNORE", "BASHOPTS", "SHELLOPTS", "BASH_ENV", "ENV", "PS4", "BASH_FUNC",
	"GIT_CONFIG_PARAMETERS", "GIT_CONFIG_COUNT"}

// zshVariables are the same in zsh, whose own tables are variables. It is never
// changed.
var zshVariables = names{"aliases", "galiases", "saliases", "commands", "functions", "builtins", "options", "path", "fpath", "cdpath",
	"nameddirs", "dis_aliases", "dis_functions", "ZDOTDIR", "NULLCMD", "READNULLCMD", "precmd_functions", "preexec_functions"}

// commandVariables name commands that some program runs later. It is never
// changed.
var commandVariables = names{"PAGER", "EDITOR", "VISUAL", "BROWSER", "GIT_EXTERNAL_DIFF", "GIT_SSH_COMMAND", "GIT_SSH",
	"GIT_PROXY_COMMAND", "RSYNC_RSH", "CVS_RSH", "SVN_SSH", "RUSTC_WORKSPACE_WRAPPER", "CARGO_BUILD_RUSTC_WRAPPER", "PROMPT_COMMAND", "LESSOPEN", "LESSCLOSE", "FZF_DEFAULT_COMMAND", "MANPAGER", "RUSTC_WRAPPER"}

// runsValue reports whether a program will run the value of a variable.
func runsValue(name string) bool {
	return commandVariables.has(name) || strings.HasSuffix(name, "_EDITOR") || strings.HasSuffix(name, "_PAGER") || strings.HasSuffix(name, "_ASKPASS")
}

// turns reports whether a variable decides which program a name means, or what is
// loaded into every program.
func turns(name string) bool {
	switch name {
	case "PATH", "FPATH", "GIT_EXEC_PATH", "GCONV_PATH", "POSIXLY_CORRECT":
		return true
	}
	return strings.HasPrefix(name, "LD_") || strings.HasPrefix(name, "DYLD_") || strings.HasPrefix(name, "BASH_")
}

// sets judges that a variable gets a value.
func (a *analyzer) sets(name string, value word, how setKind) {
	if !isName(name) {
		a.fault("the name of a variable that it sets is not known before it runs")
		return
	}
	v := &a.out.variables
	if how != setByPart {
		if v.set == nil {
			v.set = make(map[string]setKind)
		}
		v.set[name] = max(v.set[name], how)
	}
	if !isNumeral(value.text) {
		if v.texts == nil {
			v.texts = make(map[string]bool)
		}
		v.texts[name] = true
	}
	switch {
	case runsValue(name):
		outer := a.via
		a.via = name
		a.textWithMore(&part{words: []word{{text: name}}}, value)
		a.via = outer
	case turningVariables.has(name) || strings.HasPrefix(name, "BASH_FUNC_") || strings.HasPrefix(name, "GIT_CONFIG_KEY_") || a.zsh && zshVariables.has(name):
		a.fault("%s changes what later names mean or what later programs run", name)
	case turns(name):
		v.turns = name
	case name == "TAR_OPTIONS" || name == "MAKEFLAGS" || name == "GNUMAKEFLAGS" || name == "LESS" || name == "SHELL":
		a.settingsVariable(name, value)
	case name == "HOME":
		a.homeKnown = false
	case name == "CDPATH":
		a.cdUnknown = true
	}
	if i := strings.Index(value.text, "BASH_"); i >= 0 && (strings.HasPrefix(value.text[i:], "BASH_CMDS[") || strings.HasPrefix(value.text[i:], "BASH_ALIASES[")) {
		a.fault("the text %q may come to be evaluated, and then changes what later names mean", show(value.text))
	}
}

// isNumeral reports whether text is a number, or empty.
func isNumeral(s string) bool { return strings.Trim(s, "0123456789-\x01") == "" }

// setsNamed judges a word of a builtin that names a variable to set, with or
// without a subscript.
func (a *analyzer) setsNamed(w word, value word, how setKind) {
	name, subscript, _ := strings.Cut(w.text, "[")
	a.sets(name, value, how)
	if subscript != "" {
		a.arithmetic(strings.TrimSuffix(subscript, "]"))
	}
}

// unknownValue is the value of a variable that nobody knows before it is set.
func unknownValue() word { return word{text: string(rune(anyText)), unknown: true} }

// evals notes that an arithmetic expression evaluates the text that a name holds.
// The empty name stands for text out of other places.
func (a *analyzer) evals(name string) {
	v := &a.out.variables
	if v.evals == nil {
		v.evals = make(map[string]bool)
	}
	v.evals[name] = true
}

// arithmetic judges text that the shell evaluates as an arithmetic expression:
// what it may set, and whose text it evaluates in turn.
func (a *analyzer) arithmetic(text string) {
	if strings.ContainsAny(text, "\x00\x02") {
		a.evals("")
	}
	assigns := strings.Contains(text, "=") || strings.Contains(text, "++") || strings.Contains(text, "--")
	for i := 0; i < len(text); {
		end := i
		for end < len(text) && isWordByte(text[end]) {
			end++
		}
		if name := text[i:end]; isName(name) {
			a.evals(name)
			if assigns {
				a.sets(name, word{}, setInShell)
			}
		}
		i = max(end, i+1)
	}
}

// arithmeticTree does the same for a parsed expression. What it assigns is found
// by setsWithin.
func (a *analyzer) arithmeticTree(n syntax.Node) {
	syntax.Walk(n, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CmdSubst, *syntax.ProcSubst:
			a.evals("")
			return false
		case *syntax.ParamExp:
			switch {
			case isNumber(n):
			case n.Param != nil && isName(n.Param.Value) && !n.Excl:
				a.evals(n.Param.Value)
			default:
				a.evals("") // a parameter of a function, or reached by another name
			}
		case *syntax.SglQuoted:
			a.arithmetic(ansiC(n.Value))
		case *syntax.DblQuoted:
			for _, p := range n.Parts {
				if lit, ok := p.(*syntax.Lit); ok {
					a.arithmetic(lit.Value)
				}
			}
		case *syntax.Lit:
			if isName(n.Value) {
				a.evals(n.Value)
			} else if strings.Contains(n.Value, "=") {
				a.arithmetic(n.Value)
			}
		}
		return true
	})
}

// setsWithin judges what a node of an expansion or an expression sets itself.
func (a *analyzer) setsWithin(n syntax.Node) {
	switch n := n.(type) {
	case *syntax.ParamExp:
		if n.Exp == nil || n.Exp.Op != syntax.AssignUnset && n.Exp.Op != syntax.AssignUnsetOrNull {
			return
		}
		if n.Excl || n.Param == nil {
			a.sets("", word{}, setInShell)
			return
		}
		if isName(n.Param.Value) { // the shell refuses to assign to a parameter
			value := unknownValue()
			if n.Exp.Word != nil {
				value = a.single(n.Exp.Word.Parts)
			}
			a.sets(n.Param.Value, value, setInShell)
		}
	case *syntax.BinaryArithm:
		switch n.Op {
		case syntax.Assgn, syntax.AddAssgn, syntax.SubAssgn, syntax.MulAssgn, syntax.QuoAssgn, syntax.RemAssgn, syntax.AndAssgn, syntax.OrAssgn, syntax.XorAssgn, syntax.ShlAssgn, syntax.ShrAssgn:
			a.setsArithmetic(n.X)
		}
	case *syntax.UnaryArithm:
		if n.Op == syntax.Inc || n.Op == syntax.Dec {
			a.setsArithmetic(n.X)
		}
	case *syntax.BinaryTest:
		switch n.Op {
		case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
			for _, x := range []syntax.TestExpr{n.X, n.Y} {
				if w, ok := x.(*syntax.Word); ok {
					a.arithmeticTree(w)
					a.arithmetic(rawText(w))
				}
			}
		}
	case *syntax.UnaryTest:
		if w, ok := n.X.(*syntax.Word); ok && n.Op == syntax.TsVarSet {
			if _, subscript, ok := strings.Cut(rawText(w), "["); ok {
				a.arithmetic(subscript)
			}
		}
	case *syntax.ExtGlob:
		if strings.Contains(n.Pattern.Value, "$(") || strings.Contains(n.Pattern.Value, "${") || strings.ContainsAny(n.Pattern.Value, "`") {
			a.fault("the pattern %q holds an expansion that isn't judged", show(n.Pattern.Value))
		}
	}
}

// rawText returns the literal text of a word, with a space for each expansion.
func rawText(w *syntax.Word) string {
	var b strings.Builder
	var add func(parts []syntax.WordPart)
	add = func(parts []syntax.WordPart) {
		for _, p := range parts {
			switch p := p.(type) {
			case *syntax.Lit:
				b.WriteString(unescape(p.Value))
			case *syntax.SglQuoted:
				b.WriteString(ansiC(p.Value))
			case *syntax.DblQuoted:
				add(p.Parts)
			default:
				b.WriteByte(' ')
			}
		}
	}
	add(w.Parts)
	return b.String()
}

// setsArithmetic judges the left side of an assignment in an expression.
func (a *analyzer) setsArithmetic(x syntax.ArithmExpr) {
	w, ok := x.(*syntax.Word)
	if !ok {
		a.sets("", word{}, setInShell)
		return
	}
	if len(w.Parts) == 1 {
		// "a[i]" is parsed as an expansion without a dollar.
		if p, ok := w.Parts[0].(*syntax.ParamExp); ok && !p.Dollar.IsValid() && p.Param != nil {
			a.sets(p.Param.Value, word{}, setInShell)
			return
		}
	}
	a.setsNamed(a.single(w.Parts), word{}, setInShell)
}

// declares judges the words of export, declare and their like that aren't parsed
// as assignments.
func (a *analyzer) declares(builtin string, args []word) {
	for _, w := range args {
		if len(w.text) > 1 && (w.text[0] == '-' || w.text[0] == '+') {
			switch {
			case strings.ContainsAny(w.text, unknownBytes):
				a.sets("", word{}, setForAll)
			case strings.ContainsAny(w.text, "pfF") && w.text[0] == '-' && w.text != "--":
				return // it prints, or is about functions
			case builtin != "export" && builtin != "readonly" && strings.Contains(w.text, "n") && w.text[0] == '-':
				a.fault("a reference to a name (-n) gives names another meaning")
			}
			continue
		}
		name, value, assigns := strings.Cut(w.text, "=")
		name = strings.TrimSuffix(name, "+")
		v := word{text: value, unknown: strings.ContainsAny(value, unknownBytes)}
		if assigns && strings.HasPrefix(value, "(") {
			v = unknownValue()
			a.evaluated(w)
		}
		a.setsNamed(word{text: name}, v, setForAll)
	}
}

// shellNames are variables of the shell that no program sees. It is never
// changed.
var shellNames = names{"REPLY", "MAPFILE", "OPTARG", "OPTIND", "COPROC"}

// foreign says why no allow rule may cover a command line because of what it
// sets beside its parts, or returns "".
func (c *shellCall) foreign(e *evaluation) string {
	v := &c.variables
	for name, how := range v.set {
		if e.harmless(name) || how == setInShell && !v.allexport && (shellNames.has(name) || isLower(name)) && e.in.Env.getenv(name) == "" {
			continue
		}
		return "the command line sets " + name + ", which isn't known to be harmless (permissions.env_harmless)"
	}
	if v.evals[""] {
		return "it evaluates text that isn't known as an arithmetic expression, which can set any variable"
	}
	for name := range v.evals {
		if v.texts[name] {
			return "it evaluates what " + name + " holds as an arithmetic expression, which can set any variable"
		}
	}
	return ""
}

// isLower reports whether a name is written as the variables of scripts are.
func isLower(name string) bool { return strings.ToLower(name) == name }
