package app_test

import (
	"bytes"
	"encoding/pem"
	"io"
	"log"
	"math"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/model/modeltest"
)

// errorBody is a failure that may pass, or one that won't, as the API words it.
func errorBody(api modeltest.API, passes bool) string {
	bodies := map[modeltest.API][2]string{
		modeltest.Chat:      {`{"error":{"message":"no such thing","type":"invalid_request_error"}}`, `{"error":{"message":"overloaded","type":"server_error"}}`},
		modeltest.Responses: {`{"type":"error","code":"invalid_request_error","message":"no such thing"}`, `{"type":"error","code":"server_error","message":"overloaded"}`},
		modeltest.Messages:  {`{"type":"error","error":{"type":"invalid_request_error","message":"no such thing"}}`, `{"type":"error","error":{"type":"overloaded_error","message":"overloaded"}}`},
		modeltest.Gemini:    {`{"error":{"code":400,"message":"no such thing","status":"INVALID_ARGUMENT"}}`, `{"error":{"code":503,"message":"overloaded","status":"UNAVAILABLE"}}`},
	}
	if passes {
		return bodies[api][1]
	}
	return bodies[api][0]
}

// TestErrorAfterText ends a stream of status 200 with an error after 40 pieces of text
// (I149): each attempt has failed, the record keeps the text, whether there is another
// attempt is the error's, and nothing of it is the answer. The sibling case succeeds
// with the second attempt.
func TestErrorAfterText(t *testing.T) {
	text := strings.Repeat("abcd", 100)
	for name, tt := range map[string]struct {
		passes         bool
		code, attempts int
		reason, kind   string
	}{"always": {true, 5, 3, "retry_exhausted", "server"}, "for good": {false, 1, 1, "error", "request"}, "once": {true, 0, 1, "completed", "server"}} {
		for _, api := range everyAPI() {
			t.Run(name+" "+string(api), func(t *testing.T) {
				bad := modeltest.Turn{Text: text, Faults: []modeltest.Fault{modeltest.ErrorFrame(45, errorBody(api, tt.passes))}}
				turns := []modeltest.Turn{bad, bad, bad, done()}
				if name == "once" {
					turns = []modeltest.Turn{bad, done()}
				}
				w := speaking(t, api, "", turns...)
				r := w.run(t.Context())
				events := w.events(r)
				a, failed, replies := w.answered(r), payloads[*event.ModelFailed](events), payloads[*event.ModelResponded](events)
				if r.code != tt.code || a.Code != tt.code || a.IsError != (tt.code != 0) || a.Reason != tt.reason {
					t.Errorf("exit %d, %+v: %s", r.code, a, r.err)
				}
				if want := map[bool]string{true: "done"}[name == "once"]; a.Result != want || len(replies) != len(want)/4 {
					t.Errorf("the answer is %q, %d replies", a.Result, len(replies))
				}
				if len(failed) != tt.attempts {
					t.Fatalf("failures %+v", failed)
				}
				for i, f := range failed {
					if f.Kind != tt.kind || f.Final != (tt.code != 0 && i == len(failed)-1) || len(f.Partial) < 100 || !strings.HasPrefix(text, f.Partial) {
						t.Errorf("failure %d: %+v", i+1, f)
					}
				}
			})
		}
	}
}

