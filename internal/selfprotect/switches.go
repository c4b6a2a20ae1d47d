package selfprotect

import (
	"os"
	"slices"
	"strings"
)

// agent says how a host is started, and how its hooks are turned off there.
type agent struct {
	// flags turn hooks off, pairs do so with their value, which is compared without
	// spaces; a pair whose value is "*" does with any.
	flags []string
	pairs [][2]string
	// moves are the variables that name another folder of configuration.
	moves []string
}

// agents are the hosts' commands.
func agents(name string) (agent, bool) {
	switch name {
	case "claude":
		return agent{flags: []string{"--bare", "--safe-mode"}, pairs: [][2]string{{"--setting-sources", "*"}}, moves: []string{"CLAUDE_CONFIG_DIR"}}, true
	case "codex":
		return agent{
			flags: []string{"--dangerously-bypass-hook-trust"},
			pairs: [][2]string{{"--disable", "hooks"}, {"-c", "features.hooks=false"}, {"--config", "features.hooks=false"}, {"-c", "hooks"}, {"--config", "hooks"}, {"-c", "features.codex_hooks=false"}},
			moves: []string{"CODEX_HOME"},
		}, true
	case "gemini":
		return agent{moves: []string{"GEMINI_CLI_SYSTEM_SETTINGS_PATH", "GEMINI_CLI_HOME", "GEMINI_CLI_SYSTEM_DEFAULTS_PATH"}}, true
	case "qwen":
		return agent{moves: []string{"QWEN_CODE_SYSTEM_SETTINGS_PATH", "QWEN_HOME"}}, true
	case "opencode", "kilo", "kilocode":
		return agent{flags: []string{"--pure"}, moves: []string{"OPENCODE_CONFIG_DIR", "OPENCODE_CONFIG", "KILO_CONFIG_DIR", "XDG_CONFIG_HOME"}}, true
	case "pi":
		return agent{flags: []string{"--no-extensions", "-ne"}, moves: []string{"PI_CODING_AGENT_DIR"}}, true
	case "copilot":
		return agent{moves: []string{"COPILOT_HOME", "XDG_CONFIG_HOME"}}, true
	case "crush", "goose", "cline":
		return agent{moves: []string{"XDG_CONFIG_HOME", "CLINE_DIR"}}, true
	case "droid", "cursor-agent", "auggie", "kimi", "openhands", "cn", "kiro-cli", "windsurf", "cursor":
		return agent{}, true
	}
	return agent{}, false
}

// switchesOff reports whether a variable with this value turns hooks off.
func switchesOff(name, value string) bool {
	switch name {
	case "OPENCODE_PURE", "KILO_PURE", "CLAUDE_CODE_SIMPLE":
		return value != "" && value != "0" && !strings.EqualFold(value, "false")
	}
	return false
}

// setVariable notes a variable that is set, whatever for.
func (s *shell) setVariable(name, value string) {
	if switchesOff(name, value) {
		s.forbid("this call sets " + name + ", which starts an agent without its hooks")
	}
}

// switchVariables judges the variables that a tool is told to set.
func (s *shell) switchVariables(env map[string]string) {
	for name, value := range env {
		s.setVariable(name, value)
	}
}

// switches judges a command that starts an agent.
func (s *shell) switches(c *command) {
	if c.name == "npx" || c.name == "bunx" || c.name == "pnpx" {
		for i, a := range c.args {
			if name := packaged(a); name != "" {
				s.switches(&command{name: name, args: c.args[i+1:], assigns: c.assigns})
				return
			}
		}
	}
	a, is := agents(c.name)
	if !is {
		return
	}
	off := func(what string) {
		s.forbid("this call starts " + c.name + " with its hooks turned off or its configuration elsewhere (" + what + ")")
	}
	for i, arg := range c.args {
		if slices.Contains(a.flags, arg) {
			off(arg)
		}
		next := ""
		if i+1 < len(c.args) {
			next = c.args[i+1]
		}
		for _, p := range a.pairs {
			value, set := strings.CutPrefix(arg, p[0]+"=")
			if !set && arg == p[0] {
				value, set = next, true
			}
			if !set && len(p[0]) == 2 && strings.HasPrefix(arg, p[0]) {
				value, set = arg[2:], true
			}
			value = strings.NewReplacer(" ", "", `"`, "", "'", "").Replace(value)
			if set && (p[1] == "*" || value == p[1] || p[1] == "hooks" && (strings.HasPrefix(value, "hooks.") || strings.HasPrefix(value, "hooks="))) {
				off(p[0] + " " + value)
			}
		}
		s.settings(arg)
		if arg == "--settings" || arg == "--config" {
			s.settings(s.smallFile(next))
		} else if name, is := strings.CutPrefix(arg, "--settings="); is {
			s.settings(s.smallFile(name))
		}
	}
	s.starts = true
	if slices.Contains(c.args, "hooks") && slices.ContainsFunc(c.args, turnsOff) || slices.Contains(c.args, "disableAllHooks") {
		off("hooks")
	}
	moves := append([]string{"HOME"}, a.moves...)
	for _, set := range c.assigns {
		if name, _, _ := strings.Cut(set, "="); slices.Contains(moves, name) {
			off(name)
		}
	}
	for _, name := range moves {
		if v := s.vars[name]; v != nil {
			off(name)
		}
	}
}

// turnsOff reports whether a word of an agent's command line turns something off.
func turnsOff(word string) bool {
	switch word {
	case "disable", "disable-all", "off", "remove", "delete":
		return true
	}
	return false
}

// settings judges a text that an agent takes its settings from.
func (s *shell) settings(text string) {
	if !strings.Contains(text, "ooks") {
		return
	}
	flat := strings.NewReplacer(" ", "", "\n", "", "\t", "", `\`, "").Replace(text)
	for _, key := range []string{`disableAllHooks":true`, `hooksDisabled":true`, `"hooksConfig":{"enabled":false`, `"hooks":{"enabled":false`} {
		if strings.Contains(flat, key) {
			s.forbid("this call starts an agent with its hooks turned off (" + key + ")")
		}
	}
}

// smallFile returns what is in a file of settings, or "".
func (s *shell) smallFile(name string) string {
	file := s.join(s.cwds[0], name)
	if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() || info.Size() > maxPatch {
		return ""
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	return string(data)
}

// packaged returns the command of an agent's package.
func packaged(name string) string {
	name, _, _ = strings.Cut(strings.TrimPrefix(name, "@"), "@")
	switch name {
	case "anthropic-ai/claude-code":
		return "claude"
	case "openai/codex":
		return "codex"
	case "google/gemini-cli":
		return "gemini"
	case "qwen-code/qwen-code":
		return "qwen"
	case "opencode-ai":
		return "opencode"
	case "mariozechner/pi-coding-agent":
		return "pi"
	case "github/copilot":
		return "copilot"
	}
	return ""
}
