package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/abhed/abhed/internal/app"
)

func newRPC(sys app.System) *cobra.Command {
	var o app.RPCOptions
	var limits app.RunOptions
	c := &cobra.Command{
		Use:   "rpc",
		Short: "Serve a program in any language: JSON lines on standard input and output",
		Long: `abhed rpc reads requests, one JSON object a line, from standard input and answers on
standard output, where every event of the session arrives as it happens. The end of standard
input, or the method quit, ends it with exit code 0; a signal with 128 and its number.

  {"id":1,"method":"start","mode":"default","approve":"client"}
  {"id":2,"method":"prompt","prompt":"fix the failing tests"}

The flags are what every session of the service starts with.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Buffer < 0 {
				return fmt.Errorf("--rpc-buffer %d: expected a number of events, 0 or more", o.Buffer)
			}
			o.MaxTurns, o.MaxTokens, o.MaxCost, o.MaxSeconds = limits.MaxTurns, limits.MaxTokens, limits.MaxCost, app.Seconds(limits.MaxTime)
			return done(app.RPC(cmd.Context(), o, sys))
		},
	}
	settingsFlags(c, &o.SettingsOptions)
	limitFlags(c, &limits)
	f := c.Flags()
	f.IntVar(&o.Buffer, "rpc-buffer", 0, "how many `EVENTS` may wait for the reader until the run waits (0: 10000)")
	f.StringVar(&o.SystemAppend, "system-append", "", "`TEXT` added to the system prompt")
	f.BoolVar(&o.AcceptUnsigned, "accept-unsigned", false, "resume a record that this installation has not signed")
	f.BoolVar(&o.AcceptBroken, "accept-broken", false, "resume a record whose chain is broken, up to the break")
	return c
}

func newExt(sys app.System) *cobra.Command {
	c := &cobra.Command{Use: "ext", Short: "Look at the extensions and try them out", Args: subcommands, RunE: needsSubcommand}
	var settings app.SettingsOptions
	var asJSON bool
	list := &cobra.Command{
		Use: "list", Short: "Start the extensions and show each one's state, tools and speed", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return done(app.ExtList(cmd.Context(), settings, asJSON, sys))
		},
	}
	list.Flags().BoolVar(&asJSON, "json", false, "one JSON object")
	settingsFlags(list, &settings)
	var o app.ExtTestOptions
	test := &cobra.Command{
		Use: "test NAME", Short: "Send an extension every event with sample data, and print what it answers",
		Example: `  abhed ext test guard
  abhed ext test guard --tool bash --args '{"command":"git push"}'`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Name = args[0]
			return done(app.ExtTest(cmd.Context(), o, sys))
		},
	}
	f := test.Flags()
	f.StringVar(&o.Tool, "tool", "", "the `TOOL` of the sample call")
	f.StringVar(&o.Args, "args", "", "the arguments of the sample call, a `JSON` object")
	f.BoolVar(&o.NoInvoke, "no-invoke", false, "don't run the tools that the extension provides")
	f.BoolVar(&o.JSON, "json", false, "one JSON object")
	settingsFlags(test, &o.SettingsOptions)
	c.AddCommand(list, test)
	return c
}

func newMCP(sys app.System) *cobra.Command {
	c := &cobra.Command{Use: "mcp", Short: "Look at the MCP servers", Args: subcommands, RunE: needsSubcommand}
	var settings app.SettingsOptions
	var asJSON bool
	list := &cobra.Command{
		Use: "list", Short: "Start the MCP servers and show what each one provides", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return done(app.MCPList(cmd.Context(), settings, asJSON, sys))
		},
	}
	list.Flags().BoolVar(&asJSON, "json", false, "one JSON object")
	settingsFlags(list, &settings)
	c.AddCommand(list)
	return c
}

func newDoctor(sys app.System) *cobra.Command {
	var o app.DoctorOptions
	c := &cobra.Command{
		Use: "doctor", Short: "Say what a session here would have, and what the model's endpoint can do",
		Long: `abhed doctor looks at settings, sandbox, extensions, MCP servers and backends as a session
would start them, and asks the endpoint of the model for a few short replies: what it finds,
and what to do about what is wrong. It costs a few thousand tokens; --offline costs none.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return done(app.Doctor(cmd.Context(), o, sys)) },
	}
	f := c.Flags()
	f.BoolVar(&o.Offline, "offline", false, "leave the model's endpoint alone")
	f.DurationVar(&o.Timeout, "timeout", time.Minute, "longest wait for one reply of the endpoint")
	f.BoolVar(&o.JSON, "json", false, "one JSON object")
	settingsFlags(c, &o.SettingsOptions)
	return c
}

func newRecordExport(sys app.System) *cobra.Command {
	var format string
	c := &cobra.Command{
		Use: "export ID|FILE", Short: "Write a session's record to standard output", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return done(app.RecordExport(cmd.Context(), sys, args[0], format))
		},
	}
	c.Flags().StringVar(&format, "format", "jsonl", "`FORMAT`: jsonl, as it is recorded, or html, a page that loads nothing")
	return c
}
