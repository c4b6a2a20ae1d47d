package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/conformance"
)

// newConform is "ahp conform".
func newConform(sys system) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "conform",
		Short: "Check whether a backend or a harness keeps the protocol",
		Long: `ahp conform plays the other end, sends good and bad messages, and says for each rule of
the protocol whether the peer keeps it, with the lines that prove it.`,
		Args: cobra.NoArgs,
		RunE: needsSubcommand,
	}
	cmd.AddCommand(newConformBackend(sys), newConformHarness(sys), newConformList(sys))
	return cmd
}

// reportFlags are the flags of every command that runs checks.
type reportFlags struct {
	format   string
	json     bool
	baseline string
	checks   []string
	timeout  time.Duration
}

func (f *reportFlags) add(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.format, "format", "text", "how the report is written: text, json, junit or markdown")
	flags.BoolVar(&f.json, "json", false, "the same as --format json")
	flags.StringVar(&f.baseline, "baseline", "", "`FILE` of known failures: a check's id and the reason on each line")
	flags.StringSliceVar(&f.checks, "check", nil, "run these `checks` alone, and what they depend on")
	flags.DurationVar(&f.timeout, "timeout", 5*time.Second, "how long one answer may take")
}

// load returns the format and the baseline.
func (f *reportFlags) load(sys system) (conformance.Format, conformance.Baseline, error) {
	format := conformance.Format(f.format)
	if f.json {
		format = conformance.FormatJSON
	}
	if !slices.Contains([]conformance.Format{conformance.FormatText, conformance.FormatJSON, conformance.FormatJUnit, conformance.FormatMarkdown}, format) {
		return "", nil, fmt.Errorf("--format %s: expected text, json, junit or markdown", f.format)
	}
	if f.baseline == "" {
		return format, nil, nil
	}
	data, err := sys.read(f.baseline)
	if err != nil {
		return "", nil, err
	}
	known, err := conformance.ParseBaseline(string(data))
	if err != nil {
		return "", nil, failWith(exitUsage, fmt.Errorf("%s: %s", f.baseline, strings.TrimPrefix(err.Error(), "conformance: ")))
	}
	return format, known, nil
}

// finish writes the report and returns how the command ends: 1 for unexpected
// failures and stale entries of the baseline, 3 where the suite itself failed.
func finish(sys system, r *conformance.Report, err error, format conformance.Format) error {
	var peer *conformance.PeerError
	switch {
	case errors.As(err, &peer), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return failWith(exitFailed, plainly(err))
	case err != nil:
		return failWith(exitUsage, plainly(err))
	}
	if err := r.Write(sys.stdout, format); err != nil {
		return failWith(exitFailed, plainly(err))
	}
	switch {
	case len(r.SuiteErrors()) > 0:
		return failWith(exitFailed, fmt.Errorf("the suite itself failed, please report it: %s", strings.Join(r.SuiteErrors(), ", ")))
	case !r.OK():
		return done(exitNegative)
	}
	return nil
}

// plainly drops the name of the package from an error.
func plainly(err error) error { return errors.New(strings.TrimPrefix(err.Error(), "conformance: ")) }

// conformBackendFlags are the flags of "ahp conform backend".
type conformBackendFlags struct {
	reportFlags
	url, tokenEnv, lifecycle, denyInput string
	events, profiles, env               []string
	grace                               time.Duration
	maxBytes                            int
}

// afterDash refuses arguments that don't come after --, where the command stands.
func afterDash(cmd *cobra.Command, args []string) error {
	if len(args) > 0 && cmd.ArgsLenAtDash() != 0 {
		return fmt.Errorf("%q: the command comes after --", args[0])
	}
	return nil
}

