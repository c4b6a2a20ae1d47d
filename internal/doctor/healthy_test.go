package doctor

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter"
	"github.com/abhed/abhed/ahp/adapter/hosts"
	"github.com/abhed/abhed/internal/hostconf"
	"github.com/abhed/abhed/internal/install"
)

// TestPayloads: each host has an event for the canary in each of its places, and its
// adapter takes that for a call of the reserved tool.
func TestPayloads(t *testing.T) {
	t.Parallel()
	for _, h := range hostconf.All() {
		dialect := hosts.Lookup(h.Name)
		for _, target := range h.Targets {
			list := gates(h.Name, target)
			if len(list) != 1 {
				t.Errorf("%s %s: canaries for %q, expected one event", h.Name, target.Path, list)
			}
			for _, native := range list {
				data := payload(h.Name, native, "ahp_canary_deny", "canary-1", "/tmp/x")
				e, err := hosts.Read(dialect, adapter.Input{Data: data, Native: native})
				if err != nil {
					t.Errorf("%s %s: %v\n%s", h.Name, native, err, data)
					continue
				}
				name := e.AHP.Tool.Name
				if e.AHP.Tool.MCP != nil {
					name = e.AHP.Tool.MCP.ToolName
				}
				if e.AHP.Type != ahp.ToolBefore || name != "ahp_canary_deny" || !strings.Contains(string(e.AHP.Tool.Input), `"canary":"canary-1"`) || e.Row.Native != native {
					t.Errorf("%s %s: %s %s %s", h.Name, native, e.AHP.Type, name, e.AHP.Tool.Input)
				}
				if real := hosts.Recognise(dialect, data, nil); real.Name != h.Name {
					t.Errorf("%s %s is taken for an event of %s", h.Name, native, real.Name)
				}
			}
		}
	}
	if payload("windsurf", "pre_read_code", "x", "canary-1", "/") != nil {
		t.Error("an event that names no tool carries a canary")
	}
}

// TestHealthy: what was just installed is in order, in every host and scope.
func TestHealthy(t *testing.T) {
	t.Parallel()
	for _, h := range hostconf.All() {
		for _, scope := range hostconf.Scopes() {
			if len(h.In(scope)) == 0 {
				continue
			}
			t.Run(h.Name+"/"+string(scope), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				w.others(h, scope)
				w.install(h.Name, scope)
				if h.Name == "codex" && scope == hostconf.Project {
					w.trustProject()
				}
				r := w.run()
				if r.Wrong || len(r.find(OK, "canary")) == 0 || len(r.find(OK, "log")) != 1 || len(r.find(OK, "backend")) != 1 || len(r.find(OK, "binary")) != 1 {
					t.Errorf("%s", r.Text(true))
				}
				if h.In(scope)[0].Shape == hostconf.Bridge {
					w.wants(r, want{level: Warning, check: "heartbeat", what: "never spoken"})
				} else if n := r.find(Warning, ""); len(n) > 0 {
					t.Errorf("warnings: %v", n)
				}
				for _, f := range r.Findings {
					if f.Level == Warning && f.Check != "heartbeat" {
						t.Errorf("a warning: %+v", f)
					}
				}
			})
		}
	}
}

// others puts agents there to which the entries go as well.
func (w *world) others(h hostconf.Host, scope hostconf.Scope) {
	for _, t := range h.In(scope) {
		if t.Existing && t.Format != hostconf.TOML {
			w.write(strings.ReplaceAll(w.o.Roots.Path(t.File), "*", "coder"), "{}\n")
		}
	}
}

// trustProject is what a person does in Codex: trust the project and its hooks.
func (w *world) trustProject() {
	w.t.Helper()
	path := filepath.Join(w.project, ".codex", "hooks.json")
	list, err := install.CodexHooks(path, []byte(w.read(path)))
	if err != nil {
		w.t.Fatal(err)
	}
	text := "[projects.\"" + w.project + "\"]\ntrust_level = \"trusted\"\n"
	for _, k := range list {
		text += "[hooks.state.\"" + k.Key + "\"]\ntrusted_hash = \"" + k.Hash + "\"\n"
	}
	w.write(filepath.Join(w.home, ".codex", "config.toml"), text)
}

// TestNothingInstalled: a host that is named and has nothing is wrong; without a name it
// isn't told of.
func TestNothingInstalled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.run()
	if r.Wrong || len(r.find(Note, "installed")) != 1 {
		t.Errorf("%s", r.Text(true))
	}
	w.wants(w.run("gemini"), want{level: Wrong, check: "installed", what: "not in the configuration of Gemini"})
	w.install("gemini", hostconf.User)
	w.wants(w.run("gemini", "codex"), want{level: Wrong, check: "installed", what: "Codex"})
	w.o.Scope = hostconf.Managed
	w.wants(w.run("gemini"), want{level: Wrong, check: "installed", what: "Gemini"})
	w.o.Hosts = []string{"claude"}
	if _, err := Run(t.Context(), w.o); err == nil || !strings.Contains(err.Error(), "claude-code") {
		t.Errorf("an unknown host: %v", err)
	}
}

// TestNothingIsChanged: the doctor leaves every file of the agent and the account as it
// is, but for what a hook writes.
func TestNothingIsChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.install("claude-code", hostconf.User)
	w.install("cline", hostconf.Project)
	w.run()
	files := func() (out []string) {
		err := filepath.WalkDir(w.dir, func(path string, d os.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() && !slices.ContainsFunc([]string{"/log/", "/sessions/", "/deliveries/", "/ahp/doctor.json"}, func(s string) bool { return strings.Contains(path, s) }) {
				sum, err := install.SumFile(path)
				out = append(out, path+" "+sum)
				return err
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	before := files()
	w.run()
	if after := files(); !slices.Equal(before, after) {
		t.Errorf("before\n%s\nafter\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
	}
}
