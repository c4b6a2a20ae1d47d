package anthropic

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/model/modeltest"
)

var (
	richText  = "Größe 北 😀 – ok\n\"quoted\" \\ end"
	richCalls = []modeltest.Call{{ID: "a", Name: "read", Args: `{"path":"ä/北.txt"}`}, {ID: "b", Name: "list", Args: `{}`}, {ID: "c", Name: "read", Args: `{"path":"x","n":[1,{"y":null}]}`}}
	richTurn  = modeltest.Turn{Text: richText, Reasoning: "think 思考", Calls: richCalls, Usage: &modeltest.Usage{Prompt: 1000, Cached: 800, Completion: 10}}
)

// TestTolerance plays one rich turn, the same as to the other clients, through
// everything that a server may do to it without changing what it means.
func TestTolerance(t *testing.T) {
	type faults = []modeltest.Fault
	cases := []struct {
		name    string
		faults  faults
		noUsage bool
		note    string
	}{
		{"plain", nil, false, ""},
		{"I134 bytes one by one", faults{modeltest.SplitEvery(1)}, false, ""},
		{"I136 crlf", faults{modeltest.LineEnd("\r\n"), modeltest.SplitEvery(7)}, false, ""},
		{"I136 cr", faults{modeltest.LineEnd("\r")}, false, ""},
		{"I136 no space", faults{modeltest.NoSpace()}, false, ""},
		{"I136 comments", faults{modeltest.Comments()}, false, ""},
		{"no indices", faults{modeltest.MissingIndex()}, false, ""},
		{"no indices, whole calls", faults{modeltest.MissingIndex(), modeltest.WholeCalls()}, false, ""},
		{"I138 every index is 0", faults{modeltest.ZeroIndex()}, false, ""},
		{"I140 every index is 0, whole calls", faults{modeltest.WholeCallsAtZero()}, false, ""},
		{"input as an object", faults{modeltest.ArgsObject()}, false, ""},
		{"two ends", faults{modeltest.TwoFinals()}, true, ""},
		{"I177 no usage", faults{modeltest.NoUsage()}, true, ""},
		{"early usage", faults{modeltest.EarlyUsage()}, false, ""},
		{"nulls", faults{modeltest.Nulls()}, false, ""},
		{"gzip", faults{modeltest.Gzip()}, false, ""},
		{"json body", faults{modeltest.JSONBody()}, false, "one JSON body"},
		{"json body packed", faults{modeltest.JSONBody(), modeltest.Gzip()}, false, "one JSON body"},
		{"the end says end_turn", faults{modeltest.Finishing("stop")}, false, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			turn := richTurn
			turn.Faults = c.faults
			s := modeltest.New(t, turn)
			var got collect
			resp, err := newClient(t, s.URL, nil).Stream(t.Context(), request(user("go")), got.add)
			if err != nil {
				t.Fatal(err)
			}
			w := want{text: richText, reasoning: richTurn.Reasoning, calls: richCalls, finish: model.FinishToolCalls, note: c.note}
			w.check(t, &got, resp, nil)
			if resp.Model != "scripted-1" {
				t.Errorf("model %q", resp.Model)
			}
			in, out, read, wrote := int64(200), int64(10), int64(800), int64(0)
			usage := &model.Usage{Input: &in, Output: &out, CacheRead: &read, CacheWrite: &wrote}
			if c.noUsage {
				usage = nil
			}
			if d := cmp.Diff(usage, resp.Usage); d != "" {
				t.Errorf("usage: %s", d)
			}
			seal := resp.Message.Parts[0].Seal
			if seal == nil || seal.Origin != origin || seal.Kind != "thinking" || seal.Data == "" {
				t.Errorf("the seal of the thinking is %+v", seal)
			}
		})
	}
}

