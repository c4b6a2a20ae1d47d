package backend_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/backend"
	"github.com/abhed/abhed/internal/strictjson"
)

// FuzzServeStdio holds that whatever a harness writes, each reply is one strict
// JSON object on one line, a notification gets none, and a request exactly one with
// its own id.
func FuzzServeStdio(f *testing.F) {
	f.Add(request(f, "e", "ls"))
	f.Add(request(f, "e", "deny"))
	f.Add(notification(f, "e"))
	f.Add([]byte(`{"jsonrpc":"2.0","id":7,"method":"hooks/capabilities","params":{"protocolVersion":"draft"}}`))
	f.Add([]byte("[]"))
	f.Add([]byte("\xef\xbb\xbf{}"))
	server := backend.New(&judge{}, backend.Options{Manifest: ahptest.Manifest()})
	f.Fuzz(func(t *testing.T, text []byte) {
		var out bytes.Buffer
		if err := server.ServeStdio(context.Background(), bytes.NewReader(text), &out); err != nil {
			t.Fatal(err)
		}
		want := 0
		for line := range bytes.SplitSeq(text, []byte("\n")) {
			p, err := ahp.Peek(line)
			if len(bytes.TrimSpace(line)) > 0 && (err != nil || p.HasID && p.Method != ahp.MethodObserve) {
				want++
			}
		}
		if got := strings.Count(out.String(), "\n"); got != want {
			t.Fatalf("%d replies, want %d: %s", got, want, &out)
		}
		for reply := range bytes.Lines(out.Bytes()) {
			if err := strictjson.Check(bytes.TrimSuffix(reply, []byte("\n")), strictjson.Options{}); err != nil {
				t.Fatalf("%v: %s", err, reply)
			}
			if _, err := ahp.DecodeEffectsReply(reply, ahp.StringID("none of these")); err == nil {
				t.Fatalf("an answer to nobody: %s", reply)
			}
		}
	})
}
