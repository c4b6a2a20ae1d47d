package modeltest_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/model/anthropic"
	"github.com/abhed/abhed/internal/model/gemini"
	"github.com/abhed/abhed/internal/model/modeltest"
	"github.com/abhed/abhed/internal/model/openai"
	"github.com/abhed/abhed/internal/model/responses"
)

// closer is a client with connections to close.
type closer interface {
	model.Client
	Close()
}

// clients returns a maker of a client for each API that the server speaks.
func clients() map[modeltest.API]func(url string, stall time.Duration) (closer, error) {
	const key, env, name, model = "sk-test-0123456789", "TEST_KEY", "test", "m1"
	return map[modeltest.API]func(string, time.Duration) (closer, error){
		modeltest.Chat: func(url string, stall time.Duration) (closer, error) {
			return openai.New(openai.Config{BaseURL: url, Model: model, Name: name, APIKey: key, APIKeyEnv: env, StallTimeout: stall})
		},
		modeltest.Responses: func(url string, stall time.Duration) (closer, error) {
			return responses.New(responses.Config{BaseURL: url, Model: model, Name: name, APIKey: key, APIKeyEnv: env, StallTimeout: stall})
		},
		modeltest.Messages: func(url string, stall time.Duration) (closer, error) {
			return anthropic.New(anthropic.Config{BaseURL: url, Model: model, Name: name, APIKey: key, APIKeyEnv: env, StallTimeout: stall})
		},
		modeltest.Gemini: func(url string, stall time.Duration) (closer, error) {
			return gemini.New(gemini.Config{BaseURL: url, Model: model, Name: name, APIKey: key, APIKeyEnv: env, StallTimeout: stall})
		},
	}
}

