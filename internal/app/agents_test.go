package app_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/abhed/abhed/internal/control"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/require"
)

// plays makes the model play a script, in which agents has the steps of sub-agents by
// their tasks. more are further members of the settings.
func (w *world) plays(more, script string) {
	w.t.Helper()
	file := w.put(filepath.Join(w.home, "script.json"), script)
	w.settings(fmt.Sprintf(`{%s"custom_providers":[{"name":"play","api":"script","base_url":%q}]}`, more, file))
	w.opts.Model = "play/it"
}

// of returns the events of one sub-agent, "" for the main agent's.
func of(events []event.Event, id string) []event.Event {
	var out []event.Event
	for _, e := range events {
		if event.AgentOf(e.Payload) == id {
			out = append(out, e)
		}
	}
	return out
}

func payloads[P event.Payload](events []event.Event) []P {
	var out []P
	for _, e := range events {
		if p, ok := e.Payload.(P); ok {
			out = append(out, p)
		}
	}
	return out
}

const oneTask = `{"steps":[{"calls":[{"id":"t","name":"task","args":{"description":"look","prompt":"what is in a.txt?"%s}}]},{"expect":"%s","text":"done"}],
"agents":{"look":[%s]}}`

// TestSubAgent gives one task away: the sub-agent starts afresh, its calls pass the gate
// with its id, its events are in the same record, and the parent reads the report.
func TestSubAgent(t *testing.T) {
	w := newWorld(t)
	w.write("a.txt", "forty-two\n")
	w.plays(`"permissions":{"deny":["read(secret*)"]},`, fmt.Sprintf(oneTask, "", "it says forty-two",
		`{"calls":[{"id":"r","name":"read","args":{"path":"a.txt"}},{"id":"s","name":"read","args":{"path":"secret.txt"}}]},{"expect":"deny rule","text":"it says forty-two"}`))
	r := w.run(t.Context())
	if r.code != 0 || r.out != "done\n" {
		t.Fatalf("exit %d, said %q: %s", r.code, r.out, r.err)
	}
	events := w.events(r)
	started, ended := payloads[*event.AgentStarted](events), payloads[*event.AgentEnded](events)
	if len(started) != 1 || len(ended) != 1 || started[0].AgentID != "a1" || started[0].CallID != "t" || started[0].Depth != 1 || ended[0].Reason != "completed" || ended[0].Turns != 2 {
		t.Errorf("started %+v, ended %+v", started, ended)
	}
	mine := of(events, "a1")
	said := payloads[*event.UserMessage](mine)
	if len(said) != 1 || said[0].Text != "what is in a.txt?" {
		t.Errorf("the sub-agent was told %+v", said)
	}
	for _, d := range payloads[*event.Decision](mine) {
		if d.Depth != 1 || d.AgentID != "a1" {
			t.Errorf("the decision names %s, depth %d", d.AgentID, d.Depth)
		}
	}
	if got := outcome(mine, "r"); !strings.Contains(got, "forty-two") {
		t.Errorf("read: %q", got)
	}
	if all := payloads[*event.Decision](events); len(all) != 3 {
		t.Errorf("%d decisions", len(all))
	}
}

// TestSubAgentsShareLimits counts the replies of sub-agents with those of their parent.
func TestSubAgentsShareLimits(t *testing.T) {
	w := newWorld(t)
	w.plays("", fmt.Sprintf(oneTask, "", "max_turns", `{"calls":[{"id":"g","name":"glob","args":{"pattern":"*"}}]},{"calls":[{"id":"h","name":"glob","args":{"pattern":"*.go"}}]},{"text":"never"}`))
	w.opts.MaxTurns = 3
	r := w.run(t.Context())
	if r.code != 3 || !strings.Contains(r.err, "max_turns") {
		t.Errorf("exit %d: %s", r.code, r.err)
	}
	if ended := payloads[*event.AgentEnded](w.events(r)); len(ended) != 1 || ended[0].Reason != "max_turns" || ended[0].Turns != 2 {
		t.Errorf("%+v", ended)
	}
}

