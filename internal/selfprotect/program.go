package selfprotect

import (
	"os"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
)

// readers are programs that only read the files that they are given, with the
// options after which they write one.
func readers(name string) (writes string, is bool) {
	switch name {
	case "cat", "head", "tail", "more", "grep", "egrep", "fgrep", "zgrep", "rg", "ag", "ack", "wc", "file", "stat", "du", "df", "cmp", "comm",
		"md5sum", "sha1sum", "sha256sum", "sha512sum", "shasum", "cksum", "sum", "b2sum", "test", "[", "readlink", "realpath", "basename", "dirname", "jq", "cut", "tr", "paste",
		"column", "nl", "od", "hexdump", "strings", "fold", "fmt", "tac", "rev", "expand", "join", "look", "pr", "zcat", "bat", "batcat", "colordiff",
		"getfacl", "lsattr", "ls", "ll", "eza", "exa", "lsof", "which", "type", "whereis", "man", "pwd", "true", "false", ":", "date", "sleep",
		"wait", "pgrep", "pidof", "ps", "id", "whoami", "uname", "hostname", "seq", "dirs", "hash", "jobs", "history", "help", "return", "break", "continue", "exit",
		"shift", "getopts", "unset", "ulimit", "umask", "times", "shopt", "xxd", "uniq", "glow", "delta", "wdiff", "nproc", "cloc", "tokei", "scc", "unalias", "trap", "yes", "expr", "bc", "ip", "logname", "tty", "locale", "getconf", "getent":
		return "", true
	case "diff", "sort", "base64", "xmllint", "tree":
		return "-o --output", true
	case "less":
		return "-o -O --log-file --LOG-FILE", true
	}
	return "", false
}

// program judges a command by what its program does with its words, and returns
// what it prints.
func (s *shell) program(c *command) string {
	if writes, is := readers(c.name); is {
		return s.processes(c, s.reads(c, writes))
	}
	if s.builtin(c) {
		return ""
	}
	switch c.name {
	case "echo", "printf":
		return s.prints(c)
	case "eval":
		return s.script(strings.Join(c.args, " "), c.stdin)
	case "sh", "bash", "zsh", "dash", "ksh", "ash", "fish", "su", "rbash":
		return s.shellProgram(c)
	case "source", ".":
		s.executes = true
		return s.script(known(c.stdin), "")
	case "xargs", "parallel":
		return s.xargs(c)
	case "find", "fd", "fdfind":
		return s.find(c)
	case "sed", "gsed":
		return s.processes(c, s.sed(c))
	case "awk", "gawk", "mawk", "nawk":
		return s.processes(c, s.awk(c))
	case "fuser":
		if flag(c.args, "k", "kill") {
			s.changes(c.args)
		}
		return s.processes(c, anyText)
	case "at", "batch", "crontab":
		s.changes(c.args)
		s.script(known(c.stdin), anyText)
		return anyText
	case "git":
		return s.git(c)
	case "tee", "sponge":
		s.changes(c.args)
		s.texts = append(s.texts, c.stdin)
		return c.stdin
	case "mkdir":
		s.named(c.args...)
		return ""
	case "gh", "glab", "hub", "jira", "slack", "notify-send", "logger", "wall", "say", "osc":
		for _, name := range []string{"-O", "--output", "-o", "-D", "--dir"} {
			if v, has := option(c.args, name); has {
				s.changes([]string{v})
			}
		}
		return anyText
	}
	return s.writer(c)
}

// builtin follows a builtin that changes the state of the shell; false if it is none.
func (s *shell) builtin(c *command) bool {
	switch c.name {
	case "cd", "pushd", "chdir":
		s.cd(c)
	case "popd":
		s.cwds = union(append([]string{anyText}, s.cwds...), s.visited)
	case "set":
		s.sets(c)
	case "read", "mapfile", "readarray":
		s.readsVariable(c)
	case "export", "declare", "local", "typeset", "readonly":
		for _, a := range c.args {
			if name, value, is := strings.Cut(a, "="); is {
				s.set(name, text(value))
				s.setVariable(name, value)
			}
		}
	case "alias":
		for _, a := range c.args {
			name, value, _ := strings.Cut(a, "=")
			s.defined[name] = s.script(value, anyText)
		}
	default:
		return false
	}
	return true
}

// writer judges a program that may write.
func (s *shell) writer(c *command) string {
	switch c.name {
	case "rm", "rmdir", "unlink", "shred", "srm", "trash", "trash-put", "chmod", "chown", "chgrp", "setfacl", "chattr", "rimraf":
		s.changes(c.args)
		if c.name == "chown" || c.name == "chgrp" || c.name == "chmod" && opens(c.args) {
			return anyText
		}
		if flag(c.args, "rR", "recursive") || c.name == "rimraf" || strings.HasPrefix(c.name, "trash") {
			s.trees(operands(c.args), anything)
		}
	case "cp", "mv", "install", "rsync", "scp", "ln", "gcp", "gmv", "ditto":
		s.copies(c)
	case "dd":
		for _, a := range c.args {
			if out, is := strings.CutPrefix(a, "of="); is {
				s.named(out)
			}
		}
	case "zip":
		if flag(c.args, "m", "move") {
			s.changes(c.args)
		}
		s.named(operands(c.args)[:min(1, len(operands(c.args)))]...)
	case "tar", "bsdtar", "gtar", "unzip", "7z", "7za", "cpio", "ditto-x", "pax":
		s.unpacks(c)
	case "curl", "wget", "aria2c":
		s.downloads(c)
	case "patch":
		s.patches(c, c.args)
	case "yq":
		if flag(c.args, "i", "inplace", "in-place") {
			s.changes(c.args)
		}
	case "kill", "pkill", "killall", "systemctl", "launchctl":
		// what they do with files is nothing; see guard
	default:
		s.interpreter(c)
	}
	return anyText
}