// TestCutAfterAWholeCall breaks the connection, or ends the body, when a whole call has
// come and the end of the reply has not (I150): the call doesn't run. The sibling case
// has a second attempt that comes whole: it runs once.
func TestCutAfterAWholeCall(t *testing.T) {
	ends := map[modeltest.API]string{modeltest.Chat: `"finish_reason":"tool_calls"`, modeltest.Responses: `"response.completed"`, modeltest.Messages: `"message_stop"`, modeltest.Gemini: `"finishReason":"STOP"`}
	for api, end := range ends {
		for name, fault := range map[string]func(int) modeltest.Fault{"cut": modeltest.CutAt, "ended": modeltest.EndAt} {
			for _, again := range []bool{false, true} {
				turn := call("write", markerArgs, modeltest.WholeCalls())
				turn.Text = strings.Repeat("abcd", 10)
				stream := modeltest.StreamOf(api, turn)
				at := bytes.Index(stream, []byte(end))
				if at < 0 || !bytes.Contains(stream[:at], []byte("marker")) {
					t.Fatalf("%s: the stream has no end %s after the call: %s", api, end, stream)
				}
				broken := turn
				broken.Faults = []modeltest.Fault{modeltest.WholeCalls(), fault(at)}
				turns := []modeltest.Turn{broken, broken, broken, done()}
				if again {
					turns = []modeltest.Turn{broken, turn, done()}
				}
				w := speaking(t, api, "", turns...)
				r := w.run(t.Context())
				events := w.events(r)
				a, failed := w.answered(r), payloads[*event.ModelFailed](events)
				code, ran, attempts, answer := 5, 0, 3, ""
				if again {
					code, ran, attempts, answer = 0, 1, 1, "done"
				}
				if r.code != code || a.Result != answer || a.IsError == again || w.has("marker") != again || len(ranArgs(events)) != ran {
					t.Errorf("%s %s, then well %t: exit %d, %+v, ran %q", api, name, again, r.code, a, ranArgs(events))
				}
				if len(failed) != attempts || failed[0].Kind != "cut" || failed[0].Partial != turn.Text {
					t.Errorf("%s %s: failures %+v", api, name, failed)
				}
			}
		}
	}
}

// TestFailureIsNoAnswer has the endpoint refuse the key, fail each time, and not be
// there (I203): the result is an error with its reason, the exit code says so, and
// nothing stands in the answer's place. The sibling case fails in the second turn, after
// text that was no answer.
func TestFailureIsNoAnswer(t *testing.T) {
	status := func(code int, body string) modeltest.Turn {
		return modeltest.Turn{Faults: []modeltest.Fault{modeltest.Status(code, body)}}
	}
	key, failed, beside := status(401, `{"error":{"message":"Invalid key PLEASE"}}`), status(500, "PLEASE wait"), call("write", markerArgs)
	beside.Text = "PLEASE hold on, I write"
	for name, tt := range map[string]struct {
		turns    []modeltest.Turn
		code     int
		reason   string
		requests int
	}{
		"401": {[]modeltest.Turn{key, done()}, 1, "error", 1}, "500": {[]modeltest.Turn{failed, failed, failed, done()}, 5, "retry_exhausted", 3},
		"nobody there": {nil, 5, "retry_exhausted", 0}, "in the second turn": {[]modeltest.Turn{beside, key, done()}, 1, "error", 2},
	} {
		for _, api := range everyAPI() {
			for _, format := range []string{"json", "text"} {
				w := speaking(t, api, "", tt.turns...)
				if tt.turns == nil {
					w.provider("one", api, modeltest.RefusedURL(t), "")
				}
				w.opts.Output, w.opts.Quiet = format, format == "text"
				r := w.run(t.Context())
				if n := len(w.server.Requests()); r.code != tt.code || n != tt.requests {
					t.Errorf("%s, %s, %s: exit %d, %d requests: %s", name, api, format, r.code, n, r.err)
				}
				if format == "text" {
					if strings.TrimSpace(r.out) != "" || !strings.Contains(r.err, "the run ended with "+tt.reason) {
						t.Errorf("%s, %s: said %q, %s", name, api, r.out, r.err)
					}
					continue
				}
				if a := w.answered(r); !a.IsError || a.Code != tt.code || a.Reason != tt.reason || a.Detail == "" || a.Result != "" {
					t.Errorf("%s, %s: %+v", name, api, a)
				}
			}
		}
	}
}

