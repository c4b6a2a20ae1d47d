package hookd_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/abhed/abhed/internal/hookd"
	"github.com/abhed/abhed/internal/hooklog"
)

// TestARegistrationThatChangesMeanwhile holds that a service which reads a registration
// at the moment when it is replaced doesn't hold to the old one.
func TestARegistrationThatChangesMeanwhile(t *testing.T) {
	w := newWorld(t, hookd.Options{Mode: hooklog.ModeService})
	dir := filepath.Join(w.home, ".config", "ahp")
	write(t, filepath.Join(dir, "strict.json"), `{"rules":{"deny":["bash(echo*)"]}}`)
	write(t, filepath.Join(dir, "loose.json"), `{"rules":{"deny":["bash(nothing*)"]}}`)
	put := func(rules string) {
		next := filepath.Join(dir, "next")
		write(t, next, rulesDocument(t, rules+".json"))
		if err := os.Rename(next, filepath.Join(dir, "registration.json")); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 200 {
		put("loose")
		during := later(func() hookd.Answer { return w.do(hookd.Call{Data: bash("s", fmt.Sprint("a", i), w.home, "echo hi")}) })
		for range i % 40 * 100 { // another moment each time
			_ = os.Getpid()
		}
		put("strict")
		<-during
		if a := w.do(hookd.Call{Data: bash("s", fmt.Sprint("b", i), w.home, "echo hi")}); a.Code != hookd.ExitDeny {
			t.Fatalf("round %d: the registration that was there before decides: %d", i, a.Code)
		}
	}
}

// TestARegistrationThatOthersMayWrite holds that a service notices when a registration,
// or its folder, is opened to others: in a process of its own a call is refused then.
func TestARegistrationThatOthersMayWrite(t *testing.T) {
	for _, mode := range []string{hooklog.ModeService, hooklog.ModeInProcess} {
		w := newWorld(t, hookd.Options{Mode: mode})
		w.register(w.document(hook{mode: "allow", policy: "fail-closed"}))
		file := filepath.Join(w.home, ".config", "ahp", "registration.json")
		n := 0
		ask := func(what string, want int) {
			t.Helper()
			n++
			if a := w.do(hookd.Call{Data: bash("s", fmt.Sprint(n), w.home, "echo hi")}); a.Code != want {
				t.Errorf("%s, %s: %d %s", mode, what, a.Code, said(a))
			}
		}
		ask("at first", hookd.ExitPass)
		for path, closed := range map[string]os.FileMode{file: 0o600, filepath.Dir(file): 0o700} {
			for _, c := range []struct {
				mode os.FileMode
				want int
			}{{closed | 0o022, hookd.ExitDeny}, {closed, hookd.ExitPass}} {
				if err := os.Chmod(path, c.mode); err != nil {
					t.Fatal(err)
				}
				ask(fmt.Sprintf("%s with mode %o", filepath.Base(path), c.mode), c.want)
			}
		}
	}
}
