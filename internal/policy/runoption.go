package policy

import (
	"slices"
	"strings"
)

// This file is about options of programs whose value the program runs. A literal
// value is judged as a part; one that isn't known makes the command unjudgeable.

// runOption names the options of one program that hold a command.
type runOption struct {
	// short are option letters and long the long options whose value is a command.
	short, long string
	// takes are the other letters that take a value.
	takes string
}

// runOptions are the programs that have such options, by base name. It is never
// changed.
var runOptions = table[runOption]{
	{"tar", tarOptions}, {"gtar", tarOptions}, {"bsdtar", tarOptions},
	{"rsync", runOption{short: "e", long: "rsh rsync-path", takes: "fBMT"}},
	{"scp", runOption{short: "S", takes: "cFiJlPoXD"}},
	{"sftp", runOption{short: "SD", takes: "bBcFiJlPoRsX"}},
	{"sort", runOption{long: "compress-program", takes: "kotST"}},
	{"man", runOption{short: "PH", long: "pager html", takes: "CLmMsSeEpr"}},
	{"split", runOption{long: "filter", takes: "abClnt"}},
	{"nc", runOption{short: "ec", takes: "iImMOpPqsTVwWXx"}},
	{"ncat", runOption{short: "ec", long: "exec sh-exec", takes: "gGmdoxipswx"}},
	{"netcat", runOption{short: "ec", takes: "gGiopqrswT"}},
	{"tcpdump", runOption{short: "z", takes: "BcCDEFGijmMrsTVwWyZ"}},
	{"rg", runOption{long: "pre hostname-bin", takes: "ABCdEefgjMmrTt"}},
	{"ag", runOption{long: "pager", takes: "ABCGgmp"}},
	{"ack", runOption{long: "pager", takes: "ABCgm"}},
	{"bat", runOption{long: "pager", takes: "HlmPrS"}},
	{"batcat", runOption{long: "pager", takes: "HlmPrS"}},
	{"delta", runOption{long: "pager"}},
	{"wget", runOption{long: "use-askpass", takes: "oaeitOTwQPUARDIXl"}},
	{"zip", runOption{long: "unzip-command", takes: "btnxi"}},
	{"dpkg", runOption{long: "pre-invoke post-invoke"}},
	{"install", runOption{long: "strip-program", takes: "gmoStZ"}},
	{"gpg", runOption{long: "photo-viewer agent-program dirmngr-program", takes: "uor"}},
	{"fzf", runOption{long: "preview bind", takes: "fndmqv"}},
	{"nodemon", runOption{short: "x", long: "exec", takes: "ewid"}},
}

var tarOptions = runOption{short: "IF", long: "to-command use-compress-program checkpoint-action rsh-command rmt-command info-script new-volume-script", takes: "fCbTXKNVLHg"}

// runsArguments judges what a program runs because of its arguments or its input,
// besides what the tables of wrappers and builtins say.
func (a *analyzer) runsArguments(p *part, name string, stdin *word) {
	args := p.words[1:]
	outer := a.via
	a.via = name
	defer func() { a.via = outer }()
	if o, ok := runOptions.row(name); ok {
		a.optionCommands(p, name, o, args)
	}
	switch name {
	case "ssh", "scp", "sftp", "slogin":
		a.sshSettings(p, args)
	case "go":
		a.goOptions(p, args)
	case "apt", "apt-get", "aptitude":
		if slices.ContainsFunc(args, func(w word) bool { return strings.Contains(w.text, "Invoke") || strings.Contains(w.text, "Dpkg::") }) {
			a.fault("a setting of %s can name a command", name)
		}
	case "gh":
		a.ghSettings(p, args)
	case "socat":
		a.socat(p, args)
	default:
		a.script(p, name, stdin)
	}
}

// optionCommands judges the values of the options in o.
func (a *analyzer) optionCommands(p *part, name string, o runOption, args []word) {
	if strings.HasSuffix(name, "tar") && len(args) > 0 && args[0].text != "" && args[0].text[0] != '-' && strings.ContainsAny(args[0].text, "IF") {
		a.fault("the value of an option of %q can be a command; write the options with dashes", show(joinWords(p.words)))
	}
	for i, w := range args {
		if name == "zip" && w.text == "-TT" && i+1 < len(args) {
			a.textWithMore(p, args[i+1])
		}
	}
	for _, v := range scanAll(args, o.short+o.takes, strings.Fields(o.long)...).values {
		if v.long && !v.in(o.long) || !v.long && !strings.Contains(o.short, v.name) {
			continue
		}
		if strings.HasPrefix("checkpoint-action", v.name) && v.long && len(v.name) > 10 {
			command, ok := strings.CutPrefix(v.word.text, "exec=")
			if !ok && !v.word.unknown {
				continue
			}
			v.word.text = command
		}
		a.textWithMore(p, v.word)
	}
}

// textWithMore follows a command string that the wrapper p runs with arguments of
// its own behind it.
func (a *analyzer) textWithMore(p *part, w word) {
	if strings.TrimSpace(w.text) == "" {
		return
	}
	outer := a.appends
	a.appends = true
	a.text(p, word{text: w.text + ` "$@"`, unknown: w.unknown})
	a.appends = outer
}

