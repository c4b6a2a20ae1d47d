package abhed_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/abhed/abhed"
	"github.com/abhed/abhed/internal/model/modeltest"
)

// place is where a call can come from, and what tool it is of.
type place struct {
	name, tool string
	// args are a call's arguments, as canonical JSON, about one word.
	args func(word string) string
	// rule says what the deny rule of a word is; "" is that there can't be any.
	rule func(word string) string
	// turns lets the calls be made.
	turns func(calls []modeltest.Call) []modeltest.Turn
	// request is in every request about such a call, wherever extensions hear of it.
	request string
	// agent and depth are in the record's decisions.
	agent string
	base  scenario
	// ran lists the words of the calls that ran.
	ran func(t *testing.T, s *stage) []string
}

// each makes a reply of each call.
func each(calls []modeltest.Call) []modeltest.Turn {
	var out []modeltest.Turn
	for _, c := range calls {
		out = append(out, modeltest.Turn{Calls: []modeltest.Call{c}})
	}
	return append(out, done())
}

// atOnce makes one reply of all calls.
func atOnce(calls []modeltest.Call) []modeltest.Turn {
	return []modeltest.Turn{{Calls: calls}, done()}
}

// below makes the calls in a sub-agent so many levels down.
func below(depth int) func([]modeltest.Call) []modeltest.Turn {
	return func(calls []modeltest.Call) []modeltest.Turn {
		var out []modeltest.Turn
		for i := range depth {
			out = append(out, call(fmt.Sprintf("t%d", i), "task", `{"description":"part","prompt":"do it"}`))
		}
		out = append(out, each(calls)...)
		for range depth {
			out = append(out, done())
		}
		return out
	}
}

func textArgs(word string) string { return `{"text":"` + word + `"}` }

// files lists the files of the workspace.
func files(t *testing.T, s *stage) []string {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		t.Error(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// words returns what stands for the word in lines that have the pattern.
func words(lines []string, pattern string) []string {
	var out []string
	for _, l := range matching(lines, pattern) {
		_, rest, _ := strings.Cut(l, `{"text":"`)
		word, _, _ := strings.Cut(rest, `"`)
		out = append(out, word)
	}
	slices.Sort(out)
	return out
}

const putTool = `{"name":"put","description":"keeps a text","inputSchema":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}}`

// places lists them all.
func places() []place {
	file := place{
		tool: "write", args: writeArgs, rule: func(word string) string { return "write(" + word + ")" }, ran: files,
		request: `"agent":{"id":"main","depth":0},"tool":"write"`, agent: `"agent_id":"main" && "depth":0`, base: scenario{permissions: `,"allow":["task"]`},
	}
	main, batch, sub, subsub := file, file, file, file
	main.name, main.turns = "the main agent", each
	batch.name, batch.turns = "several calls in one reply", atOnce
	sub.name, sub.turns, sub.request, sub.agent = "a sub-agent", below(1), `"agent":{"id":"a1","depth":1},"tool":"write"`, `"agent_id":"a1" && "depth":1`
	subsub.name, subsub.turns, subsub.request, subsub.agent = "a sub-agent's sub-agent", below(2), `"agent":{"id":"a2","depth":2},"tool":"write"`, `"agent_id":"a2" && "depth":2`
	return []place{main, batch, sub, subsub, inServer(), inExtension(), compiledIn()}
}

// inServer is a tool of an MCP server.
func inServer() place {
	return place{
		name: "a tool of an MCP server", tool: "mcp__box__put", args: textArgs, turns: each,
		request: `"agent":{"id":"main","depth":0},"tool":"mcp__box__put"`, agent: `"agent_id":"main"`,
		base: scenario{permissions: `,"allow":["mcp__box__*"]`, servers: map[string][]string{"box": {putTool}}},
		ran:  func(_ *testing.T, s *stage) []string { return words(s.heard("box"), "put") },
	}
}

// inExtension is a tool that an extension provides.
func inExtension() place {
	box := player{name: "box", more: `,"events":["session_start"]`, lines: []line{{On: "list_tools", Do: boxTools}, {On: "invoke_tool", Do: `{"result":"kept"}`}}}
	return place{
		name: "a tool of an extension", tool: "put", args: textArgs, turns: each, rule: func(word string) string { return "put(" + word + ")" },
		request: `"agent":{"id":"main","depth":0},"tool":"put"`, agent: `"agent_id":"main"`,
		base: scenario{permissions: `,"allow":["put"]`, extensions: []player{box}},
		ran:  func(_ *testing.T, s *stage) []string { return words(s.heard("box"), `"event":"invoke_tool"`) },
	}
}

// compiledIn is a tool of a Go program, which only an embedded session can have.
func compiledIn() place {
	p := inExtension()
	p.name, p.base.extensions = "a tool that is compiled in", nil
	p.base.on = []surface{{"embedded", ".", embedded}}
	p.base.stage = func(s *stage) {
		s.tools = []abhed.Tool{{
			Name: "put", Version: "1", Description: "keeps a text", Subject: "text",
			Schema: []byte(`{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`),
			Run: func(_ context.Context, c abhed.Call) (string, error) {
				s.ran = append(s.ran, string(c.Args))
				return "kept", nil
			},
		}}
	}
	p.ran = func(_ *testing.T, s *stage) []string { return words(s.ran, "") }
	return p
}

// answers is what the extension x says of calls: each kind of answer has its word.
func (p *place) answers() player {
	about := func(word string) string { return `"args":` + p.args(word) }
	return player{name: "x", more: `,"events":["tool_call","permission_request","tool_result"]`, lines: []line{
		{On: "tool_call", Has: about("blocked"), Do: `{"block":true,"reason":"not this one"}`},
		{On: "tool_call", Has: about("asked"), Do: `{"ask":true,"reason":"look at it"}`},
		{On: "tool_call", Has: about("refused"), Do: `{"ask":true,"reason":"look at it"}`},
		{On: "permission_request", Has: about("refused"), Do: `{"block":true,"reason":"nobody need be asked"}`},
		{On: "tool_call", Has: about("changed"), Do: `{"args":` + p.args("other") + `}`},
		{On: "tool_call", Has: about("laundered"), Do: `{"args":` + p.args("forbidden") + `}`},
		{On: "tool_call", Has: about("hidden"), Do: `{"args":` + p.args("innocent") + `}`},
		{On: "tool_call", Has: about("misshapen"), Do: `{"args":{"text":7,"path":8}}`},
		{On: "tool_result", Has: about("redacted"), Do: `{"content":"[redacted]"}`},
		{On: "tool_result", Has: about("emptied"), Do: `{"content":"","is_error":true}`},
		{On: "tool_result", Has: about("flagged"), Do: `{"is_error":true}`},
		{Do: `{"block":null,"ask":null,"reason":null,"args":null,"content":null,"is_error":null}`},
	}}
}

// TestEveryAnswerAboutACall covers tool_call with block, ask, reason and args,
// permission_request with block, tool_result with content and is_error, and null
// fields, wherever a call comes from (I003: the extension knows which agent it is).
func TestEveryAnswerAboutACall(t *testing.T) {
	t.Parallel()
	for _, p := range places() {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			sc := p.base
			sc.extensions = append([]player{p.answers()}, sc.extensions...)
			all := []string{"plain", "blocked", "asked", "refused", "changed", "misshapen", "redacted", "emptied", "flagged"}
			ran := []string{"emptied", "flagged", "other", "plain", "redacted"}
			if p.rule != nil {
				all = append(all, "laundered", "hidden")
				sc.permissions += `,"deny":["` + p.rule("forbidden") + `","` + p.rule("hidden") + `"]`
			}
			var calls []modeltest.Call
			for _, word := range all {
				calls = append(calls, modeltest.Call{ID: "c-" + word, Name: p.tool, Args: p.args(word)})
			}
			sc.turns = p.turns(calls)
			p.expect(&sc)
			sc.check = func(t *testing.T, s *stage, _ []string) {
				if got := p.ran(t, s); !slices.Equal(got, ran) {
					t.Errorf("it ran %v, want %v", got, ran)
				}
			}
			sc.everywhere(t)
		})
	}
}

