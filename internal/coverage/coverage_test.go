package coverage

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter"
	"github.com/abhed/abhed/ahp/adapter/hosts"
	"github.com/abhed/abhed/internal/hostconf"
	"github.com/abhed/abhed/internal/require"
)

var update = flag.Bool("update", false, "write docs/hosts.md")

func TestPageIsUpToDate(t *testing.T) {
	list, err := Agents()
	if err != nil {
		t.Fatal(err)
	}
	file, want := filepath.Join(require.Root(t), "docs", "hosts.md"), Markdown(list)
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, string(got)); d != "" {
		t.Errorf("docs/hosts.md isn't what the tables say: go test ./internal/coverage -update (-want +got)\n%s", d)
	}
}

// TestEveryRegisteredEventHasAMeaning holds the two tables together: an event that is
// installed is one that the adapter knows, and each adapter has a configuration.
func TestEveryRegisteredEventHasAMeaning(t *testing.T) {
	for _, h := range hosts.All() {
		conf, is := hostconf.Lookup(h.Name)
		if !is {
			t.Errorf("%s has no configuration", h.Name)
			continue
		}
		before := false
		for _, target := range conf.Targets {
			for _, e := range target.Events {
				row := h.Row(e.Name)
				if row == nil {
					t.Errorf("%s: %s is installed, and the adapter doesn't know it", h.Name, e.Name)
					continue
				}
				before = before || row.Type == ahp.ToolBefore && row.Denies()
				if e.Gate != row.Denies() {
					t.Errorf("%s: %s: installed as a gate: %v, and the adapter can refuse there: %v", h.Name, e.Name, e.Gate, row.Denies())
				}
			}
		}
		if !before {
			t.Errorf("%s: no event that can refuse a tool is installed", h.Name)
		}
	}
	for _, name := range hostconf.Names() {
		if hosts.Lookup(name) == nil {
			t.Errorf("%s has a configuration and no adapter", name)
		}
	}
}

func TestMeasurementWins(t *testing.T) {
	rows := []run{
		{Host: "x", Version: "1", Date: "2026-01-02", System: "s", Scenario: "deny", Policy: "fail-closed", Scope: "user"},
		{Host: "x", Version: "2", Date: "2026-01-02", System: "s", Scenario: "deny", Policy: "fail-closed", Scope: "user", Ran: true, Note: "it ran"},
		{Host: "x", Version: "1", Date: "2026-01-02", System: "s", Scenario: "ask", Policy: "fail-closed", Scope: "user", Native: "Other"},
		{Host: "x", Version: "1", Date: "2026-01-02", System: "s", Scenario: "rewrite", Policy: "fail-closed", Scope: "user"},
		{Host: "x", Version: "1", Date: "2026-01-02", System: "s", Scenario: "ask", Policy: "fail-open", Scope: "user", Ran: true},
	}
	h := &adapter.Host{Name: "x", Rows: []adapter.Row{{Native: "Pre", Type: ahp.ToolBefore}, {Native: "Other", Type: ahp.ToolBefore}}}
	row := &adapter.Row{Native: "Pre", Type: ahp.ToolBefore, Can: []adapter.Ability{
		{Effect: ahp.EffectDeny, How: adapter.Native, Level: adapter.Enforced}, {Effect: ahp.EffectModify, How: adapter.Native, Level: adapter.Enforced},
		{Effect: ahp.EffectAsk, How: adapter.Denies, Level: adapter.Enforced},
	}}
	levels := func(conf hostconf.Host, scope hostconf.Scope) string {
		var out []string
		for _, c := range cells(h, row, conf, scope, rows, []string{"1", "2"}) {
			out = append(out, strings.Join([]string{string(c.Effect), c.Version, string(c.Level), c.Known}, "/"))
		}
		return strings.Join(out, " ")
	}
	for _, tt := range []struct {
		name  string
		conf  hostconf.Host
		scope hostconf.Scope
		want  string
	}{
		{"user", hostconf.Host{}, hostconf.User,
			"deny/1/enforced/measured 2026-01-02 on s deny/2/none/measured 2026-01-02 on s modify/1/best effort/measured 2026-01-02 on s ask//enforced/documented"},
		{"project", hostconf.Host{}, hostconf.Project, "deny//best effort/documented modify//best effort/documented ask//best effort/documented"},
		{"managed", hostconf.Host{}, hostconf.Managed, "deny//enforced/documented modify//enforced/documented ask//enforced/documented"},
		{"a repository's switch", hostconf.Host{Switches: []hostconf.Switch{{Kind: hostconf.KeySwitch, Name: "off", Scopes: []hostconf.Scope{hostconf.Project}, Stops: []hostconf.Scope{hostconf.Managed}}}},
			hostconf.Managed, "deny//best effort/documented modify//best effort/documented ask//best effort/documented"},
		{"the user's own switch", hostconf.Host{Switches: []hostconf.Switch{{Kind: hostconf.KeySwitch, Name: "off", Scopes: []hostconf.Scope{hostconf.User}, Stops: []hostconf.Scope{hostconf.Managed}}}},
			hostconf.Managed, "deny//enforced/documented modify//enforced/documented ask//enforced/documented"},
		{"a repository's switch that the installation pins", pinned(hostconf.Managed), hostconf.Managed, "deny//enforced/documented modify//enforced/documented ask//enforced/documented"},
		{"one that it pins elsewhere", pinned(hostconf.User), hostconf.Managed, "deny//best effort/documented modify//best effort/documented ask//best effort/documented"},
	} {
		if d := cmp.Diff(tt.want, levels(tt.conf, tt.scope)); d != "" {
			t.Errorf("%s (-want +got)\n%s", tt.name, d)
		}
	}
}

// pinned is a host whose hooks a repository can switch off, but for an installation in
// one scope.
func pinned(s hostconf.Scope) hostconf.Host {
	return hostconf.Host{Switches: []hostconf.Switch{{Kind: hostconf.KeySwitch, Name: "off", Scopes: []hostconf.Scope{hostconf.Project}, Stops: hostconf.Scopes(), Pinned: []hostconf.Scope{s}}}}
}

// TestPinnedSwitches holds which scopes of real hosts no repository can switch off.
func TestPinnedSwitches(t *testing.T) {
	list, err := Agents()
	if err != nil {
		t.Fatal(err)
	}
	levels := map[hostconf.Scope]adapter.Level{}
	for _, a := range list {
		for _, c := range a.Cells {
			if a.Host == "codex" && c.Native == "PreToolUse" && c.Effect == ahp.EffectDeny {
				levels[c.Scope] = c.Level
			}
		}
	}
	want := map[hostconf.Scope]adapter.Level{hostconf.User: adapter.BestEffort, hostconf.Project: adapter.BestEffort, hostconf.Managed: adapter.Enforced}
	if d := cmp.Diff(want, levels); d != "" {
		t.Errorf("codex (-want +got)\n%s", d)
	}
}

func TestMeasuredFileIsSound(t *testing.T) {
	rows, err := measured()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if hosts.Lookup(r.Host) == nil || r.Version == "" || r.Date == "" || r.Scope == "" {
			t.Errorf("%+v", r)
		}
	}
}
