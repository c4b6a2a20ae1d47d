package openai

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/model/modeltest"
)

// roundTrip answers requests without a network.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// answer is a transport whose every answer has the body that open returns.
func answer(open func(context.Context) io.Reader) *http.Client {
	return &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return nil, err
		}
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(open(r.Context())), Request: r}, nil
	})}
}

// streamBytes runs one call whose answer is read from body.
func streamBytes(t rapid.TB, body io.Reader, onDelta func(model.Delta)) (*model.Response, error) {
	t.Helper()
	c, err := New(Config{BaseURL: "http://server.test/v1", Model: "m", HTTPClient: answer(func(context.Context) io.Reader { return body })})
	if err != nil {
		t.Fatal(err)
	}
	return c.Stream(context.Background(), request(user("go")), onDelta)
}

// frames makes a stream of the given data.
func frames(data ...string) string {
	out := ""
	for _, d := range data {
		out += "data: " + d + "\n\n"
	}
	return out
}

func delta1(d string) string { return `{"choices":[{"index":0,"delta":` + d + `}]}` }

func fragments(fs ...string) string {
	return delta1(`{"tool_calls":[` + strings.Join(fs, ",") + `]}`)
}

const finishCalls = `{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}`

// pieces reads in the given sizes, the last one for all the rest.
type pieces struct {
	data []byte
	cuts []int
	at   int
}

func (p *pieces) Read(b []byte) (int, error) {
	if p.at == len(p.data) {
		return 0, io.EOF
	}
	end := len(p.data)
	for _, c := range p.cuts {
		if c > p.at {
			end = min(end, c)
			break
		}
	}
	n := copy(b, p.data[p.at:end])
	p.at += n
	return n, nil
}

func TestEverySplitGivesTheSameReply(t *testing.T) { // I134
	check := func(t rapid.TB, turn modeltest.Turn, data []byte, cuts []int) {
		var got collect
		resp, err := streamBytes(t, &pieces{data: data, cuts: cuts}, got.add)
		if err != nil {
			t.Fatalf("%v: %v", cuts, err)
		}
		if d := cmp.Diff(turn.Calls, calls(resp.Message)); d != "" || resp.Message.Text() != turn.Text || got.text.String() != turn.Text || reasoning(resp.Message) != turn.Reasoning {
			t.Fatalf("%v: %s %q", cuts, d, resp.Message.Text())
		}
	}
	small := modeltest.Turn{Text: "北😀", Calls: []modeltest.Call{{ID: "a", Name: "read", Args: `{"é":1}`}}, Faults: []modeltest.Fault{modeltest.LineEnd("\r\n")}}
	data := modeltest.Stream(small)
	for i := range data {
		check(t, small, data, []int{i})
	}
	rich := richTurn
	rich.Faults = []modeltest.Fault{modeltest.LineEnd("\r\n"), modeltest.Comments()}
	richData := modeltest.Stream(rich)
	rapid.Check(t, func(t *rapid.T) {
		var cuts []int
		for at := 0; at < len(richData); {
			at += rapid.IntRange(1, 60).Draw(t, "size")
			cuts = append(cuts, at)
		}
		check(t, rich, richData, cuts)
	})
}

