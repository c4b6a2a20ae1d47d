package selfprotect_test

import (
	"os"
	"testing"
)

// link makes the configuration of a world one that is kept elsewhere.
func link(t *testing.T, w *world) {
	t.Helper()
	for _, dir := range []string{w.home + "/dotfiles", w.project + "/hooks"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	steps := []error{
		os.Rename(w.home+"/.claude", w.home+"/dotfiles/claude"),
		os.Symlink("dotfiles/claude", w.home+"/.claude"),
		os.Rename(w.project+"/.claude/settings.json", w.project+"/hooks/claude.json"),
		os.Symlink("../hooks/claude.json", w.project+"/.claude/settings.json"),
	}
	for _, err := range steps {
		if err != nil {
			t.Fatal(err)
		}
	}
}
