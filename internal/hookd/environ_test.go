package hookd_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abhed/abhed/internal/hookd"
)

// TestTheAgentsPathChoosesNoBackend holds that a program which a repository puts into the
// agent's PATH isn't taken for the backend of that name, and that a backend finds its own
// files in the account's home.
func TestTheAgentsPathChoosesNoBackend(t *testing.T) {
	w := newWorld(t, hookd.Options{})
	script := func(dir, name, effects string) {
		write(t, filepath.Join(dir, name), fmt.Sprintf(`#!/bin/sh
printf '%%s\n' "$HOME $XDG_CONFIG_HOME" >> %q
while read -r line; do
	id=$(printf '%%s' "$line" | sed 's/.*"jsonrpc":"2.0","id":"\([^"]*\)".*/\1/')
	printf '{"jsonrpc":"2.0","id":"%%s","result":{"protocolVersion":"draft","effects":[%s]}}\n' "$id"
done
`, w.notes, effects))
		if err := os.Chmod(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	repo, own := filepath.Join(w.home, "repo", "node_modules", ".bin"), filepath.Join(w.home, ".local", "bin")
	script(repo, "com-example-policy", "")
	script(own, "com-example-policy", `{"type":"deny","reason":"not in this house"}`)
	t.Setenv("PATH", repo+":"+os.Getenv("PATH"))
	t.Setenv("HOME", filepath.Dir(repo))
	t.Setenv("XDG_CONFIG_HOME", repo)
	for _, lifecycle := range []string{"persistent", "per_event"} {
		document := w.document(hook{mode: "deny", policy: "fail-open"})
		document = strings.Replace(document, fmt.Sprintf("%q", exe(t)), `"com-example-policy"`, 1)
		w.register(strings.Replace(document, "persistent", lifecycle, 1))
		if a := w.do(hookd.Call{Data: bash("s", "t"+lifecycle, w.home, "echo hi")}); a.Code != hookd.ExitDeny || !strings.Contains(said(a), "not in this house") {
			t.Errorf("%s: %d %s; in the log: %+v", lifecycle, a.Code, said(a), w.last().Answers)
		}
	}
	if got := strings.TrimSpace(strings.ReplaceAll(w.noted(), w.home+" \n", "")); got != "" {
		t.Errorf("a backend's home and configuration are %q, expected %q and none", got, w.home)
	}
}

// TestAnotherProgramsRules holds that a backend which is called like this program's rules
// is started, and not taken for them.
func TestAnotherProgramsRules(t *testing.T) {
	w := newWorld(t, hookd.Options{})
	dir := filepath.Join(w.home, ".config", "ahp")
	write(t, filepath.Join(dir, "rules.json"), `{"rules":{"deny":["bash(nothing*)"]}}`)
	program := filepath.Join(dir, "ahp")
	write(t, program, `#!/bin/sh
while read -r line; do
	id=$(printf '%s' "$line" | sed 's/.*"jsonrpc":"2.0","id":"\([^"]*\)".*/\1/')
	printf '{"jsonrpc":"2.0","id":"%s","result":{"protocolVersion":"draft","effects":[{"type":"deny","reason":"not in this house"}]}}\n' "$id"
done
`)
	if err := os.Chmod(program, 0o700); err != nil {
		t.Fatal(err)
	}
	w.register(strings.Replace(rulesDocument(t, "rules.json"), fmt.Sprintf("%q", exe(t)), `"./ahp"`, 1))
	if a := w.do(hookd.Call{Data: bash("s", "t", w.home, "echo hi")}); a.Code != hookd.ExitDeny || !strings.Contains(said(a), "not in this house") {
		t.Errorf("%d %s; in the log: %+v", a.Code, said(a), w.last().Answers)
	}
}