// TestSubAgentsOfSubAgents lets one have one of its own, and that one none.
func TestSubAgentsOfSubAgents(t *testing.T) {
	w := newWorld(t)
	w.plays("", `{"steps":[{"calls":[{"id":"t1","name":"task","args":{"description":"one","prompt":"p1"}}]},{"expect":"from one: from two","text":"done"}],"agents":{
		"one":[{"calls":[{"id":"t2","name":"task","args":{"description":"two","prompt":"p2"}}]},{"expect":"from two","text":"from one: from two"}],
		"two":[{"calls":[{"id":"t3","name":"task","args":{"description":"three","prompt":"p3"}}]},{"expect":"no tool","text":"from two"}]}}`)
	r := w.run(t.Context())
	if r.code != 0 || r.out != "done\n" {
		t.Fatalf("exit %d: %s%s", r.code, r.out, r.err)
	}
	started := payloads[*event.AgentStarted](w.events(r))
	if len(started) != 2 || started[1].Parent != "a1" || started[1].Depth != 2 || !strings.Contains(strings.Join(started[0].Tools, " "), "task") || strings.Contains(strings.Join(started[1].Tools, " "), "task") {
		t.Errorf("%+v", started)
	}
}

// TestReadOnlySubAgent has no tool that changes anything, nor has one of its own.
func TestReadOnlySubAgent(t *testing.T) {
	w := newWorld(t)
	w.opts.Mode = "bypass"
	w.plays("", fmt.Sprintf(oneTask, `,"read_only":true`, "sub says", `{"calls":[{"id":"w","name":"write","args":{"path":"x","content":""}},{"id":"b","name":"bash","args":{"command":"touch y"}},{"id":"n","name":"task","args":{"description":"deeper","prompt":"p"}}]},{"text":"sub says no"}],"deeper":[{"calls":[{"id":"v","name":"write","args":{"path":"z","content":""}}]},{"text":"deeper says no"}`))
	r := w.run(t.Context())
	if r.code != 0 || w.has("x") || w.has("y") || w.has("z") {
		t.Errorf("exit %d, x %t, y %t, z %t: %s", r.code, w.has("x"), w.has("y"), w.has("z"), r.err)
	}
	for _, s := range payloads[*event.AgentStarted](w.events(r)) {
		for _, name := range s.Tools {
			if name == "write" || name == "edit" || name == "bash" || name == "fetch" {
				t.Errorf("%s has the tool %s", s.AgentID, name)
			}
		}
	}
}

// TestWorktree lets a sub-agent work in a worktree of its own: the workspace stays as
// it is, the report says where the changes are, and nothing can be changed from there
// that is the workspace's. One without changes is removed.
func TestWorktree(t *testing.T) {
	git := require.Path(t, "git")
	w := newWorld(t)
	w.opts.Mode = "accept-edits"
	w.opts.Allow = []string{"bash"}
	w.write("a.txt", "one\n")
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=n", "-c", "user.email=e@x", "commit", "-qm", "first"}} {
		cmd := exec.Command(git, args...)
		cmd.Dir = w.dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	w.plays("", fmt.Sprintf(`{"steps":[{"calls":[{"id":"t","name":"task","args":{"description":"change","prompt":"p","worktree":true}},{"id":"u","name":"task","args":{"description":"look","prompt":"p","worktree":true}}]},{"text":"done"}],"agents":{
		"change":[{"calls":[{"id":"r","name":"read","args":{"path":"a.txt"}}]},{"calls":[{"id":"w","name":"edit","args":{"path":"a.txt","old_string":"one","new_string":"two"}},{"id":"o","name":"write","args":{"path":%q,"content":"x"}},{"id":"p","name":"bash","args":{"command":"pwd; cat a.txt; git status --short"}}]},{"text":"changed"}],
		"look":[{"text":"nothing to do"}]}}`, filepath.Join(w.dir, "outside.txt")))
	r := w.run(t.Context())
	if r.code != 0 {
		t.Fatalf("exit %d: %s", r.code, r.err)
	}
	if data, err := os.ReadFile(filepath.Join(w.dir, "a.txt")); err != nil || string(data) != "one\n" || w.has("outside.txt") {
		t.Errorf("the workspace has %q, %v, outside.txt %t", data, err, w.has("outside.txt"))
	}
	events := w.events(r)
	started := payloads[*event.AgentStarted](events)
	if len(started) != 2 {
		t.Fatalf("%+v", started)
	}
	trees := map[string]string{}
	for _, s := range started {
		trees[s.Title] = s.Worktree
	}
	report := outcome(events, "t")
	if data, err := os.ReadFile(filepath.Join(trees["change"], "a.txt")); err != nil || string(data) != "two\n" || !strings.Contains(report, trees["change"]) || !strings.Contains(report, "a.txt") {
		t.Errorf("%q, %v; the report: %s", data, err, report)
	}
	if got := outcome(events, "p"); !strings.Contains(got, trees["change"]+"\ntwo\n") || !strings.Contains(got, "M a.txt") {
		t.Errorf("the command says %q", got)
	}
	if _, err := os.Stat(trees["look"]); !os.IsNotExist(err) || !strings.Contains(outcome(events, "u"), "removed") {
		t.Errorf("the worktree without changes: %v; %s", err, outcome(events, "u"))
	}
}

