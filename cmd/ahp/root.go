package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
)

// The groups of commands in the help text.
const (
	forAgents = "agents"
	forPeers  = "peers"
)

// subcommands returns the commands of a group, in the order of the help text.
func subcommands(sys system, group string) []*cobra.Command {
	if group == forPeers {
		return []*cobra.Command{newValidate(sys), newEvaluate(sys), newSend(sys), newBackend(sys), newConform(sys), newInspect(sys)}
	}
	return []*cobra.Command{
		newHosts(sys), newDoctor(sys), newInstall(sys), newUninstall(sys), newTrust(sys), newLog(sys), newExplain(sys), newVerify(sys), newReplay(sys), newDaemon(sys), helpOfHook(),
	}
}

// helpOfHook says what "ahp hook" is; execute has run it by hand.
func helpOfHook() *cobra.Command {
	return &cobra.Command{
		Use:   "hook HOST",
		Short: "Answer one native hook event; \"ahp install\" writes the line that runs this",
		Long: `The native event of an agent comes on standard input, and the native answer goes to
standard output and standard error. Exit codes: 40 pass, 41 an answer that must be
delivered, 42 a refusal; any other is no answer, and the installed line then does what
its --on-missing says.

The line may have --event NAME, for hosts whose events don't name themselves;
--registration FILE, instead of the user's and the project's; --home FOLDER, instead of
the account's; --on-missing deny or allow; --limit MILLISECONDS, which the host waits;
--no-self-protect; and --no-service, to judge in this process. Paths are absolute, and
neither HOME nor AHP_HOME counts.`,
		DisableFlagParsing: true,
		RunE:               needsSubcommand,
	}
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
		Long: `ahp puts one policy before every coding agent, and is the toolkit of those who write
backends and harnesses of the Agent Hooks Protocol.

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
	root.AddGroup(&cobra.Group{ID: forAgents, Title: "For people who run agents:"}, &cobra.Group{ID: forPeers, Title: "For people who write backends and harnesses:"})
	for _, group := range []string{forAgents, forPeers} {
		for _, c := range subcommands(sys, group) {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	return root
}

// oneArgument has a command take exactly one argument, and say which.
func oneArgument(what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != 1 {
			return fmt.Errorf("%s: found %d arguments, expected %s", c.Name(), len(args), what)
		}
		return nil
	}
}

// needsSubcommand is what a command that only groups others runs.
func needsSubcommand(cmd *cobra.Command, _ []string) error {
	_ = cmd.Help()
	return done(exitUsage)
}
