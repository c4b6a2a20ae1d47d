package app_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/backend"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/model/modeltest"
)

// listing writes a task list beside the marker.
func listing() *scene {
	want, closed := well(), well()
	want.sent = []string{"1. [ ] MAKE it"}
	closed.sent, closed.unsent = []string{"The list was not changed: refused by backend org.test.judge"}, []string{"1. [ ] MAKE it"}
	return &scene{
		turns: []modeltest.Turn{{Calls: []modeltest.Call{
			{ID: "call_0", Name: "todo", Args: `{"items":[{"content":"MAKE it","status":"pending"}]}`}, {ID: "call_1", Name: "write", Args: markerArgs},
		}}, done()},
		want: want, closed: closed,
	}
}

// todo is a reply that writes a list: pairs of what is to be done and how far it is.
func todo(id string, pairs ...string) modeltest.Turn {
	var items []string
	for i := 0; i < len(pairs); i += 2 {
		items = append(items, fmt.Sprintf(`{"content":%q,"status":%q}`, pairs[i], pairs[i+1]))
	}
	return modeltest.Turn{Calls: []modeltest.Call{{ID: id, Name: "todo", Args: `{"items":[` + strings.Join(items, ",") + `]}`}}}
}

// TestTaskListsAreTakenWhole lets a backend refuse one entry of a list: nothing of the
// list counts, and the next one is compared with the list before.
func TestTaskListsAreTakenWhole(t *testing.T) {
	w := newWorld(t,
		todo("c1", "A", "pending", "A", "pending"),
		todo("c2", "A", "completed", "A", "pending", "FORBIDDEN", "pending"),
		todo("c3", "B", "pending", "A", "in_progress"), todo("c4", "B", "pending", "A", "in_progress"), todo("c5"), done())
	l := &listener{judge: func(_ context.Context, q *ahp.Intercept) ([]ahp.Effect, error) {
		if strings.Contains(string(q.Event.Task.Change), "FORBIDDEN") {
			return backend.Answer(q, deny())
		}
		return nil, nil
	}}
	w.hooks("org.test.judge", l.serve(t), intercept(ahp.TaskChangeBefore, "fail-closed")+","+strings.Replace(observeAll, "*", "task.change.after", 1))
	r := w.run(t.Context())
	if r.code != 0 {
		t.Fatalf("exit %d: %s", r.code, r.err)
	}
	events := w.events(r)
	for id, want := range map[string]string{
		"c1": "1. [ ] A\n2. [ ] A\n(2 of 2 open)\n", "c2": "The list was not changed: refused by backend org.test.judge: not on Fridays",
		"c3": "1. [ ] B\n2. [>] A\n(2 of 2 open)\n", "c4": "1. [ ] B\n2. [>] A\n(2 of 2 open)\n", "c5": "(the list is empty)",
	} {
		if got := outcome(events, id); got != want {
			t.Errorf("%s: %q, want %q", id, got, want)
		}
	}
	var got []string
	turn := payloads[*event.HooksDecided](events)[0].TurnID
	for _, e := range l.events {
		if e.Turn == nil || e.Turn.ID != turn || turn == "" {
			t.Errorf("%s is in the turn %+v, the record has %q", e.Type, e.Turn, turn)
		}
		when := "before"
		if e.Type == ahp.TaskChangeAfter {
			when = "after"
		}
		got = append(got, fmt.Sprintf("%s %s %s was %s", when, e.Task.Operation, e.Task.Change, e.Task.Prior))
	}
	const a, b, started, none = `{"content":"A","status":"pending"}`, `{"content":"B","status":"pending"}`, `{"content":"A","status":"in_progress"}`, `{}`
	want := []string{
		"before create " + a + " was ", "before create " + a + " was ", "after create " + a + " was ", "after create " + a + " was ",
		`before update {"content":"A","status":"completed"} was ` + a, `before create {"content":"FORBIDDEN","status":"pending"} was `,
		"before create " + b + " was ", "before update " + started + " was " + a, "before remove " + none + " was " + a,
		"after create " + b + " was ", "after update " + started + " was " + a, "after remove " + none + " was " + a,
		"before remove " + none + " was " + b, "before remove " + none + " was " + started, "after remove " + none + " was " + b, "after remove " + none + " was " + started,
	}
	if !slices.Equal(got, want) {
		t.Errorf("the backend saw\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if first := l.of(ahp.TaskChangeBefore); first[0].Task.ID == first[1].Task.ID {
		t.Error("two entries that say the same have one id")
	}
}

// TestTaskListsOfSubAgents lets every agent write the same list: each has its own, and
// the backend knows whose it is. A refused list of one is no other's matter.
func TestTaskListsOfSubAgents(t *testing.T) {
	const list = `{"calls":[{"id":"%s","name":"todo","args":{"items":[{"content":"MAKE it","status":"pending"}]}}]},`
	const give = `{"calls":[{"id":"%s","name":"task","args":{"description":"%s","prompt":"p"}}]},`
	w := newWorld(t)
	w.plays("", fmt.Sprintf(`{"steps":[`+list+give+`{"text":"done"}],"agents":{"look":[`+list+give+`{"text":"seen"}],"deeper":[`+list+`{"text":"deep"}]}}`,
		"l0", "t1", "look", "l1", "t2", "deeper", "l2"))
	l := &listener{judge: func(_ context.Context, q *ahp.Intercept) ([]ahp.Effect, error) {
		if q.Event.Session.Agent.ID == "a1" {
			return backend.Answer(q, deny())
		}
		return nil, nil
	}}
	w.hooks("org.test.judge", l.serve(t), intercept(ahp.TaskChangeBefore, "fail-closed")+","+strings.Replace(observeAll, "*", "task.change.after", 1))
	r := w.run(t.Context())
	if r.code != 0 || r.out != "done\n" {
		t.Fatalf("exit %d: %s%s", r.code, r.out, r.err)
	}
	var got []string
	for _, e := range l.events {
		got = append(got, fmt.Sprintf("%s %s %s %s", e.Type, e.Session.Agent.ID, e.Session.Agent.Type, e.Task.Operation))
	}
	want := []string{
		"task.change.before main  create", "task.change.after main  create", "task.change.before a1 subagent create",
		"task.change.before a2 subagent create", "task.change.after a2 subagent create",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the backend saw\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	events := w.events(r)
	depth := map[string]int{}
	for _, p := range payloads[*event.AgentStarted](events) {
		depth[p.AgentID] = p.Depth
	}
	var decided []string
	for _, p := range payloads[*event.HooksDecided](events) {
		decided = append(decided, fmt.Sprintf("%s at depth %d: %s", p.AgentID, depth[p.AgentID], p.Outcome))
	}
	if want := []string{" at depth 0: none", "a1 at depth 1: denied", "a2 at depth 2: none"}; !slices.Equal(decided, want) {
		t.Errorf("the record has %q, want %q", decided, want)
	}
	for id, refused := range map[string]bool{"l0": false, "l1": true, "l2": false} {
		if got := outcome(events, id); strings.Contains(got, "refused by backend org.test.judge") != refused || strings.Contains(got, "1. [ ] MAKE it") == refused {
			t.Errorf("%s: %q", id, got)
		}
	}
}
