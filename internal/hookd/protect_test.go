package hookd_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abhed/abhed/internal/hookd"
)

// TestWhatDecidesIsProtected holds that self-protection knows the files which decide,
// wherever they are: the registration that the line names, and the rules that it names,
// as seen from the backend's folder.
func TestWhatDecidesIsProtected(t *testing.T) {
	w := newWorld(t, hookd.Options{})
	elsewhere := filepath.Join(w.home, "elsewhere")
	file := filepath.Join(elsewhere, "policy.json")
	write(t, filepath.Join(elsewhere, "sub", "rules.json"), `{"rules":{"deny":["bash(nothing*)"]}}`)
	write(t, file, strings.Replace(rulesDocument(t, "rules.json"), `"lifecycle"`, `"cwd":"sub","lifecycle"`, 1))
	write(t, filepath.Join(elsewhere, "other.json"), "{}")
	for i, c := range []struct {
		command string
		want    int
	}{
		{"rm " + file, hookd.ExitDeny}, {"echo '{}' > elsewhere/policy.json", hookd.ExitDeny}, {"rm elsewhere/sub/rules.json", hookd.ExitDeny},
		{"cat " + file, hookd.ExitPass}, {"rm elsewhere/other.json", hookd.ExitPass},
	} {
		a := w.do(hookd.Call{Registration: file, Data: bash("s", fmt.Sprint(i), w.home, c.command)})
		if a.Code != c.want || c.want == hookd.ExitDeny && !strings.Contains(said(a), hookd.SelfProtection) {
			t.Errorf("%s: %d %s", c.command, a.Code, said(a))
		}
	}
}

// TestNativeForOneOfTwo holds that of two backends only the one that asks for it sees the
// agent's own event, whichever comes first.
func TestNativeForOneOfTwo(t *testing.T) {
	for asks := range 2 {
		w := newWorld(t, hookd.Options{})
		document := w.document(hook{mode: "show native", policy: "fail-closed"}, hook{mode: "show native", policy: "fail-closed"})
		parts := strings.SplitAfter(document, `"mode":"intercept"`)
		parts[asks] += `,"includeNative":true`
		document = strings.Join(parts, "")
		// Each backend writes into a file of its own.
		document = strings.Replace(document, fmt.Sprintf("%q", w.notes), fmt.Sprintf("%q", w.notes+"0"), 1)
		document = strings.Replace(document, fmt.Sprintf("%q]", w.notes), fmt.Sprintf("%q]", w.notes+"1"), 1)
		w.register(document)
		w.do(hookd.Call{Data: bash("s", "t1", w.home, "echo hi")})
		for i := range 2 {
			noted, err := os.ReadFile(w.notes + fmt.Sprint(i))
			if err != nil || strings.Contains(string(noted), `native {"cwd":`) != (i == asks) {
				t.Errorf("backend %d asks: backend %d has seen %q, %v", asks, i, noted, err)
			}
		}
	}
}

// TestTheProgramThatDecidesIsProtected holds that an agent doesn't change the program of
// a backend, nor the script that an interpreter is given.
func TestTheProgramThatDecidesIsProtected(t *testing.T) {
	w := newWorld(t, hookd.Options{})
	write(t, filepath.Join(w.home, "bin", "policy"), "#!/bin/sh\n")
	write(t, filepath.Join(w.home, "policies", "main.sh"), "exit 0\n")
	if err := os.Chmod(filepath.Join(w.home, "bin", "policy"), 0o700); err != nil {
		t.Fatal(err)
	}
	document := strings.Replace(w.document(hook{mode: "allow", policy: "fail-open", ms: 50}, hook{mode: "allow", policy: "fail-open", ms: 50}, hook{mode: "allow", policy: "fail-closed"}),
		fmt.Sprintf(`"command":%q`, exe(t)), `"command":"../../bin/policy"`, 1)
	w.register(strings.Replace(document, fmt.Sprintf(`"command":%q,"args":["backend",`, exe(t)), `"command":"sh","args":["../../policies/main.sh",`, 1))
	for i, c := range []struct {
		command string
		want    int
	}{
		{"cp /bin/true bin/policy", hookd.ExitDeny}, {"echo exit > policies/main.sh", hookd.ExitDeny}, {"mv policies old", hookd.ExitDeny}, {"rm " + exe(t), hookd.ExitDeny},
		{"cat bin/policy policies/main.sh", hookd.ExitPass}, {"/bin/sh -c 'echo hi'", hookd.ExitPass}, {"sh other.sh", hookd.ExitPass}, {"touch policies/more.sh", hookd.ExitPass},
	} {
		a := w.do(hookd.Call{Data: bash("s", fmt.Sprint(i), w.home, c.command)})
		if a.Code != c.want || c.want == hookd.ExitDeny && !strings.Contains(said(a), hookd.SelfProtection) {
			t.Errorf("%s: %d %s", c.command, a.Code, said(a))
		}
	}
}
