package app_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/abhed/abhed/internal/app"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/model/modeltest"
	"github.com/abhed/abhed/internal/require"
)

// put writes a file, with the folders above it.
func (w *world) put(path, content string) string {
	w.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return path
}

func (w *world) managed(text string) { w.put(filepath.Join(w.home, "managed", "config.json"), text) }

func (w *world) project(text string) { w.put(filepath.Join(w.dir, ".abhed", "config.json"), text) }

// has reports whether the workspace has the file.
func (w *world) has(name string) bool {
	_, err := os.Stat(filepath.Join(w.dir, name))
	return err == nil
}

// done is the last turn of a script.
func done() modeltest.Turn { return modeltest.Turn{Text: "done"} }

// says is the part of the record and of the output that a test looks into.
func (w *world) says(r result, id string) string { return outcome(w.events(r), id) + r.err }

const markerArgs = `{"path":"marker","content":"x"}`

// TestManagedSettingsHold lets the command line, the variables, the user's and the
// trusted project's file all loosen what the managed file says. Each row is run
// without the managed file too: then the attempt must succeed, or the row would
// show nothing.
func TestManagedSettingsHold(t *testing.T) {
	const loose = `{"permissions":{"mode":"bypass","max_mode":"bypass","allow":["write"]},"sandbox":{"min_tier":"none","network":true},
		"limits":{"max_turns":50,"max_tokens":1000000,"max_cost_usd":1000,"max_seconds":1000},"models":{"env/test":{"price":{"input":1,"output":1}}}}`
	write, shell := call("write", markerArgs), call("bash", `{"command":"echo x > marker"}`)
	slow := modeltest.Turn{Text: "x", Faults: []modeltest.Fault{modeltest.StallHeaders()}}
	tests := []struct {
		name, managed string
		turns         []modeltest.Turn
		code          int
		marker        bool
		says          string
	}{
		{"deny", `{"permissions":{"deny":["write"]}}`, []modeltest.Turn{write, done()}, 0, false, "deny rule write"},
		{"ask", `{"permissions":{"ask":["write"]}}`, []modeltest.Turn{write, done()}, 0, false, "Nobody can be asked"},
		{"mode", `{"permissions":{"mode":"default"}}`, []modeltest.Turn{shell, done()}, 0, false, "Nobody can be asked"},
		{"mode plan", `{"permissions":{"mode":"plan"}}`, []modeltest.Turn{write, done()}, 0, false, "in plan mode"},
		{"max_mode default", `{"permissions":{"max_mode":"default"}}`, []modeltest.Turn{shell, done()}, 0, false, "Nobody can be asked"},
		{"max_mode plan", `{"permissions":{"max_mode":"plan"}}`, []modeltest.Turn{write, done()}, 0, false, "in plan mode"},
		{"max_turns", `{"limits":{"max_turns":1}}`, []modeltest.Turn{write, done()}, 3, true, "max_turns"},
		{"max_tokens", `{"limits":{"max_tokens":1}}`, []modeltest.Turn{write, done()}, 3, true, "max_tokens"},
		{"max_cost_usd", `{"limits":{"max_cost_usd":0.000001}}`, []modeltest.Turn{write, done()}, 3, true, "max_cost"},
		{"max_seconds", `{"limits":{"max_seconds":1}}`, []modeltest.Turn{write, slow}, 3, true, "max_time"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, managed := range []bool{true, false} {
				if !managed && tt.name == "max_seconds" {
					continue // without a bound it would never end
				}
				w := newWorld(t, tt.turns...)
				w.settings(loose)
				w.project(loose)
				w.opts.TrustWorkspace, w.opts.Mode, w.opts.Allow = true, "bypass", []string{"write"}
				w.opts.MaxTurns, w.opts.MaxTokens, w.opts.MaxCost = 50, 1_000_000, 1000
				if managed {
					w.managed(tt.managed)
				}
				r := w.run(t.Context())
				code, marker, says := tt.code, tt.marker, tt.says
				if !managed {
					code, marker, says = 0, true, ""
				}
				if mode, bound := strings.CutPrefix(tt.name, "max_mode "); managed && bound && !strings.Contains(rulesOf(w.events(r)), `"max_mode":"`+mode+`"`) {
					t.Errorf("the recorded rules lack the bound %s: %s", mode, rulesOf(w.events(r)))
				}
				if r.code != code || w.has("marker") != marker || !strings.Contains(w.says(r, "call_1"), says) {
					t.Errorf("managed file %t: exit %d, want %d; marker %t, want %t; want %q in\n%s", managed, r.code, code, w.has("marker"), marker, says, w.says(r, "call_1"))
				}
			}
		})
	}
}