// eachAPI runs f with a client of every API for a server of its own.
func eachAPI(t *testing.T, o modeltest.Options, f func(t *testing.T, api modeltest.API, s *modeltest.Server, c model.Client)) {
	for api, connect := range clients() {
		t.Run(string(api), func(t *testing.T) {
			o.APIKey = "sk-test-0123456789"
			s := modeltest.NewWith(t, o)
			c, err := connect(s.URL, 5*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			f(t, api, s, c)
		})
	}
}

func user(s string) *model.Message {
	return &model.Message{Role: "user", Parts: []model.Part{{Text: &s}}}
}

func results(m *model.Message) *model.Message {
	out := &model.Message{Role: "tool"}
	for _, c := range m.ToolCalls() {
		out.Parts = append(out.Parts, model.Part{ToolResult: &model.ToolResult{CallID: c.ID, Name: c.Name, Content: "result of " + c.Name}})
	}
	return out
}

func request(ms ...*model.Message) *model.Request {
	return &model.Request{System: "be brief", Messages: ms, MaxOutput: 1000, Tools: []model.ToolSpec{
		{Name: "read", Description: "reads", Schema: []byte(`{"type":"object","properties":{"path":{"type":"string"}}}`)}, {Name: "list"}}}
}

// plan is a session in four replies.
func plan() []modeltest.Turn {
	u := &modeltest.Usage{Prompt: 1000, Cached: 800, Completion: 10}
	return []modeltest.Turn{
		{Reasoning: "think 思考", Text: "Größe 😀", Calls: []modeltest.Call{{ID: "a", Name: "read", Args: `{"path":"北.txt"}`}, {ID: "b", Name: "list", Args: `{}`}}, Usage: u},
		{Reasoning: "again", Calls: []modeltest.Call{{ID: "c", Name: "read", Args: `{"path":"x"}`}}, Usage: u, Expect: "result of"},
		{Text: "half of i", Finish: "length", Usage: u, Expect: "result of read"},
		{Text: "done", Usage: u, Expect: "go on"},
	}
}

// play runs the plan and returns the history.
func play(t *testing.T, c model.Client) []*model.Message {
	t.Helper()
	history := []*model.Message{user("go")}
	for i, turn := range plan() {
		if i == 3 {
			history = append(history, user("go on"))
		}
		var text strings.Builder
		resp, err := c.Stream(t.Context(), request(history...), func(d model.Delta) { text.WriteString(d.Text) })
		if err != nil {
			t.Fatalf("turn %d: %v", i, err)
		}
		want := map[bool]model.Finish{true: model.FinishToolCalls, false: model.FinishStop}[len(turn.Calls) > 0]
		if turn.Finish != "" {
			want = model.Finish(turn.Finish)
		}
		if resp.Finish != want || resp.Message.Text() != turn.Text || text.String() != turn.Text || resp.Note != "" {
			t.Errorf("turn %d: finish %s, text %q, streamed %q, note %q", i, resp.Finish, resp.Message.Text(), text.String(), resp.Note)
		}
		var calls []modeltest.Call
		for _, c := range resp.Message.ToolCalls() {
			calls = append(calls, modeltest.Call{Name: c.Name, Args: c.Args}) // not every API has ids
		}
		for j := range turn.Calls {
			turn.Calls[j].ID = ""
		}
		if d := cmp.Diff(turn.Calls, calls); d != "" {
			t.Errorf("turn %d: %s", i, d)
		}
		if u := resp.Usage; u == nil || u.Input == nil || *u.Input != 200 || *u.CacheRead != 800 || *u.Output != 10 {
			t.Errorf("turn %d: usage %+v", i, u)
		}
		history = append(history, resp.Message)
		if len(calls) > 0 {
			history = append(history, results(resp.Message))
		}
	}
	return history
}

// TestOnePlanForEveryAPI plays the same session to a client of each API.
func TestOnePlanForEveryAPI(t *testing.T) {
	eachAPI(t, modeltest.Options{Turns: plan()}, func(t *testing.T, _ modeltest.API, s *modeltest.Server, c model.Client) {
		play(t, c)
		if s.Left() != 0 {
			t.Errorf("%d turns left", s.Left())
		}
	})
}

// TestSessionGoesOnWithAnotherAPI makes a session with each API and resumes it with
// every API, where no seal and no id of the first may be in the way (I156).
func TestSessionGoesOnWithAnotherAPI(t *testing.T) {
	histories := map[modeltest.API][]*model.Message{}
	for api, connect := range clients() {
		s := modeltest.NewWith(t, modeltest.Options{Turns: plan(), SealKey: string(api)})
		c, err := connect(s.URL, 5*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		histories[api] = play(t, c)
		c.Close()
	}
	for from, history := range histories {
		t.Run("from "+string(from), func(t *testing.T) {
			next := []modeltest.Turn{{Text: "ok", Expect: "more"}, {Text: "ok", Expect: "more"}}
			eachAPI(t, modeltest.Options{SealKey: "another", Turns: next}, func(t *testing.T, api modeltest.API, s *modeltest.Server, c model.Client) {
				req := request(append(history[:len(history):len(history)], user("more"))...)
				_, err := c.Stream(t.Context(), req, nil)
				var me *model.Error
				if api == from && errors.As(err, &me) && me.Kind == model.ErrReplay {
					_, err = c.Stream(t.Context(), req, nil) // its own seals, made for another account, are dropped once (I154)
				}
				if err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestFailuresAreTheSame has each API fail in the same ways.
func TestFailuresAreTheSame(t *testing.T) {
	long := modeltest.Turn{Text: strings.Repeat("x", 300), Calls: plan()[0].Calls}
	for _, c := range []struct {
		name  string
		fault modeltest.Fault
		kind  model.ErrorKind
		wait  time.Duration
	}{
		{"401", modeltest.Status(401, `{"error":{"message":"no"}}`), model.ErrAuth, 0},
		{"429", modeltest.RateLimited(7), model.ErrRateLimit, 7 * time.Second},
		{"500", modeltest.Status(500, ""), model.ErrServer, 0},
		{"529", modeltest.Status(529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`), model.ErrServer, 0},
		{"overflow", modeltest.Status(400, `{"error":{"message":"prompt is too long: 9 tokens > 8 maximum"}}`), model.ErrOverflow, 0},
		{"cut", modeltest.CutAt(1500), model.ErrCut, 0},
		{"ended early", modeltest.EndAt(1500), model.ErrCut, 0},
		{"web page", modeltest.Raw("text/html", "<html>"), model.ErrMalformed, 0},
	} {
		turn := long
		turn.Faults = []modeltest.Fault{c.fault}
		t.Run(c.name, func(t *testing.T) {
			eachAPI(t, modeltest.Options{Turns: []modeltest.Turn{turn}}, func(t *testing.T, _ modeltest.API, s *modeltest.Server, client model.Client) {
				var text strings.Builder
				resp, err := client.Stream(t.Context(), request(user("go")), func(d model.Delta) { text.WriteString(d.Text) })
				var me *model.Error
				if resp != nil || !errors.As(err, &me) || me.Kind != c.kind || me.RetryAfter != c.wait || me.Partial != text.String() {
					t.Errorf("%+v %v, want %s; partial %d bytes", resp, err, c.kind, text.Len())
				}
			})
		})
	}
}