// TestI176I177Usage holds that tokens are counted once: what was written to the cache
// is no input, and the last report of a total counts.
func TestI176I177Usage(t *testing.T) {
	report := func(n int) string {
		return fmt.Sprintf(`{"type":"message_delta","delta":{},"usage":{"input_tokens":0,"output_tokens":%d}}`, n)
	}
	count := func(n int64) *int64 { return &n }
	cases := []struct {
		name string
		in   string
		want *model.Usage
	}{
		{"I176 written to the cache", events(msgStart, ending("end_turn"), msgStop), &model.Usage{Input: count(12), Output: count(30), CacheRead: count(0), CacheWrite: count(1000)}},
		{"I177 four reports", events(msgStart, report(5), report(9), report(20), ending("end_turn"), msgStop), &model.Usage{Input: count(12), Output: count(30), CacheRead: count(0), CacheWrite: count(1000)}},
		{"I177 none is unknown", events(`{"type":"message_start","message":{}}`, `{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`, msgStop), nil},
		{"I141 two ends, usage at the second", events(`{"type":"message_start","message":{}}`, readCall(0), `{"type":"message_delta","delta":{"stop_reason":"tool_use"}}`, `{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"input_tokens":7,"output_tokens":3}}`, msgStop), &model.Usage{Input: count(7), Output: count(3)}},
		{"all at the end", events(`{"type":"message_start","message":{"usage":{"input_tokens":0,"output_tokens":0}}}`, `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":7,"output_tokens":8,"cache_read_input_tokens":9}}`, msgStop), &model.Usage{Input: count(7), Output: count(8), CacheRead: count(9)}},
		{"not understood", events(`{"type":"message_start","message":{"usage":{"input_tokens":"x","output_tokens":-1}}}`, `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":[1]}`, msgStop), nil},
	}
	for _, c := range cases {
		resp, err := streamBytes(t, strings.NewReader(c.in), nil)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if d := cmp.Diff(c.want, resp.Usage); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
}

// TestSession plays what a strict server must accept: thinking in its place, calls
// with broken arguments and names, ids that come twice.
func TestSession(t *testing.T) {
	s := modeltest.NewWith(t, modeltest.Options{APIKey: testKey, NeedReasoning: true, Turns: []modeltest.Turn{
		{Reasoning: "first", Calls: richCalls},
		{Text: "half", Reasoning: "second", Calls: []modeltest.Call{{ID: "a", Name: "no such\ntool", Args: `{"broken`}}, Expect: "result of c"},
		{Reasoning: "third", Text: "done", Expect: "result of toolu_"},
		{Text: "again", Expect: "more"},
	}})
	c := newClient(t, s.URL, func(cfg *Config) { cfg.Sampling = map[string]any{"thinking_budget": 2000} })
	history := []*model.Message{user("go")}
	for range 3 {
		resp, err := c.Stream(t.Context(), request(history...), nil)
		if err != nil {
			t.Fatal(err)
		}
		history = append(history, resp.Message)
		if calls := resp.Message.ToolCalls(); len(calls) > 0 {
			history = append(history, results(calls))
		}
	}
	if _, err := c.Stream(t.Context(), request(append(history, user("more"))...), nil); err != nil {
		t.Fatal(err)
	}
	last := s.Requests()[3]
	if n := len(last.Messages); n != 10 {
		t.Errorf("%d messages in the last request, want 10", n)
	}
	// I145: what was streamed in pieces is sent whole.
	body := string(last.Body)
	if strings.Contains(body, "_delta") || strings.Contains(body, "partial_json") || !strings.Contains(body, `"input":{"path":"ä/北.txt"}`) {
		t.Error(body)
	}
	var params []string
	for name := range last.Params {
		params = append(params, name)
	}
	slices.Sort(params)
	if d := cmp.Diff([]string{"max_tokens", "stream", "thinking"}, params); d != "" || len(last.Tools) != 2 {
		t.Errorf("other members %s, %d tools", d, len(last.Tools))
	}
	if last.Header.Get("X-Api-Key") != testKey || last.Header.Get("Anthropic-Version") != "2023-06-01" || last.Header.Get("Authorization") != "" {
		t.Error(last.Header)
	}
	if n := c.enc.history.Encoded(); n != 7 {
		t.Errorf("%d messages encoded, want each of the 7 once", n)
	}
}

// TestPause holds that a paused reply is continued within the call.
func TestPause(t *testing.T) {
	var bodies []string
	replies := []string{
		events(msgStart, blockStart(0, `{"type":"thinking","thinking":"hm","signature":"s"}`), blockStop(0), blockStart(1, `{"type":"text","text":"one "}`), blockStop(1), ending("pause_turn"), msgStop),
		events(msgStart, blockStart(0, `{"type":"text","text":"two"}`), blockStop(0), readCall(1), ending("tool_use"), msgStop),
		events(msgStart, blockStart(0, `{"type":"text","text":"one "}`), blockStop(0), ending("pause_turn"), msgStop),
		events(msgStart, blockStart(0, `{"type":"text","text":"half"}`)),
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		n := len(bodies)
		bodies = append(bodies, string(b))
		_, _ = io.WriteString(w, replies[min(n, len(replies)-1)])
	}))
	defer s.Close()
	c := newClient(t, s.URL, nil)
	var got collect
	resp, err := c.Stream(t.Context(), request(user("go")), got.add)
	if err != nil {
		t.Fatal(err)
	}
	(want{text: "one two", reasoning: "hm", calls: one, finish: model.FinishToolCalls}).check(t, &got, resp, nil)
	if len(bodies) != 2 || !strings.HasSuffix(bodies[1], `{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"one "}]}]}`) {
		t.Error(bodies)
	}
	if *resp.Usage.Input != 24 || *resp.Usage.Output != 60 || *resp.Usage.CacheWrite != 2000 {
		t.Errorf("usage %d, %d, %d", *resp.Usage.Input, *resp.Usage.Output, *resp.Usage.CacheWrite)
	}
	resp, err = c.Stream(t.Context(), request(user("go")), nil)
	if me := asError(t, err); resp != nil || me.Kind != model.ErrCut || me.Partial != "one half" {
		t.Errorf("partial %q: %v", me.Partial, err)
	}

	asked := 0
	endless := newClient(t, nowhere, func(cfg *Config) {
		cfg.HTTPClient = &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			asked++
			return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(replies[2])), Request: r}, nil
		})}
	})
	resp, err = endless.Stream(t.Context(), request(user("go")), nil)
	if err != nil || asked != maxPauses+1 || resp.Finish != model.FinishStop || !strings.Contains(resp.Note, "paused") {
		t.Errorf("%d requests, %+v, %v", asked, resp, err)
	}
}

