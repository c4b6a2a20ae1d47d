// Command abhed is a coding-agent harness in which every tool call passes one
// gate and everything that happens is kept in a record that can be verified.
package main

import (
	"context"
	"io"
	"log"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/abhed/abhed/internal/agent"
	"github.com/abhed/abhed/internal/app"
)

func main() { os.Exit(run()) }

// run is main with a return value, so that tests can be the command.
func run() int {
	// net/http logs what a server sends unasked, and our standard error is read by
	// others: by people, and by hosts that show it to a model.
	log.SetOutput(io.Discard)
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(200) // an eighth of a session's CPU time, for a few megabytes
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	go func() {
		for s := range signals {
			reason := agent.ReasonShutdown
			if s == os.Interrupt {
				reason = agent.ReasonUserInterrupt
			}
			cancel(&agent.Interrupted{Reason: reason})
		}
	}()
	return execute(ctx, os.Args[1:], app.System{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, TerminalOut: isTerminal(os.Stdout), Environ: os.Environ(), Version: version(),
	})
}
