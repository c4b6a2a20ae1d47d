// Package coverage says what a policy can hold in each agent: host × version × scope ×
// event × effect, how well, how that is known, and where nothing is seen.
//
// It guarantees that a cell is "measured" only by a row of measured.json, which the
// end-to-end tests alone write from runs of the real agent; that a measurement wins over
// what the adapter's table says; and that a scope which a repository can switch off is
// at most "best effort".
//
// Do not assume that what was measured headless, in one version and on one system,
// holds with a person in front of it, in another version or elsewhere.
package coverage

import (
	"cmp"
	_ "embed"
	"fmt"
	"slices"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter"
	"github.com/abhed/abhed/ahp/adapter/hosts"
	"github.com/abhed/abhed/internal/hostconf"
	"github.com/abhed/abhed/internal/strictjson"
)

//go:embed measured.json
var measuredJSON []byte

// Cell is one cell of the matrix.
type Cell struct {
	Host string `json:"host"`
	// Version is the version that was measured, "" for any.
	Version string         `json:"version,omitzero"`
	Scope   hostconf.Scope `json:"scope"`
	// Native is the host's own name of the event.
	Native string         `json:"native"`
	Event  ahp.EventType  `json:"event"`
	Effect ahp.EffectType `json:"effect"`
	// Operation is set for the effect flow.
	Operation ahp.FlowOperation `json:"operation,omitzero"`
	Level     adapter.Level     `json:"level"`
	// How says by what means: the host's own, or what stands in.
	How adapter.How `json:"how,omitzero"`
	// Known says how the level is known: "documented", or "measured" with the date.
	Known string `json:"known"`
	Note  string `json:"note,omitzero"`
}

// Agent is what there is to know of one host beside its cells.
type Agent struct {
	Host  string `json:"host"`
	Title string `json:"title"`
	// Versions are those that were measured.
	Versions []string `json:"versions"`
	Cells    []Cell   `json:"cells"`
	// Blind names paths on which the host fires no hook that AHP is installed on.
	Blind []string `json:"blind"`
	// Switches say what turns hooks off.
	Switches []string `json:"switches"`
	// Others name what else can change a call or a decision, and other traps.
	Others []string `json:"others"`
}

// run is one row of measured.json: see package e2e, which writes it.
type run struct {
	Host     string `json:"host"`
	Version  string `json:"version"`
	Date     string `json:"date"`
	System   string `json:"system"`
	Scenario string `json:"scenario"`
	Policy   string `json:"policy"`
	Scope    string `json:"scope"`
	Ran      bool   `json:"ran"`
	Changed  bool   `json:"changed"`
	Told     bool   `json:"told"`
	Logged   bool   `json:"logged"`
	Note     string `json:"note"`
	// Native is the event at which the host asked, "" where that wasn't noted.
	Native string `json:"native"`
}

// measured reads the measured runs.
func measured() ([]run, error) {
	var doc struct {
		Schema int   `json:"schema"`
		Rows   []run `json:"rows"`
	}
	if err := strictjson.Unmarshal(measuredJSON, &doc, strictjson.Options{}); err != nil {
		return nil, fmt.Errorf("measured.json: %w", err)
	}
	if doc.Schema != 1 {
		return nil, fmt.Errorf("measured.json: found schema %d, expected 1", doc.Schema)
	}
	return doc.Rows, nil
}

// Agents returns the matrix of every host, in the order of package hosts.
func Agents() ([]Agent, error) {
	rows, err := measured()
	if err != nil {
		return nil, err
	}
	var out []Agent
	for _, h := range hosts.All() {
		conf, is := hostconf.Lookup(h.Name)
		if !is {
			return nil, fmt.Errorf("bug: the configuration of %s isn't known", h.Name)
		}
		out = append(out, agent(h, conf, rows))
	}
	return out, nil
}

