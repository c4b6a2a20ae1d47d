package main

import (
	"github.com/spf13/cobra"

	"github.com/abhed/abhed/internal/app"
)

// newConfig is "abhed config".
func newConfig(sys app.System) *cobra.Command {
	c := &cobra.Command{Use: "config", Short: "Check and show the settings", Args: subcommands, RunE: needsSubcommand}
	c.AddCommand(newConfigCheck(sys), newConfigShow(sys), &cobra.Command{
		Use: "schema", Short: "Print the JSON Schema of a settings file", Args: cobra.NoArgs,
		Example: `  abhed config schema > abhed.schema.json
  and in the settings: {"$schema": "./abhed.schema.json"}`,
		RunE: func(*cobra.Command, []string) error { return done(app.ConfigSchema(sys)) },
	})
	return c
}

func newConfigCheck(sys app.System) *cobra.Command {
	var o app.ConfigCheckOptions
	c := &cobra.Command{
		Use:   "check [FILE...]",
		Short: "Find every fault in the settings, with file, line and column",
		Long: `Check settings files, each as it would count at its place: .abhed/config.json as a
workspace's, any other as the user's. Without FILE everything is checked that would be in
force here: the managed file, the flags, the variables, the user's file and the
workspace's. Rules, the AHP registration and the certificates that the settings name are
checked too; programs and endpoints aren't tried, which is for "abhed doctor".

Exit codes: 0 no fault, 1 a fault, 2 wrong use or no such file, 3 a file can't be read.`,
		Example: `  abhed config check
  abhed config check .abhed/config.json ~/.config/abhed/config.json`,
		RunE: func(_ *cobra.Command, args []string) error {
			o.Files = args
			return done(app.ConfigCheck(o, sys))
		},
	}
	c.Flags().BoolVar(&o.JSON, "json", false, "one JSON object a file")
	settingsFlags(c, &o.SettingsOptions)
	return c
}

func newConfigShow(sys app.System) *cobra.Command {
	var o app.SettingsOptions
	var asJSON bool
	c := &cobra.Command{
		Use:   "show",
		Short: "Print the merged settings, each value with where it comes from",
		Long: `Print every setting that would be in force here, defaults too, each with its origin: the
layer (managed, command line, environment, user, project or default), file, line and
column; then what of the workspace's settings is ignored because nobody has trusted them.
Keys and the values of variables are never shown, only names.`,
		Example: `  abhed config show | grep permissions
  abhed config show --mode auto --deny 'bash(git push*)'`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return done(app.ConfigShow(o, asJSON, sys)) },
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	settingsFlags(c, &o)
	return c
}

// newProviders is "abhed providers".
func newProviders(sys app.System) *cobra.Command {
	var o app.SettingsOptions
	var asJSON bool
	c := &cobra.Command{
		Use:   "providers",
		Short: "List the sources of models: address, key variable, sampling, what is missing",
		Long: `List every provider that a model may name: the endpoint of ABHED_BASE_URL, your
custom_providers, then the built-in ones. The first column of names has a star at the
configured model's. "honours" are the sampling parameters that may be configured for it;
another one stops the start. Of a key it is said whether its variable is set, no more, and
nothing is sent anywhere.`,
		Example: `  abhed providers
  abhed providers --json | jq -r 'select(.missing == null) | .name'`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return done(app.Providers(o, asJSON, sys)) },
	}
	c.Flags().BoolVar(&asJSON, "json", false, "one JSON object a line")
	settingsFlags(c, &o)
	return c
}