// sshSettings judges the options of ssh that are settings.
func (a *analyzer) sshSettings(p *part, args []word) {
	for _, v := range scanAll(args, "BbcDEeFIiJLlmOopQRSWwP").values {
		if v.name != "o" {
			continue
		}
		if strings.ContainsAny(v.word.text, unknownBytes) && !strings.ContainsAny(v.word.text, "=") {
			a.fault("a setting of ssh is not known before it runs")
			continue
		}
		key, value, _ := strings.Cut(v.word.text, "=")
		if !strings.Contains(v.word.text, "=") {
			key, value, _ = strings.Cut(v.word.text, " ")
		}
		switch strings.ToLower(strings.TrimSpace(key)) {
		case "proxycommand", "localcommand", "knownhostscommand", "pkcs11provider", "securitykeyprovider", "xauthlocation":
			if value = strings.TrimSpace(value); value != "none" {
				a.text(p, word{text: value, unknown: v.word.unknown})
			}
		case "include", "match":
			a.fault("the setting %q of ssh can name a command", show(key))
		}
	}
}

// goOptions judges the flags of the go command that name programs.
func (a *analyzer) goOptions(p *part, args []word) {
	for i, w := range args {
		name, value, attached := strings.Cut(strings.TrimLeft(w.text, "-"), "=")
		if w.text == "" || w.text[0] != '-' || name != "exec" && name != "toolexec" && name != "vettool" {
			continue
		}
		v := word{text: value, unknown: w.unknown}
		if !attached && i+1 < len(args) {
			v = args[i+1]
		}
		a.textWithMore(p, v)
	}
}

// settingsVariable judges variables that hold options of a program.
func (a *analyzer) settingsVariable(name string, value word) {
	p := &part{words: []word{{text: name}}}
	var words []word
	for _, f := range strings.Fields(value.text) {
		words = append(words, word{text: f, unknown: strings.ContainsAny(f, unknownBytes)})
	}
	switch name {
	case "TAR_OPTIONS":
		a.optionCommands(p, "options of tar", tarOptions, words)
	case "MAKEFLAGS", "GNUMAKEFLAGS":
		a.makeArguments(words)
	case "LESS":
		if _, command, ok := strings.Cut(value.text, "+"); ok {
			a.exCommand(p, word{text: strings.TrimLeft(command, "+"), unknown: value.unknown})
		}
	case "SHELL":
		if value.text != "" && !slices.Contains(shells, base(value.text)) && !slices.Contains(foreignShells, base(value.text)) {
			a.textWithMore(p, value)
		}
	}
}

// ghSettings judges what the settings of gh make it run.
func (a *analyzer) ghSettings(p *part, args []word) {
	if len(args) < 4 || args[1].text != "set" {
		return
	}
	switch value := args[len(args)-1]; {
	case args[0].text == "alias":
		a.text(p, word{text: strings.TrimPrefix(value.text, "!"), unknown: value.unknown})
	case args[0].text == "config" && slices.Contains([]string{"pager", "editor", "browser"}, args[2].text):
		a.textWithMore(p, args[3])
	}
}

// socat follows the addresses that start programs.
func (a *analyzer) socat(p *part, args []word) {
	for _, w := range args {
		for _, address := range strings.Split(w.text, "!!") {
			kind, rest, ok := strings.Cut(address, ":")
			if !ok || !slices.Contains([]string{"exec", "system", "shell"}, strings.ToLower(kind)) {
				continue
			}
			command, _, _ := strings.Cut(rest, ",")
			a.text(p, word{text: command, unknown: strings.ContainsAny(command, unknownBytes)})
		}
	}
}

// withoutOptions returns the commands that p may mean to its program: with what
// stands before a subcommand left out, each option with and without a value.
func withoutOptions(words []word) [][]word {
	if len(words) < 3 || len(words[1].text) < 2 || words[1].text[0] != '-' {
		return nil
	}
	const most = 64
	program := base(words[0].text)
	takes, _ := globalOptions.row(program)
	var out [][]word
	size := 0
	for reach := []int{1}; len(reach) > 0 && len(out) < most && size < maxCommand; {
		i := reach[0]
		reach = reach[1:]
		if i >= len(words) {
			continue
		}
		t := words[i].text
		if len(t) < 2 || t[0] != '-' {
			out = append(out, append([]word{words[0]}, words[i:]...))
			size += 8 * (len(words) - i)
			continue
		}
		value := i+1 < len(words) && !strings.HasPrefix(words[i+1].text, "-") && !strings.Contains(t, "=") && t != "--"
		takesOne := slices.Contains(takes, t)
		next := []int{i + 1}
		switch {
		case takesOne:
			next = []int{i + 2}
		case value && program != "git": // whose options are all known
			next = []int{i + 1, i + 2}
		}
		for _, n := range next {
			if !slices.Contains(reach, n) {
				reach = append(reach, n)
			}
		}
	}
	return out
}
