package install

import (
	"path/filepath"
	"testing"

	"github.com/abhed/abhed/ahp/adapter"
)

// TestLineKeepsTheRuntimeQuiet holds that what a Go program's runtime is told to print,
// by the environment of whoever started the agent, doesn't become part of the answer: a
// host takes such an answer for no document, and goes on.
func TestLineKeepsTheRuntimeQuiet(t *testing.T) {
	t.Setenv("GODEBUG", "inittrace=1")
	binary := executable(t, filepath.Join(t.TempDir(), "ahp"), "#!/bin/sh\ncat >/dev/null\nprintf '%s' \"$GODEBUG\" >&2\nprintf '{}'\nexit 42\n")
	d := adapter.Delivery{Stream: adapter.Stdout}
	line, err := Line(Call{Binary: binary, Host: "claude-code", OnMissing: Deny, LimitMS: 60000}, dialect(d), "PreToolUse")
	if err != nil {
		t.Fatal(err)
	}
	for name, start := range usualShells(t) {
		if got, want := start(t, line, "{}"), (answer{"{}\n", "", 0}); got != want {
			t.Errorf("%s: found %+v, expected %+v", name, got, want)
		}
	}
}
