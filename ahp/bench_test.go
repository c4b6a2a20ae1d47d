package ahp_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

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

// unknown2K is event2K with members that no revision knows.
func unknown2K() []byte {
	return append([]byte(`{"risk":{"score":7,"labels":["a","b"]},"tenant":"acme",`), event2K()[1:]...)
}

// maxDecode is how long decoding may take, of what encoding/json takes for the same
// bytes as a map.
const maxDecode = 0.75

// BenchmarkDecodeEvent decodes and validates, and keeps what is unknown. The yardstick
// is measured in turn with it: the metric, and what the limit is for, is the ratio of
// the medians.
func BenchmarkDecodeEvent(b *testing.B) {
	data := unknown2K()
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	var ours, theirs []time.Duration
	for b.Loop() {
		start := time.Now()
		if _, err := ahp.DecodeEvent(data); err != nil {
			b.Fatal(err)
		}
		ours = append(ours, time.Since(start))
		b.StopTimer()
		start = time.Now()
		var m map[string]any
		if err := json.Unmarshal(data, &m); err != nil {
			b.Fatal(err)
		}
		theirs = append(theirs, time.Since(start))
		b.StartTimer()
	}
	slices.Sort(ours)
	slices.Sort(theirs)
	ratio := float64(ours[len(ours)/2]) / float64(theirs[len(theirs)/2])
	b.ReportMetric(ratio, "x-of-map")
	if ratio > maxDecode && b.N > 1000 {
		b.Errorf("decoding takes %.2f of encoding/json's time, the limit is %v", ratio, maxDecode)
	}
}

// TestDecodeAllocations holds the limit that doesn't depend on the machine.
func TestDecodeAllocations(t *testing.T) {
	data := unknown2K()
	if len(data) < 1800 || len(data) > 2200 {
		t.Fatalf("the event has %d bytes", len(data))
	}
	e, err := ahp.DecodeEvent(data)
	if err != nil || len(e.Unknown) != 2 {
		t.Fatalf("%d unknown members are kept, %v", len(e.Unknown), err)
	}
	got := testing.AllocsPerRun(100, func() {
		if _, err := ahp.DecodeEvent(data); err != nil {
			t.Fatal(err)
		}
	})
	if got > 50 && !raced {
		t.Errorf("%v allocations, the limit is 50", got)
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