// TestManagedSandboxHolds is the same for what confines the commands.
func TestManagedSandboxHolds(t *testing.T) {
	t.Run("network", func(t *testing.T) {
		require.Path(t, "bwrap")
		for _, managed := range []bool{true, false} {
			w := newWorld(t, done())
			w.settings(`{"sandbox":{"network":true}}`)
			if managed {
				w.managed(`{"sandbox":{"network":false}}`)
			}
			r := w.run(t.Context())
			if s := started(w.events(r)); r.code != 0 || s.Network == managed {
				t.Errorf("managed file %t: exit %d, network %t; %s", managed, r.code, s.Network, r.err)
			}
		}
	})
	t.Run("min_tier", func(t *testing.T) {
		bin := t.TempDir() // without bwrap
		if err := os.Symlink(require.Path(t, "sh"), filepath.Join(bin, "sh")); err != nil {
			t.Fatal(err)
		}
		t.Setenv("PATH", bin)
		for _, managed := range []bool{true, false} {
			w := newWorld(t, done())
			w.settings(`{"sandbox":{"min_tier":"none"}}`)
			want := 0
			if managed {
				w.managed(`{"sandbox":{"min_tier":"process"}}`)
				want = 2
			}
			if r := w.run(t.Context()); r.code != want || managed && !strings.Contains(r.err, "bwrap") {
				t.Errorf("managed file %t: exit %d, want %d; %s", managed, r.code, want, r.err)
			}
		}
	})
}

// rulesOf returns the rule set that a record holds.
func rulesOf(events []event.Event) string {
	for _, e := range events {
		if p, ok := e.Payload.(*event.RulesSet); ok {
			return string(p.Rules)
		}
	}
	return ""
}

func started(events []event.Event) *event.SessionStarted {
	for _, e := range events {
		if p, ok := e.Payload.(*event.SessionStarted); ok {
			return p
		}
	}
	return &event.SessionStarted{}
}

// TestSourcesRank names a model in more and more sources; the endpoint sees whose
// counts.
func TestSourcesRank(t *testing.T) {
	model := func(name string) string { return fmt.Sprintf(`{"model":"env/%s"}`, name) }
	steps := []struct {
		source string
		set    func(w *world)
	}{
		{"project", func(w *world) { w.project(model("project")) }},
		{"user", func(w *world) { w.put(filepath.Join(w.home, ".config", "abhed", "config.json"), model("user")) }},
		{"variable", func(w *world) { w.env = append(w.env, "ABHED_MODEL=variable") }},
		{"flag", func(w *world) { w.opts.Model = "env/flag" }},
		{"managed", func(w *world) { w.managed(model("managed")) }},
	}
	for n, last := range steps {
		w := newWorld(t, done())
		w.opts.TrustWorkspace = true
		w.env = slices.DeleteFunc(w.env, func(v string) bool { return strings.HasPrefix(v, "ABHED_MODEL=") })
		for _, s := range steps[:n+1] {
			s.set(w)
		}
		r := w.run(t.Context())
		if q := w.server.Requests(); r.code != 0 || len(q) != 1 || q[0].Model != last.source || q[0].Header.Get("Authorization") != "Bearer key-for-tests" {
			t.Errorf("%s: exit %d, %d requests: %+v\n%s", last.source, r.code, len(q), q, r.err)
		}
	}
	// --config stands in for the user's file, and doesn't join it.
	w := newWorld(t, done())
	w.put(filepath.Join(w.home, ".config", "abhed", "config.json"), `{"permissions":{"deny":["write"]},"limits":{"max_turns":1}}`)
	w.settings(`{}`)
	w.env = append(w.env, "XDG_CONFIG_HOME="+filepath.Join(w.home, ".config"))
	if r := w.run(t.Context()); r.code != 0 {
		t.Errorf("exit %d: %s", r.code, r.err)
	}
}

