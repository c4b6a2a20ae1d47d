package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abhed/abhed/internal/confedit"
	"github.com/abhed/abhed/internal/hostconf"
)

// edit changes a JSON file.
func (w *world) edit(path string, f func(d *confedit.JSON) error) {
	w.t.Helper()
	d, err := confedit.ParseJSON([]byte(w.read(path)), confedit.JSONOptions{Name: path, Comments: true})
	if err == nil {
		err = f(d)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, d.Bytes(), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

const (
	claude = "home/.claude/settings.json"
	gate   = "PreToolUse"
)

// tampering is one thing that somebody does to an installation in the user scope.
type tampering struct {
	name, host string
	do         func(w *world)
	want       []want
	// mild tells that it is no more than a warning.
	mild bool
}

func entriesTampered() []tampering {
	return []tampering{
		{name: "entry removed", host: "claude-code", do: func(w *world) {
			w.edit(w.path(claude), func(d *confedit.JSON) error { return d.Remove("hooks", "PostToolUse") })
		}, want: []want{{Wrong, "entry-missing", "no entry of AHP is left for PostToolUse", claude}}},
		{name: "gate removed", host: "claude-code", do: func(w *world) {
			w.edit(w.path(claude), func(d *confedit.JSON) error { return d.Remove("hooks", gate) })
		}, want: []want{{Wrong, "entry-missing", "left for PreToolUse", claude}, {Wrong, "canary", "no call is checked", ""}}},
		{name: "file deleted", host: "claude-code", do: func(w *world) { w.remove(claude) },
			want: []want{{Wrong, "file-missing", "the file is gone", claude}, {Wrong, "canary", "no call is checked", ""}}},
		{name: "script deleted", host: "cline", do: func(w *world) { w.remove("home/.cline/hooks/PostToolUse") },
			want: []want{{Wrong, "entry-missing", "PostToolUse is gone", "home/.cline/hooks/PostToolUse"}}},
		{name: "script not executable", host: "cline", do: func(w *world) {
			if err := os.Chmod(w.path("home/.cline/hooks/PreToolUse"), 0o644); err != nil {
				w.t.Fatal(err)
			}
		}, want: []want{{Wrong, "entry-changed", "isn't executable", "home/.cline/hooks/PreToolUse"}, {Wrong, "canary", "could not be sent", ""}}},
		{name: "one character", host: "claude-code", do: func(w *world) { w.replaceIn(claude, gate, "gave no answer", "gave no answex") },
			want: []want{{Wrong, "entry-changed", "what it makes of ahp's answer was changed at byte", claude}}},
		{name: "on-missing flipped", host: "claude-code", do: func(w *world) { w.replaceIn(claude, gate, "--on-missing deny", "--on-missing allow") },
			want: []want{{Wrong, "entry-changed", "--on-missing allow", claude}}},
		{name: "on-missing flipped everywhere", host: "claude-code", do: func(w *world) {
			w.write(w.path(claude), strings.ReplaceAll(w.read(w.path(claude)), "--on-missing deny", "--on-missing allow"))
		}, want: []want{{Wrong, "entry-changed", "the entry for PreToolUse isn't as installed: it starts", claude}, {Wrong, "entry-changed", "the entry for Stop isn't", claude}}},
		{name: "another program", host: "claude-code", do: func(w *world) {
			w.program(w.path("bin/evil"), "#!/bin/sh\nexit 40\n")
			w.replaceIn(claude, gate, "bin/ahp'", "bin/evil'")
		}, want: []want{{Wrong, "entry-changed", "bin/evil hook", claude}, {Wrong, "canary-passed", "ahp's log knows nothing of it", claude}}},
		{name: "twice", host: "claude-code", do: func(w *world) {
			w.edit(w.path(claude), func(d *confedit.JSON) error {
				return d.Append(d.List("hooks", gate, "0")[0].JSON, "hooks", gate)
			})
		}, want: []want{{Wrong, "entry-changed", "it is there twice", claude}}},
		{name: "exit code of a refusal", host: "claude-code", do: func(w *world) { w.replaceIn(claude, gate, "exit 2; fi", "exit 0; fi") },
			want: []want{{Wrong, "entry-changed", "was changed at byte", claude}, {Wrong, "canary-form", "isn't in the form of Claude Code", claude}}},
		{name: "deny made a pass", host: "claude-code", do: func(w *world) { w.replaceIn(claude, gate, `= 42 ]`, `= 77 ]`) },
			want: []want{{Wrong, "canary-form", "isn't in the form", claude}}},
		{name: "all becomes a pass", host: "claude-code", do: func(w *world) { w.replaceIn(claude, gate, ": ahp-line-1; ", ": ahp-line-1; exit 0; ") },
			want: []want{{Wrong, "entry-changed", "its command is another", claude}, {Wrong, "canary-passed", "ahp's log knows nothing of it", claude}}},
		{name: "matcher narrowed", host: "claude-code", do: func(w *world) { w.replaceIn(claude, gate, `"hooks": [`, `"matcher": "Bash", "hooks": [`) },
			want: []want{{Wrong, "entry-changed", `"matcher" is Bash, expected none`, claude}}},
		{name: "matcher narrowed in qwen", host: "qwen", do: func(w *world) {
			w.edit(w.path("home/.qwen/settings.json"), func(d *confedit.JSON) error { return d.Replace([]byte(`"Bash"`), "hooks", gate, "0", "matcher") })
		}, want: []want{{Wrong, "entry-changed", `"matcher" is Bash, expected *`, "home/.qwen/settings.json"}}},
		{name: "limit cut", host: "gemini", do: func(w *world) {
			w.edit(w.path("home/.gemini/settings.json"), func(d *confedit.JSON) error {
				return d.Replace([]byte(`10`), "hooks", "BeforeTool", "0", "hooks", "0", "timeout")
			})
		}, want: []want{{Wrong, "entry-changed", `"timeout" is 10, expected 60000`, "home/.gemini/settings.json"}}},
		{name: "table removed", host: "kimi", do: func(w *world) {
			w.replace(w.path("home/.kimi/config.toml"), `event = "Stop"`, `event = "Other"`)
		}, want: []want{{Wrong, "entry-missing", "left for Stop", "home/.kimi/config.toml"}}},
		{name: "bridge edited", host: "opencode", do: func(w *world) {
			w.replace(w.path("home/.config/opencode/plugin/ahp.js"), `if (reason) throw`, `if (false) throw`)
		}, want: []want{{Wrong, "bridge-changed", "isn't the one that ahp install writes", "home/.config/opencode/plugin/ahp.js:"}}},
		{name: "bridge's policy edited", host: "kilo", do: func(w *world) {
			w.replace(w.path("home/.config/kilo/plugin/ahp.js"), `"onMissing":"deny"`, `"onMissing":"allow"`)
		}, want: []want{{Wrong, "bridge-changed", `onMissing is "allow", expected "deny"`, "home/.config/kilo/plugin/ahp.js:"}}},
		{name: "bridge truncated", host: "pi", do: func(w *world) {
			path := w.path("home/.pi/agent/extensions/ahp.ts")
			if err := os.Truncate(path, 2000); err != nil {
				w.t.Fatal(err)
			}
		}, want: []want{{Wrong, "bridge-changed", "cut off after 2000 of", "home/.pi/agent/extensions/ahp.ts"}}},
		{name: "malformed", host: "claude-code", do: func(w *world) { w.replace(w.path(claude), "{", "{{") },
			want: []want{{Wrong, "config-parse", "can't read this file", claude + ":1"}, {Wrong, "canary", "no call is checked", ""}}},
	}
}

func (w *world) remove(rel string) {
	w.t.Helper()
	if err := os.Remove(w.path(rel)); err != nil {
		w.t.Fatal(err)
	}
}

// replaceIn changes a text in the line for one event.
func (w *world) replaceIn(rel, event, from, to string) {
	w.t.Helper()
	w.edit(w.path(rel), func(d *confedit.JSON) error {
		path := []string{"hooks", event, "0"}
		old := string(d.List(path...)[0].JSON)
		if !strings.Contains(old, from) {
			w.t.Fatalf("no %q in %s", from, old)
		}
		return d.Replace([]byte(strings.Replace(old, from, to, 1)), path...)
	})
}

func switchesTampered() []tampering {
	return []tampering{
		{name: "project disables all", host: "claude-code", do: func(w *world) {
			w.write(w.path("project/.claude/settings.json"), `{"disableAllHooks":true}`)
		}, want: []want{{Wrong, "switch", "disableAllHooks is true in the project configuration", "project/.claude/settings.json:1"}}},
		{name: "managed hooks only", host: "claude-code", do: func(w *world) {
			w.write(w.path("machine/etc/claude-code/managed-settings.json"), "{\n\"allowManagedHooksOnly\":true}")
		}, want: []want{{Wrong, "switch", "only managed hooks run", "machine/etc/claude-code/managed-settings.json:2"}}},
		{name: "codex features, trusted project", host: "codex", do: func(w *world) {
			w.write(w.path("project/.codex/config.toml"), "[features]\nhooks = false\n")
			w.append("home/.codex/config.toml", "\n[projects.\""+w.project+"\"]\ntrust_level = \"trusted\"\n")
		}, want: []want{{Wrong, "switch", "features.hooks is false in the project configuration", "project/.codex/config.toml:1"}}},
		{name: "codex features, dotted", host: "codex", do: func(w *world) {
			w.prepend("home/.codex/config.toml", "features.hooks = false\n")
		}, want: []want{{Wrong, "switch", "features.hooks is false in the user configuration", "home/.codex/config.toml"}}},
		{name: "codex features, project that isn't trusted", host: "codex", mild: true, do: func(w *world) {
			w.write(w.path("project/.codex/config.toml"), "[features]\nhooks = false\n")
		}, want: []want{{Warning, "switch", "this project isn't trusted so far", "project/.codex/config.toml:1"}}},
		{name: "codex features, pinned", host: "codex", mild: true, do: func(w *world) {
			w.prepend("home/.codex/config.toml", "features.hooks = false\n")
			w.write(w.path("machine/etc/codex/requirements.toml"), "[features]\nhooks = true\n")
		}, want: []want{{Note, "switch", "pins it to true", "home/.codex/config.toml"}}},
		{name: "codex hash stale", host: "codex", do: func(w *world) {
			w.replace(w.path("home/.codex/config.toml"), `trusted_hash = "sha256:`, `trusted_hash = "sha256:0`)
		}, want: []want{{Wrong, "codex-trust", "trusted_hash is of another hook", "home/.codex/config.toml"}}},
		{name: "codex trust gone", host: "codex", do: func(w *world) { w.remove("home/.codex/config.toml") },
			want: []want{{Wrong, "codex-trust", "nobody has trusted them: Interrupt,", "home/.codex/hooks.json"}}},
		{name: "codex one hook off", host: "codex", do: func(w *world) {
			w.replace(w.path("home/.codex/config.toml"), `trusted_hash =`, "enabled = false\ntrusted_hash =")
		}, want: []want{{Wrong, "switch", "enabled = false switches AHP's hook off for", "home/.codex/config.toml"}}},
		{name: "gemini off", host: "gemini", do: func(w *world) {
			w.write(w.path("project/.gemini/settings.json"), "{\n // off\n \"hooksConfig\":{\"enabled\":false},}")
		}, want: []want{{Wrong, "switch", "hooksConfig.enabled is false", "project/.gemini/settings.json:3"}}},
		{name: "gemini list", host: "gemini", do: func(w *world) {
			w.write(w.path("project/.gemini/settings.json"), `{"hooksConfig":{"disabled":["other","ahp"]}}`)
		}, want: []want{{Wrong, "switch", "hooksConfig.disabled is", "project/.gemini/settings.json:1"}}},
		{name: "qwen off", host: "qwen", do: func(w *world) {
			w.write(w.path("project/.qwen/settings.json"), `{"disableAllHooks":true}`)
		}, want: []want{{Wrong, "switch", "disableAllHooks is true", "project/.qwen/settings.json:1"}}},
		{name: "copilot off", host: "copilot", do: func(w *world) {
			w.write(w.path("project/.github/copilot/settings.json"), `{"disableAllHooks":true}`)
		}, want: []want{{Wrong, "switch", "no user or repository hook runs", "project/.github/copilot/settings.json:1"}}},
		{name: "a variable", host: "opencode", do: func(w *world) { w.o.Environ = append(w.o.Environ, "OPENCODE_PURE=1") },
			want: []want{{Wrong, "switch", "OPENCODE_PURE is set", ""}}},
		{name: "the project's word beats the user's", host: "claude-code", mild: true, do: func(w *world) {
			w.edit(w.path(claude), func(d *confedit.JSON) error { return d.Set([]byte("true"), "disableAllHooks") })
			w.write(w.path("project/.claude/settings.json"), `{"disableAllHooks":false}`)
		}, want: []want{{Warning, "switch", "says false, which holds here", claude}}},
		{name: "a switch that stops others", host: "copilot", mild: true, do: func(w *world) {
			w.write(w.path("machine/etc/github-copilot/managed-settings.json"), `{"allowManagedHooksOnly":true}`)
		}, want: []want{{Note, "switch", "not those of the user scope", "machine/etc/github-copilot/managed-settings.json:1"}}},
		{name: "a switch that does nothing", host: "droid", mild: true, do: func(w *world) {
			w.write(w.path("project/.factory/settings.json"), `{"hooksDisabled":true}`)
		}, want: []want{{Warning, "switch", "measured to do nothing", "project/.factory/settings.json:1"}}},
		{name: "another hook", host: "claude-code", mild: true, do: func(w *world) {
			w.write(w.path("project/.claude/settings.json"), `{"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"rewriter --token abcdefgh12345"}]}]}}`)
		}, want: []want{{Note, "other-hook", "runs at PreToolUse and can change the call that AHP judged: rewriter", "project/.claude/settings.json:1"}}},
		{name: "a later hook in qwen", host: "qwen", mild: true, do: func(w *world) {
			w.edit(w.path("home/.qwen/settings.json"), func(d *confedit.JSON) error {
				return d.Append([]byte(`{"hooks":[{"type":"command","command":"allow-all"}]}`), "hooks", gate)
			})
		}, want: []want{{Warning, "later-hook", "allow-all", "home/.qwen/settings.json:"}}},
		{name: "another plugin", host: "opencode", mild: true, do: func(w *world) {
			w.write(w.path("project/.opencode/plugin/x.js"), "export const x = 1\n")
		}, want: []want{{Note, "other-hook", "another plugin", "project/.opencode/plugin/x.js"}}},
	}
}

func (w *world) append(rel, text string) {
	w.t.Helper()
	w.write(w.path(rel), w.read(w.path(rel))+text)
}

func (w *world) prepend(rel, text string) {
	w.t.Helper()
	w.write(w.path(rel), text+w.read(w.path(rel)))
}

func TestTampering(t *testing.T) {
	t.Parallel()
	for _, c := range append(entriesTampered(), switchesTampered()...) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.install(c.host, hostconf.User)
			c.do(w) // TestHealthy holds that nothing is wrong before
			r := w.run(c.host)
			if r.Wrong == c.mild {
				t.Errorf("wrong is %v", r.Wrong)
			}
			w.wants(r, c.want...)
			if text := r.Text(true); strings.Contains(text, "abcdefgh12345") {
				t.Errorf("a secret is shown: %s", text)
			}
		})
	}
}

