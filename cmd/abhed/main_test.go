package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// asCommand makes the test binary the command, for tests that kill it.
const asCommand = "ABHED_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		os.Exit(run())
	}
	testscript.Main(m, map[string]func(){"abhed": func() { os.Exit(run()) }})
}

// TestScripts runs the transcripts in testdata/script over the built command.
// Extra commands: `exits CODE abhed …` wants exactly that exit code, and
// `newest NAME` puts the id of the newest session into the variable NAME.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			home := filepath.Join(e.WorkDir, "home")
			e.Setenv("HOME", home)
			e.Setenv("XDG_STATE_HOME", filepath.Join(home, "state"))
			return os.MkdirAll(home, 0o700)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "newest": newest},
	})
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND ARGS...")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := "0"
	if err != nil {
		m := regexp.MustCompile(`exit status (\d+)`).FindStringSubmatch(err.Error())
		if m == nil {
			ts.Fatalf("%v", err)
		}
		got = m[1]
	}
	if got != args[0] {
		ts.Fatalf("exit %s, want %s", got, args[0])
	}
}

func newest(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: newest NAME")
	}
	files, err := filepath.Glob(filepath.Join(ts.Getenv("XDG_STATE_HOME"), "abhed", "sessions", "*", "*.jsonl"))
	if err != nil || len(files) == 0 {
		ts.Fatalf("no session: %v", err)
	}
	// The ids are UUIDv7: the last in order is the newest.
	last := ""
	for _, f := range files {
		last = max(last, filepath.Base(f))
	}
	ts.Setenv(args[0], last[:len(last)-len(".jsonl")])
	fmt.Fprintln(ts.Stdout(), last)
}
