package policy

import (
	"slices"
	"strings"
)

// git judges settings on git's command line that name commands, and follows the
// subcommands that run what they are given.
func (a *analyzer) git(p *part) {
	args := p.words[1:]
	for _, w := range args {
		if _, command, ok := strings.Cut(w.text, "ext::"); ok {
			a.run(p, gitTransport(command), nil, nil)
			a.fault("%q is a transport that runs a command", show(w.text))
		}
	}
	for i := 0; i < len(args); i++ {
		switch t := args[i].text; {
		case t == "-c" && i+1 < len(args):
			i++
			a.gitAssignment(p, args[i])
		case strings.HasPrefix(t, "-c") && len(t) > 2:
			a.gitAssignment(p, word{text: t[2:], unknown: args[i].unknown})
		case strings.HasPrefix(t, "--config-env"):
			a.fault("--config-env can name a command that git runs")
		case strings.HasPrefix(t, "--exec-path="):
			a.fault("--exec-path gives git's own commands another meaning")
		case t == "-C" || t == "--git-dir" || t == "--work-tree" || t == "--namespace" || t == "--super-prefix" || t == "--attr-source":
			i++
		case !strings.HasPrefix(t, "-"):
			a.gitSubcommand(p, t, args[i+1:])
			return
		}
	}
}

// gitTransport returns the words of a command after "ext::", which git splits at
// spaces; "% " is a space within a word, and "%" before a letter is filled in.
func gitTransport(s string) []word {
	var out []word
	var b strings.Builder
	for i := 0; i <= len(s); i++ {
		switch {
		case i == len(s) || s[i] == ' ':
			if b.Len() > 0 {
				out = append(out, word{text: b.String(), unknown: strings.ContainsAny(b.String(), unknownBytes)})
			}
			b.Reset()
		case s[i] == '%' && i+1 < len(s):
			if i++; s[i] == ' ' || s[i] == '%' {
				b.WriteByte(s[i])
			} else {
				b.WriteByte(anyText)
			}
		default:
			b.WriteByte(s[i])
		}
	}
	return out
}

// gitAssignment judges "key=value", as after -c.
func (a *analyzer) gitAssignment(p *part, w word) {
	key, value, ok := strings.Cut(w.text, "=")
	if strings.ContainsAny(key, unknownBytes) {
		a.fault("a git setting is not known before it runs")
	} else if ok {
		a.gitSetting(p, key, word{text: value, unknown: strings.ContainsAny(value, unknownBytes)})
	}
}

// gitCommandKeys are what the last component of a setting's key is when its value
// is a command. It is never changed.
var gitCommandKeys = names{"pager", "editor", "sshcommand", "askpass", "gitproxy", "fsmonitor", "external", "textconv", "command", "driver", "clean",
	"smudge", "process", "helper", "program", "defaultkeycommand", "cmd", "uploadpack", "receivepack", "packobjectshook", "tocmd", "cccmd", "headercmd",
	"sendmailcmd", "smtpserver", "browser", "httpd", "difffilter", "tunnel", "alternaterefscommand", "update", "path", "proxycommand"}

// gitSetting judges a setting whose value git may run.
func (a *analyzer) gitSetting(p *part, key string, value word) {
	key = strings.ToLower(key)
	section, _, _ := strings.Cut(key, ".")
	last := key[strings.LastIndexByte(key, '.')+1:]
	command, bang := strings.CutPrefix(value.text, "!")
	switch {
	case section == "alias" && bang || section == "submodule" && bang:
		a.textWithMore(p, word{text: command, unknown: value.unknown})
	case section == "alias":
		a.textWithMore(p, word{text: "git " + value.text, unknown: value.unknown})
	case last == "hookspath" && value.text != "/dev/null" && value.text != "",
		strings.HasPrefix(section, "include"), strings.HasSuffix(last, "insteadof"), section == "protocol", last == "templatedir", last == "vcs", last == "attributesfile":
		a.fault("the git setting %q can name a command that git runs", show(key))
	case section == "submodule" || section == "safe" || last == "smtpserver" && !strings.Contains(value.text, "/"):
	case gitCommandKeys.has(last) || section == "pager":
		if last == "helper" && !bang && !value.unknown && !strings.Contains(value.text, "/") {
			return // the name of one of git's own
		}
		if !slices.Contains([]string{"", "true", "false", "yes", "no", "on", "off", "0", "1"}, strings.ToLower(value.text)) {
			a.textWithMore(p, word{text: command, unknown: value.unknown})
		}
	}
}

