package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"github.com/abhed/abhed/internal/hookd"
	"github.com/abhed/abhed/internal/hookline"
	"github.com/abhed/abhed/internal/hooklog"
)

// newDaemon is "ahp daemon".
func newDaemon(sys system) *cobra.Command {
	var home string
	c := &cobra.Command{
		Use:   "daemon COMMAND",
		Short: "The warm service behind ahp hook",
		Long: `The service of this account keeps registrations, rules, backends' processes and
connections warm. "ahp hook" starts it and does the same work by itself when it isn't
there: the verdict is the same, only slower. It ends after ten idle minutes, and after
its calls when a newer ahp connects.`,
		Args: cobra.NoArgs,
		RunE: needsSubcommand,
	}
	c.PersistentFlags().StringVar(&home, "home", "", "the home `folder` whose state and registrations count")
	place := func() (string, error) {
		if home == "" {
			home = sys.getenv("AHP_HOME")
		}
		if home != "" && !filepath.IsAbs(home) {
			return "", failWith(exitUsage, fmt.Errorf("--home %s: expected an absolute path", home))
		}
		state, err := hooklog.StateDir(home)
		if err != nil {
			return "", failWith(exitUsage, err)
		}
		return hookline.Socket(state), nil
	}
	c.AddCommand(newDaemonRun(&home, place), newDaemonControl(sys, "status", "Say whether the service runs, and since when", false, place),
		newDaemonControl(sys, "stop", "End the service after the calls that are under way", true, place))
	return c
}

func newDaemonRun(home *string, place func() (string, error)) *cobra.Command {
	var idle time.Duration
	c := &cobra.Command{
		Use:   "run",
		Short: "Run the service here, until it is idle or told to stop",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := place(); err != nil {
				return err
			}
			// What a call leaves behind is small and many calls come at once: collecting
			// less often is more than a tenth of the work; the service has 38 MB in all then.
			debug.SetGCPercent(500)
			err := hookd.Serve(cmd.Context(), hookd.ServeOptions{Judge: judgeOptions(*home), Idle: idle})
			if err != nil {
				return failWith(exitFailed, err)
			}
			return nil
		},
	}
	c.Flags().DurationVar(&idle, "idle", 10*time.Minute, "end after this time without a call")
	return c
}

func newDaemonControl(sys system, name, short string, stop bool, place func() (string, error)) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   name,
		Short: short,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			socket, err := place()
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), 5*time.Second)
			defer cancel()
			st, err := hookd.Control(ctx, socket, stop)
			switch {
			case errors.Is(err, hookline.ErrNoService):
				if err := sys.print("no service runs\n"); err != nil {
					return err
				}
				return done(exitNegative)
			case err != nil:
				return failWith(exitFailed, err)
			case asJSON:
				return sys.printJSON(st)
			}
			ending := ""
			if stop {
				ending = "; it ends now"
			}
			return sys.print(fmt.Sprintf("process %d since %s, %d calls judged, %d under way%s\nprogram %s\n", st.PID, st.Started.Format(time.RFC3339), st.Calls, st.Active, ending, st.Program))
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}
