package main

import (
	"github.com/spf13/cobra"

	"github.com/abhed/abhed/internal/app"
)

// newTrust is "abhed trust".
func newTrust(sys app.System) *cobra.Command {
	var o app.TrustOptions
	c := &cobra.Command{
		Use:   "trust [DIR]",
		Short: "Let a workspace's own settings count in full",
		Long: `Show what the workspace DIR (the current folder) brings, and trust exactly that: the
bytes of .abhed/config.json and of the files of the workspace that it names as a command,
an argument, a registration, a script or a certificate, and .ahp/registration.json. Once
one of them changes none of it is trusted, and the next start says so.

A workspace that isn't trusted can only make things stricter: its deny and ask rules,
mode plan, lower limits, "network": false and disabled tools count. For one run
--trust-workspace does the same as this, whatever the files hold.

The question is asked on a terminal; elsewhere --yes is needed. Exit codes: 0 trusted,
shown, removed or listed, 1 not trusted because the answer was no, or nothing to remove,
2 wrong use, nothing to trust or settings that can't be used, 3 the store can't be read or
written.`,
		Example: `  abhed trust --show
  abhed trust ~/src/app
  abhed trust --remove ~/src/app`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				o.Dir = args[0]
			}
			o.Terminal = isTerminal(sys.Stdin)
			return done(app.Trust(o, sys))
		},
	}
	f := c.Flags()
	f.BoolVar(&o.Show, "show", false, "show what the workspace brings, and trust nothing")
	f.BoolVar(&o.Remove, "remove", false, "trust the workspace no longer")
	f.BoolVar(&o.List, "list", false, "list the workspaces that are trusted, and what has changed in them since")
	f.BoolVar(&o.Yes, "yes", false, "trust without a question")
	f.BoolVar(&o.JSON, "json", false, "print one JSON object, or with --list one a line")
	return c
}
