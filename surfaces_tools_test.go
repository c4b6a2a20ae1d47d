package abhed_test

import (
	"strings"
	"testing"

	"github.com/abhed/abhed/internal/model/modeltest"
)

// TestInvokedTools covers list_tools with tools and invoke_tool with result, content and
// is_error. An empty result is an answer and an absent one is none; a tool that fails
// fails alone: the extension judges on, and the next call finds a new process.
func TestInvokedTools(t *testing.T) {
	t.Parallel()
	about := func(word string) string { return `"args":` + textArgs(word) }
	box := player{name: "box", more: `,"invoke_timeout_ms":2000,"events":["tool_call"]`, lines: []line{
		{On: "list_tools", Do: boxTools},
		{On: "invoke_tool", Has: about("empty"), Do: `{"result":""}`},
		{On: "invoke_tool", Has: about("content"), Do: `{"content":"by content"}`},
		{On: "invoke_tool", Has: about("both"), Do: `{"content":"by content too","result":"by result"}`},
		{On: "invoke_tool", Has: about("failed"), Do: `{"result":"it went wrong","is_error":true}`},
		{On: "invoke_tool", Has: about("absent"), Do: `{}`},
		{On: "invoke_tool", Has: about("null"), Do: `{"result":null,"block":true,"reason":"BLOCKED"}`},
		{On: "invoke_tool", Has: about("dies"), Do: dies},
		{On: "invoke_tool", Has: about("nonsense"), Do: `nonsense`},
		{On: "invoke_tool", Has: about("hangs"), Do: hangs},
		{On: "invoke_tool", Do: `{"result":"it is kept"}`},
		{On: "tool_call", Has: about("vetoed"), Do: `{"block":true,"reason":"not by its own maker"}`},
	}}
	var turns []modeltest.Turn
	for _, word := range []string{"first", "empty", "content", "both", "failed", "absent", "null", "dies", "second", "nonsense", "third", "hangs", "fourth", "vetoed"} {
		turns = append(turns, call("c-"+word, "put", textArgs(word)))
	}
	turns = append(turns, call("c-looks", "peek", `{}`), call("c-shape", "put", `{"text":7}`), call("c-unknown", "poke", `{}`), done())
	ended := func(word, more string) string { return `tool.ended && "call_id":"c-` + word + `" && ` + more }
	scenario{
		permissions: `,"allow":["put"],"deny":["put(denied*)"]`, extensions: []player{box}, turns: turns,
		sent: []string{
			"tool c-first it is kept", "tool c-content by content", "tool c-both by result", "tool c-failed && it went wrong", "tool c-absent && answered without a result",
			"tool c-null && answered without a result", "tool c-dies && gave no result", "tool c-second it is kept", "tool c-nonsense && gave no result",
			"tool c-third it is kept", "tool c-hangs && gave no result", "tool c-fourth it is kept", "tool c-vetoed && not by its own maker", "tool c-looks it is kept",
		},
		unsent: []string{"by content too", "BLOCKED"},
		recorded: []string{
			`extension.changed && "state":"started" && "tools":["put","peek"]`, ended("empty", `"content":"" && "outcome":"ok"`), ended("failed", `"is_error":true && it went wrong`),
			ended("absent", `"is_error":true`), ended("hangs", `"is_error":true && "outcome":"timeout"`), ended("shape", `"outcome":"denied"`), ended("unknown", `"outcome":"denied"`),
			`decision && "call_id":"c-looks" && "outcome":"run"`, `decision && "call_id":"c-first" && "mutates":true && "subject":"first"`, `extension.logged && "level":"warning" && started anew`,
		},
		unrecorded: []string{`"state":"dead"`},
		heard:      []string{`"event":"tool_call" && "tool":"peek","args":{}`, `"event":"invoke_tool" && "call_id":"c-first","turn":1,"agent":{"id":"main","depth":0},"tool":"put","args":` + textArgs("first") + `}`},
		unheard:    []string{`"event":"invoke_tool" && vetoed`},
		check: func(t *testing.T, s *stage, _ []string) {
			for i, r := range s.server.Requests() {
				listed := 0
				for _, tool := range r.Tools {
					if strings.Contains(string(tool), `"put"`) && strings.Contains(string(tool), "keeps a text") || strings.Contains(string(tool), `"peek"`) {
						listed++
					}
				}
				if listed != 2 {
					t.Errorf("request %d lists %d of its tools, want 2", i+1, listed)
				}
			}
		},
	}.everywhere(t)
}

