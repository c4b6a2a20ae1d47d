package selfprotect

import (
	"maps"
	"slices"
	"strings"
)

// commands judges the commands in an input.
func (j *judgement) commands(input map[string]any, foreign bool) {
	names := commandMembers
	if foreign {
		names += " script code chars input inputtext text"
	}
	dirs := []string{j.cwd}
	env := map[string]string{}
	args := ""
	for _, m := range slices.Sorted(maps.Keys(input)) {
		switch {
		case oneOf(m, directories):
			if dir, is := input[m].(string); is && dir != "" {
				dirs = append(dirs, j.join(j.cwd, plainFile(dir)))
			}
		case oneOf(m, "env environment envvars environmentvariables"):
			env = environment(input[m])
		case oneOf(m, "args arguments argv argslist argumentslist commandargs"):
			args = quoted(input[m])
		}
	}
	for _, m := range slices.Sorted(maps.Keys(input)) {
		if !oneOf(m, names) {
			continue
		}
		for _, text := range commandTexts(input[m], strings.HasSuffix(strings.ToLower(m), "s")) {
			if foreign {
				j.foreign(text)
			}
			if strings.Contains(text, patchStart) {
				j.patch(text, dirs)
			}
			j.runWith(text+args, dirs, env)
		}
	}
}

// foreign judges a text that isn't known to be a command of the shell.
func (j *judgement) foreign(text string) {
	first, _, _ := strings.Cut(strings.TrimSpace(text), " ")
	switch strings.ToLower(first) {
	case "get-content", "gc", "cat", "type", "dir", "ls", "get-childitem", "gci", "select-string", "test-path", "get-item", "%cat":
		if !strings.ContainsAny(text, ";|>&\n") {
			return
		}
	}
	j.code(text)
}

// code judges the text of a program.
func (j *judgement) code(text string) { j.deny(j.set.mention(plainText(text), true)) }

// environment reads a member that sets variables.
func environment(v any) map[string]string {
	out := map[string]string{}
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			if text, is := value.(string); is {
				out[name] = text
			}
		}
	case []any:
		for _, each := range v {
			if text, is := each.(string); is {
				name, value, _ := strings.Cut(text, "=")
				out[name] = value
			}
		}
	}
	return out
}

// quoted returns arguments as a shell takes them.
func quoted(v any) string {
	switch v := v.(type) {
	case string:
		return " " + v
	case []any:
		var b strings.Builder
		for _, each := range v {
			if text, is := each.(string); is {
				b.WriteString(" " + quote(text))
			}
		}
		return b.String()
	}
	return ""
}

// quote returns a word as the shell takes it literally.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// commandTexts returns the commands that a member holds: a text, a list that is one
// command's words, or, where the member's name is a plural, several commands.
func commandTexts(v any, plural bool) []string {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		if !plural {
			return []string{strings.TrimSpace(quoted(v))}
		}
		var out []string
		for _, each := range v {
			if m, is := each.(map[string]any); is {
				each = m["command"]
			}
			out = append(out, commandTexts(each, false)...)
		}
		return out
	}
	return nil
}
