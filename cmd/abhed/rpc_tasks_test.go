package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/abhed/abhed/internal/control"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/model/modeltest"
	"github.com/abhed/abhed/internal/strictjson"
)

// tasks returns the background work.
func (c *service) tasks() (list []control.Task) {
	c.t.Helper()
	l := c.do("tasks", "", "tasks")
	if err := strictjson.Unmarshal(l.members["tasks"], &list, strictjson.Options{}); err != nil {
		c.t.Fatalf("%v in %s", err, l.text)
	}
	return list
}

// TestRPCBackground: a command in the background outlives its prompt, is listed, and
// is ended with its children by cancel_task.
func TestRPCBackground(t *testing.T) {
	t.Parallel()
	mark := mark()
	s := newStage(t, asked("c1", "bash", `{"command":"sleep `+mark+` & sleep `+mark+`; wait","background":true}`), modeltest.Turn{Text: "it runs"},
		asked("c2", "jobs", `{"action":"list"}`), modeltest.Turn{Text: "it ran"})
	c := s.serve("--mode", "bypass")
	session := c.begin("")
	if list := c.tasks(); len(list) != 0 {
		t.Errorf("%+v", list)
	}
	c.reply(c.prompt("begin"), "answer")
	c.asleep(mark, 2)
	list := c.tasks()
	if len(list) != 1 || list[0].Kind != "command" || list[0].State != "running" || !strings.Contains(list[0].Title, mark) {
		t.Fatalf("%+v", list)
	}
	children := c.sleepers(mark)
	c.do("cancel_task", `"task_id":"nobody"`, "error")
	id := fmt.Sprintf(`"task_id":%q`, list[0].ID)
	if l := c.do("cancel_task", id, "cancelled"); l.member("task_id") != list[0].ID {
		t.Errorf("%s", l.text)
	}
	gone(t, children)
	within(t, "the task to have ended", func() bool { return c.tasks()[0].State != "running" })
	if l := c.do("cancel_task", id, "error"); l.member("code") != "not_found" {
		t.Errorf("%s", l.text)
	}
	c.reply(c.prompt("how is it?"), "answer")
	got := s.said(3)
	if last := got[len(got)-1]; !strings.Contains(last, list[0].ID) || strings.Contains(last, "running") {
		t.Errorf("the model reads %q", last)
	}
	c.quit()
	s.verified(session)
}

// TestRPCSubAgents: the events of a sub-agent carry its id; it is listed, and ended by
// cancel_task with what its call started, while the other one goes on. That what is ended
// takes more and more memory doesn't help it (I123).
func TestRPCSubAgents(t *testing.T) {
	t.Parallel()
	mark := mark()
	two := modeltest.Turn{Calls: []modeltest.Call{
		{ID: "c1", Name: "task", Args: `{"description":"the first","prompt":"wait"}`}, {ID: "c2", Name: "task", Args: `{"description":"the second","prompt":"wait"}`},
	}}
	sleep := `{"command":"sleep ` + mark + ` & x=y; while [ ${#x} -lt 50000000 ]; do x=$x$x; done; wait"}`
	s := newStage(t, two, asked("s1", "bash", sleep), asked("s2", "bash", sleep), modeltest.Turn{Text: "both have ended"})
	c := s.serve("--mode", "bypass")
	session := c.begin("")
	prompt := c.prompt("work")
	first := c.wait("a call of a sub-agent", func(l spoken) bool {
		p, is := l.event.Payload.(*event.ToolStarted)
		return is && p.AgentID != ""
	}).event.Payload.(*event.ToolStarted).AgentID
	c.asleep(mark, 1)
	s.reached(3)
	list := c.tasks()
	if len(list) != 2 || list[0].Kind != "agent" || list[0].State != "running" || list[1].State != "running" || list[0].Title == list[1].Title {
		t.Fatalf("%+v", list)
	}
	// The other one's command waits for this one's, and can be ended before that.
	slices.SortFunc(list, func(a, _ control.Task) int {
		if a.ID == first {
			return 1
		}
		return -1
	})
	for i, a := range list {
		c.do("cancel_task", fmt.Sprintf(`"task_id":%q`, a.ID), "cancelled")
		ended := c.event(event.TypeAgentEnded).event.Payload.(*event.AgentEnded)
		if ended.AgentID != a.ID || ended.Reason != "user_interrupt" {
			t.Errorf("%+v", ended)
		}
		c.asleep(mark, 1-i)
	}
	if l := c.reply(prompt, "answer"); l.member("answer") != "both have ended" {
		t.Errorf("%s", l.text)
	}
	if l := c.do("cancel_task", fmt.Sprintf(`"task_id":%q`, list[0].ID), "error"); l.member("code") != "not_found" {
		t.Errorf("%s", l.text)
	}
	if after := c.tasks(); after[0].State != "user_interrupt" || after[1].State != "user_interrupt" {
		t.Errorf("%+v", after)
	}
	c.quit()
	s.verified(session)
	agents := map[string][]string{}
	for _, e := range c.events() {
		switch p := e.Payload.(type) {
		case *event.ToolStarted:
			agents[p.Tool] = append(agents[p.Tool], p.AgentID)
		case *event.ModelRequested:
			agents["model"] = append(agents["model"], p.AgentID)
		}
	}
	for name, want := range map[string][]string{"task": {"", ""}, "bash": {first}, "model": {"", "", "a1", "a2"}} {
		got := agents[name]
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("the agents of the events of %s are %q, want %q", name, got, want)
		}
	}
}