func TestCallAssembly(t *testing.T) {
	type want [][3]string // id ("" is one that we make), name, arguments
	cases := []struct {
		name string
		in   []string
		want want
		note string
	}{
		{"I138 index 0 for both, fragments with ids", []string{
			fragments(`{"index":0,"id":"a","function":{"name":"f","arguments":""}}`), fragments(`{"index":0,"id":"b","function":{"name":"g","arguments":""}}`),
			fragments(`{"index":0,"id":"a","function":{"arguments":"{\"x\":"}}`), fragments(`{"index":0,"id":"b","function":{"arguments":"{\"y\":"}}`),
			fragments(`{"index":0,"id":"b","function":{"arguments":"2}"}}`), fragments(`{"index":0,"id":"a","function":{"arguments":"1}"}}`)},
			want{{"a", "f", `{"x":1}`}, {"b", "g", `{"y":2}`}}, ""},
		{"I140 second whole call under a used index", []string{
			fragments(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`), fragments(`{"index":0,"id":"b","function":{"name":"f","arguments":"{}"}}`)},
			want{{"a", "f", `{}`}, {"b", "f", `{}`}}, ""},
		{"the same index, fragments by order", []string{
			fragments(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}`), fragments(`{"index":0,"function":{"arguments":":1}"}}`),
			fragments(`{"index":0,"id":"b","function":{"name":"f","arguments":"{\"y\""}}`), fragments(`{"index":0,"function":{"arguments":":2}"}}`)},
			want{{"a", "f", `{"x":1}`}, {"b", "f", `{"y":2}`}}, ""},
		{"no index, no ids, one delta", []string{fragments(`{"function":{"name":"f","arguments":{"x":1}}}`, `{"function":{"name":"f","arguments":{"x":1}}}`)},
			want{{"", "f", `{"x":1}`}, {"", "f", `{"x":1}`}}, ""},
		{"no index, no ids, in pieces", []string{
			fragments(`{"function":{"name":"f","arguments":"{\"x\""}}`), fragments(`{"function":{"arguments":":1}"}}`),
			fragments(`{"function":{"name":"f","arguments":"{\"x\""}}`), fragments(`{"function":{"arguments":":2}"}}`)},
			want{{"", "f", `{"x":1}`}, {"", "f", `{"x":2}`}}, ""},
		{"index 0, no ids, different calls", []string{
			fragments(`{"index":0,"function":{"name":"f","arguments":"{}"}}`), fragments(`{"index":0,"function":{"name":"g","arguments":""}}`), fragments(`{"index":0,"function":{"arguments":"{\"z\":1}"}}`)},
			want{{"", "f", `{}`}, {"", "g", `{"z":1}`}}, ""},
		{"id and name with every piece", []string{
			fragments(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}`), fragments(`{"index":0,"id":"a","function":{"name":"f","arguments":":1}"}}`)},
			want{{"a", "f", `{"x":1}`}}, ""},
		{"another id with every piece", []string{
			fragments(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}`), fragments(`{"index":0,"id":"zz","function":{"name":null,"arguments":":1}"}}`)},
			want{{"a", "f", `{"x":1}`}}, ""},
		{"id comes late", []string{
			fragments(`{"index":0,"function":{"name":"f","arguments":"{"}}`), fragments(`{"index":0,"id":"a","function":{"arguments":"}"}}`)},
			want{{"a", "f", `{}`}}, ""},
		{"late id without index", []string{
			fragments(`{"function":{"name":"f","arguments":"{"}}`), fragments(`{"id":"a","function":{"arguments":"}"}}`)},
			want{{"a", "f", `{}`}}, ""},
		{"name in pieces", []string{
			fragments(`{"index":0,"id":"a","function":{"name":"read","arguments":""}}`), fragments(`{"index":0,"function":{"name":"_file","arguments":"{}"}}`)},
			want{{"a", "read_file", `{}`}}, ""},
		{"name growing", []string{
			fragments(`{"index":0,"id":"a","function":{"name":"read"}}`), fragments(`{"index":0,"id":"a","function":{"name":"read_file","arguments":"{}"}}`)},
			want{{"a", "read_file", `{}`}}, ""},
		{"one id for two calls", []string{
			fragments(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`, `{"index":1,"id":"a","function":{"name":"g","arguments":"{}"}}`)},
			want{{"a", "f", `{}`}, {"", "g", `{}`}}, "used before"},
		{"I141 sent twice", []string{
			fragments(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}`), fragments(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}`)},
			want{{"a", "f", `{"x":1}`}}, "taken once"},
		{"other arguments under a complete call are not hidden", []string{
			fragments(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}`), fragments(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":2}"}}`)},
			want{{"a", "f", `{"x":1}{"x":2}`}}, ""},
		{"no arguments", []string{fragments(`{"index":0,"id":"a","function":{"name":"f"}}`), fragments(`{"index":1,"id":"b","function":{"name":"g","arguments":null}}`)},
			want{{"a", "f", `{}`}, {"b", "g", `{}`}}, ""},
		{"invalid arguments", []string{fragments(`{"index":0,"id":"a","function":{"name":"f","arguments":"{x: 1"}}`)}, want{{"a", "f", `{x: 1`}}, ""},
		{"arguments of another type", []string{fragments(`{"index":0,"id":"a","function":{"name":"f","arguments":[1]}}`)}, want{{"a", "f", `[1]`}}, ""},
		{"index and id as other types", []string{fragments(`{"index":"0","id":7,"function":{"name":"f","arguments":"{"}}`), fragments(`{"index":0.0,"function":{"arguments":"}"}}`)}, want{{"7", "f", `{}`}}, ""},
		{"function_call", []string{delta1(`{"function_call":{"name":"f","arguments":"{"}}`), delta1(`{"function_call":{"arguments":"}"}}`)}, want{{"", "f", `{}`}}, ""},
		{"message instead of delta", []string{`{"choices":[{"message":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]}}]}`}, want{{"a", "f", `{}`}}, ""},
		{"half characters in arguments", []string{fragments(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":\"\ud83d"}}`), fragments(`{"index":0,"function":{"arguments":"\ude00\"}"}}`)},
			want{{"a", "f", `{"x":"😀"}`}}, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			resp, err := streamBytes(t, strings.NewReader(frames(append(c.in, finishCalls, "[DONE]")...)), nil)
			if err != nil {
				t.Fatal(err)
			}
			var got want
			seen := map[string]bool{}
			for i, call := range resp.Message.ToolCalls() {
				if call.ID == "" || seen[call.ID] {
					t.Errorf("id %q is empty or used twice", call.ID)
				}
				seen[call.ID] = true
				got = append(got, [3]string{call.ID, call.Name, call.Args})
				if i < len(c.want) && c.want[i][0] == "" {
					got[i][0] = ""
				}
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
			if (c.note == "") != (resp.Note == "") || !strings.Contains(resp.Note, c.note) {
				t.Errorf("note %q, want %q", resp.Note, c.note)
			}
		})
	}
}

