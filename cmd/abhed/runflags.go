package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/abhed/abhed/internal/app"
)

// runOptions are the flags of a run.
type runOptions struct{ app.RunOptions }

// run does the run, after what only the command line can get wrong.
func (o *runOptions) run(cmd *cobra.Command, sys app.System) error {
	o.Terminal = isTerminal(sys.Stdin)
	if cmd.Flags().Changed("fork-at") {
		switch {
		case o.ForkAt < 1:
			return errors.New("--fork-at: events are numbered from 1; \"abhed fork ID\" without --at copies all of them")
		case o.Resume == "" && !o.Continue:
			return errors.New("--fork-at says where to leave a session: it needs --resume ID or --continue")
		}
		o.Fork = true
	}
	if cmd.Flags().Changed("resume") && o.Resume == "" {
		return errors.New("--resume: there is no id; \"abhed sessions\" lists them")
	}
	if o.Quiet && o.Verbose {
		return errors.New("--quiet and --verbose exclude each other")
	}
	return done(app.Run(cmd.Context(), o.RunOptions, sys))
}

// promptOf takes the prompt of an argument or of -p.
func (o *runOptions) promptOf(cmd *cobra.Command, args []string) error {
	o.PromptGiven = cmd.Flags().Changed("prompt")
	if len(args) == 0 {
		return nil
	}
	if o.PromptGiven {
		return fmt.Errorf("there are two prompts, -p and the argument %q", args[0])
	}
	o.Prompt, o.PromptGiven = args[0], true
	return nil
}

func promptFlag(c *cobra.Command, o *runOptions) {
	c.Flags().StringVarP(&o.Prompt, "prompt", "p", "", "what the agent shall do; without it the prompt is read from standard input")
}

// sessionFlags say which session to go on with.
func sessionFlags(c *cobra.Command, o *runOptions) {
	f := c.Flags()
	f.StringVar(&o.Resume, "resume", "", "go on with the session of this `ID`")
	f.BoolVar(&o.Continue, "continue", false, "go on with the newest session of this workspace")
	f.Int64Var(&o.ForkAt, "fork-at", 0, "with --resume or --continue: go on with a copy of the session up to the event `SEQ`")
}

// runFlags are the flags of every run.
func runFlags(c *cobra.Command, o *runOptions) {
	f := c.Flags()
	f.BoolVar(&o.AcceptUnsigned, "accept-unsigned", false, "resume a record that this installation has not signed")
	f.BoolVar(&o.AcceptBroken, "accept-broken", false, "resume a record whose chain is broken, up to the break")
	f.StringVar(&o.Output, "output", "text", "`FORMAT` of standard output: text, json or stream-json")
	f.StringVar(&o.JSONSchema, "json-schema", "", "the answer must be JSON that fits the JSON Schema in `FILE`")
	f.BoolVar(&o.Quiet, "quiet", false, "print nothing but the answer")
	f.BoolVar(&o.Verbose, "verbose", false, "print every decision")
	f.StringVar(&o.SystemAppend, "system-append", "", "`TEXT` added to the system prompt")
	limitFlags(c, &o.RunOptions)
	settingsFlags(c, &o.SettingsOptions)
}

// limitFlags are the bounds of a run.
func limitFlags(c *cobra.Command, o *app.RunOptions) {
	f := c.Flags()
	f.Int64Var(&o.MaxTurns, "max-turns", 0, "end after `N` model replies (0: the configured limit)")
	f.Int64Var(&o.MaxTokens, "max-tokens", 0, "end after `N` tokens (0: the configured limit)")
	f.Float64Var(&o.MaxCost, "max-cost", 0, "end after so many US `DOLLARS` (0: the configured limit)")
	f.DurationVar(&o.MaxTime, "max-time", 0*time.Second, "end after this `DURATION`, such as 10m (0: the configured limit)")
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
	f.BoolVar(&o.TrustWorkspace, "trust-workspace", false, "for this run, trust all that the workspace brings; see \"abhed trust\"")
	f.StringVar(&o.MinTier, "min-tier", "", "weakest acceptable sandbox `TIER`: none, process or container")
}
