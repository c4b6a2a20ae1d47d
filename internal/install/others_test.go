package install

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/abhed/abhed/ahp/adapter/hosts"
	"github.com/abhed/abhed/internal/hostconf"
)

// A group that somebody moved our hook into loses our hook alone.
func TestMovedIntoAGroup(t *testing.T) {
	t.Parallel()
	w := newWorld(t, hostconf.User)
	path := filepath.Join(w.o.Roots.Home, ".claude/settings.json")
	line, err := Line(Call{Binary: "/old/ahp", Host: "claude-code", OnMissing: Deny, LimitMS: 1}, hosts.Lookup("claude-code"), "PreToolUse")
	if err != nil {
		t.Fatal(err)
	}
	w.write(t, path, `{"hooks":{"PreToolUse":[{"matcher":"Bash","hooks":[{"type":"command","command":"theirs"},{"type":"command","command":`+text(line)+`}]}]}}`)
	w.install(t, "claude-code")
	if got := read(t, path); strings.Contains(got, "/old/ahp") || strings.Count(got, `"theirs"`) != 1 || !strings.Contains(got, "it'\\\\''s ahp") {
		t.Error(got)
	}
	w.uninstall(t, "claude-code")
	if diff := cmp.Diff(`{"hooks":{"PreToolUse":[{"matcher":"Bash","hooks":[{"type":"command","command":"theirs"}]}]}}`, read(t, path)); diff != "" {
		t.Error(diff)
	}
}

func TestForeignFilesInOurPlace(t *testing.T) {
	t.Parallel()
	w := newWorld(t, hostconf.User)
	theirs := filepath.Join(w.o.Roots.Home, ".config/opencode/plugin/ahp.js")
	w.write(t, theirs, "export default 1")
	h, _ := hostconf.Lookup("opencode")
	if _, err := Install(h, hosts.Lookup("opencode"), w.o); err == nil || !strings.Contains(err.Error(), theirs) {
		t.Errorf("%v", err)
	}
	script := filepath.Join(w.o.Roots.Home, ".cline/hooks/PreToolUse")
	w.write(t, script, "#!/bin/sh\necho theirs\n")
	w.install(t, "cline")
	if read(t, script) != "#!/bin/sh\necho theirs\n" || !isScript([]byte(read(t, script+".sh"))) {
		t.Error("ours did not take the other name")
	}
	w.uninstall(t, "cline")
	if _, err := os.Stat(script + ".sh"); err == nil || read(t, script) == "" {
		t.Error("uninstall took the wrong one")
	}
}

