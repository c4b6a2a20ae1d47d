package main

import (
	"context"

	"github.com/spf13/cobra"
)

// subcommands returns the commands, in the order of the help text.
func subcommands(sys system) []*cobra.Command {
	return []*cobra.Command{newValidate(sys), newEvaluate(sys), newSend(sys), newBackend(sys), newConform(sys), newInspect(sys), newDaemon(sys), newHosts(sys)}
}

// execute runs the command line and returns the exit code.
func execute(ctx context.Context, args []string, sys system) int {
	root := newRoot(sys)
	root.SetArgs(args)
	root.SetIn(sys.stdin)
	root.SetOut(sys.stdout)
	root.SetErr(sys.stderr)
	return sys.report(root.ExecuteContext(ctx))
}

func newRoot(sys system) *cobra.Command {
	root := &cobra.Command{
		Use:   "ahp COMMAND",
		Short: "The toolkit of the Agent Hooks Protocol",
		Long: `ahp is for people who write backends and harnesses of the Agent Hooks Protocol.

Exit codes: 0 done or valid, 1 a negative result, 2 wrong use or configuration,
3 an operational failure. --json prints a result for programs.`,
		Args:          cobra.NoArgs,
		Version:       version(),
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          needsSubcommand,
	}
	root.SetVersionTemplate("ahp {{.Version}}\n")
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(subcommands(sys)...)
	return root
}

// needsSubcommand is what a command that only groups others runs.
func needsSubcommand(cmd *cobra.Command, _ []string) error {
	_ = cmd.Help()
	return done(exitUsage)
}
