package responses

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/strictjson"
)

const origin = "openai-responses:openai-responses/m"

func testClient(t rapid.TB, change func(*Config)) *Client {
	t.Helper()
	cfg := Config{BaseURL: "http://server.test/v1", Model: "m"}
	if change != nil {
		change(&cfg)
	}
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

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

func assistant(ps ...model.Part) *model.Message {
	return &model.Message{Role: "assistant", Parts: ps}
}

func text1(s string) model.Part { return model.Part{Text: &s} }

func sealed(summary, id, data, origin string) model.Part {
	p := model.Part{Seal: &model.Seal{Origin: origin, Kind: "reasoning", ID: id, Data: data}}
	if summary != "" {
		p.Reasoning = &summary
	}
	return p
}

func call1(id, name, args string) model.Part {
	return model.Part{ToolCall: &model.ToolCall{ID: id, Name: name, Args: args}}
}

func TestEncoding(t *testing.T) {
	png := model.Image{MediaType: "image/png", Data: "AAAA"}
	hm := "hm"
	cases := []struct {
		name string
		ms   []*model.Message
		want string
	}{
		{"user", []*model.Message{user("a\"\n\x00é😀\xff")}, `{"type":"message","role":"user","content":[{"type":"input_text","text":"a\"\n\u0000é😀` + "\ufffd" + `"}]}`},
		{"picture", []*model.Message{{Role: "user", Parts: []model.Part{text1("see"), {Image: &png}, text1("")}}},
			`{"type":"message","role":"user","content":[{"type":"input_text","text":"see"},{"type":"input_image","image_url":"data:image/png;base64,AAAA"}]}`},
		{"empty ones", []*model.Message{user(""), assistant(), assistant(text1("")), user("x")}, `{"type":"message","role":"user","content":[{"type":"input_text","text":"x"}]}`},
		{"parts in order", []*model.Message{assistant(sealed("s", "rs_1", "e1", origin), text1("a"), sealed("", "rs_2", "e2", origin), call1("i", "f", `{"x": 1}`), call1("j", "g h", ``))},
			`{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"s"}],"encrypted_content":"e1"},` +
				`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}]},` +
				`{"type":"reasoning","id":"rs_2","summary":[],"encrypted_content":"e2"},` +
				`{"type":"function_call","call_id":"i","name":"f","arguments":"{\"x\": 1}"},{"type":"function_call","call_id":"j","name":"g_h","arguments":"{}"}`},
		{"invalid arguments", []*model.Message{assistant(call1("i", "f", `{"x`))}, `{"type":"function_call","call_id":"i","name":"f","arguments":"{\"invalid_arguments\":\"{\\\"x\"}"}`},
		{"I156 foreign or unsealed reasoning", []*model.Message{assistant(sealed("s", "rs_1", "e1", "anthropic:a/m"), model.Part{Reasoning: &hm}, text1("a"))}, `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}]}`},
		{"reasoning that led to nothing", []*model.Message{assistant(text1("a"), sealed("s", "rs_1", "e1", origin)), assistant(sealed("s", "rs_1", "e1", origin)), user("x")},
			`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}]},{"type":"message","role":"user","content":[{"type":"input_text","text":"x"}]}`},
		{"results", []*model.Message{{Role: "tool", Parts: []model.Part{{ToolResult: &model.ToolResult{CallID: "i", Content: "one"}}, {ToolResult: &model.ToolResult{CallID: "j"}},
			{ToolResult: &model.ToolResult{CallID: "k", Content: "see", Images: []model.Image{png}}}, {ToolResult: &model.ToolResult{CallID: "l", Images: []model.Image{png}}}}}},
			`{"type":"function_call_output","call_id":"i","output":"one"},{"type":"function_call_output","call_id":"j","output":""},` +
				`{"type":"function_call_output","call_id":"k","output":[{"type":"input_text","text":"see"},{"type":"input_image","image_url":"data:image/png;base64,AAAA"}]},` +
				`{"type":"function_call_output","call_id":"l","output":[{"type":"input_image","image_url":"data:image/png;base64,AAAA"}]}`},
		{"none", nil, ``},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			want := `{"model":"m","stream":true,"store":false,"include":["reasoning.encrypted_content"],"instructions":"be brief","input":[` + c.want + `]}`
			if d := cmp.Diff(want, sent(t, testClient(t, nil), &model.Request{System: "be brief", Messages: c.ms})); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestParameters(t *testing.T) {
	c := testClient(t, func(cfg *Config) {
		cfg.Sampling = map[string]any{"temperature": 0.0, "effort": "low", "max_tokens": 100}
		cfg.CacheKey, cfg.Summary, cfg.NoReasoning = "s-1", "auto", true
	})
	cases := []struct {
		name string
		req  model.Request
		want string
	}{
		{"as configured", model.Request{}, `"max_output_tokens":100,`},
		{"a smaller limit", model.Request{MaxOutput: 7}, `"max_output_tokens":7,`},
		{"a larger limit", model.Request{MaxOutput: 700}, `"max_output_tokens":100,`},
		{"an output that strict mode takes", model.Request{Output: []byte(`{"type":"object","properties":{"a":{"type":"array","items":{"type":"string"}}},"required":["a"],"additionalProperties":false}`)},
			`"max_output_tokens":100,"text":{"format":{"type":"json_schema","name":"answer","strict":true,"schema":{"type":"object","properties":{"a":{"type":"array","items":{"type":"string"}}},"required":["a"],"additionalProperties":false}}},`},
		{"one that it doesn't", model.Request{Output: []byte(`{"type":"object"}`)}, `"max_output_tokens":100,"text":{"format":{"type":"json_schema","name":"answer","strict":false,"schema":{"type":"object"}}},`},
		{"tools", model.Request{Tools: []model.ToolSpec{{Name: "f", Description: "d", Schema: []byte(`{"type": "object"}`)}, {Name: "g"}}},
			`"max_output_tokens":100,"tools":[{"type":"function","name":"f","description":"d","strict":false,"parameters":{"type": "object"}},{"type":"function","name":"g","strict":false,"parameters":{"type":"object","properties":{}}}],`},
	}
	for _, k := range cases {
		want := `{"model":"m","stream":true,"store":false,"prompt_cache_key":"s-1","temperature":0,"reasoning":{"effort":"low","summary":"auto"},` + k.want + `"input":[]}`
		if d := cmp.Diff(want, sent(t, c, &k.req)); d != "" {
			t.Errorf("%s: %s", k.name, d)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	for name, value := range map[string]any{"thinking_budget": 100, "top_k": 1, "seed": 1, "stop": []string{"x"}, "temprature": 1, "temperature": nil, "max_tokens": 0} {
		_, err := New(Config{BaseURL: "http://host/v1", Model: "m", Sampling: map[string]any{name: value}})
		if err == nil || !strings.Contains(err.Error(), `"`+name+`"`) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := New(Config{BaseURL: "http://host/v1"}); err == nil || !strings.Contains(err.Error(), "responses API") {
		t.Error(err)
	}
}

// TestKeptEncodingIsTheFreshOne edits a history at random and compares what a
// client with a memory sends with what a new one sends.
func TestKeptEncodingIsTheFreshOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kept := testClient(t, nil)
		var history []*model.Message
		for range rapid.IntRange(1, 10).Draw(t, "turns") {
			keep := rapid.IntRange(0, len(history)).Draw(t, "keep")
			history = append([]*model.Message{}, history[:keep]...)
			for range rapid.IntRange(0, 3).Draw(t, "new") {
				history = append(history, rapid.SampledFrom([]*model.Message{
					user("u"), assistant(text1("t")), assistant(sealed("r", "rs", "e", origin), call1("i", "f", "{}")), user(""), assistant(sealed("r", "rs", "e", origin)),
				}).Draw(t, "message"))
			}
			req := &model.Request{System: rapid.SampledFrom([]string{"", "s", "t"}).Draw(t, "system"), Messages: history}
			if got, want := sent(t, kept, req), sent(t, testClient(t, nil), req); got != want {
				t.Fatalf("kept:\n%s\nfresh:\n%s", got, want)
			}
		}
	})
}
