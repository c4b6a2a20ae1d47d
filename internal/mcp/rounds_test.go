package mcp_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/abhed/abhed/internal/mcp"
	"github.com/abhed/abhed/internal/strictjson"
)

// inputs answers the call with the questions in its arguments, as often as they say,
// and then with what it was answered.
func (f *fake) inputs(m *message, args jsontext.Value) {
	var a struct {
		Ask   jsontext.Value `json:"ask"`
		Times int            `json:"times"`
	}
	var p struct {
		State   string         `json:"requestState"`
		Answers jsontext.Value `json:"inputResponses"`
	}
	if strictjson.Unmarshal(args, &a, strictjson.Options{}) != nil || strictjson.Unmarshal(m.Params, &p, strictjson.Options{}) != nil {
		os.Exit(92)
	}
	if len(p.State) < a.Times {
		f.result(m, `{"resultType":"input_required","inputRequests":%s,"requestState":"%s"}`, a.Ask, p.State+"x")
		return
	}
	f.result(m, "%s", text("state "+p.State+" answers "+string(p.Answers)))
}

// onEvery runs a test on both transports, with the protocol that is tried first and
// the newer one.
func onEvery(t *testing.T, test func(t *testing.T, serve func(s script) mcp.Server)) {
	for name, refuse := range map[string]int{"first": 0, "newer": -32601} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, spawn spawn) {
				test(t, func(s script) mcp.Server {
					s.Refuse = refuse
					cfg, _ := spawn(t, "s", s)
					return cfg
				})
			})
		})
	}
}

// TestQuestionsInAResult are those that a server asks by answering the call with them.
func TestQuestionsInAResult(t *testing.T) {
	form := `{"method":"elicitation/create","params":` + teamForm + `}`
	onEvery(t, func(t *testing.T, serve func(s script) mcp.Server) {
		var asked atomic.Int64
		dir := t.TempDir()
		r := start(t, mcp.Options{Roots: []string{dir}, Elicit: func(_ context.Context, q mcp.Elicitation) (mcp.ElicitAnswer, error) {
			asked.Add(1)
			if q.Message != "Which team?" || q.Server != "s" || !strings.Contains(string(q.Schema), `"enum":["core","web"]`) {
				t.Errorf("asked %+v", q)
			}
			return mcp.ElicitAnswer{Action: mcp.ElicitAccept, Content: []byte(`{"team":"core","n":1.50}`)}, nil
		}}, serve(script{Tools: named("inputs", "echo")}))
		// The numbers stay, and the default that the form has for "also" isn't filled in.
		r.works("mcp__s__inputs", `{"ask":{"a":`+form+`,"b":{"method":"roots/list"}},"times":1}`,
			`state x answers {"a":{"action":"accept","content":{"n":1.50,"team":"core"}},"b":{"roots":[{"name":"001","uri":"file://`+dir)
		r.works("mcp__s__inputs", `{"ask":{"a":`+form+`},"times":3}`, `state xxx answers {"a":{"action":"accept"`)
		if asked.Load() != 4 {
			t.Errorf("%d questions reached a person, expected 4", asked.Load())
		}
		r.works("mcp__s__inputs", `{"ask":{},"times":2}`, "state xx answers")
		for what, want := range map[string]string{
			`{"a":{"method":"elicitation/create"}}`:                                                 `{"a":{"action":"decline"}}`,
			`{"a":{"method":"elicitation/create","params":null}}`:                                   `{"a":{"action":"decline"}}`,
			`{"a":{"method":"elicitation/create","params":{"message":7}}}`:                          `{"a":{"action":"decline"}}`,
			`{"a":{"method":"elicitation/create","params":{"mode":"url","message":"m","url":"u"}}}`: `{"a":{"action":"decline"}}`,
		} {
			r.works("mcp__s__inputs", `{"ask":`+what+`,"times":1}`, want)
		}
		many := make([]string, 17)
		for i := range many {
			many[i] = fmt.Sprintf(`"q%d":%s`, i, form)
		}
		for what, want := range map[string]string{
			`{"a":{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}}`: `it asked for "sampling/createMessage", which isn't given here`,
			`{"a":7}`:                           "its questions can't be read",
			`[]`:                                "its questions can't be read",
			`{` + strings.Join(many, ",") + `}`: "it asked 17 questions at once, the limit is 16",
		} {
			r.fails("mcp__s__inputs", `{"ask":`+what+`,"times":1}`, want)
		}
		before := asked.Load()
		r.fails("mcp__s__inputs", `{"ask":{"a":`+form+`},"times":50}`, "it answered the call with questions 10 times")
		if n := asked.Load() - before; n != 9 {
			t.Errorf("%d questions of one call reached a person, expected 9", n)
		}
		r.works("mcp__s__echo", `{}`, "echo")
	})
}

// TestQuestionsInAResultEndWithTheCall: neither a person nor a pause holds up an
// interrupt.
func TestQuestionsInAResultEndWithTheCall(t *testing.T) {
	t.Parallel()
	s := server(t, "s", script{Tools: named("inputs")})
	s.CallTimeout = 500 * time.Millisecond
	asked := make(chan struct{})
	r := start(t, mcp.Options{Elicit: func(ctx context.Context, q mcp.Elicitation) (mcp.ElicitAnswer, error) {
		close(asked)
		return waits(ctx, q)
	}}, s)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-asked; cancel() }()
	if res := r.runCtx(ctx, "mcp__s__inputs", `{"ask":{"a":{"method":"elicitation/create","params":`+teamForm+`}},"times":1}`); !res.IsError || !strings.Contains(res.Content, "interrupted") {
		t.Errorf("got %+v", res)
	}
	if res := r.fails("mcp__s__inputs", `{"ask":{},"times":9}`, "did not answer within 500ms"); !res.TimedOut {
		t.Errorf("got %+v", res)
	}
	nobody := start(t, mcp.Options{}, server(t, "s", script{Tools: named("inputs")}))
	nobody.works("mcp__s__inputs", `{"ask":{"a":{"method":"elicitation/create","params":`+teamForm+`}},"times":1}`, `{"a":{"action":"decline"}}`)
	nobody.noticed("nobody can be asked")
}
