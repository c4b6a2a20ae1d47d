package ahp_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/abhed/abhed/ahp"
)

// event2K is a tool.before of about 2 KB, as a harness would send it.
func event2K() []byte {
	return []byte(`{"id":"0198f1c2-7a3b-7c4d-8e5f-0123456789ab","source":"urn:uuid:5b7de29e-a9e0-41a8-bf26-d94b05f0656d",` +
		`"type":"tool.before","time":"2026-08-24T08:51:14.123456Z","session":{"id":"sess_123","cwd":"/home/dev/project",` +
		`"workspaceRoots":["/home/dev/project","/home/dev/lib"],"model":"example-model","agent":{"id":"main","type":"primary"}},` +
		`"turn":{"id":"turn_7"},"call":{"id":"call_456"},"path":"native","tool":{"name":"bash","kind":"shell","origin":"native",` +
		`"input":{"command":"` + strings.Repeat("go test ./... && ", 40) + `true","timeout":120,"description":"run the tests","env":{"A":"1","B":"2"}}},` +
		`"items":[{"id":"i1","kind":"text","mediaType":"text/plain","selection":"body","text":"` + strings.Repeat("Please run it. ", 20) + `"},` +
		`{"id":"i2","kind":"text","mediaType":"text/plain","selection":"metadata","category":"reasoning"}],` +
		`"extensions":{"org.w3c.trace_context":{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}}}`)
}

func BenchmarkDecodeEvent(b *testing.B) {
	data := event2K()
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ahp.DecodeEvent(data); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkUnmarshalMap is what BenchmarkDecodeEvent is measured against.
func BenchmarkUnmarshalMap(b *testing.B) {
	data := event2K()
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		var m map[string]any
		if err := json.Unmarshal(data, &m); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncodeIntercept(b *testing.B) {
	e, err := ahp.DecodeEvent(event2K())
	if err != nil {
		b.Fatal(err)
	}
	q := &ahp.Intercept{Event: e, Capabilities: ahp.Capabilities{Effects: []ahp.EffectType{ahp.EffectDeny}}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := q.Encode(); err != nil {
			b.Fatal(err)
		}
	}
}