// TestManagedPin: a project could switch off what requirements.toml doesn't pin.
func TestManagedPin(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.install("codex", hostconf.Managed)
	pin := filepath.Join("machine", "etc", "codex", "requirements.toml")
	w.remove(pin)
	w.write(w.path("project/.codex/config.toml"), "[features]\nhooks = false\n")
	w.wants(w.run(), want{Wrong, "requirements", "a project can switch managed hooks off", pin}, want{Warning, "switch", "managed ones neither", "project/.codex/config.toml"})
}

// TestUntrustedProject: Codex reads nothing of a project that it doesn't trust.
func TestUntrustedProject(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.install("codex", hostconf.Project)
	w.wants(w.run(), want{Wrong, "folder-trust", `trust_level is ""`, ""}, want{Wrong, "codex-trust", "nobody has trusted them", "project/.codex/hooks.json"})
	w.trustProject()
	if r := w.run(); r.Wrong {
		t.Errorf("once trusted: %s", r.Text(true))
	}
}

// TestOtherHostsFiles: Cursor runs Claude Code's hooks too.
func TestOtherHostsFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.install("claude-code", hostconf.User)
	if r := w.run(); len(r.find("", "two-lines")) > 0 || strings.Contains(r.Text(true), "cursor") {
		t.Errorf("Cursor isn't installed: %s", r.Text(true))
	}
	w.install("cursor", hostconf.User)
	w.o.Environ = append(w.o.Environ, "COPILOT_CLI=1", "CURSOR_VERSION=1") // the doctor may run inside an agent
	r := w.run()
	w.wants(r, want{Note, "two-lines", "Cursor runs the hooks of claude-code too", claude})
	if r.Wrong || len(r.find(Note, "two-lines")) != 1 || len(r.find(OK, "canary")) != 2 {
		t.Errorf("%s", r.Text(true))
	}
	w.replace(w.path(claude), "{", "{{")
	w.wants(w.run("cursor"), want{Warning, "config-parse", "a file of claude-code, which Cursor reads too", claude})
}