func newConformBackend(sys system) *cobra.Command {
	var f conformBackendFlags
	c := &cobra.Command{
		Use:   "backend [--url URL | -- COMMAND ARG...]",
		Short: "Check a backend: the suite plays the harness",
		Long: `Check a backend that is started by COMMAND, or that listens at URL. The command is run
directly, without a shell, with the small environment that a harness gives a backend;
--env adds to it.

    ahp conform backend -- ./my-backend --strict
    ahp conform backend --lifecycle per_event -- ./my-backend
    ahp conform backend --url http://127.0.0.1:8080/ahp --token-env MY_TOKEN
    ahp conform backend --deny-input '{"command":"rm -rf /"}' -- ./my-backend

Exit codes: 0 no failure but those of the baseline, 1 an unexpected failure, or a line of
the baseline whose check passes, 2 wrong use, 3 the backend can't be started or reached.`,
		Args: afterDash,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), sys, args) },
	}
	f.add(c)
	flags := c.Flags()
	flags.StringVar(&f.url, "url", "", "where the backend listens")
	flags.StringVar(&f.tokenEnv, "token-env", "", "the environment `variable` that holds the bearer token for --url")
	flags.StringVar(&f.lifecycle, "lifecycle", ahp.LifecyclePersistent, "persistent, or per_event for a process per message")
	flags.StringSliceVar(&f.events, "event", []string{string(ahp.ToolBefore)}, "the event `types` that the backend claims to decide about; none for one that only observes")
	flags.StringVar(&f.denyInput, "deny-input", "", "a tool input, as `JSON`, that the backend is expected to deny")
	flags.StringSliceVar(&f.profiles, "profile", nil, "the `profiles` that are claimed; all unless said")
	flags.StringSliceVar(&f.env, "env", nil, "`NAME` or NAME=VALUE for the backend's environment; values appear in no report")
	flags.DurationVar(&f.grace, "grace", 5*time.Second, "how long the process may take to end")
	flags.IntVar(&f.maxBytes, "max-bytes", ahp.MaxMessageBytes, "the largest message that the backend takes, as it declares")
	return c
}

func (f *conformBackendFlags) run(ctx context.Context, sys system, command []string) error {
	format, known, err := f.load(sys)
	if err != nil {
		return err
	}
	target, err := f.target(sys, command)
	if err != nil {
		return err
	}
	opts := conformance.Options{Baseline: known, Only: f.checks, Timeout: f.timeout, Grace: f.grace, MaxBytes: f.maxBytes}
	opts.ObserverOnly = slices.Equal(f.events, []string{"none"})
	for _, t := range f.events {
		if opts.ObserverOnly {
			break
		}
		opts.Events = append(opts.Events, ahp.EventType(t))
	}
	for _, p := range f.profiles {
		opts.Profiles = append(opts.Profiles, conformance.Profile(p))
	}
	if f.denyInput != "" {
		opts.DenyInput = ahp.Raw(f.denyInput)
	}
	r, err := conformance.Backend(ctx, target, opts)
	return finish(sys, r, err, format)
}

func (f *conformBackendFlags) target(sys system, command []string) (conformance.Target, error) {
	t := conformance.Target{Command: command, URL: f.url}
	switch {
	case len(command) == 0 && f.url == "":
		return t, errors.New("name the backend with --url URL or with -- and its command")
	case len(command) > 0 && f.url != "":
		return t, errors.New("--url and a command: one of them")
	}
	switch f.lifecycle {
	case ahp.LifecyclePersistent:
	case ahp.LifecyclePerEvent:
		t.PerEvent = true
	default:
		return t, fmt.Errorf("--lifecycle %s: expected persistent or per_event", f.lifecycle)
	}
	if f.tokenEnv != "" {
		if t.Token = sys.getenv(f.tokenEnv); t.Token == "" {
			return t, failWith(exitUsage, fmt.Errorf("--token-env: the variable %s isn't set, or is empty", f.tokenEnv))
		}
	}
	for _, entry := range f.env {
		if !strings.Contains(entry, "=") {
			value, is := sys.lookupEnv(entry)
			if !is {
				return t, failWith(exitUsage, fmt.Errorf("--env: the variable %s isn't set", entry))
			}
			entry += "=" + value
		}
		t.Env = append(t.Env, entry)
	}
	return t, nil
}

func newConformList(sys system) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "list",
		Short: "Print the checks and the requirements behind them",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			checks := append(conformance.Checks(conformance.RoleBackend), conformance.Checks(conformance.RoleHarness)...)
			if asJSON {
				return sys.printJSON(struct {
					Revision     string                    `json:"revision"`
					Checks       []conformance.Check       `json:"checks"`
					Requirements []conformance.Requirement `json:"requirements"`
				}{ahp.Version, checks, conformance.Requirements(ahp.Version)})
			}
			return sys.print(listOf(checks))
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object, with the text of the requirements")
	return c
}

func listOf(checks []conformance.Check) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "CHECK\tLEVEL\tREQUIREMENTS\tROLE\tBINDINGS\tWHAT")
	for _, c := range checks {
		var bindings []string
		for _, binding := range c.Bindings {
			bindings = append(bindings, string(binding))
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", c.ID, c.Level, strings.Join(c.Requirements, " "), c.Role, strings.Join(bindings, " "), c.About)
	}
	w.Flush()
	return b.String()
}