// TestCancelledSubAgent ends one of two that hang: the other is ended by the interrupt,
// and the record has how.
func TestCancelledSubAgent(t *testing.T) {
	w := newWorld(t)
	w.plays("", `{"steps":[{"calls":[{"id":"t","name":"task","args":{"description":"one","prompt":"p"}},{"id":"u","name":"task","args":{"description":"two","prompt":"p"}}]},{"text":"never"}],"agents":{"one":[{"hang":true}],"two":[{"hang":true}]}}`)
	ctx, interrupt := context.WithCancelCause(t.Context())
	heard := &hangers{}
	s := w.open(control.Start{Sink: heard})
	heard.both = func() { // both hang, so they run side by side
		go func() {
			if err := s.Tune().CancelTask("a1"); err != nil {
				t.Error(err)
			}
			for _, task := range s.Look().Tasks() {
				if task.ID == "a2" && task.State != "running" {
					t.Errorf("%+v", task)
				}
			}
		}()
	}
	heard.oneEnded = func() { interrupt(&control.Interrupted{Reason: "user_interrupt"}) }
	began := time.Now()
	a := s.Prompt(ctx, control.Prompt{Text: "go"})
	if a.Reason != "user_interrupt" || time.Since(began) > 20*time.Second {
		t.Errorf("%+v after %s", a, time.Since(began))
	}
	record := s.Info().Record
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	for _, e := range payloads[*event.AgentEnded](w.events(result{record: record})) {
		if e.Reason != "user_interrupt" {
			t.Errorf("%+v", e)
		}
	}
}

// hangers hears when two sub-agents wait for the model, and when one has ended.
type hangers struct {
	mu             sync.Mutex
	waiting        int
	both, oneEnded func()
	once           sync.Once
}

func (h *hangers) Event(e event.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch p := e.Payload.(type) {
	case *event.ModelRequested:
		if p.AgentID != "" {
			if h.waiting++; h.waiting == 2 {
				h.both()
			}
		}
	case *event.AgentEnded:
		h.once.Do(h.oneEnded)
	}
}

func (*hangers) Delta(control.Delta) {}

// TestResumedSessionGoesOn has the task list again, and ids of sub-agents that were not
// there before.
func TestResumedSessionGoesOn(t *testing.T) {
	w := newWorld(t)
	w.plays("", fmt.Sprintf(oneTask, "", "report", `{"text":"report"}`))
	first := w.run(t.Context())
	w.plays("", `{"steps":[{"calls":[{"id":"l","name":"todo","args":{"items":[{"content":"mend it","status":"pending"}]}}]},{"calls":[{"id":"t","name":"task","args":{"description":"look","prompt":"p"}}]},{"text":"done"}],"agents":{"look":[{"text":"report"}]}}`)
	w.opts.Continue = true
	second := w.run(t.Context())
	if first.code != 0 || second.code != 0 || first.record != second.record {
		t.Fatalf("exit %d, %d: %s", first.code, second.code, second.err)
	}
	var ids []string
	for _, s := range payloads[*event.AgentStarted](w.events(second)) {
		ids = append(ids, s.AgentID)
	}
	if strings.Join(ids, " ") != "a1 a2" {
		t.Errorf("the sub-agents are %v", ids)
	}
}
