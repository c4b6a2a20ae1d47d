package openai

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/strictjson"
)

func assistant(ps ...model.Part) *model.Message {
	return &model.Message{Role: "assistant", Parts: ps}
}

func text1(s string) model.Part { return model.Part{Text: &s} }

// thought is reasoning of testClient's model.
func thought(s string) model.Part {
	return model.Part{Reasoning: &s, Seal: &model.Seal{Origin: "openai:openai/m"}}
}

func call1(id, name, args string) model.Part {
	return model.Part{ToolCall: &model.ToolCall{ID: id, Name: name, Args: args}}
}

func result1(id, content string) model.Part {
	return model.Part{ToolResult: &model.ToolResult{CallID: id, Content: content}}
}

func tool(ps ...model.Part) *model.Message { return &model.Message{Role: "tool", Parts: ps} }

// sent returns the body that c would send.
func sent(t rapid.TB, c *Client, req *model.Request) string {
	t.Helper()
	parts, err := c.body(req)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, p := range parts {
		b.Write(p)
	}
	if err := strictjson.Check([]byte(b.String()), strictjson.Options{MaxBytes: 1 << 30}); err != nil {
		t.Fatalf("the body is not strict JSON: %v\n%s", err, b.String())
	}
	return b.String()
}

func testClient(t rapid.TB, change func(*Config)) *Client {
	t.Helper()
	cfg := Config{BaseURL: "http://server.test/v1", Model: "m", NoStreamOptions: true}
	if change != nil {
		change(&cfg)
	}
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestEncoding(t *testing.T) {
	png := model.Image{MediaType: "image/png", Data: "AAAA"}
	cases := []struct {
		name string
		ms   []*model.Message
		want string
	}{
		{"user", []*model.Message{user("a\"\n\x00é😀")}, `{"role":"user","content":"a\"\n\u0000é😀"}`},
		{"user parts", []*model.Message{{Role: "user", Parts: []model.Part{text1("a"), text1(""), text1("b")}}}, `{"role":"user","content":"a\n\nb"}`},
		{"bad UTF-8", []*model.Message{user("a\xffb")}, `{"role":"user","content":"a` + "\ufffd" + `b"}`},
		{"empty user", []*model.Message{user(""), user("x")}, `{"role":"user","content":"x"}`},
		{"assistant text", []*model.Message{assistant(thought("not sent"), text1("a"), text1("b"))}, `{"role":"assistant","content":"ab"}`},
		{"assistant with nothing to say", []*model.Message{assistant(thought("x")), assistant(), user("y")}, `{"role":"user","content":"y"}`},
		{"calls", []*model.Message{assistant(thought("hm"), text1(""), call1("i", "f", `{"x": 1}`), call1("j", "g", ``))},
			`{"role":"assistant","content":null,"reasoning_content":"hm","tool_calls":[{"id":"i","type":"function","function":{"name":"f","arguments":"{\"x\": 1}"}},{"id":"j","type":"function","function":{"name":"g","arguments":"{}"}}]}`},
		{"invalid arguments", []*model.Message{assistant(text1("t"), call1("i", "f", `{"x`))},
			`{"role":"assistant","content":"t","tool_calls":[{"id":"i","type":"function","function":{"name":"f","arguments":"{\"invalid_arguments\":\"{\\\"x\"}"}}]}`},
		{"arguments that are no object", []*model.Message{assistant(call1("i", "f", ` [1]`))},
			`{"role":"assistant","content":null,"tool_calls":[{"id":"i","type":"function","function":{"name":"f","arguments":"{\"invalid_arguments\":\" [1]\"}"}}]}`},
		{"invalid names", []*model.Message{assistant(call1("i", "a b/é", `{}`), call1("j", strings.Repeat("n", 99), `{}`))},
			`{"role":"assistant","content":null,"tool_calls":[{"id":"i","type":"function","function":{"name":"a_b___","arguments":"{}"}},{"id":"j","type":"function","function":{"name":"` + strings.Repeat("n", 64) + `","arguments":"{}"}}]}`},
		{"results", []*model.Message{tool(result1("i", "one"), result1("j", ""))}, `{"role":"tool","tool_call_id":"i","content":"one"},{"role":"tool","tool_call_id":"j","content":""}`},
		{"pictures", []*model.Message{{Role: "user", Parts: []model.Part{text1("see"), {Image: &png}, text1("")}}, {Role: "user", Parts: []model.Part{{Image: &png}}}},
			`{"role":"user","content":[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]},{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}`},
		{"pictures in results", []*model.Message{tool(model.Part{ToolResult: &model.ToolResult{CallID: "i", Content: "one", Images: []model.Image{png}}}, result1("j", "two"))},
			`{"role":"tool","tool_call_id":"i","content":"one"},{"role":"tool","tool_call_id":"j","content":"two"},{"role":"user","content":[{"type":"text","text":"Pictures that belong to the result of call i:"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}`},
		{"I156 reasoning that another API sealed", []*model.Message{assistant(model.Part{Reasoning: &png.Data, Seal: &model.Seal{Origin: "anthropic:a/m", Data: "x"}}, model.Part{Seal: &model.Seal{Origin: "openai-responses:a/m", Data: "x"}}, call1("i", "f", "{}"))},
			`{"role":"assistant","content":null,"tool_calls":[{"id":"i","type":"function","function":{"name":"f","arguments":"{}"}}]}`},
		{"I156 reasoning of another endpoint of this API, and of nobody", []*model.Message{assistant(model.Part{Reasoning: &png.Data, Seal: &model.Seal{Origin: "openai:other/m"}}, model.Part{Reasoning: &png.Data}, call1("i", "f", "{}"))},
			`{"role":"assistant","content":null,"tool_calls":[{"id":"i","type":"function","function":{"name":"f","arguments":"{}"}}]}`},
		{"none", nil, ``},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			for _, system := range []string{"", "be brief"} {
				want := `{"model":"m","stream":true,"messages":[` + c.want + `]}`
				if system != "" {
					want = `{"model":"m","stream":true,"messages":[{"role":"system","content":"be brief"}`
					if c.want != "" {
						want += ","
					}
					want += c.want + `]}`
				}
				if d := cmp.Diff(want, sent(t, testClient(t, nil), &model.Request{System: system, Messages: c.ms})); d != "" {
					t.Error(d)
				}
			}
		})
	}
}