func TestLinksOutOfTheProject(t *testing.T) {
	t.Parallel()
	for name, link := range map[string][2]string{
		"folder":   {".claude", "../elsewhere"},
		"file":     {".claude/settings.json", "../../elsewhere/settings.json"},
		"dangling": {".claude/settings.json", "../../elsewhere/new.json"},
	} {
		w := newWorld(t, hostconf.Project)
		w.write(t, filepath.Join(w.dir, "elsewhere/settings.json"), "{}")
		at := filepath.Join(w.o.Roots.Project, link[0])
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(link[1], at); err != nil {
			t.Fatal(err)
		}
		h, _ := hostconf.Lookup("claude-code")
		_, err := Install(h, hosts.Lookup("claude-code"), w.o)
		if err == nil || !strings.Contains(err.Error(), at) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// In the home a link to another folder is a habit of many.
	w := newWorld(t, hostconf.User)
	dotfile := filepath.Join(w.dir, "dotfiles/settings.json")
	w.write(t, dotfile, "{}")
	link := filepath.Join(w.o.Roots.Home, ".claude/settings.json")
	w.write(t, link+".x", "")
	if err := os.Symlink(dotfile, link); err != nil {
		t.Fatal(err)
	}
	w.install(t, "claude-code")
	if info, err := os.Lstat(link); err != nil || info.Mode()&fs.ModeSymlink == 0 || !strings.Contains(read(t, dotfile), "ahp-line") {
		t.Errorf("%v, %v", info, err)
	}
	w.uninstall(t, "claude-code")
	if read(t, dotfile) != "{}" {
		t.Errorf("%q", read(t, dotfile))
	}
}

func TestBackup(t *testing.T) {
	t.Parallel()
	w := newWorld(t, hostconf.User)
	path := filepath.Join(w.o.Roots.Home, ".claude/settings.json")
	w.write(t, path, `{"a":1}`)
	w.install(t, "claude-code")
	dir := recordDir("claude-code", w.o)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	copies := 0
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || info.Mode() != 0o600 {
			t.Errorf("%s: %v, %v", e.Name(), info.Mode(), err)
		}
		if bytes.Equal([]byte(read(t, filepath.Join(dir, e.Name()))), []byte(`{"a":1}`)) {
			copies++
			if err := os.WriteFile(filepath.Join(dir, e.Name()), []byte("tampered"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if info, err := os.Stat(dir); copies != 1 || err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%d copies, %v, %v", copies, info, err)
	}
	// A backup that was changed is not put back.
	p := w.uninstall(t, "claude-code")
	if read(t, path) != `{"a":1}` || !slices.ContainsFunc(p.Remains, func(s string) bool { return strings.Contains(s, "backup is missing or was changed") }) {
		t.Errorf("%q, %q", read(t, path), p.Remains)
	}
}

// Another host's event in a host's file is named, with file, line and key.
func TestForeignEventIsNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, hostconf.User)
	path := filepath.Join(w.o.Roots.Home, ".gemini/settings.json")
	w.write(t, path, "{\"hooks\": {\n  \"PreToolUse\": [],\n  \"BeforeTool\": [],\n  \"BeforeToolSelection\": []}}")
	p := w.install(t, "gemini")
	want := []string{path + ":2: hooks.PreToolUse is an event of claude-code and none of gemini: what is registered there never runs"}
	if diff := cmp.Diff(want, p.Remains); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// What somebody did to our entries is put right by installing again.
func TestInstallRepairs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, hostconf.User)
	w.install(t, "cline")
	script := filepath.Join(w.o.Roots.Home, ".cline/hooks/PreToolUse")
	if err := os.Chmod(script, 0o644); err != nil {
		t.Fatal(err)
	}
	if p := w.install(t, "cline"); !p.Changes() || !strings.Contains(p.Diff(), "mode -rwxr-xr-x") {
		t.Errorf("a script that can't be started: %q", p.Diff())
	}
	if info, err := os.Stat(script); err != nil || info.Mode() != 0o755 {
		t.Errorf("%v, %v", info, err)
	}
	w.install(t, "crush")
	path := filepath.Join(w.o.Roots.Home, ".config/crush/crush.json")
	once := read(t, path)
	entry := once[strings.Index(once, "[")+1 : strings.LastIndex(once, "]")]
	for name, damage := range map[string]string{
		"twice":      strings.Replace(once, "[", "["+entry+",", 1),
		"policy":     strings.Replace(once, "--on-missing deny", "--on-missing allow", 1),
		"limit":      strings.Replace(once, `"timeout": 60`, `"timeout": 1`, 1),
		"matcher":    strings.Replace(once, `"timeout": 60`, `"timeout": 60, "matcher": "x"`, 1),
		"cut short":  strings.Replace(once, "; exit 2", "", 1),
		"other path": strings.Replace(once, "/opt/", "/tmp/", 1),
	} {
		w.write(t, path, damage)
		w.install(t, "crush")
		if name == "twice" {
			if n := strings.Count(read(t, path), "ahp-line"); n != 1 {
				t.Errorf("%s: %d entries", name, n)
			}
		} else if diff := cmp.Diff(once, read(t, path)); diff != "" || damage == once {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
	w.uninstall(t, "crush")
	if _, err := os.Stat(filepath.Dir(path)); err == nil {
		t.Error("what was made for the file stays")
	}
}
