package conformance_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/abhed/abhed/ahp/conformance"
)

// hostileArgument marks a run of the test binary as a peer that means harm.
const hostileArgument = "conformance-hostile"

// hostile are peers that no suite may hang at, or fill its memory with.
func hostile() map[string]func() {
	block := func() { time.Sleep(time.Hour) }
	return map[string]func(){
		"floods lines": func() {
			for {
				if _, err := os.Stdout.Write(bytes.Repeat([]byte("y\n"), 4096)); err != nil {
					return
				}
			}
		},
		"floods answers": func() {
			for {
				if _, err := fmt.Println(`{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}`); err != nil {
					return
				}
			}
		},
		"floods one line": func() {
			for {
				if _, err := os.Stdout.Write(bytes.Repeat([]byte("y"), 1<<20)); err != nil {
					return
				}
			}
		},
		"floods standard error": func() {
			for {
				os.Stderr.Write(bytes.Repeat([]byte("noise\n"), 4096))
			}
		},
		"never reads":   block,
		"never answers": func() { io.Copy(io.Discard, os.Stdin); block() },
		"closes its output": func() {
			os.Stdout.Close()
			io.Copy(io.Discard, os.Stdin)
			block()
		},
		"exits at once": func() { os.Exit(1) },
		"huge answer": func() {
			buf := make([]byte, 1<<20)
			os.Stdin.Read(buf)
			fmt.Printf("{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"result\":%q}\n", bytes.Repeat([]byte("x"), 40<<20))
			block()
		},
		"deep answer": func() {
			buf := make([]byte, 1<<20)
			os.Stdin.Read(buf)
			fmt.Printf("{\"jsonrpc\":\"2.0\",\"id\":%s\n", bytes.Repeat([]byte("["), 4<<20))
			block()
		},
	}
}

// TestHostileProcess: whatever a process does, the run ends soon, with a failure.
func TestHostileProcess(t *testing.T) {
	exe := programs(t)
	opts := options()
	opts.Timeout, opts.Grace = time.Second, 100*time.Millisecond
	for name := range hostile() {
		for _, perEvent := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/per event %v", name, perEvent), func(t *testing.T) {
				endsInFailure(t, conformance.Target{Command: []string{exe, hostileArgument, name}, PerEvent: perEvent}, opts)
			})
		}
	}
}

func endsInFailure(t *testing.T, target conformance.Target, opts conformance.Options) {
	t.Helper()
	started := time.Now()
	r, err := conformance.Backend(t.Context(), target, opts)
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Find("answer"); got.Verdict != conformance.Fail || got.Reason == "" || r.OK() {
		t.Errorf("%s: %s", got.Verdict, got.Reason)
	}
	if took := time.Since(started); took > 20*time.Second {
		t.Errorf("it took %s", took)
	}
}

// TestHostileServer: the same over HTTP.
func TestHostileServer(t *testing.T) {
	for name, handle := range map[string]http.HandlerFunc{
		"endless body": func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := w.Write(bytes.Repeat([]byte("y"), 1<<20)); err != nil {
					return
				}
			}
		},
		"drips": func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				w.Write([]byte(" "))
				w.(http.Flusher).Flush()
				select {
				case <-time.After(5 * time.Millisecond):
				case <-r.Context().Done():
				}
			}
		},
		"hangs": func(_ http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		},
		"aborts": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"redirects home": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.String(), http.StatusTemporaryRedirect)
		},
		"short body": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			w.Write([]byte("{"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(handle)
			defer s.Close()
			opts := options()
			opts.Timeout = time.Second
			endsInFailure(t, conformance.Target{URL: s.URL}, opts)
		})
	}
}
