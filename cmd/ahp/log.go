package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter"
	"github.com/abhed/abhed/internal/hooklog"
	"github.com/abhed/abhed/internal/hostconf"
)

// newLog is "ahp log".
func newLog(sys system) *cobra.Command {
	var o logOptions
	c := &cobra.Command{
		Use:   "log",
		Short: "Show the decisions made on this machine, for all agents",
		Long: `Print the newest decisions that "ahp hook" made for this account, oldest first, one a
line: when, what, which agent, the event, the tool, how long it took, the id, and why.
"ahp explain ID" tells more about one of them.

AHP_HOME takes the place of the home folder. Exit codes: 0 done, 2 wrong use, 3 the log
or a line of it can't be read.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), sys) },
	}
	c.Flags().BoolVar(&o.follow, "follow", false, "go on with every decision that is made from now on")
	c.Flags().StringVar(&o.host, "host", "", "only decisions for this `agent`")
	c.Flags().StringVar(&o.session, "session", "", "only decisions in the session of this `id`")
	c.Flags().BoolVar(&o.denied, "denied", false, "only denials")
	c.Flags().IntVarP(&o.n, "lines", "n", 20, "how many decisions, 0 for none")
	c.Flags().BoolVar(&o.json, "json", false, "print each decision as one line of JSON")
	return c
}

type logOptions struct {
	follow, denied, json bool
	host, session        string
	n                    int
}

// maxLogLines bounds how many decisions are kept in memory to be printed.
const maxLogLines = 100_000

func (o *logOptions) takes(e *hooklog.Entry) bool {
	return (o.host == "" || e.Host == o.host) && (o.session == "" || e.Session == o.session) && (!o.denied || e.Decision == hooklog.Deny)
}

func (o *logOptions) run(ctx context.Context, sys system) error {
	if o.n < 0 || o.n > maxLogLines {
		return failWith(exitUsage, fmt.Errorf("-n %d: expected a number from 0 to %d", o.n, maxLogLines))
	}
	if _, is := hostconf.Lookup(o.host); o.host != "" && !is {
		return failWith(exitUsage, unknownHost(o.host))
	}
	dir, err := sys.logDir()
	if err != nil {
		return err
	}
	print := func(e *hooklog.Entry) error {
		if o.json {
			return sys.printJSON(e)
		}
		return sys.print(logLine(e))
	}
	list, err := hooklog.Last(dir, o.n, o.takes)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	var damaged *hooklog.DamagedError
	if err != nil && !errors.As(err, &damaged) {
		return failWith(exitFailed, err)
	}
	if len(list) == 0 && o.n > 0 && !o.follow && !o.json {
		if err := sys.print(fmt.Sprintf("No such decision is logged in %s.\n", dir)); err != nil {
			return err
		}
	}
	for _, e := range list {
		if err := print(e); err != nil {
			return err
		}
	}
	if damaged != nil {
		fmt.Fprintf(sys.stderr, "ahp: %v\n", damaged)
	}
	if o.follow {
		err := hooklog.Follow(ctx, dir, func(e *hooklog.Entry) error {
			if !o.takes(e) {
				return nil
			}
			return print(e)
		})
		var exit *exitError
		if err != nil && !errors.As(err, &exit) {
			err = failWith(exitFailed, err)
		}
		return err
	}
	if damaged != nil {
		return done(exitFailed)
	}
	return nil
}

// state returns the folder of what ahp keeps.
func (s system) state() (string, error) {
	home := s.getenv("AHP_HOME")
	if home != "" && !filepath.IsAbs(home) {
		return "", failWith(exitUsage, fmt.Errorf("AHP_HOME is %q, expected an absolute path", home))
	}
	dir, err := hooklog.StateDir(home)
	if err != nil {
		return "", failWith(exitUsage, err)
	}
	return dir, nil
}

// logDir returns the folder of the decision log.
func (s system) logDir() (string, error) {
	dir, err := s.state()
	return hooklog.LogDir(dir), err
}

// logLine returns a decision in one line for people.
func logLine(e *hooklog.Entry) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %-8s %-12s %-16s %-18s %5d ms  %s", localTime(e.Time), short(string(e.Decision), 8), short(e.Host, 16), short(or(e.Native, string(e.Type)), 24),
		short(or(e.Tool, "-"), 32), e.Milliseconds, short(or(e.ID, "(no id)"), 64))
	switch {
	case e.Problem != "":
		fmt.Fprintf(&b, "  the check failed: %s", short(e.Problem, 160))
	case unanswered(e) != nil:
		a := unanswered(e)
		fmt.Fprintf(&b, "  %s gave no answer, and is %s: %s: %s", short(a.Backend, 64), short(a.Policy, 32), short(a.Failure.Class, 32), short(a.Failure.Detail, 160))
	case e.Reason != "":
		fmt.Fprintf(&b, "  %s", short(e.Reason, 160))
	}
	if e.Repeat > 0 {
		fmt.Fprintf(&b, " (denied %s before)", times(e.Repeat))
	}
	return strings.TrimRight(b.String(), " ") + "\n"
}

// unanswered returns the backend whose failure made a decision: one that is fail-closed
// and was refused for alone, or one that is fail-open where nobody else objected, so
// that what passes unjudged doesn't look like what was judged. It is nil for none.
func unanswered(e *hooklog.Entry) *hooklog.Answer {
	decided := map[hooklog.Decision]ahp.FailurePolicy{hooklog.Deny: ahp.FailClosed, hooklog.Pass: ahp.FailOpen}[e.Decision]
	var found *hooklog.Answer
	for i := range e.Answers {
		a := &e.Answers[i]
		if holds(a, ahp.EffectDeny) {
			return nil
		}
		if found == nil && a.Failure != nil && a.Policy != "" && a.Policy == string(decided) {
			found = a
		}
	}
	return found
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// localTime returns a time of the log for people, as it stands if it is none.
func localTime(s string) string {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return short(s, 40)
	}
	return t.Local().Format("2006-01-02 15:04:05")
}

// short returns s on one line, fit for a terminal and not longer than n characters.
func short(s string, n int) string {
	s = strings.Join(strings.Fields(adapter.Printable(s)), " ")
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}