func TestNamelessCallIsAnError(t *testing.T) {
	_, err := streamBytes(t, strings.NewReader(frames(fragments(`{"index":0,"id":"a","function":{"arguments":"{\"x\":1}"}}`), finishCalls)), nil)
	if me := asError(t, err); me.Kind != model.ErrMalformed || !strings.Contains(me.Detail, `{\"x\":1}`) {
		t.Error(err)
	}
}

func TestTooManyCalls(t *testing.T) {
	one := `{"function":{"name":"f","arguments":"{}"}}`
	_, err := streamBytes(t, strings.NewReader(frames(fragments(strings.Split(strings.Repeat(one+"\n", maxCalls+1), "\n")[:maxCalls+1]...), finishCalls)), nil)
	if me := asError(t, err); me.Kind != model.ErrMalformed || !strings.Contains(me.Detail, "more than 512") {
		t.Error(err)
	}
}

func TestText(t *testing.T) {
	cases := []struct {
		name, in, text, reasoning, note string
	}{
		{"pair over two deltas", frames(delta1(`{"content":"a\ud83d"}`), delta1(`{"content":"\ude00b"}`), "[DONE]"), "a😀b", "", "no finish"},
		{"lone halves", frames(delta1(`{"content":"a\ud83d"}`), delta1(`{"content":"b\ude00"}`), delta1(`{"content":"\uD83D"}`), "[DONE]"), "a\ufffdb\ufffd\ufffd", "", "3 half characters"},
		{"escaped backslash is no half", frames(delta1(`{"content":"\\ud83d"}`), "[DONE]"), `\ud83d`, "", "no finish"},
		{"whole pairs", frames(delta1(`{"content":"\ud83d\ude00\u00e9"}`), "[DONE]"), "😀é", "", "no finish"},
		{"half beside a private character", frames(delta1(`{"content":"\ud83d`+"\U0010F83D"+`"}`), "[DONE]"), "\ufffd\U0010F83D", "", "half characters were replaced"},
		{"private characters alone", frames(delta1(`{"content":"`+"\U0010F83D"+`"}`), delta1(`{"content":"`+"\U0010FE00"+`"}`), "[DONE]"), "\U0010F83D\U0010FE00", "", "no finish"},
		{"private character after a half", frames(delta1(`{"content":"\ud83d"}`), delta1(`{"content":"`+"\U0010FE00"+`"}`), "[DONE]"), "\ufffd\U0010FE00", "", "1 half"},
		{"content as a list", frames(delta1(`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"hi"}]}`), "[DONE]"), "hi", "hm", "no finish"},
		{"both reasoning members", frames(delta1(`{"reasoning_content":"hm","reasoning":"hm","content":"x"}`), "[DONE]"), "x", "hm", "no finish"},
		{"refusal", frames(delta1(`{"refusal":"no"}`), "[DONE]"), "no", "", "refused"},
		{"second choice", frames(delta1(`{"content":"a"}`), `{"choices":[{"index":1,"delta":{"content":"b"}}]}`, "[DONE]"), "a", "", "second choice"},
		{"no blank lines between events", "data: " + delta1(`{"content":"a"}`) + "\ndata: " + delta1(`{"content":"b"}`) + "\ndata: [DONE]\n", "ab", "", "no finish"},
		{"a frame over several lines", "data: {\"choices\":\ndata: [{\"delta\":{\"content\":\"a\"}}]}\n\ndata: [DONE]\n\n", "a", "", "no finish"},
		{"empty error member", frames(`{"error":"","choices":[{"delta":{"content":"a"}}]}`, `{"error":{},"choices":[]}`, "[DONE]"), "a", "", "no finish"},
		{"named pings", "event: ping\ndata: hello\n\n" + frames(delta1(`{"content":"a"}`), "[DONE]"), "a", "", "no finish"},
		{"unterminated done", frames(delta1(`{"content":"a"}`)) + "data: [DONE]", "a", "", "no finish"},
		{"finish, then cut in usage", frames(delta1(`{"content":"a"}`), `{"choices":[{"delta":{},"finish_reason":"stop"}]}`) + `data: {"usa`, "a", "", ""},
		{"finish reason stop spelt otherwise", frames(delta1(`{"content":"a"}`), `{"choices":[{"delta":{},"finish_reason":"eos_token"}]}`), "a", "", ""},
		{"unknown finish reason", frames(delta1(`{"content":"a"}`), `{"choices":[{"delta":{},"finish_reason":"enough"}]}`), "a", "", `"enough"`},
		{"calls announced, none sent", frames(delta1(`{"content":"a"}`), finishCalls), "a", "", "none came"},
		{"unreadable usage", frames(delta1(`{"content":"a"}`), `{"choices":[],"usage":7}`, "[DONE]"), "a", "", "usage"},
		{"byte order mark first", "\xef\xbb\xbf" + frames(delta1(`{"content":"a"}`), "[DONE]"), "a", "", "no finish"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var got collect
			resp, err := streamBytes(t, strings.NewReader(c.in), got.add)
			if err != nil {
				t.Fatal(err)
			}
			if resp.Message.Text() != c.text || got.text.String() != c.text || reasoning(resp.Message) != c.reasoning {
				t.Errorf("text %q, streamed %q, reasoning %q; want %q, %q", resp.Message.Text(), got.text.String(), reasoning(resp.Message), c.text, c.reasoning)
			}
			if (c.note == "") != (resp.Note == "") || !strings.Contains(resp.Note, c.note) {
				t.Errorf("note %q, want %q", resp.Note, c.note)
			}
			if resp.Finish != model.FinishStop {
				t.Errorf("finish %q", resp.Finish)
			}
		})
	}
}

