// Command ahp is the toolkit of the Agent Hooks Protocol: it judges messages and
// registrations, evaluates replies, sends events and serves backends.
package main

import (
	"context"
	"io"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/abhed/abhed/internal/hookline"
)

func main() { os.Exit(run()) }

// run is main with a return value, so that tests can be the command.
func run() int {
	if h := hookline.First(); h != nil { // "ahp hook", and no service answered for it
		return continued(h)
	}
	// net/http logs what a server sends unasked, and our standard error is read by
	// others: by people, and by hosts that show it to a model.
	log.SetOutput(io.Discard)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	sys := system{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, environ: os.Environ()}
	if dir, err := os.Getwd(); err == nil {
		sys.dir = dir
	}
	return execute(ctx, os.Args[1:], sys)
}
