package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/model/modeltest"
	"github.com/abhed/abhed/internal/require"
)

// question returns the next question about a call.
func (c *service) question() *event.ApprovalRequested {
	c.t.Helper()
	return c.event(event.TypeApprovalRequested).event.Payload.(*event.ApprovalRequested)
}

// refused sends an answer that must not count.
func (c *service) refused(method, request, hash, more, code, says string) {
	c.t.Helper()
	l := c.do(method, fmt.Sprintf(`"request":%q,"hash":%q%s`, request, hash, more), "error")
	if l.member("code") != code || !strings.Contains(l.member("error"), says) {
		c.t.Errorf("%s %s: %s; want %s and %q", method, more, l.text, code, says)
	}
}

// settle answers a question.
func (c *service) settle(method string, q *event.ApprovalRequested, more string) {
	c.t.Helper()
	c.do(method, fmt.Sprintf(`"request":%q,"hash":%q%s`, q.Request, q.Hash, more), "settled")
}

// outcome returns the end of the next call.
func (c *service) outcome() *event.ToolEnded {
	c.t.Helper()
	return c.event(event.TypeToolEnded).event.Payload.(*event.ToolEnded)
}

func touch(id, name string) modeltest.Turn {
	return asked(id, "bash", fmt.Sprintf(`{"command":"touch %s"}`, name))
}

// TestRPCAnswersThatDontCount: an answer counts for the call whose hash it names; any
// other is an error and leaves the question open.
func TestRPCAnswersThatDontCount(t *testing.T) {
	t.Parallel()
	s := newStage(t, touch("c1", "one"), modeltest.Turn{Text: "done"})
	c := s.serve()
	c.begin(`"approve":"client"`)
	prompt := c.prompt("work")
	q := c.question()
	if q.Tool != "bash" || !strings.Contains(q.Args, "touch one") || len(q.Hash) != 64 || !q.SessionOffered || len(q.Why) == 0 || q.WorkDir != s.dir {
		t.Errorf("the question: %+v", q)
	}
	c.refused("approve", q.Request, strings.Repeat("0", 64), "", "usage", "still open")
	c.refused("approve", q.Request, strings.ToUpper(q.Hash), "", "usage", "still open")
	c.refused("deny", q.Request, q.Hash[:63], "", "usage", "still open")
	c.refused("approve", q.Request+"x", q.Hash, "", "not_found", "there never was")
	c.refused("approve", q.Request, q.Hash, `,"scope":"forever"`, "usage", "/scope")
	if l := c.do("answer", fmt.Sprintf(`"request":%q,"text":"yes"`, q.Request), "error"); !strings.Contains(l.text, "use approve or deny") {
		t.Errorf("%s", l.text)
	}
	if exists(s.in("one")) {
		t.Fatal("it ran before it was approved")
	}
	c.settle("approve", q, "")
	if e := c.outcome(); e.CallID != "c1" || e.Outcome != "ok" || !exists(s.in("one")) {
		t.Errorf("approved: %+v", e)
	}
	c.refused("approve", q.Request, q.Hash, "", "not_found", "has ended")
	c.reply(prompt, "answer")
	c.quit()
}

// TestRPCApprovalScopes: an approval counts once, or for the same call of the session
// where that is offered; the comment of a denial reaches the model and the record.
func TestRPCApprovalScopes(t *testing.T) {
	t.Parallel()
	s := newStage(t,
		touch("c1", "one"), touch("c2", "two"), touch("c3", "two"), touch("c4", "one"), asked("c5", "bash", `{"command":"touch two","description":"the same command"}`),
		asked("c6", "bash", `{"command":"rm -rf two"}`), modeltest.Turn{Text: "done"},
	)
	c := s.serve()
	session := c.begin(`"approve":"client"`)
	prompt := c.prompt("work")
	c.settle("approve", c.question(), "")
	c.outcome()
	// c3 is the call that was approved for the session, c4 one that was approved once,
	// c5 has other arguments.
	c.settle("approve", c.question(), `,"scope":"session"`)
	if e := c.outcome(); e.CallID != "c2" || e.Outcome != "ok" {
		t.Errorf("for the session: %+v", e)
	}
	third := c.outcome()
	q := c.question()
	if third.CallID != "c3" || third.Outcome != "ok" || q.CallID != "c4" {
		t.Errorf("after an approval for the session: %+v, then a question about %s", third, q.CallID)
	}
	c.settle("approve", q, "")
	c.outcome()
	if q = c.question(); q.CallID != "c5" {
		t.Errorf("the question is about %s", q.CallID)
	}
	c.settle("deny", q, "")
	c.outcome()

	q = c.question()
	if q.CallID != "c6" || q.SessionOffered {
		t.Errorf("the destructive call: %+v", q)
	}
	c.refused("approve", q.Request, q.Hash, `,"scope":"session"`, "usage", "still open")
	c.settle("deny", q, `,"comment":"keep \"two\", please"`)
	if e := c.outcome(); e.Outcome != "denied" || !exists(s.in("two")) {
		t.Errorf("denied: %+v", e)
	}
	c.reply(prompt, "answer")
	got := s.said(6)
	if last := got[len(got)-1]; !strings.Contains(last, `keep "two", please`) {
		t.Errorf("the model reads: %q", last)
	}
	c.quit()
	s.verified(session)
	var list []string
	for _, e := range s.recorded(session) {
		if a, is := e.Payload.(*event.Approval); is {
			list = append(list, fmt.Sprintf("%s %v %s %s %s", a.CallID, a.Allowed, a.Scope, a.By, a.Reason))
		}
	}
	want := "c1 true once rpc client |c2 true session rpc client |c4 true once rpc client |c5 false  rpc client |c6 false  rpc client keep \"two\", please"
	if strings.Join(list, "|") != want {
		t.Errorf("approvals in the record:\n%s", strings.Join(list, "\n"))
	}
}

