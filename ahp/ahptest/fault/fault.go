// Package fault is a menu of the ways in which a backend of the Agent Hooks Protocol
// can misbehave: on standard streams, over HTTP, and inside the program. Package
// ahptest offers the same to Go tests; this one links no package of tests, so that
// a command can serve it to harnesses in other languages.
//
// It guarantees that every fault names the class of operational failure that a
// harness must see, per carrier.
//
// Do not assume that a faulty backend judges anything, or that it ends by itself.
package fault

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/abhed/abhed/ahp"
)

// Carrier is a way in which a backend can be reached.
type Carrier string

// The carriers.
const (
	InProcess       Carrier = "in_process"
	StdioPersistent Carrier = "stdio_persistent"
	StdioPerEvent   Carrier = "stdio_per_event"
	HTTP            Carrier = "http"
)

// Carriers returns all carriers.
func Carriers() []Carrier { return []Carrier{InProcess, StdioPersistent, StdioPerEvent, HTTP} }

// elsewhere is where the faults that redirect send a request.
const elsewhere = "/elsewhere"

// Run misbehaves on in and out like a stdio backend with the fault and returns its
// exit code. It reads until in ends, and waits no longer than ctx; a Read that is
// in progress isn't ended by that.
func (f Fault) Run(ctx context.Context, in io.Reader, out, stderr io.Writer) int {
	if a := f.act(""); a.deaf {
		return a.code
	}
	r := bufio.NewReaderSize(in, 64<<10)
	for {
		msg, err := readMessage(r)
		if err != nil || ctx.Err() != nil {
			return 0
		}
		a := f.act(idOf(msg))
		if !sleep(ctx, a.delay) {
			return 0
		}
		if a.hang {
			sleep(ctx, time.Hour) // a hung backend doesn't notice the end of its input
		}
		stderr.Write(a.stderr)
		out.Write(a.out)
		if a.exit {
			return a.code
		}
	}
}

// readMessage returns the start of the next line, which holds its id, and reads past
// the rest.
func readMessage(r *bufio.Reader) ([]byte, error) {
	start, err := r.ReadSlice('\n')
	start = append([]byte(nil), start...)
	for err == bufio.ErrBufferFull {
		var more []byte
		if more, err = r.ReadSlice('\n'); len(start) < ahp.MaxMessageBytes {
			start = append(start, more...)
		}
	}
	return start, err
}

func idOf(msg []byte) string {
	id, _ := ahp.MessageID(msg)
	s, _ := id.Value()
	return s
}

// Reply misbehaves inside the program: it returns what the backend writes, or the
// error of ctx.
func (f Fault) Reply(ctx context.Context, msg []byte) ([]byte, error) {
	a := f.act(idOf(msg))
	if a.hang || !sleep(ctx, a.delay) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return a.out, nil
}

// ServeHTTP misbehaves over HTTP. A response that hangs does so until the request's
// context ends, so a server should end that when it is closed. A redirect leads to
// a denial, which a harness that doesn't follow it never sees.
func (f Fault) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	msg, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 2*ahp.MaxMessageBytes))
	if err != nil {
		return
	}
	a := f.act(idOf(msg))
	if r.URL.Path == elsewhere {
		a = action{out: line(result(idOf(msg), denies))}
	}
	if a.hang || !sleep(r.Context(), a.delay) {
		<-r.Context().Done()
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
