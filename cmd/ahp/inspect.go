package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/inspect"
)

type inspectFlags struct {
	listen       string
	registration string
	tokenEnv     string
	stdio        bool
	jsonLines    []string
}

// newInspect is "ahp inspect".
func newInspect(sys system) *cobra.Command {
	var f inspectFlags
	cmd := &cobra.Command{
		Use:   "inspect",
		Short: "Show events and decisions on a local page, as they happen",
		Long: `inspect is a backend that never objects, and shows on a local page what a harness sends
it. Register the address of its messages, which is printed to standard error with that
of the page, as an HTTP backend; or register "ahp inspect --stdio" as a command.

With --registration it stands in front of backends: the harness registers inspect alone,
and inspect asks the backends of FILE, and the managed ones, one after the other with the
event as it came, shows every message, and answers with what they all came to. That is no
less strict than what they say without it: a deny stays a deny, and a required backend
that fails denies. Where an event can't be denied, that is an error instead, so register
inspect with "failurePolicy": "fail-closed", with a deadline longer than all of theirs
together, once to intercept and once to observe "*". The page shows such an entry while
it has no events. Backends with an upload can't stand behind inspect.

The page's address holds a secret: whoever knows it can read all that is shown. Messages
may come from anybody on this machine, unless --token-env names a token.

--json-lines shows what a file holds, without asking anybody: messages of the wire, one a
line, or what "ahp backend log" writes.

Exit codes: 0 it was told to end, 2 wrong use or configuration, 3 an operational failure.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), sys) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.listen, "listen", "127.0.0.1:0", "serve on this `address` of this machine; port 0 takes a free one")
	flags.StringVar(&f.registration, "registration", "", "stand in front of the backends of this `FILE`")
	flags.StringVar(&f.tokenEnv, "token-env", "", "the `variable` whose value messages over HTTP must carry as a bearer token")
	flags.BoolVar(&f.stdio, "stdio", false, "take messages from standard input, and answer on standard output")
	flags.StringArrayVar(&f.jsonLines, "json-lines", nil, "show what this `FILE` holds; may be repeated")
	return cmd
}

func (f *inspectFlags) run(ctx context.Context, sys system) (err error) {
	opts := inspect.Options{}
	if f.tokenEnv != "" {
		if opts.Token = sys.getenv(f.tokenEnv); opts.Token == "" {
			return failWith(exitUsage, fmt.Errorf("--token-env: the variable %s isn't set", f.tokenEnv))
		}
	}
	l, err := f.bind(ctx)
	if err != nil {
		return err
	}
	defer l.Close()
	if f.registration != "" {
		loaded, err := sys.registration(f.registration)
		if err == nil {
			err = notItself(loaded.Registration, l.Addr())
		}
		if err != nil {
			return err
		}
		opts.Registration, opts.Open = loaded.Registration, (&wire{sys: sys, loaded: loaded}).connect
	}
	i, err := inspect.New(opts)
	if err != nil {
		return failWith(exitUsage, fmt.Errorf("the registration can't be used: %s", strings.TrimPrefix(err.Error(), "harness: ")))
	}
	defer func() {
		if bad := i.Close(); err == nil && bad != nil {
			err = failWith(exitFailed, bad)
		}
	}()
	for _, file := range f.jsonLines {
		if err := f.show(sys, i, file); err != nil {
			return err
		}
	}
	return f.serve(ctx, sys, i, l)
}

// bind listens, on this machine's own addresses alone: the page shows everything.
func (f *inspectFlags) bind(ctx context.Context) (net.Listener, error) {
	host, _, err := net.SplitHostPort(f.listen)
	if err != nil {
		return nil, failWith(exitUsage, fmt.Errorf("--listen %s: %w", f.listen, err))
	}
	if a, err := netip.ParseAddr(host); host != "localhost" && (err != nil || !a.IsLoopback()) {
		return nil, failWith(exitUsage, fmt.Errorf("--listen %s: expected an address of this machine alone, such as 127.0.0.1:0, because the page shows all that agents do", f.listen))
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", f.listen)
	if err != nil {
		return nil, failWith(exitFailed, err)
	}
	return l, nil
}

// notItself refuses a registration that leads back here: an event would go round
// until every deadline has passed.
func notItself(reg *ahp.Registration, own net.Addr) error {
	_, port, _ := net.SplitHostPort(own.String())
	for _, b := range reg.Hooks {
		if u, err := url.Parse(b.Transport.URL); err == nil && b.Transport.Type == ahp.TransportHTTP && u.Port() == port && u.Path == inspect.Path && ahp.IsLoopbackURL(b.Transport.URL) {
			return failWith(exitUsage, fmt.Errorf("backend %s: found %s, which is this inspect itself; expected the backends that are to stand behind it", b.ID, u))
		}
	}
	return nil
}

// show adds the lines of a file.
func (f *inspectFlags) show(sys system, i *inspect.Inspector, file string) error {
	in := sys.stdin
	if file == "-" && f.stdio {
		return failWith(exitUsage, errors.New("--json-lines -: standard input is taken by --stdio"))
	}
	if file != "-" {
		opened, err := os.Open(file)
		if err != nil {
			return failWith(exitUsage, err)
		}
		defer opened.Close()
		in = opened
	}
	return eachLine(in, func(n int, line []byte, err error) error {
		if err != nil {
			return failWith(exitUsage, fmt.Errorf("%s:%d: %w", file, n, err))
		}
		if len(strings.TrimSpace(string(line))) > 0 {
			i.Record(line)
		}
		return nil
	})
}

// serve serves until ctx ends or, with --stdio, standard input does.
func (f *inspectFlags) serve(ctx context.Context, sys system, i *inspect.Inspector, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	server := &http.Server{Handler: i.Handler(), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10, // a ReadTimeout would end what takes longer to answer
		BaseContext: func(net.Listener) context.Context { return ctx }, ErrorLog: slog.NewLogLogger(slog.NewJSONHandler(sys.stderr, nil), slog.LevelWarn)}
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	fmt.Fprintf(sys.stderr, "page: http://%s%s\nmessages: http://%s%s\n", l.Addr(), i.PagePath(), l.Addr(), inspect.Path)
	if !f.stdio {
		return ended(server.Serve(l))
	}
	served := make(chan error, 1)
	go func() { served <- ended(server.Serve(l)) }()
	err := i.ServeStdio(ctx, sys.stdin, sys.stdout)
	server.Close()
	if bad := <-served; bad != nil {
		return bad
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		return failWith(exitFailed, err)
	}
	return nil
}

// ended returns nil for a server that was told to end.
func ended(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return failWith(exitFailed, err)
}
