package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

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
	var o app.RunOptions
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
7 the prompt refused by a backend, 8 stopped by one, 130 interrupted, 143 shut down.`,
		Args:          noPrompt,
		Version:       sys.Version,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.PromptGiven = cmd.Flags().Changed("prompt")
			o.Terminal = isTerminal(sys.Stdin)
			return done(app.Run(cmd.Context(), o, sys))
		},
	}
	root.SetVersionTemplate("abhed {{.Version}}\n")
	root.CompletionOptions.DisableDefaultCmd = true
	runFlags(root, &o)
	root.AddCommand(newDemo(sys), newDemoBackend(sys), newPolicy(sys), newRecord(sys), newAHP(sys))
	return root
}

func runFlags(c *cobra.Command, o *app.RunOptions) {
	f := c.Flags()
	f.StringVarP(&o.Prompt, "prompt", "p", "", "what the agent shall do; without it the prompt is read from standard input")
	f.StringVar(&o.Resume, "resume", "", "go on with the session of this `ID`")
	f.BoolVar(&o.Continue, "continue", false, "go on with the newest session of this workspace")
	f.BoolVar(&o.AcceptUnsigned, "accept-unsigned", false, "resume a record that this installation has not signed")
	f.BoolVar(&o.AcceptBroken, "accept-broken", false, "resume a record whose chain is broken, up to the break")
	f.StringVar(&o.Output, "output", "text", "`FORMAT` of standard output: text, json or stream-json")
	f.BoolVar(&o.Quiet, "quiet", false, "print nothing but the answer")
	f.BoolVar(&o.Verbose, "verbose", false, "print every decision")
	f.Int64Var(&o.MaxTurns, "max-turns", 0, "end after `N` model replies (0: the configured limit)")
	f.Int64Var(&o.MaxTokens, "max-tokens", 0, "end after `N` tokens (0: the configured limit)")
	f.Float64Var(&o.MaxCost, "max-cost", 0, "end after so many US `DOLLARS` (0: the configured limit)")
	f.DurationVar(&o.MaxTime, "max-time", 0*time.Second, "end after this `DURATION`, such as 10m (0: the configured limit)")
	f.StringVar(&o.SystemAppend, "system-append", "", "`TEXT` added to the system prompt")
	settingsFlags(c, &o.SettingsOptions)
}

// settingsFlags are the flags that change what judges a call.
func settingsFlags(c *cobra.Command, o *app.SettingsOptions) {
	f := c.Flags()
	f.StringVar(&o.Mode, "mode", "", "permission `MODE`: plan, default, accept-edits, auto or bypass")
	f.StringVar(&o.Model, "model", "", "`PROVIDER/MODEL` to use")
	f.StringArrayVar(&o.Allow, "allow", nil, "allow `RULE`, repeatable")
	f.StringArrayVar(&o.Ask, "ask", nil, "ask `RULE`, repeatable")
	f.StringArrayVar(&o.Deny, "deny", nil, "deny `RULE`, repeatable")
	f.StringVarP(&o.Dir, "dir", "C", "", "work in `DIR` instead of the current directory")
	f.StringArrayVar(&o.AddDirs, "add-dir", nil, "a further `DIR` that the agent may work in, repeatable")
	f.StringVar(&o.ConfigFile, "config", "", "`FILE` to read instead of the user's settings")
	f.StringVar(&o.Registration, "ahp", "", "AHP registration `FILE`")
	f.BoolVar(&o.TrustWorkspace, "trust-workspace", false, "apply the workspace's own .abhed/config.json in full")
	f.StringVar(&o.MinTier, "min-tier", "", "weakest acceptable sandbox `TIER`: none or process")
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
	c := &cobra.Command{Use: "policy", Short: "Look at the rules that judge tool calls", Args: cobra.NoArgs, RunE: needsSubcommand}
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
	c := &cobra.Command{Use: "record", Short: "List, show and verify session records", Args: cobra.NoArgs, RunE: needsSubcommand}
	var jsonOut bool
	list := &cobra.Command{
		Use: "list", Short: "List the sessions that are kept on this machine", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return done(app.RecordList(sys, jsonOut)) },
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
	c.AddCommand(list, show, verify)
	return c
}

func newAHP(sys app.System) *cobra.Command {
	c := &cobra.Command{Use: "ahp", Short: "Look at what backends are offered", Args: cobra.NoArgs, RunE: needsSubcommand}
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
	return fmt.Errorf("unexpected argument %q: quote the prompt, as in -p \"fix the test\"; for a command see abhed --help", args[0])
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
