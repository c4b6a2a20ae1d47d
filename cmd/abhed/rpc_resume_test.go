package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/model/modeltest"
)

// TestRPCResume goes on with a session that was quit, and with one whose process was
// killed in the middle of a call: the model has all that was said, and of the call
// that it was interrupted.
func TestRPCResume(t *testing.T) {
	t.Parallel()
	mark := mark()
	s := newStage(t, touch("c1", "one"), modeltest.Turn{Text: "first"}, modeltest.Turn{Text: "second"},
		asked("c2", "bash", `{"command":"touch two; sleep `+mark+`"}`), modeltest.Turn{Text: "third"}, modeltest.Turn{Text: "fourth"})
	c := s.serve("--mode", "bypass")
	session := c.begin("")
	c.reply(c.prompt("one"), "answer")
	// It is open: nobody else goes on with it.
	other := s.serve()
	if l := other.do("start", `"resume":"`+session+`"`, "error"); !strings.Contains(l.text, session) {
		t.Errorf("%s", l.text)
	}
	other.do("start", `"resume":"01890000-0000-7000-8000-000000000000"`, "error")
	other.do("start", `"fork_at":3`, "error")
	other.quit()
	c.quit()

	c = s.serve("--mode", "bypass")
	if again := c.begin(`"resume":"` + session + `"`); again != session {
		t.Errorf("resumed as %s", again)
	}
	c.do("start", "", "error") // one is open already
	c.reply(c.prompt("two"), "answer")
	history := []string{"user: one", "assistant:  c1", "tool: *no output*", "assistant: first", "user: two"}
	if got := s.said(2); !same(got, history) {
		t.Errorf("after quit: %q", got)
	}
	c.prompt("three")
	c.asleep(mark, 1)
	if err := c.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	c.exit()

	c = s.serve("--mode", "bypass")
	c.begin(`"resume":"` + session + `"`)
	resumed := c.find("the resume", 0, is(event.TypeSessionResumed)).event.Payload.(*event.SessionResumed)
	if !slices.Equal(resumed.Interrupted, []string{"c2"}) {
		t.Errorf("interrupted calls: %q", resumed.Interrupted)
	}
	c.reply(c.prompt("four"), "answer")
	history = append(history, "assistant: second", "user: three", "assistant:  c2", "tool: *interrupted*", "user: four")
	if got := s.said(4); !same(got, history) {
		t.Errorf("after SIGKILL: %q", got)
	}
	c.quit()
	s.verified(session)
	if !exists(s.in("two")) {
		t.Error("the call had not begun")
	}
}

// same compares messages; a text in asterisks must be in the message.
func same(got, want []string) bool {
	return slices.EqualFunc(got, want, func(g, w string) bool {
		role, part, loose := strings.Cut(w, "*")
		if loose {
			return strings.HasPrefix(g, role) && strings.Contains(g, strings.TrimSuffix(part, "*"))
		}
		return strings.TrimSpace(g) == w
	})
}

// TestRPCFork leaves a session at an event, with the method and with start. Each
// record verifies, and the model has what was said up to that event.
func TestRPCFork(t *testing.T) {
	t.Parallel()
	s := newStage(t, touch("c1", "one"), modeltest.Turn{Text: "first"}, modeltest.Turn{Text: "second"},
		modeltest.Turn{Text: "other second"}, modeltest.Turn{Text: "third"}, modeltest.Turn{Text: "of one"}, modeltest.Turn{Faults: []modeltest.Fault{modeltest.StallHeaders()}})
	c := s.serve("--mode", "bypass")
	first := c.begin("")
	c.reply(c.prompt("one"), "answer")
	at := c.events()[len(c.events())-1].Seq
	c.reply(c.prompt("two"), "answer")
	c.do("fork", `"at":1000000`, "error")
	l := c.do("fork", fmt.Sprintf(`"at":%d`, at), "ready")
	second := l.member("session_id")
	if second == first || l.member("mode") != "bypass" {
		t.Errorf("%s", l.text)
	}
	c.reply(c.prompt("another two"), "answer")
	base := []string{"user: one", "assistant:  c1", "tool: *no output*", "assistant: first"}
	if got := s.said(3); !same(got, append(slices.Clone(base), "user: another two")) {
		t.Errorf("after a fork at %d: %q", at, got)
	}
	third := c.do("fork", "", "ready").member("session_id")
	c.reply(c.prompt("three"), "answer")
	if got := s.said(4); !same(got, append(slices.Clone(base), "user: another two", "assistant: other second", "user: three")) {
		t.Errorf("after a fork at the end: %q", got)
	}
	c.quit()

	c = s.serve()
	fourth := c.begin(fmt.Sprintf(`"resume":%q,"fork_at":%d`, first, at))
	c.reply(c.prompt("of the first"), "answer")
	if got := s.said(5); !same(got, append(slices.Clone(base), "user: of the first")) {
		t.Errorf("started at %d: %q", at, got)
	}
	prompt := c.prompt("hang")
	s.reached(7)
	if l := c.do("fork", "", "error"); l.member("code") != "busy" {
		t.Errorf("%s", l.text)
	}
	c.do("interrupt", "", "interrupted")
	c.reply(prompt, "error")
	c.quit()
	ids := []string{first, second, third, fourth}
	for _, id := range ids {
		s.verified(id)
	}
	of := ""
	for _, e := range s.recorded(fourth) {
		if f, is := e.Payload.(*event.SessionForked); is {
			of = fmt.Sprintf("%s at %d", f.From, f.At)
		}
	}
	if want := fmt.Sprintf("%s at %d", first, at); of != want {
		t.Errorf("the record says it is a fork of %s, want %s", of, want)
	}
	if slices.Sort(ids); len(slices.Compact(ids)) != 4 {
		t.Errorf("the ids of the sessions: %q", ids)
	}
}

