package abhed_test

import (
	"slices"
	"testing"

	"github.com/abhed/abhed/internal/model/modeltest"
)

// write is a call of write with a word as path and content, writeArgs its arguments.
func write(id, word string) modeltest.Turn { return call(id, "write", writeArgs(word)) }

func writeArgs(word string) string { return `{"content":"` + word + `","path":"` + word + `"}` }

// boxTools is what an extension offers that provides the tool put.
const boxTools = `{"tools":[{"name":"put","description":"keeps a text","schema":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}},
 {"name":"peek","description":"looks","schema":{"type":"object","properties":{}},"mutates":false}]}`

// TestBoundsOfASession covers list_tools, session_start, session_end, turn_end: each is
// told once, in order, list_tools to whoever subscribes to something else, too; and
// what the answers say changes nothing but the log.
func TestBoundsOfASession(t *testing.T) {
	t.Parallel()
	loud := line{Do: `{"log":"LOGGED","block":true,"ask":true,"content":"CONTENT","result":"RESULT","cancel":true,"reason":"REASON"}`}
	bounds := `,"events":["session_start","session_end","turn_end"]`
	scenario{
		prompt: "hello", mode: "default", turns: []modeltest.Turn{done()},
		extensions: []player{
			{name: "all", more: `,"events":["list_tools","session_start","session_end","turn_end"]`, lines: []line{{On: "list_tools", Do: "{}"}, loud}},
			{name: "some", more: bounds, lines: []line{{On: "list_tools", Do: boxTools}, loud}},
		},
		sent:     []string{"[1] user hello"},
		unsent:   []string{"LOGGED", "CONTENT", "RESULT", "REASON"},
		recorded: []string{`extension.logged && "all" && LOGGED`, `extension.logged && "some" && LOGGED`, `run.ended && "reason":"completed"`, `session.ended && "reason":"completed"`},
		check: func(t *testing.T, s *stage, _ []string) {
			for _, name := range s.players {
				want := []string{
					name + `: {"event":"list_tools","session_id":"#","seq":1}`,
					name + `: {"event":"session_start","session_id":"#","seq":2,"workspace":"BASE/ws","model":"env/test","mode":"default"}`,
					name + `: {"event":"turn_end","session_id":"#","seq":3,"turn":1,"agent":{"id":"main","depth":0},"content":"done"}`,
					name + `: {"event":"session_end","session_id":"#","seq":4,"reason":"completed"}`,
				}
				compare(t, "what "+name+" heard", want, s.heard(name))
			}
		},
	}.everywhere(t)
}

// TestPromptsAreSubmitted covers user_prompt_submit with block and reason: a refused
// prompt is neither recorded as a message nor sent.
func TestPromptsAreSubmitted(t *testing.T) {
	t.Parallel()
	ask := []player{
		{name: "quiet", more: `,"events":["user_prompt_submit"]`},
		{name: "x", more: `,"events":["user_prompt_submit"]`, lines: []line{{On: "user_prompt_submit", Has: `PASSWORD`, Do: `{"block":true,"reason":"it holds a password"}`}}},
	}
	heard := `"event":"user_prompt_submit" && "seq":2,"agent":{"id":"main","depth":0},"content":`
	t.Run("refused", func(t *testing.T) {
		scenario{
			prompt: "my PASSWORD is 1", extensions: ask, reason: "prompt_refused", unsent: []string{"1"},
			recorded:   []string{`hooks.decided && "event_type":"user_prompt_submit" && "outcome":"denied" && "by":"extension x" && "reason":"it holds a password" && "original":"my PASSWORD is 1"`},
			unrecorded: []string{"user.message", "model.requested"},
			heard:      []string{"x: && " + heard + `"my PASSWORD is 1"`, "quiet: && " + heard + `"my PASSWORD is 1"`},
		}.everywhere(t)
	})
	t.Run("passed", func(t *testing.T) {
		scenario{
			prompt: "harmless", extensions: ask, turns: []modeltest.Turn{done()}, sent: []string{"[1] user harmless"},
			recorded: []string{`hooks.decided && "event_type":"user_prompt_submit" && "outcome":"none"`, `user.message user operator && "text":"harmless"`},
			heard:    []string{"x: && " + heard + `"harmless"`},
		}.everywhere(t)
	})
}

