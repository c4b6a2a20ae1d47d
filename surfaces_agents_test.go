package abhed_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/abhed/abhed"
	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/backend"
	"github.com/abhed/abhed/ahp/backend/httpbackend"
	"github.com/abhed/abhed/internal/model/modeltest"
)

// TestSubagentsAreHeardOf covers subagent_end, and context for a sub-agent: the end of
// each, the innermost first, with its answer, and the person's agent by turn_end alone;
// nothing that is answered changes anything.
func TestSubagentsAreHeardOf(t *testing.T) {
	t.Parallel()
	turns := below(2)([]modeltest.Call{{ID: "c1", Name: "write", Args: writeArgs("one")}, {ID: "c2", Name: "write", Args: writeArgs("two")}})
	turns[4].Text, turns[5].Text, turns[6].Text = "INNER", "OUTER", "ALL"
	scenario{
		permissions: `,"allow":["task"]`, turns: turns, has: map[string]string{"one": "one", "two": "two"},
		extensions: []player{{name: "x", more: `,"events":["subagent_end","turn_end","context","user_prompt_submit"]`, lines: []line{
			{On: "context", Has: `"turn":3,"agent":{"id":"a2"`, Do: `{"keep":[0,3,4]}`},
			{On: "user_prompt_submit", Do: `{}`}, {On: "context", Do: `{}`},
			{Do: `{"block":true,"content":"CHANGED","log":"LOGGED"}`},
		}}},
		sent:   []string{"[5] user do it", "[5] tool c2", "[6] tool t1 && INNER", "[7] tool t0 && OUTER"},
		unsent: []string{"CHANGED", "[5] tool c1", `[5] assistant  write{"content":"one"`},
		recorded: []string{
			`hooks.decided && "event_type":"context" && "agent_id":"a2" && "left_out":["m2","c1:result"]`, `agent.ended && "agent_id":"a2" && "reason":"completed"`, `extension.logged && LOGGED`,
		},
		unheard: []string{`"event":"user_prompt_submit" && do it`},
		check: func(t *testing.T, s *stage, _ []string) {
			want := []string{
				`"turn":3,"agent":{"id":"a2","depth":2},"content":"INNER"}`, `"turn":2,"agent":{"id":"a1","depth":1},"content":"OUTER"}`, `"turn":2,"agent":{"id":"main","depth":0},"content":"ALL"}`,
			}
			var got []string
			for _, l := range s.heard("x") {
				if strings.Contains(l, `_end"`) {
					got = append(got, l[strings.Index(l, `"turn":`):])
				}
			}
			compare(t, "the ends", want, got)
			if n := len(matching(s.heard("x"), `"event":"turn_end"`)); n != 1 {
				t.Errorf("turn_end was told %d times", n)
			}
		},
	}.everywhere(t)
}

// TestManyAgentsAtOnce has two sub-agents side by side: each call is judged once, under
// its own agent's name.
func TestManyAgentsAtOnce(t *testing.T) {
	t.Parallel()
	task := func(id string) modeltest.Call {
		return modeltest.Call{ID: id, Name: "task", Args: `{"description":"part","prompt":"do it"}`}
	}
	x := player{name: "x", more: `,"events":["tool_call"]`, lines: []line{{On: "tool_call", Has: `"agent":{"id":"a`, Do: `{"block":true,"reason":"not below"}`}}}
	for _, on := range surfaces() { // which of them comes first is open, so the surfaces can't be compared
		var server *modeltest.Server
		first := write("c1", "one")
		first.Before = func(int) { // both have begun before one goes on
			for range 3000 {
				if len(server.Requests()) >= 3 {
					return
				}
				time.Sleep(10 * time.Millisecond)
			}
		}
		scenario{
			stage:       func(s *stage) { server = s.server },
			permissions: `,"allow":["task"]`, extensions: []player{x}, on: []surface{on},
			turns: []modeltest.Turn{{Calls: []modeltest.Call{task("t1"), task("t2")}}, first, write("c2", "two"), {Text: "tried"}, {Text: "tried"}, write("c3", "three"), done()},
			hasnt: []string{"one", "two"}, has: map[string]string{"three": "three"},
			recorded: []string{`decision && "agent_id":"a1" && "by":"extension x"`, `decision && "agent_id":"a2" && "by":"extension x"`, `decision && "agent_id":"main" && "call_id":"c3" && "outcome":"run"`},
		}.everywhere(t)
	}
}