// TestRPCForkWithinCall leaves a session in the middle of a call: the model is told that
// the outcome of the call isn't known.
func TestRPCForkWithinCall(t *testing.T) {
	t.Parallel()
	s := newStage(t, touch("c1", "one"), modeltest.Turn{Text: "first"}, modeltest.Turn{Text: "other"})
	c := s.serve("--mode", "bypass")
	c.begin("")
	c.reply(c.prompt("one"), "answer")
	at := c.find("the call", 0, is(event.TypeToolStarted)).event.Seq
	session := c.do("fork", fmt.Sprintf(`"at":%d`, at), "ready").member("session_id")
	c.reply(c.prompt("two"), "answer")
	if got := s.said(2); !same(got, []string{"user: one", "assistant:  c1", "tool: *interrupted*", "user: two"}) {
		t.Errorf("%q", got)
	}
	c.quit()
	s.verified(session)
}

// TestRPCDisabledTool: a tool that the settings disable is in no request, of a session
// that is new, resumed or forked, nor of a sub-agent, and refused if it is called all
// the same (I230). So it is, beside, with one that a workspace disables which nobody trusts.
func TestRPCDisabledTool(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"home/.config/abhed/config.json", "ws/.abhed/config.json"} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, touch("c1", "one"), modeltest.Turn{Text: "first"}, touch("c2", "two"), modeltest.Turn{Text: "second"},
				asked("t", "task", `{"description":"part","prompt":"do it"}`), touch("c4", "four"), modeltest.Turn{Text: "below"}, modeltest.Turn{Text: "done"},
				touch("c3", "three"), modeltest.Turn{Text: "third"})
			s.put(filepath.Join(s.dir, "..", file), `{"tools":{"disabled":["bash"]}}`)
			c := s.serve("--mode", "bypass")
			session := c.begin("")
			c.reply(c.prompt("one"), "answer")
			c.do("fork", "", "ready")
			c.reply(c.prompt("two"), "answer")
			c.reply(c.prompt("a part"), "answer")
			if l := c.do("tools", "", "tools"); strings.Contains(l.text, `"name":"bash"`) || !strings.Contains(l.text, `"name":"read"`) {
				t.Errorf("%s", l.text)
			}
			c.quit()
			c = s.serve("--mode", "bypass")
			c.begin(`"resume":"` + session + `"`)
			c.reply(c.prompt("three"), "answer")
			c.quit()
			read := map[string]string{}
			for n, r := range s.server.Requests() {
				for _, tool := range r.Tools {
					if strings.Contains(string(tool), `"name":"bash"`) {
						t.Errorf("request %d has the tool", n)
					}
				}
				if len(r.Tools) == 0 {
					t.Errorf("request %d has no tools at all", n)
				}
				for _, m := range r.Messages {
					if m.ToolCallID != nil {
						read[*m.ToolCallID] = m.Text()
					}
				}
			}
			for id, name := range map[string]string{"c1": "one", "c2": "two", "c3": "three", "c4": "four"} {
				if exists(s.in(name)) || !strings.Contains(read[id], `There is no tool named "bash"`) {
					t.Errorf("the call that makes %s was run, or not refused: %q", name, read[id])
				}
			}
		})
	}
}
