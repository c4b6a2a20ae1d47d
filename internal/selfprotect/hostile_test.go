package selfprotect_test

import (
	"strings"
	"testing"
	"time"
)

// nested returns a command inside that many shells.
func nested(command string, depth int) string {
	for range depth {
		command = "sh -c '" + strings.ReplaceAll(command, "'", `'\''`) + "'"
	}
	return command
}

// TestHostileCommands holds that commands made to take long are judged in bounded
// time, and that a protected name in them is still seen.
func TestHostileCommands(t *testing.T) {
	w := makeWorld(t)
	many := strings.Repeat("x ", 3000)
	for name, command := range map[string]string{
		"braces":         "echo {1..9}{1..9}{1..9}{1..9}{1..9}{1..9}{1..9}{1..9}; rm ~/.claude/settings.json",
		"a long range":   "touch {1..99999999}; rm ~/.claude/settings.json",
		"doubling":       "a=xx" + strings.Repeat("; a=$a$a", 60) + "; echo $a; rm ~/.claude/settings.json",
		"padding":        "printf '%999999999d' 1; rm ~/.claude/settings.json",
		"substitutions":  "echo " + strings.Repeat("$(", 60) + "rm ~/.claude/settings.json" + strings.Repeat(")", 60),
		"too deep":       strings.Repeat("(", 5000) + "rm ~/.claude/settings.json" + strings.Repeat(")", 5000),
		"many values":    strings.Repeat("a=1; b=2; c=3; ", 400) + "rm $a $b $c ~/.claude/settings.json",
		"many words":     "a=1; a=2; a=3; b=4; b=5; rm $a$b " + many + "; rm ~/.claude/settings.json",
		"many commands":  strings.Repeat("rm x y z; ", 6000) + "rm ~/.claude/settings.json",
		"unknown parts":  "rm " + strings.Repeat("$x/", 1500) + "; rm ~/.claude/settings.json",
		"globs":          "rm " + strings.Repeat("*?[a-z]*/", 400) + "; rm ~/.claude/settings.json",
		"long glob":      "rm ~/.claude/" + strings.Repeat("*s", 1500) + "; rm ~/.claude/settings.json",
		"recursion":      "f() { f; f; f; }; f; rm ~/.claude/settings.json",
		"nested shells":  nested("rm ~/.claude/settings.json", 9),
		"too long":       strings.Repeat("# comment\n", 40000) + "rm ~/.claude/settings.json",
		"nested eval":    strings.Repeat("eval ", 40) + "rm ~/.claude/settings.json",
		"loops":          strings.Repeat("for a in 1 2 3 4; do ", 40) + "rm ~/.claude/settings.json" + strings.Repeat("; done", 40),
		"a NUL byte":     "rm ~/.cla\x00ude/x; rm ~/.claude/settings.json",
		"unknown bytes":  "rm \x01\x02\x03; rm ~/.claude/settings.json",
		"no more memory": "a=(" + strings.Repeat("{1..1000} ", 20) + "); rm ~/.claude/settings.json",
	} {
		start := time.Now()
		if w.command(t, command) == "" {
			t.Errorf("%s: not denied", name)
		}
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("%s: took %v", name, took)
		} else {
			t.Logf("%s: %v", name, took.Round(time.Millisecond))
		}
	}
}