func agent(h *adapter.Host, conf hostconf.Host, rows []run) Agent {
	a := Agent{Host: h.Name, Title: h.Title, Versions: []string{}, Cells: []Cell{}, Blind: []string{}, Switches: []string{}, Others: []string{}}
	for _, r := range rows {
		if r.Host == h.Name && !slices.Contains(a.Versions, r.Version) {
			a.Versions = append(a.Versions, r.Version)
		}
	}
	for _, scope := range hostconf.Scopes() {
		targets := conf.In(scope)
		if len(targets) == 0 {
			continue
		}
		for i := range h.Rows {
			if registered(targets, h.Rows[i].Native) {
				a.Cells = append(a.Cells, cells(h, &h.Rows[i], conf, scope, rows, a.Versions)...)
			}
		}
	}
	if why := inert()[h.Name]; why != "" {
		for i := range a.Cells {
			a.Cells[i].Level, a.Cells[i].Note = adapter.None, why
		}
	}
	a.describe(h, conf)
	return a
}

func registered(targets []hostconf.Target, native string) bool {
	return slices.ContainsFunc(targets, func(t hostconf.Target) bool {
		return slices.ContainsFunc(t.Events, func(e hostconf.Event) bool { return e.Name == native })
	})
}

// cells returns the cells of one native event in one scope.
func cells(h *adapter.Host, r *adapter.Row, conf hostconf.Host, scope hostconf.Scope, rows []run, versions []string) []Cell {
	if len(r.Can) == 0 {
		return []Cell{{Host: h.Name, Scope: scope, Native: r.Native, Event: r.Type, Level: adapter.Observe, Known: "documented", Note: r.Note}}
	}
	var out []Cell
	for _, ab := range r.Can {
		c := Cell{Host: h.Name, Scope: scope, Native: r.Native, Event: r.Type, Effect: ab.Effect, Operation: ab.Operation, Level: ab.Level, How: ab.How, Known: "documented", Note: ab.Note}
		found := false
		for _, v := range versions {
			if m, is := c.measure(v, before(h), rows); is {
				found = true
				out = append(out, bound(m, conf))
			}
		}
		if !found {
			out = append(out, bound(c, conf))
		}
	}
	return out
}

// scenario names the effects that the end-to-end tests try, each at the host's event
// before a tool runs.
func scenario(e ahp.EffectType) string {
	switch e {
	case ahp.EffectDeny:
		return "deny"
	case ahp.EffectAsk:
		return "ask"
	case ahp.EffectModify:
		return "rewrite"
	}
	return ""
}

// before returns the host's first event before a tool: what a measurement is of that
// doesn't say.
func before(h *adapter.Host) string {
	for i := range h.Rows {
		if h.Rows[i].Type == ahp.ToolBefore {
			return h.Rows[i].Native
		}
	}
	return ""
}

// measure returns the cell as it was measured with a version, if it was. first is the
// event that a row without one is of.
func (c Cell) measure(version, first string, rows []run) (Cell, bool) {
	if c.Event != ahp.ToolBefore || c.Scope != hostconf.User {
		return c, false
	}
	for _, r := range rows {
		if r.Host != c.Host || r.Version != version || r.Scope != string(c.Scope) || r.Policy != "fail-closed" || r.Scenario != scenario(c.Effect) {
			continue
		}
		if c.Native != cmp.Or(r.Native, first) {
			continue
		}
		c.Version, c.Known = version, fmt.Sprintf("measured %s on %s", r.Date, r.System)
		switch {
		case r.Ran:
			c.Level = adapter.None
		case c.Effect == ahp.EffectModify && c.How == adapter.Native && !r.Changed:
			c.Level = adapter.BestEffort
		}
		if r.Note != "" {
			c.Note = r.Note
		}
		return c, true
	}
	return c, false
}