// TestProjectNeedsTrust runs the same project without and with trust. Without it
// only what is stricter applies.
func TestProjectNeedsTrust(t *testing.T) {
	type want struct {
		code   int
		marker bool
		says   string
	}
	ran, denied, asked := want{0, true, ""}, want{0, false, "deny rule write"}, want{0, false, "Nobody can be asked"}
	limit := want{3, true, "max_turns"}
	write, shell := call("write", markerArgs), call("bash", `{"command":"echo x > marker"}`)
	tests := []struct {
		name, project      string
		call               modeltest.Turn
		untrusted, trusted want
	}{
		{"deny", `{"permissions":{"deny":["write"]}}`, write, denied, denied},
		{"ask", `{"permissions":{"ask":["write"]}}`, write, asked, asked},
		{"mode plan", `{"permissions":{"mode":"plan"}}`, write, want{0, false, "in plan mode"}, want{0, false, "in plan mode"}},
		{"lower limit", `{"limits":{"max_turns":1}}`, write, limit, limit},
		{"mode default", `{"permissions":{"mode":"default"}}`, write, ran, asked},
		{"max_mode default", `{"permissions":{"max_mode":"default"}}`, write, ran, asked},
		{"allow", `{"permissions":{"allow":["bash"]}}`, shell, asked, ran},
		{"extension", `{"extensions":[{"name":"own","command":"sh","args":["WORKSPACE/block.sh"]}]}`, write, ran, want{0, false, "extension own: said so"}},
		{"registration", `{"ahp":{"registration":"gone.json"}}`, write, ran, want{2, false, "gone.json"}},
		{"model", `{"model":"env/other","custom_providers":[{"name":"other","api":"nonsense"}]}`, write, want{2, false, "nonsense"}, want{2, false, "nonsense"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, trusted := range []bool{false, true} {
				w := newWorld(t, tt.call, done())
				w.project(strings.ReplaceAll(tt.project, "WORKSPACE", w.dir))
				w.write("block.sh", blocking("said so", "*"))
				w.opts.Mode, w.opts.TrustWorkspace = "accept-edits", trusted
				r, want := w.run(t.Context()), tt.untrusted
				if trusted {
					want = tt.trusted
				}
				text := r.err
				if want.code != 2 {
					text = w.says(r, "call_1")
				}
				if r.code != want.code || w.has("marker") != want.marker || !strings.Contains(text, want.says) {
					t.Errorf("trusted %t: exit %d, marker %t, want %+v\n%s", trusted, r.code, w.has("marker"), want, text)
				}
				if told := strings.Contains(r.err, "ignored: "); told != (!trusted && tt.untrusted != tt.trusted) {
					t.Errorf("trusted %t: told of something ignored: %t\n%s", trusted, told, r.err)
				}
			}
		})
	}
	// What would raise a limit counts neither way.
	for _, trusted := range []bool{false, true} {
		w := newWorld(t, write, done())
		w.project(`{"limits":{"max_turns":50}}`)
		w.opts.Mode, w.opts.TrustWorkspace, w.opts.MaxTurns = "accept-edits", trusted, 1
		if r := w.run(t.Context()); r.code != 3 {
			t.Errorf("a raised limit, trusted %t: exit %d, %s", trusted, r.code, r.err)
		}
	}
}

// blocking is the script of an extension that blocks the calls whose request fits
// a shell pattern.
func blocking(reason, pattern string) string {
	return `while IFS= read -r r; do case $r in
*'"event":"tool_call"'` + pattern + `) echo '{"block":true,"reason":"` + reason + `"}' ;;
*) echo '{}' ;; esac; done
`
}

