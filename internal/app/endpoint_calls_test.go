package app_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/model/modeltest"
	"github.com/abhed/abhed/internal/strictjson"
)

// everyAPI lists the APIs that an endpoint of the settings may speak.
func everyAPI() []modeltest.API {
	return []modeltest.API{modeltest.Chat, modeltest.Responses, modeltest.Messages, modeltest.Gemini}
}

// speaking is a world whose model is one/m1, at an endpoint of that API, with more of
// the settings. Its output is JSON.
func speaking(t *testing.T, api modeltest.API, more string, turns ...modeltest.Turn) *world {
	t.Helper()
	w := newWorld(t, turns...)
	w.provider("one", api, w.server.URL, more)
	w.opts.Mode, w.opts.Output = "accept-edits", "json"
	return w
}

// provider makes the model m1 of that provider the only one.
func (w *world) provider(name string, api modeltest.API, url, more string) {
	w.t.Helper()
	w.env = []string{"HOME=" + w.home, "PATH=" + os.Getenv("PATH")}
	w.settings(fmt.Sprintf(`{"model":"%s/m1","custom_providers":[{"name":%[1]q,"api":%q,"base_url":%q}]%s}`, name, api, url, more))
}

// answered is what --output json says.
type answered struct {
	Reason  string       `json:"reason"`
	Detail  string       `json:"detail"`
	Result  string       `json:"result"`
	IsError bool         `json:"is_error"`
	Code    int          `json:"exit_code"`
	Usage   *event.Usage `json:"usage"`
	CostUSD *float64     `json:"cost_usd"`
}

func (w *world) answered(r result) answered {
	w.t.Helper()
	var a answered
	if err := strictjson.Unmarshal([]byte(strings.TrimSpace(r.out)), &a, strictjson.Options{}); err != nil {
		w.t.Fatalf("%v: %q\n%s", err, r.out, r.err)
	}
	return a
}

// ranArgs returns the arguments of the calls that were started, in order.
func ranArgs(events []event.Event) (out []string) {
	args := map[string]string{}
	for _, p := range payloads[*event.ModelResponded](events) {
		for _, c := range p.Message.ToolCalls() {
			args[c.ID] = c.Args
		}
	}
	for _, p := range payloads[*event.ToolStarted](events) {
		out = append(out, args[p.CallID])
	}
	return out
}

// TestOddStreamsOfCalls streams two calls as no API says they should be: under one
// index and interleaved (I138), whole and under one index (I140), told again by a
// second end, which brings the usage (I141). Each call runs once, in the order of the
// model, and the next request holds them assembled, without an empty text (I145). The
// sibling cases tell whole calls twice, and split every byte.
func TestOddStreamsOfCalls(t *testing.T) {
	one, two := `{"path":"one","content":"1"}`, `{"path":"two","content":"2"}`
	for name, faults := range map[string][]modeltest.Fault{
		"well": nil, "I138": {modeltest.ZeroIndex()}, "I140": {modeltest.WholeCallsAtZero()}, "I141": {modeltest.TwoFinals()},
		"whole calls, told twice": {modeltest.WholeCallsAtZero(), modeltest.TwoFinals()}, "split": {modeltest.ZeroIndex(), modeltest.SplitEvery(1)},
	} {
		for _, api := range everyAPI() {
			t.Run(name+" "+string(api), func(t *testing.T) {
				t.Parallel()
				turn := modeltest.Turn{Calls: []modeltest.Call{{ID: "a", Name: "write", Args: one}, {ID: "b", Name: "write", Args: two}}, Faults: faults, Usage: &modeltest.Usage{Prompt: 70, Completion: 8}}
				w := speaking(t, api, "", turn, done())
				r := w.run(t.Context())
				events := w.events(r)
				if r.code != 0 || w.read(w.dir+"/one") != "1" || w.read(w.dir+"/two") != "2" {
					t.Fatalf("exit %d: %s", r.code, r.err)
				}
				if got := ranArgs(events); len(got) != 2 || !strings.Contains(got[0], `"one"`) || !strings.Contains(got[1], `"two"`) {
					t.Errorf("ran %q", got)
				}
				usage := payloads[*event.ModelResponded](events)[0].Usage
				twice := strings.Contains(name, "twice") || name == "I141"
				if twice && api != modeltest.Chat {
					usage = nil // only there the second end brings some
				}
				if (usage == nil) != (twice && api != modeltest.Chat) || usage != nil && (*usage.Input != 70 || *usage.Output != 8) {
					t.Errorf("usage %+v", usage)
				}
				requests := w.server.Requests()
				if v := w.server.Violations(); len(v) > 0 || len(requests) != 2 {
					t.Fatalf("%d requests, %v", len(requests), v)
				}
				if body := string(requests[1].Body); strings.Contains(body, "_delta") || strings.Contains(body, `"text":""`) || strings.Contains(body, `"content":""`) {
					t.Errorf("sent again: %s", body)
				}
			})
		}
	}
}