// opens reports whether chmod only gives rights.
func opens(args []string) bool {
	rest := operands(args)
	return len(rest) > 0 && strings.Contains(rest[0], "+") && !strings.ContainsAny(rest[0], "-=") && !flag(args, "x")
}

// reads judges a program that reads.
func (s *shell) reads(c *command, writes string) string {
	for name := range strings.FieldsSeq(writes) {
		if v, has := option(c.args, name); has {
			s.named(v)
		}
	}
	rest := operands(c.args)
	if (c.name == "uniq" || c.name == "xxd") && len(rest) > 1 {
		s.named(rest[len(rest)-1])
	}
	if c.name == "trap" && len(c.args) > 1 {
		s.script(c.args[0], "")
	}
	switch c.name {
	case "cat", "head", "tail", "tac", "nl", "sort", "grep":
		if len(rest) == 0 || c.name == "grep" && len(rest) == 1 || rest[0] == "-" {
			return c.stdin
		}
	case "basename":
		if len(rest) > 0 {
			return path.Base(rest[0])
		}
	case "realpath", "readlink", "ls":
		return s.lists(c.name, c.args, rest)
	case "dirname":
		if len(rest) > 0 {
			return path.Dir(rest[0])
		}
	case "which", "type", "command", "whereis":
		if slices.Contains(rest, "ahp") {
			return strings.Join(s.judgement.set.binaries, "\n")
		}
	case "pwd":
		return strings.Join(s.cwds, "\n")
	case "pgrep", "pidof":
		if s.hitsService(c) {
			return servicePID
		}
	}
	return anyText
}

// lists returns what a program prints that names files.
func (s *shell) lists(name string, args, rest []string) string {
	var out []string
	for _, r := range rest {
		full := s.join(s.cwds[0], r)
		switch {
		case name == "ls" || isPattern(full):
			out = append(out, r)
		case name == "readlink" && !flag(args, "fem", "canonicalize"):
			target, _ := s.look.link(full)
			out = append(out, target)
		default:
			out = append(out, s.look.real(full))
		}
	}
	if name == "ls" && !flag(args, "d", "directory") {
		out = append(out, anyText) // the names within
		if info, err := os.Stat(s.join(s.cwds[0], strings.Join(rest, " "))); err == nil && !info.IsDir() {
			out = out[:len(out)-1]
		}
	}
	return strings.Join(out, "\n")
}

// prints returns what echo and printf print.
func (s *shell) prints(c *command) string {
	args := c.args
	if c.name == "echo" {
		for len(args) > 0 && len(args[0]) > 1 && strings.Trim(args[0], "-neE") == "" {
			args = args[1:]
		}
		out := strings.Join(args, " ")
		if strings.Contains(out, `\`) {
			if plain, _, err := expand.Format(nil, strings.ReplaceAll(out, "%", "%%"), nil); err == nil {
				return plain + "\n" + out
			}
		}
		return out
	}
	into := ""
	if len(args) > 1 && args[0] == "-v" {
		into, args = args[1], args[2:]
	}
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	out := ""
	switch {
	case len(args) == 0:
	case wide(args[0]):
		out = strings.Join(args, " ")
	default:
		for rest := args[1:]; ; {
			t, n, err := expand.Format(nil, args[0], rest)
			if err != nil {
				t, n = strings.Join(args, " "), 0
			}
			if out += t; n == 0 || n >= len(rest) || len(out) > maxValue {
				break
			}
			rest = rest[n:]
		}
	}
	if into != "" {
		s.set(into, text(out))
		return ""
	}
	return out
}

// wide reports whether a format may ask for very much padding.
func wide(format string) bool {
	digits := 0
	for i := range len(format) {
		if format[i] >= '0' && format[i] <= '9' {
			digits++
		} else {
			digits = 0
		}
		if digits > 3 || format[i] == '*' {
			return true
		}
	}
	return false
}

// cd judges a change of directory.
func (s *shell) cd(c *command) {
	for _, d := range s.cwds {
		s.set("OLDPWD", text(d))
	}
	rest := operands(c.args)
	switch {
	case len(rest) == 0 && c.name == "pushd":
		s.cwds = union(s.cwds, []string{anyText})
	case len(rest) == 0:
		s.cwds = []string{s.homeText()}
	case rest[0] == "-":
		s.cwds = union(append([]string{anyText}, s.cwds...), s.visited)
	default:
		s.chdir(rest[0])
	}
}

func (s *shell) sets(c *command) {
	for i, a := range c.args {
		if a == "--" || !strings.HasPrefix(a, "-") && !strings.HasPrefix(a, "+") {
			if a == "--" {
				i++
			}
			s.positional(c.args[i:])
			return
		}
	}
}

// readsVariable sets the variables that read is given.
func (s *shell) readsVariable(c *command) {
	for _, name := range operands(c.args) {
		s.set(name, text(anyText))
		for field := range strings.FieldsSeq(known(c.stdin)) {
			s.set(name, text(field))
		}
		if line := strings.TrimSpace(known(c.stdin)); strings.ContainsAny(line, " \n") {
			for l := range strings.Lines(line) {
				s.set(name, text(strings.TrimSpace(l)))
			}
		}
		if c.name != "read" {
			s.set(name, expand.Variable{Set: true, Kind: expand.Indexed, List: strings.Split(known(c.stdin), "\n")})
		}
	}
}

// known returns a text that a program is given to read, without what stands for a
// file.
func known(stdin string) string {
	if strings.HasPrefix(stdin, fileMark) {
		return anyText
	}
	return stdin
}
