package responses

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/model/modeltest"
)

// frames makes a stream of the given data.
func frames(data ...string) string {
	out := ""
	for _, d := range data {
		out += "data: " + d + "\n\n"
	}
	return out
}

const completed = `{"type":"response.completed","response":{"status":"completed"}}`

func TestEverySplitGivesTheSameReply(t *testing.T) { // I134
	turn := modeltest.Turn{Text: "北😀", Reasoning: "思", Calls: []modeltest.Call{{ID: "a", Name: "read", Args: `{"é":1}`}}, Faults: []modeltest.Fault{modeltest.LineEnd("\r\n")}}
	data := modeltest.StreamOf(modeltest.Responses, turn)
	check := func(t rapid.TB, cuts ...int) {
		var parts []*bytes.Reader
		at := 0
		for _, c := range append(cuts, len(data)) {
			parts = append(parts, bytes.NewReader(data[at:c]))
			at = c
		}
		var got collect
		resp, err := streamBytes(t, &inTurn{parts: parts}, got.add)
		if err != nil {
			t.Fatalf("%v: %v", cuts, err)
		}
		if d := cmp.Diff(turn.Calls, calls(resp.Message)); d != "" || resp.Message.Text() != turn.Text || got.text.String() != turn.Text || reasoning(resp.Message) != turn.Reasoning {
			t.Fatalf("%v: %s %q", cuts, d, resp.Message.Text())
		}
	}
	for i := range data {
		check(t, i)
	}
}

// inTurn reads its parts one after the other, never across.
type inTurn struct{ parts []*bytes.Reader }

func (i *inTurn) Read(b []byte) (int, error) {
	for len(i.parts) > 1 && i.parts[0].Len() == 0 {
		i.parts = i.parts[1:]
	}
	return i.parts[0].Read(b)
}

// TestCutAnywhere cuts the connection after every few bytes of a reply: it is
// either whole or an error without a call (I150).
func TestCutAnywhere(t *testing.T) {
	turn := modeltest.Turn{Text: "Größe 😀", Calls: richCalls[:1]}
	data := modeltest.StreamOf(modeltest.Responses, turn)
	ended := bytes.Index(data, []byte("event: response.completed"))
	var turns []modeltest.Turn
	for n := 0; n <= len(data); n += 41 {
		for _, f := range []modeltest.Fault{modeltest.CutAt(n), modeltest.EndAt(n)} {
			cut := turn
			cut.Faults = []modeltest.Fault{f}
			turns = append(turns, cut)
		}
	}
	s := modeltest.New(t, turns...)
	c := newClient(t, s.URL, nil)
	whole := 0
	for i := range turns {
		n := i / 2 * 41
		var got collect
		resp, err := c.Stream(t.Context(), request(user("go")), got.add)
		if err == nil {
			whole++
			if n < ended || resp.Finish != model.FinishToolCalls {
				t.Errorf("cut at %d: whole before the end", n)
			}
			continue
		}
		me := asError(t, err)
		if me.Kind != model.ErrCut || !me.Retryable() || me.Partial != got.text.String() || !strings.HasPrefix(turn.Text, me.Partial) {
			t.Errorf("cut at %d: %v, partial %q", n, err, me.Partial)
		}
	}
	if whole == len(turns) {
		t.Error("nothing was cut")
	}
}

