package policy

import (
	"slices"
	"strings"
	"testing"
)

// TestNativeTable holds that each of the hosts has a tool that runs commands and one
// that changes files, that every row names a tool of ours, and that a name means one
// thing.
func TestNativeTable(t *testing.T) {
	hosts := []string{"auggie", "claude-code", "cline", "codex", "continue", "copilot", "crush", "cursor", "droid", "gemini",
		"goose", "kilo", "kimi", "kiro", "opencode", "openhands", "pi", "qwen", "windsurf"}
	if got := NativeHosts(); !slices.Equal(got, hosts) {
		t.Errorf("hosts %q", got)
	}
	two := map[string]bool{"download": true}
	for _, row := range nativeRows() {
		if _, known := AbhedTools()[row.tool]; !known || row.names == "" {
			t.Errorf("the row %+v", row)
		}
		for name := range strings.FieldsSeq(row.names) {
			if got := LookupNative(name); len(got) != 1 && !two[name] {
				t.Errorf("%s means %+v", name, got)
			}
		}
	}
	for _, host := range hosts {
		has := map[string]bool{}
		for _, row := range nativeRows() {
			if row.host == host {
				has[row.tool] = true
			}
		}
		if !has[toolBash] || !has[toolEdit] {
			t.Errorf("%s has %v", host, has)
		}
	}
	for name := range nativeTraits() {
		if len(LookupNative(name)) == 0 {
			t.Errorf("the trait of %q belongs to no row", name)
		}
	}
}

func TestLookupNative(t *testing.T) {
	for name, want := range map[string]Native{
		"Bash": {Tool: "bash", Kind: SubjectCommand}, "BASH": {Tool: "bash", Kind: SubjectCommand}, "run_shell_command": {Tool: "bash", Kind: SubjectCommand},
		"Execute": {Tool: "bash", Kind: SubjectCommand}, "PowerShell": {Tool: "bash", Kind: SubjectCommand, Foreign: true},
		"apply_patch": {Tool: "edit", Kind: SubjectPath, Patch: true}, "view": {Tool: "read", Kind: SubjectPath}, "Create": {Tool: "write", Kind: SubjectPath},
		"WebFetch": {Tool: "fetch", Kind: SubjectURL}, "TodoWrite": {Tool: "todo"}, "read_many_files": {Tool: "read", Kind: SubjectPath, Globs: true},
	} {
		if got := LookupNative(name); len(got) != 1 || got[0] != want {
			t.Errorf("%s: %+v", name, got)
		}
	}
	for _, name := range []string{"", "mcp__x__bash", "deploy", "bash "} {
		if got := LookupNative(name); got != nil {
			t.Errorf("%q: %+v", name, got)
		}
	}
}

// TestUnknownWorkingDirectory holds that a command of which nobody knows where it
// runs is judged by what it may touch.
func TestUnknownWorkingDirectory(t *testing.T) {
	w := newWorld(t)
	rs := rules(t, "deny read(secret/**)", "deny read(/etc/shadow)", "deny bash(git push*)")
	for command, want := range map[string]Verdict{
		"cat secret/key": Ask, "cat key": Ask, "cat /etc/shadow": Deny, "git push": Deny, "cat " + w.root + "/secret/key": Deny,
		"cat /etc/hostname": Allow, "ls": Allow, "cat ../etc/shadow": Deny,
	} {
		in := w.bash(ModeBypass, command)
		in.Call.WorkDir = ""
		check(t, rs, in, want, "")
	}
}
