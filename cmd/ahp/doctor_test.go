package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abhed/abhed/internal/doctor"
	"github.com/abhed/abhed/internal/strictjson"
)

// ahpProgram returns this program as a file of its own, named ahp.
func ahpProgram(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("ahp") // which the package's TestMain has made
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestDoctorCommand: from nothing over an installation to a switched off one, as a
// person runs it.
func TestDoctorCommand(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home, project := filepath.Join(dir, "home"), filepath.Join(dir, "project")
	for _, d := range []string{home, project} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	ahp := ahpProgram(t)
	run := func(args ...string) result {
		t.Helper()
		c := exec.CommandContext(t.Context(), ahp, args...)
		c.Dir = project
		var out, errs bytes.Buffer
		c.Stdout, c.Stderr = &out, &errs
		if err := c.Run(); err != nil && c.ProcessState == nil {
			t.Fatal(err)
		}
		return result{c.ProcessState.ExitCode(), out.String(), errs.String()}
	}
	defer run("daemon", "stop", "--home", home) // the canaries start it
	write := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(home, ".config", "ahp", "registration.json"), `{"protocolVersion":"draft","hooks":[{"id":"com.example.rules","transport":{"type":"stdio","lifecycle":"persistent","command":"`+ahp+`","args":["backend","rules","--rules","`+filepath.Join(home, "rules")+`"]},"subscriptions":[{"events":["tool.before"],"mode":"intercept","timeoutMs":5000,"failurePolicy":"fail-closed","content":{"default":"body"}}]}]}`)
	write(filepath.Join(home, "rules"), `{"rules":{"deny":["bash(git push*)"]}}`)

	if r := run("doctor", "--home", home); r.code != exitOK || !strings.Contains(r.stdout, "no agent") {
		t.Errorf("with nothing: %+v", r)
	}
	if r := run("doctor", "gemini", "--home", home); r.code != exitNegative || !strings.Contains(r.stdout, "run ahp install gemini") {
		t.Errorf("not installed: %+v", r)
	}
	if r := run("install", "claude-code", "--home", home); r.code != exitOK {
		t.Fatalf("%+v", r)
	}
	for range 2 { // by the hook itself, and by the service that it has started
		r := run("doctor", "--home", home, "--project", project)
		if r.code != exitOK || strings.Contains(r.stdout, "  ok ") {
			t.Errorf("installed: %+v", r)
		}
	}
	if r := run("doctor", "--home", home, "-v", "--log"); r.code != exitOK || !strings.Contains(r.stdout, "one canary was refused and one passed") || !strings.Contains(r.stdout, "lines of the log are chained") {
		t.Errorf("-v: %+v", r)
	}
	write(filepath.Join(project, ".claude", "settings.json"), `{"disableAllHooks":true}`)
	r := run("doctor", "claude-code", "--scope", "user", "--home", home, "--project", project, "--json")
	var report doctor.Report
	if err := strictjson.Unmarshal([]byte(strings.TrimSpace(r.stdout)), &report, strictjson.Options{RejectUnknown: true}); err != nil || r.code != exitNegative || !report.Wrong {
		t.Fatalf("%+v: %v", r, err)
	}
	is := false
	for _, f := range report.Findings {
		is = is || f.Level == doctor.Wrong && f.Check == "switch" && f.Host == "claude-code" && f.Scope == "user" && f.Where == filepath.Join(project, ".claude", "settings.json")+":1"
	}
	if !is {
		t.Errorf("no finding of the switch: %+v", report.Findings)
	}
	for _, args := range [][]string{{"claude"}, {"--scope", "me"}, {"--home", "x"}, {"--project", filepath.Join(dir, "none")}} {
		if r := run(append([]string{"doctor"}, args...)...); r.code != exitUsage || r.stdout != "" {
			t.Errorf("%q: %+v", args, r)
		}
	}
}
