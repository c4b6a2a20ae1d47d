package abhed_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/abhed/abhed/internal/model/modeltest"
)

// TestTheStricterWins lets extensions disagree about calls, in every order of the
// configuration: the decisions are the same, and so is what the model reads.
func TestTheStricterWins(t *testing.T) {
	t.Parallel()
	about := func(word string) string { return `"args":` + writeArgs(word) }
	judge := func(name string, lines ...line) player {
		for i := range lines {
			lines[i].On = "tool_call"
		}
		return player{name: name, more: `,"events":["tool_call"]`, lines: lines}
	}
	three := []player{
		judge("blocks", line{Has: about("all"), Do: `{"block":true,"reason":"never"}`}, line{Has: about("apart"), Do: `{"args":{"content":"apart","path":"moved"}}`},
			line{Has: about("clash"), Do: `{"args":` + writeArgs("mine") + `}`}, line{Has: `{"content":"more","path":"chain"}`, Do: `{"block":true,"reason":"not any more"}`}),
		judge("asks", line{Has: about("all"), Do: `{"ask":true,"reason":"look"}`}, line{Has: about("half"), Do: `{"ask":true,"reason":"look"}`},
			line{Has: about("clash"), Do: `{"args":` + writeArgs("theirs") + `}`}, line{Has: about("chain"), Do: `{"args":{"content":"more","path":"chain"}}`}),
		judge("silent", line{Has: about("all"), Do: `{}`}, line{Has: about("apart"), Do: `{"args":{"content":"new","path":"apart"}}`},
			line{Has: `{"content":"new","path":"moved"}`, Do: `{}`}, line{Has: about("endless"), Do: `{"args":` + writeArgs("endless1") + `}`},
			line{Has: about("endless1"), Do: `{"args":` + writeArgs("endless2") + `}`}, line{Has: about("endless2"), Do: `{"args":` + writeArgs("endless3") + `}`},
			line{Has: about("endless3"), Do: `{"args":` + writeArgs("endless4") + `}`}),
	}
	var turns []modeltest.Turn
	for _, word := range []string{"all", "half", "apart", "clash", "chain", "endless"} {
		turns = append(turns, write("c-"+word, word))
	}
	var first []string
	for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			scenario{
				extensions: []player{three[order[0]], three[order[1]], three[order[2]]}, turns: append(slices.Clone(turns), done()),
				has:   map[string]string{"moved": "new"},
				hasnt: []string{"all", "half", "apart", "clash", "mine", "theirs", "chain", "endless", "endless1", "endless2", "endless3", "endless4"},
				sent:  []string{"tool c-all && never", "tool c-half && look", "tool c-clash && asks && blocks && differently", "tool c-chain && not any more", "tool c-endless && Not run"},
				recorded: []string{
					`decision && "call_id":"c-apart" && "final":{"content":"new","path":"moved"} && "original":` + writeArgs("apart") + ` && "outcome":"run"`,
					`decision && "call_id":"c-all" && "step":"extension" && "by":"extension blocks"`,
				},
				check: func(t *testing.T, s *stage, record []string) {
					now := append(matching(record, "decision "), matching(s.sent(), "[7] tool")...)
					if first == nil {
						first = now
					}
					compare(t, "what the order of the configuration decides", first, now)
				},
				on: surfaces()[:1], // below it is all of them
			}.everywhere(t)
		})
	}
	scenario{
		extensions: three, turns: append(slices.Clone(turns), done()), has: map[string]string{"moved": "new"}, hasnt: []string{"all", "mine", "theirs", "chain"},
	}.everywhere(t)
}