// expect says what must come of the calls.
func (p *place) expect(sc *scenario) {
	decided := func(word, more string) string {
		return `decision && ` + p.agent + ` && "tool":"` + p.tool + `" && "original":` + p.args(word) + ` && ` + more
	}
	ended := func(word, more string) string { return `tool.ended && "call_id":"c-` + word + `" && ` + more }
	result := func(word, text string) string { return "tool c-" + word + " && " + text }
	sc.sent = []string{
		result("blocked", "not this one"), result("asked", "look at it"), result("refused", "nobody need be asked"), result("redacted", " [redacted]"),
	}
	sc.recorded = []string{
		decided("plain", `"outcome":"run"`), decided("blocked", `"outcome":"deny" && "step":"extension" && "reason":"not this one"`),
		decided("asked", `"outcome":"deny" && "step":"headless" && look at it`), decided("refused", `"outcome":"deny" && "step":"extension" && nobody need be asked`),
		decided("changed", `"final":`+p.args("other")+` && "outcome":"run"`), decided("misshapen", `"outcome":"deny" && "code":"invalid_rewrite" && "step":"args"`),
		ended("redacted", `"content":"[redacted]" && "rewritten_by":["x"] && "original_hash"`),
		ended("emptied", `"content":"" && "is_error":true && "rewritten_by":["x"]`), ended("flagged", `"is_error":true && "rewritten_by":["x"]`),
	}
	about := `x: && ` + p.request + `,"args":`
	sc.heard = []string{
		about + p.args("plain") + `,"round":1}`, about + p.args("other") + `,"round":2,"original":` + p.args("changed") + `}`,
		about + p.args("refused") + `,"content":"`, `"event":"tool_result" && ` + p.request + `,"args":` + p.args("other") + `,"content":"`,
	}
	sc.unheard = []string{`"event":"tool_result" && "blocked"`, `"event":"tool_result" && "args":` + p.args("changed")}
	if p.rule != nil {
		sc.sent = append(sc.sent, result("laundered", p.rule("forbidden")), result("hidden", p.rule("hidden")))
		sc.recorded = append(sc.recorded, decided("laundered", `"final":`+p.args("forbidden")+` && "outcome":"deny" && "step":"rules"`),
			decided("hidden", `"final":`+p.args("innocent")+` && "outcome":"deny" && "step":"rules"`))
	}
}
