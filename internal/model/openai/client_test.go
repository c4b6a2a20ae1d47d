package openai

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

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

// reasoning is that of a reply, from whichever model.
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

var (
	richText  = "Größe 北 😀 – ok\n\"quoted\" \\ end"
	richTurn  = modeltest.Turn{Text: richText, Reasoning: "think 思考", Calls: richCalls, Usage: &modeltest.Usage{Prompt: 1000, Cached: 800, Completion: 10, Reasoning: 4}}
	richCalls = []modeltest.Call{{ID: "a", Name: "read", Args: `{"path":"ä/北.txt"}`}, {ID: "b", Name: "list", Args: `{}`}, {ID: "c", Name: "read", Args: `{"path":"x","n":[1,{"y":null}]}`}}
)

// TestTolerance plays one rich turn through everything that a server may do to it
// without changing what it means.
func TestTolerance(t *testing.T) {
	type faults = []modeltest.Fault
	cases := []struct {
		name    string
		faults  faults
		noUsage bool
		note    string
	}{
		{"I174 plain", nil, false, ""},
		{"I134 bytes one by one", faults{modeltest.SplitEvery(1)}, false, ""},
		{"I136 crlf", faults{modeltest.LineEnd("\r\n"), modeltest.SplitEvery(7)}, false, ""},
		{"I136 cr", faults{modeltest.LineEnd("\r")}, false, ""},
		{"I136 no space", faults{modeltest.NoSpace()}, false, ""},
		{"I136 comments", faults{modeltest.Comments()}, false, ""},
		{"missing index", faults{modeltest.MissingIndex()}, false, ""},
		{"missing index, whole calls", faults{modeltest.MissingIndex(), modeltest.WholeCalls()}, false, ""},
		{"I138 zero index, interleaved", faults{modeltest.ZeroIndex()}, false, ""},
		{"I140 zero index, whole calls", faults{modeltest.WholeCallsAtZero()}, false, ""},
		{"arguments as an object", faults{modeltest.ArgsObject()}, false, ""},
		{"I141 two final frames", faults{modeltest.TwoFinals()}, false, "taken once"},
		{"no finish", faults{modeltest.NoFinish()}, false, "no finish reason"},
		{"no done", faults{modeltest.NoDone()}, false, ""},
		{"I177 no usage", faults{modeltest.NoUsage()}, true, ""},
		{"early usage", faults{modeltest.EarlyUsage()}, false, ""},
		{"empty choices", faults{modeltest.EmptyChoices()}, false, ""},
		{"nulls", faults{modeltest.Nulls()}, false, ""},
		{"gzip", faults{modeltest.Gzip()}, false, ""},
		{"json body", faults{modeltest.JSONBody()}, false, "one JSON body"},
		{"json body packed", faults{modeltest.JSONBody(), modeltest.Gzip()}, false, "one JSON body"},
		{"json body with arguments as objects", faults{modeltest.JSONBody(), modeltest.ArgsObject()}, false, "one JSON body"},
		{"reasoning", faults{modeltest.ReasoningField("reasoning")}, false, ""},
		{"finish says stop", nil, false, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			turn := richTurn
			turn.Faults = c.faults
			if c.name == "finish says stop" {
				turn.Finish = "stop"
			}
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
			checkUsage(t, resp.Usage, c.noUsage)
		})
	}
}

func checkUsage(t *testing.T, u *model.Usage, none bool) {
	t.Helper()
	if none || u == nil {
		if !none || u != nil {
			t.Errorf("usage %v", u)
		}
		return
	}
	in, out, cached, thought := int64(200), int64(10), int64(800), int64(4)
	if d := cmp.Diff(&model.Usage{Input: &in, Output: &out, CacheRead: &cached, Reasoning: &thought}, u); d != "" {
		t.Errorf("usage: %s", d)
	}
}

