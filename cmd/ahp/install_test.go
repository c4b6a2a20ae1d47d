package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/abhed/abhed/internal/strictjson"
)

// installed runs one of the two commands and returns its exit code.
func installed(t *testing.T, make func(system) *cobra.Command, home, dir string, args ...string) result {
	t.Helper()
	var out, errs bytes.Buffer
	sys := system{stdin: strings.NewReader(""), stdout: &out, stderr: &errs, environ: []string{"AHP_HOME=" + home}, dir: dir}
	c := make(sys)
	c.SilenceErrors, c.SilenceUsage = true, true
	c.SetArgs(args)
	c.SetOut(&out)
	c.SetErr(&errs)
	code := sys.report(c.ExecuteContext(t.Context()))
	return result{code: code, stdout: out.String(), stderr: errs.String()}
}

func TestInstallCommand(t *testing.T) {
	t.Parallel()
	home, dir := t.TempDir(), t.TempDir()
	settings := filepath.Join(home, ".claude", "settings.json")
	if err := os.MkdirAll(filepath.Dir(settings), 0o700); err != nil {
		t.Fatal(err)
	}
	before := "{\n  \"apiKeyHelper\": \"x\",\n  \"env\": {\"MY_API_KEY\": \"sk-very-secret\"}\n}\n"
	if err := os.WriteFile(settings, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	dry := installed(t, newInstall, home, dir, "claude-code", "--dry-run")
	if !strings.Contains(dry.stdout, "to find out why") || strings.Contains(dry.stdout, "more characters)") {
		t.Errorf("--dry-run cut its lines: %s", dry.stdout)
	}
	if dry.code != exitOK || !strings.Contains(dry.stdout, "+++ "+settings) || !strings.Contains(dry.stdout, "nothing was.") || strings.Contains(dry.stdout, "sk-very-secret") {
		t.Errorf("--dry-run: %+v", dry)
	}
	if got, err := os.ReadFile(settings); err != nil || string(got) != before {
		t.Errorf("--dry-run wrote %q, %v", got, err)
	}
	if _, err := os.Stat(filepath.Join(home, ".local")); err == nil {
		t.Error("--dry-run made the state folder")
	}
	done := installed(t, newInstall, home, dir, "claude-code")
	if done.code != exitOK || !strings.Contains(done.stdout, "ahp doctor claude-code") || !strings.Contains(done.stdout, "there is no registration yet") {
		t.Errorf("%+v", done)
	}
	if !strings.Contains(done.stdout, "more characters)\n") || strings.Contains(done.stdout, "to find out why") {
		t.Errorf("the lines of shell are shown whole: %s", done.stdout)
	}
	text, err := os.ReadFile(settings)
	if err != nil || !strings.Contains(string(text), "--home "+home) || !strings.Contains(string(text), "--on-missing deny --limit 60000") {
		t.Errorf("%s, %v", text, err)
	}
	again := installed(t, newInstall, home, dir, "claude-code", "--json")
	var r installResult
	if err := strictjson.Unmarshal(bytes.TrimSpace([]byte(again.stdout)), &r, strictjson.Options{RejectUnknown: true}); err != nil || r.Changed || len(r.Files) != 1 || r.Files[0].Action != "keep" {
		t.Errorf("%+v: %v", again, err)
	}
	gone := installed(t, newUninstall, home, dir, "claude-code")
	if got, err := os.ReadFile(settings); gone.code != exitOK || err != nil || string(got) != before {
		t.Errorf("%+v: %q, %v", gone, got, err)
	}
	if twice := installed(t, newUninstall, home, dir, "claude-code"); twice.code != exitOK || !strings.Contains(twice.stdout, "Nothing of AHP") {
		t.Errorf("%+v", twice)
	}
}

func TestInstallCommandRefuses(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	bad := filepath.Join(home, ".codex", "hooks.json")
	if err := os.MkdirAll(filepath.Dir(bad), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(bad, []byte("{\n  nonsense\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		dir  string
		args []string
		code int
		want string
	}{
		{"no host", home, nil, exitUsage, "expected HOST, one of claude-code,"},
		{"unknown host", home, []string{"claud"}, exitUsage, "the host \"claud\" isn't known (did you mean claude-code?); known are claude-code,"},
		{"longer than the host", home, []string{"github-copilot"}, exitUsage, "(did you mean copilot?)"},
		{"nothing like a host", home, []string{"emacs"}, exitUsage, "the host \"emacs\" isn't known; known are"},
		{"scope", home, []string{"codex", "--scope", "me"}, exitUsage, "expected user, project or managed"},
		{"no such scope", home, []string{"openhands"}, exitUsage, "openhands has no user scope; it has --scope project"},
		{"policy", home, []string{"codex", "--on-missing", "ask"}, exitUsage, "expected deny or allow"},
		{"trust elsewhere", home, []string{"gemini", "--trust"}, exitUsage, "--trust is for codex"},
		{"relative home", home, []string{"gemini", "--home", "x"}, exitUsage, "expected an absolute path"},
		{"registration", home, []string{"gemini", "--registration", "missing.json"}, exitUsage, "missing.json"},
		{"malformed", home, []string{"codex"}, exitUsage, bad + ":2:3: "},
		{"program in the project", filepath.Dir(exe), []string{"gemini", "--scope", "project"}, exitUsage, "lies inside the project"},
	} {
		got := installed(t, newInstall, home, c.dir, c.args...)
		if got.code != c.code || !strings.Contains(got.stderr, c.want) || got.stdout != "" {
			t.Errorf("%s: %+v, want %d and %q", c.name, got, c.code, c.want)
		}
	}
	if got, err := os.ReadFile(bad); err != nil || string(got) != "{\n  nonsense\n" {
		t.Errorf("%q, %v", got, err)
	}
}

// TestInstallTwoHomes has HOME name another folder than the account's: what goes into
// the one is never read in the other.
func TestInstallTwoHomes(t *testing.T) {
	t.Parallel()
	account := accountHome()
	if account == "" {
		t.Fatal("the home of this account is unknown")
	}
	other, link := t.TempDir(), filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(account, link); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		home  string
		flags installFlags
		want  string
	}{
		{other, installFlags{scope: "user"}, "--home " + other + " or --home " + account},
		{filepath.Join(other, "none"), installFlags{scope: "user"}, "--home " + account},
		{other, installFlags{scope: "user", home: other}, ""},
		{other, installFlags{scope: "managed"}, ""},
		{account, installFlags{scope: "user"}, ""},
		{link, installFlags{scope: "user"}, ""},
		{"", installFlags{scope: "user"}, ""},
	} {
		_, err := c.flags.options(system{environ: []string{"HOME=" + c.home}})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("HOME %q, %+v: %v, want %q", c.home, c.flags, err, c.want)
		}
	}
}

// TestInstallSaysWhatCannotStart has a registration name a program that is missing.
func TestInstallSaysWhatCannotStart(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	gone := filepath.Join(home, "gone")
	for _, c := range []struct {
		command string
		told    bool
	}{{gone, true}, {exe, false}, {"sh", false}} {
		file := filepath.Join(home, "registration.json")
		text := `{"protocolVersion":"draft","hooks":[{"id":"com.example.rules","transport":{"type":"stdio","command":"` + c.command + `","lifecycle":"persistent"},
			"subscriptions":[{"events":["tool.before"],"mode":"intercept","timeoutMs":5000,"failurePolicy":"fail-closed","content":{"default":"body"}}]}]}`
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got := installed(t, newInstall, home, home, "claude-code", "--registration", file)
		told := strings.Contains(got.stdout, "To do: "+file+" registers com.example.rules, which can't be started: stat "+gone+": no such file or directory.\n")
		if got.code != exitOK || told != c.told || !c.told && strings.Contains(got.stdout, "can't be started") {
			t.Errorf("%s: %+v", c.command, got)
		}
	}
}

// TestInstallReadsRules has the rules of "ahp backend rules" be at fault.
func TestInstallReadsRules(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(home, "ahp")
	if err := os.Symlink(exe, program); err != nil {
		t.Fatal(err)
	}
	registration, file := filepath.Join(home, "registration.json"), filepath.Join(home, "policy", "rules.json")
	text := `{"protocolVersion":"draft","hooks":[{"id":"com.example.rules","transport":{"type":"stdio","command":"` + program + `","args":["backend","rules","--rules","rules.json"],"cwd":"policy","lifecycle":"persistent"},
		"subscriptions":[{"events":["tool.before"],"mode":"intercept","timeoutMs":5000,"failurePolicy":"fail-closed","content":{"default":"body"}}]}]}`
	if err := os.WriteFile(registration, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ rules, want string }{
		{"", "To do: the rules can't be used: open " + file + ": no such file or directory.\n"},
		{`{"rules":{"denny":[]}}`, "To do: the rules can't be used: " + file + `:1:11: /rules/denny: unknown member "denny"`},
		{`{"rules":{"deny":["bash(x"]}}`, "To do: the rules can't be used: " + file + ":1:19 rules.deny[0]: "},
		{`{"rules":{"deny":["Bash(x)"]}}`, "To do: " + file + `:1:19 rules.deny[0]: warning: rule "Bash(x)"`},
		{`{"rules":{"deny":["bash(x)"]}}`, ""},
	} {
		if c.rules != "" {
			if err := os.WriteFile(file, []byte(c.rules), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got := installed(t, newInstall, home, home, "claude-code", "--registration", registration)
		if got.code != exitOK || !strings.Contains(got.stdout, c.want) || strings.Contains(got.stdout, "To do: ") != (c.want != "") {
			t.Errorf("%s: %+v, want %q", c.rules, got, c.want)
		}
	}
}

// TestInstallInHomeRepository has the home be a repository, and ahp lie in a project in
// it, which is another thing.
func TestInstallInHomeRepository(t *testing.T) {
	t.Parallel()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The test binary stands for ahp: its folder is the repository.
	root := filepath.Dir(exe)
	if err := os.Mkdir(filepath.Join(root, ".git"), 0o700); err != nil && !os.IsExist(err) {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(filepath.Join(root, ".git")) })
	home, err := os.MkdirTemp(root, "home")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	for _, c := range []struct {
		home string
		code int
	}{{root, exitOK}, {home, exitUsage}, {t.TempDir(), exitUsage}} {
		if got := installed(t, newInstall, c.home, root, "gemini", "--dry-run"); got.code != c.code {
			t.Errorf("home %s: %+v, want %d", c.home, got, c.code)
		}
	}
	if got := installed(t, newInstall, root, root, "gemini", "--scope", "project", "--dry-run"); got.code != exitUsage || !strings.Contains(got.stderr, "lies inside the project") {
		t.Errorf("the project scope: %+v", got)
	}
}
