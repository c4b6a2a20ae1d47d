package gemini

import (
	"fmt"
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

func thought(s string) model.Part { return model.Part{Reasoning: &s} }

func call1(id, name, args string) model.Part {
	return model.Part{ToolCall: &model.ToolCall{ID: id, Name: name, Args: args}}
}

// sealed adds a seal of the test client's own origin.
func sealed(p model.Part, data, id string) model.Part {
	p.Seal = &model.Seal{Origin: "gemini:test/gemini-x", Data: data, ID: id}
	return p
}

// foreign adds a seal of another origin.
func foreign(p model.Part, origin string) model.Part {
	p.Seal = &model.Seal{Origin: origin, Data: "FOREIGN", ID: "FOREIGN"}
	return p
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

func testClient(t rapid.TB, change func(*Config)) *Client {
	t.Helper()
	cfg := Config{BaseURL: "http://server.test/v1beta", Model: "gemini-x", Name: "test"}
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
	u := user("u")
	const sentU = `{"role":"user","parts":[{"text":"u"}]},`
	picture := model.Image{MediaType: "image/png", Data: "AAAA"}
	bad := result1("i", "f", "no")
	bad.ToolResult.IsError = true
	pictured := result1("i", "f", "see")
	pictured.ToolResult.Images = []model.Image{picture, {MediaType: "image/jpeg", Data: "BBBB"}}
	const png, jpeg = `{"inlineData":{"mimeType":"image/png","data":"AAAA"}}`, `{"inlineData":{"mimeType":"image/jpeg","data":"BBBB"}}`
	for _, c := range []struct {
		name string
		ms   []*model.Message
		want string
	}{
		{"user", []*model.Message{user("a\"\n\x00é😀")}, `{"role":"user","parts":[{"text":"a\"\n\u0000é😀"}]}`},
		{"user parts", []*model.Message{{Role: "user", Parts: []model.Part{text1("a"), text1(""), {Image: &picture}, text1("b")}}}, `{"role":"user","parts":[{"text":"a"},` + png + `,{"text":"b"}]}`},
		{"bad UTF-8", []*model.Message{user("a\xffb")}, `{"role":"user","parts":[{"text":"a` + "\ufffd" + `b"}]}`},
		{"empty user", []*model.Message{user(""), user("x"), user("y")}, `{"role":"user","parts":[{"text":"x"}]},{"role":"user","parts":[{"text":"y"}]}`},
		{"assistant texts", []*model.Message{u, assistant(thought("not sent"), text1("a"), text1(""), text1("b"))}, sentU + `{"role":"model","parts":[{"text":"a"},{"text":"b"}]}`},
		{"assistant with nothing to say", []*model.Message{assistant(thought("x")), user("y"), assistant()}, `{"role":"user","parts":[{"text":"y"}]}`},
		{"seals", []*model.Message{u, assistant(sealed(thought("t"), "S1", ""), sealed(text1("a"), "S2", ""), sealed(text1(""), "S3", ""), sealed(call1("i", "f", "{}"), "S4", ""))},
			sentU + `{"role":"model","parts":[{"text":"t","thought":true,"thoughtSignature":"S1"},{"text":"a","thoughtSignature":"S2"},{"text":"","thoughtSignature":"S3"},{"functionCall":{"name":"f","args":{}},"thoughtSignature":"S4"}]}`},
		{"seals of others (I156)", []*model.Message{u, assistant(foreign(thought("t"), "anthropic:a/m"), foreign(text1("a"), "gemini:other/gemini-x"), foreign(text1(""), "gemini:test/other"), foreign(call1("i", "f", "{}"), "openai-responses:o/m"))},
			sentU + `{"role":"model","parts":[{"text":"a"},{"functionCall":{"name":"f","args":{}}}]}`},
		{"invalid arguments and names", []*model.Message{u, assistant(call1("i", "a b/é", `{"x`), call1("j", "", ` [1]`), call1("k", "f", ""))},
			sentU + `{"role":"model","parts":[{"functionCall":{"name":"a_b___","args":{"invalid_arguments":"{\"x"}}},{"functionCall":{"name":"unnamed","args":{"invalid_arguments":" [1]"}}},{"functionCall":{"name":"f","args":{}}}]}`},
		{"results in the order of the calls", []*model.Message{u, assistant(call1("i", "f", `{"x": 1}`), sealed(call1("j", "g", "{}"), "", "given")), tool(result1("j", "g", "two")), tool(result1("i", "f", "one"))},
			sentU + `{"role":"model","parts":[{"functionCall":{"name":"f","args":{"x": 1}}},{"functionCall":{"id":"given","name":"g","args":{}}}]},` +
				`{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"one"}}},{"functionResponse":{"id":"given","name":"g","response":{"output":"two"}}}]}`},
		{"results in one message, out of order", []*model.Message{u, assistant(call1("i", "f", "{}"), call1("j", "g", "{}")), tool(result1("j", "g", "two"), result1("i", "f", "one")), user("more")},
			sentU + `{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}},{"functionCall":{"name":"g","args":{}}}]},` +
				`{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"one"}}},{"functionResponse":{"name":"g","response":{"output":"two"}}}]},{"role":"user","parts":[{"text":"more"}]}`},
		{"the result's name is the call's", []*model.Message{u, assistant(call1("i", "f g", "{}")), tool(result1("i", "", "x"))},
			sentU + `{"role":"model","parts":[{"functionCall":{"name":"f_g","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"name":"f_g","response":{"output":"x"}}}]}`},
		{"error and images", []*model.Message{u, assistant(call1("i", "f", "{}"), call1("j", "g", "{}")), tool(pictured), tool(result1("j", "g", ""))},
			sentU + `{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}},{"functionCall":{"name":"g","args":{}}}]},` +
				`{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"see"}}},` + png + `,` + jpeg + `,{"functionResponse":{"name":"g","response":{"output":""}}}]}`},
		{"error", []*model.Message{u, assistant(call1("i", "f", "{}")), tool(bad)},
			sentU + `{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"error":"no"}}}]}`},
		{"what the model said in two messages (I153)", []*model.Message{u, assistant(sealed(text1("cut"), "S1", "")), assistant(sealed(call1("i", "f", "{}"), "S2", "")), tool(result1("i", "f", "x"))},
			sentU + `{"role":"model","parts":[{"text":"cut","thoughtSignature":"S1"},{"functionCall":{"name":"f","args":{}},"thoughtSignature":"S2"}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"x"}}}]}`},
		{"none", nil, ``},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, system := range []string{"", "be \"brief\""} {
				want := `{"contents":[` + c.want + `]}`
				if system != "" {
					want = `{"systemInstruction":{"parts":[{"text":"be \"brief\""}]},"contents":[` + c.want + `]}`
				}
				if d := cmp.Diff(want, sent(t, testClient(t, nil), &model.Request{System: system, Messages: c.ms})); d != "" {
					t.Error(d)
				}
			}
		})
	}
}

