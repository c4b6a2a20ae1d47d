package app_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abhed/abhed/internal/app"
	"github.com/abhed/abhed/internal/strictjson"
)

// desk is a home and a workspace for commands that start nothing.
type desk struct {
	t         *testing.T
	home, dir string
	env       []string
	stdin     string
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{t: t, home: filepath.Join(base, "home"), dir: filepath.Join(base, "ws")}
	for _, dir := range []string{d.home, d.dir} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	d.env = []string{"HOME=" + d.home, "PATH=" + os.Getenv("PATH")}
	return d
}

// put writes a file; a relative name is one of the workspace.
func (d *desk) put(name, text string) string {
	d.t.Helper()
	if !filepath.IsAbs(name) {
		name = filepath.Join(d.dir, name)
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		d.t.Fatal(err)
	}
	return name
}

func (d *desk) managed(text string) { d.put(filepath.Join(d.home, "managed", "config.json"), text) }
func (d *desk) user(text string) {
	d.put(filepath.Join(d.home, ".config", "abhed", "config.json"), text)
}

// do runs a command and returns its exit code and what it printed.
func (d *desk) do(command func(app.System) int) (code int, out, errs string) {
	d.t.Helper()
	var o, e bytes.Buffer
	code = command(app.System{
		Stdin: strings.NewReader(d.stdin), Stdout: &o, Stderr: &e, Environ: d.env, Version: "test", ManagedDir: filepath.Join(d.home, "managed"),
	})
	return code, o.String(), e.String()
}

func (d *desk) check(files ...string) (code int, out, errs string) {
	d.t.Helper()
	o := app.ConfigCheckOptions{Files: files}
	o.Dir = d.dir
	return d.do(func(s app.System) int { return app.ConfigCheck(o, s) })
}

// wantLines holds that every text stands in one line of out.
func wantLines(t *testing.T, out string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(out, w) {
			t.Errorf("%q is missing in\n%s", w, out)
		}
	}
}

// TestConfigCheckHere finds every fault of every source at once, the managed file's
// above all: a typing error there is never passed over (I225).
func TestConfigCheckHere(t *testing.T) {
	d := newDesk(t)
	code, out, _ := d.check()
	if code != 0 || !strings.Contains(out, "not there  "+filepath.Join(d.home, "managed", "config.json")) {
		t.Errorf("without settings: exit %d\n%s", code, out)
	}
	d.managed(`{"pemissions": {"deny": ["bash"]}}`)
	d.user("{\n  \"permissions\": {\"alow\": [], \"mode\": \"PLAN\"},\n  \"extensions\": [{\"name\": \"x\", \"command\": \"y\", \"events\": [\"TOOL_CALL\"]}]\n}")
	d.put(".abhed/config.json", `{"deny": ["bash"], "sandbox": {"network": "no"}}`)
	code, out, _ = d.check()
	if code != 1 {
		t.Errorf("exit %d, want 1", code)
	}
	wantLines(t, out,
		`managed/config.json:1:2: pemissions: unknown key "pemissions"`, `(did you mean "permissions"?)`,
		`abhed/config.json:2:19: permissions.alow: unknown key "alow"`, `(did you mean "allow"?)`,
		`:2:39: permissions.mode: found "PLAN", expected one of plan, default`, // a mis-cased name is refused, not skipped (I228)
		`:3:59: extensions[0].events[0]: found "TOOL_CALL"`,
		`.abhed/config.json:1:2: deny: unknown key "deny"`, `("deny" belongs under permissions)`, // rules in the wrong place (I229)
		`.abhed/config.json:1:43: sandbox.network: found "no", expected true or false`,
		"6 faults")
}