func TestReasoningReplay(t *testing.T) {
	ms := []*model.Message{user("a"), assistant(thought("hm"), call1("i", "f", "{}")), tool(result1("i", "x"))}
	c := testClient(t, nil)
	if got := sent(t, c, &model.Request{Messages: ms}); !strings.Contains(got, `"reasoning_content":"hm"`) {
		t.Error(got)
	}
	c.enc.setField(fieldReasoning) // as after a reply that used it
	if got := sent(t, c, &model.Request{Messages: ms}); !strings.Contains(got, `"reasoning":"hm"`) || strings.Contains(got, "reasoning_content") {
		t.Error(got)
	}
	c = testClient(t, func(cfg *Config) { cfg.NoReasoning = true })
	if got := sent(t, c, &model.Request{Messages: ms}); strings.Contains(got, "hm") {
		t.Error(got)
	}
	in := frames(delta1(`{"reasoning":"hm"}`), fragments(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`), finishCalls)
	for _, no := range []bool{false, true} {
		c := testClient(t, func(cfg *Config) { cfg.NoReasoning, cfg.HTTPClient = no, answerText(in) })
		resp, err := c.Stream(t.Context(), &model.Request{Messages: ms[:1]}, nil)
		if err != nil {
			t.Fatal(err)
		}
		next := []*model.Message{ms[0], resp.Message, tool(result1("a", "x"))}
		if got := sent(t, c, &model.Request{Messages: next}); strings.Contains(got, `"reasoning":"hm"`) == no {
			t.Errorf("NoReasoning %v: %s", no, got)
		}
	}
}

func TestIDsStayUniqueOverASession(t *testing.T) {
	in := frames(fragments(`{"index":0,"id":"call_0","function":{"name":"f","arguments":"{}"}}`), finishCalls)
	c := testClient(t, func(cfg *Config) { cfg.HTTPClient = answerText(in) })
	history := []*model.Message{user("go")}
	seen := map[string]bool{}
	for i := range 3 {
		resp, err := c.Stream(t.Context(), &model.Request{Messages: history}, nil)
		if err != nil {
			t.Fatal(err)
		}
		id := resp.Message.ToolCalls()[0].ID
		if seen[id] || (i == 0) != (id == "call_0") {
			t.Errorf("turn %d: id %q", i, id)
		}
		seen[id] = true
		history = append(history, resp.Message, tool(result1(id, "x")))
	}
}

func TestTools(t *testing.T) {
	c := testClient(t, nil)
	tools := []model.ToolSpec{{Name: "f", Description: "d", Schema: []byte(`{"type": "object"}`)}, {Name: "g"}}
	want := `"tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type": "object"}}},{"type":"function","function":{"name":"g","parameters":{"type":"object","properties":{}}}}],`
	if got := sent(t, c, &model.Request{Tools: tools}); !strings.Contains(got, want) {
		t.Error(got)
	}
	tools[1].Description = "changed in place"
	if got := sent(t, c, &model.Request{Tools: tools}); !strings.Contains(got, "changed in place") {
		t.Error(got)
	}
	if got := sent(t, c, &model.Request{}); strings.Contains(got, "tools") {
		t.Error(got)
	}
	_, err := c.Stream(t.Context(), &model.Request{Tools: []model.ToolSpec{{Name: "bad", Schema: []byte(`{"a":1,"a":2}`)}}}, nil)
	if me := asError(t, err); me.Kind != model.ErrRequest || !strings.Contains(me.Detail, `"bad"`) {
		t.Error(err)
	}
}

// TestKeptEncodingIsTheFreshOne edits a history at random and compares what a
// client with a memory sends with what a new one sends. Bodies handed out before
// must not change.
func TestKeptEncodingIsTheFreshOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kept := testClient(t, nil)
		var history []*model.Message
		type handedOut struct {
			parts [][]byte
			was   string
		}
		var out []handedOut
		for i := range rapid.IntRange(1, 12).Draw(t, "turns") {
			keep := rapid.IntRange(0, len(history)).Draw(t, "keep")
			if rapid.IntRange(0, 3).Draw(t, "edit") > 0 {
				keep = len(history)
			}
			history = append([]*model.Message{}, history[:keep]...)
			for j := range rapid.IntRange(0, 3).Draw(t, "new") {
				id := fmt.Sprintf("%d_%d", i, j)
				history = append(history, rapid.SampledFrom([]*model.Message{
					user("u" + id), assistant(text1("t" + id)), assistant(thought("r"), call1(id, "f", "{}")), tool(result1(id, "x")), user(""),
				}).Draw(t, "message"))
			}
			req := &model.Request{System: rapid.SampledFrom([]string{"", "s", "t"}).Draw(t, "system"), Messages: history}
			want := sent(t, testClient(t, nil), req)
			if got := sent(t, kept, req); got != want {
				t.Fatalf("kept:\n%s\nfresh:\n%s", got, want)
			}
			parts, err := kept.body(req)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, handedOut{parts, want})
		}
		for _, h := range out {
			var b strings.Builder
			for _, p := range h.parts {
				b.Write(p)
			}
			if b.String() != h.was {
				t.Fatalf("a body changed after it was handed out:\n%s\n%s", b.String(), h.was)
			}
		}
	})
}

// session is a history of n turns with a call of 2 kB results each.
func session(n int) []*model.Message {
	ms := []*model.Message{user("go")}
	for i := range n {
		id := fmt.Sprint("call_", i)
		ms = append(ms, assistant(text1("I read the next file."), call1(id, "read", `{"path":"internal/a.go"}`)), tool(result1(id, strings.Repeat("some line of code\n", 110))))
	}
	return ms
}

// BenchmarkSession lays out every turn of a session. The time per turn must not
// grow with the session, though the bytes to send (MB/turn) do.
func BenchmarkSession(b *testing.B) {
	for _, turns := range []int{125, 250, 500, 1000} {
		b.Run(fmt.Sprint(turns), func(b *testing.B) {
			ms := session(turns)
			var encoded, bytes int64
			for b.Loop() {
				c := testClient(b, nil)
				for n := 1; n <= len(ms); n += 2 {
					parts, err := c.body(&model.Request{System: "s", Messages: ms[:n]})
					if err != nil {
						b.Fatal(err)
					}
					for _, p := range parts {
						k, _ := io.Discard.Write(p)
						bytes += int64(k)
					}
				}
				encoded += int64(c.enc.history.Encoded())
			}
			per := float64(b.N) * float64(turns)
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/per, "ns/turn")
			b.ReportMetric(float64(encoded)/per, "encodings/turn")
			b.ReportMetric(float64(bytes)/per/1e6, "MB/turn")
		})
	}
}

func TestALongSessionIsEncodedOnce(t *testing.T) {
	ms := session(500)
	c := testClient(t, nil)
	for n := 1; n <= len(ms); n += 2 {
		if _, err := c.body(&model.Request{System: "s", Messages: ms[:n]}); err != nil {
			t.Fatal(err)
		}
	}
	if c.enc.history.Encoded() != len(ms) {
		t.Errorf("%d encodings for %d messages", c.enc.history.Encoded(), len(ms))
	}
}
