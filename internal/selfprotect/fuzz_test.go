package selfprotect_test

import (
	"testing"
	"time"
	"unicode/utf8"

	"github.com/abhed/abhed/internal/selfprotect"
)

// FuzzCommand holds that no command makes the judgement panic or take long.
func FuzzCommand(f *testing.F) {
	for _, name := range []string{"denied.txt", "allowed.txt"} {
		for _, line := range lines(f, name) {
			f.Add(line)
		}
	}
	f.Add("a=({a..z}{a..z}{a..z}{a..z}); rm ${a[@]}")
	f.Add("f() { f | f & }; f")
	f.Add("$($($($(echo ~/.claude))))")
	set := selfprotect.New(selfprotect.Options{Home: "/nonexistent/home"})
	f.Fuzz(func(t *testing.T, command string) {
		w := &world{home: "/nonexistent/home", project: "/nonexistent/project", set: set}
		if !utf8.ValidString(command) {
			return // an event holds none
		}
		start := time.Now()
		w.command(t, w.fillIn(command))
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("took %v", took)
		}
	})
}
