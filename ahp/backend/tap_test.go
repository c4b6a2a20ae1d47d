package backend_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/backend"
)

// TestTap holds that a tap sees every message and what it was answered with, refused
// ones too, and that the handler gets the tap's context.
func TestTap(t *testing.T) {
	type key struct{}
	var mu sync.Mutex // a notification is handled beside the requests
	var got []string
	seen := 0
	s := backend.New(backend.Func(func(ctx context.Context, _ *ahp.Intercept) ([]ahp.Effect, error) {
		if ctx.Value(key{}) == true {
			seen++
		}
		return nil, errors.New("can't")
	}), backend.Options{Tap: func(ctx context.Context, msg []byte) (context.Context, func([]byte, error)) {
		msg = bytes.Clone(msg)
		return context.WithValue(ctx, key{}, true), func(reply []byte, err error) {
			line := string(msg) + " < " + string(reply)
			if err != nil {
				line += " ! " + err.Error()
			}
			mu.Lock()
			defer mu.Unlock()
			got = append(got, line)
		}
	}})
	request := `{"jsonrpc":"2.0","id":"e","method":"hooks/intercept","params":{"protocolVersion":"draft","capabilities":{"effects":["deny"]},"event":{"id":"e","source":"urn:x","type":"tool.before",` +
		`"time":"2026-01-01T00:00:00Z","path":"native","call":{"id":"c"},"tool":{"name":"n","origin":"native","input":{}}}}}`
	var out bytes.Buffer
	if err := s.ServeStdio(t.Context(), strings.NewReader(request+"\n"+`{"jsonrpc":"2.0","method":"hooks/observe"}`+"\nnonsense\n"), &out); err != nil {
		t.Fatal(err)
	}
	want := []string{`"id":"e"`, `hooks/observe`, `nonsense`}
	if len(got) != len(want) || seen != 1 {
		t.Fatalf("the tap saw %d messages, the handler %d taps: %q", len(got), seen, got)
	}
	for _, w := range want {
		found := false
		for _, line := range got {
			found = found || strings.Contains(line, w) && strings.Contains(line, " ! ") && strings.Contains(line, `"error"`) == (w != "hooks/observe")
		}
		if !found {
			t.Errorf("no line about %s with its answer in %q", w, got)
		}
	}
}