// gitOptions are the options of git's subcommands whose value is a command. It is
// never changed.
var gitOptions = table[runOption]{
	{"clone", runOption{short: "u", long: "upload-pack", takes: "bcojl"}}, {"fetch", runOption{long: "upload-pack", takes: "joS"}}, {"pull", runOption{long: "upload-pack", takes: "joSsX"}},
	{"fetch-pack", runOption{long: "upload-pack exec"}}, {"ls-remote", runOption{long: "upload-pack exec", takes: "o"}}, {"archive", runOption{long: "exec", takes: "o"}},
	{"push", runOption{long: "receive-pack exec", takes: "o"}}, {"send-pack", runOption{long: "receive-pack exec"}}, {"remote", runOption{long: "upload-pack"}},
	{"rebase", runOption{short: "x", long: "exec", takes: "sXCS"}}, {"difftool", runOption{short: "x", long: "extcmd", takes: "t"}},
	{"filter-branch", runOption{long: "env-filter tree-filter index-filter parent-filter msg-filter commit-filter tag-name-filter setup", takes: "d"}},
	{"send-email", runOption{long: "to-cmd cc-cmd header-cmd sendmail-cmd"}}, {"instaweb", runOption{short: "db", long: "httpd browser", takes: "mp"}}, {"web--browse", runOption{short: "b", long: "browser", takes: "tc"}},
	{"daemon", runOption{long: "access-hook"}}, {"shell", runOption{short: "c"}}, {"svn", runOption{long: "authors-prog", takes: "rA"}},
}

// gitSubcommand follows the subcommands that run what they are given.
func (a *analyzer) gitSubcommand(p *part, sub string, args []word) {
	outer := a.via
	a.via = "git " + sub
	defer func() { a.via = outer }()
	if o, ok := gitOptions.row(sub); ok {
		for _, v := range scanAll(args, o.short+o.takes, strings.Fields(o.long)...).values {
			if v.long && v.in(o.long) || !v.long && strings.Contains(o.short, v.name) {
				a.textWithMore(p, v.word)
			}
		}
	}
	switch sub {
	case "grep":
		a.gitGrep(p, args)
	case "clone":
		for _, v := range scanAll(args, "ubcojl", "config").values {
			if v.name == "c" || v.long && v.in("config") {
				a.gitAssignment(p, v.word)
			}
		}
	case "config":
		o := scanAll(args, "f", "file", "blob", "type", "default", "value", "comment", "url")
		words := o.rest
		if len(words) > 0 && (words[0].text == "set" || words[0].text == "get") {
			words = words[1:]
		}
		if len(words) > 1 {
			if words[0].unknown {
				a.fault("a git setting is not known before it runs")
			} else {
				a.gitSetting(p, words[0].text, words[1])
			}
		}
	case "bisect":
		if len(args) > 1 && args[0].text == "run" {
			a.run(p, args[1:], nil, nil)
		}
	case "for-each-repo":
		o := scanOptions(args, "", []string{"config"})
		a.run(p, append([]word{{text: "git"}}, o.rest...), nil, nil)
	case "submodule":
		for i, w := range args {
			if w.text == "foreach" && i+1 < len(args) {
				rest := args[i+1:]
				for len(rest) > 1 && strings.HasPrefix(rest[0].text, "-") {
					rest = rest[1:]
				}
				unknown := slices.ContainsFunc(rest, func(w word) bool { return w.unknown })
				a.text(p, word{text: joinWords(rest), unknown: unknown})
				return
			}
		}
	}
}

// gitGrep follows the pager of git grep, whose name is attached to its option.
func (a *analyzer) gitGrep(p *part, args []word) {
	for _, w := range args {
		name, value, long := strings.Cut(strings.TrimPrefix(w.text, "--"), "=")
		switch {
		case w.text == "--":
			return
		case strings.HasPrefix(w.text, "--"):
			if long && strings.HasPrefix(name, "op") && strings.HasPrefix("open-files-in-pager", name) {
				a.textWithMore(p, word{text: value, unknown: w.unknown})
			}
		case strings.HasPrefix(w.text, "-"):
			i := strings.IndexByte(w.text, 'O')
			if i > 0 && !strings.ContainsAny(w.text[:i], "efmABC") {
				a.textWithMore(p, word{text: w.text[i+1:], unknown: w.unknown})
			}
		}
	}
}

// gitGlobals are git's options before the subcommand that take a value.
var gitGlobals = []string{"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--super-prefix", "--config-env", "--attr-source"}
