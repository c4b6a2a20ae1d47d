package selfprotect

import (
	"slices"
	"strings"
)

// interpreter judges a program that nobody knows, or one that runs texts in a
// language of its own.
func (s *shell) interpreter(c *command) {
	name := strings.TrimRight(c.name, "0123456789.")
	switch name {
	case "python", "pypy", "node", "nodejs", "deno", "bun", "perl", "ruby", "php", "lua", "luajit", "tclsh", "osascript", "pwsh", "powershell", "Rscript", "julia",
		"ed", "ex", "vi", "vim", "nvim", "emacs", "sqlite", "psql", "m", "groovy", "swift", "tsx", "ts-node", "npx", "uv", "uvx", "expect", "guile", "ghc", "elixir", "cmd.exe", "powershell.exe":
		if slices.Equal(c.args[:min(len(c.args), 2)], []string{"-m", "json.tool"}) && len(operands(c.args)) <= 2 {
			return // prints what it reads
		}
		s.code(strings.Join(c.args, "\n"))
		stdin := known(c.stdin)
		if stdin != "" {
			s.code(stdin)
		}
		s.passed(strings.Join(c.args, "\n") + stdin)
		s.executes = s.executes || name != "node" || len(c.args) > 0
	case "ssh":
		s.remote(c.args)
		return
	case "go":
		s.executes = true
		for _, name := range []string{"-run", "-bench", "-skip", "-fuzz"} { // patterns, not files
			if i := slices.Index(c.args, name); i >= 0 && i+1 < len(c.args) {
				c.args = slices.Delete(slices.Clone(c.args), i, i+2)
			}
		}
	case "make", "just", "task", "cargo", "npm", "pnpm", "yarn", "docker", "podman", "kubectl":
		s.executes = true
	default:
		s.executes = s.executes || c.foreign || strings.HasPrefix(c.name, ".")
	}
	s.changes(c.args)
}

// remote judges the command that ssh runs, as if it ran here: the other machine may
// be this one.
func (s *shell) remote(args []string) {
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case len(a) == 2 && a[0] == '-' && strings.Contains("pilFJLRDbcemwWoSEIOQB", a[1:]):
			i++
		case strings.HasPrefix(a, "-"):
		default:
			s.subshellScript(strings.Join(args[i+1:], " "))
			return
		}
	}
}

// subshellScript judges a text that a shell of its own runs.
func (s *shell) subshellScript(src string) {
	outer := s.cwds
	s.cwds = []string{s.homeText()}
	s.script(src, anyText)
	s.cwds = outer
}

// passed judges the variables that a program is given and its text names.
func (s *shell) passed(program string) {
	for name, v := range s.vars {
		if name == "OLDPWD" || name == "PWD" || !strings.Contains(program, name) {
			continue
		}
		for _, value := range v.values {
			s.named(value.Str)
		}
	}
}

// sed judges sed: it reads, unless it is told to edit in place or its script writes.
func (s *shell) sed(c *command) string {
	inPlace := flag(c.args, "", "in-place")
	for _, a := range c.args {
		if len(a) > 1 && a[0] == '-' && a[1] != '-' {
			if i := strings.IndexAny(a, "ief"); i > 0 && a[i] == 'i' {
				inPlace = true
			}
		}
	}
	if inPlace {
		s.changes(c.args)
		return ""
	}
	for _, script := range sedScripts(c.args) {
		s.sedScript(script)
	}
	if len(operands(c.args)) <= 1 {
		return substituted(c)
	}
	return anyText
}

// sedScripts returns the scripts among the arguments of sed.
func sedScripts(args []string) []string {
	var out []string
	for i, a := range args {
		switch {
		case (a == "-e" || a == "--expression") && i+1 < len(args):
			out = append(out, args[i+1])
		case strings.HasPrefix(a, "--expression="), strings.HasPrefix(a, "-e"):
			out = append(out, a)
		case len(a) > 2 && a[0] == '-' && a[1] != '-' && strings.HasSuffix(a, "e") && i+1 < len(args):
			out = append(out, args[i+1])
		}
	}
	if rest := operands(args); len(out) == 0 && len(rest) > 0 {
		out = rest[:1]
	}
	return out
}

// sedScript judges what a script of sed writes and runs.
func (s *shell) sedScript(script string) {
	for i := range len(script) {
		if script[i] == 'w' || script[i] == 'W' {
			name, _, _ := strings.Cut(script[i+1:], "\n")
			s.named(strings.TrimSpace(name))
		}
	}
	if strings.Contains(script, "e") && strings.ContainsAny(script, " ") {
		s.deny(s.judgement.set.mention(script, false))
	}
}

