package ahptest

import (
	"context"
	"fmt"
	"net"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/backend"
	"github.com/abhed/abhed/ahp/transport"
	"github.com/abhed/abhed/ahp/transport/httptransport"
)

// childArgument marks a run of the test binary as a backend.
const childArgument = "ahptest-backend"

// echo is the name of the well-behaved backend that RunIfChild also knows.
const echo = "echo"

// RunIfChild ends the program as a fake backend if it was started as one, and
// does nothing otherwise. It must be the first thing in TestMain.
func RunIfChild() {
	if len(os.Args) != 3 || os.Args[1] != childArgument {
		return
	}
	if os.Args[2] == echo {
		backend.Main(backend.Func(func(context.Context, *ahp.Intercept) ([]ahp.Effect, error) { return nil, nil }), backend.Options{})
	}
	f, ok := FindFault(os.Args[2])
	if !ok {
		fmt.Fprintf(os.Stderr, "ahptest: no fault %q\n", os.Args[2])
		os.Exit(2)
	}
	os.Exit(RunFault(f, os.Stdin, os.Stdout, os.Stderr))
}

// StdioConfig returns the configuration of a real process with the fault; the
// empty name gives a well-behaved backend that never objects.
func StdioConfig(t testing.TB, fault, lifecycle string) ahp.TransportConfig {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if fault == "" {
		fault = echo
	}
	return ahp.TransportConfig{Type: ahp.TransportStdio, Command: exe, Args: []string{childArgument, fault}, Lifecycle: lifecycle}
}

// ChildEnv returns what the environment of a child from StdioConfig should hold
// besides the usual: a test binary with the race detector otherwise takes a second
// to exit.
func ChildEnv() []string { return []string{"GORACE=atexit_sleep_ms=0"} }

// Transport returns a transport of carrier c to a backend with the fault. It is
// closed at the end of the test.
func (f Fault) Transport(t testing.TB, c Carrier) transport.Transport {
	t.Helper()
	link := f.open(t, c)
	t.Cleanup(func() { link.Close() })
	return link
}

func (f Fault) open(t testing.TB, c Carrier) transport.Transport {
	switch c {
	case InProcess:
		return transport.InProcess(f.Reply)
	case HTTP:
		b := &ahp.Backend{ID: "test.fault", Transport: ahp.TransportConfig{Type: ahp.TransportHTTP, URL: f.Server(t).URL}}
		link, err := httptransport.New(b, httptransport.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return link
	}
	lifecycle := ahp.LifecyclePersistent
	if c == StdioPerEvent {
		lifecycle = ahp.LifecyclePerEvent
	}
	link, err := transport.Stdio(StdioConfig(t, f.Name, lifecycle), transport.StdioOptions{Grace: 50 * time.Millisecond, Env: ChildEnv()})
	if err != nil {
		t.Fatal(err)
	}
	return link
}

// Server returns an HTTP server with the fault, closed at the end of the test.
func (f Fault) Server(t testing.TB) *httptest.Server {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s := httptest.NewUnstartedServer(f)
	s.Config.BaseContext = func(net.Listener) context.Context { return ctx }
	s.Start()
	t.Cleanup(func() {
		cancel()
		s.Close()
	})
	return s
}
