package session

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/abhed/abhed/internal/event"
)

func fold(payloads ...event.Payload) *State {
	var f Fold
	for i, p := range payloads {
		f.Apply(event.Event{Seq: int64(i + 1), Payload: p})
	}
	return f.State()
}

// show writes messages one a line, as a reader of a failed test wants them.
func show(messages []*event.Message) string {
	var b strings.Builder
	for _, m := range messages {
		b.WriteString(string(m.Role) + ":")
		for _, p := range m.Parts {
			switch {
			case p.Text != nil:
				b.WriteString(" " + *p.Text)
			case p.ToolCall != nil:
				b.WriteString(" call " + p.ToolCall.ID + "/" + p.ToolCall.Name)
			case p.ToolResult != nil:
				fmt.Fprintf(&b, " result %s/%s %.30s %v", p.ToolResult.CallID, p.ToolResult.Name, p.ToolResult.Content, p.ToolResult.IsError)
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

func calls(ids ...string) *event.ModelResponded {
	m := event.Message{Role: event.RoleAssistant}
	for _, id := range ids {
		m.Parts = append(m.Parts, event.Part{ToolCall: &event.ToolCall{ID: id, Name: "t"}})
	}
	return &event.ModelResponded{Message: m}
}

func ended(id, content string, injected ...string) *event.ToolEnded {
	return &event.ToolEnded{CallID: id, Tool: "t", Content: content, Injected: injected}
}

func TestFoldMessages(t *testing.T) {
	user := func(s string) event.Payload { return &event.UserMessage{Text: s} }
	for name, c := range map[string]struct {
		events      []event.Payload
		want        string
		interrupted string
	}{
		"conversation": {conversation(), "user: line\u2028separator \x7f and \"quotes\"\nassistant: let me see call c1/bash call c2/read\ntool: result c1/bash a b c false\ntool: result c2/read not JSON true\nuser: mind the gap\n", "[]"},
		"injected after all results": {
			[]event.Payload{calls("a", "b"), ended("b", "rb", "ib"), ended("a", "ra", "ia1", "ia2")},
			"assistant: call a/t call b/t\ntool: result a/t ra false\ntool: result b/t rb false\nuser: ia1 ia2 ib\n", "[]",
		},
		"dangling at the end": {
			[]event.Payload{user("u"), calls("a", "b", "c"), ended("b", "rb"), &event.ToolStarted{CallID: "c"}},
			"user: u\nassistant: call a/t call b/t call c/t\ntool: result a/t interrupted: the session ended true\ntool: result b/t rb false\ntool: result c/t interrupted: the session ended true\n", "[a c]",
		},
		"closed by a resume": {
			[]event.Payload{calls("a"), &event.SessionResumed{Interrupted: []string{"a"}}, user("go on"), ended("a", "too late")},
			"assistant: call a/t\ntool: result a/t interrupted: the session ended true\nuser: go on\n", "[]",
		},
		"closed by the next message": {
			[]event.Payload{calls("a"), user("never mind")}, "assistant: call a/t\ntool: result a/t interrupted: the session ended true\nuser: never mind\n", "[]",
		},
		"the same id in each turn and twice in one": {
			[]event.Payload{calls("x"), ended("x", "1"), calls("x", "x"), ended("x", "2"), ended("x", "3"), ended("x", "4")},
			"assistant: call x/t\ntool: result x/t 1 false\nassistant: call x/t call x/t\ntool: result x/t 2 false\ntool: result x/t 3 false\n", "[]",
		},
		"sub-agents are their own": {
			[]event.Payload{
				user("u"), calls("task"), &event.UserMessage{AgentID: "sub", Text: "do"}, &event.ModelResponded{AgentID: "sub", Message: calls("task").Message},
				&event.ToolEnded{AgentID: "sub", CallID: "task", Content: "inner"}, ended("task", "outer"),
			},
			"user: u\nassistant: call task/t\ntool: result task/t outer false\n", "[]",
		},
		"an outcome without a call":     {[]event.Payload{user("u"), ended("ghost", "boo")}, "user: u\n", "[]"},
		"a reply without parts":         {[]event.Payload{user("u"), &event.ModelResponded{}}, "user: u\n", "[]"},
		"a payload of a later version":  {[]event.Payload{user("u"), &event.Unknown{Kind: "new", Body: event.Raw(`{}`)}}, "user: u\n", "[]"},
		"nothing has come to pass here": {nil, "", "[]"},
	} {
		t.Run(name, func(t *testing.T) {
			s := fold(c.events...)
			if d := cmp.Diff(c.want, show(s.Messages)); d != "" {
				t.Error(d)
			}
			if got := fmt.Sprint(s.Interrupted); got != c.interrupted {
				t.Errorf("interrupted %s, expected %s", got, c.interrupted)
			}
			checkConversation(t, s.Messages)
		})
	}
}

func TestFoldSaysWhetherACallWasStarted(t *testing.T) {
	s := fold(calls("a", "b"), &event.ToolStarted{CallID: "b"})
	a, b := s.Messages[1].Parts[0].ToolResult.Content, s.Messages[2].Parts[0].ToolResult.Content
	if !strings.Contains(a, "did nothing") || !strings.Contains(b, "may be done") {
		t.Errorf("not started: %q; started: %q", a, b)
	}
}

func TestFoldRest(t *testing.T) {
	n := func(v int64) *int64 { return &v }
	s := fold(
		started(), &event.TurnStarted{Turn: 1}, &event.TurnStarted{Turn: 9, AgentID: "sub"}, &event.ModelResponded{Usage: &event.Usage{Input: n(10), Output: n(0)}},
		&event.ModelResponded{AgentID: "sub", Usage: &event.Usage{Input: n(5)}}, &event.ModelResponded{},
		&event.ToolEnded{WorkDir: "/w/a"}, &event.ToolEnded{WorkDir: "/elsewhere", AgentID: "sub"}, &event.Decision{Mode: "auto"}, &event.TurnStarted{Turn: 2},
		&event.SessionEnded{Reason: "max_turns"},
	)
	if s.Turns != 2 || s.WorkDir != "/w/a" || s.LastMode != "auto" || !s.Ended || s.Reason != "max_turns" || *s.Usage.Input != 15 || *s.Usage.Output != 0 || s.Usage.CacheRead != nil {
		t.Errorf("%+v", s)
	}
	if s := fold(&event.SessionEnded{Reason: "error"}, &event.SessionResumed{SessionStarted: event.SessionStarted{Mode: "plan"}}); s.Ended || s.Reason != "" || s.LastMode != "plan" {
		t.Errorf("after a resume: %+v", s)
	}
}

// TestFoldIsAlwaysAValidConversation draws events in any order.
func TestFoldIsAlwaysAValidConversation(t *testing.T) {
	id := rapid.SampledFrom([]string{"a", "b", "c"})
	rapid.Check(t, func(t *rapid.T) {
		var f Fold
		for range rapid.IntRange(0, 20).Draw(t, "n") {
			var p event.Payload
			switch rapid.IntRange(0, 5).Draw(t, "kind") {
			case 0:
				p = &event.UserMessage{Text: "u"}
			case 1:
				p = calls(rapid.SliceOfN(id, 0, 3).Draw(t, "ids")...)
			case 2:
				p = &event.ToolStarted{CallID: id.Draw(t, "id")}
			case 3, 4:
				p = ended(id.Draw(t, "id"), "r", rapid.SliceOfN(rapid.Just("i"), 0, 2).Draw(t, "inj")...)
			case 5:
				p = &event.SessionResumed{}
			}
			f.Apply(event.Event{Payload: p})
			before := show(f.state.Messages)
			checkConversation(t, f.State().Messages)
			if show(f.state.Messages) != before {
				t.Fatalf("State changed the fold")
			}
		}
	})
}

// TestFoldKnowsThePerson holds which messages count as the person's, and that a
// summary changes nothing of it.
func TestFoldKnowsThePerson(t *testing.T) {
	var f Fold
	say := func(by event.Actor, text string) {
		f.Apply(event.Event{Actor: by, Payload: &event.UserMessage{Text: text}})
	}
	if s := f.State(); s.First != nil || s.Newest != nil {
		t.Errorf("nobody has said %v, %v", s.First, s.Newest)
	}
	say(event.ActorSystem, "given by a backend")
	say(event.ActorUser, "first")
	say(event.ActorUser, "second")
	say(event.ActorSystem, "[abhed] little is left")
	f.Apply(event.Event{Payload: &event.UserMessage{AgentID: "a1", Text: "to a sub-agent"}, Actor: event.ActorUser})
	f.Apply(event.Event{Payload: &event.ContextReduced{From: 2, To: 4, Summary: "[abhed] short"}})
	s := f.State()
	if s.First != s.Messages[1] || s.First.Text() != "first" || s.Newest.Text() != "second" || len(s.Messages) != 3 {
		t.Errorf("first %v, newest %v of\n%s", s.First, s.Newest, show(s.Messages))
	}
}
