// Command approval-service is a backend over HTTP that holds tool calls until a
// person decides: on a page, or by curl.
//
// The harness speaks to one listener with one token, people speak to another with
// another: a harness, or an agent that got hold of its token, can't approve its own
// calls. Tokens come from the environment, so that they are in no command line.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/backend"
	"github.com/abhed/abhed/ahp/backend/httpbackend"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "approval-service:", err)
		os.Exit(1)
	}
}

func run() error {
	listen := flag.String("listen", "127.0.0.1:7070", "where the harness connects")
	people := flag.String("people", "127.0.0.1:7071", "where people connect; a loopback address")
	wait := flag.Duration("wait", 25*time.Second, "how long a call waits for a decision before it is denied; less than the subscription's timeoutMs")
	flag.Parse()
	harnessToken, personToken := os.Getenv("HARNESS_TOKEN"), os.Getenv("PERSON_TOKEN")
	if len(harnessToken) < 16 || len(personToken) < 16 || harnessToken == personToken {
		return errors.New("HARNESS_TOKEN and PERSON_TOKEN must hold two different tokens of at least 16 characters")
	}
	log := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	q := newQueue(*wait)
	handler := backend.New(&backend.Handlers{On: map[ahp.EventType]backend.Func{ahp.ToolBefore: q.judge}}, backend.Options{Logger: log})

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The end of ctx ends every call that waits.
	base := func(net.Listener) context.Context { return ctx }
	servers := []*http.Server{
		{Handler: httpbackend.Handler(handler, httpbackend.Options{Token: harnessToken}), BaseContext: base, ReadHeaderTimeout: 10 * time.Second},
		{Handler: desk(q, personToken), BaseContext: base, ReadHeaderTimeout: 10 * time.Second},
	}
	ended := make(chan error, len(servers))
	for i, address := range []string{*listen, *people} {
		l, err := net.Listen("tcp", address)
		if err != nil {
			return err
		}
		if tcp, is := l.Addr().(*net.TCPAddr); i == 1 && (!is || !tcp.IP.IsLoopback()) {
			return fmt.Errorf("-people %s isn't a loopback address: put a proxy with TLS in front", address)
		}
		fmt.Fprintf(os.Stderr, "%s http://%s/\n", []string{"harness", "people"}[i], l.Addr())
		go func() { ended <- servers[i].Serve(l) }()
	}
	var err error
	select {
	case err = <-ended:
	case <-ctx.Done():
	}
	closing, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	for _, s := range servers {
		err = errors.Join(err, s.Shutdown(closing))
	}
	return err
}