// substituted returns what sed makes of a text that is known, where its script is
// simple enough.
func substituted(c *command) string {
	rest := operands(c.args)
	if len(rest) != 1 || known(c.stdin) == "" || strings.Contains(c.stdin, anyText) || len(rest) != len(c.args) {
		return anyText
	}
	m := compiled().substitution.FindStringSubmatch(rest[0])
	if m == nil {
		return anyText
	}
	if strings.HasSuffix(rest[0], "g") {
		return strings.ReplaceAll(c.stdin, m[2], m[4])
	}
	return strings.Replace(c.stdin, m[2], m[4], 1)
}

// awk judges awk: it reads, unless its program writes or runs something.
func (s *shell) awk(c *command) string {
	program := strings.Join(c.args, "\n")
	if _, has := option(c.args, "-i", "--include"); has || strings.Contains(program, "system(") || strings.Contains(program, "getline") ||
		strings.Contains(program, "print") && strings.ContainsAny(program, ">|") {
		s.code(program)
		s.changes(c.args)
	}
	return anyText
}

// git judges git by its subcommand.
func (s *shell) git(c *command) string {
	outer := s.cwds
	defer func() { s.cwds = outer }()
	i := 0
	for ; i < len(c.args) && strings.HasPrefix(c.args[i], "-"); i++ {
		switch a := c.args[i]; {
		case (a == "-C" || a == "--work-tree") && i+1 < len(c.args):
			i++
			s.chdir(c.args[i])
		case strings.HasPrefix(a, "--work-tree="):
			s.chdir(a[len("--work-tree="):])
		case (a == "-c" || a == "--config-env") && i+1 < len(c.args):
			i++
			if _, value, _ := strings.Cut(c.args[i], "="); strings.HasPrefix(value, "!") {
				s.script(value[1:], anyText)
			} else if strings.Contains(value, " ") {
				s.script(value, anyText)
			}
		case (a == "--git-dir" || a == "--namespace" || a == "--exec-path") && i+1 < len(c.args):
			i++
		}
	}
	if i >= len(c.args) {
		return anyText
	}
	return s.gitSub(c, c.args[i], c.args[i+1:])
}

// gitSub judges a subcommand of git.
func (s *shell) gitSub(c *command, sub string, args []string) string {
	switch sub {
	case "status", "log", "diff", "show", "add", "commit", "push", "fetch", "branch", "tag", "blame", "annotate", "grep", "ls-files", "ls-tree", "rev-parse", "rev-list",
		"remote", "describe", "shortlog", "cat-file", "diff-tree", "diff-index", "diff-files", "format-patch", "notes", "bisect", "help", "version", "check-ignore",
		"check-attr", "name-rev", "merge-base", "reflog", "var", "for-each-ref", "show-ref", "hash-object", "update-index", "range-diff", "whatchanged", "cherry", "gc", "fsck", "archive", "count-objects":
		for _, name := range []string{"-o", "--output", "--output-directory"} {
			if v, has := option(args, name); has && sub != "push" && sub != "commit" && sub != "grep" && sub != "ls-files" {
				s.changes([]string{v})
			}
		}
		return anyText
	case "apply", "am":
		dirs := args
		s.patches(c, dirs)
		return anyText
	case "clean":
		if flag(args, "f", "force") && !flag(args, "n", "dry-run") {
			s.sweep(operands(args))
		}
	case "stash":
		if len(args) > 0 && (args[0] == "list" || args[0] == "show") {
			return anyText
		}
		if flag(args, "ua", "include-untracked", "all") {
			s.sweep(nil)
		}
		if m, has := option(args, "-m", "--message"); has && len(args) > 0 {
			args = slices.DeleteFunc(slices.Clone(args), func(a string) bool { return a == m })
		}
	case "rebase", "submodule", "filter-branch":
		for _, a := range args {
			if strings.Contains(a, " ") {
				s.script(a, anyText)
			}
		}
	case "merge", "revert", "cherry-pick", "pull":
		if m, has := option(args, "-m", "--message"); has {
			args = slices.DeleteFunc(slices.Clone(args), func(a string) bool { return a == m || a == "--message="+m })
		}
	case "config":
		if flag(args, "l", "list", "get", "get-all", "get-regexp") {
			return anyText
		}
	}
	s.changes(args)
	if sub == "rm" && flag(args, "r") {
		s.trees(operands(args), anything)
	}
	return anyText
}

// sweep judges the removal of what git doesn't track.
func (s *shell) sweep(paths []string) {
	if len(paths) == 0 {
		paths = []string{"."}
	}
	s.changes(paths)
	var tracked []byte
	for _, dir := range s.cwds {
		tracked = append(tracked, s.index(dir)...)
	}
	s.trees(paths, func(p string) bool {
		for _, dir := range append(slices.Clone(s.cwds), s.roots...) {
			if rel, is := strings.CutPrefix(p, dir+"/"); is && strings.Contains(string(tracked), rel) {
				return false
			}
		}
		return true
	})
}
