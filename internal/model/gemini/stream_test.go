package gemini

import (
	"bytes"
	"context"
	"fmt"
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
func answer(open func(r *http.Request) io.Reader) *http.Client {
	return &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return nil, err
		}
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(open(r)), Request: r}, nil
	})}
}

// answerTo answers with body and says which URL was asked.
func answerTo(url *string, body string) *http.Client {
	return answer(func(r *http.Request) io.Reader {
		*url = r.URL.String()
		return strings.NewReader(body)
	})
}

// streamBytes runs one call whose answer is read from body.
func streamBytes(t rapid.TB, body io.Reader, onDelta func(model.Delta)) (*model.Response, error) {
	t.Helper()
	c, err := New(Config{BaseURL: "http://server.test/v1beta", Model: "m", Name: "p", HTTPClient: answer(func(*http.Request) io.Reader { return body })})
	if err != nil {
		t.Fatal(err)
	}
	return c.Stream(context.Background(), request(user("go")), onDelta)
}

// frames makes a stream of the given data.
func frames(data ...string) string {
	out := ""
	for _, d := range data {
		out += "data: " + d + "\r\n\r\n"
	}
	return out
}

// parts makes a frame of the given parts.
func parts(ps ...string) string {
	return `{"candidates":[{"content":{"parts":[` + strings.Join(ps, ",") + `],"role":"model"},"index":0}]}`
}

// ending makes a frame with a finish reason.
func ending(reason string) string {
	return `{"candidates":[{"finishReason":"` + reason + `","index":0}]}`
}

const stop = `{"candidates":[{"content":{"role":"model"},"finishReason":"STOP","index":0}]}`

// chopped reads in the given sizes, the last one for all the rest.
type chopped struct {
	data []byte
	cuts []int
	at   int
}

