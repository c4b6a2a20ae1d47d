package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/abhed/abhed/internal/app"
)

// newSessions is "abhed sessions".
func newSessions(sys app.System) *cobra.Command {
	var o app.SessionsOptions
	c := &cobra.Command{
		Use:   "sessions",
		Short: "List the sessions of this workspace, the last changed first",
		Long: `List the sessions of the workspace: id, time of the last change, size of the record,
model and first message. "abhed resume ID" goes on with one, "abhed fork ID" with a copy,
"abhed record show ID" tells what happened in it; the start of an id will do.`,
		Example: `  abhed sessions
  abhed sessions --all --json | jq -r .id`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return done(app.Sessions(o, sys)) },
	}
	c.Flags().BoolVar(&o.JSON, "json", false, "one JSON object a line")
	c.Flags().StringVarP(&o.Dir, "dir", "C", "", "list the sessions of the workspace `DIR` instead of the current directory's")
	c.Flags().BoolVar(&o.All, "all", false, "list the sessions of every workspace")
	return c
}

// newResume is "abhed resume": -p with --resume.
func newResume(sys app.System) *cobra.Command {
	var o runOptions
	c := &cobra.Command{
		Use:   "resume ID [PROMPT]",
		Short: "Go on with a session",
		Long: `Go on with the session of this id; the start of it will do. It is "abhed --resume ID -p
PROMPT": without PROMPT it is read from standard input. Messages and files come back,
permissions don't: mode, rules and approvals are those of the settings now. The exit codes
are those of "abhed -p".`,
		Example: `  abhed resume 0193f2 "now the tests"
  abhed resume 0193f2 --mode accept-edits < prompt.txt`,
		Args: sessionAndPrompt,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Resume = args[0]
			if err := o.promptOf(cmd, args[1:]); err != nil {
				return err
			}
			return o.run(cmd, sys)
		},
	}
	promptFlag(c, &o)
	runFlags(c, &o)
	return c
}

// newFork is "abhed fork": -p with --resume and --fork-at.
func newFork(sys app.System) *cobra.Command {
	var o runOptions
	c := &cobra.Command{
		Use:   "fork ID [PROMPT]",
		Short: "Go on with a copy of a session, from any event of it",
		Long: `Make a new session of what the session of this id was up to an event, and go on with
that; the other one stays as it is. Event numbers are those of "abhed record show --json".
The new record names where it comes from. For prompt, permissions and exit codes see
"abhed resume".`,
		Example: `  abhed fork 0193f2 "try it with a map instead"
  abhed fork 0193f2 --at 42 "try it with a map instead"`,
		Args: sessionAndPrompt,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Resume, o.Fork = args[0], true
			if cmd.Flags().Changed("at") && o.ForkAt < 1 {
				return errors.New("--at: events are numbered from 1; without --at the copy has all of them")
			}
			if err := o.promptOf(cmd, args[1:]); err != nil {
				return err
			}
			return o.run(cmd, sys)
		},
	}
	c.Flags().Int64Var(&o.ForkAt, "at", 0, "the last event that the copy has is that of the number `SEQ` (without: the last one)")
	promptFlag(c, &o)
	runFlags(c, &o)
	return c
}

// sessionAndPrompt takes the id of a session and at most one prompt.
func sessionAndPrompt(_ *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return errors.New("the id of a session is missing; \"abhed sessions\" lists them")
	case len(args) > 2:
		return errors.New("more than an id and a prompt: quote the prompt, as in \"fix the test\"")
	}
	return nil
}