// TestConfigCheckRegistrations reads the registrations that would be in force, whoever
// names them: one at fault is a fault, and so are rules that stand in one, with the right
// file named (I229). A run says that too.
func TestConfigCheckRegistrations(t *testing.T) {
	const hooks = `"hooks": [{"id": "org.test.x", "transport": {"type": "http", "url": "http://127.0.0.1:9/"}, "subscriptions": [{"events": ["session.end"], "mode": "observe", "content": {"default": "body"}}]}]}`
	const sound = `{"protocolVersion": "draft", ` + hooks
	const right = "it belongs in a settings file: ~/.config/abhed/config.json"
	for name, tt := range map[string]struct {
		text string
		code int
		says []string
	}{
		"sound":               {sound, 0, []string{"valid      "}},
		"rules":               {`{"protocolVersion": "draft", "permissions": {"deny": ["bash"]}, ` + hooks, 1, []string{`:1:45: "permissions" counts for nothing in an AHP registration; ` + right}},
		"a list of rules":     {"{\"protocolVersion\": \"draft\",\n \"deny\": [\"bash\"], \"tools\": {},\n" + hooks, 1, []string{`:2:10: "deny" counts for nothing`, `:2:29: "tools" counts for nothing`, "2 faults: what they name holds nothing"}},
		"one of something":    {`{"protocolVersion": "draft", "x-team": {"deny": []}, ` + hooks, 0, []string{"valid      "}},
		"that isn't one":      {`{"protocolVersion": "draft", "hooks": []}`, 1, []string{"/hooks", "1 fault: nothing starts"}},
		"of a file that's JS": {`module.exports = {}`, 1, []string{":1:1: "}},
	} {
		for _, place := range []string{"user", "managed", "flag", "settings", "workspace"} {
			t.Run(name+" "+place, func(t *testing.T) {
				d := newDesk(t)
				o := app.ConfigCheckOptions{}
				o.Dir = d.dir
				file := filepath.Join(d.home, "named.json")
				switch place {
				case "user":
					file = filepath.Join(d.home, ".config", "ahp", "registration.json")
				case "managed":
					file = filepath.Join(d.home, "managed", "registration.json")
				case "flag":
					o.Registration = file
				case "settings":
					d.user(`{"ahp": {"registration": "../../named.json"}}`)
				case "workspace":
					file, o.TrustWorkspace = filepath.Join(d.dir, ".ahp", "registration.json"), true
				}
				d.put(file, tt.text)
				code, out, errs := d.do(func(s app.System) int { return app.ConfigCheck(o, s) })
				if code != tt.code || !strings.Contains(out, file) {
					t.Errorf("exit %d, want %d, about %s\n%s%s", code, tt.code, file, out, errs)
				}
				wantLines(t, out, tt.says...)
				if strings.Contains(errs, "counts for nothing") {
					t.Errorf("it is said twice: %s", errs)
				}
			})
		}
	}
	d := newDesk(t)
	o := app.ConfigCheckOptions{}
	o.Dir, o.Registration = d.dir, filepath.Join(d.home, "gone.json")
	if code, _, errs := d.do(func(s app.System) int { return app.ConfigCheck(o, s) }); code != 2 || !strings.Contains(errs, "gone.json") {
		t.Errorf("exit %d: %s", code, errs)
	}
	w := newWorld(t, done())
	w.put(filepath.Join(w.home, ".config", "ahp", "registration.json"), `{"protocolVersion": "draft", "permissions": {}, `+hooks)
	if r := w.run(t.Context()); r.code != 0 || !strings.Contains(strings.Join(strings.Fields(r.err), " "), `"permissions" counts for nothing in an AHP registration; `+right) {
		t.Errorf("a run: exit %d: %s", r.code, r.err)
	}
}

