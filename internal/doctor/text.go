package doctor

import (
	"fmt"
	"strings"

	"github.com/abhed/abhed/internal/hostconf"
)

// Text returns the report for a terminal: what is in order only if verbose is set.
func (r *Report) Text(verbose bool) string {
	var b strings.Builder
	counts := map[Level]int{}
	group := "\x00"
	for _, f := range grouped(r.Findings) {
		counts[f.Level]++
		if f.Level == OK && !verbose {
			continue
		}
		if name := f.title(); name != group {
			group = name
			fmt.Fprintf(&b, "%s\n", name)
		}
		fmt.Fprintf(&b, "  %-8s%s: %s\n", f.Level, f.Check, f.What)
		if f.Where != "" {
			fmt.Fprintf(&b, "          at %s\n", f.Where)
		}
		if f.Do != "" {
			fmt.Fprintf(&b, "          to do: %s\n", f.Do)
		}
	}
	switch {
	case counts[Wrong] > 0:
		fmt.Fprintf(&b, "%d wrong, %s, %s.\n", counts[Wrong], number(counts[Warning], "warning"), number(counts[Note], "note"))
	case counts[Warning] > 0:
		fmt.Fprintf(&b, "Nothing is wrong; %s, %s.\n", number(counts[Warning], "warning"), number(counts[Note], "note"))
	default:
		fmt.Fprintf(&b, "Nothing is wrong; %s.\n", number(counts[OK], "check"))
	}
	return b.String()
}

// title is what a finding is about.
func (f *Finding) title() string {
	switch {
	case f.Host == "":
		return "this machine"
	case f.Scope == "":
		return f.Host
	}
	return f.Host + ", " + string(f.Scope) + " scope"
}

// grouped brings findings about one thing together, in the order of their first.
func grouped(list []Finding) []Finding {
	type key struct {
		host  string
		scope hostconf.Scope
	}
	var order []key
	groups := map[key][]Finding{}
	for _, f := range list {
		k := key{f.Host, f.Scope}
		if groups[k] == nil {
			order = append(order, k)
		}
		groups[k] = append(groups[k], f)
	}
	var out []Finding
	for _, k := range order {
		out = append(out, groups[k]...)
	}
	return out
}

// number returns n things in words.
func number(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
