package policy

import (
	"errors"
	"os"
	"strings"
	"testing"
)

func link(t *testing.T, target, name string) {
	t.Helper()
	if err := os.Symlink(target, name); err != nil {
		t.Fatal(err)
	}
}

func TestResolve(t *testing.T) {
	w := newWorld(t)
	if err := os.WriteFile(w.root+"/file", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	link(t, "sub/deep", w.root+"/into")
	link(t, "/etc", w.root+"/etc")
	link(t, "loop2", w.root+"/loop1")
	link(t, "loop1", w.root+"/loop2")
	link(t, "gone/x", w.root+"/dangling")
	link(t, "../home", w.root+"/up")
	link(t, ".", w.root+"/self")
	for _, c := range []struct{ given, place, anchor string }{
		{"file", w.root + "/file", w.root},
		{"./file", w.root + "/file", w.root},
		{"sub/../file", w.root + "/file", w.root},
		{"into/../x", w.root + "/sub/x", w.root + "/sub"}, // the kernel resolves the link first
		{"etc/passwd", "/etc/passwd", "/etc"},
		{"etc", "/etc", "/"},
		{"new/dir/x", w.root + "/new/dir/x", w.root},
		{"dangling", w.root + "/gone/x", w.root},
		{"up/.ssh/id", w.home + "/.ssh/id", w.home + "/.ssh"},
		{"self/self/self/file", w.root + "/file", w.root},
		{"~/x", w.home + "/x", w.home},
		{"~", w.home, w.base},
		{"~x", w.root + "/~x", w.root},
		{"/", "/", "/"},
		{"/..", "/", "/"},
		{"//etc//passwd", "/etc/passwd", "/etc"},
		{"../../../../../../../../../../etc/passwd", "/etc/passwd", "/etc"},
		{"sub/", w.root + "/sub", w.root},
		{"file/", w.root + "/file", w.root},
	} {
		f, err := Resolve(w.root, c.given, w.home)
		if err != nil {
			t.Errorf("%q: %v", c.given, err)
			continue
		}
		if f.Given != c.given || f.Place.Path != c.place || f.Place.Anchor != c.anchor {
			t.Errorf("%q: got %q in %q, want %q in %q", c.given, f.Place.Path, f.Place.Anchor, c.place, c.anchor)
		}
		if a := lstat(c.anchor); f.Place.Dev != a.dev || f.Place.Ino != a.ino || a.ino == 0 {
			t.Errorf("%q: device and inode aren't those of %q", c.given, c.anchor)
		}
	}
	for given, want := range map[string]string{
		"": "empty", "a\x00b": "NUL", "loop1": "loop", "loop1/x": "loop", "file/x": "not a directory", "file/..": "not a directory", "gone/../file": "does not exist", "dangling/../x": "does not exist",
		strings.Repeat("a/", 3000): "at most", strings.Repeat("a", 300): "longer than 255",
	} {
		_, err := Resolve(w.root, given, w.home)
		var pe *PathError
		if !errors.As(err, &pe) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: got %v, want %q", given, err, want)
		}
	}
	if _, err := Resolve("rel", "x", ""); err == nil || !strings.Contains(err.Error(), "not absolute") {
		t.Errorf("relative workdir: %v", err)
	}
	if _, err := Resolve("/", "~/x", ""); err == nil || !strings.Contains(err.Error(), "not known") {
		t.Errorf("unknown home: %v", err)
	}
	if _, err := os.Lstat("/proc/self/cwd"); err == nil {
		for _, p := range []string{"/proc/self/cwd/x", "/proc/self/root/etc/shadow", "/proc/self/fd/0", "/dev/stdin", "/proc/thread-self/cwd"} {
			if f, err := Resolve(w.root, p, ""); err == nil {
				t.Errorf("%q resolves to %q", p, f.Place.Path)
			}
		}
	}
}

