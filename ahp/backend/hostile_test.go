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
	for i := range 24 {
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
	if m.HeapAlloc > 16<<20 {
		t.Errorf("%d MiB are held", m.HeapAlloc>>20)
	}
	runtime.KeepAlive(s)
}

// TestElicitationGrants holds that an elicitation is answered only in a mode that
// the request grants (§10).
func TestElicitationGrants(t *testing.T) {
	on := &ahp.ElicitationMode{}
	for _, tt := range []struct {
		mode  string
		grant *ahp.ElicitationCapability
		want  bool
	}{
		{"form", nil, false}, {"form", &ahp.ElicitationCapability{}, false}, {"form", &ahp.ElicitationCapability{URL: on}, false},
		{"form", &ahp.ElicitationCapability{Form: on}, true}, {"url", &ahp.ElicitationCapability{Form: on}, false}, {"url", &ahp.ElicitationCapability{URL: on}, true},
	} {
		request := &ahp.Intercept{Event: &ahp.Event{Type: ahp.UserElicitationRequest, Elicitation: &ahp.Elicitation{Server: "s", Mode: tt.mode}}}
		request.Capabilities = *ahptest.FullCapabilities(ahp.UserElicitationRequest)
		request.Capabilities.Elicitation = tt.grant
		for _, e := range []ahp.Effect{&ahp.Deny{Reason: "r"}, &ahp.Return{Value: ahp.Raw("{}")}} {
			if _, err := backend.Answer(request, e); (err == nil) != tt.want {
				t.Errorf("%s with %+v: %s: %v", tt.mode, tt.grant, e.EffectType(), err)
			}
		}
		if _, err := backend.Answer(request, &ahp.Notice{Text: "x"}); err != nil {
			t.Errorf("a message: %v", err)
		}
		result := &ahp.Intercept{Event: &ahp.Event{Type: ahp.UserElicitationResult, Elicitation: &ahp.Elicitation{Server: "s", Mode: tt.mode, Action: "accept"}}}
		result.Capabilities = *ahptest.FullCapabilities(ahp.UserElicitationResult)
		result.Capabilities.Elicitation = tt.grant
		if _, err := backend.Answer(result, &ahp.Modify{Target: ahp.TargetContent, Operation: ahp.OpMerge, Value: ahp.Raw("{}")}); (err == nil) != tt.want {
			t.Errorf("%s with %+v: modify: %v", tt.mode, tt.grant, err)
		}
	}
}