// TestRPCApprovalOfAnother: what an extension makes of a call that was approved for the
// session is another call, about which a person is asked anew, with what it was.
func TestRPCApprovalOfAnother(t *testing.T) {
	t.Parallel()
	sh := require.Path(t, "sh")
	s := newStage(t, touch("c1", "two"), touch("c2", "two"), modeltest.Turn{Text: "done"})
	file := filepath.Join(filepath.Dir(s.dir), "other.sh")
	s.put(file, `while IFS= read -r line; do
  if [ -e two ]; then echo '{"args":{"command":"touch three"}}'; else echo '{}'; fi
done
`)
	s.settings(`{"extensions":[{"name":"other","command":%q,"args":[%q],"cwd":%q,"events":["tool_call"]}]}`, sh, file, s.dir)
	c := s.serve()
	c.begin(`"approve":"client"`)
	prompt := c.prompt("work")
	first := c.question()
	c.settle("approve", first, `,"scope":"session"`)
	c.outcome()
	q := c.question()
	if !strings.Contains(q.Args, "touch three") || !strings.Contains(q.Original, "touch two") || q.Hash == first.Hash {
		t.Errorf("the question: %+v", q)
	}
	c.refused("approve", q.Request, first.Hash, "", "usage", "still open")
	c.settle("approve", q, "")
	if e := c.outcome(); e.Outcome != "ok" || !exists(s.in("three")) {
		t.Errorf("%+v", e)
	}
	c.reply(prompt, "answer")
	c.quit()
}

// TestRPCSubAgentAsks: what a sub-agent's call needs is asked of the same client, with
// the agent's id, and so is what the agent asks a person.
func TestRPCSubAgentAsks(t *testing.T) {
	t.Parallel()
	s := newStage(t,
		asked("c1", "ask_user", `{"question":"which \u202e one?","choices":["red","blue"]}`),
		asked("c2", "task", `{"description":"a task","prompt":"touch it"}`), touch("s1", "one"), modeltest.Turn{Text: "touched"}, modeltest.Turn{Text: "done"},
	)
	c := s.serve()
	c.begin(`"approve":"client"`)
	prompt := c.prompt("work")
	ask := c.event(event.TypeQuestionRequested).event.Payload.(*event.QuestionRequested)
	if ask.From != "agent" || len(ask.Choices) != 2 {
		t.Errorf("%+v", ask)
	}
	c.do("answer", fmt.Sprintf(`"request":%q,"text":"green"`, ask.Request), "error")
	c.do("answer", fmt.Sprintf(`"request":%q,"text":"blue"`, ask.Request), "settled")
	if e := c.outcome(); !strings.Contains(e.Content, "blue") {
		t.Errorf("%+v", e)
	}
	q := c.question()
	if q.AgentID != "a1" || q.CallID != "s1" {
		t.Errorf("%+v", q)
	}
	c.settle("approve", q, "")
	if e := c.outcome(); e.AgentID != "a1" || e.Outcome != "ok" || !exists(s.in("one")) {
		t.Errorf("%+v", e)
	}
	c.reply(prompt, "answer")
	c.quit()
}

// TestRPCNobodyToAsk: without approve: client nobody is asked, and the call is denied.
func TestRPCNobodyToAsk(t *testing.T) {
	t.Parallel()
	s := newStage(t, touch("c1", "one"), modeltest.Turn{Text: "done"})
	c := s.serve()
	c.begin(`"approve":"none"`)
	c.reply(c.prompt("work"), "answer")
	for _, e := range c.events() {
		if e.Payload.Type() == event.TypeApprovalRequested {
			t.Errorf("a question that nobody can answer: %+v", e.Payload)
		}
		if p, is := e.Payload.(*event.ToolEnded); is && p.Outcome != "denied" {
			t.Errorf("%+v", p)
		}
	}
	c.quit()
}

// TestRPCQuestionNamesTheFile: a question about a path that leads through a link names
// what was given and the file that it is (I097).
func TestRPCQuestionNamesTheFile(t *testing.T) {
	t.Parallel()
	s := newStage(t, asked("c1", "write", `{"path":"third/n","content":"x"}`), modeltest.Turn{Text: "done"})
	outside := filepath.Join(filepath.Dir(s.dir), "elsewhere")
	s.put(filepath.Join(outside, "m"), "")
	if err := os.Symlink(outside, s.in("third")); err != nil {
		t.Fatal(err)
	}
	c := s.serve()
	session := c.begin(`"mode":"accept-edits","approve":"client"`)
	prompt := c.prompt("work")
	q := c.question()
	if text := q.Args + strings.Join(q.Why, "\n"); !strings.Contains(text, "third/n") || !strings.Contains(text, filepath.Join(outside, "n")) {
		t.Errorf("the question: %+v", q)
	}
	c.settle("approve", q, "")
	c.reply(prompt, "answer")
	if !exists(filepath.Join(outside, "n")) {
		t.Error("it was not written")
	}
	c.quit()
	for _, e := range s.recorded(session) {
		d, is := e.Payload.(*event.Decision)
		if is && (!strings.Contains(string(d.Original), "third/n") || !strings.Contains(string(d.RulesOriginal)+d.Subject, filepath.Join(outside, "n"))) {
			t.Errorf("the decision: %+v", d)
		}
	}
}
