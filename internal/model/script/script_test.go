package script

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/abhed/abhed/internal/model"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func say(role model.Message, parts ...model.Part) *model.Message {
	role.Parts = parts
	return &role
}

func txt(s string) model.Part { return model.Part{Text: &s} }

func call(id string) model.Part {
	return model.Part{ToolCall: &model.ToolCall{ID: id, Name: "read", Args: "{}"}}
}

func result(id, content string) model.Part {
	return model.Part{ToolResult: &model.ToolResult{CallID: id, Name: "read", Content: content}}
}

var (
	user      = model.Message{Role: "user"}
	assistant = model.Message{Role: "assistant"}
	tool      = model.Message{Role: "tool"}
)

func TestPlays(t *testing.T) {
	n := int64(5)
	c := New([]Step{
		{Reasoning: "let me see", Text: "I  read\nit.", Calls: []Call{{Name: "read", Args: `{"path":"x"}`}, {ID: "own", Name: "list"}}, Usage: &model.Usage{Output: &n}},
		{Expect: "contents of x", Text: "Done."},
		{Text: "cut", Calls: []Call{{Name: "read"}}, Finish: model.FinishLength},
	})
	var text, reasoning []string
	onDelta := func(d model.Delta) {
		if d.Text != "" {
			text = append(text, d.Text)
		} else {
			reasoning = append(reasoning, d.Reasoning)
		}
	}
	history := []*model.Message{say(user, txt("go"))}
	r, err := c.Stream(t.Context(), &model.Request{Messages: history}, onDelta)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"I  ", "read\n", "it."}, text); d != "" {
		t.Error(d)
	}
	if strings.Join(reasoning, "") != "let me see" || r.Message.Text() != "I  read\nit." || r.Finish != model.FinishToolCalls || *r.Usage.Output != 5 {
		t.Errorf("%q %+v", reasoning, r)
	}
	want := []*model.ToolCall{{ID: "call_1_1", Name: "read", Args: `{"path":"x"}`}, {ID: "own", Name: "list", Args: "{}"}}
	if d := cmp.Diff(want, r.Message.ToolCalls()); d != "" {
		t.Error(d)
	}

	history = append(history, r.Message)
	wrong := append(history, say(tool, result("call_1_1", "contents of x"), result("own", "nothing")))
	var me *model.Error
	if _, err := c.Stream(t.Context(), &model.Request{Messages: wrong}, nil); !errors.As(err, &me) || me.Kind != model.ErrRequest || me.Retryable() || !strings.Contains(me.Detail, `"nothing"`) {
		t.Errorf("unmet expectation: %v", err)
	}
	history = append(history, say(tool, result("own", "nothing"), result("call_1_1", "the contents of x")))
	if r, err = c.Stream(t.Context(), &model.Request{Messages: history}, nil); err != nil || r.Finish != model.FinishStop {
		t.Fatalf("%+v %v", r, err)
	}
	history = append(history, r.Message, say(user, txt("more")))
	if r, err = c.Stream(t.Context(), &model.Request{Messages: history}, nil); err != nil || r.Finish != model.FinishLength || len(r.Message.ToolCalls()) != 0 || r.Note == "" {
		t.Fatalf("calls of a cut reply: %+v %v", r, err)
	}
	if c.Left() != 0 {
		t.Errorf("%d left", c.Left())
	}
	if _, err := c.Stream(t.Context(), &model.Request{Messages: history}, nil); err == nil || !strings.Contains(err.Error(), "only 3 steps") {
		t.Errorf("beyond the end: %v", err)
	}
}

func TestExpectWithoutResult(t *testing.T) {
	_, err := New([]Step{{Expect: "x"}}).Stream(t.Context(), &model.Request{Messages: []*model.Message{say(user, txt("x"))}}, nil)
	if err == nil || !strings.Contains(err.Error(), "found no tool result") {
		t.Error(err)
	}
}

