package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abhed/abhed/internal/strictjson"
	"github.com/abhed/abhed/internal/trust"
)

const projectRegistration = `{"protocolVersion":"draft","hooks":[
{"id":"org.test.guard","transport":{"type":"stdio","command":"./guard.sh","args":["--strict"],"lifecycle":"per_event"},
 "subscriptions":[{"events":["tool.before"],"mode":"intercept","timeoutMs":900,"failurePolicy":"fail-closed","content":{"default":"body"},"includeNative":true}]},
{"id":"org.test.remote","transport":{"type":"http","url":"https://policy.example/ahp"},"authentication":{"type":"bearer","tokenEnv":"POLICY_TOKEN"},
 "subscriptions":[{"events":["tool.*","session.start"],"mode":"observe","content":{"default":"omit"}}]},
{"id":"org.test.installed","transport":{"type":"stdio","command":"ahp","args":["backend","rules"],"lifecycle":"persistent","cwd":"/srv"},
 "subscriptions":[{"events":["tool.before"],"mode":"observe","content":{"default":"body"}}]}]}`

// project makes a project's folder with a registration.
func project(t *testing.T, text string) (dir, file string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(dir, ".ahp", "registration.json")
	if err := os.Mkdir(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir, file
}

func (h *home) trusts(file, text string) bool {
	return trust.Open(filepath.Join(h.dir, ".local", "state", "ahp", "trust.json")).Trusted(file, []byte(text))
}

func TestTrustCommand(t *testing.T) {
	h := newHome(t)
	dir, file := project(t, projectRegistration)
	below := filepath.Join(dir, "a", "b")
	if err := os.MkdirAll(below, 0o755); err != nil {
		t.Fatal(err)
	}
	h.run(t.Context(), strings.NewReader("yes\n"), dir, newTrust).want(t, exitUsage, "standard input is no terminal", "give --yes")
	h.run(t.Context(), nil, dir, newTrust, "--list").want(t, exitOK, "No project's registration is trusted")
	if h.trusts(file, projectRegistration) {
		t.Fatal("trusted without a yes")
	}
	r := h.run(t.Context(), nil, below, newTrust, "--yes")
	r.want(t, exitOK, file, "SHA-256 "+trust.Sum([]byte(projectRegistration)),
		"backend org.test.guard", `runs      "./guard.sh" "--strict"`, "in        "+filepath.Dir(file), "decides   about tool.before, within 900 ms; without an answer: fail-closed", "and sees default: body", "and what the agent itself sends",
		"asks      https://policy.example/ahp", "proves    itself with the variable POLICY_TOKEN", "is told   of tool.*, session.start", `runs      "ahp" "backend" "rules"`, "in        /srv", "Trusted, with exactly this content.")
	if n := strings.Count(r.stdout, "careful   what it runs lies in the project"); n != 1 {
		t.Errorf("%d warnings of programs in the project: %s", n, r.stdout)
	}
	if !h.trusts(file, projectRegistration) || h.trusts(file, projectRegistration+" ") {
		t.Error("another content than the shown one is trusted, or that isn't")
	}
	h.run(t.Context(), nil, dir, newTrust, "--list").want(t, exitOK, "same", file)
	if err := os.WriteFile(file, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.run(t.Context(), nil, dir, newTrust, "--list").want(t, exitOK, "changed", file)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	var list []trustedShown
	r = h.run(t.Context(), nil, dir, newTrust, "--list", "--json")
	if err := strictjson.Unmarshal([]byte(r.stdout), &list, strictjson.Options{}); err != nil || len(list) != 1 || list[0].Now != "gone" || list[0].Path != file {
		t.Errorf("%v, %s", err, r.stdout)
	}
	h.run(t.Context(), nil, dir, newTrust, "--remove", file).want(t, exitOK, "is trusted no longer")
	h.run(t.Context(), nil, dir, newTrust, "--remove", file).want(t, exitNegative, "wasn't trusted")
	h.run(t.Context(), nil, dir, newTrust).want(t, exitUsage, "found no .ahp/registration.json")
}

func TestTrustRefuses(t *testing.T) {
	h := newHome(t)
	for text, want := range map[string]string{
		`{`:  "registration.json:1:",
		`{}`: "registration.json:1:1: ",
		strings.Replace(projectRegistration, `"POLICY_TOKEN"`, `"POLICY TOKEN"`, 1): "registration.json:4:",
		strings.Replace(projectRegistration, `"draft"`, `"future"`, 1):              "registration.json:1:",
	} {
		dir, file := project(t, text)
		h.run(t.Context(), nil, dir, newTrust, "--yes").want(t, exitUsage, want)
		if h.trusts(file, text) {
			t.Errorf("%s is trusted", text)
		}
	}
	dir, file := project(t, projectRegistration)
	h.run(t.Context(), nil, dir, newTrust, "--yes", "missing").want(t, exitUsage, "missing")
	h.run(t.Context(), nil, dir, newTrust, "--yes", "/dev/zero").want(t, exitFailed, "expected a regular file")
	h.run(t.Context(), nil, dir, newTrust, "--list", file).want(t, exitUsage, "expected one of")
	h.run(t.Context(), nil, dir, newTrust, "--remove", file, "--yes").want(t, exitUsage, "expected one of")
	h.run(t.Context(), nil, dir, newTrust, "a", "b").want(t, exitUsage)
	elsewhere := filepath.Join(dir, "elsewhere.json")
	if err := os.WriteFile(elsewhere, []byte(projectRegistration), 0o600); err != nil {
		t.Fatal(err)
	}
	h.run(t.Context(), nil, dir, newTrust, "--yes", elsewhere).want(t, exitOK, "warning: only a file .ahp/registration.json of a project is looked for")
	store := filepath.Join(h.dir, ".local", "state", "ahp", "trust.json")
	if err := os.WriteFile(store, []byte("noise"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.run(t.Context(), nil, dir, newTrust, "--list").want(t, exitFailed, "nothing is trusted")
	h.run(t.Context(), nil, dir, newTrust, "--yes").want(t, exitFailed, store)
}

// TestTrustWarnsOfTheSameID has the project register what the user has registered.
func TestTrustWarnsOfTheSameID(t *testing.T) {
	h := newHome(t)
	dir, _ := project(t, projectRegistration)
	if r := h.run(t.Context(), nil, dir, newTrust, "--yes"); r.code != exitOK || strings.Contains(r.stdout, "already") {
		t.Errorf("without another: %+v", r)
	}
	users := filepath.Join(h.dir, ".config", "ahp", "registration.json")
	if err := os.MkdirAll(filepath.Dir(users), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(users, []byte(projectRegistration), 0o600); err != nil {
		t.Fatal(err)
	}
	h.run(t.Context(), nil, dir, newTrust, "--yes").want(t, exitOK, "warning: org.test.guard is registered in "+users+" already")
}

// TestTrustAsksNobody has standard input be a device that isn't a terminal.
func TestTrustAsksNobody(t *testing.T) {
	h := newHome(t)
	dir, _ := project(t, projectRegistration)
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	h.run(t.Context(), null, dir, newTrust).want(t, exitUsage, "standard input is no terminal", "give --yes")
}
