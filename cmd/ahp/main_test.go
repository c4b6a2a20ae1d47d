package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	syscall.Umask(0o022) // a registration that a group may write is refused
	testscript.Main(m, map[string]func(){"ahp": func() { os.Exit(run()) }})
}

// TestScripts runs the transcripts in testdata/script over the built command.
// The extra command `exits CODE ahp …` wants exactly that exit code.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			home := filepath.Join(e.WorkDir, "home")
			e.Setenv("HOME", home)
			e.Setenv("AHP_HOME", home)
			return os.MkdirAll(home, 0o700)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
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

// result is what one run of the command came to.
type result struct {
	code           int
	stdout, stderr string
}

// runAHP runs a command line in this process.
func runAHP(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	var out, errs bytes.Buffer
	code := execute(t.Context(), args, system{stdin: strings.NewReader(stdin), stdout: &out, stderr: &errs})
	return result{code, out.String(), errs.String()}
}
