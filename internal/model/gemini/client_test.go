package gemini

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/model/modeltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testKey = "AIza-test-0123456789"

func newClient(t testing.TB, url string, change func(*Config)) *Client {
	t.Helper()
	cfg := Config{BaseURL: url, Model: "gemini-x", APIKey: testKey, APIKeyEnv: "TEST_KEY", Name: "test", StallTimeout: 5 * time.Second}
	if change != nil {
		change(&cfg)
	}
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func user(s string) *model.Message {
	return &model.Message{Role: "user", Parts: []model.Part{text1(s)}}
}

func text1(s string) model.Part { return model.Part{Text: &s} }

// results answers calls as the loop does, with a message for each.
func results(calls []*model.ToolCall) []*model.Message {
	var out []*model.Message
	for _, c := range calls {
		out = append(out, tool(result1(c.ID, c.Name, "result of "+c.Name)))
	}
	return out
}

func tool(ps ...model.Part) *model.Message { return &model.Message{Role: "tool", Parts: ps} }

func result1(id, name, content string) model.Part {
	return model.Part{ToolResult: &model.ToolResult{CallID: id, Name: name, Content: content}}
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

var (
	richText  = "Größe 北 😀 – ok\n\"quoted\" \\ end"
	richCalls = []modeltest.Call{{ID: "a", Name: "read", Args: `{"path":"ä/北.txt"}`}, {ID: "b", Name: "list", Args: `{}`}, {ID: "c", Name: "read", Args: `{"n":[1,{"y":null}],"path":"x"}`}}
	richTurn  = modeltest.Turn{Text: richText, Reasoning: "think 思考", Calls: richCalls, Usage: &modeltest.Usage{Prompt: 1000, Cached: 800, Completion: 100, Reasoning: 60}}
)

// TestTolerance plays one rich turn through everything that a server may do to it
// without changing what it means.
func TestTolerance(t *testing.T) {
	type faults = []modeltest.Fault
	for _, c := range []struct {
		name    string
		faults  faults
		noUsage bool
		note    string
	}{
		{"plain", nil, false, ""},
		{"bytes one by one", faults{modeltest.SplitEvery(1)}, false, ""}, // I134
		{"crlf", faults{modeltest.LineEnd("\r\n"), modeltest.SplitEvery(7)}, false, ""},
		{"no space", faults{modeltest.NoSpace()}, false, ""},
		{"comments", faults{modeltest.Comments()}, false, ""},
		{"two final frames", faults{modeltest.TwoFinals()}, false, ""},
		{"no usage", faults{modeltest.NoUsage()}, true, ""}, // I177
		{"early usage", faults{modeltest.EarlyUsage()}, false, ""},
		{"empty candidates", faults{modeltest.EmptyChoices()}, false, ""},
		{"nulls", faults{modeltest.Nulls()}, false, ""},
		{"gzip", faults{modeltest.Gzip()}, false, ""},
		{"json body", faults{modeltest.JSONBody()}, false, "one JSON body"},
		{"json body packed", faults{modeltest.JSONBody(), modeltest.Gzip()}, false, "one JSON body"},
	} {
		t.Run(c.name, func(t *testing.T) {
			turn := richTurn
			turn.Faults = c.faults
			s := modeltest.New(t, turn)
			var got collect
			resp, err := newClient(t, s.URL, nil).Stream(t.Context(), request(user("go")), got.add)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(richCalls, calls(resp.Message)); d != "" {
				t.Errorf("calls: %s", d)
			}
			if resp.Message.Text() != richText || got.text.String() != richText {
				t.Errorf("text %q, streamed %q", resp.Message.Text(), got.text.String())
			}
			if reasoning(resp.Message) != richTurn.Reasoning || got.reasoning.String() != richTurn.Reasoning {
				t.Errorf("reasoning %q, streamed %q", reasoning(resp.Message), got.reasoning.String())
			}
			if n := len(resp.Message.Parts); n != 5 {
				t.Errorf("%d parts, want a thought, a text and three calls", n)
			}
			if resp.Finish != model.FinishToolCalls || resp.Model != "scripted-1" {
				t.Errorf("finish %q, model %q", resp.Finish, resp.Model)
			}
			if (c.note == "") != (resp.Note == "") || !strings.Contains(resp.Note, c.note) {
				t.Errorf("note %q, want %q", resp.Note, c.note)
			}
			checkUsage(t, resp.Usage, c.noUsage)
		})
	}
}

// I177: each frame counts all so far, the last one counts, and none is unknown.
func checkUsage(t *testing.T, u *model.Usage, none bool) {
	t.Helper()
	n := func(i int64) *int64 { return &i }
	want := &model.Usage{Input: n(200), Output: n(100), CacheRead: n(800), Reasoning: n(60)}
	if none {
		want = nil
	}
	if d := cmp.Diff(want, u); d != "" {
		t.Errorf("usage: %s", d)
	}
}

// TestRequest checks the request line and headers of a call: the key is in its header
// and not in the URL.
func TestRequest(t *testing.T) {
	s := modeltest.NewWith(t, modeltest.Options{APIKey: testKey, Turns: []modeltest.Turn{{Text: "x"}, {Text: "x"}}})
	for _, name := range []string{"gemini-x", "tunedModels/mine"} {
		c := newClient(t, s.URL+"?version=2", func(cfg *Config) { cfg.Model, cfg.Headers = name, map[string]string{"X-Team": "blue-team"} })
		if _, err := c.Stream(t.Context(), request(user("go")), nil); err != nil {
			t.Fatal(err)
		}
		if c.Name() != "test/"+name {
			t.Errorf("name %q", c.Name())
		}
	}
	for i, want := range []string{"/v1/models/gemini-x:streamGenerateContent?version=2&alt=sse", "/v1/tunedModels/mine:streamGenerateContent?version=2&alt=sse"} {
		r := s.Requests()[i]
		if got := strings.TrimPrefix(mustURL(t, i), "http://server.test"); got != want {
			t.Errorf("URL %q, want %q", got, want)
		}
		if r.Header.Get("X-Goog-Api-Key") != testKey || r.Header.Get("Authorization") != "" || r.Header.Get("X-Team") != "blue-team" {
			t.Errorf("headers %v", r.Header)
		}
		if strings.Contains(string(r.Body), testKey) {
			t.Error("the key is in the body")
		}
	}
}

// mustURL returns the URL that the client of TestRequest posts to.
func mustURL(t *testing.T, i int) string {
	t.Helper()
	var url string
	c := newClient(t, "http://server.test/v1?version=2", func(cfg *Config) {
		cfg.Model = []string{"gemini-x", "tunedModels/mine"}[i]
		cfg.HTTPClient = answerTo(&url, frames(stop))
	})
	if _, err := c.Stream(t.Context(), request(user("go")), nil); err != nil {
		t.Fatal(err)
	}
	return url
}

func TestSession(t *testing.T) {
	s := modeltest.NewWith(t, modeltest.Options{APIKey: testKey, NeedReasoning: true, Turns: []modeltest.Turn{
		{Reasoning: "first", Calls: richCalls},
		{Text: "half", Reasoning: "second", Calls: []modeltest.Call{{ID: "d", Name: "list", Args: `{"broken`}, {Name: "no such\ntool", Args: `{"x":1}`}}, Expect: "result of read"},
		{Text: "done", Reasoning: "third", Expect: "result of no such"},
		{Text: "again", Expect: "more"},
	}})
	c := newClient(t, s.URL, nil)
	history := []*model.Message{user("go")}
	for range 3 {
		resp, err := c.Stream(t.Context(), request(history...), nil)
		if err != nil {
			t.Fatal(err)
		}
		history = append(append(history, resp.Message), results(resp.Message.ToolCalls())...)
	}
	if _, err := c.Stream(t.Context(), request(append(history, user("more"))...), nil); err != nil {
		t.Fatal(err)
	}
	last := s.Requests()[3]
	var roles []string
	for _, m := range last.Messages {
		roles = append(roles, m.Role)
	}
	if d := cmp.Diff([]string{"system", "user", "assistant", "tool", "tool", "tool", "assistant", "tool", "tool", "assistant", "user"}, roles); d != "" {
		t.Error(d)
	}
	if got := last.Messages[6].ToolCalls; got[1].ID != "" || got[1].Function.Name != "no_such_tool" || got[0].ID != "d" || got[0].Function.Arguments != `{"invalid_arguments":"{\"broken"}` {
		t.Errorf("calls sent back as %+v", got)
	}
	if len(last.Params) != 0 || len(last.Tools) != 2 {
		t.Errorf("other members %v, %d tools; want none and 2", last.Params, len(last.Tools))
	}
	if n := c.enc.history.Encoded(); n != 7 {
		t.Errorf("%d contents encoded, want each of the 7 once", n)
	}
}

// I153: thirty turns against a server that wants the signature of every step back,
// with a call that is cut and asked again.
func TestSignaturesSurviveALongSession(t *testing.T) {
	const turns = 30
	o := modeltest.Options{NeedReasoning: true, SealKey: "k"}
	for i := range turns {
		turn := modeltest.Turn{Reasoning: "because", Calls: []modeltest.Call{{ID: fmt.Sprint("c", i), Name: "read", Args: "{}"}, {ID: fmt.Sprint("d", i), Name: "list", Args: "{}"}}}
		if i == turns/2 {
			cut := turn
			cut.Faults = []modeltest.Fault{modeltest.CutAt(700)}
			o.Turns = append(o.Turns, cut)
		}
		o.Turns = append(o.Turns, turn)
	}
	s := modeltest.NewWith(t, o)
	c := newClient(t, s.URL, nil)
	history := []*model.Message{user("go")}
	cuts := 0
	for s.Left() > 0 {
		resp, err := c.Stream(t.Context(), request(history...), nil)
		if err != nil {
			if asError(t, err).Kind != model.ErrCut {
				t.Fatal(err)
			}
			cuts++
			continue
		}
		history = append(append(history, resp.Message), results(resp.Message.ToolCalls())...)
	}
	if cuts != 1 || len(history) != 1+3*turns || c.enc.history.Encoded() != 1+2*(turns-1) {
		t.Errorf("%d cuts, %d messages, %d encoded", cuts, len(history), c.enc.history.Encoded())
	}
}

// TestDeltasAreNotHeldBack waits with every frame until the one before was seen.
func TestDeltasAreNotHeldBack(t *testing.T) {
	seen := make(chan string, 1)
	s := modeltest.New(t, modeltest.Turn{Text: "abcdefghi", Before: func(i int) {
		if i > 0 {
			select {
			case <-seen:
			case <-time.After(10 * time.Second):
				t.Errorf("frame %d was not delivered before frame %d", i-1, i)
			}
		}
	}})
	if _, err := newClient(t, s.URL, nil).Stream(t.Context(), request(user("go")), func(d model.Delta) { seen <- d.Text }); err != nil {
		t.Error(err)
	}
}

func TestContextEndsAStream(t *testing.T) {
	s := modeltest.New(t, modeltest.Turn{Text: strings.Repeat("x", 500), Faults: []modeltest.Fault{modeltest.StallAt(400)}})
	ctx, cancel := context.WithCancel(t.Context())
	resp, err := newClient(t, s.URL, nil).Stream(ctx, request(user("go")), func(model.Delta) { cancel() })
	if resp != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("%v %v", resp, err)
	}
}
