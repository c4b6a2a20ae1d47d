package abhed_test

import (
	"strings"
	"testing"

	"github.com/abhed/abhed/internal/model/modeltest"
)

// TestDeadExtensions lets extensions fail at a call, each in one way, and holds what
// their on_failure means for the call in hand and for those that follow. Match narrows
// each to calls of its own.
func TestDeadExtensions(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ do, class string }{
		"dies":             {dies, "exit"},
		"no JSON":          {"I think so", "invalid"},
		"a list":           {`[{}]`, "invalid"},
		"a wrong type":     {`{"block":"yes"}`, "invalid"},
		"a repeated name":  {`{"block":true,"block":false}`, "invalid"},
		"out of step":      {`{"seq":99}`, "out_of_step"},
		"text after reply": {`{} and more`, "invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			guard := func(name, rule, failure string) player {
				more := `,"events":["tool_call"],"match":["write(` + rule + `)"],"on_failure":"` + failure + `"`
				return player{name: name, more: more, lines: []line{{On: "tool_call", Do: tt.do}}}
			}
			sc := scenario{
				extensions: []player{guard("skipper", "s*", "skip"), guard("asker", "a*", "ask"), guard("blocker", "b*", "block")},
				turns:      []modeltest.Turn{write("c1", "s1"), write("c2", "a1"), write("c3", "b1"), write("c4", "s2"), write("c5", "a2"), write("c6", "b2"), write("c7", "free"), done()},
				has:        map[string]string{"s1": "s1", "s2": "s2", "free": "free"}, hasnt: []string{"a1", "b1", "a2", "b2"},
				sent:    []string{`tool c5 && extension "asker" is dead && Nobody can be asked`, `tool c6 && extension "blocker" is dead`},
				unheard: []string{`"free"`, `"s2"`, `"a2"`, `"b2"`},
				recorded: []string{
					`decision && "call_id":"c1" && "failure":"` + tt.class + `" && "policy":"skip" && "outcome":"run"`,
					`decision && "call_id":"c2" && "failure":"` + tt.class + `" && "policy":"ask" && "step":"headless"`,
					`decision && "call_id":"c3" && "failure":"` + tt.class + `" && "policy":"block" && "step":"extension"`,
					`extension.changed && "name":"skipper" && "state":"dead" && "on_failure":"skip"`, `extension.changed && "name":"asker" && "state":"dead" && "on_failure":"ask"`,
					`extension.changed && "name":"blocker" && "state":"dead" && "on_failure":"block"`, `decision && "call_id":"c4" && "outcome":"run"`,
					`decision && "call_id":"c5" && "outcome":"deny" && "step":"headless"`, `decision && "call_id":"c6" && "outcome":"deny" && "step":"extension" && "code":"extension_failed"`,
				},
			}
			sc.everywhere(t)
		})
	}
}

// TestSilentExtensions has extensions answer nothing, all at the same call.
func TestSilentExtensions(t *testing.T) {
	t.Parallel()
	guard := func(name, rule, failure string) player {
		more := `,"events":["tool_call"],"match":["write(first)","write(` + rule + `)"],"timeout_ms":2000,"on_failure":"` + failure + `"`
		return player{name: name, more: more, lines: []line{{On: "tool_call", Do: hangs}}}
	}
	scenario{
		extensions: []player{guard("skipper", "s*", "skip"), guard("asker", "a*", "ask"), guard("blocker", "b*", "block")},
		turns:      []modeltest.Turn{write("c1", "first"), write("c4", "s2"), write("c5", "a2"), write("c6", "b2"), done()},
		has:        map[string]string{"s2": "s2"}, hasnt: []string{"first", "a2", "b2"},
		sent: []string{`tool c1 && extension "blocker" is dead && 2s`, `tool c5 && extension "asker" is dead`, `tool c6 && extension "blocker" is dead`},
		recorded: []string{
			`extension.changed && "name":"skipper" && "state":"dead"`, `extension.changed && "name":"asker" && "state":"dead"`, `extension.changed && "name":"blocker" && "state":"dead"`,
			`decision && "call_id":"c1" && "failure":"timeout" && "policy":"skip" && "policy":"ask" && "policy":"block" && "outcome":"deny"`,
		},
		unheard: []string{`"s2"`, `"a2"`, `"b2"`},
	}.everywhere(t)
}

// TestDeadBesideCalls holds what the death of an extension means at the other events.
func TestDeadBesideCalls(t *testing.T) {
	t.Parallel()
	turns := []modeltest.Turn{write("c1", "one"), done()}
	withheld := scenario{turns: turns, has: map[string]string{"one": "one"}, sent: []string{"tool c1 && The result of write is withheld"}, unsent: []string{"Created one"}, unrecorded: []string{"Created one"}}
	result := scenario{turns: turns, has: map[string]string{"one": "one"}, sent: []string{"tool c1 Created one"}}
	refused := scenario{reason: "prompt_refused", unrecorded: []string{"user.message", "model.requested"}}
	stopped := scenario{reason: "stopped", unrecorded: []string{"model.requested"}, recorded: []string{`"event_type":"context" && "outcome":"denied" && "by":"extension x"`}}
	plain := scenario{turns: turns, has: map[string]string{"one": "one"}, sent: []string{"[1] user go"}}
	for name, sc := range map[string]scenario{
		"tool_result block": withheld, "tool_result ask": withheld, "tool_result skip": result,
		"user_prompt_submit block": refused, "user_prompt_submit ask": refused, "user_prompt_submit skip": plain,
		"context block": stopped, "context ask": stopped, "context skip": plain,
		"before_agent_start block": plain, "session_start block": plain, "session_end block": plain,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ev, failure, _ := strings.Cut(name, " ")
			sc.extensions = []player{{name: "x", more: `,"events":["` + ev + `"],"on_failure":"` + failure + `"`, lines: []line{{On: ev, Do: dies}}}}
			sc.recorded = append(sc.recorded, `extension.changed && "name":"x" && "state":"dead" && exit`)
			sc.everywhere(t)
		})
	}
}

// TestDeadFromTheStart has extensions whose program doesn't exist: the session starts,
// and what they would have judged is treated by their on_failure.
func TestDeadFromTheStart(t *testing.T) {
	t.Parallel()
	for failure, want := range map[string]scenario{
		"skip":  {has: map[string]string{"one": "one"}, recorded: []string{`decision && "call_id":"c1" && "outcome":"run"`}},
		"ask":   {hasnt: []string{"one"}, recorded: []string{`decision && "call_id":"c1" && "outcome":"deny" && "step":"headless" && "policy":"ask"`}},
		"block": {hasnt: []string{"one"}, recorded: []string{`decision && "call_id":"c1" && "outcome":"deny" && "step":"extension" && "policy":"block"`}},
	} {
		t.Run(failure, func(t *testing.T) {
			t.Parallel()
			sc := want
			sc.turns = []modeltest.Turn{write("c1", "one"), done()}
			sc.recorded = append(sc.recorded, `extension.changed && "name":"gone" && "state":"dead" && "on_failure":"`+failure+`"`)
			sc.files = map[string]string{"home/.config/abhed/config.json": ""}
			sc.stage = func(s *stage) {
				s.put("home/.config/abhed/config.json", `{"permissions":{"mode":"accept-edits"},"sandbox":{"min_tier":"none"},
					"extensions":[{"name":"gone","command":"`+s.base+`/no-such-program","events":["tool_call"],"on_failure":"`+failure+`"}]}`)
			}
			sc.everywhere(t)
		})
	}
}