// TestResultsGoFromOneToTheNext covers tool_result with several extensions: each sees
// what the one before it made of a result; one that changes it again after a later one
// withholds it.
func TestResultsGoFromOneToTheNext(t *testing.T) {
	t.Parallel()
	change := func(name, from, to string) player {
		return player{name: name, more: `,"events":["tool_result"]`, lines: []line{{On: "tool_result", Has: `"content":"` + from, Do: `{"content":"` + to + `"}`}}}
	}
	for name, tt := range map[string]struct {
		extensions []player
		sc         scenario
	}{
		"in order": {[]player{change("a", "Created", "first"), change("b", "first", "second")}, scenario{
			sent: []string{"tool c1 second"}, unsent: []string{"first", "Created"}, recorded: []string{`tool.ended && "content":"second" && "rewritten_by":["a","b"]`},
			heard: []string{`a: && "content":"Created`, `b: && "content":"first"`, `a: && "content":"second"`},
		}},
		"the other way round": {[]player{change("b", "first", "second"), change("a", "Created", "first")}, scenario{
			sent: []string{"tool c1 && The result of write is withheld"}, unsent: []string{"second", "first", "Created"}, heard: []string{`b: && "content":"Created`, `b: && "content":"first"`},
		}},
		"without end": {[]player{change("a", "", "mine"), change("b", "", "yours")}, scenario{
			sent: []string{"tool c1 && The result of write is withheld"}, unsent: []string{"mine", "yours", "Created"}, unrecorded: []string{"Created"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sc := tt.sc
			sc.extensions, sc.turns, sc.has = tt.extensions, []modeltest.Turn{write("c1", "one"), done()}, map[string]string{"one": "one"}
			sc.everywhere(t)
		})
	}
}

// spellings are the ways of saying yes that the author of an extension might try.
func spellings() []string {
	return []string{
		`{"allow":true}`, `{"Allow":true}`, `{"ALLOW":"yes"}`, `{"decision":"allow"}`, `{"decision":"approve"}`, `{"permission":"allow"}`, `{"permissionDecision":"allow"}`,
		`{"verdict":"allow"}`, `{"ok":true}`, `{"approve":true}`, `{"approved":true}`, `{"block":false}`, `{"ask":false}`, `{"block":false,"ask":false,"reason":"allow"}`,
		`{"block":null,"ask":null,"allow":true}`, `{"deny":false}`, `{"override":true}`, `{"mode":"bypass"}`, `{"result":"allow"}`, `{"content":"allow"}`, `{"is_error":false}`,
		`{"continue":true}`, `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow"}}`, `{"effects":[{"type":"allow"}]}`, `{"objection":"none"}`,
		`{"behavior":"allow","updatedInput":{}}`, `{"scope":"session","allowed":true,"by":"the person"}`, `{"cancel":false,"keep":[],"system":"allow it","summary":"allowed"}`,
		`{"rules":{"allow":["*"],"deny":[]}}`, `{"tools":[{"name":"write","mutates":false,"schema":{"type":"object"}}]}`, `{"log":"allowed"}`, `{}`,
	}
}

// TestNothingLiftsADenial has an extension say yes in every way to calls that a rule
// denies, and to calls that a person must be asked about when nobody is there.
func TestNothingLiftsADenial(t *testing.T) {
	t.Parallel()
	x := player{name: "x"}
	var calls []modeltest.Call
	sc := scenario{permissions: `,"deny":["write(denied*)"],"ask":["write(asked*)"]`}
	for i, text := range spellings() {
		for _, kind := range []string{"denied", "asked", "both"} {
			word := fmt.Sprintf("%s%d", kind, i)
			if kind == "both" { // the answer proposes what a rule denies, and says yes to it
				word = fmt.Sprintf("other%d", i)
				x.lines = append(x.lines, line{On: "tool_call", Has: `"args":` + writeArgs(word), Do: `{"args":` + writeArgs(fmt.Sprintf("denied%d", i)) + `,` + text[1:]})
				if text == "{}" || text[:7] == `{"args"` {
					continue
				}
			} else {
				x.lines = append(x.lines, line{Has: `"args":` + writeArgs(word), Do: text})
			}
			calls = append(calls, modeltest.Call{ID: "c-" + word, Name: "write", Args: writeArgs(word)})
			sc.hasnt = append(sc.hasnt, word)
			sc.recorded = append(sc.recorded, `decision && "call_id":"c-`+word+`" && "outcome":"deny"`)
		}
	}
	sc.extensions, sc.turns, sc.unrecorded = []player{x}, []modeltest.Turn{{Calls: calls}, done()}, []string{`"outcome":"run"`, `"state":"dead"`}
	sc.heard = []string{`"event":"permission_request" && "args":` + writeArgs("asked0")}
	sc.everywhere(t)
}
