package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest/fault"
	"github.com/abhed/abhed/ahp/backend"
	"github.com/abhed/abhed/internal/backends/eventlog"
	"github.com/abhed/abhed/internal/backends/rules"
	"github.com/abhed/abhed/internal/chain"
)

func newBackend(sys system) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "backend",
		Short: "Serve a backend on standard input and output",
		Long: `ahp backend serves a backend for the registration of any harness: as the command of
a stdio transport, with either lifecycle. Diagnostics go to standard error.`,
		Args: cobra.NoArgs,
		RunE: needsSubcommand,
	}
	cmd.AddCommand(newBackendRules(sys), newBackendLog(sys), newBackendFault(sys))
	return cmd
}

// serveBackend answers on the standard streams until the input ends or ctx does.
func serveBackend(ctx context.Context, sys system, h backend.Handler) error {
	opts := backend.Options{Logger: slog.New(slog.NewJSONHandler(sys.stderr, nil))}
	err := backend.New(h, opts).ServeStdio(ctx, sys.stdin, sys.stdout)
	if err != nil && !errors.Is(err, context.Canceled) {
		return failWith(exitFailed, err)
	}
	return nil
}

func newBackendRules(sys system) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "rules --rules FILE",
		Short: "Judge tool calls by rules",
		Long: `rules judges tool.before by Abhed's rule language. FILE is JSON, with comments allowed:

    {"rules": {"deny": ["bash(git push*)", "read(**/.env)"], "ask": ["write(deploy/**)"]}}

Tools are named as Abhed names them (bash, read, write, edit, glob, grep, fetch, task,
skill, todo, ask_user) whatever the agent calls them; MCP tools are mcp__server__tool.
A deny rule denies. An ask rule, a destructive command, or one that can't be judged
asks, or denies where the agent can't ask. Nothing else has an effect: a rule under
"allow" neither. "runners" and "env_harmless" are as in Abhed's permissions.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if file == "" {
				return errors.New("backend rules: --rules is missing; it names the file of rules")
			}
			d, err := rules.ReadFile(file)
			if err != nil {
				return failWith(exitUsage, err)
			}
			b, warnings, err := rules.New(d, rules.Options{Home: shellHome(sys), Getenv: sys.getenv})
			for _, w := range warnings {
				fmt.Fprintln(sys.stderr, w)
			}
			if err != nil {
				return failWith(exitUsage, err)
			}
			return serveBackend(cmd.Context(), sys, b)
		},
	}
	cmd.Flags().StringVar(&file, "rules", "", "the file of rules")
	return cmd
}

// shellHome returns what "~" stands for in commands: HOME, else the account's home.
func shellHome(sys system) string {
	if home := sys.getenv("HOME"); filepath.IsAbs(home) {
		return home
	}
	return accountHome()
}

// accountHome returns the home folder of the user database, or "".
func accountHome() string {
	u, err := user.Current()
	if err != nil || !filepath.IsAbs(u.HomeDir) {
		return ""
	}
	return u.HomeDir
}

// logFlags are the flags of ahp backend log.
type logFlags struct {
	file, key string
	scrub     bool
	scrubEnv  []string
	maxBytes  int64
	keep      int
	verify    bool
	json      bool
}

func newBackendLog(sys system) *cobra.Command {
	var f logFlags
	cmd := &cobra.Command{
		Use:   "log [--file FILE]",
		Short: "Keep a chained log of events",
		Long: `log writes each event that it is told of, or asked about, as a line of a log whose hashes
are chained, and never objects. FILE is ~/.local/state/ahp/events.jsonl unless said.
What is shaped like a credential is removed from the text of events unless
--scrub=false. With --verify it serves nothing and checks the log: exit 1 if a line
was changed, removed, added or moved.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runBackendLog(cmd.Context(), sys, f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.file, "file", "", "the log")
	flags.StringVar(&f.key, "key", "", "sign where the log stands, with the Ed25519 key in this `file`, which is made if it isn't there")
	flags.BoolVar(&f.scrub, "scrub", true, "remove what is shaped like a credential")
	flags.StringSliceVar(&f.scrubEnv, "scrub-env", nil, "remove the values of these environment `variables` as well")
	flags.Int64Var(&f.maxBytes, "max-bytes", 64<<20, "put the log aside at this size")
	flags.IntVar(&f.keep, "keep", 4, "how many logs that were put aside are kept")
	flags.BoolVar(&f.verify, "verify", false, "check the log")
	flags.BoolVar(&f.json, "json", false, "with --verify, print the result as JSON")
	return cmd
}

func runBackendLog(ctx context.Context, sys system, f logFlags) error {
	file, err := logFile(sys, f)
	if err != nil {
		return err
	}
	var key *chain.Key
	if f.key != "" {
		if key, err = chain.LoadKey(f.key); err != nil {
			return failWith(exitUsage, err)
		}
	}
	if f.verify {
		return verifyLog(sys, f, file, key)
	}
	opts := eventlog.Options{MaxBytes: f.maxBytes, Keep: f.keep, Key: key, OnError: func(err error) { fmt.Fprintln(sys.stderr, err) }}
	if f.scrub || len(f.scrubEnv) > 0 {
		var values []string
		for _, name := range f.scrubEnv {
			v, is := sys.lookupEnv(name)
			if !is {
				return failWith(exitUsage, fmt.Errorf("--scrub-env: the variable %s isn't set", name))
			}
			values = append(values, v)
		}
		if opts.Scrub, err = eventlog.Scrubber(values); err != nil {
			return failWith(exitUsage, err)
		}
	}
	l, err := eventlog.Open(file, opts)
	if err != nil {
		return failWith(exitFailed, err)
	}
	return errors.Join(serveBackend(ctx, sys, l), l.Close())
}