func TestSession(t *testing.T) {
	s := modeltest.NewWith(t, modeltest.Options{APIKey: testKey, NeedReasoning: true, Turns: []modeltest.Turn{
		{Reasoning: "first", Calls: richCalls},
		{Text: "half", Reasoning: "second", Calls: []modeltest.Call{{ID: "d", Name: "no such\ntool", Args: `{"broken`}}, Expect: "result of c"},
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
	if _, err := c.Stream(t.Context(), request(append(history, user("more"))...), nil); err != nil {
		t.Fatal(err)
	}
	last := s.Requests()[3]
	if n := len(last.Messages); n != 10 {
		t.Errorf("%d messages in the last request, want 10", n)
	}
	var params []string
	for name := range last.Params {
		params = append(params, name)
	}
	if len(params) != 2 || len(last.Tools) != 2 {
		t.Errorf("other members %v, %d tools; want only stream and stream_options, 2 tools", params, len(last.Tools))
	}
	if c.enc.history.Encoded() != 7 {
		t.Errorf("%d messages encoded, want each of the 7 once", c.enc.history.Encoded())
	}
}

// TestReasoningSurvivesALongSession plays thirty turns against a server that
// wants the reasoning of every tool turn back, with a call that is cut and asked
// again (I153).
func TestReasoningSurvivesALongSession(t *testing.T) {
	const turns = 30
	o := modeltest.Options{NeedReasoning: true}
	for i := range turns {
		turn := modeltest.Turn{Reasoning: "because", Calls: []modeltest.Call{{ID: fmt.Sprint("c", i), Name: "read", Args: "{}"}}}
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
		history = append(history, resp.Message, results(resp.Message.ToolCalls()))
	}
	if cuts != 1 || len(history) != 1+2*turns || c.enc.history.Encoded() != len(history)-2 {
		t.Errorf("%d cuts, %d messages, %d encoded", cuts, len(history), c.enc.history.Encoded())
	}
}

// TestNoReasoningIsSentWhereNoneCame plays a session with a model that doesn't reason,
// and an endpoint that refuses the field, an empty one included: no request names it
// (I153).
func TestNoReasoningIsSentWhereNoneCame(t *testing.T) {
	o := modeltest.Options{RefuseReasoning: true}
	for i := range 6 {
		o.Turns = append(o.Turns, modeltest.Turn{Text: "I read.", Calls: []modeltest.Call{{ID: fmt.Sprint("c", i), Name: "read", Args: "{}"}}})
	}
	o.Turns[3].Faults = []modeltest.Fault{modeltest.Nulls()} // its reasoning is null, which is none
	s := modeltest.NewWith(t, o)
	c := newClient(t, s.URL, nil)
	history := []*model.Message{user("go")}
	for s.Left() > 0 {
		resp, err := c.Stream(t.Context(), request(history...), nil)
		if err != nil {
			t.Fatal(err)
		}
		history = append(history, resp.Message, results(resp.Message.ToolCalls()))
	}
	for i, r := range s.Requests() {
		if strings.Contains(string(r.Body), "reasoning") {
			t.Errorf("request %d: %s", i, r.Body)
		}
	}
}

// TestReasoningIsSentAsTheEndpointWantsIt has the endpoint refuse a request for the
// reasoning in it, or for lack of it: the next attempt is right, and so are those
// after it (I153).
func TestReasoningIsSentAsTheEndpointWantsIt(t *testing.T) {
	why, id, seal := "hm", "x", &model.Seal{Origin: "openai:test/m1"}
	plain := func(ps ...model.Part) []*model.Message {
		ps = append(ps, model.Part{ToolCall: &model.ToolCall{ID: id, Name: "read", Args: "{}"}})
		return []*model.Message{user("go"), {Role: "assistant", Parts: ps}, results([]*model.ToolCall{{ID: id}})}
	}
	for name, c := range map[string]struct {
		history       []*model.Message
		message       string
		need, refuse  bool
		first, second model.ErrorKind // "" for success
	}{
		"refused by name":            {plain(model.Part{Reasoning: &why, Seal: seal}), `{"error":{"message":"property 'reasoning_content' is unsupported"}}`, false, true, model.ErrReplay, ""},
		"refused by place":           {plain(model.Part{Reasoning: &why, Seal: seal}), `{"detail":[{"type":"extra_forbidden","loc":["body","messages",2,"assistant","reasoning_content"]}]}`, false, true, model.ErrReplay, ""},
		"missed":                     {plain(), `{"error":{"message":"Missing reasoning_content field in the assistant message at message index 1"}}`, true, false, model.ErrReplay, ""},
		"refused though none was in": {plain(), `{"error":{"message":"reasoning_content is bad"}}`, false, true, model.ErrRequest, ""},
	} {
		refused := modeltest.Turn{Faults: []modeltest.Fault{modeltest.Status(400, c.message)}}
		lenient := modeltest.NewWith(t, modeltest.Options{Turns: []modeltest.Turn{refused}})
		strict := modeltest.NewWith(t, modeltest.Options{NeedReasoning: c.need, RefuseReasoning: c.refuse, Turns: []modeltest.Turn{{Text: "ok", Reasoning: "new"}, {Text: "ok"}}})
		hc := &http.Client{Transport: &switching{to: []string{lenient.URL, strict.URL, strict.URL}}}
		cl := newClient(t, lenient.URL, func(cfg *Config) { cfg.HTTPClient = hc })
		for i, want := range []model.ErrorKind{c.first, c.second, ""} {
			_, err := cl.Stream(t.Context(), request(c.history...), nil)
			if want == "" && err != nil || want != "" && asError(t, err).Kind != want {
				t.Errorf("%s: attempt %d: %v, want %q", name, i+1, err, want)
			}
		}
		hc.CloseIdleConnections()
	}
}

// switching sends each request to the next server.
type switching struct {
	http.Transport
	to []string
}

func (s *switching) RoundTrip(r *http.Request) (*http.Response, error) {
	u, err := url.Parse(s.to[0])
	if err != nil {
		return nil, err
	}
	s.to = s.to[1:]
	r = r.Clone(r.Context())
	r.URL.Host = u.Host
	return s.Transport.RoundTrip(r)
}

// TestDeltasAreNotHeldBack fails by the stall limit if a delta waits for more
// bytes: the server writes a frame only when the one before has been seen.
func TestDeltasAreNotHeldBack(t *testing.T) {
	for name, faults := range map[string][]modeltest.Fault{"plain": nil, "gzip": {modeltest.Gzip()}, "cr": {modeltest.LineEnd("\r")}} {
		t.Run(name, func(t *testing.T) {
			seen := make(chan string, 1)
			turn := modeltest.Turn{Text: "abcdefghi", Faults: faults, Before: func(i int) {
				if i >= 2 && i <= 4 { // frame 0 has no text
					select {
					case <-seen:
					case <-time.After(10 * time.Second):
						t.Errorf("frame %d was not delivered before frame %d", i-1, i)
					}
				}
			}}
			s := modeltest.New(t, turn)
			if _, err := newClient(t, s.URL, nil).Stream(t.Context(), request(user("go")), func(d model.Delta) { seen <- d.Text }); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestContextEndsAStream(t *testing.T) {
	for name, fault := range map[string]modeltest.Fault{"before headers": modeltest.StallHeaders(), "in the stream": modeltest.StallAt(400)} {
		t.Run(name, func(t *testing.T) {
			s := modeltest.New(t, modeltest.Turn{Text: strings.Repeat("x", 500), Faults: []modeltest.Fault{fault}})
			ctx, cancel := context.WithCancel(t.Context())
			timer := time.AfterFunc(50*time.Millisecond, cancel)
			defer timer.Stop()
			start := time.Now()
			resp, err := newClient(t, s.URL, nil).Stream(ctx, request(user("go")), nil)
			if resp != nil || !errors.Is(err, context.Canceled) {
				t.Errorf("%v %v", resp, err)
			}
			if d := time.Since(start); d > 2*time.Second {
				t.Errorf("took %v", d)
			}
		})
	}
}
