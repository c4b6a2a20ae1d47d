package selfprotect_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/selfprotect"
	"github.com/abhed/abhed/internal/strictjson"
)

// world is a home and a project, each with what hosts and AHP keep there.
type world struct {
	home, project string
	set           *selfprotect.Set
}

const evilPatch = "--- a/.claude/settings.json\n+++ b/.claude/settings.json\n@@ -1 +1 @@\n-{}\n+{\"disableAllHooks\":true}\n"

// worldFiles are the files of a world, relative to its base.
var worldFiles = map[string]string{
	"home/.claude/settings.json": "{}\n", "home/.claude/skills/x.md": "x", "home/.codex/config.toml": "", "home/.config/ahp/registration.json": "{}",
	"home/.local/state/ahp/trust.json": "{}", "home/.gemini/settings.json": "{}", "home/bin/ahp": "", "home/rules.json": "{}",
	"home/.config/opencode/plugin/ahp.js": "", "home/.config/app/x": "",
	"project/.claude/settings.json": "{}\n", "project/.ahp/registration.json": "{}", "project/crush.json": "{}", "project/sub/x": "", "project/x.json": "{}",
	"project/settings.json": "{}", "project/src/settings.json": "{}", "project/evil/.claude/settings.json": "{}", "project/evil/settings.json": "{}",
	"project/evil.patch": evilPatch, "project/good.patch": "--- a/x.json\n+++ b/x.json\n@@ -1 +1 @@\n-{}\n+{ }\n", "project/build/x": "", "project/skill.md": "",
	"project/off.json": "{\"disableAllHooks\": true}", "home/.local/state/ahp/pid": "1",
}

func makeWorld(t testing.TB) *world {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	fill(t, base)
	w := &world{home: base + "/home", project: base + "/project"}
	w.set = selfprotect.New(selfprotect.Options{
		Home: w.home, Binaries: []string{w.home + "/bin/ahp"}, Rules: []string{w.home + "/rules.json"},
		Registrations: []string{w.home + "/.config/ahp/registration.json"},
	})
	return w
}

// fill makes the files of a world and the links in it.
func fill(t testing.TB, base string) {
	t.Helper()
	for name, text := range worldFiles {
		file := filepath.Join(base, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{"link": base + "/home/.claude", "file-link": base + "/home/.claude/settings.json"} {
		if err := os.Symlink(target, base+"/project/"+link); err != nil {
			t.Fatal(err)
		}
	}
}

// fillIn replaces the marks of the tables.
func (w *world) fillIn(s string) string {
	return strings.NewReplacer("@H", w.home, "@P", w.project, "⏎", "\n").Replace(s)
}

// event returns the event of a tool call of a host.
func (w *world) event(t testing.TB, tool string, input any) *ahp.Event {
	t.Helper()
	raw, err := strictjson.Marshal(input)
	if err != nil {
		t.Fatal(err)
	}
	return &ahp.Event{
		ID: "e1", Source: "https://example.com/h", Type: ahp.ToolBefore,
		Session: &ahp.Session{ID: "s", Cwd: w.project, WorkspaceRoots: []string{w.project}},
		Tool:    &ahp.Tool{Name: tool, Input: raw, Origin: ahp.OriginNative},
	}
}

// judge returns the reason of a denial, or "".
func (w *world) judge(t testing.TB, e *ahp.Event) string {
	t.Helper()
	out, err := w.set.Intercept(context.Background(), &ahp.Intercept{Event: e, Capabilities: *ahp.NewCapabilities(e.Type, ahp.EffectDeny)})
	if err != nil {
		t.Fatal(err)
	}
	if len(out) == 0 {
		return ""
	}
	deny, is := out[0].(*ahp.Deny)
	if !is || len(out) != 1 || deny.Code != selfprotect.Code || deny.Reason == "" {
		t.Fatalf("effects = %#v, want one denial with the code and a reason", out)
	}
	return deny.Reason
}

func (w *world) command(t testing.TB, command string) string {
	t.Helper()
	return w.judge(t, w.event(t, "Bash", map[string]any{"command": command}))
}

// lines returns the commands of a table.
func lines(t testing.TB, name string) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for line := range strings.SplitSeq(string(data), "\n") {
		if line != "" && !strings.HasPrefix(line, "# ") {
			out = append(out, line)
		}
	}
	return out
}

func TestDeniedCommands(t *testing.T) {
	w := makeWorld(t)
	table := lines(t, "denied.txt")
	if len(table) < 150 {
		t.Fatalf("%d commands, want at least 150", len(table))
	}
	for _, line := range table {
		if w.command(t, w.fillIn(line)) == "" {
			t.Errorf("not denied: %s", line)
		}
	}
}

func TestAllowedCommands(t *testing.T) {
	w := makeWorld(t)
	table := lines(t, "allowed.txt")
	if len(table) < 60 {
		t.Fatalf("%d commands, want at least 60", len(table))
	}
	for _, line := range table {
		if why := w.command(t, w.fillIn(line)); why != "" {
			t.Errorf("denied: %s\n\t%s", line, why)
		}
	}
}