func TestPathRules(t *testing.T) {
	w := newWorld(t)
	link(t, w.home, w.root+"/out")
	link(t, "sub", w.root+"/alias")
	link(t, w.root, w.base+"/other")
	deny := rules(t, "deny read(sub/secret)", "deny read(~/.ssh/**)", "deny read(**/.env)", "deny write(/etc/**)", "allow write(sub/**)", "allow read(~/notes/*)")
	for _, c := range []struct {
		tool, path string
		want       Verdict
	}{
		{"read", "sub/secret", Deny}, {"read", "./sub/../sub/secret", Deny}, {"read", "alias/secret", Deny}, {"read", w.base + "/other/sub/secret", Deny}, {"read", w.root + "/sub/secret", Deny}, {"read", "sub/secre", Allow},
		{"read", "out/.ssh/id", Deny}, {"read", "~/.ssh/id", Deny}, {"read", w.home + "/.ssh/id", Deny}, {"read", "out/x", Ask}, {"read", "~/notes/x", Allow}, {"read", "~/notes/x/y", Ask}, {"read", "~/notes/../.ssh/x", Deny},
		{"read", ".env", Deny}, {"read", "a/b/.env", Deny}, {"read", "out/.env", Deny}, {"read", w.home + "/.env", Ask}, {"read", ".environment", Allow}, {"read", `web\cfg\.env`, Deny}, {"read", `.\.env`, Deny}, {"read", `D:\p\.env`, Deny}, {"read", `\\?\D:\p\.env`, Deny}, {"read", `a\b`, Allow},
		{"write", "/etc/x", Deny}, {"write", "../../../../../../../../../etc/x", Deny}, {"write", "sub/x", Allow}, {"write", "alias/x", Allow}, {"write", "sub/../x", Ask}, {"write", "out/x", Ask},
		{"read", "loop", Allow}, {"read", "", Deny}, {"read", "x\x00y", Deny}, {"read", "/proc/self/root/etc/hosts", Deny},
	} {
		check(t, deny, w.file(ModeDefault, c.tool, c.path), c.want, "")
	}
	// An allow rule about a link is about where it lands.
	link(t, "/etc/passwd", w.root+"/sub/link")
	check(t, deny, w.file(ModeDefault, "write", "sub/link"), Deny, StepDenyRule)
	link(t, w.home+"/x", w.root+"/sub/link2")
	check(t, deny, w.file(ModeDefault, "write", "sub/link2"), Ask, StepDefault)
	check(t, deny, w.file(ModeAcceptEdits, "write", "sub/link2"), Ask, StepDefault)
	check(t, rules(t, "deny read(sub/link)"), w.file(ModeDefault, "read", "sub/link"), Deny, StepDenyRule)
	// A root that is given by way of a link is the same root.
	in := w.file(ModeDefault, "read", "sub/x")
	in.Call.Roots, in.Call.WorkDir = []string{w.base + "/other"}, w.base+"/other"
	check(t, deny, in, Allow, StepDefault)
	in.Declaration.Subject = "sub/secret"
	check(t, deny, in, Deny, StepDenyRule)
}

// TestBracesInPaths holds that escaped braces are those of a name.
func TestBracesInPaths(t *testing.T) {
	w := newWorld(t)
	rs := rules(t, `deny read(\{a,b\})`, `deny read(sub/\{a,b\}/**)`)
	check(t, rs, w.file(ModeBypass, "read", "{a,b}"), Deny, StepDenyRule)
	check(t, rs, w.file(ModeBypass, "read", "sub/{a,b}/x"), Deny, StepDenyRule)
	check(t, rs, w.file(ModeBypass, "read", "a"), Allow, StepMode)
	check(t, rs, w.bash(ModeBypass, "cat '{a,b}'"), Deny, StepDenyRule)
	check(t, rs, w.bash(ModeBypass, "cat {a,b}"), Allow, StepMode)
}

// TestUnicodePaths covers case I081.
func TestUnicodePaths(t *testing.T) {
	w := newWorld(t)
	rs := rules(t, "deny read(/d/caf\u00e9.txt)", "deny read(na\u0308me)")
	check(t, rs, w.file(ModeBypass, "read", "/d/cafe\u0301.txt"), Deny, StepDenyRule)
	check(t, rs, w.file(ModeBypass, "read", "/d/caf\u00e9.txt"), Deny, StepDenyRule)
	check(t, rs, w.file(ModeBypass, "read", "n\u00e4me"), Deny, StepDenyRule)
	check(t, rs, w.bash(ModeBypass, "cat /d/cafe\u0301.txt"), Deny, StepDenyRule)
	check(t, rs, w.file(ModeBypass, "read", "/d/cafe.txt"), Allow, StepMode)
}

func TestProtected(t *testing.T) {
	w := newWorld(t)
	link(t, ".git/hooks", w.root+"/h")
	rs := rules(t, "allow *")
	for _, c := range []struct {
		in   Input
		want Verdict
	}{
		{w.file(ModeBypass, "write", ".git/hooks/pre-commit"), Deny}, {w.file(ModeBypass, "edit", "h/pre-commit"), Deny}, {w.file(ModeBypass, "write", ".git/config"), Deny}, {w.file(ModeBypass, "write", ".git/configx"), Allow},
		{w.file(ModeBypass, "read", ".git/config"), Allow}, {w.file(ModeBypass, "read", "~/key"), Deny}, {w.file(ModeBypass, "edit", "~/key"), Deny},
		{w.bash(ModeBypass, "echo x > .git/hooks/x"), Deny}, {w.bash(ModeBypass, "cd .git && echo x >> config"), Deny}, {w.bash(ModeBypass, "cat < ~/key"), Deny}, {w.bash(ModeBypass, "echo x > h/y"), Deny}, {w.bash(ModeBypass, "cat x > y"), Allow},
		{w.bash(ModeBypass, "sh -c 'echo x > .git/config'"), Deny}, {w.bash(ModeBypass, "{ { echo; } > .git/config; }"), Deny},
	} {
		c.in.Env.Protected = Protected{Write: []string{w.root + "/.git/hooks", w.root + "/.git/config"}, Read: []string{w.home + "/key"}}
		step := Step("")
		if c.want == Deny {
			step = StepProtected
		}
		check(t, rs, c.in, c.want, step)
	}
}

// TestCredentialFiles shows that file tools ask for credentials too.
func TestCredentialFiles(t *testing.T) {
	w := newWorld(t)
	rs := rules(t, "allow read")
	check(t, rs, w.file(ModeBypass, "read", "~/.ssh/id_rsa"), Ask, StepDestructive)
	check(t, rs, w.file(ModeBypass, "read", "~/.ssh/id_rsa.pub"), Allow, "")
	check(t, rs, w.file(ModeBypass, "read", "~/.ssh/../.aws/credentials"), Ask, StepDestructive)
}