// TestWhatDecidesIsProtected tries in the mode that asks least, and without a
// sandbox, to write what decides about the agent, and to read what signs and what
// is secret.
func TestWhatDecidesIsProtected(t *testing.T) {
	w := newWorld(t)
	home := func(parts ...string) string { return filepath.Join(append([]string{w.home}, parts...)...) }
	second := home("second")
	for _, d := range []string{second, filepath.Join(w.dir, ".git", "hooks"), filepath.Join(second, ".git")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	w.put(home("ext", "guard.sh"), "exec cat > /dev/null\n")
	w.put(home("ext", "rules.txt"), "")
	if err := os.Chmod(w.put(home("bin", "judge"), "#!/bin/sh\nwhile read r; do echo '{}'; done\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	w.put(home("token"), "a token of the house\n")
	registration := w.put(home("reg.json"), registrationText("org.test.none", "http://127.0.0.1:9/", "session.end", "observe"))
	w.settings(fmt.Sprintf(`{"permissions":{"mode":"bypass"},"secrets":{"files":[%q]},"extensions":[
		{"name":"guard","command":"sh","args":["guard.sh","rules.txt"],"cwd":%q,"events":["session_end"]},
		{"name":"judge","command":%q,"events":["session_end"]}]}`, home("token"), home("ext"), home("bin", "judge")))
	w.opts.Registration, w.opts.AddDirs = registration, []string{second}

	written := []string{
		home("config.json"), home("managed", "config.json"), home("managed", "more.json"), home("managed", "registration.json"), registration,
		home(".config", "abhed", "config.json"), home(".config", "abhed", "trust.json"),
		home(".local", "state", "abhed", "key"), home(".local", "state", "abhed", "sessions", "x.jsonl"), home(".local", "state", "abhed", "trust.json"),
		home("ext", "guard.sh"), home("ext", "rules.txt"), home("bin", "judge"),
	}
	for _, root := range []string{w.dir, second} {
		for _, name := range []string{".abhed/config.json", ".abhed/new", ".ahp/registration.json", ".git/hooks/pre-commit", ".git/config"} {
			written = append(written, filepath.Join(root, name))
		}
	}
	read := []string{home(".local", "state", "abhed", "key"), home("token")}
	w.calls(t, "protected from writing", "write", "x", written...)
	w.calls(t, "protected from writing", "edit", "x", home("ext", "guard.sh"))
	w.calls(t, "protected from reading", "read", "", read...)
	w.calls(t, "protected from reading", "grep", "", read...)
	w.calls(t, "protected from reading", "write", "", home("token"))
	// The same mode lets everything else through, so it was the protection.
	w.calls(t, "", "write", "x", home("free"), home("ext", "free"), filepath.Join(second, "free"))
}

// calls runs the program with one call of a tool for each path, and looks at what
// the model reads of it.
func (w *world) calls(t *testing.T, want, tool, content string, paths ...string) {
	t.Helper()
	turn := modeltest.Turn{}
	before := map[string]string{}
	for i, p := range paths {
		args := map[string]string{
			"write": fmt.Sprintf(`{"path":%q,"content":%q}`, p, content), "edit": fmt.Sprintf(`{"path":%q,"old_string":"cat","new_string":%q}`, p, content),
			"read": fmt.Sprintf(`{"path":%q}`, p), "grep": fmt.Sprintf(`{"pattern":".","path":%q}`, p),
		}[tool]
		turn.Calls = append(turn.Calls, modeltest.Call{ID: fmt.Sprintf("c%d", i), Name: tool, Args: args})
		data, _ := os.ReadFile(p)
		before[p] = string(data)
	}
	server := modeltest.NewWith(t, modeltest.Options{Turns: []modeltest.Turn{turn, done()}})
	w.env = append(slices.DeleteFunc(w.env, func(v string) bool { return strings.HasPrefix(v, "ABHED_BASE_URL=") }), "ABHED_BASE_URL="+server.URL)
	r := w.run(t.Context())
	if r.code != 0 {
		t.Fatalf("exit %d: %s", r.code, r.err)
	}
	events := w.events(r)
	for i, p := range paths {
		got := outcome(events, fmt.Sprintf("c%d", i))
		if want == "" && strings.Contains(got, "protected") || !strings.Contains(got, want) {
			t.Errorf("%s %s: the model reads %q, which lacks %q", tool, p, got, want)
		}
		data, err := os.ReadFile(p)
		if key := strings.HasSuffix(p, "/key"); want != "" && !key && string(data) != before[p] || want == "" && err != nil {
			t.Errorf("%s %s: it holds %q now, before %q; %v", tool, p, data, before[p], err)
		}
	}
}

// TestSystemRegistrationIsProtected only explains: a mistake would write to the
// machine.
func TestSystemRegistrationIsProtected(t *testing.T) {
	w := newWorld(t)
	for _, path := range []string{"/etc/ahp/registration.json", filepath.Join(w.home, ".config", "ahp", "registration.json")} {
		var out, errs safeBuffer
		o := app.ExplainOptions{SettingsOptions: w.opts.SettingsOptions, Tool: "write", Args: fmt.Sprintf(`{"path":%q,"content":""}`, path)}
		o.Mode = "bypass"
		if code := app.Explain(t.Context(), o, w.system(&out, &errs)); code != 0 || !strings.Contains(out.String(), "protected from writing") {
			t.Errorf("%s: exit %d\n%s%s", path, code, out.String(), errs.String())
		}
	}
}