func (p *chopped) Read(b []byte) (int, error) {
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

// I134: a character that is split over two reads stays whole, wherever the split is.
func TestEverySplitGivesTheSameReply(t *testing.T) {
	check := func(t rapid.TB, turn modeltest.Turn, data []byte, cuts []int) {
		var got collect
		resp, err := streamBytes(t, &chopped{data: data, cuts: cuts}, got.add)
		if err != nil {
			t.Fatalf("%v: %v", cuts, err)
		}
		if d := cmp.Diff(turn.Calls, calls(resp.Message)); d != "" || resp.Message.Text() != turn.Text || got.text.String() != turn.Text || reasoning(resp.Message) != turn.Reasoning {
			t.Fatalf("%v: %s %q", cuts, d, resp.Message.Text())
		}
	}
	small := modeltest.Turn{Text: "北😀", Calls: []modeltest.Call{{ID: "a", Name: "read", Args: `{"é":1}`}}, Faults: []modeltest.Fault{modeltest.LineEnd("\r\n")}}
	data := modeltest.StreamOf(modeltest.Gemini, small)
	for i := range data {
		check(t, small, data, []int{i})
	}
	rich := richTurn
	rich.Faults = []modeltest.Fault{modeltest.LineEnd("\r\n"), modeltest.Comments()}
	richData := modeltest.StreamOf(modeltest.Gemini, rich)
	rapid.Check(t, func(t *rapid.T) {
		var cuts []int
		for at := 0; at < len(richData); {
			at += rapid.IntRange(1, 60).Draw(t, "size")
			cuts = append(cuts, at)
		}
		check(t, rich, richData, cuts)
	})
}

// shape writes a message in short: t text, r reasoning, c call, with * and the data
// where there is a seal and @ and the id that the endpoint gave.
func shape(m *model.Message) string {
	var out []string
	for _, p := range m.Parts {
		s := ""
		switch {
		case p.Text != nil:
			s = "t:" + *p.Text
		case p.Reasoning != nil:
			s = "r:" + *p.Reasoning
		case p.ToolCall != nil:
			s = "c:" + p.ToolCall.Name + p.ToolCall.Args
		}
		if p.Seal != nil {
			if p.Seal.Data != "" {
				s += "*" + p.Seal.Data
			}
			if p.Seal.ID != "" {
				s += "@" + p.Seal.ID
			}
			if p.Seal.Origin != "gemini:p/m" || (p.Seal.Data != "") != (p.Seal.Kind == "thought_signature") {
				s += fmt.Sprintf(" bad seal %+v", p.Seal)
			}
		}
		out = append(out, s)
	}
	return strings.Join(out, " | ")
}

// TestReplies holds the forms that servers send, and what each is read as.
func TestReplies(t *testing.T) {
	text := func(s string) string { return parts(`{"text":"` + s + `"}`) }
	cases := []struct {
		name   string
		in     string
		want   string
		finish model.Finish
		note   string
	}{
		{"text in chunks", frames(text("He"), text("llo"), stop), "t:Hello", model.FinishStop, ""},
		{"finish with the last text", frames(text("a"), `{"candidates":[{"content":{"parts":[{"text":"b"}],"role":"model"},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":3,"totalTokenCount":5}}`), "t:ab", model.FinishStop, ""},
		{"STOP with every chunk", frames(`{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"}]}`, `{"candidates":[{"content":{"parts":[{"text":"b"}]},"finishReason":"STOP"}]}`), "t:ab", model.FinishStop, ""},
		{"STOP, then the real reason", frames(`{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"}]}`, ending("MAX_TOKENS"), stop), "t:a", model.FinishLength, ""},
		{"thoughts, then text", frames(parts(`{"text":"hm ","thought":true}`), parts(`{"text":"hm","thought":true}`), text("x"), stop), "r:hm hm | t:x", model.FinishStop, ""},
		{"thoughts between texts", frames(parts(`{"text":"a"}`, `{"text":"t","thought":true}`, `{"text":"b","thought":false}`), stop), "t:a | r:t | t:b", model.FinishStop, ""},
		{"signature on an empty text at the end", frames(text("a"), parts(`{"text":"","thoughtSignature":"S1"}`), stop), "t:a | t:*S1", model.FinishStop, ""},
		{"signature on the last text alone", frames(text("a"), parts(`{"text":"b","thoughtSignature":"S1"}`), text("c"), stop), "t:a | t:b*S1 | t:c", model.FinishStop, ""},
		{"signature on a thought", frames(parts(`{"text":"t","thought":true,"thoughtSignature":"S1"}`), text("c"), stop), "r:t*S1 | t:c", model.FinishStop, ""},
		{"signature alone", frames(text("a"), parts(`{"thoughtSignature":"S1"}`), stop), "t:a | t:*S1", model.FinishStop, ""},
		{"signature on the first of two calls", frames(parts(`{"functionCall":{"name":"f","args":{"x":1}},"thoughtSignature":"S1"}`, `{"functionCall":{"name":"g","args":{}}}`), stop), `c:f{"x":1}*S1 | c:g{}`, model.FinishToolCalls, ""},
		{"calls in chunks with ids", frames(parts(`{"functionCall":{"id":"i1","name":"f","args":{}}}`), parts(`{"functionCall":{"id":"i2","name":"f","args":{}}}`), stop), "c:f{}@i1 | c:f{}@i2", model.FinishToolCalls, ""},
		{"text after a call", frames(text("a"), parts(`{"functionCall":{"name":"f","args":{}}}`), text("b"), stop), "t:a | c:f{} | t:b", model.FinishToolCalls, ""},
		{"missing, null and text arguments", frames(parts(`{"functionCall":{"name":"f"}}`, `{"functionCall":{"name":"g","args":null}}`, `{"functionCall":{"name":"h","args":"{\"x\":1}"}}`), stop), `c:f{} | c:g{} | c:h{"x":1}`, model.FinishToolCalls, ""},
		{"one id for two calls", frames(parts(`{"functionCall":{"id":"i","name":"f","args":{}}}`, `{"functionCall":{"id":"i","name":"g","args":{}}}`), stop), "c:f{}@i | c:g{}@i", model.FinishToolCalls, "used before"},
		{"nothing but STOP", frames(stop), "", model.FinishStop, ""},
		{"no content member", frames(`{"candidates":[{"finishReason":"STOP"}]}`), "", model.FinishStop, ""},
		{"parts null", frames(`{"candidates":[{"content":{"parts":null}}]}`, text("a"), stop), "t:a", model.FinishStop, ""},
		{"second candidate", frames(text("a"), `{"candidates":[{"index":1,"content":{"parts":[{"text":"b"}]},"finishReason":"STOP"}]}`, stop), "t:a", model.FinishStop, "second candidate"},
		{"part of another kind", frames(parts(`{"executableCode":{"code":"x"}}`, `{"text":"a"}`), stop), "t:a", model.FinishStop, "left out"},
		{"half characters over two chunks", frames(text(`a\ud83d`), text(`\ude00b`), stop), "t:a😀b", model.FinishStop, ""},
		{"half characters before a signed text", frames(text(`a\ud83d`), parts(`{"text":"\ude00b","thoughtSignature":"S"}`), stop), "t:a | t:😀b*S", model.FinishStop, ""},
		{"a lone half before a thought", frames(text(`\ud83d`), parts(`{"text":"t","thought":true}`), stop), "t:\ufffd | r:t", model.FinishStop, "1 half characters"},
		{"a lone half at the end of a thought", frames(parts(`{"text":"\ud83d","thought":true}`), stop), "r:\ufffd", model.FinishStop, "1 half characters"},
		{"a lone half before a call", frames(text(`a\ud83d`), parts(`{"functionCall":{"name":"f"}}`), text(`\ude00`), stop), "t:a\ufffd | c:f{} | t:\ufffd", model.FinishToolCalls, "2 half characters"},
		{"half characters in arguments", frames(parts(`{"functionCall":{"name":"f","args":{"x":"\ud83d"}}}`), stop), "c:f{\"x\":\"\ufffd\"}", model.FinishToolCalls, ""},
		{"list of frames", "[" + text("a") + ",\r\n" + text("b") + "\n,\n" + stop + "\n]", "t:ab", model.FinishStop, "one JSON body"},
		{"list of frames with halves", "[" + text(`a\ud83d`) + "," + text(`\ude00`) + "," + stop + "]", "t:a😀", model.FinishStop, "one JSON body"},
		{"end marked with [DONE] too", frames(text("a"), stop, "[DONE]"), "t:a", model.FinishStop, ""},
		{"finish, then cut in the usage", frames(text("a"), stop) + `data: {"usageMe`, "t:a", model.FinishStop, ""},
		{"unknown finish reason", frames(text("a"), ending("ENOUGH")), "t:a", model.FinishStop, `"ENOUGH"`},
		{"unspecified finish reason is none", frames(text("a"), ending("FINISH_REASON_UNSPECIFIED"), stop), "t:a", model.FinishStop, ""},
		{"safety", frames(text("a"), parts(`{"functionCall":{"name":"f","args":{}}}`), `{"candidates":[{"finishReason":"SAFETY","finishMessage":"not nice"}]}`), "t:a", model.FinishFiltered, `"SAFETY" ("not nice"); 1 tool calls were withheld`},
		{"recitation", frames(text("a"), ending("RECITATION")), "t:a", model.FinishFiltered, "RECITATION"},
		{"prompt blocked", frames(`{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"usageMetadata":{"promptTokenCount":4}}`), "", model.FinishFiltered, `refused the prompt: "PROHIBITED_CONTENT"`},
		{"prompt not blocked", frames(`{"promptFeedback":{"safetyRatings":[]}}`, text("a"), stop), "t:a", model.FinishStop, ""},
		{"output limit", frames(text("a"), parts(`{"functionCall":{"name":"f","args":{}}}`), ending("MAX_TOKENS")), "t:a", model.FinishLength, "1 tool calls were withheld"},
		{"output limit in thoughts", frames(parts(`{"text":"t","thought":true}`), ending("MAX_TOKENS")), "r:t", model.FinishLength, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var got collect
			resp, err := streamBytes(t, strings.NewReader(c.in), got.add)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, shape(resp.Message)); d != "" || resp.Finish != c.finish {
				t.Errorf("finish %q, want %q; %s", resp.Finish, c.finish, d)
			}
			if (c.note == "") != (resp.Note == "") || !strings.Contains(resp.Note, c.note) {
				t.Errorf("note %q, want %q", resp.Note, c.note)
			}
			if got.text.String() != resp.Message.Text() || got.reasoning.String() != reasoning(resp.Message) {
				t.Errorf("streamed %q, %q", got.text.String(), got.reasoning.String())
			}
			seen := map[string]bool{}
			for _, call := range resp.Message.ToolCalls() {
				if call.ID == "" || seen[call.ID] {
					t.Errorf("id %q is empty or used twice", call.ID)
				}
				seen[call.ID] = true
			}
		})
	}
}

