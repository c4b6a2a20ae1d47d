package app_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abhed/abhed/internal/app"
	"github.com/abhed/abhed/internal/strictjson"
)

func (d *desk) trust(o app.TrustOptions) (code int, out, errs string) {
	d.t.Helper()
	if o.Dir == "" && !o.List {
		o.Dir = d.dir
	}
	return d.do(func(s app.System) int { return app.Trust(o, s) })
}

// state returns what --show says of the trust.
func (d *desk) state() string {
	d.t.Helper()
	code, out, errs := d.trust(app.TrustOptions{Show: true, JSON: true})
	var got struct {
		State string `json:"state"`
	}
	if err := strictjson.Unmarshal([]byte(out), &got, strictjson.Options{}); err != nil || code != 0 {
		d.t.Fatalf("exit %d, %v: %s%s", code, err, out, errs)
	}
	return got.State
}

const brings = `{
 "model": "ours/x", // of the user's providers
 "permissions": {"allow": ["bash(go test*)"], "deny": ["bash(git push*)"], "mode": "plan"},
 "extensions": [{"name": "guard", "command": "./tools/guard.sh", "args": ["--rules=tools/rules.txt", "gone/later"], "env": {"A\n  trusted": "hush-hush-secret"}}],
 "mcp": {"docs": {"command": "python3", "args": ["tools/serve.py"]}, "web": {"url": "https://mcp.example/x"}},
 "custom_providers": [{"name": "played", "api": "script", "base_url": "steps.json"}],
 "ahp": {"registration": "hooks.json"},
 "limits": {"max_turns": 9}}`

// bring makes a workspace that brings all sorts of things, in files of these names.
func (d *desk) bring() []string {
	d.put(".abhed/config.json", brings)
	files := []string{"tools/guard.sh", "tools/rules.txt", "tools/serve.py", "steps.json", "hooks.json"}
	for _, f := range files {
		d.put(f, "content of "+f)
	}
	return files
}

// TestTrustShows holds that a person sees everything that the workspace brings before
// anything is trusted, and nothing that only looks like our own words.
func TestTrustShows(t *testing.T) {
	d := newDesk(t)
	files := d.bring()
	code, out, _ := d.trust(app.TrustOptions{Show: true})
	if code != 0 || d.state() != "not trusted" {
		t.Errorf("exit %d, %s", code, d.state())
	}
	only, counts, ok := strings.Cut(out, "What counts already")
	if !ok {
		t.Fatal(out)
	}
	wantLines(t, only,
		`extension "guard" runs "`+d.dir+`/tools/guard.sh" "--rules=tools/rules.txt" "gone/later"`, "is asked about everything, with all your powers",
		`is given the variables A\n  trusted`, `MCP server "docs" runs "python3" "tools/serve.py" (by PATH)`, `MCP server "web" asks https://mcp.example/x`,
		`model = "ours/x"  # line 2`, `permissions.allow[0] = "bash(go test*)"  # line 3`, `custom_providers[0].name = "played"`, `ahp.registration = "`+d.dir+`/hooks.json"  # line 7`)
	wantLines(t, counts, `permissions.deny[0] = "bash(git push*)"`, `permissions.mode = "plan"`, `limits.max_turns = 9`,
		"note: extensions[0].args[1] names "+d.dir+"/gone/later, which isn't there", "It is not trusted.")
	for _, f := range files {
		wantLines(t, counts, filepath.Join(d.dir, f))
	}
	if strings.Contains(out, "hush-hush") {
		t.Errorf("the value of a variable is shown:\n%s", out)
	}
	if strings.Contains(only, "bash(git push*)") || strings.Contains(counts, "bash(go test*)") {
		t.Errorf("what counts already and what doesn't are mixed:\n%s", out)
	}
	if _, err := os.Stat(filepath.Join(d.home, ".local", "state", "abhed", "trust.json")); err == nil {
		t.Error("to show made a store")
	}
}

// TestTrustAsks holds that only a plain yes at a terminal, or --yes, trusts.
func TestTrustAsks(t *testing.T) {
	for name, tt := range map[string]struct {
		o     app.TrustOptions
		stdin string
		code  int
		state string
	}{
		"yes":              {app.TrustOptions{Terminal: true}, "yes\n", 0, "trusted"},
		"yes without line": {app.TrustOptions{Terminal: true}, "yes", 0, "trusted"},
		"no":               {app.TrustOptions{Terminal: true}, "no\n", 1, "not trusted"},
		"y":                {app.TrustOptions{Terminal: true}, "y\n", 1, "not trusted"},
		"nothing":          {app.TrustOptions{Terminal: true}, "", 1, "not trusted"},
		"late":             {app.TrustOptions{Terminal: true}, "\nyes\n", 1, "not trusted"},
		"no terminal":      {app.TrustOptions{}, "yes\n", 2, "not trusted"},
		"--yes":            {app.TrustOptions{Yes: true}, "", 0, "trusted"},
		"--yes --show":     {app.TrustOptions{Yes: true, Show: true}, "", 2, "not trusted"},
		"--show --remove":  {app.TrustOptions{Show: true, Remove: true}, "", 2, "not trusted"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			d.bring()
			d.stdin = tt.stdin
			code, out, errs := d.trust(tt.o)
			if code != tt.code || d.state() != tt.state {
				t.Errorf("exit %d, %s; want %d, %s\n%s%s", code, d.state(), tt.code, tt.state, out, errs)
			}
		})
	}
}