func TestIncompleteWithholdsCalls(t *testing.T) {
	s := modeltest.New(t, modeltest.Turn{Text: "so far", Calls: richCalls, Faults: []modeltest.Fault{modeltest.TruncatedArgs()}},
		modeltest.Turn{Text: "so far", Calls: richCalls, Finish: "content_filter"}, modeltest.Turn{Text: "so far", Finish: "length"})
	c := newClient(t, s.URL, nil)
	for i, want := range []model.Finish{model.FinishLength, model.FinishFiltered, model.FinishLength} {
		resp, err := c.Stream(t.Context(), request(user("go")), nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp.Finish != want || len(resp.Message.ToolCalls()) != 0 || resp.Message.Text() != "so far" || strings.Contains(resp.Note, `3 tool calls were withheld`) != (i < 2) {
			t.Errorf("%+v", resp)
		}
	}
}

// part of what a test expects of a message: text, reasoning or call.
func shape(m *model.Message) []string {
	var out []string
	for _, p := range m.Parts {
		s := ""
		switch {
		case p.Text != nil:
			s = "text " + *p.Text
		case p.Reasoning != nil:
			s = "reasoning " + *p.Reasoning
		case p.ToolCall != nil:
			s = strings.Join([]string{"call", p.ToolCall.ID, p.ToolCall.Name, p.ToolCall.Args}, " ")
			if strings.HasPrefix(p.ToolCall.ID, "call_") && len(p.ToolCall.ID) > 20 {
				s = strings.Join([]string{"call", "new", p.ToolCall.Name, p.ToolCall.Args}, " ")
			}
		}
		if p.Seal != nil {
			s = strings.TrimSpace(s + " sealed " + p.Seal.ID + " " + p.Seal.Data)
		}
		out = append(out, s)
	}
	return out
}

func TestAssembly(t *testing.T) {
	cases := []struct {
		name string
		in   []string
		want []string
		note string
	}{
		{"call_id counts, not id", []string{`{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"fc_1","call_id":"c1","name":"f","arguments":""}}`,
			`{"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":0,"delta":"{\"x\""}`, `{"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":0,"delta":":1}"}`},
			[]string{`call c1 f {"x":1}`}, ""},
		{"I138 all at index 0, interleaved", []string{`{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"a","call_id":"c1","name":"f"}}`, `{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"b","call_id":"c2","name":"g"}}`,
			`{"type":"response.function_call_arguments.delta","item_id":"a","output_index":0,"delta":"{\"x\":"}`, `{"type":"response.function_call_arguments.delta","item_id":"b","output_index":0,"delta":"{\"y\":"}`,
			`{"type":"response.function_call_arguments.delta","item_id":"b","output_index":0,"delta":"2}"}`, `{"type":"response.function_call_arguments.delta","item_id":"a","output_index":0,"delta":"1}"}`},
			[]string{`call c1 f {"x":1}`, `call c2 g {"y":2}`}, ""},
		{"I140 a second whole call under a used index", []string{`{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","id":"a","call_id":"c1","name":"f","arguments":"{}"}}`, `{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","id":"b","call_id":"c2","name":"f","arguments":"{}"}}`},
			[]string{`call c1 f {}`, `call c2 f {}`}, ""},
		{"I141 told three times", []string{`{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"a","call_id":"c1","name":"f","arguments":""}}`, `{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","id":"a","call_id":"c1","name":"f","arguments":"{}"}}`,
			`{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","id":"a","call_id":"c1","name":"f","arguments":"{}"}}`,
			`{"type":"response.completed","response":{"status":"completed","output":[{"type":"function_call","id":"a","call_id":"c1","name":"f","arguments":"{}","status":"completed"}]}}`},
			[]string{`call c1 f {}`}, ""},
		{"ids made anew for every event", []string{`{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","id":"a","call_id":"c1","name":"f"}}`, `{"type":"response.function_call_arguments.delta","item_id":"zz","output_index":1,"delta":"{}"}`},
			[]string{`call c1 f {}`}, ""},
		{"no ids", []string{`{"type":"response.output_item.added","item":{"type":"function_call","name":"f"}}`, `{"type":"response.function_call_arguments.delta","delta":"{\"x\":1}"}`, `{"type":"response.output_item.done","item":{"type":"function_call","name":"f","arguments":"{\"x\":1}"}}`,
			`{"type":"response.output_item.added","item":{"type":"function_call","name":"f"}}`, `{"type":"response.function_call_arguments.delta","delta":"{\"x\":2}"}`},
			[]string{`call new f {"x":1}`, `call new f {"x":2}`}, ""},
		{"one id for two calls", []string{`{"type":"response.output_item.done","item":{"type":"function_call","id":"a","call_id":"c","name":"f","arguments":"{}"}}`, `{"type":"response.output_item.done","item":{"type":"function_call","id":"b","call_id":"c","name":"g","arguments":"{}"}}`},
			[]string{`call c f {}`, `call new g {}`}, "used before"},
		{"no arguments", []string{`{"type":"response.output_item.done","item":{"type":"function_call","id":"a","call_id":"c","name":"f","arguments":null}}`}, []string{`call c f {}`}, ""},
		{"arguments as an object", []string{`{"type":"response.output_item.done","item":{"type":"function_call","id":"a","call_id":"c","name":"f","arguments":{"x":1}}}`}, []string{`call c f {"x":1}`}, ""},
		{"pieces that differ from the whole", []string{`{"type":"response.output_item.added","item":{"type":"function_call","id":"a","call_id":"c","name":"f"}}`, `{"type":"response.function_call_arguments.delta","item_id":"a","delta":"{\"x\":1}"}`, `{"type":"response.function_call_arguments.done","item_id":"a","arguments":"{\"x\":2}"}`},
			[]string{`call c f {"x":2}`}, "differ"},
		{"only the end", []string{`{"type":"response.completed","response":{"status":"completed","model":"m","output":[{"type":"reasoning","id":"rs","summary":[{"type":"summary_text","text":"a"},{"type":"summary_text","text":"b"}],"encrypted_content":"e"},{"type":"message","content":[{"type":"output_text","text":"x"},{"type":"output_text","text":"y"}]},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}]}}`},
			[]string{"reasoning a\n\nb sealed rs e", "text xy", "call c f {}"}, ""},
		{"an end that holds more than the pieces", []string{`{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"m"}}`, `{"type":"response.output_text.delta","item_id":"m","delta":"ab"}`, `{"type":"response.output_item.done","output_index":0,"item":{"type":"message","id":"m","content":[{"type":"output_text","text":"abcd"}]}}`},
			[]string{"text abcd"}, ""},
		{"an end that holds another text", []string{`{"type":"response.output_text.delta","item_id":"m","delta":"ab"}`, `{"type":"response.output_item.done","output_index":0,"item":{"type":"message","id":"m","content":[{"type":"output_text","text":"xy"}]}}`}, []string{"text ab"}, "differs"},
		{"summary in parts, reasoning between", []string{`{"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning","id":"r1","summary":[],"encrypted_content":"early"}}`, `{"type":"response.reasoning_summary_part.added","item_id":"r1","summary_index":0}`, `{"type":"response.reasoning_summary_text.delta","item_id":"r1","delta":"a"}`,
			`{"type":"response.reasoning_summary_part.added","item_id":"r1","summary_index":1}`, `{"type":"response.reasoning_summary_text.delta","item_id":"r1","delta":"b"}`,
			`{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"r1","summary":[{"type":"summary_text","text":"a"},{"type":"summary_text","text":"b"}],"encrypted_content":"late"}}`,
			`{"type":"response.output_text.delta","item_id":"m1","output_index":1,"delta":"x"}`, `{"type":"response.output_item.done","output_index":2,"item":{"type":"reasoning","id":"r2","summary":[],"encrypted_content":"e2"}}`,
			`{"type":"response.output_item.done","output_index":3,"item":{"type":"function_call","id":"f","call_id":"c","name":"f","arguments":"{}"}}`},
			[]string{"reasoning a\n\nb sealed r1 late", "text x", "sealed r2 e2", "call c f {}"}, ""},
		{"reasoning in the open", []string{`{"type":"response.reasoning_text.delta","item_id":"r","output_index":0,"delta":"hm"}`, `{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"r","summary":[],"content":[{"type":"reasoning_text","text":"hm"}]}}`}, []string{"reasoning hm"}, ""},
		{"refusal", []string{`{"type":"response.refusal.delta","item_id":"m","delta":"no"}`}, []string{"text no"}, "refused"},
		{"half characters", []string{`{"type":"response.output_text.delta","item_id":"m","delta":"a\ud83d"}`, `{"type":"response.output_text.delta","item_id":"m","delta":"\ude00b\ud83d"}`}, []string{"text a😀b\ufffd"}, "1 half"},
		{"half characters in arguments", []string{`{"type":"response.output_item.added","item":{"type":"function_call","id":"a","call_id":"c","name":"f"}}`, `{"type":"response.function_call_arguments.delta","item_id":"a","delta":"{\"x\":\"\ud83d"}`, `{"type":"response.function_call_arguments.delta","item_id":"a","delta":"\ude00\"}"}`}, []string{`call c f {"x":"😀"}`}, ""},
		{"items and events of other kinds", []string{`{"type":"response.web_search_call.searching"}`, `{"type":"response.output_item.done","item":{"type":"web_search_call","id":"w"}}`, `{"type":"response.output_text.delta","delta":"x"}`, `{"type":"novel","item":null}`}, []string{"text x"}, "web_search_call"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var got collect
			resp, err := streamBytes(t, strings.NewReader(frames(append(c.in, completed)...)), got.add)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, shape(resp.Message)); d != "" {
				t.Error(d)
			}
			if (c.note == "") != (resp.Note == "") || !strings.Contains(resp.Note, c.note) {
				t.Errorf("note %q, want %q", resp.Note, c.note)
			}
			if got.text.String() != resp.Message.Text() || got.reasoning.String() != reasoning(resp.Message) {
				t.Errorf("streamed %q and %q", got.text.String(), got.reasoning.String())
			}
		})
	}
}

