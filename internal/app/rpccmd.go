package app

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/abhed/abhed/internal/rpcmode"
)

// RPCOptions is one service on standard input and output.
type RPCOptions struct {
	HostOptions
	// Buffer is how many events may wait for the reader; 0 means 10,000.
	Buffer int
}

// RPC serves requests on standard input until it ends, and returns the exit code of
// its end (rpc.md). It hears signals itself, whatever ends ctx by them.
func RPC(ctx context.Context, o RPCOptions, sys System) int {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	err := rpcmode.Serve(context.WithoutCancel(ctx), NewHost(o.HostOptions, sys), rpcmode.Options{In: sys.Stdin, Out: sys.Stdout, Buffer: o.Buffer, Signals: signals})
	if err != nil {
		return sys.fail(rpcmode.ExitCode(err), err)
	}
	return ExitOK
}
