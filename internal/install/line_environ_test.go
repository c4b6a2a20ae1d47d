package install

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/abhed/abhed/ahp/adapter"
	"github.com/abhed/abhed/internal/require"
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

// TestLineThatCannotBeHeard holds that a refusal and a question which can't be written
// don't end in the code that lets the call go on.
func TestLineThatCannotBeHeard(t *testing.T) {
	t.Parallel()
	sh := require.Path(t, "sh")
	for _, c := range []struct {
		code, event string
		policy      OnMissing
		want        int
	}{
		{"41", "PreToolUse", Deny, 2}, {"42", "PreToolUse", Deny, 2}, {"42", "PreToolUse", Allow, 2}, {"7", "PreToolUse", Deny, 2},
		{"7", "PreToolUse", Allow, 0}, {"40", "PreToolUse", Deny, 0}, {"41", "Stop", Deny, 0}, {"7", "Stop", Deny, 0},
	} {
		binary := executable(t, filepath.Join(t.TempDir(), "ahp"), "#!/bin/sh\ncat >/dev/null\nprintf '{}'\nexit "+c.code+"\n")
		line, err := Line(Call{Binary: binary, Host: "claude-code", OnMissing: c.policy, LimitMS: 60000}, dialect(adapter.Delivery{Stream: adapter.Stdout}), c.event)
		if err != nil {
			t.Fatal(err)
		}
		for name, path := range map[string]string{"sh": sh, "bash": require.Path(t, "bash")} {
			if got := run(t, exec.Command(path, "-c", "exec >&-; "+line), "{}"); got.code != c.want {
				t.Errorf("%s at %s, on-missing %s, %s: found %+v, expected exit %d", c.code, c.event, c.policy, name, got, c.want)
			}
		}
	}
}