func TestUsage(t *testing.T) {
	n := func(i int64) *int64 { return &i }
	for _, c := range []struct {
		in   string
		want *model.Usage
		note bool
	}{
		{`{"promptTokenCount":1000,"cachedContentTokenCount":800,"candidatesTokenCount":10,"thoughtsTokenCount":5,"totalTokenCount":1015}`, &model.Usage{Input: n(200), Output: n(15), CacheRead: n(800), Reasoning: n(5)}, false},
		{`{"promptTokenCount":10,"toolUsePromptTokenCount":4,"candidatesTokenCount":1}`, &model.Usage{Input: n(14), Output: n(1)}, false},
		{`{"promptTokenCount":10,"thoughtsTokenCount":7,"totalTokenCount":17}`, &model.Usage{Input: n(10), Output: n(7), Reasoning: n(7)}, false},
		{`{"promptTokenCount":10,"totalTokenCount":12,"candidatesTokenCount":null}`, &model.Usage{Input: n(10), Output: n(2)}, false},
		{`{"promptTokenCount":10,"totalTokenCount":10}`, &model.Usage{Input: n(10), Output: n(0)}, false},
		{`{"promptTokenCount":10,"cachedContentTokenCount":40}`, &model.Usage{Input: n(10), CacheRead: n(40)}, true},
		{`{"candidatesTokenCount":3}`, &model.Usage{Output: n(3)}, false},
		{`{"promptTokenCount":-1,"candidatesTokenCount":1.5}`, nil, false},
		{`{"trafficType":"ON_DEMAND"}`, nil, false},
		{`7`, nil, true},
	} {
		got, note := usage([]byte(c.in))
		if d := cmp.Diff(c.want, got); d != "" || (note != "") != c.note {
			t.Errorf("%s: note %q, %s", c.in, note, d)
		}
	}
}

