package httptransport_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/backend"
	"github.com/abhed/abhed/ahp/backend/httpbackend"
	"github.com/abhed/abhed/ahp/harness"
	"github.com/abhed/abhed/ahp/transport"
	"github.com/abhed/abhed/ahp/transport/httptransport"
)

// ratioLimit is how much longer than the echo one interception may take.
const ratioLimit = 1.5

// httpEcho decodes each body, encodes it again, and answers with an empty reply.
func httpEcho(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var m map[string]any
	if err != nil || json.Unmarshal(body, &m) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	reply, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": m["id"], "result": map[string]any{"protocolVersion": "draft", "effects": []any{}}})
	w.Header().Set("Content-Type", "application/json")
	w.Write(reply)
}

// echo is one round trip of plain net/http: encode, post, decode.
func echo(b *testing.B, client *http.Client, url string, request map[string]any) {
	text, err := json.Marshal(request)
	if err != nil {
		b.Fatal(err)
	}
	resp, err := client.Post(url, "application/json", bytes.NewReader(text))
	if err != nil {
		b.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	var reply map[string]any
	if err != nil || json.Unmarshal(body, &reply) != nil || reply["id"] != request["id"] {
		b.Fatalf("%s, %v", body, err)
	}
}

// BenchmarkInterception alternates one decision of a harness by one HTTP backend
// with one round trip of plain net/http whose ends decode and encode the same
// messages, over kept connections of this machine. It fails where the median
// decision takes more than 1.5 times the median echo.
func BenchmarkInterception(b *testing.B) {
	real := httptest.NewServer(httpbackend.Handler(backend.New(backend.Func(allowAll), backend.Options{}), httpbackend.Options{}))
	defer real.Close()
	plain := httptest.NewServer(http.HandlerFunc(httpEcho))
	defer plain.Close()
	config := backendAt(real.URL)
	config.Subscriptions = []ahp.Subscription{ahptest.Intercept(ahp.FailClosed, time.Minute, "tool.before")}
	h, err := harness.New(&ahp.Registration{ProtocolVersion: ahp.Version, Hooks: []ahp.Backend{*config}}, harness.Options{
		Manifest: ahptest.Manifest(),
		Open: func(c *ahp.Backend) (transport.Transport, error) {
			return httptransport.New(c, httptransport.Options{})
		},
	})
	if err != nil {
		b.Fatal(err)
	}
	defer h.Close()
	caps := ahptest.FullCapabilities(ahp.ToolBefore)
	event := ahptest.ToolBefore("e", `{"command":"`+strings.Repeat("go test ./... && ", 90)+`true","timeout":120}`)
	msg, err := (&ahp.Intercept{Event: event, Capabilities: *caps}).Encode()
	if err != nil {
		b.Fatal(err)
	}
	var request map[string]any
	if err := json.Unmarshal(msg, &request); err != nil {
		b.Fatal(err)
	}
	var ours, theirs []time.Duration
	for n := 0; b.Loop(); n++ {
		event.ID = "e" + strconv.Itoa(n) // the backend remembers answers
		start := time.Now()
		out, err := h.Dispatch(b.Context(), event, caps, nil, harness.DispatchOptions{})
		middle := time.Now()
		if err != nil || !out.MayExecute() {
			b.Fatal(err, out)
		}
		echo(b, plain.Client(), plain.URL, request)
		ours, theirs = append(ours, middle.Sub(start)), append(theirs, time.Since(middle))
	}
	slices.Sort(ours)
	slices.Sort(theirs)
	mine, other := ours[len(ours)/2], theirs[len(theirs)/2]
	ratio := float64(mine) / float64(other)
	b.ReportMetric(ratio, "x-echo")
	b.ReportMetric(float64(mine.Nanoseconds()), "ns/decision")
	b.ReportMetric(float64(other.Nanoseconds()), "ns/echo")
	if len(ours) >= 1000 && ratio > ratioLimit {
		b.Errorf("a decision takes %.2f times the echo (%v, %v), more than %.1f", ratio, mine, other, ratioLimit)
	}
}
