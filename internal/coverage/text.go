package coverage

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/abhed/abhed/ahp/adapter"
	"github.com/abhed/abhed/internal/hostconf"
)

// Markdown returns the matrix as docs/hosts.md has it.
func Markdown(list []Agent) string {
	var b strings.Builder
	b.WriteString("# What a policy can hold in each agent\n\n")
	b.WriteString("This page is made by `go test ./internal/coverage -update` from the adapters' tables and from `internal/coverage/measured.json`, which `go test ./e2e -update` writes from runs of the real agents. `ahp hosts` prints the same.\n\n")
	b.WriteString("- **enforced**: the host does it, in this scope, and no file of a repository can switch it off.\n- **best effort**: it works, and something can get in its way: a repository's file, another hook, a case that the note names.\n- **observe**: the event can be watched and not kept from happening.\n- **none**: it was tried, and the host went on.\n\n")
	b.WriteString("A level is *measured* where the column says so, and read in documentation or packages elsewhere.\n\n")
	b.WriteString("| agent | scope | deny a tool call | ask a person | rewrite its input | how it is known |\n|---|---|---|---|---|---|\n")
	for _, a := range list {
		for _, scope := range hostconf.Scopes() {
			deny, ask, modify := a.best(scope, "deny"), a.best(scope, "ask"), a.best(scope, "modify")
			if deny == nil {
				continue
			}
			version := deny.Version
			if version != "" {
				version = " with " + version
			}
			fmt.Fprintf(&b, "| %s (`%s`) | %s | %s | %s | %s | %s%s |\n", a.Title, a.Host, scope, show(deny), show(ask), show(modify), deny.Known, version)
		}
	}
	for i := range list {
		list[i].section(&b)
	}
	return b.String()
}

// best returns the cell of an effect at the events before a tool, the weakest of those
// that the versions gave.
func (a *Agent) best(scope hostconf.Scope, effect string) *Cell {
	var out *Cell
	rank := map[adapter.Level]int{adapter.None: 0, adapter.Observe: 1, adapter.BestEffort: 2, adapter.Enforced: 3}
	for i := range a.Cells {
		c := &a.Cells[i]
		if c.Scope != scope || c.Event != "tool.before" || string(c.Effect) != effect || c.Native != a.first(scope) {
			continue
		}
		if out == nil || rank[c.Level] < rank[out.Level] {
			out = c
		}
	}
	return out
}

// first returns the first native event before a tool in a scope.
func (a *Agent) first(scope hostconf.Scope) string {
	for i := range a.Cells {
		if c := &a.Cells[i]; c.Scope == scope && c.Event == "tool.before" {
			return c.Native
		}
	}
	return ""
}

func show(c *Cell) string {
	if c == nil || c.Level == adapter.None {
		return string(adapter.None)
	}
	switch c.How {
	case adapter.Denies:
		return string(c.Level) + ", as a denial"
	case adapter.Replaces:
		return string(c.Level) + ", by a text in its place"
	}
	return string(c.Level)
}

func (a *Agent) section(b *strings.Builder) {
	fmt.Fprintf(b, "\n## %s\n\n", a.Title)
	if len(a.Versions) > 0 {
		fmt.Fprintf(b, "Measured with %s.\n\n", strings.Join(a.Versions, ", "))
	}
	b.WriteString("| scope | native event | event | effect | level | known | note |\n|---|---|---|---|---|---|---|\n")
	for i := range a.Cells {
		c := &a.Cells[i]
		effect := string(c.Effect)
		if c.Operation != "" {
			effect += " " + string(c.Operation)
		}
		if effect == "" {
			effect = "–"
		}
		known := c.Known
		if c.Version != "" {
			known += ", " + c.Version
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s | %s |\n", c.Scope, c.Native, c.Event, effect, show(c), known, c.Note)
	}
	for _, part := range []struct {
		title string
		lines []string
	}{{"Not seen, or seen in part", a.Blind}, {"What turns hooks off", a.Switches}, {"To know besides", a.Others}} {
		if len(part.lines) == 0 {
			continue
		}
		fmt.Fprintf(b, "\n%s:\n\n", part.title)
		for _, l := range part.lines {
			fmt.Fprintf(b, "- %s\n", l)
		}
	}
}

// Text returns the matrix for a terminal: a line per agent and scope, and with details
// every cell and what isn't seen.
func Text(list []Agent, details bool) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "AGENT\tSCOPE\tDENY\tASK\tREWRITE\tKNOWN")
	for i := range list {
		a := &list[i]
		for _, scope := range hostconf.Scopes() {
			deny := a.best(scope, "deny")
			if deny == nil {
				continue
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", a.Host, scope, show(deny), show(a.best(scope, "ask")), show(a.best(scope, "modify")), strings.TrimSpace(deny.Known+" "+deny.Version))
		}
	}
	w.Flush()
	if details {
		for i := range list {
			list[i].details(&b)
		}
	}
	return b.String()
}

func (a *Agent) details(b *strings.Builder) {
	fmt.Fprintf(b, "\n%s\n", a.Title)
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	for i := range a.Cells {
		c := &a.Cells[i]
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\t%s\t%s\n", c.Scope, c.Native, strings.TrimSpace(string(c.Effect)+" "+string(c.Operation)), show(c), strings.TrimSpace(c.Known+" "+c.Version), c.Note)
	}
	w.Flush()
	for _, l := range a.Blind {
		fmt.Fprintf(b, "  not seen: %s\n", l)
	}
	for _, l := range a.Switches {
		fmt.Fprintf(b, "  turns hooks off: %s\n", l)
	}
	for _, l := range a.Others {
		fmt.Fprintf(b, "  note: %s\n", l)
	}
}
