package backend_test

import (
	"bytes"
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/backend"
)

// TestHandlerBugs holds that whatever a handler does wrong becomes an error reply,
// for the request and for its repeats.
func TestHandlerBugs(t *testing.T) {
	for name, f := range map[string]backend.Func{
		"a nil effect": func(context.Context, *ahp.Intercept) ([]ahp.Effect, error) { return []ahp.Effect{nil}, nil },
		"a nil modify": func(context.Context, *ahp.Intercept) ([]ahp.Effect, error) {
			return []ahp.Effect{(*ahp.Modify)(nil)}, nil
		},
		"a nil deny": func(context.Context, *ahp.Intercept) ([]ahp.Effect, error) {
			return []ahp.Effect{(*ahp.Deny)(nil)}, nil
		},
		"a panic":          func(context.Context, *ahp.Intercept) ([]ahp.Effect, error) { panic("x") },
		"a left goroutine": func(context.Context, *ahp.Intercept) ([]ahp.Effect, error) { runtime.Goexit(); return nil, nil },
		"a reply too large": func(context.Context, *ahp.Intercept) ([]ahp.Effect, error) {
			return []ahp.Effect{&ahp.Notice{Text: strings.Repeat("x", ahp.MaxMessageBytes)}}, nil
		},
		"an error too large": func(context.Context, *ahp.Intercept) ([]ahp.Effect, error) {
			return nil, &ahp.RPCError{Code: 1, Data: ahp.Raw(`"` + strings.Repeat("x", ahp.MaxMessageBytes) + `"`)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := backend.New(f, backend.Options{})
			for range 2 {
				reply := make(chan []byte, 1)
				go func() {
					var out []byte
					defer func() { reply <- out }()
					out, _ = s.Handle(t.Context(), request(t, "e", "ls"))
				}()
				select {
				case out := <-reply:
					if name != "a left goroutine" && !bytes.Contains(out, []byte(`"code":-32004`)) {
						t.Fatalf("reply %.100s", out)
					}
				case <-time.After(10 * time.Second):
					t.Fatal("no reply")
				}
			}
		})
	}
}

// TestMemoryOfLargeSources holds that what is remembered of a request doesn't grow
// with what the request holds.
func TestMemoryOfLargeSources(t *testing.T) {
	s := backend.New(backend.Func(func(context.Context, *ahp.Intercept) ([]ahp.Effect, error) { return nil, nil }), backend.Options{})
	e := ahptest.ToolBefore("e", "{}")
	for i := range 64 {
		e.Source = "urn:x:" + strings.Repeat("x", 1<<20+i)
		msg, err := (&ahp.Intercept{Event: e, Capabilities: *ahptest.FullCapabilities(ahp.ToolBefore)}).Encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Handle(t.Context(), msg); err != nil {
			t.Fatal(err)
		}
	}
	e.Source = ""
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if m.HeapAlloc > 32<<20 {
		t.Errorf("%d MiB are held", m.HeapAlloc>>20)
	}
	runtime.KeepAlive(s)
}