// TestIDs: ids that the endpoint gives again and calls without one get an id of their
// own, which the endpoint never sees.
func TestIDs(t *testing.T) {
	in := frames(parts(`{"functionCall":{"id":"x","name":"f","args":{}}}`, `{"functionCall":{"name":"f","args":{}}}`), stop)
	c := newClient(t, "http://server.test", func(cfg *Config) {
		cfg.HTTPClient = answer(func(*http.Request) io.Reader { return strings.NewReader(in) })
	})
	history := []*model.Message{user("go")}
	seen := map[string]bool{}
	for i := range 3 {
		resp, err := c.Stream(t.Context(), request(history...), nil)
		if err != nil {
			t.Fatal(err)
		}
		for j, call := range resp.Message.ToolCalls() {
			if seen[call.ID] || (i == 0 && j == 0) != (call.ID == "x") {
				t.Errorf("turn %d: id %q", i, call.ID)
			}
			seen[call.ID] = true
		}
		history = append(append(history, resp.Message), results(resp.Message.ToolCalls())...)
	}
	body := sent(t, c, request(history...))
	for id := range seen {
		if id != "x" && strings.Contains(body, id) {
			t.Errorf("the id %s was sent", id)
		}
	}
	if n := strings.Count(body, `"id":"x"`); n != 6 {
		t.Errorf("the id of the endpoint was sent %d times, want with three calls and three responses", n)
	}
	if other := newClient(t, "http://server.test", nil); other.ids.next() == c.ids.next() {
		t.Error("two clients make the same ids")
	}
}

func FuzzStream(f *testing.F) {
	f.Add(modeltest.StreamOf(modeltest.Gemini, richTurn))
	f.Add([]byte(frames(parts(`{"text":"\ud83d"}`, `{"functionCall":{"name":"f","args":{}}}`), stop)))
	f.Add([]byte("[" + parts(`{"text":"x","thought":true,"thoughtSignature":"s"}`) + "," + stop + "]"))
	f.Add([]byte(`{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1e3}}`))
	f.Add([]byte("<html>"))
	f.Fuzz(func(t *testing.T, in []byte) {
		var got collect
		resp, err := streamBytes(t, bytes.NewReader(in), got.add)
		if err != nil {
			me := asError(t, err)
			if resp != nil || me.Partial != got.text.String() {
				t.Errorf("partial %q, streamed %q", me.Partial, got.text.String())
			}
			return
		}
		if resp.Message.Text() != got.text.String() || reasoning(resp.Message) != got.reasoning.String() {
			t.Errorf("text %q, streamed %q", resp.Message.Text(), got.text.String())
		}
		calls := resp.Message.ToolCalls()
		if (len(calls) > 0) != (resp.Finish == model.FinishToolCalls) {
			t.Errorf("%d calls with finish %q", len(calls), resp.Finish)
		}
		for _, c := range calls {
			if c.ID == "" || c.Name == "" {
				t.Errorf("half a call: %+v", c)
			}
		}
		if !bytes.Contains(in, []byte("inishReason")) && !bytes.Contains(in, []byte("lockReason")) && !bytes.Contains(in, []byte(`\u`)) {
			t.Errorf("complete without a mark of the end")
		}
	})
}
