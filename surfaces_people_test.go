package abhed_test

import (
	"strings"
	"testing"

	"github.com/abhed/abhed/internal/model/modeltest"
)

// asker is an extension that asks about some calls, rewrites others, and refuses to
// have a person asked about one.
func asker() player {
	about := func(word string) string { return `"args":` + writeArgs(word) }
	return player{name: "x", more: `,"events":["tool_call","permission_request","notification"]`, lines: []line{
		{On: "tool_call", Has: about("asked"), Do: `{"ask":true,"reason":"look at it"}`},
		{On: "tool_call", Has: about("old"), Do: `{"ask":true,"reason":"it is another now","args":` + writeArgs("new") + `}`},
		{On: "permission_request", Has: about("never"), Do: `{"block":true,"reason":"nobody need be asked"}`},
		{On: "permission_request", Do: `{"allow":true,"decision":"allow","block":false}`},
		{On: "notification", Do: `{"block":true,"log":"NOTED"}`},
	}}
}

// TestAPersonIsAsked covers ask, permission_request and notification where somebody can
// be asked: only the call that the person saw runs (I031: what runs is what the
// question showed).
func TestAPersonIsAsked(t *testing.T) {
	t.Parallel()
	turns := []modeltest.Turn{write("c1", "asked"), write("c2", "old"), write("c3", "ruled"), write("c4", "never"), write("c5", "denied"), done()}
	base := scenario{
		permissions: `,"ask":["write(ruled)","write(never)"],"deny":["write(denied)"]`, extensions: []player{asker()}, turns: turns, on: withPeople(),
		hasnt: []string{"old", "never", "denied"}, sent: []string{"tool c4 && nobody need be asked", "tool c5 && deny rule"},
		heard: []string{
			`"event":"permission_request" && "tool":"write","args":` + writeArgs("asked") + `,"content":"extension x: look at it"`,
			`"event":"permission_request" && "args":` + writeArgs("new"), `"event":"permission_request" && "args":` + writeArgs("ruled"),
			`"event":"notification" && "content":"A call of write needs an approval: extension x: look at it","tool":"write"`,
		},
		unheard:    []string{`"event":"notification" && nobody need be asked`, `"event":"permission_request" && ` + writeArgs("denied")},
		recorded:   []string{`approval.requested && "call_id":"c1" && "why":["extension x: look at it"]`, `approval.requested && "call_id":"c2" && "original":"` + strings.ReplaceAll(writeArgs("old"), `"`, `\"`)},
		unrecorded: []string{`approval.requested && "call_id":"c4"`, `approval.requested && "call_id":"c5"`},
	}
	yes, no := base, base
	yes.has = map[string]string{"asked": "asked", "new": "new", "ruled": "ruled"}
	yes.recorded = append(yes.recorded, `approval user && "call_id":"c1" && "allowed":true && "scope":"once"`, `decision && "call_id":"c2" && "step":"approval" && "outcome":"run" && "final":`+writeArgs("new"))
	yes.stage = func(s *stage) {
		s.person = func(q asked) said {
			if len(q.Hash) != 64 || q.Tool != "write" || len(q.Why) == 0 || q.Original != "" && (q.Original != writeArgs("old") || q.Args != writeArgs("new")) {
				s.t.Errorf("the question is %+v", q)
			}
			return said{allow: true}
		}
	}
	no.hasnt = append([]string{"asked", "new", "ruled"}, no.hasnt...)
	no.recorded = append(no.recorded, `decision && "call_id":"c1" && "step":"approval" && "outcome":"deny"`)
	no.unrecorded = append(no.unrecorded, `"outcome":"run"`)
	no.stage = func(s *stage) { s.person = func(asked) said { return said{} } }
	t.Run("who says yes", func(t *testing.T) { yes.everywhere(t) })
	t.Run("who says no", func(t *testing.T) { no.everywhere(t) })
	t.Run("nobody", func(t *testing.T) {
		alone := base
		alone.on, alone.hasnt = nil, no.hasnt
		alone.heard, alone.recorded = base.heard[:3], []string{`decision && "call_id":"c1" && "step":"headless" && "code":"headless"`}
		alone.unheard = append(alone.unheard, `"event":"notification"`)
		alone.unrecorded = append(alone.unrecorded, `"outcome":"run"`, "approval.requested")
		alone.sent = append(alone.sent, "tool c1 && Nobody can be asked", "tool c3 && Nobody can be asked")
		alone.everywhere(t)
	})
}