// bound lowers the level of a cell in a scope that a repository can switch off. A switch
// that the installation itself pins doesn't count: that is part of what is installed.
func bound(c Cell, conf hostconf.Host) Cell {
	if c.Level != adapter.Enforced {
		return c
	}
	if c.Scope == hostconf.Project {
		c.Level = adapter.BestEffort
		return c
	}
	for _, s := range conf.Switches {
		if s.Kind == hostconf.KeySwitch && slices.Contains(s.Scopes, hostconf.Project) && slices.Contains(s.Stops, c.Scope) && !slices.Contains(s.Pinned, c.Scope) {
			c.Level = adapter.BestEffort
			c.Note = join(c.Note, fmt.Sprintf("a repository can switch this scope off by %s", s.Name))
			return c
		}
	}
	return c
}

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}

// describe fills in what isn't a cell.
func (a *Agent) describe(h *adapter.Host, conf hostconf.Host) {
	var left []string
	for name := range conf.Unregistered {
		left = append(left, name)
	}
	slices.Sort(left)
	for _, name := range left {
		a.Others = append(a.Others, fmt.Sprintf("the event %s is left alone: %s", name, conf.Unregistered[name]))
	}
	a.Others = append(a.Others, conf.Traps...)
	a.Blind = append(a.Blind, blindSpots()[h.Name]...)
	for _, s := range conf.Switches {
		what := string(s.Kind) + " " + s.Name
		if s.Value != "" {
			what += " = " + s.Value
		}
		a.Switches = append(a.Switches, fmt.Sprintf("%s: %s", what, s.Effect))
	}
}

// inert names hosts that have hooks in their configuration and run none, and says how
// that is known.
func inert() map[string]string {
	return map[string]string{"continue": "cn 1.5.47 reads hooks and runs none: its package has nothing that calls them, and none ran when it was tried"}
}

// blindSpots are the paths on which a host fires no event before a tool, or shows less
// than it does.
func blindSpots() map[string][]string {
	return map[string][]string{
		"claude-code": {"a call of an unknown tool, or with invalid input, fires no event before it", "commands in the text of a skill or a slash command fire PreSkillShellCommand alone", "a hook that stalls beyond its limit lets the call through (2.1.197 in every case)"},
		"codex":       {"write_stdin into a running interactive shell fires no hook", "a shell call shows its command alone: workdir, shell and escalation are hidden", "an untrusted or changed hook is skipped without a word", "a call of an unknown tool or with broken arguments fires no event"},
		"gemini":      {"a sub-agent's calls aren't marked as such", "arguments that don't fit the schema are refused before the hook"},
		"qwen":        {"the event before a tool comes after the permission check", "a call of an unknown tool fires no event", "a later hook that allows cancels a refusal without continue:false"},
		"opencode":    {"a plugin that doesn't load is skipped without a word", "a read of a missing file has no event after it"},
		"kilo":        {"a plugin that doesn't load is skipped without a word", "background_process is a second way to run a command"},
		"pi":          {"1.6 in print mode skips project extensions that aren't approved", "a call of an unknown tool or with invalid arguments fires no event"},
		"crush":       {"the tools of sub-agents fire no hook", "job tools act on commands that were judged when they began"},
		"copilot":     {"a hook that times out lets the call through, also by policy", "repository hooks in print mode need a trusted folder", "the built-in general-purpose agent's hooks are documented as not inherited"},
		"cursor":      {"one action can fire two events", "prompt hooks don't fire in print mode", "ask is ignored before a tool, but for shell and MCP"},
		"droid":       {"UserPromptSubmit never fired in exec", "an earlier hook's JSON allow beats a JSON deny"},
		"goose":       {"the events before a shell or a read can only watch"},
		"cline":       {"a refusal ends the run, and the model is told nothing", "prompt and shutdown events didn't fire headless"},
		"kiro":        {"results of hooks are cached where cache_ttl_seconds is set"},
		"windsurf":    {"only reading, writing, commands and MCP calls have an event"},
		"openhands":   {"an async hook never blocks"},
		"kimi":        {"prompt hooks don't fire in print mode"},
		"auggie":      {"a matcher without mcp: never matches an MCP tool, but for .*"},
		"continue":    {"prompt and agent hooks are parsed and not run"},
	}
}