// logFile returns the log's path; the folder of the usual one is made.
func logFile(sys system, f logFlags) (string, error) {
	if f.file != "" {
		return f.file, nil
	}
	home := sys.getenv("AHP_HOME")
	if home == "" {
		home = accountHome()
	}
	if home == "" {
		return "", failWith(exitUsage, errors.New("there is no home folder; --file names the log"))
	}
	dir := filepath.Join(home, ".local", "state", "ahp")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", failWith(exitFailed, err)
	}
	return filepath.Join(dir, "events.jsonl"), nil
}

func verifyLog(sys system, f logFlags, file string, key *chain.Key) error {
	var public chain.PublicKey
	if key != nil {
		public = key.Public()
	}
	r, err := eventlog.Verify(file, public)
	if err != nil {
		return failWith(exitFailed, err)
	}
	if f.json {
		err = sys.printJSON(r)
	} else {
		text := fmt.Sprintf("%s: %d lines, head %s\n", file, r.Lines, r.Hash)
		if r.Signed {
			text += fmt.Sprintf("signed up to line %d by %s\n", r.SignedSeq, key.ID())
		}
		for _, p := range r.Problems {
			text += p + "\n"
		}
		err = sys.print(text)
	}
	if err == nil && len(r.Problems) > 0 {
		return done(exitNegative)
	}
	return err
}

func newBackendFault(sys system) *cobra.Command {
	var list, asJSON bool
	var listen string
	cmd := &cobra.Command{
		Use:   "fault NAME | --list",
		Short: "Misbehave in one way",
		Long: `fault serves a backend that misbehaves in one way of a menu, on standard input and
output or over HTTP, so that a harness in any language can be tested against each.
--list prints the menu, with the class of failure that a harness must see for each way
of reaching the backend; "ok" is an exchange that succeeds.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case list && len(args) == 0:
				return listFaults(sys, asJSON)
			case list || len(args) != 1:
				return errors.New("backend fault: name one fault, or give --list")
			}
			f, ok := fault.Find(args[0])
			if !ok {
				return fmt.Errorf("backend fault: there is no fault %q; ahp backend fault --list has them", args[0])
			}
			if err := canServe(f, listen != ""); err != nil {
				return err
			}
			if listen != "" {
				return listenFault(cmd.Context(), sys, f, listen)
			}
			return runFault(cmd.Context(), sys, f)
		},
	}
	cmd.Flags().BoolVar(&list, "list", false, "print the menu")
	cmd.Flags().BoolVar(&asJSON, "json", false, "with --list, print JSON")
	cmd.Flags().StringVar(&listen, "listen", "", "serve HTTP on this `address`, such as 127.0.0.1:0; the URL is printed to standard error")
	return cmd
}

// canServe refuses a way of serving in which the fault doesn't exist: it would be a
// backend without a fault.
func canServe(f fault.Fault, overHTTP bool) error {
	_, persistent := f.Classes[fault.StdioPersistent]
	_, perEvent := f.Classes[fault.StdioPerEvent]
	_, http := f.Classes[fault.HTTP]
	switch {
	case overHTTP && !http:
		return fmt.Errorf("backend fault: %q is no fault of HTTP; leave --listen out", f.Name)
	case !overHTTP && !persistent && !perEvent:
		return fmt.Errorf("backend fault: %q is a fault of HTTP alone; give --listen 127.0.0.1:0", f.Name)
	}
	return nil
}

// listedFault is one fault as --list --json prints it.
type listedFault struct {
	Name    string                             `json:"name"`
	About   string                             `json:"about"`
	Classes map[fault.Carrier]ahp.FailureClass `json:"classes"`
}

func listFaults(sys system, asJSON bool) error {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	var all []listedFault
	for _, f := range append(fault.Menu(), fault.NotifyMenu()...) {
		row := listedFault{Name: f.Name, About: f.About, Classes: map[fault.Carrier]ahp.FailureClass{}}
		var cells []string
		for _, c := range fault.Carriers() {
			class, is := f.Classes[c]
			if !is {
				continue
			}
			if class == "" {
				class = "ok"
			}
			row.Classes[c] = class
			cells = append(cells, fmt.Sprintf("%s=%s", c, class))
		}
		all = append(all, row)
		fmt.Fprintf(table, "%s\t%s\t%s\n", row.Name, row.About, strings.Join(cells, " "))
	}
	if asJSON {
		return sys.printJSON(all)
	}
	table.Flush()
	return sys.print(text.String())
}

// runFault misbehaves on the standard streams.
func runFault(ctx context.Context, sys system, f fault.Fault) error {
	ended := make(chan int, 1)
	go func() { ended <- f.Run(ctx, sys.stdin, sys.stdout, sys.stderr) }()
	select {
	case code := <-ended:
		return done(code)
	case <-ctx.Done():
		return nil // a read of standard input can't be ended; the program does
	}
}

// listenFault misbehaves over HTTP until ctx ends.
func listenFault(ctx context.Context, sys system, f fault.Fault, address string) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return failWith(exitFailed, err)
	}
	server := &http.Server{Handler: f, ReadHeaderTimeout: 10 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog: slog.NewLogLogger(slog.NewJSONHandler(sys.stderr, nil), slog.LevelWarn)}
	defer context.AfterFunc(ctx, func() { server.Close() })()
	fmt.Fprintf(sys.stderr, "http://%s/\n", l.Addr())
	if err := server.Serve(l); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return failWith(exitFailed, err)
	}
	return nil
}
