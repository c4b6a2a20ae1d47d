package responses

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/model/modeltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testKey = "sk-test-0123456789"

func newClient(t testing.TB, url string, change func(*Config)) *Client {
	t.Helper()
	cfg := Config{BaseURL: url, Model: "m1", APIKey: testKey, APIKeyEnv: "TEST_KEY", Name: "test", StallTimeout: 5 * time.Second}
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

// roundTrip answers requests without a network.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// streamBytes runs one call whose answer is read from body.
func streamBytes(t rapid.TB, body io.Reader, onDelta func(model.Delta)) (*model.Response, error) {
	t.Helper()
	hc := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return nil, err
		}
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(body), Request: r}, nil
	})}
	c, err := New(Config{BaseURL: "http://server.test/v1", Model: "m", HTTPClient: hc})
	if err != nil {
		t.Fatal(err)
	}
	return c.Stream(context.Background(), request(user("go")), onDelta)
}

func user(s string) *model.Message {
	return &model.Message{Role: "user", Parts: []model.Part{{Text: &s}}}
}

func results(calls []*model.ToolCall) *model.Message {
	m := &model.Message{Role: "tool"}
	for _, c := range calls {
		m.Parts = append(m.Parts, model.Part{ToolResult: &model.ToolResult{CallID: c.ID, Name: c.Name, Content: "result of " + c.ID}})
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
	s := ""
	for _, p := range m.Parts {
		if p.Reasoning != nil {
			s += *p.Reasoning
		}
	}
	return s
}

func calls(m *model.Message) []modeltest.Call {
	var out []modeltest.Call
	for _, c := range m.ToolCalls() {
		out = append(out, modeltest.Call{ID: c.ID, Name: c.Name, Args: c.Args})
	}
	return out
}

// asError fails the test unless err is an *Error without the key.
func asError(t rapid.TB, err error) *model.Error {
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

func num(n int64) *int64 { return &n }

var (
	richText  = "Größe 北 😀 – ok\n\"quoted\" \\ end"
	richCalls = []modeltest.Call{{ID: "a", Name: "read", Args: `{"path":"ä/北.txt"}`}, {ID: "b", Name: "list", Args: `{}`}, {ID: "c", Name: "read", Args: `{"path":"x","n":[1,{"y":null}]}`}}
	richTurn  = modeltest.Turn{Text: richText, Reasoning: "think 思考", Calls: richCalls, Usage: &modeltest.Usage{Prompt: 1000, Cached: 800, Completion: 10, Reasoning: 4}}
)

// TestTolerance plays one rich turn through what a server may do to it without
// changing what it means.
func TestTolerance(t *testing.T) {
	cases := []struct {
		name    string
		faults  []modeltest.Fault
		noUsage bool
		note    string
	}{
		{"I174 plain", nil, false, ""},
		{"I134 bytes one by one", []modeltest.Fault{modeltest.SplitEvery(1)}, false, ""},
		{"I136 crlf", []modeltest.Fault{modeltest.LineEnd("\r\n"), modeltest.SplitEvery(7)}, false, ""},
		{"I136 cr", []modeltest.Fault{modeltest.LineEnd("\r")}, false, ""},
		{"I136 no space", []modeltest.Fault{modeltest.NoSpace()}, false, ""},
		{"I136 comments", []modeltest.Fault{modeltest.Comments()}, false, ""},
		{"I138 output index 0 for all", []modeltest.Fault{modeltest.ZeroIndex()}, false, ""},
		{"whole calls", []modeltest.Fault{modeltest.WholeCalls()}, false, ""},
		{"I140 whole calls under index 0", []modeltest.Fault{modeltest.WholeCallsAtZero()}, false, ""},
		{"I141 two ends", []modeltest.Fault{modeltest.TwoFinals(), modeltest.NoUsage()}, true, ""},
		{"I177 no usage", []modeltest.Fault{modeltest.NoUsage()}, true, ""},
		{"gzip", []modeltest.Fault{modeltest.Gzip()}, false, ""},
		{"json body", []modeltest.Fault{modeltest.JSONBody()}, false, "one JSON body"},
		{"json body packed", []modeltest.Fault{modeltest.JSONBody(), modeltest.Gzip()}, false, "one JSON body"},
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
			if d := cmp.Diff(richCalls, calls(resp.Message)); d != "" {
				t.Errorf("calls: %s", d)
			}
			if resp.Message.Text() != richText || got.text.String() != richText {
				t.Errorf("text %q, streamed %q", resp.Message.Text(), got.text.String())
			}
			if reasoning(resp.Message) != richTurn.Reasoning || got.reasoning.String() != richTurn.Reasoning {
				t.Errorf("reasoning %q, streamed %q", reasoning(resp.Message), got.reasoning.String())
			}
			if resp.Finish != model.FinishToolCalls || resp.Model != "scripted-1" {
				t.Errorf("finish %q, model %q", resp.Finish, resp.Model)
			}
			if (c.note == "") != (resp.Note == "") || !strings.Contains(resp.Note, c.note) {
				t.Errorf("note %q, want %q", resp.Note, c.note)
			}
			want := &model.Usage{Input: num(200), Output: num(10), CacheRead: num(800), Reasoning: num(4)}
			if c.noUsage {
				want = nil
			}
			if d := cmp.Diff(want, resp.Usage); d != "" {
				t.Errorf("usage: %s", d)
			}
		})
	}
}

