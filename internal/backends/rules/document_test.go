package rules_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/abhed/abhed/internal/backends/rules"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestDocumentErrors holds that what is wrong with a file is said with its place.
func TestDocumentErrors(t *testing.T) {
	for text, want := range map[string]string{
		``:                             "f.json:1:1: ",
		`{}`:                           `f.json:1:1: no member "rules"`,
		`[1]`:                          "f.json:1:1: ",
		"{\"rules\":{\n \"dney\":[]}}": `f.json:2:`,
		"{\"rules\":{\"deny\":[],\n\"deny\":[]}}":                    "f.json:2:",
		"{\"rules\":{\"deny\":[\n\"bash\",\n7]}}":                    "f.json:3:",
		"{\"rules\":{\"deny\":[\n/* \"bash\"]}}":                     "f.json:2:1: a comment that never ends",
		"{\"rules\":{\"deny\":[\n\n  \"bash(git push*\"]}}":          `f.json:3:3 rules.deny[0]: error: deny rule "bash(git push*"`,
		"{\"rules\":{\"ask\":[\"*\",\n\"read(a/../b)\"]}}":           `f.json:2:1 rules.ask[1]: error`,
		"{\"rules\":{\"allow\":[\"b*h\"]}}":                          "rules.allow[0]: error",
		"{\"rules\":{\"deny\":[\"mcp__x\"]}}":                        "rules.deny[0]: error",
		"{\"rules\":{\"deny\":[\"read(~/.ssh/**)\",\n\"todo(x)\"]}}": "f.json:1:19 rules.deny[0]: error: rule \"read(~/.ssh/**)\": the home directory is unknown",
	} {
		d, err := rules.Parse("f.json", []byte(text))
		if err == nil {
			_, _, err = rules.New(d, rules.Options{})
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngot  %v\nwant %s", text, err, want)
		}
	}
	if _, err := rules.ReadFile(filepath.Join(t.TempDir(), "none.json")); err == nil {
		t.Error("a missing file was read")
	}
	big := filepath.Join(t.TempDir(), "big.json")
	if err := os.WriteFile(big, make([]byte, 1<<20+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := rules.ReadFile(big); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("a file beyond the bound: %v", err)
	}
}

// TestWarnings holds that a name which isn't Abhed's is a warning, and that the rule
// stays in force.
func TestWarnings(t *testing.T) {
	d, err := rules.Parse("f.json", []byte("\xef\xbb\xbf{\"rules\":{\"deny\":[\"Bash(git push*)\", \"invented\", \"mcp__s__*\", \"bash(x)\"]}}"))
	if err != nil {
		t.Fatal(err)
	}
	b, warnings, err := rules.New(d, rules.Options{Home: "/home/x", Getenv: func(string) string { return "" }})
	if err != nil || len(warnings) != 2 || !strings.Contains(warnings[0], `own name for bash`) || !strings.Contains(warnings[1], `no agent is known to have a tool "invented"`) {
		t.Errorf("%q, %v", warnings, err)
	}
	root := t.TempDir()
	for _, tt := range []struct{ tool, want string }{{"Bash", "deny"}, {"run_shell_command", "none"}, {"invented", "deny"}} {
		if got, reason := answer(t, b, call(root, tt.tool, `{"command":"git push"}`)); got != tt.want {
			t.Errorf("%s: %s (%s)", tt.tool, got, reason)
		}
	}
	if m := b.Manifest(); len(m.Events) != 1 {
		t.Errorf("%+v", m)
	}
}

func TestRulesThatEverybodyCanWrite(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rules.json")
	if err := os.WriteFile(file, []byte(`{"rules":{}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for mode, ok := range map[os.FileMode]bool{0o600: true, 0o664: true, 0o666: false, 0o602: false} {
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := rules.ReadFile(file); (err == nil) != ok {
			t.Errorf("mode %v: %v", mode, err)
		}
	}
}
