package main

import (
	"context"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/abhed/abhed/internal/coverage"
	"github.com/abhed/abhed/internal/doctor"
	"github.com/abhed/abhed/internal/hookd"
	"github.com/abhed/abhed/internal/hookline"
	"github.com/abhed/abhed/internal/hostconf"
)

// doctorFlags are the flags of "ahp doctor".
type doctorFlags struct {
	scope, home, project              string
	json, verbose, versions, wholeLog bool
}

// newDoctor is "ahp doctor".
func newDoctor(sys system) *cobra.Command {
	var f doctorFlags
	c := &cobra.Command{
		Use:   "doctor [HOST]…",
		Short: "Find out whether the installed hooks do what they were installed for",
		Long: `ahp doctor sends canaries through the installed lines exactly as the agent would: a call
of a reserved tool that has to be refused, and one that has to pass, each of which the
log must know. It reads every configuration source of the agent: entries that were
changed or removed, switches that turn hooks off, hooks of others, missing trust; and
the program, the registration, its backends, the log, the service.

Without HOST it looks at every agent that AHP is installed in. It changes nothing.

Exit codes: 0 nothing is wrong (warnings and notes are no more than that), 1 something
is, 2 wrong use, 3 an operational failure.`,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), sys, args) },
	}
	flags := c.Flags()
	flags.StringVar(&f.scope, "scope", "", "look at one scope only: `user, project or managed`")
	flags.StringVar(&f.home, "home", "", "the home `folder` to use instead of the account's")
	flags.StringVar(&f.project, "project", "", "the project's `folder`, instead of the repository that this folder lies in")
	flags.BoolVar(&f.json, "json", false, "print one JSON object")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "print what is in order too")
	flags.BoolVar(&f.versions, "versions", false, "start each agent with --version to learn which it is")
	flags.BoolVar(&f.wholeLog, "log", false, "check all of the log, not only its end")
	return c
}

func (f *doctorFlags) run(ctx context.Context, sys system, args []string) error {
	o, err := f.options(sys, args)
	if err != nil {
		return failWith(exitUsage, err)
	}
	r, err := doctor.Run(ctx, o)
	switch {
	case err != nil && ctx.Err() != nil:
		return failWith(exitFailed, err)
	case err != nil:
		return failWith(exitUsage, err)
	case f.json:
		err = sys.printJSON(r)
	default:
		err = sys.print(r.Text(f.verbose))
	}
	if err != nil || !r.Wrong {
		return err
	}
	return done(exitNegative)
}

// options says where to look, as "ahp install" finds it.
func (f *doctorFlags) options(sys system, args []string) (doctor.Options, error) {
	where := installFlags{scope: f.scope, home: f.home}
	if where.scope == "" {
		where.scope = string(hostconf.User)
	}
	if f.project != "" {
		sys.dir = f.project
	}
	base, err := where.options(sys)
	if err != nil {
		return doctor.Options{}, err
	}
	self, err := os.Executable()
	if err != nil {
		return doctor.Options{}, err
	}
	agents, err := coverage.Agents()
	if err != nil {
		return doctor.Options{}, err
	}
	o := doctor.Options{
		Hosts: args, Scope: hostconf.Scope(f.scope), Roots: base.Roots, State: base.State, Self: self,
		Environ: sys.environ, Versions: f.versions, WholeLog: f.wholeLog,
		Fit: hookd.Fit, Announce: hookd.AnnounceCanary, CanaryDeny: hookd.CanaryDeny, CanaryPass: hookd.CanaryPass,
		Service: askService,
		Measured: func(host string) []string {
			i := slices.IndexFunc(agents, func(a coverage.Agent) bool { return a.Host == host })
			if i < 0 {
				return nil
			}
			return agents[i].Versions
		},
	}
	if o.Roots.Project == "" {
		o.Roots.Project, err = f.projectOf(sys)
	}
	return o, err
}

// projectOf returns the present project's folder, "" if there is none.
func (f *doctorFlags) projectOf(sys system) (string, error) {
	w := installFlags{scope: string(hostconf.Project), home: f.home}
	if f.project == "" && repositoryRoot(sys.dir) == "" {
		return "", nil
	}
	o, err := w.options(sys)
	return o.Roots.Project, err
}

// askService is how the doctor learns of the service.
func askService(ctx context.Context, state string) (*doctor.Service, error) {
	st, err := hookd.Control(ctx, hookline.Socket(state), false)
	switch {
	case err != nil && hookline.Absent(err): // a socket that is open to others is told of
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &doctor.Service{PID: st.PID, Program: st.Program, Changed: st.Changed}, nil
}