func TestFailures(t *testing.T) {
	cases := []struct {
		name   string
		fault  modeltest.Fault
		kind   model.ErrorKind
		status int
		wait   time.Duration
		detail string
	}{
		{"401", modeltest.Status(401, `{"error":{"message":"bad key `+testKey+`"}}`), model.ErrAuth, 401, 0, "$TEST_KEY"},
		{"429", modeltest.RateLimited(7), model.ErrRateLimit, 429, 7 * time.Second, "Rate limit"},
		{"overflow", modeltest.Status(400, `{"error":{"message":"Your input exceeds the context window of this model.","type":"invalid_request_error","code":"context_length_exceeded"}}`), model.ErrOverflow, 400, 0, "exceeds"},
		{"overflow in the stream", modeltest.ErrorFrame(2, `{"type":"error","code":"context_length_exceeded","message":"Your input exceeds the context window of this model."}`), model.ErrOverflow, 0, 0, "exceeds"},
		{"replay without seals", modeltest.Status(400, `{"error":{"message":"The encrypted content gAAA could not be verified.","code":"invalid_encrypted_content"}}`), model.ErrRequest, 400, 0, "verified"},
		{"I149 error event", modeltest.ErrorFrame(30, `{"type":"error","code":"server_error","message":"gone","param":null}`), model.ErrServer, 0, 0, "gone"},
		{"error event, nested", modeltest.ErrorFrame(9, `{"type":"error","error":{"type":"too_many_requests","code":"rate_limit_exceeded","message":"slow"}}`), model.ErrRateLimit, 0, 0, "slow"},
		{"I149 error without a name", modeltest.Raw("text/event-stream", frames(`{"type":"error","message":"gone"}`)), model.ErrServer, 0, 0, "gone"},
		{"failed", modeltest.Finishing("error"), model.ErrServer, 0, 0, "the model gave up"},
		{"failed without a reason", modeltest.Raw("text/event-stream", frames(`{"type":"response.failed"}`)), model.ErrServer, 0, 0, "failed"},
		{"cancelled", modeltest.Raw("text/event-stream", frames(`{"type":"response.completed","response":{"status":"cancelled"}}`)), model.ErrServer, 0, 0, "cancelled"},
		{"an end that isn't one", modeltest.Raw("text/event-stream", frames(`{"type":"response.done","response":{"status":"in_progress"}}`)), model.ErrMalformed, 0, 0, "in_progress"},
		{"I150 no end", modeltest.NoFinish(), model.ErrCut, 0, 0, "3 tool calls begun"},
		{"I150 only [DONE]", modeltest.Raw("text/event-stream", frames(`{"type":"response.output_text.delta","delta":"x"}`, "[DONE]")), model.ErrCut, 0, 0, "response.completed"},
		{"nothing in it", modeltest.Raw("text/event-stream", frames(completed)), model.ErrMalformed, 0, 0, "neither text"},
		{"a call that is not complete", modeltest.Raw("text/event-stream", frames(`{"type":"response.output_item.done","item":{"type":"function_call","id":"a","call_id":"c","name":"f","arguments":"{","status":"incomplete"}}`, completed)), model.ErrMalformed, 0, 0, `\"f\"`},
		{"a call without a name", modeltest.Raw("text/event-stream", frames(`{"type":"response.function_call_arguments.delta","delta":"{}"}`, completed)), model.ErrMalformed, 0, 0, "without a name"},
		{"repeated member", modeltest.Raw("text/event-stream", frames(`{"type":"x","type":"y"}`)), model.ErrMalformed, 0, 0, "twice"},
		{"error body with 200", modeltest.Raw("application/json", `{"error":{"message":"no such model","type":"invalid_request_error"}}`), model.ErrRequest, 0, 0, "no such model"},
		{"json of something else", modeltest.Raw("application/json", `{"ok":true}`), model.ErrMalformed, 0, 0, "status"},
		{"web page", modeltest.Raw("text/html", "<!DOCTYPE html>"), model.ErrMalformed, 0, 0, "web page"},
		{"I147 stall before headers", modeltest.StallHeaders(), model.ErrStalled, 0, 0, "150ms"},
		{"I147 stall in the stream", modeltest.StallAt(1500), model.ErrStalled, 0, 0, "events"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			turn := richTurn
			turn.Faults = []modeltest.Fault{c.fault}
			s := modeltest.New(t, turn)
			var got collect
			resp, err := newClient(t, s.URL, func(cfg *Config) {
				if c.kind == model.ErrStalled {
					cfg.StallTimeout = 150 * time.Millisecond
				}
			}).Stream(t.Context(), request(user("go")), got.add)
			if resp != nil {
				t.Errorf("a response together with an error: %+v", resp)
			}
			me := asError(t, err)
			if me.Kind != c.kind || me.Status != c.status || me.RetryAfter != c.wait || !strings.Contains(me.Detail, strings.ReplaceAll(c.detail, `\"`, `"`)) && !strings.Contains(me.Detail, c.detail) {
				t.Errorf("kind %s, status %d, wait %v; want %s, %d, %v, %q: %v", me.Kind, me.Status, me.RetryAfter, c.kind, c.status, c.wait, c.detail, err)
			}
			if me.Partial != got.text.String() {
				t.Errorf("partial %q, streamed %q", me.Partial, got.text.String())
			}
		})
	}
}