// TestCallsWithoutTheirArguments begins and ends a call with no arguments in between,
// beside an empty text (I142, I145): the model is told which members are missing, and
// nothing runs. The sibling cases send an empty piece, null, and one of two members.
func TestCallsWithoutTheirArguments(t *testing.T) {
	const begin = `{"type":"message_start","message":{"usage":{"input_tokens":7,"output_tokens":1}}}` + "\n" +
		`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}` + "\n" + `{"type":"content_block_stop","index":0}` + "\n"
	const end = "\n" + `{"type":"content_block_stop","index":1}` + "\n" + `{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":5}}` + "\n" + `{"type":"message_stop"}`
	block := func(input string) string {
		return `{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t","name":"write"` + input + `}}`
	}
	piece := func(s string) string {
		return "\n" + `{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"` + s + `"}}`
	}
	for name, tt := range map[string]struct {
		lines   string
		missing []string
	}{
		"no piece":        {block(`,"input":{}`), []string{`"path"`, `"content"`}},
		"no member":       {block(""), []string{`"path"`, `"content"`}},
		"null":            {block(`,"input":null`), []string{`"path"`, `"content"`}},
		"an empty piece":  {block(`,"input":{}`) + piece(""), []string{`"path"`, `"content"`}},
		"an empty object": {block(`,"input":{}`) + piece("{}"), []string{`"path"`, `"content"`}},
		"one of two":      {block(`,"input":{}`) + piece(`{\"path\":\"marker\"}`), []string{`"content"`}},
	} {
		t.Run(name, func(t *testing.T) {
			var body strings.Builder
			for line := range strings.SplitSeq(begin+tt.lines+end, "\n") {
				body.WriteString("data: " + line + "\n\n")
			}
			w := speaking(t, modeltest.Messages, "", modeltest.Turn{Faults: []modeltest.Fault{modeltest.Raw("text/event-stream", body.String())}}, done())
			r := w.run(t.Context())
			events := w.events(r)
			ended := payloads[*event.ToolEnded](events)
			if r.code != 0 || w.has("marker") || len(ended) != 1 || len(payloads[*event.ToolStarted](events)) != 0 {
				t.Fatalf("exit %d, outcomes %+v: %s", r.code, ended, r.err)
			}
			requests := w.server.Requests()
			if v := w.server.Violations(); len(v) > 0 || len(requests) != 2 || strings.Contains(string(requests[1].Body), `"text":""`) {
				t.Errorf("%d requests, %v", len(requests), v)
			}
			told := strings.Join(sent(requests[1]), "\n")
			for _, key := range []string{`"path"`, `"content"`} {
				if strings.Contains(ended[0].Content, key) != slices.Contains(tt.missing, key) || !strings.Contains(told, ended[0].Content) {
					t.Errorf("%s: the model was told %q", key, ended[0].Content)
				}
			}
		})
	}
}

// TestSilentEndpoint takes a request and says nothing, before the headers or after them
// (I147): the limit ends each attempt, there are three, and then a visible error. The
// sibling case falls silent within the text.
func TestSilentEndpoint(t *testing.T) {
	for name, fault := range map[string]modeltest.Fault{"no headers": modeltest.StallHeaders(), "headers alone": modeltest.StallAt(0), "within the text": modeltest.StallAt(600)} {
		for _, api := range everyAPI() {
			t.Run(name+" "+string(api), func(t *testing.T) {
				t.Parallel()
				silent := modeltest.Turn{Text: strings.Repeat("abc", 200), Faults: []modeltest.Fault{fault}}
				w := speaking(t, api, `,"http":{"stall_seconds":1}`, silent, silent, silent, done())
				began := time.Now()
				r := w.run(t.Context())
				took := time.Since(began)
				a, failed := w.answered(r), payloads[*event.ModelFailed](w.events(r))
				if r.code != 6 || !a.IsError || a.Code != 6 || a.Reason != "stalled" || a.Result != "" || !strings.Contains(r.err, "3 attempts failed") {
					t.Errorf("exit %d, %+v: %s", r.code, a, r.err)
				}
				if n := len(w.server.Requests()); n != 3 || len(failed) != 3 || failed[0].Final || failed[1].Final || !failed[2].Final || failed[0].Kind != "stalled" {
					t.Errorf("%d requests, failures %+v", n, failed)
				}
				if took < 3*time.Second || took > 60*time.Second {
					t.Errorf("three attempts with a limit of a second took %v", took)
				}
			})
		}
	}
}
