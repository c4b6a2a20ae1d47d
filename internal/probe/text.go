package probe

import (
	"fmt"
	"strings"
)

// Text returns the report for a terminal: a line a probe, and what to do under it.
func (r *Report) Text() string {
	var b strings.Builder
	what := []string{}
	for _, s := range []string{r.Model, r.Endpoint} {
		if s != "" {
			what = append(what, s)
		}
	}
	if len(what) > 0 {
		fmt.Fprintf(&b, "%s\n", strings.Join(what, " at "))
	}
	widest := 0
	for _, p := range r.Probes {
		widest = max(widest, len(p.Name))
	}
	for _, p := range r.Probes {
		fmt.Fprintf(&b, "  %-9s  %-*s  %s\n", p.Outcome, widest, p.Name, p.Saw)
		if p.Do != "" {
			fmt.Fprintf(&b, "  %-9s  %-*s  to do: %s\n", "", widest, "", p.Do)
		}
	}
	switch r.Verdict {
	case OK:
		b.WriteString("An agent can work with this endpoint.")
	case No:
		b.WriteString("An agent can't work with this endpoint as it is.")
	default:
		b.WriteString("Whether an agent can work with this endpoint is unclear.")
	}
	fmt.Fprintf(&b, " Requests made: %d (%d tokens in, %d out, as far as the endpoint says).\n", r.Requests, r.InputTokens, r.OutputTokens)
	return b.String()
}
