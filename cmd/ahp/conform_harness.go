package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/conformance"
)

// relayCommand is the hidden command that a harness under test starts as its stdio
// backend.
const relayCommand = "relay"

// conformHarnessFlags are the flags of "ahp conform harness".
type conformHarnessFlags struct {
	reportFlags
	bindings, profiles, env []string
	refused                 string
	limit, deadline         time.Duration
}

func newConformHarness(sys system) *cobra.Command {
	var f conformHarnessFlags
	c := &cobra.Command{
		Use:   "harness [--binding BINDING] -- COMMAND ARG...",
		Short: "Check a harness: the suite plays the backends",
		Long: `Check a harness. COMMAND is run, without a shell, once for each of about forty small
sessions per binding, each in an empty folder of its own. It gets an AHP registration
and a file of tool calls, and has to

  - make the calls in their order, each unless it is refused, and then end with exit
    code 0, also where calls were denied;
  - end with another code, and without a call, if it can't take the registration.

Each line of calls is {"name":"bash","input":{"command":"..."}}; the command is for a
POSIX shell and makes a file, by which the suite sees whether it was run, whatever the
harness says. In COMMAND's arguments {registration}, {calls} and {dir} stand for the
paths; these variables are in its environment, which is small otherwise (see --env):

    AHP_CONFORM_REGISTRATION  the registration
    AHP_CONFORM_CALLS         the calls
    AHP_CONFORM_DIR           the folder in which it runs
    AHP_CONFORM_RESULTS       a file for what it tells of its calls, if not standard output
    AHP_CONFORM_TOKEN         the bearer token that registrations name

    ahp conform harness -- ./my-harness {registration} {calls}
    ahp conform harness --binding http --refused-input '{"command":"touch {}; sudo true"}' -- ./wrapper.sh

What a harness doesn't offer in its requests (edits, supplied results, approvals) is
not applicable. docs/protocol/conformance.md has a wrapper in twenty lines.

Exit codes: 0 no failure but those of the baseline, 1 an unexpected failure, or a line of
the baseline whose check passes, 2 wrong use, 3 the harness can't be started.`,
		Args: afterDash,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), sys, args) },
	}
	f.add(c)
	flags := c.Flags()
	flags.StringVar(&f.refused, "refused-input", "", "a tool input, as `JSON`, that the harness's own rules refuse; {} in it is the file that it would make")
	flags.StringSliceVar(&f.bindings, "binding", []string{string(conformance.StdioPersistent)}, "how the harness reaches its backends: `stdio`, stdio-per-event or http")
	flags.StringSliceVar(&f.profiles, "profile", nil, "the `profiles` that are claimed; all unless said")
	flags.StringSliceVar(&f.env, "env", nil, "`NAME` or NAME=VALUE for the harness's environment; values appear in no report")
	flags.DurationVar(&f.limit, "limit", 30*time.Second, "how long one session may take, beside the deadlines in it")
	flags.DurationVar(&f.deadline, "deadline", time.Second, "the deadline of subscriptions whose backend keeps silent")
	_ = c.Flags().MarkHidden("timeout") // an answer's: here the sessions have one
	c.AddCommand(newConformRelay(sys))
	return c
}

func (f *conformHarnessFlags) run(ctx context.Context, sys system, command []string) error {
	format, known, err := f.load(sys)
	if err != nil {
		return err
	}
	if len(command) == 0 {
		return errors.New("name the harness: -- COMMAND ARG")
	}
	if len(f.bindings) != 1 {
		return errors.New("--binding: one at a time, since a report is about one")
	}
	env, err := environment(sys, f.env)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return failWith(exitFailed, err)
	}
	opts := conformance.HarnessOptions{
		Relay: []string{self, "conform", "harness", relayCommand}, Baseline: known, Only: f.checks, Limit: f.limit, Deadline: f.deadline,
	}
	for _, p := range f.profiles {
		opts.Profiles = append(opts.Profiles, conformance.Profile(p))
	}
	if f.refused != "" {
		opts.RefusedInput = ahp.Raw(f.refused)
	}
	r, err := conformance.Harness(ctx, conformance.HarnessTarget{Command: command, Env: env, Binding: conformance.Binding(f.bindings[0])}, opts)
	return finish(sys, r, err, format)
}

// environment completes NAME to NAME=VALUE.
func environment(sys system, entries []string) ([]string, error) {
	var out []string
	for _, entry := range entries {
		if !strings.Contains(entry, "=") {
			value, is := sys.lookupEnv(entry)
			if !is {
				return nil, failWith(exitUsage, fmt.Errorf("--env: the variable %s isn't set", entry))
			}
			entry += "=" + value
		}
		out = append(out, entry)
	}
	return out, nil
}

// newConformRelay is what the suite has a harness start.
func newConformRelay(sys system) *cobra.Command {
	return &cobra.Command{
		Use:    relayCommand + " ADDRESS KEY",
		Short:  "Be the suite's stdio backend (started by a harness under test)",
		Hidden: true,
		Args:   cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			if code := conformance.Relay(args, sys.stdin, sys.stdout, sys.stderr); code != 0 {
				return done(code)
			}
			return nil
		},
	}
}