// TestSession plays several turns against a server that wants every reasoning item
// back as it was (I153, I154).
func TestSession(t *testing.T) {
	s := modeltest.NewWith(t, modeltest.Options{APIKey: testKey, NeedReasoning: true, Turns: []modeltest.Turn{
		{Reasoning: "first", Calls: richCalls},
		{Text: "half", Reasoning: "second 思", Calls: []modeltest.Call{{ID: "d", Name: "no such\ntool", Args: `{"broken`}}, Expect: "result of c"},
		{Text: "done", Expect: "result of d"},
		{Text: "again", Expect: "more"},
	}})
	c := newClient(t, s.URL, nil)
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
	// Another client, as after a resume, sends the same.
	if _, err := newClient(t, s.URL, nil).Stream(t.Context(), request(append(history, user("more"))...), nil); err != nil {
		t.Fatal(err)
	}
	last := s.Requests()[3]
	if n := len(last.Messages); n != 10 || last.Messages[0].Text() != "be brief" || *last.Messages[2].ReasoningContent != "first" {
		t.Errorf("%d messages in the last request, want 10: %+v", n, last.Messages)
	}
	var params []string
	for name := range last.Params {
		params = append(params, name)
	}
	if len(params) != 3 || len(last.Tools) != 2 {
		t.Errorf("other members %v, %d tools; want only stream, store and include, 2 tools", params, len(last.Tools))
	}
	if c.enc.history.Encoded() != 5 {
		t.Errorf("%d messages encoded, want each of the 5 once", c.enc.history.Encoded())
	}
}

// TestRefusedSealsAreDroppedOnce has the endpoint refuse the encrypted reasoning:
// one more attempt goes through without it, and none of it is sent again (I154).
func TestRefusedSealsAreDroppedOnce(t *testing.T) {
	first := modeltest.New(t, modeltest.Turn{Reasoning: "hm", Calls: richCalls[:1]})
	resp, err := newClient(t, first.URL, nil).Stream(t.Context(), request(user("go")), nil)
	if err != nil {
		t.Fatal(err)
	}
	history := []*model.Message{user("go"), resp.Message, results(resp.Message.ToolCalls())}
	s := modeltest.NewWith(t, modeltest.Options{SealKey: "another account", Turns: []modeltest.Turn{{}, {Reasoning: "new", Calls: richCalls[1:2]}, {Text: "done"}}})
	c := newClient(t, s.URL, nil)
	_, err = c.Stream(t.Context(), request(history...), nil)
	if me := asError(t, err); me.Kind != model.ErrReplay || !me.Retryable() {
		t.Fatal(err)
	}
	for range 2 {
		if resp, err = c.Stream(t.Context(), request(history...), nil); err != nil {
			t.Fatal(err)
		}
		history = append(history, resp.Message, results(resp.Message.ToolCalls()))
	}
	if m := s.Requests()[2].Messages; m[2].ReasoningContent != nil || m[4].ReasoningContent == nil || *m[4].ReasoningContent != "new" {
		t.Errorf("want the old reasoning dropped and the new sent: %+v", m)
	}
}