// TestConfigCheckRules holds that a rule at fault among good ones is reported, and no
// other (I224); a rule about a tool that an extension may bring is a warning.
func TestConfigCheckRules(t *testing.T) {
	d := newDesk(t)
	d.user(`{"permissions": {"deny": ["bash(a*)", "bash(b*)", "read(/etc/**)", "bsh(rm*)", "write", "todo(x)", "mcp__docs__*", "mcp__dogs__x"]},
  "mcp": {"docs": {"command": "x"}}}`)
	code, out, errs := d.check()
	if code != 1 || strings.Contains(errs, "bash(a*)") {
		t.Errorf("exit %d, want 1: %s", code, errs)
	}
	wantLines(t, out, `config.json:1:68 permissions.deny[3]`, `there is no tool "bsh"; did you mean "bash"?`, `"todo(x)"`, `there is no MCP server "dogs"`, "3 faults")
	if strings.Contains(out, "bash(a*)") {
		t.Errorf("a good rule is reported:\n%s", out)
	}
	d.user(`{"permissions": {"deny": ["deploy(prod)"]}, "extensions": [{"name": "x", "command": "y", "match": ["bash(x", "bsh"]}]}`)
	if code, out, _ = d.check(); code != 1 || !strings.Contains(out, `extensions[0].match[0]: found "bash(x"`) {
		t.Errorf("exit %d\n%s", code, out)
	}
	d.user(`{"permissions": {"deny": ["deploy(prod)"]}, "extensions": [{"name": "x", "command": "y"}]}`)
	if code, out, errs = d.check(); code != 0 || !strings.Contains(errs, `whether "deploy" is a tool shows only when extension "x" runs`) {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	d.user(`{"permissions": {"deny": ["deploy(prod)"]}, "extensions": [{"name": "x", "command": "y", "events": ["tool_call"]}]}`)
	if code, out, _ = d.check(); code != 1 || !strings.Contains(out, `there is no tool "deploy"`) {
		t.Errorf("exit %d\n%s", code, out)
	}
}

// TestConfigCheckTools holds that the tools that the check knows are those of a session:
// no more, no less.
func TestConfigCheckTools(t *testing.T) {
	d := newDesk(t)
	d.put(".agents/skills/brew/SKILL.md", "---\nname: brew\ndescription: makes coffee\n---\nGrind.\n")
	o := app.ExplainOptions{Tool: "bash", Args: `{"command":"true"}`}
	o.Dir, o.MinTier, o.Deny = d.dir, "none", []string{strings.Repeat("z", 40)}
	explain := func(s app.System) int { return app.Explain(t.Context(), o, s) }
	check := func(s app.System) int {
		return app.ConfigCheck(app.ConfigCheckOptions{SettingsOptions: o.SettingsOptions}, s)
	}
	_, _, session := d.do(explain)
	_, checked, _ := d.do(check)
	_, want, ok := strings.Cut(strings.TrimSpace(session), "; known are ")
	if !ok || !strings.Contains(want, "bash") {
		t.Fatalf("a session doesn't say its tools: %s", session)
	}
	if line, _, _ := strings.Cut(checked, "\n"); !strings.HasSuffix(line, "; known are "+want) {
		t.Errorf("the check says %s\na session %s", line, session)
	}
}

// TestConfigCheckFile checks files as they count at their place.
func TestConfigCheckFile(t *testing.T) {
	d := newDesk(t)
	d.managed(`{"custom_providers": [{"name": "ours", "api": "openai", "base_url": "https://llm.example/v1", "sampling": ["seed"]}]}`)
	project := filepath.Join("other", ".abhed", "config.json")
	for name, tt := range map[string]struct {
		file, text string
		code       int
		says       []string
	}{
		"sound":                     {"a.json", `{"model": "ours/x"}`, 0, []string{"valid      "}},
		"a project's":               {project, `{"model": "ours/x", "sampling": {"seed": 1}}`, 0, []string{"valid      "}},
		"a provider elsewhere":      {"a.json", `{"model": "theirs/x"}`, 1, []string{`a.json:1:11: model: the provider "theirs", which isn't known`}},
		"sampling of a provider":    {project, `{"model": "ours/x", "sampling": {"top_k": 1}}`, 1, []string{`:1:43: sampling.top_k: the parameter "top_k"`}},
		"an untrusted project's":    {project, `{"model": "theirs/x"}`, 1, []string{`"theirs"`}},
		"rules":                     {"a.json", `{"permissions": {"ask": ["raed"]}}`, 1, []string{`did you mean "read"?`}},
		"no JSON":                   {"a.json", "{\n\"model\": }", 1, []string{"a.json:2:10"}},
		"twice the same key":        {"a.json", `{"model": "ours/x", "model": "ours/y"}`, 1, []string{"a.json:1:21"}},
		"a registration":            {"a.json", `{"protocolVersion": "draft", "hooks": []}`, 1, []string{`"protocolVersion"`, "AHP backends are registered in the file that ahp.registration names"}},
		"what the settings name":    {"a.json", `{"ahp": {"registration": "gone.json"}, "http": {"ca_file": "pem"}}`, 1, []string{"a.json:1:26: ahp.registration: ", "gone.json isn't there", "a.json:1:60: http.ca_file: ", "2 faults"}},
		"what a registration holds": {"a.json", `{"ahp": {"registration": "reg.json"}}`, 1, []string{"reg.json:1:"}},
	} {
		t.Run(name, func(t *testing.T) {
			d.put("pem", "no certificate")
			d.put("reg.json", `{"protocolVersion": "draft", "hooks": [{"id": "x"}]}`)
			file := d.put(tt.file, tt.text)
			code, out, errs := d.check(file)
			if code != tt.code {
				t.Errorf("exit %d, want %d", code, tt.code)
			}
			wantLines(t, out, tt.says...)
			if t.Failed() {
				t.Logf("%s%s", out, errs)
			}
			// In JSON it is the same.
			o := app.ConfigCheckOptions{Files: []string{file}, JSON: true}
			o.Dir = d.dir
			_, out, _ = d.do(func(s app.System) int { return app.ConfigCheck(o, s) })
			var got struct {
				OK     bool `json:"ok"`
				Faults []struct {
					File    string `json:"file"`
					Message string `json:"message"`
				} `json:"faults"`
			}
			if err := strictjson.Unmarshal([]byte(out), &got, strictjson.Options{}); err != nil || got.OK != (tt.code == 0) || got.OK != (len(got.Faults) == 0) {
				t.Errorf("%v in %s", err, out)
			}
			for _, f := range got.Faults {
				if f.File != file {
					t.Errorf("the fault is said to be in %s: %s", f.File, f.Message)
				}
			}
		})
	}
	// What is above can be what the file doesn't fit.
	d.managed(`{"sampling": {"top_k": 1}}`)
	if code, out, _ := d.check(d.put("a.json", `{"model": "openai/x"}`)); code != 1 || !strings.Contains(out, `managed/config.json:1:24: sampling.top_k`) {
		t.Errorf("exit %d\n%s", code, out)
	}
	if code, out, _ := d.check(d.put("a.json", `{"model": "anthropic/x"}`)); code != 0 {
		t.Errorf("exit %d\n%s", code, out)
	}
	// A broken file above doesn't hide what is wrong here, nor is it reported.
	d.managed("{")
	if code, out, _ := d.check(d.put("a.json", `{"modle": "x/y"}`)); code != 1 || strings.Contains(out, "managed") || !strings.Contains(out, `did you mean "model"?`) {
		t.Errorf("exit %d\n%s", code, out)
	}
	for _, tt := range []struct {
		name string
		code int
	}{{filepath.Join(d.dir, "gone.json"), 2}, {d.dir, 3}} {
		if code, out, errs := d.check(tt.name); code != tt.code || out != "" || !strings.Contains(errs, tt.name) {
			t.Errorf("%s: exit %d, want %d\n%s%s", tt.name, code, tt.code, out, errs)
		}
	}
}

// TestConfigShowPrecedence holds for every combination of sources that the tier that is
// printed is the documented one, with the place that it comes from (I231).
func TestConfigShowPrecedence(t *testing.T) {
	tiers := []string{"", "none", "process", "container"}
	rank := map[string]int{"none": 0, "process": 1, "container": 2}
	for n := range 256 {
		managed, flag, user, project := tiers[n&3], tiers[n>>2&3], tiers[n>>4&3], tiers[n>>6&3]
		want, from := "process", "default"
		for _, s := range []struct{ tier, from string }{{user, "user"}, {flag, "command line"}} {
			if s.tier != "" {
				want, from = s.tier, s.from
			}
		}
		for _, s := range []struct{ tier, from string }{{project, "project"}, {managed, "managed"}} {
			if s.tier != "" && (rank[s.tier] > rank[want] || s.tier == want && (s.from == "managed" || from == "default")) {
				want, from = s.tier, s.from
			}
		}
		d := newDesk(t)
		for write, tier := range map[*func(string)]string{ptr(d.managed): managed, ptr(d.user): user, ptr(func(s string) { d.put(".abhed/config.json", s) }): project} {
			if tier != "" {
				(*write)(fmt.Sprintf(`{"sandbox": {"min_tier": %q}}`, tier))
			}
		}
		o := app.SettingsOptions{Dir: d.dir, MinTier: flag, TrustWorkspace: true}
		code, out, errs := d.do(func(s app.System) int { return app.ConfigShow(o, false, s) })
		line := fmt.Sprintf("sandbox.min_tier = %q  # %s", want, from)
		if code != 0 || !strings.Contains(out, line) {
			t.Errorf("managed %q, flag %q, user %q, project %q: exit %d, want %s in\n%s%s", managed, flag, user, project, code, line, out, errs)
		}
	}
}

func ptr[T any](v T) *T { return &v }

// TestConfigShowSecrets holds that no value of a key or of a variable is shown, in
// either form.
func TestConfigShowSecrets(t *testing.T) {
	const secret = "hush-hush-secret"
	d := newDesk(t)
	d.env = append(d.env, "ABHED_BASE_URL=http://127.0.0.1:1/v1", "ABHED_MODEL=m", "ABHED_API_KEY="+secret, "OURS_KEY="+secret, "ANTHROPIC_API_KEY="+secret)
	d.user(`{"extensions": [{"name": "x", "command": "y", "env": {"TOKEN": "` + secret + `"}}], "mcp": {"m": {"command": "z", "env": {"TOKEN": "` + secret + `"}}},
 "secrets": {"env": ["OURS_KEY"]}, "custom_providers": [{"name": "ours", "api": "openai", "base_url": "https://llm.example/v1", "api_key_env": "OURS_KEY", "headers_env": {"X-Key": "OURS_KEY"}}]}`)
	o := app.SettingsOptions{Dir: d.dir}
	for _, asJSON := range []bool{false, true} {
		for name, command := range map[string]func(app.System) int{
			"show":      func(s app.System) int { return app.ConfigShow(o, asJSON, s) },
			"providers": func(s app.System) int { return app.Providers(o, asJSON, s) },
			"check": func(s app.System) int {
				return app.ConfigCheck(app.ConfigCheckOptions{SettingsOptions: o, JSON: asJSON}, s)
			},
		} {
			code, out, errs := d.do(command)
			if code != 0 || strings.Contains(out+errs, secret) {
				t.Errorf("%s: exit %d\n%s%s", name, code, out, errs)
			}
			if name != "check" {
				wantLines(t, out, "OURS_KEY")
			}
		}
	}
}
