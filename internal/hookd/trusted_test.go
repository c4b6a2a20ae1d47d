package hookd_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abhed/abhed/internal/hookd"
	"github.com/abhed/abhed/internal/trust"
)

// TestTrustThatCannotBeTold holds that a call is refused where it can't be known whether
// a project's registration restricts it: the list of what is trusted is at fault, or a
// link lies where the registration was.
func TestTrustThatCannotBeTold(t *testing.T) {
	w := newWorld(t, hookd.Options{})
	w.register(w.document(hook{mode: "allow", policy: "fail-closed"}))
	repo := filepath.Join(w.home, "repo")
	file := filepath.Join(repo, ".ahp", "registration.json")
	document := strings.Replace(w.document(hook{mode: "deny", policy: "fail-closed"}), "com.example.b0", "com.example.project", 1)
	write(t, file, document)
	list := filepath.Join(w.judge.StateDir(), "trust.json")
	if err := trust.Open(list).Add(file, []byte(document)); err != nil {
		t.Fatal(err)
	}
	refuses := func(what, part string, c hookd.Call) {
		t.Helper()
		dir := repo
		if c.Dir != "" {
			dir = "" // the event tells none
		}
		c.Data = bash("s"+what, what, dir, "echo hi")
		if a := w.do(c); a.Code != hookd.ExitDeny || !strings.Contains(said(a), part) {
			t.Errorf("%s: %d %s, expected %q", what, a.Code, said(a), part)
		}
	}
	refuses("in the project", "not in this house", hookd.Call{})
	refuses("in the hook's folder", "not in this house", hookd.Call{Dir: repo})
	other := filepath.Join(w.home, "other.json")
	write(t, other, strings.Replace(document, `"deny"`, `"allow"`, 1))
	if err := errors.Join(os.Remove(file), os.Symlink(other, file)); err != nil {
		t.Fatal(err)
	}
	refuses("a link to another", "was trusted with other content", hookd.Call{})
	if err := os.WriteFile(list, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	refuses("the list is cut", "trust.json", hookd.Call{})
	if err := os.Chmod(list, 0o666); err != nil {
		t.Fatal(err)
	}
	refuses("others may write the list", "trust.json", hookd.Call{})
}