// TestCostOfAReply counts each token once and at its own rate (I174, I176); what nobody
// reported is unknown (I177). The sibling case has no rates of a cache, which then are
// those of input.
func TestCostOfAReply(t *testing.T) {
	const rates = `"input":1,"output":10,"cache_read":100,"cache_write":1000`
	cached := &modeltest.Usage{Prompt: 1000, Cached: 800, Completion: 10}
	wrote := `data: {"type":"message_start","message":{"usage":{"input_tokens":12,"cache_creation_input_tokens":1000,"cache_read_input_tokens":0,"output_tokens":1}}}` + "\n\n" +
		`data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"done"}}` + "\n\n" +
		`data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":30}}` + "\n\n" + `data: {"type":"message_stop"}` + "\n\n"
	writing := modeltest.Turn{Faults: []modeltest.Fault{modeltest.Raw("text/event-stream", wrote)}}
	for name, tt := range map[string]struct {
		turn   modeltest.Turn
		price  string
		apis   []modeltest.API
		counts [4]int64 // input, output, read and written; -1 is unknown
		cost   float64
	}{
		"I174":                         {modeltest.Turn{Text: "done", Usage: cached}, rates, everyAPI(), [4]int64{200, 10, 800, 0}, 200*1 + 10*10 + 800*100},
		"I174, no rates of a cache":    {modeltest.Turn{Text: "done", Usage: cached}, `"input":1,"output":10`, everyAPI(), [4]int64{200, 10, 800, 0}, 1000*1 + 10*10},
		"I176":                         {writing, rates, []modeltest.API{modeltest.Messages}, [4]int64{12, 30, 0, 1000}, 12*1 + 1000*1000 + 30*10},
		"I176, no rates of a cache":    {writing, `"input":1,"output":10`, []modeltest.API{modeltest.Messages}, [4]int64{12, 30, 0, 1000}, 1012*1 + 30*10},
		"I177, nothing reported":       {modeltest.Turn{Text: "done", Faults: []modeltest.Fault{modeltest.NoUsage()}}, rates, everyAPI(), [4]int64{-1, -1, -1, -1}, -1},
		"nothing cached, all is input": {modeltest.Turn{Text: "done", Usage: &modeltest.Usage{Prompt: 7, Completion: 3}}, rates, everyAPI(), [4]int64{7, 3, 0, 0}, 7*1 + 3*10},
	} {
		for _, api := range tt.apis {
			w := speaking(t, api, `,"models":{"one/m1":{"price":{`+tt.price+`}}}`, tt.turn)
			r := w.run(t.Context())
			a := w.answered(r)
			if tt.cost >= 0 && (a.CostUSD == nil || math.Abs(*a.CostUSD-tt.cost/1e6) > 1e-12) {
				t.Errorf("%s, %s: %s", name, api, r.out)
			}
			u := payloads[*event.ModelResponded](w.events(r))[0].Usage
			if tt.cost < 0 {
				if u != nil || a.Usage != nil || a.CostUSD != nil || !strings.Contains(r.out, `"cost_usd":null`) {
					t.Errorf("%s, %s: usage %+v, %s", name, api, u, r.out)
				}
				continue
			}
			for i, n := range []*int64{u.Input, u.Output, u.CacheRead, u.CacheWrite} {
				if n == nil && tt.counts[i] != 0 || n != nil && *n != tt.counts[i] {
					t.Errorf("%s, %s: usage %+v", name, api, u)
				}
			}
		}
	}
}

// TestAuthorityOfTheSettings has an endpoint behind an authority that no system knows
// (I197): http.ca_file makes it acceptable to a client of each API, and one that isn't
// there is an error at the start. The sibling case names the authority of somebody else.
func TestAuthorityOfTheSettings(t *testing.T) {
	for _, api := range everyAPI() {
		w := speaking(t, api, "", done(), done(), done())
		behind, err := url.Parse(strings.TrimSuffix(w.server.URL, "/v1"))
		if err != nil {
			t.Fatal(err)
		}
		front := httptest.NewUnstartedServer(httputil.NewSingleHostReverseProxy(behind))
		front.Config.ErrorLog = log.New(io.Discard, "", 0) // the refused handshakes are what is tested
		front.StartTLS()
		defer front.Close()
		file := w.put(filepath.Join(w.home, "ca.pem"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: front.Certificate().Raw})))
		for setting, want := range map[string]struct {
			code int
			says string
		}{"": {1, "certificate"}, file: {0, ""}, filepath.Join(w.home, "gone.pem"): {2, "gone.pem"}} {
			more := ""
			if setting != "" {
				more = `,"http":{"ca_file":"` + setting + `"}`
			}
			before := len(w.server.Requests())
			w.provider("one", api, front.URL+"/v1", more)
			r := w.run(t.Context())
			if asked := len(w.server.Requests()) - before; r.code != want.code || !strings.Contains(r.err, want.says) || (asked == 1) != (want.code == 0) {
				t.Errorf("%s, ca_file %q: exit %d, %d requests: %s", api, setting, r.code, asked, r.err)
			}
		}
	}
}
