package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/abhed/abhed/internal/hostconf"
	"github.com/abhed/abhed/internal/install"
	"github.com/abhed/abhed/internal/strictjson"
)

// switches finds what turns the hooks of this scope off.
func (s *site) switches() {
	found := 0
	for _, sw := range s.host.Switches {
		switch sw.Kind {
		case hostconf.VariableSwitch:
			value, is := lookup(s.d.o.Environ, sw.Name)
			if is && (sw.Value == "" || value == sw.Value) && slices.Contains(sw.Stops, s.scope) {
				found++
				s.add(Finding{Level: Wrong, Check: "switch", What: fmt.Sprintf("the variable %s is set to %q here: %s", sw.Name, short(value, 20), sw.Effect), Do: "unset it where " + s.dialect.Title + " is started"})
			}
		case hostconf.KeySwitch:
			if !strings.Contains(sw.Name, "*") {
				found += s.key(sw)
			}
		}
	}
	if found == 0 {
		s.add(Finding{Level: OK, Check: "switch", What: "nothing that can be seen here turns hooks off"})
	}
}

// lookup returns a variable of an environment.
func lookup(environ []string, name string) (string, bool) {
	for _, e := range slices.Backward(environ) {
		if v, is := strings.CutPrefix(e, name+"="); is {
			return v, true
		}
	}
	return "", false
}

// key looks for a key in the files where it counts, and returns how often it is thrown.
func (s *site) key(sw hostconf.Switch) int {
	n := 0
	for _, src := range s.sources {
		if src.Of != "" || !slices.Contains(sw.Scopes, src.Scope) {
			continue
		}
		value, line, is := src.value(sw.Name)
		if !is || !s.thrown(sw, value) {
			continue
		}
		f := Finding{Level: Wrong, Check: "switch", Where: at(src.path, line), Do: "remove it, or ask who put it there"}
		f.What = fmt.Sprintf("%s is %s in the %s configuration: %s", sw.Name, short(value, 60), src.Scope, sw.Effect)
		switch {
		case !slices.Contains(sw.Stops, s.scope):
			f.Level, f.Do = Note, ""
			f.What += "; not those of the " + string(s.scope) + " scope"
		case s.host.Name == "droid":
			f.Level = Warning
		case s.host.Name == "codex" && sw.Name == "features.hooks":
			s.codexSwitch(src, &f)
		case s.host.Name == "claude-code" && src.Scope == hostconf.User && s.projectSays("disableAllHooks", "false"):
			f.Level = Warning
			f.What += "; this project's configuration says false, which holds here"
		}
		n++
		s.add(f)
	}
	return n
}

// projectSays reports whether the project's configuration has a value for a key.
func (s *site) projectSays(name, want string) bool {
	return slices.ContainsFunc(s.sources, func(src *source) bool {
		value, _, is := src.value(name)
		return is && src.Of == "" && src.Scope == hostconf.Project && value == want
	})
}

// thrown reports whether a value turns our hooks off.
func (s *site) thrown(sw hostconf.Switch, value string) bool {
	if sw.Value != "" {
		return value == sw.Value || value == `"`+sw.Value+`"`
	}
	var list []string
	if strictjson.Unmarshal([]byte(value), &list, strictjson.Options{}) != nil {
		return !slices.Contains([]string{"[]", "{}", `""`, "false", "null"}, value)
	}
	return slices.ContainsFunc(list, func(name string) bool { // a list of hooks by name or command
		return name == "ahp" || slices.ContainsFunc(s.lines, func(k hook) bool { return k.command == name })
	})
}

// codexSwitch knows when features.hooks counts.
func (s *site) codexSwitch(src *source, f *Finding) {
	for _, other := range s.sources {
		if strings.HasSuffix(other.path, "requirements.toml") {
			if v, _, _ := other.value("features.hooks"); v == "true" {
				f.Level, f.Do = Note, ""
				f.What += "; " + other.path + " pins it to true"
				return
			}
		}
	}
	if src.Scope == hostconf.Project && s.codexTrust() != "trusted" {
		f.Level = Warning
		f.What += "; this project isn't trusted so far"
	}
}

// codexTrust is how much Codex trusts the project: "trusted", another word, or "".
func (s *site) codexTrust() string {
	for _, src := range s.sources {
		if src.Scope != hostconf.User || src.toml == nil || src.err != nil {
			continue
		}
		projects, _ := src.tree["projects"].(map[string]any)
		one, _ := projects[s.d.o.Roots.Project].(map[string]any)
		level, _ := one["trust_level"].(string)
		return level
	}
	return ""
}

// codex looks at the trust that Codex keeps for each hook.
func (s *site) codex() {
	switch s.scope {
	case hostconf.Managed:
		return // no trust is asked for there
	case hostconf.Project:
		if level := s.codexTrust(); level != "trusted" {
			s.add(Finding{Level: Wrong, Check: "folder-trust", What: fmt.Sprintf("Codex doesn't trust this project (trust_level is %q), and so doesn't read its hooks", level), Do: "trust it in Codex, or install in the user scope"})
		}
	}
	var config *source
	for _, src := range s.sources {
		if src.Scope == hostconf.User && src.toml != nil && src.err == nil {
			config = src
		}
	}
	table := map[string]any{}
	if config != nil {
		hooks, _ := config.tree["hooks"].(map[string]any)
		table, _ = hooks["state"].(map[string]any)
	}
	for _, src := range s.sources {
		if src.Scope != s.scope || src.json == nil || src.err != nil {
			continue
		}
		list, err := install.CodexHooks(src.path, src.data)
		if err != nil {
			s.add(Finding{Level: Wrong, Check: "codex-trust", What: err.Error(), Where: src.path, Do: "repair the file: Codex drops it whole"})
			continue
		}
		s.codexHooks(src, config, list, table)
	}
}

func (s *site) codexHooks(src, config *source, list []install.CodexHook, table map[string]any) {
	var none, stale, off []string
	for _, k := range list {
		if !k.Line {
			continue
		}
		one, _ := table[k.Key].(map[string]any)
		switch hash, _ := one["trusted_hash"].(string); {
		case one["enabled"] == false:
			off = append(off, k.Event)
		case hash == "":
			none = append(none, k.Event)
		case hash != k.Hash:
			stale = append(stale, k.Event)
		}
	}
	where := src.path
	if config != nil {
		where = config.path
	}
	do := "run ahp install codex --trust, or start Codex and accept the hooks in its review"
	if s.scope == hostconf.Project {
		do = "start Codex and accept the hooks in its review"
	}
	say := func(list []string, check, what, do string) {
		if len(list) > 0 {
			s.add(Finding{Level: Wrong, Check: check, What: what + events(list), Where: where, Do: do})
		}
	}
	say(off, "switch", "enabled = false switches AHP's hook off for ", "remove it, or ask who put it there")
	say(none, "codex-trust", "Codex skips AHP's hooks without a word, because nobody has trusted them: ", do)
	say(stale, "codex-trust", "trusted_hash is of another hook, so Codex skips AHP's without a word: ", do)
	if len(off)+len(none)+len(stale) == 0 {
		s.add(Finding{Level: OK, Check: "codex-trust", What: "Codex trusts AHP's hooks as they are", Where: where})
	}
}