func FuzzStream(f *testing.F) {
	f.Add(modeltest.Stream(richTurn))
	f.Add([]byte(frames(delta1(`{"content":"\ud83d"}`), fragments(`{"function":{"name":"f","arguments":{}}}`), finishCalls)))
	f.Add([]byte(`{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1e3}}`))
	f.Add([]byte("<html>"))
	f.Fuzz(func(t *testing.T, in []byte) {
		var got collect
		resp, err := streamBytes(t, bytes.NewReader(in), got.add)
		if err != nil {
			me := asError(t, err)
			if resp != nil || !strings.HasPrefix(me.Partial, got.text.String()) {
				t.Errorf("partial %q, streamed %q", me.Partial, got.text.String())
			}
			return
		}
		if resp.Message.Text() != got.text.String() {
			t.Errorf("text %q, streamed %q", resp.Message.Text(), got.text.String())
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
		if !bytes.Contains(in, []byte("finish_reason")) && !bytes.Contains(in, []byte("DONE")) && bytes.HasPrefix(in, []byte("data")) {
			t.Errorf("complete without a mark of the end")
		}
	})
}

func answerText(s string) *http.Client {
	return answer(func(context.Context) io.Reader { return strings.NewReader(s) })
}

func TestUsage(t *testing.T) { // I174, I177
	n := func(i int64) *int64 { return &i }
	cases := []struct {
		in   string
		want *model.Usage
		note bool
	}{
		{`{"prompt_tokens":1000,"completion_tokens":10,"prompt_tokens_details":{"cached_tokens":800}}`, &model.Usage{Input: n(200), Output: n(10), CacheRead: n(800)}, false},
		{`{"prompt_tokens":1000,"completion_tokens":10,"prompt_tokens_details":{"cached_tokens":300,"cache_write_tokens":600}}`, &model.Usage{Input: n(100), Output: n(10), CacheRead: n(300), CacheWrite: n(600)}, false},
		{`{"prompt_tokens":10,"completion_tokens":9,"completion_tokens_details":{"reasoning_tokens":7}}`, &model.Usage{Input: n(10), Output: n(9), Reasoning: n(7)}, false},
		{`{"prompt_tokens":10,"completion_tokens":null,"prompt_tokens_details":null}`, &model.Usage{Input: n(10)}, false},
		{`{"prompt_tokens":10,"prompt_cache_hit_tokens":4,"prompt_cache_miss_tokens":6}`, &model.Usage{Input: n(6), CacheRead: n(4)}, false},
		{`{"prompt_tokens":10,"cached_tokens":4}`, &model.Usage{Input: n(6), CacheRead: n(4)}, false},
		{`{"prompt_tokens":10,"cached_tokens":40}`, &model.Usage{Input: n(10), CacheRead: n(40)}, true},
		{`{"prompt_tokens":"10","completion_tokens":2.0}`, &model.Usage{Input: n(10), Output: n(2)}, false},
		{`{"prompt_tokens":-1,"completion_tokens":1.5}`, nil, false},
		{`{"prompt_tokens":1e99}`, nil, false},
		{`{}`, nil, false},
		{`[]`, nil, true},
	}
	for _, c := range cases {
		got, note := usage([]byte(c.in))
		if d := cmp.Diff(c.want, got); d != "" || (note != "") != c.note {
			t.Errorf("%s: note %q, %s", c.in, note, d)
		}
	}
}