// TestTrustIsOfBytes trusts a workspace and changes one thing: then it isn't trusted,
// the list says what changed, and when it is as it was it is trusted again.
func TestTrustIsOfBytes(t *testing.T) {
	link := func(d *desk, to string) error {
		return os.Symlink(filepath.Join(d.dir, to), filepath.Join(d.dir, "tools", "guard.sh"))
	}
	for name, change := range map[string]struct {
		do   func(d *desk) error
		says string
	}{
		"settings":                 {func(d *desk) error { d.put(".abhed/config.json", brings+" "); return nil }, "config.json was trusted with other content"},
		"settings are gone":        {func(d *desk) error { return os.Remove(filepath.Join(d.dir, ".abhed", "config.json")) }, "was trusted and is gone"},
		"program":                  {func(d *desk) error { d.put("tools/guard.sh", "exit 0"); return nil }, "tools/guard.sh, which extensions[0].command names"},
		"argument":                 {func(d *desk) error { d.put("tools/rules.txt", ""); return nil }, "tools/rules.txt, which extensions[0].args[0] names"},
		"server":                   {func(d *desk) error { d.put("tools/serve.py", ""); return nil }, "tools/serve.py, which mcp.docs.args[0] names"},
		"model's script":           {func(d *desk) error { d.put("steps.json", "{}"); return nil }, "steps.json"},
		"registration":             {func(d *desk) error { d.put("hooks.json", "{}"); return nil }, "hooks.json, which ahp.registration names"},
		"a file that wasn't there": {func(d *desk) error { d.put("gone/later", ""); return nil }, "gone/later, which extensions[0].args[1] names"},
		"a link to another file of the same content": {func(d *desk) error {
			d.put("tools/same", "content of tools/guard.sh")
			if err := os.Remove(filepath.Join(d.dir, "tools", "guard.sh")); err != nil {
				return err
			}
			return link(d, "tools/same")
		}, "tools/guard.sh"},
		"a program becomes a folder": {func(d *desk) error {
			if err := os.Remove(filepath.Join(d.dir, "tools", "serve.py")); err != nil {
				return err
			}
			return os.Mkdir(filepath.Join(d.dir, "tools", "serve.py"), 0o700)
		}, "tools/serve.py, which mcp.docs.args[0] names"},
		"a program goes": {func(d *desk) error { return os.Remove(filepath.Join(d.dir, "tools", "rules.txt")) }, "tools/rules.txt, which extensions[0].args[0] names"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			d.bring()
			if code, out, errs := d.trust(app.TrustOptions{Yes: true}); code != 0 || !strings.Contains(out, "Trusted, with exactly this content.") {
				t.Fatalf("exit %d\n%s%s", code, out, errs)
			}
			if _, out, _ := d.trust(app.TrustOptions{List: true}); !strings.Contains(out, d.dir+"\n    trusted\n") {
				t.Fatalf("the list says\n%s", out)
			}
			if err := change.do(d); err != nil {
				t.Fatal(err)
			}
			if _, out, _ := d.trust(app.TrustOptions{List: true}); strings.Contains(out, "\n    trusted") || !strings.Contains(out, change.says) || !strings.Contains(out, "abhed trust --show "+d.dir) {
				t.Errorf("the list says\n%s", out)
			}
			if name == "settings are gone" {
				return
			}
			if now := d.state(); now == "trusted" {
				t.Errorf("it is %s", now)
			}
			if code, out, errs := d.trust(app.TrustOptions{Yes: true}); code != 0 || d.state() != "trusted" {
				t.Errorf("trusted anew it is %s: exit %d\n%s%s", d.state(), code, out, errs)
			}
		})
	}
}

// TestTrustHidesNothing holds that no name in the settings hides a part of them: the
// provider that stands in for the model's is called after their bytes.
func TestTrustHidesNothing(t *testing.T) {
	d := newDesk(t)
	for _, name := range []string{"any", "built", "x"} {
		d.put(".abhed/config.json", `{"model": "`+name+`/m", "custom_providers": [{"name": "`+name+`", "api": "script", "base_url": "steps.json"}]}`)
		d.put("steps.json", "{}")
		if _, out, _ := d.trust(app.TrustOptions{Show: true}); !strings.Contains(out, "steps.json  (the provider "+name+")") {
			t.Errorf("%s: the script isn't shown\n%s", name, out)
		}
	}
}

