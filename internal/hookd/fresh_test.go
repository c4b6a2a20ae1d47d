package hookd_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/abhed/abhed/internal/hookd"
	"github.com/abhed/abhed/internal/hooklog"
	"github.com/abhed/abhed/internal/trust"
)

// rulesDocument registers a file of rules beside the registration.
func rulesDocument(t *testing.T, file string) string {
	return fmt.Sprintf(`{"protocolVersion":"draft","hooks":[{"id":"com.example.rules","transport":{"type":"stdio","lifecycle":"persistent","command":%q,"args":["backend","rules","--rules",%q]},`+
		`"subscriptions":[{"events":["tool.before"],"mode":"intercept","timeoutMs":9000,"failurePolicy":"fail-closed","content":{"default":"body"}}]}]}`, exe(t), file)
}

// TestAServiceNoticesChanges holds that what is kept warm goes by the files as they are,
// however they were changed.
func TestAServiceNoticesChanges(t *testing.T) {
	w := newWorld(t, hookd.Options{Mode: hooklog.ModeService})
	rules := filepath.Join(w.home, ".config", "ahp", "rules.json")
	const loose, strict = `{"rules":{"deny":["bash(ecko*)"]}}`, `{"rules":{"deny":["bash(echo*)"]}}`
	w.register(rulesDocument(t, "rules.json"))
	n := 0
	ask := func(what string, want int) {
		t.Helper()
		n++
		if a := w.do(hookd.Call{Data: bash("s", fmt.Sprint(n), w.home, "echo hi")}); a.Code != want {
			t.Errorf("%s: %d %s", what, a.Code, said(a))
		}
	}
	write(t, rules, loose)
	ask("at first", hookd.ExitPass)
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(rules, old, old); err != nil {
		t.Fatal(err)
	}
	ask("with another time", hookd.ExitPass)
	write(t, rules, strict)
	ask("written in place, of the same size", hookd.ExitDeny)
	write(t, rules, loose)
	if err := os.Chtimes(rules, old, old); err != nil {
		t.Fatal(err)
	}
	ask("loose again", hookd.ExitPass)
	write(t, rules+".next", strict)
	if err := os.Chtimes(rules+".next", old, old); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(rules+".next", rules); err != nil {
		t.Fatal(err)
	}
	ask("replaced, of the same size and time", hookd.ExitDeny)
}

// TestAServiceNoticesTrust holds that a person who trusts other bytes of a registration
// takes back the trust in those that are there.
func TestAServiceNoticesTrust(t *testing.T) {
	w := newWorld(t, hookd.Options{Mode: hooklog.ModeService})
	w.register(w.document(hook{mode: "allow", policy: "fail-closed"}))
	repo := filepath.Join(w.home, "repo")
	file := filepath.Join(repo, ".ahp", "registration.json")
	document := strings.Replace(w.document(hook{mode: "allow", policy: "fail-closed"}), "com.example.b0", "com.example.project", 1)
	write(t, file, document)
	store := trust.Open(filepath.Join(w.judge.StateDir(), "trust.json"))
	for i, c := range []struct {
		bytes string
		want  int
	}{{document, hookd.ExitPass}, {document + "\n", hookd.ExitDeny}, {document, hookd.ExitPass}} {
		if err := store.Add(file, []byte(c.bytes)); err != nil {
			t.Fatal(err)
		}
		if a := w.do(hookd.Call{Data: bash("s", fmt.Sprint(i), repo, "echo hi")}); a.Code != c.want {
			t.Errorf("step %d: %d %s", i, a.Code, said(a))
		}
	}
}

// TestTheProjectOfARoot holds that a session is in the project of any of its roots.
func TestTheProjectOfARoot(t *testing.T) {
	w := newWorld(t, hookd.Options{})
	w.register(w.document(hook{mode: "allow", policy: "fail-closed"}))
	repo := filepath.Join(w.home, "repo")
	file := filepath.Join(repo, ".ahp", "registration.json")
	document := strings.Replace(w.document(hook{mode: "deny", policy: "fail-closed"}), "com.example.b0", "com.example.project", 1)
	write(t, file, document)
	if err := trust.Open(filepath.Join(w.judge.StateDir(), "trust.json")).Add(file, []byte(document)); err != nil {
		t.Fatal(err)
	}
	event := `{"hook_event_name":"preToolUse","conversation_id":%q,"generation_id":"g","model":"m","cursor_version":"2","workspace_roots":%s,"tool_name":"Shell","tool_input":{"command":"x"},"tool_use_id":"t"}`
	for roots, want := range map[string]int{
		fmt.Sprintf(`[%q]`, repo): hookd.ExitDeny, fmt.Sprintf(`[%q]`, w.home): hookd.ExitPass, fmt.Sprintf(`[%q,%q]`, w.home, filepath.Join(repo, "sub")): hookd.ExitDeny,
		fmt.Sprintf(`["relative",%q]`, repo): hookd.ExitDeny, `[]`: hookd.ExitPass,
	} {
		if a := w.do(hookd.Call{Host: "cursor", Data: fmt.Appendf(nil, event, roots, roots), Dir: "/"}); a.Code != want {
			t.Errorf("%s: %d %s", roots, a.Code, said(a))
		}
	}
}
