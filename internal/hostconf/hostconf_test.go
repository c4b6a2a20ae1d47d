package hostconf

import (
	"slices"
	"strings"
	"testing"

	"github.com/abhed/abhed/internal/strictjson"
)

func TestHosts(t *testing.T) {
	want := strings.Fields("claude-code codex gemini qwen opencode kilo pi crush copilot cursor droid goose cline kiro windsurf openhands kimi auggie continue")
	got := Names()
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("hosts: %v, want %v", got, want)
	}
	if _, is := Lookup("claude"); is {
		t.Error("Lookup found a name that no host has")
	}
}

// Every entry can be written, and every place is one that the doctor reads.
func TestDataIsWhole(t *testing.T) {
	for _, h := range All() {
		if len(h.Targets) == 0 {
			t.Errorf("%s: no place to install", h.Name)
		}
		for _, f := range h.Files {
			if f.Path == "" || f.Format == "" || !slices.Contains(Scopes(), f.Scope) {
				t.Errorf("%s: incomplete file %+v", h.Name, f)
			}
			if f.Scope == Project && (strings.HasPrefix(f.Path, "/") || strings.HasPrefix(f.Path, "~")) || f.Scope == User && !strings.HasPrefix(f.Path, "~/") || f.Scope == Managed && !strings.HasPrefix(f.Path, "/") {
				t.Errorf("%s: %s is no path of the scope %s", h.Name, f.Path, f.Scope)
			}
			if f.Variable != "" && !strings.HasPrefix(f.Path, f.Moves) {
				t.Errorf("%s: %s does not begin with %s, which %s moves", h.Name, f.Path, f.Moves, f.Variable)
			}
		}
		for _, s := range h.Switches {
			if s.Effect == "" || len(s.Stops) == 0 || (s.Kind == KeySwitch) != (len(s.Scopes) > 0) {
				t.Errorf("%s: incomplete switch %+v", h.Name, s)
			}
			for _, pinned := range s.Pinned {
				if !slices.Contains(s.Stops, pinned) || len(h.In(pinned)) == 0 {
					t.Errorf("%s: %s is pinned for %s, which it doesn't stop or where nothing is installed", h.Name, s.Name, pinned)
				}
			}
		}
		for _, target := range h.Targets {
			wholeTarget(t, h, target)
		}
	}
}

func wholeTarget(t *testing.T, h Host, target Target) {
	t.Helper()
	if !slices.Contains(h.Files, target.File) {
		t.Errorf("%s: the target %s is not among the files", h.Name, target.Path)
	}
	gate := false
	names := map[string]bool{}
	for _, e := range target.Events {
		gate = gate || e.Gate && e.Tool
		if names[e.Name] || h.Unregistered[e.Name] != "" {
			t.Errorf("%s: %s is registered twice, or also left alone", h.Name, e.Name)
		}
		names[e.Name] = true
	}
	if !gate {
		t.Errorf("%s: %s has no event that can stop a tool call", h.Name, target.Path)
	}
	for _, name := range target.ClosedFor {
		if e, is := h.Event(name); !is || !e.Gate {
			t.Errorf("%s: %s fails closed and is no registered gate", h.Name, name)
		}
	}
	for _, f := range slices.Concat(target.Head, target.Fields, target.Closed) {
		if err := strictjson.Check([]byte(f.Value), strictjson.Options{}); err != nil {
			t.Errorf("%s: the value of %s: %v", h.Name, f.Name, err)
		}
	}
	if target.LimitKey != "" && target.LimitUnit != 1 && target.LimitUnit != 1000 {
		t.Errorf("%s: unit %d", h.Name, target.LimitUnit)
	}
	if entries := target.Shape != Scripts && target.Shape != Bridge; entries != (target.Command != "") {
		t.Errorf("%s: a target of the shape %s has the command key %q", h.Name, target.Shape, target.Command)
	}
}

// What switches a guard off without a word, wherever it was measured or read.
func TestMatchersThatGuardNothing(t *testing.T) {
	forbidden := map[string][]string{"copilot": {"*", ".*"}, "goose": {"*"}, "crush": {"*"}, "auggie": {"*"}, "kilo": {"*"}}
	for name, matchers := range forbidden {
		h, _ := Lookup(name)
		for _, target := range h.Targets {
			if slices.Contains(matchers, target.ToolMatcher) {
				t.Errorf("%s: the matcher %q", name, target.ToolMatcher)
			}
		}
	}
	if qwen, _ := Lookup("qwen"); LimitMS/qwen.Targets[0].LimitUnit > 999 {
		t.Error("qwen takes a limit of 1000 and more for milliseconds")
	}
}

func TestPaths(t *testing.T) {
	env := map[string]string{"CLAUDE_CONFIG_DIR": "/else/claude", "FACTORY_HOME_OVERRIDE": "/f"}
	for _, c := range []struct {
		host  string
		scope Scope
		roots Roots
		want  string
	}{
		{"claude-code", User, Roots{Home: "/h"}, "/h/.claude/settings.json"},
		{"claude-code", User, Roots{Home: "/h", Getenv: func(n string) string { return env[n] }}, "/else/claude/settings.json"},
		{"claude-code", Project, Roots{Home: "/h", Project: "/p/a b"}, "/p/a b/.claude/settings.json"},
		{"claude-code", Managed, Roots{Mac: true}, "/Library/Application Support/ClaudeCode/managed-settings.json"},
		{"claude-code", Managed, Roots{Machine: "/t"}, "/t/etc/claude-code/managed-settings.json"},
		{"droid", User, Roots{Home: "/h", Getenv: func(n string) string { return env[n] }}, "/f/.factory/settings.json"},
		{"copilot", User, Roots{Home: "/h"}, "/h/.copilot/hooks/ahp.json"},
		{"codex", Managed, Roots{}, "/etc/codex/hooks.json"},
	} {
		h, _ := Lookup(c.host)
		got := c.roots.Path(h.In(c.scope)[0].File)
		if got != c.want {
			t.Errorf("%s %s: %s, want %s", c.host, c.scope, got, c.want)
		}
	}
}

func TestCopiesAreFresh(t *testing.T) {
	h, _ := Lookup("codex")
	h.Targets[0].Events[0].Name = "x"
	h.Files[0].Path = "x"
	again, _ := Lookup("codex")
	if again.Targets[0].Events[0].Name == "x" || again.Files[0].Path == "x" {
		t.Error("a change to what Lookup returned stays")
	}
	reads := func(h Host) bool {
		return slices.ContainsFunc(h.Files, func(f File) bool { return f.Of == "claude-code" })
	}
	if reads(again) {
		t.Error("codex reads no file of Claude Code")
	}
	if c, _ := Lookup("continue"); !reads(c) {
		t.Error("continue reads the files of Claude Code")
	}
}