// TestForeignSealsAreNotSent resumes a session of another provider, and of another
// model (I156).
func TestForeignSealsAreNotSent(t *testing.T) {
	made := modeltest.New(t, modeltest.Turn{Reasoning: "hm", Text: "I read", Calls: richCalls[:1]})
	resp, err := newClient(t, made.URL, nil).Stream(t.Context(), request(user("go")), nil)
	if err != nil {
		t.Fatal(err)
	}
	if o := resp.Message.Parts[0].Seal.Origin; o != "openai-responses:test/m1" {
		t.Errorf("origin %q", o)
	}
	for name, change := range map[string]func(*Config){"provider": func(c *Config) { c.Name = "other" }, "model": func(c *Config) { c.Model = "m2" }} {
		s := modeltest.NewWith(t, modeltest.Options{SealKey: name, RefuseReasoning: true, Turns: []modeltest.Turn{{Text: "ok"}}})
		if _, err := newClient(t, s.URL, change).Stream(t.Context(), request(user("go"), resp.Message, results(resp.Message.ToolCalls())), nil); err != nil {
			t.Errorf("another %s: %v", name, err)
		}
	}
}

// TestModelWithoutEncryptedReasoning learns from the refusal that there is none.
func TestModelWithoutEncryptedReasoning(t *testing.T) {
	s := modeltest.New(t, modeltest.Turn{Faults: []modeltest.Fault{modeltest.Status(400, `{"error":{"message":"Encrypted content is not supported with this model.","type":"invalid_request_error","param":"include","code":null}}`)}}, modeltest.Turn{Text: "ok"})
	c := newClient(t, s.URL, nil)
	_, err := c.Stream(t.Context(), request(user("go")), nil)
	if me := asError(t, err); me.Kind != model.ErrReplay {
		t.Fatal(err)
	}
	if _, err := c.Stream(t.Context(), request(user("go")), nil); err != nil {
		t.Fatal(err)
	}
	if _, has := s.Requests()[1].Params["include"]; has {
		t.Error("include was sent again")
	}
}

// TestDeltasAreNotHeldBack fails by the stall limit if a delta waits for more
// bytes: the server writes an event only when the one before has been seen.
func TestDeltasAreNotHeldBack(t *testing.T) {
	seen := make(chan string, 1)
	s := modeltest.New(t, modeltest.Turn{Text: "abcdefghi", Before: func(i int) {
		if i >= 5 && i <= 7 { // the events before have no text
			select {
			case <-seen:
			case <-time.After(10 * time.Second):
				t.Errorf("event %d was not delivered before event %d", i-1, i)
			}
		}
	}})
	if _, err := newClient(t, s.URL, nil).Stream(t.Context(), request(user("go")), func(d model.Delta) { seen <- d.Text }); err != nil {
		t.Error(err)
	}
}

func TestContextEndsAStream(t *testing.T) {
	for name, fault := range map[string]modeltest.Fault{"before headers": modeltest.StallHeaders(), "in the stream": modeltest.StallAt(900)} {
		ctx, cancel := context.WithCancel(t.Context())
		s := modeltest.New(t, modeltest.Turn{Text: strings.Repeat("x", 500), Faults: []modeltest.Fault{fault}})
		timer := time.AfterFunc(50*time.Millisecond, cancel)
		start := time.Now()
		resp, err := newClient(t, s.URL, nil).Stream(ctx, request(user("go")), nil)
		if resp != nil || !errors.Is(err, context.Canceled) || time.Since(start) > 2*time.Second {
			t.Errorf("%s: %v %v after %v", name, resp, err, time.Since(start))
		}
		timer.Stop()
		cancel()
	}
}

func TestIDsStayUniqueOverASession(t *testing.T) {
	call := []modeltest.Call{{ID: "call_0", Name: "list", Args: "{}"}}
	s := modeltest.New(t, modeltest.Turn{Calls: call}, modeltest.Turn{Calls: call}, modeltest.Turn{Calls: call})
	c := newClient(t, s.URL, nil)
	history := []*model.Message{user("go")}
	seen := map[string]bool{}
	for i := range 3 {
		resp, err := c.Stream(t.Context(), request(history...), nil)
		if err != nil {
			t.Fatal(err)
		}
		id := resp.Message.ToolCalls()[0].ID
		if seen[id] || (i == 0) != (id == "call_0") {
			t.Errorf("turn %d: id %q", i, id)
		}
		seen[id] = true
		history = append(history, resp.Message, results(resp.Message.ToolCalls()))
	}
	if len(seen) != 3 {
		t.Error(fmt.Sprint(seen))
	}
}