// TestOnlyTheRightHashApproves: an answer that names another hash, or the scope that
// was not offered, runs nothing, and a sound one in the same session does.
func TestOnlyTheRightHashApproves(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		say       said
		complaint string
	}{
		"another call's hash":     {said{allow: true, hash: strings.Repeat("a", 64)}, "the hash is not that of"},
		"half of the hash":        {said{allow: true, hash: "f"}, "the hash is not that of"},
		"a scope that wasn't for": {said{allow: true, scope: "session"}, "can't be approved for the session"},
	} {
		for _, on := range withPeople() {
			t.Run(name+" "+on.name, func(t *testing.T) {
				t.Parallel()
				s := scenario{extensions: []player{asker()}, turns: []modeltest.Turn{write("c1", "asked"), write("c2", "old"), done()}}.set(t)
				s.person = func(q asked) said {
					if q.Args == writeArgs("asked") {
						return tt.say
					}
					return said{allow: true}
				}
				e := on.run(t, s)
				got := files(t, s)
				if len(got) != 1 || got[0] != "new" || e.reason != "completed" {
					t.Errorf("%+v; there are the files %v", e, got)
				}
				expect(t, "the record", s.recorded(e.record), []string{`decision && "call_id":"c1" && "outcome":"deny" && "step":"approval"`, `decision && "call_id":"c2" && "outcome":"run"`}, []string{`approval && "call_id":"c1" && "allowed":true`})
				if on.name == "rpc" && (len(e.complaints) != 1 || !strings.Contains(e.complaints[0], tt.complaint)) {
					t.Errorf("rpc complains %q", e.complaints)
				}
			})
		}
	}
}

// TestApprovalForTheSession: one answer holds for the same call, a sub-agent's too, and
// for no other; and an extension that asks about it later is not passed over.
func TestApprovalForTheSession(t *testing.T) {
	t.Parallel()
	n := 0
	scenario{
		mode: "default", permissions: `,"allow":["task"]`, on: withPeople(), extensions: []player{{name: "x", lines: []line{{On: "tool_call", Has: `"call_id":"c4"`, Do: `{"ask":true,"reason":"again"}`}}}},
		turns: []modeltest.Turn{write("c1", "one"), write("c2", "one"), write("c3", "two"), write("c4", "one"), call("c5", "task", `{"description":"part","prompt":"do it"}`), write("c6", "one"), done(), done()},
		stage: func(s *stage) {
			n = 0
			s.person = func(q asked) said {
				n++
				return said{allow: n == 1, scope: "session"}
			}
		},
		has: map[string]string{"one": "one"}, hasnt: []string{"two"},
		recorded: []string{
			`approval user && "call_id":"c1" && "scope":"session"`, `decision && "call_id":"c2" && "outcome":"run" && an approval for this session`,
			`decision && "call_id":"c6" && "agent_id":"a1" && "outcome":"run" && an approval for this session`,
			`decision && "call_id":"c3" && "outcome":"deny"`, `approval.requested && "call_id":"c4" && extension x: again`, `decision && "call_id":"c4" && "outcome":"deny"`,
		},
		unrecorded: []string{`approval.requested && "call_id":"c2"`},
		check: func(t *testing.T, _ *stage, _ []string) {
			if n != 3 {
				t.Errorf("the person was asked %d times, want 3", n)
			}
		},
	}.everywhere(t)
}
