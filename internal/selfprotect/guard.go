package selfprotect

import (
	"bytes"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const (
	// servicePID stands for the number of AHP's service, and processList for a list
	// of all processes.
	servicePID, processList = "\x02ahp", "\x02ps"
	// maxIndex bounds the index of a repository that is looked at, in bytes.
	maxIndex = 32 << 20
)

// index returns the index of the repository of a folder: it holds the names of what
// is tracked.
func (j *judgement) index(dir string) []byte {
	for ; dir != "/" && path.IsAbs(dir); dir = path.Dir(dir) {
		name := dir + "/.git/index"
		if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() || info.Size() > maxIndex {
			continue
		}
		data, err := os.ReadFile(name)
		if err == nil && bytes.HasPrefix(data, []byte("DIRC")) {
			return data
		}
	}
	return nil
}

// guard judges what a command does to AHP and to the hooks of agents beside changing
// files.
func (s *shell) guard(c *command) {
	words := append([]string{c.name}, c.args...)
	if _, reads := readers(c.name); !reads && !namesOnly(c.name) {
		for i, w := range words[:min(len(words), 64)] {
			if s.isAHP(w) {
				s.ahp(words[i+1:])
			}
		}
	}
	switch c.name {
	case "kill", "pkill", "killall", "skill":
		if s.hitsService(c) {
			s.forbid("this call would end AHP's service")
		}
	case "systemctl", "launchctl", "service", "rc-service":
		for _, a := range c.args {
			if base := strings.TrimSuffix(path.Base(a), ".service"); (base == "ahp" || strings.HasPrefix(base, "ahp-") || strings.HasSuffix(base, ".ahp")) && !slices.Contains(c.args, "status") {
				s.forbid("this call would stop or change AHP's service")
			}
		}
	}
	s.switches(c)
}

// namesOnly reports whether a program starts none of its arguments: they are files or
// texts.
func namesOnly(name string) bool {
	switch name {
	case "echo", "printf", "git", "gh", "glab", "hub", "jira", "slack", "notify-send", "logger", "say", "rm", "cp", "mv", "ln", "mkdir", "rmdir", "touch", "chmod", "chown",
		"tar", "zip", "unzip", "rsync", "sed", "tee", "cd", "pushd", "gofmt", "goimports", "code", "vim", "vi", "nano":
		return true
	}
	return false
}

// isAHP reports whether a word names the ahp command.
func (s *shell) isAHP(w string) bool {
	base := strings.TrimSuffix(path.Base(w), ".exe")
	return base == "ahp" || isPattern(base) && literals(base) >= 2 && glob(base, "ahp") || strings.HasPrefix(path.Base(w), "ahp@") ||
		slices.Contains(s.judgement.set.binaries, path.Clean(w))
}

// ahp judges what AHP is told to do.
func (s *shell) ahp(args []string) {
	for i, a := range args {
		switch {
		case a == "--help" || a == "-h" || a == "help":
			return
		case strings.HasPrefix(a, "-"):
			continue
		case a == "install" && slices.Contains(args, "--dry-run"), a == "uninstall" && slices.Contains(args, "--dry-run"):
			return
		case a == "install", a == "uninstall", a == "trust":
			if !slices.Contains(args, "--help") && !slices.Contains(args, "-h") {
				s.forbid(`this call would change the installation or the trust of AHP ("ahp ` + a + `")`)
			}
			return
		case a == "daemon":
			if slices.Contains(args[i+1:], "stop") {
				s.forbid(`this call would end AHP's service ("ahp daemon stop")`)
			}
			return
		case isPattern(a):
			for _, sub := range []string{"install", "uninstall", "trust"} {
				if literals(a) >= 2 && glob(a, sub) {
					s.forbid("this call may change the installation or the trust of AHP")
				}
			}
			return
		case i == 0 || !strings.HasPrefix(args[i-1], "--"):
			return
		}
	}
}

// service is how the service shows in the list of processes.
const service = "ahp daemon run"

// hitsService reports whether a program that takes processes by number or name takes
// AHP's service.
func (s *shell) hitsService(c *command) bool {
	full := flag(c.args, "f", "full")
	whole := flag(c.args, "x", "exact") || c.name == "pidof" || c.name == "killall" && !flag(c.args, "r", "regexp")
	rest := operands(c.args)
	if c.name == "kill" || c.name == "skill" {
		for _, a := range c.args {
			if strings.Contains(a, servicePID) || a == "-1" && len(c.args) > 1 && a == c.args[len(c.args)-1] || s.isService(a) {
				return true
			}
		}
		return false
	}
	for i, pattern := range rest {
		if i > 0 && c.name != "killall" && c.name != "pidof" {
			break
		}
		names := []string{"ahp"}
		if full {
			names = []string{service, "/usr/local/bin/" + service}
		}
		for _, b := range s.judgement.set.binaries {
			names = append(names, path.Base(b))
		}
		for _, name := range names {
			if whole && pattern == name || !whole && matches(pattern, name) {
				return true
			}
		}
	}
	return false
}

func matches(pattern, name string) bool {
	re, err := regexp.Compile(pattern)
	return err == nil && re.MatchString(name)
}

// processes returns what a program that reads prints, where that may be the number
// of AHP's service, and else printed.
func (s *shell) processes(c *command, printed string) string {
	switch {
	case c.name == "ps":
		return processList
	case strings.Contains(c.stdin, servicePID):
		return servicePID
	case strings.Contains(c.stdin, processList):
		for _, a := range operands(c.args) {
			if matches(a, service) || c.name != "grep" && strings.Contains(a, "ahp") {
				return servicePID
			}
		}
		return processList
	}
	for _, a := range operands(c.args) {
		if m := s.touches(a); m.relation == direct && strings.HasPrefix(m.place.What, "AHP's log") {
			return servicePID
		}
	}
	return printed
}

// isService reports whether a number is that of a process that runs AHP.
func (s *shell) isService(number string) bool {
	n, err := strconv.Atoi(number)
	if err != nil || n < 2 {
		return false
	}
	exe, err := os.Readlink("/proc/" + number + "/exe")
	exe = strings.TrimSuffix(exe, " (deleted)")
	return err == nil && (slices.Contains(s.judgement.set.binaries, exe) || path.Base(exe) == "ahp")
}
