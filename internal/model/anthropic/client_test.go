package anthropic

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/model/modeltest"
	"github.com/abhed/abhed/internal/strictjson"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	testKey = "sk-ant-test-0123456789"
	origin  = "anthropic:test/m1" // of the seals of newClient's clients
	nowhere = "http://server.test"
)

func newClient(t rapid.TB, url string, change func(*Config)) *Client {
	t.Helper()
	cfg := Config{BaseURL: url, Model: "m1", APIKey: testKey, APIKeyEnv: "TEST_KEY", Name: "test", StallTimeout: 5 * time.Second}
	if change != nil {
		change(&cfg)
	}
	if url == nowhere && cfg.HTTPClient == nil {
		cfg.HTTPClient = answerText("") // reading the system's authorities takes long
	}
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if real, ok := t.(testing.TB); ok { // rapid's has no Cleanup, and its clients no connections
		real.Cleanup(c.Close)
	}
	return c
}

func user(s string) *model.Message { return &model.Message{Role: "user", Parts: []model.Part{say(s)}} }

func assistant(ps ...model.Part) *model.Message {
	return &model.Message{Role: "assistant", Parts: ps}
}

func say(s string) model.Part { return model.Part{Text: &s} }

// thought is thinking with a signature; an empty one is none.
func thought(s, signature string) model.Part {
	p := model.Part{Reasoning: &s}
	if signature != "" {
		p.Seal = &model.Seal{Origin: origin, Kind: "thinking", Data: signature}
	}
	return p
}

func redacted(data string) model.Part {
	return model.Part{Seal: &model.Seal{Origin: origin, Kind: "redacted_thinking", Data: data}}
}

func call1(id, name, args string) model.Part {
	return model.Part{ToolCall: &model.ToolCall{ID: id, Name: name, Args: args}}
}

func result1(id, content string) model.Part {
	return model.Part{ToolResult: &model.ToolResult{CallID: id, Content: content}}
}

func tool(ps ...model.Part) *model.Message { return &model.Message{Role: "tool", Parts: ps} }

func results(calls []*model.ToolCall) *model.Message {
	m := tool()
	for _, c := range calls {
		m.Parts = append(m.Parts, result1(c.ID, "result of "+c.ID))
	}
	return m
}

func request(ms ...*model.Message) *model.Request {
	return &model.Request{System: "be brief", Messages: ms, Tools: []model.ToolSpec{
		{Name: "read", Description: "reads", Schema: []byte(`{"type":"object","properties":{"path":{"type":"string"}}}`)}, {Name: "list"}}}
}

// collect gathers the deltas.
type collect struct{ text, reasoning strings.Builder }

func (c *collect) add(d model.Delta) {
	c.text.WriteString(d.Text)
	c.reasoning.WriteString(d.Reasoning)
}

func reasoning(m *model.Message) string {
	out := ""
	for _, p := range m.Parts {
		if p.Reasoning != nil {
			out += *p.Reasoning
		}
	}
	return out
}

func calls(m *model.Message) []modeltest.Call {
	var out []modeltest.Call
	for _, c := range m.ToolCalls() {
		out = append(out, modeltest.Call{ID: c.ID, Name: c.Name, Args: c.Args})
	}
	return out
}

// asError fails the test unless err is an *Error without the key.
func asError(t testing.TB, err error) *model.Error {
	t.Helper()
	var me *model.Error
	if !errors.As(err, &me) {
		t.Fatalf("got %v, want an *Error", err)
	}
	if strings.Contains(me.Error()+me.Partial, testKey) {
		t.Errorf("the key is in %q", me)
	}
	if me.Endpoint == "" || me.Detail == "" {
		t.Errorf("no endpoint or detail: %#v", me)
	}
	return me
}

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

func answerText(s string) *http.Client {
	return answer(func(context.Context) io.Reader { return strings.NewReader(s) })
}

// streamBytes runs one call whose answer is read from body.
func streamBytes(t rapid.TB, body io.Reader, onDelta func(model.Delta)) (*model.Response, error) {
	t.Helper()
	c := newClient(t, nowhere, func(cfg *Config) {
		cfg.HTTPClient = answer(func(context.Context) io.Reader { return body })
	})
	return c.Stream(context.Background(), request(user("go")), onDelta)
}

// sent returns the body that c would send, and its note.
func sent(t rapid.TB, c *Client, req *model.Request) (body, note string) {
	t.Helper()
	parts, note, err := c.body(req)
	if err != nil {
		t.Fatal(err)
	}
	b := flat(parts)
	if err := strictjson.Check([]byte(b), strictjson.Options{MaxBytes: 1 << 30}); err != nil {
		t.Fatalf("the body is not strict JSON: %v\n%s", err, b)
	}
	return b, note
}

func flat(parts [][]byte) string {
	var b strings.Builder
	for _, p := range parts {
		b.Write(p)
	}
	return b.String()
}

// stream makes a stream of events; each is a JSON object whose type is also the name.
func stream(events ...string) string {
	var out strings.Builder
	for _, e := range events {
		if rest, ok := strings.CutPrefix(e, `{"type":"`); ok {
			name, _, _ := strings.Cut(rest, `"`)
			out.WriteString("event: " + name + "\n")
		}
		out.WriteString("data: " + e + "\n\n")
	}
	return out.String()
}

const (
	msgStart = `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-x","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":12,"cache_creation_input_tokens":1000,"cache_read_input_tokens":0,"output_tokens":1}}}`
	msgStop  = `{"type":"message_stop"}`
)

func blockStart(i int, block string) string {
	return fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, i, block)
}

func blockDelta(i int, d string) string {
	return fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":%s}`, i, d)
}

func blockStop(i int) string { return fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, i) }

func textDelta(i int, s string) string {
	return blockDelta(i, `{"type":"text_delta","text":"`+s+`"}`)
}

// jsonDelta takes a piece of the input as it stands within a JSON string.
func jsonDelta(i int, s string) string {
	return blockDelta(i, `{"type":"input_json_delta","partial_json":"`+s+`"}`)
}

func ending(reason string) string {
	return `{"type":"message_delta","delta":{"stop_reason":"` + reason + `","stop_sequence":null},"usage":{"output_tokens":30}}`
}