// TestTrustOfRegistration holds that the workspace's AHP registration is shown, trusted
// and forgotten with the rest, and that one that comes later isn't trusted.
func TestTrustOfRegistration(t *testing.T) {
	const registration = `{"protocolVersion":"draft","hooks":[{"id":"org.test.guard","transport":{"type":"stdio","command":"./guard","lifecycle":"per_event"},
		"subscriptions":[{"events":["tool.before"],"mode":"intercept","timeoutMs":1000,"failurePolicy":"fail-closed","content":{"default":"body"}}]}]}`
	d := newDesk(t)
	if code, _, errs := d.trust(app.TrustOptions{Yes: true}); code != 2 || !strings.Contains(errs, "there is nothing to trust") {
		t.Errorf("an empty workspace: exit %d\n%s", code, errs)
	}
	d.put(".abhed/config.json", `{"permissions": {"allow": ["bash(true)"]}}`)
	if code, _, errs := d.trust(app.TrustOptions{Yes: true}); code != 0 || d.state() != "trusted" {
		t.Errorf("settings alone: exit %d, %s\n%s", code, d.state(), errs)
	}
	d.put(".ahp/registration.json", registration)
	if now := d.state(); now != "changed since it was trusted" {
		t.Errorf("with a registration it is %s", now)
	}
	code, out, errs := d.trust(app.TrustOptions{Yes: true})
	if code != 0 || d.state() != "trusted" {
		t.Errorf("with the registration: exit %d, %s\n%s", code, d.state(), errs)
	}
	wantLines(t, out, `backend "org.test.guard" runs "./guard"`, "decides about tool.before", `counts for "ahp hook" in other agents too`)
	d.put(".ahp/registration.json", registration+" ")
	if now := d.state(); now == "trusted" {
		t.Error("a changed registration is trusted")
	}
	if code, _, _ := d.trust(app.TrustOptions{Remove: true}); code != 0 || d.state() != "not trusted" {
		t.Errorf("after --remove: exit %d, %s", code, d.state())
	}
	d.put(".ahp/registration.json", `{"protocolVersion":"draft","hooks":[{}]}`)
	if code, _, errs := d.trust(app.TrustOptions{Yes: true}); code != 2 || !strings.Contains(errs, "registration.json:1:") {
		t.Errorf("a registration at fault: exit %d\n%s", code, errs)
	}
}

// TestTrustRemove holds that the trust in one workspace ends and that in another,
// around it or inside it, doesn't.
func TestTrustRemove(t *testing.T) {
	d := newDesk(t)
	settings := `{"extensions": [{"name": "x", "command": "./run.sh"}]}`
	outer, inner := d.dir, filepath.Join(d.dir, "sub")
	for _, dir := range []string{outer, inner} {
		d.put(filepath.Join(dir, ".abhed", "config.json"), settings)
		d.put(filepath.Join(dir, "run.sh"), dir)
		if code, _, errs := d.trust(app.TrustOptions{Dir: dir, Yes: true}); code != 0 {
			t.Fatalf("exit %d\n%s", code, errs)
		}
	}
	list := func() string { _, out, _ := d.trust(app.TrustOptions{List: true}); return out }
	if code, out, _ := d.trust(app.TrustOptions{Dir: outer, Remove: true}); code != 0 || list() == "" || strings.Contains(list(), outer+"\n") || !strings.Contains(list(), inner+"\n    trusted\n") {
		t.Errorf("exit %d\n%s%s", code, out, list())
	}
	store, err := os.ReadFile(filepath.Join(d.home, ".local", "state", "abhed", "trust.json"))
	if err != nil || strings.Contains(string(store), outer+"/run.sh") || !strings.Contains(string(store), inner+"/run.sh") {
		t.Errorf("%v: the store has %s", err, store)
	}
	if err := os.RemoveAll(inner); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := d.trust(app.TrustOptions{Dir: inner, Remove: true}); code != 0 || !strings.Contains(list(), "No workspace's settings are trusted") {
		t.Errorf("what is gone: exit %d\n%s%s", code, errs, list())
	}
	if code, _, _ := d.trust(app.TrustOptions{Dir: inner, Remove: true}); code != 1 {
		t.Errorf("again: exit %d, want 1", code)
	}
}

// TestTrustOfBrokenSettings holds that what can't be understood is never trusted, with
// the place of every fault.
func TestTrustOfBrokenSettings(t *testing.T) {
	d := newDesk(t)
	d.put(".abhed/config.json", "{\n\"permissons\": {},\n\"sandbox\": 1}")
	code, out, errs := d.trust(app.TrustOptions{Yes: true})
	if code != 2 || out != "" {
		t.Errorf("exit %d\n%s", code, out)
	}
	wantLines(t, errs, ".abhed/config.json:2:1: permissons", `did you mean "permissions"?`, ".abhed/config.json:3:12: sandbox")
}