// TestHooksOfAProgram: what a program compiles in vetoes beside extensions, in
// sub-agents too, and lifts nothing that they refuse.
func TestHooksOfAProgram(t *testing.T) {
	t.Parallel()
	var seen []string
	scenario{
		permissions: `,"allow":["task"]`, on: []surface{{"embedded", ".", embedded}},
		extensions: []player{{name: "x", lines: []line{{On: "tool_call", Has: writeArgs("theirs"), Do: `{"block":true,"reason":"by the extension"}`}}}},
		stage: func(s *stage) {
			s.hooks = []abhed.Hook{{Name: "mine", Judge: func(_ context.Context, c abhed.Call) abhed.Objection {
				seen = append(seen, fmt.Sprintf("%s %s %d", c.ID, c.AgentID, c.Depth))
				if strings.Contains(string(c.Args), "mine") {
					return abhed.Deny("by the program")
				}
				return abhed.Objection{}
			}}}
		},
		turns: below(1)([]modeltest.Call{{ID: "c1", Name: "write", Args: writeArgs("theirs")}, {ID: "c2", Name: "write", Args: writeArgs("mine")}, {ID: "c3", Name: "write", Args: writeArgs("one")}}),
		has:   map[string]string{"one": "one"}, hasnt: []string{"theirs", "mine"}, sent: []string{"tool c1 && by the extension", "tool c2 && by the program"},
		check: func(t *testing.T, _ *stage, _ []string) {
			for _, want := range []string{"t0 main 0", "c2 a1 1", "c3 a1 1"} {
				if !slices.Contains(seen, want) {
					t.Errorf("the hook was not asked about %s: %v", want, seen)
				}
			}
		},
	}.everywhere(t)
}

// rewriter is a backend that gives a call another path.
type rewriter struct{}

// Intercept changes the input of what is to be moved.
func (rewriter) Intercept(_ context.Context, q *ahp.Intercept) ([]ahp.Effect, error) {
	for _, word := range []string{"free", "barred"} {
		if q.Event.Type == ahp.ToolBefore && strings.Contains(string(q.Event.Tool.Input), `"`+word+`"`) {
			return backend.Answer(q, &ahp.Modify{Target: ahp.TargetInput, Operation: ahp.OpReplace, Value: ahp.Raw(writeArgs(word + "-moved"))})
		}
	}
	return nil, nil
}

// Observe hears nothing.
func (rewriter) Observe(context.Context, *ahp.Event) {}

// TestTheLastWordIsTheExtensions covers final: when a backend has changed a call, each
// extension judges what came of it, and may refuse that but not change it.
func TestTheLastWordIsTheExtensions(t *testing.T) {
	t.Parallel()
	x := player{name: "x", more: `,"events":["tool_call"]`, lines: []line{
		{On: "tool_call", Has: `"args":` + writeArgs("barred-moved"), Do: `{"block":true,"reason":"not there"}`},
	}}
	scenario{
		extensions: []player{x}, turns: []modeltest.Turn{write("c1", "free"), write("c2", "barred"), done()},
		stage: func(s *stage) {
			server := httptest.NewServer(httpbackend.Handler(backend.New(rewriter{}, backend.Options{}), httpbackend.Options{}))
			s.t.Cleanup(server.Close)
			s.put("home/.config/ahp/registration.json", `{"protocolVersion":"draft","hooks":[{"id":"org.test.rewriter","transport":{"type":"http","url":"`+server.URL+`"},"subscriptions":[
				{"events":["tool.before"],"mode":"intercept","timeoutMs":60000,"failurePolicy":"fail-closed","content":{"default":"body"}}]}]}`)
		},
		has: map[string]string{"free-moved": "free-moved"}, hasnt: []string{"free", "barred", "barred-moved"}, sent: []string{"tool c2 && not there"},
		heard:    []string{`"call_id":"c1" && "args":` + writeArgs("free") + `,"round":1}`, `"call_id":"c1" && "args":` + writeArgs("free-moved") + ` && ,"original":` + writeArgs("free") + `,"final":true}`},
		recorded: []string{`decision && "call_id":"c1" && "original":` + writeArgs("free") + ` && "final":` + writeArgs("free-moved") + ` && "outcome":"run"`, `decision && "call_id":"c2" && "outcome":"deny" && "step":"extension"`},
	}.everywhere(t)
}

// TestUnknownFieldsAreSaid: fields that there are none of change nothing; the record
// warns of them once, and names the one that was meant.
func TestUnknownFieldsAreSaid(t *testing.T) {
	t.Parallel()
	x := player{name: "x", more: `,"events":["tool_call"]`, lines: []line{{On: "tool_call", Do: `{"blok":true,"colour":"red","log":"LOGGED"}`}}}
	scenario{
		extensions: []player{x}, turns: []modeltest.Turn{write("c1", "one"), write("c2", "two"), done()}, has: map[string]string{"one": "one", "two": "two"},
		recorded: []string{`extension.logged && "level":"warning" && blok && block && "name":"x"`, `extension.logged && "level":"warning" && colour`, `extension.logged && "level":"log" && LOGGED`},
		check: func(t *testing.T, s *stage, record []string) {
			for pattern, want := range map[string]int{"warning && blok": 1, "warning && colour": 1, "LOGGED": 2} {
				if n := len(matching(record, "extension.logged && "+pattern)); n != want {
					t.Errorf("%d lines have %s, want %d", n, pattern, want)
				}
			}
			if _, err := os.Stat(filepath.Join(s.dir, "one")); err != nil {
				t.Error(err)
			}
		},
	}.everywhere(t)
}