func TestNameOfTheModel(t *testing.T) {
	for name, want := range map[string]string{"claude-x": "claude-x", strings.Repeat("x", 300): ""} {
		resp, err := streamBytes(t, strings.NewReader(events(strings.Replace(msgStart, "claude-x", name, 1), ending("end_turn"), msgStop)), nil)
		if err != nil || resp.Model != want {
			t.Errorf("model %q, %v", resp.Model, err)
		}
	}
}

func TestIDsStayUniqueOverASession(t *testing.T) {
	in := events(msgStart, readCall(0), blockStart(1, `{"type":"tool_use","id":"toolu_a","name":"list"}`), blockStop(1), blockStart(2, `{"type":"tool_use","name":"list"}`), blockStop(2), ending("tool_use"), msgStop)
	c := newClient(t, nowhere, func(cfg *Config) { cfg.HTTPClient = answerText(in) })
	history := []*model.Message{user("go")}
	seen := map[string]bool{}
	for i := range 3 {
		resp, err := c.Stream(t.Context(), request(history...), nil)
		if err != nil {
			t.Fatal(err)
		}
		calls := resp.Message.ToolCalls()
		if len(calls) != 3 || (i == 0) != (calls[0].ID == "toolu_a") || !strings.Contains(resp.Note, `"toolu_a" was used before`) {
			t.Errorf("turn %d: %v, %s", i, calls, resp.Note)
		}
		for _, call := range calls {
			if seen[call.ID] {
				t.Errorf("turn %d: id %q twice", i, call.ID)
			}
			seen[call.ID] = true
		}
		history = append(history, resp.Message, results(calls))
	}
}