func TestTools(t *testing.T) {
	c := testClient(t, nil)
	tools := []model.ToolSpec{{Name: "f", Description: "d", Schema: []byte(`{"type": "object"}`)}, {Name: "g"}}
	want := `{"tools":[{"functionDeclarations":[{"name":"f","description":"d","parametersJsonSchema":{"type": "object"}},{"name":"g","parametersJsonSchema":{"type":"object","properties":{}}}]}],"contents":[]}`
	if got := sent(t, c, &model.Request{Tools: tools}); got != want {
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

// TestKeptEncodingIsTheFreshOne edits a history at random and compares what a client
// with a memory sends with what a new one sends. Bodies handed out before must not
// change.
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
			for j := range rapid.IntRange(0, 4).Draw(t, "new") {
				id := fmt.Sprintf("%d_%d", i, j)
				history = append(history, rapid.SampledFrom([]*model.Message{
					user("u" + id), assistant(text1("t" + id)), assistant(thought("r"), call1(id, "f", "{}"), sealed(call1("b"+id, "g", "{}"), "S", "given")),
					tool(result1("b"+id, "g", "y")), tool(result1(id, "f", "x")), tool(result1("b"+id, "g", "y"), result1(id, "f", "x")), user(""), assistant(),
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

// session is a history of n turns with two calls of 2 kB results each, as the loop
// keeps it.
func session(n int) []*model.Message {
	ms := []*model.Message{user("go")}
	for i := range n {
		id := fmt.Sprint("call_", i)
		ms = append(ms, assistant(text1("I read the next file."), call1(id, "read", `{"path":"internal/a.go"}`), call1(id+"b", "read", `{"path":"internal/b.go"}`)),
			tool(result1(id, "read", strings.Repeat("some line of code\n", 110))), tool(result1(id+"b", "read", strings.Repeat("some line of code\n", 110))))
	}
	return ms
}

func TestALongSessionIsEncodedOnce(t *testing.T) {
	const turns = 500
	ms := session(turns)
	c := testClient(t, nil)
	for n := 1; n <= len(ms); n += 3 {
		if _, err := c.body(&model.Request{System: "s", Messages: ms[:n]}); err != nil {
			t.Fatal(err)
		}
	}
	if n := c.enc.history.Encoded(); n != 1+2*turns {
		t.Errorf("%d encodings for %d contents", n, 1+2*turns)
	}
}

// BenchmarkSession lays out every turn of a session. The time per turn must not grow
// with the session.
func BenchmarkSession(b *testing.B) {
	for _, turns := range []int{125, 500, 1000} {
		b.Run(fmt.Sprint(turns), func(b *testing.B) {
			ms := session(turns)
			for b.Loop() {
				c := testClient(b, nil)
				for n := 1; n <= len(ms); n += 3 {
					if _, err := c.body(&model.Request{System: "s", Messages: ms[:n]}); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(turns), "ns/turn")
		})
	}
}