// TestProvidedToolsMutate: a tool that doesn't say whether it mutates does, so with
// nobody to ask it isn't run; a deny rule wins over an allow rule; plan runs none.
func TestProvidedToolsMutate(t *testing.T) {
	t.Parallel()
	box := player{name: "box", lines: []line{{On: "list_tools", Do: boxTools}, {On: "invoke_tool", Do: `{"result":"it is kept"}`}}}
	turns := []modeltest.Turn{call("c1", "put", textArgs("one")), call("c2", "peek", `{}`), call("c3", "put", textArgs("denied")), done()}
	for mode, tt := range map[string]struct{ allow, one, step string }{
		"default": {"", "deny", "headless"}, "accept-edits": {"", "deny", "headless"}, "plan": {"put", "deny", "rules"}, "bypass": {"", "run", "rules"}, "auto": {"put", "run", "rules"},
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			sc := scenario{
				mode: mode, permissions: `,"deny":["put(denied*)"]`, extensions: []player{box}, turns: turns,
				recorded: []string{
					`decision && "call_id":"c1" && "outcome":"` + tt.one + `" && "step":"` + tt.step + `"`,
					`decision && "call_id":"c2" && "outcome":"run"`, `decision && "call_id":"c3" && "outcome":"deny" && "step":"rules"`,
				},
			}
			if tt.allow != "" {
				sc.permissions += `,"allow":["` + tt.allow + `"]`
			}
			sc.check = func(t *testing.T, s *stage, _ []string) {
				want := 0
				if tt.one == "run" {
					want = 1
				}
				if got := words(s.heard("box"), `"event":"invoke_tool" && "put"`); len(got) != want {
					t.Errorf("it ran %v, want %d", got, want)
				}
			}
			sc.everywhere(t)
		})
	}
}

// TestRefusedStarts holds what stops the start on every surface, with both parties
// named: an extension that is configured twice (I012), by one name in one file; a tool
// that two offer, or that is built in, or named as an MCP server's; an unknown event; a
// match that can't match.
func TestRefusedStarts(t *testing.T) {
	t.Parallel()
	offer := func(name, tool string) player {
		return player{name: name, lines: []line{{On: "list_tools", Do: `{"tools":[{"name":"` + tool + `","schema":{"type":"object"}}]}`}}}
	}
	for name, tt := range map[string]struct {
		extensions []player
		servers    map[string][]string
		want       []string
	}{
		"an extension twice (I012)": {[]player{{name: "twin"}, {name: "twin"}}, nil, []string{"twin", "extensions[1]"}},
		"a tool twice":              {[]player{offer("one", "put"), offer("two", "put")}, nil, []string{`"one"`, `"two"`, `"put"`}},
		"a built-in tool":           {[]player{offer("one", "bash")}, nil, []string{`"one"`, `"bash"`}},
		"a server's tool":           {[]player{offer("one", "mcp__box__put")}, nil, []string{`"one"`, `mcp__`}},
		"an unknown event":          {[]player{{name: "x", more: `,"events":["tool_cal"]`}}, nil, []string{"tool_cal", "tool_call"}},
		"a match of no tool":        {[]player{{name: "x", more: `,"match":["wrote(*)"]`}}, nil, []string{`"x"`, "wrote"}},
		"a match of no server":      {[]player{{name: "x", more: `,"match":["mcp__bix__*"]`}}, map[string][]string{"box": {putTool}}, []string{"bix", "box"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := ""
			for _, on := range surfaces() {
				s := scenario{extensions: tt.extensions, servers: tt.servers}.set(t)
				e := on.run(t, s)
				text := volatile.ReplaceAllString(strings.ReplaceAll(strings.TrimPrefix(strings.TrimSpace(e.refused), "abhed: "), s.base, "BASE"), "#")
				if e.code != 2 || text == "" || len(s.server.Requests()) > 0 {
					t.Fatalf("%s: %+v", on.name, e)
				}
				expect(t, on.name, []string{text}, tt.want, nil)
				if first == "" {
					first = text
				}
				if !strings.Contains(text, first) && !strings.Contains(first, text) {
					t.Errorf("%s says\n%s\nand %s\n%s", on.name, text, surfaces()[0].name, first)
				}
			}
		})
	}
}

// TestOneProgramTwice: what an operator configures under two names is two extensions,
// each asked once (I012's sibling).
func TestOneProgramTwice(t *testing.T) {
	t.Parallel()
	lines := []line{{On: "tool_call", Has: writeArgs("two"), Do: `{"block":true,"reason":"not two"}`}}
	scenario{
		extensions: []player{{name: "left", lines: lines, more: `,"events":["tool_call"]`}, {name: "right", lines: lines, more: `,"events":["tool_call"]`}},
		turns:      []modeltest.Turn{write("c1", "one"), write("c2", "two"), done()}, has: map[string]string{"one": "one"}, hasnt: []string{"two"},
		check: func(t *testing.T, s *stage, _ []string) {
			for _, name := range s.players {
				if n := len(matching(s.heard(name), `"event":"tool_call"`)); n != 2 {
					t.Errorf("%s was asked %d times, want once for each call", name, n)
				}
			}
		},
	}.everywhere(t)
}
