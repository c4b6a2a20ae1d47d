package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/abhed/abhed/internal/app"
)

// exitError carries the exit code of a command that has said everything already.
type exitError struct{ code int }

func (e *exitError) Error() string { return fmt.Sprintf("exit %d", e.code) }

// execute runs the command line and returns the exit code.
func execute(ctx context.Context, args []string, sys app.System) int {
	root := newRoot(sys)
	root.SetArgs(args)
	root.SetIn(sys.Stdin)
	root.SetOut(sys.Stdout)
	root.SetErr(sys.Stderr)
	err := root.ExecuteContext(ctx)
	var exit *exitError
	switch {
	case err == nil:
		return app.ExitOK
	case errors.As(err, &exit):
		return exit.code
	default:
		fmt.Fprintf(sys.Stderr, "abhed: %v\nSee abhed --help.\n", err)
		return app.ExitUsage
	}
}

// done turns an exit code into a command's result.
func done(code int) error {
	if code == app.ExitOK {
		return nil
	}
	return &exitError{code}
}

func newRoot(sys app.System) *cobra.Command {
	var o runOptions
	root := &cobra.Command{
		Use:   "abhed -p PROMPT",
		Short: "A coding agent in which every tool call passes one gate",
		Long: `abhed runs a model with tools on your workspace. Every tool call is judged by your
rules, your extensions and your AHP backends before it runs, and everything that
happens is kept in a record that can be verified.

Try "abhed demo" first: it needs no model and no configuration.

One OpenAI-compatible endpoint can be named by the variables ABHED_BASE_URL, ABHED_MODEL
and ABHED_API_KEY. Exit codes: 0 completed, 1 error, 2 wrong use or configuration, 3 a
limit, 4 the same call refused again and again, 5 retries used up, 6 the stream stalled,
7 the prompt refused by an extension or a backend, 8 stopped by a backend,
130 interrupted, 143 shut down.`,
		Args:          noPrompt,
		Version:       sys.Version,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.promptOf(cmd, nil); err != nil {
				return err
			}
			return o.run(cmd, sys)
		},
	}
	root.SetVersionTemplate("abhed {{.Version}}\n")
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetFlagErrorFunc(unknownFlag)
	promptFlag(root, &o)
	sessionFlags(root, &o)
	runFlags(root, &o)
	root.AddCommand(newDemo(sys), newDemoBackend(sys), newPolicy(sys), newRecord(sys), newAHP(sys),
		newConfig(sys), newProviders(sys), newTrust(sys), newSessions(sys), newResume(sys), newFork(sys),
		newRPC(sys), newExt(sys), newMCP(sys), newDoctor(sys))
	return root
}

func newDemo(sys app.System) *cobra.Command {
	var keep bool
	c := &cobra.Command{
		Use:   "demo",
		Short: "Show the gate at work: a scripted model, a guard, a backend and a record",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return done(app.Demo(cmd.Context(), sys, keep))
		},
	}
	c.Flags().BoolVar(&keep, "keep", false, "leave the temporary workspace in place")
	return c
}

// newDemoBackend is the AHP backend of the demo: a process of its own that
// speaks the protocol on its standard input and output.
func newDemoBackend(sys app.System) *cobra.Command {
	return &cobra.Command{
		Use:    app.DemoBackendCommand,
		Short:  "Serve the demo's AHP backend on standard input and output",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return done(app.DemoBackend(cmd.Context(), sys))
		},
	}
}

func newPolicy(sys app.System) *cobra.Command {
	c := &cobra.Command{Use: "policy", Short: "Look at the rules that judge tool calls", Args: subcommands, RunE: needsSubcommand}
	var o app.ExplainOptions
	explain := &cobra.Command{
		Use:   "explain TOOL ARGUMENTS",
		Short: "Say how the rules would judge a call, without running anything",
		Example: `  abhed policy explain bash '{"command":"git push --force"}'
  abhed policy explain write '{"path":"src/a.go","content":""}' --mode accept-edits`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Tool, o.Args = args[0], args[1]
			return done(app.Explain(cmd.Context(), o, sys))
		},
	}
	explain.Flags().BoolVar(&o.JSON, "json", false, "print the result as the record keeps it")
	settingsFlags(explain, &o.SettingsOptions)
	c.AddCommand(explain)
	return c
}

func newRecord(sys app.System) *cobra.Command {
	c := &cobra.Command{Use: "record", Short: "List, show and verify session records", Args: subcommands, RunE: needsSubcommand}
	var jsonOut bool
	list := &cobra.Command{
		Use: "list", Short: "List the sessions that are kept on this machine", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return done(app.Sessions(app.SessionsOptions{All: true, JSON: jsonOut}, sys))
		},
	}
	list.Flags().BoolVar(&jsonOut, "json", false, "one JSON object a line")
	var rawOut bool
	show := &cobra.Command{
		Use: "show ID|FILE", Short: "Show what happened in a session, in order", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return done(app.RecordShow(sys, args[0], rawOut)) },
	}
	show.Flags().BoolVar(&rawOut, "json", false, "the events as they are recorded, one a line")
	verify := &cobra.Command{
		Use: "verify ID|FILE", Short: "Check chain, sequence and signatures of a session", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return done(app.RecordVerify(sys, args[0])) },
	}
	c.AddCommand(list, show, verify, newRecordExport(sys))
	return c
}

func newAHP(sys app.System) *cobra.Command {
	c := &cobra.Command{Use: "ahp", Short: "Look at what backends are offered", Args: subcommands, RunE: needsSubcommand}
	c.AddCommand(&cobra.Command{
		Use: "manifest", Short: "Print the AHP manifest: every event, and the effects that are enforced there", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return done(app.AHPManifest(sys)) },
	})
	return c
}

// noPrompt refuses arguments: whoever forgets the quotes of a prompt should be
// told so.
func noPrompt(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	text := "for a command see abhed --help"
	if meant := subcommands(cmd, args[:1]); strings.Contains(meant.Error(), "did you mean") {
		text = meant.Error()
	}
	return fmt.Errorf("unexpected argument %q: quote the prompt, as in -p \"fix the test\"; %s", args[0], text)
}

// isTerminal reports whether a stream is a character device other than the null
// device.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	null, nerr := os.Stat(os.DevNull)
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && (nerr != nil || !os.SameFile(info, null))
}

func needsSubcommand(cmd *cobra.Command, _ []string) error {
	_ = cmd.Help()
	return &exitError{app.ExitUsage}
}
