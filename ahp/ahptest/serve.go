package ahptest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
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

// RunFault misbehaves on in and out like a stdio backend with the fault and
// returns the exit code. It reads until in ends.
func RunFault(f Fault, in io.Reader, out, stderr io.Writer) int {
	if a := f.act(""); a.deaf {
		return a.code
	}
	r := bufio.NewReaderSize(in, 64<<10)
	for {
		msg, err := r.ReadBytes('\n')
		if err != nil {
			return 0
		}
		a := f.act(idOf(msg))
		time.Sleep(a.delay)
		if a.hang {
			time.Sleep(time.Hour) // a hung backend doesn't notice the end of its input
		}
		stderr.Write(a.stderr)
		out.Write(a.out)
		if a.exit {
			return a.code
		}
	}
}

func idOf(msg []byte) string {
	id, _ := ahp.MessageID(msg)
	s, _ := id.Value()
	return s
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
		return transport.InProcess(f.inProcess)
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

func (f Fault) inProcess(ctx context.Context, msg []byte) ([]byte, error) {
	a := f.act(idOf(msg))
	if a.hang || !sleep(ctx, a.delay) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return a.out, nil
}

// Server returns an HTTP server with the fault, closed at the end of the test.
func (f Fault) Server(t testing.TB) *httptest.Server {
	t.Helper()
	closing := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.serveHTTP(w, r, closing)
	}))
	t.Cleanup(func() {
		close(closing)
		s.Close()
	})
	return s
}

func (f Fault) serveHTTP(w http.ResponseWriter, r *http.Request, closing <-chan struct{}) {
	if r.URL.Path == "/elsewhere" {
		panic("ahptest: a redirect was followed")
	}
	msg, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	go func() {
		select {
		case <-closing:
			cancel()
		case <-ctx.Done():
		}
	}()
	a := f.act(idOf(msg))
	if a.hang || !sleep(ctx, a.delay) {
		<-ctx.Done()
		return
	}
	if a.exit && len(a.out) == 0 {
		panic(http.ErrAbortHandler) // cuts the connection without a response
	}
	if a.mediaType == "" && len(a.out) > 0 {
		a.mediaType = "application/json"
	}
	w.Header().Set("Content-Type", a.mediaType)
	if a.location != "" {
		w.Header().Set("Location", a.location)
	}
	if a.short {
		w.Header().Set("Content-Length", strconv.Itoa(2*len(a.out)))
	}
	if a.status != 0 {
		w.WriteHeader(a.status)
	}
	w.Write(a.out)
}

// sleep waits and reports whether it could wait all of d.
func sleep(ctx context.Context, d time.Duration) bool {
	if d == 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
