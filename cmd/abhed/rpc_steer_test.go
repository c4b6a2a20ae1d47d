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

// TestRPCSteer: what is said 200 ms into a command of two seconds reaches the next
// request to the model, behind the command's result. Said while nothing runs it waits,
// and the next prompt begins with it.
func TestRPCSteer(t *testing.T) {
	t.Parallel()
	s := newStage(t, asked("c1", "bash", `{"command":"sleep 2; echo slept"}`), modeltest.Turn{Text: "one"}, modeltest.Turn{Text: "two"})
	c := s.serve("--mode", "bypass")
	session := c.begin("")
	if l := c.do("steer", `"prompt":"early"`, "queued"); l.text != fmt.Sprintf(`{"type":"queued","id":%s}`, l.id) {
		t.Errorf("%s", l.text)
	}
	first := c.prompt("go")
	c.event(event.TypeToolStarted)
	time.Sleep(200 * time.Millisecond) // what is tested: in the middle of the command
	if n := len(s.server.Requests()); n != 1 {
		t.Fatalf("%d requests before the command has ended", n)
	}
	steered := c.do("steer", `"prompt":"be quick"`, "steered")
	ended := c.event(event.TypeToolEnded)
	if steered.at > ended.at {
		t.Error("the command had ended before it was steered")
	}
	c.reply(first, "answer")
	if got := s.said(1); len(got) < 2 || !strings.Contains(got[len(got)-2], "tool: slept") || got[len(got)-1] != "user: be quick" {
		t.Errorf("the second request: %q", got)
	}
	// The first request begins with what was said before there was a prompt.
	if got := s.said(0); !slices.Equal(got, []string{"user: early", "user: go"}) {
		t.Errorf("the first request: %q", got)
	}
	c.do("steer", `"prompt":"late"`, "queued")
	c.do("steer", `"prompt":"later"`, "queued")
	c.reply(c.prompt("and now"), "answer")
	if got := s.said(2); !slices.Equal(got[len(got)-4:], []string{"assistant: one", "user: late", "user: later", "user: and now"}) {
		t.Errorf("the third request: %q", got)
	}
	c.quit()
	s.verified(session)
}
