package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/abhed/abhed/internal/coverage"
)

// newHosts is "ahp hosts".
func newHosts(sys system) *cobra.Command {
	var asJSON, markdown bool
	c := &cobra.Command{
		Use:   "hosts [HOST]…",
		Short: "What a policy can hold in each agent",
		Long: `Print, for each agent, scope, event and effect, how well a policy can hold it and how
that is known: "enforced", "best effort", "observe" or "none", measured with a version
and a date or documented; then what the agent's hooks don't see and what turns them off.
A scope that a repository can switch off is at most best effort.`,
		RunE: func(_ *cobra.Command, args []string) error {
			list, err := coverage.Agents()
			if err != nil {
				return failWith(exitFailed, err)
			}
			for _, name := range args {
				if !slices.ContainsFunc(list, func(a coverage.Agent) bool { return a.Host == name }) {
					return failWith(exitUsage, fmt.Errorf("hosts: found %q, expected one of %s", name, strings.Join(hostNames(list), ", ")))
				}
			}
			if len(args) > 0 {
				list = slices.DeleteFunc(list, func(a coverage.Agent) bool { return !slices.Contains(args, a.Host) })
			}
			switch {
			case asJSON:
				return sys.printJSON(list)
			case markdown:
				return sys.print(coverage.Markdown(list))
			}
			return sys.print(coverage.Text(list, len(args) > 0))
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON list")
	c.Flags().BoolVar(&markdown, "markdown", false, "print the page docs/hosts.md")
	return c
}

func hostNames(list []coverage.Agent) (out []string) {
	for _, a := range list {
		out = append(out, a.Host)
	}
	return out
}