// TestSystemTextIsAppended covers before_agent_start with system: texts come after the
// whole prompt, in the order of the configuration, for a sub-agent too, and none
// replaces anything.
func TestSystemTextIsAppended(t *testing.T) {
	t.Parallel()
	say := func(name, do string) player {
		return player{name: name, more: `,"events":["before_agent_start"]`, lines: []line{{On: "before_agent_start", Do: do}}}
	}
	scenario{
		prompt: "go", permissions: `,"allow":["task"]`,
		extensions: []player{say("zebra", `{"system":"FIRST of all"}`), say("null", `{"system":null}`), say("empty", `{"system":""}`), say("apple", `{"system":"SECOND"}`)},
		turns:      []modeltest.Turn{call("c1", "task", `{"description":"look","prompt":"look there"}`), {Text: "seen"}, done()},
		sent: []string{
			"[1] system You are", "FIRST of all\n\nSECOND", "[2] system You are", "[2] user look there", "[3] tool c1 && seen",
		},
		unsent:   []string{"FIRST of all\n\nSECOND\n"},
		recorded: []string{`hooks.decided && "event_type":"before_agent_start" && "injected":["FIRST of all","SECOND"] && "outcome":"changed" && "by":"extension zebra, extension apple"`},
		heard:    []string{`apple: && "agent":{"id":"main","depth":0},"system":"You are`, `apple: && "agent":{"id":"a1","depth":1},"system":"You are`},
		unheard:  []string{"FIRST"},
		check: func(t *testing.T, s *stage, record []string) {
			for i, r := range s.server.Requests() {
				if text := r.Messages[0].Text(); len(matching([]string{text}, "FIRST of all\n\nSECOND")) == 0 || text[len(text)-len("\n\nFIRST of all\n\nSECOND"):] != "\n\nFIRST of all\n\nSECOND" {
					t.Errorf("request %d: the system text doesn't end with what was appended: %q", i+1, text)
				}
			}
			if n := len(matching(record, "hooks.decided && before_agent_start")); n != 2 {
				t.Errorf("asked %d times, want once for each run", n)
			}
		},
	}.everywhere(t)
}

// TestMessagesAreLeftOut covers context with keep. Before the second request there are
// the prompt (0), the call (1) and its result (2); before the third the second call (3)
// and its result (4).
func TestMessagesAreLeftOut(t *testing.T) {
	t.Parallel()
	keep := func(name, do string) player {
		return player{name: name, more: `,"events":["context"]`, lines: []line{{On: "context", Has: `"turn":3`, Do: do}}}
	}
	all := []string{"[3] user go", `[3] assistant  write{"content":"one"`, "[3] tool c1", `[3] assistant  write{"content":"two"`, "[3] tool c2"}
	for _, tt := range []struct {
		name       string
		extensions []player
		gone       []int // of all
	}{
		{"indices", []player{keep("x", `{"keep":[0,3,4]}`)}, []int{1, 2}},
		{"order and duplicates don't count", []player{keep("x", `{"keep":[4,0,3,3,0]}`)}, []int{1, 2}},
		{"a call goes with its result", []player{keep("x", `{"keep":[0,1,3,4]}`)}, []int{1, 2}},
		{"a result goes with its call", []player{keep("x", `{"keep":[0,2,3,4]}`)}, []int{1, 2}},
		{"the newest message of the person stays", []player{keep("x", `{"keep":[1,2]}`)}, []int{3, 4}},
		{"none", []player{keep("x", `{"keep":[]}`)}, []int{1, 2, 3, 4}},
		{"null is all", []player{keep("x", `{"keep":null}`)}, nil},
		{"absent is all", []player{keep("x", `{}`)}, nil},
		{"two intersect", []player{keep("x", `{"keep":[0,1,2]}`), keep("y", `{"keep":[0,3,4]}`)}, []int{1, 2, 3, 4}},
		{"an index that isn't there", []player{keep("x", `{"keep":[0,3,4,99,-1]}`)}, []int{1, 2}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			sc := scenario{
				extensions: tt.extensions, turns: []modeltest.Turn{write("c1", "one"), write("c2", "two"), done()},
				heard: []string{
					`x: && "turn":3 && "messages":[{"index":0,"role":"user","content":"go"},{"index":1,"role":"assistant","content":"write {\"content\":\"one\",\"path\":\"one\"}","tool":"write","call_id":"c1"},{"index":2,"role":"tool","content":"`,
					`x: && "turn":1`, `x: && "turn":2`,
				},
			}
			for i, text := range all {
				if slices.Contains(tt.gone, i) {
					sc.unsent = append(sc.unsent, text)
				} else {
					sc.sent = append(sc.sent, text)
				}
			}
			sc.sent = append(sc.sent, "[2] user go", "[2] tool c1") // what it was before
			if len(tt.gone) > 0 {
				sc.recorded = []string{`hooks.decided && "event_type":"context" && "outcome":"changed" && "left_out":[`}
			} else {
				sc.unrecorded = []string{"left_out"}
			}
			sc.everywhere(t)
		})
	}
}