func TestStrictHistory(t *testing.T) {
	cases := []struct {
		want string // "" for a good one
		ms   []*model.Message
	}{
		{"", []*model.Message{say(user, txt("a"))}},
		{"", []*model.Message{say(user, txt("a")), say(user, txt("b"))}},
		{"", []*model.Message{say(user, txt("a")), say(assistant), say(user, txt("b"))}},
		{"", []*model.Message{say(user, txt("a")), say(assistant, call("1"), call("2")), say(tool, result("2", "")), say(tool, result("1", ""))}},
		{"", []*model.Message{say(user, txt("a")), say(assistant, call("1")), say(tool, result("1", "")), say(user, txt("steer"))}},
		{"last message", nil},
		{"last message", []*model.Message{say(user, txt("a")), say(assistant, txt("b"))}},
		{"follows \"\"", []*model.Message{say(assistant, txt("b"))}},
		{"follows \"assistant\"", []*model.Message{say(user, txt("a")), say(assistant, txt("b")), say(assistant, txt("c")), say(user, txt("d"))}},
		{"have no result", []*model.Message{say(user, txt("a")), say(assistant, call("1"))}},
		{"1 tool calls before it", []*model.Message{say(user, txt("a")), say(assistant, call("1"), call("2")), say(tool, result("1", "")), say(user, txt("b"))}},
		{"not open", []*model.Message{say(user, txt("a")), say(assistant, call("1")), say(tool, result("1", ""), result("1", ""))}},
		{"not open", []*model.Message{say(user, txt("a")), say(tool, result("1", ""))}},
		{"repeated id", []*model.Message{say(user, txt("a")), say(assistant, call("1"), call("1"))}},
		{"empty text", []*model.Message{say(user, txt(""))}},
		{"no parts", []*model.Message{say(user)}},
		{"members set", []*model.Message{say(user, model.Part{})}},
		{"only be in an assistant", []*model.Message{say(user, call("1"))}},
		{"another part in a tool message", []*model.Message{say(user, txt("a")), say(assistant, call("1")), say(tool, txt("x"))}},
		{"unknown role", []*model.Message{say(model.Message{Role: "system"}, txt("a"))}},
	}
	for _, c := range cases {
		_, err := New([]Step{{Text: "ok"}}).Stream(t.Context(), &model.Request{Messages: c.ms}, nil)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
}

func TestHangAndFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New([]Step{{Text: "a b", Hang: true}, {Text: "half", Fail: model.ErrServer}})
		req := &model.Request{Messages: []*model.Message{say(user, txt("a"))}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		start := time.Now()
		if _, err := c.Stream(ctx, req, nil); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Hour {
			t.Errorf("hang: %v after %v", err, time.Since(start))
		}
		if _, err := c.Stream(ctx, req, nil); !errors.Is(err, context.DeadlineExceeded) || c.Left() != 1 {
			t.Errorf("an ended context must not take a step: %v, %d left", err, c.Left())
		}
		var me *model.Error
		if _, err := c.Stream(t.Context(), req, nil); !errors.As(err, &me) || me.Kind != model.ErrServer || me.Partial != "half" || !me.Retryable() {
			t.Errorf("fail: %v", err)
		}
	})
}

func TestParse(t *testing.T) {
	steps, err := Parse([]byte(`{"steps":[
		{"text":"hi","calls":[{"name":"read","args":{"path": "x"}},{"id":"i","name":"y","args_text":"{"},{"name":"z"}],"expect":"e","usage":{"input":3}},
		{"fail":"rate_limit","hang":true,"finish":"length","reasoning":"r"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	three := int64(3)
	want := []Step{
		{Text: "hi", Expect: "e", Usage: &model.Usage{Input: &three}, Calls: []Call{{Name: "read", Args: `{"path": "x"}`}, {ID: "i", Name: "y", Args: "{"}, {Name: "z"}}},
		{Fail: model.ErrRateLimit, Hang: true, Finish: model.FinishLength, Reasoning: "r"},
	}
	if d := cmp.Diff(want, steps); d != "" {
		t.Error(d)
	}
	for in, want := range map[string]string{
		`{}`:                          "steps",
		`{"steps":[{"txt":"a"}]}`:     "txt",
		`{"steps":[{"finish":"x"}]}`:  "/steps/0/finish",
		`{"steps":[{},{"fail":"x"}]}`: "/steps/1/fail",
		`{"steps":[{"calls":[{}]}]}`:  "/steps/0/calls/0",
		`{"steps":[{"calls":[{"name":"a","args":[]}]}]}`:                 "args_text",
		`{"steps":[{"calls":[{"name":"a","args":{},"args_text":"x"}]}]}`: "both",
		`{"steps":[{"text":"a","text":"b"}]}`:                            "twice",
	} {
		if _, err := Parse([]byte(in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", in, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"steps":[{"text":"hi","calls":[{"name":"read","args":{}}]}]}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		steps, err := Parse(in)
		if err != nil && steps != nil {
			t.Error("steps together with an error")
		}
		for _, s := range steps {
			for _, c := range s.Calls {
				if c.Name == "" {
					t.Error("a call without a name passed")
				}
			}
		}
	})
}
