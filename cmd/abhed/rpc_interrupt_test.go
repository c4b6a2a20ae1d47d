package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/model/modeltest"
)

// place is where a prompt is interrupted.
type place struct {
	name string
	// turns are those of the model until then.
	turns []modeltest.Turn
	// reached waits until the prompt is there.
	reached func(c *service, mark string)
	// stays says that the process which sleeps isn't the call's, and lives on.
	stays bool
}

func hung(t modeltest.Turn, faults ...modeltest.Fault) modeltest.Turn {
	t.Faults = append(t.Faults, faults...)
	return t
}

// places are those at which a run waits for somebody.
func places(mark string) []place {
	started := func(c *service, _ string) { c.event(event.TypeToolStarted) }
	asleep := func(n int) func(*service, string) {
		return func(c *service, mark string) { c.asleep(mark, n) }
	}
	twice := fmt.Sprintf(`{"command":"sleep %s & sleep %[1]s; wait"}`, mark)
	three := modeltest.Turn{Calls: []modeltest.Call{
		{ID: "c1", Name: "write", Args: `{"path":"one","content":"1"}`}, {ID: "c2", Name: "bash", Args: twice}, {ID: "c3", Name: "write", Args: `{"path":"three","content":"3"}`},
	}}
	return []place{
		{name: "before the reply", turns: []modeltest.Turn{hung(modeltest.Turn{}, modeltest.StallHeaders())}, reached: func(c *service, _ string) { c.event(event.TypeModelRequested) }},
		{name: "stream", turns: []modeltest.Turn{hung(modeltest.Turn{Text: strings.Repeat("word ", 200)}, modeltest.StallAt(4000))}, reached: func(c *service, _ string) {
			c.wait("a delta", func(l spoken) bool { return l.typ == "delta" })
		}},
		{name: "wait for another attempt", turns: []modeltest.Turn{hung(modeltest.Turn{}, modeltest.RateLimited(60))}, reached: func(c *service, _ string) { c.event(event.TypeModelFailed) }},
		{name: "command", turns: []modeltest.Turn{asked("c1", "bash", twice)}, reached: asleep(2)},
		{name: "one of three calls done", turns: []modeltest.Turn{three}, reached: asleep(2)},
		{name: "extension's judgement", turns: []modeltest.Turn{asked("c1", "bash", `{"command":"echo slowhook"}`)}, reached: asleep(1), stays: true},
		{name: "extension's tool", turns: []modeltest.Turn{asked("c1", "slow", `{}`)}, reached: asleep(1)},
		{name: "MCP server's tool", turns: []modeltest.Turn{asked("c1", "mcp__srv__wait", `{}`)}, reached: started},
		{name: "approval", turns: []modeltest.Turn{asked("c1", "bash", `{"command":"rm -rf one"}`)}, reached: func(c *service, _ string) { c.event(event.TypeApprovalRequested) }},
		{name: "question", turns: []modeltest.Turn{asked("c1", "ask_user", `{"question":"which?"}`)}, reached: func(c *service, _ string) { c.event(event.TypeQuestionRequested) }},
		{name: "sub-agent", turns: []modeltest.Turn{asked("c1", "task", `{"description":"a task","prompt":"work"}`), asked("s1", "bash", twice)}, reached: asleep(2)},
	}
}

