package backend

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
)

// Main serves h on standard input and output and ends the program: with 0 at the
// end of input or on SIGTERM or SIGINT, once what was read has been answered, and
// with 1 after a failure; a second signal ends it at once. It logs to standard
// error. It suits both lifecycles of a stdio backend.
//
// Standard output is the protocol's: while Main runs, os.Stdout is standard error,
// so that a handler which prints does no harm. It can't help against what was
// printed before, or what keeps the file of its own.
func Main(h Handler, opts Options) {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.NewJSONHandler(os.Stderr, nil))
	}
	out := os.Stdout
	os.Stdout = os.Stderr
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	context.AfterFunc(ctx, stop)
	err := New(h, opts).ServeStdio(ctx, os.Stdin, out)
	if err != nil && !errors.Is(err, context.Canceled) {
		opts.Logger.Error("ended", "error", err.Error())
		os.Exit(1)
	}
	os.Exit(0)
}