func TestUsage(t *testing.T) { // I174, I177
	cases := []struct {
		in   string
		want *model.Usage
		note bool
	}{
		{`{"input_tokens":1000,"input_tokens_details":{"cached_tokens":800},"output_tokens":10,"output_tokens_details":{"reasoning_tokens":4},"total_tokens":1010}`, &model.Usage{Input: num(200), CacheRead: num(800), Output: num(10), Reasoning: num(4)}, false},
		{`{"input_tokens":10,"output_tokens":null}`, &model.Usage{Input: num(10)}, false},
		{`{"input_tokens":10,"input_tokens_details":{"cached_tokens":40}}`, &model.Usage{Input: num(10), CacheRead: num(40)}, true},
		{`{}`, nil, false},
		{`7`, nil, true},
	}
	for _, c := range cases {
		got, note := usage([]byte(c.in))
		if d := cmp.Diff(c.want, got); d != "" || (note != "") != c.note {
			t.Errorf("%s: note %q, %s", c.in, note, d)
		}
	}
}

func FuzzStream(f *testing.F) {
	f.Add(modeltest.StreamOf(modeltest.Responses, richTurn))
	f.Add([]byte(frames(`{"type":"response.output_item.added","item":{"type":"function_call"}}`, `{"type":"response.function_call_arguments.delta","delta":"\ud83d"}`, completed)))
	f.Add([]byte(`{"status":"completed","output":[{"type":"message","content":[{"text":"x"}]}]}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		var got collect
		resp, err := streamBytes(t, bytes.NewReader(in), got.add)
		if err != nil {
			if me := asError(t, err); resp != nil || !strings.HasPrefix(got.text.String(), me.Partial) {
				t.Errorf("partial %q, streamed %q", me.Partial, got.text.String())
			}
			return
		}
		calls := resp.Message.ToolCalls()
		if (len(calls) > 0) != (resp.Finish == model.FinishToolCalls) {
			t.Errorf("%d calls with finish %q", len(calls), resp.Finish)
		}
		for _, c := range calls {
			if c.ID == "" || c.Name == "" || c.Args == "" {
				t.Errorf("half a call: %+v", c)
			}
		}
		if !bytes.Contains(in, []byte("complete")) && !bytes.Contains(in, []byte(`\u`)) {
			t.Error("complete without saying so")
		}
	})
}