// TestRPCInterrupt interrupts a prompt wherever it may wait (I208, I209): that is
// answered at once; nothing more is asked or started then; the prompt is answered with
// the reason user_interrupt; what the call started has ended; and the next prompt
// works, with a history that the strict server takes and what was steered meanwhile.
func TestRPCInterrupt(t *testing.T) {
	t.Parallel()
	for i := range places("") {
		mark := mark()
		p := places(mark)[i]
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, append(p.turns, modeltest.Turn{Text: "on it"})...)
			s.slowParts(t, mark, "")
			c := s.serve("--mode", "bypass")
			session := c.begin(`"approve":"client","deltas":true`)
			prompt := c.prompt("work")
			s.reached(len(p.turns))
			p.reached(c, mark)
			c.do("steer", `"prompt":"and mind the gap"`, "steered")
			sleepers := c.sleepers(mark)
			begun := time.Now()
			ack := c.do("interrupt", "", "interrupted")
			if took := time.Since(begun); took > 2*time.Second || ack.member("running") != "true" {
				t.Errorf("after %v: %s", took, ack.text)
			}
			requests := len(s.server.Requests())
			l := c.reply(prompt, "error")
			if l.at < ack.at || l.member("code") != "interrupted" || l.member("reason") != "user_interrupt" {
				t.Errorf("the prompt's reply, line %d after line %d: %s", l.at, ack.at, l.text)
			}
			for _, l := range c.between(ack.at, l.at) {
				if l.typ == "event" && (l.event.Payload.Type() == event.TypeToolStarted || l.event.Payload.Type() == event.TypeModelRequested) {
					t.Errorf("after the interrupt: %s", l.text)
				}
			}
			if !p.stays {
				gone(t, sleepers)
			}
			if n := len(s.server.Requests()); n != requests || n != len(p.turns) {
				t.Errorf("%d requests at the interrupt, %d at the prompt's reply", requests, n)
			}
			if p.name == "approval" { // its question has ended with it
				q := c.find("the question", 0, is(event.TypeApprovalRequested)).event.Payload.(*event.ApprovalRequested)
				c.refused("approve", q.Request, q.Hash, "", "not_found", "has ended")
			}
			if l := c.do("interrupt", "", "interrupted"); l.member("running") != "false" {
				t.Errorf("when nothing runs: %s", l.text)
			}
			c.reply(c.prompt("go on"), "answer")
			got := s.said(len(p.turns))
			if last := strings.Join(got, "\n"); !strings.Contains(last, "user: go on") || !strings.Contains(last, "user: and mind the gap") {
				t.Errorf("the next request: %q", got)
			}
			c.quit()
			s.verified(session)
			outcomes(t, s.recorded(session), p.name)
		})
	}
}

// between returns the lines after number from and before number to.
func (c *service) between(from, to int) []spoken {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.lines[from+1 : to])
}

// outcomes checks that every call of the record has one outcome, and which those are
// of the place with three.
func outcomes(t *testing.T, record []event.Event, name string) {
	t.Helper()
	got := map[string][]string{}
	called := 0
	for _, e := range record {
		switch p := e.Payload.(type) {
		case *event.ModelResponded:
			called += len(p.Message.ToolCalls())
		case *event.ToolEnded:
			got[p.CallID] = append(got[p.CallID], p.Outcome)
		}
	}
	for id, list := range got {
		if len(list) != 1 {
			t.Errorf("the call %s has the outcomes %v", id, list)
		}
	}
	if len(got) != called {
		t.Errorf("%d calls, outcomes %v", called, got)
	}
	if name == "one of three calls done" && fmt.Sprint(got) != "map[c1:[ok] c2:[cancelled] c3:[cancelled]]" {
		t.Errorf("outcomes %v", got)
	}
}

// BenchmarkRPCInterrupt measures how long the answer to interrupt takes during a
// command, and the prompt's reply after that.
func BenchmarkRPCInterrupt(b *testing.B) {
	var turns []modeltest.Turn
	for n := range 1000 { // more than a run of a second takes
		turns = append(turns, asked(fmt.Sprintf("c%d", n), "bash", `{"command":"sleep 600"}`))
	}
	s := newStage(b, turns...)
	c := s.serve("--mode", "bypass")
	c.begin("")
	var acks, ends []time.Duration
	for b.Loop() {
		prompt := c.prompt("work")
		c.event(event.TypeToolStarted)
		begun := time.Now()
		c.do("interrupt", "", "interrupted")
		acks = append(acks, time.Since(begun))
		c.reply(prompt, "error")
		ends = append(ends, time.Since(begun))
	}
	c.quit()
	median := func(list []time.Duration) float64 {
		slices.Sort(list)
		return float64(list[len(list)/2].Microseconds()) / 1000
	}
	b.ReportMetric(median(acks), "ms-to-interrupted")
	b.ReportMetric(median(ends), "ms-to-reply")
}
