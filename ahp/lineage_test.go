package ahp_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/abhed/abhed/ahp"
)

// fileChanged returns an event of a kind that has no rules about its parent.
func fileChanged(source, id, parent string) *ahp.Event {
	return &ahp.Event{ID: id, Source: source, ParentEventID: parent, Type: ahp.FileChanged, Time: "2026-09-15T12:00:00Z",
		Changes: []ahp.ObservedChange{{Path: "a", Operation: "update"}}}
}

func taskEvent(t ahp.EventType, id, parent, task, operation string) *ahp.Event {
	return &ahp.Event{ID: id, Source: "urn:a", ParentEventID: parent, Type: t, Time: "2026-09-15T12:00:00Z",
		Task: &ahp.Task{ID: task, Operation: operation, Change: ahp.Raw(`{"status":"open"}`)}}
}

func elicitationEvent(t ahp.EventType, id, parent, server, mode, session string) *ahp.Event {
	e := &ahp.Event{ID: id, Source: "urn:a", ParentEventID: parent, Type: t, Time: "2026-09-15T12:00:00Z",
		Elicitation: &ahp.Elicitation{Server: server, Mode: mode}}
	if t == ahp.UserElicitationResult {
		e.Elicitation.Action = "accept"
	}
	if session != "" {
		e.Session = &ahp.Session{ID: session}
	}
	return e
}

// noOp returns an actual update of a task or, with operation "", of a workspace.
func noOp(operation, change, prior string) *ahp.Event {
	if operation == "" {
		e := &ahp.Event{ID: "e", Source: "urn:a", Type: ahp.WorkspaceChangeAfter, Time: "2026-09-15T12:00:00Z", Workspace: &ahp.Workspace{Kind: "cwd"}}
		c, _ := ahp.DecodeWorkspaceState([]byte(change))
		e.Workspace.Change = *c
		e.Workspace.Prior, _ = ahp.DecodeWorkspaceState([]byte(prior))
		return e
	}
	e := taskEvent(ahp.TaskChangeAfter, "e", "", "t", operation)
	e.Task.Change, e.Task.Prior = ahp.Raw(change), ahp.Raw(prior)
	return e
}

func TestLineage(t *testing.T) {
	const before, after = ahp.TaskChangeBefore, ahp.TaskChangeAfter
	const ask, answer = ahp.UserElicitationRequest, ahp.UserElicitationResult
	tests := []struct {
		name   string
		events []*ahp.Event
		// pointer is where the last event is at fault, "" if it is fine; all others are.
		pointer string
	}{
		{"no parent", []*ahp.Event{fileChanged("urn:a", "1", "")}, ""},
		{"a parent never seen", []*ahp.Event{fileChanged("urn:a", "1", "0")}, ""},
		{"a late parent", []*ahp.Event{fileChanged("urn:a", "1", "0"), fileChanged("urn:a", "0", "")}, ""},
		{"its own parent", []*ahp.Event{fileChanged("urn:a", "1", "1")}, "/parentEventId"},
		{"a cycle of two", []*ahp.Event{fileChanged("urn:a", "1", "2"), fileChanged("urn:a", "2", "1")}, "/parentEventId"},
		{"a cycle of three, closed in the middle", []*ahp.Event{fileChanged("urn:a", "1", "2"), fileChanged("urn:a", "3", "1"), fileChanged("urn:a", "2", "3")}, "/parentEventId"},
		{"the same ids of two sources", []*ahp.Event{fileChanged("urn:a", "1", "2"), fileChanged("urn:b", "2", "1")}, ""},
		{"two children", []*ahp.Event{fileChanged("urn:a", "1", ""), fileChanged("urn:a", "2", "1"), fileChanged("urn:a", "3", "1")}, ""},
		{"the same event twice", []*ahp.Event{fileChanged("urn:a", "2", "1"), fileChanged("urn:a", "2", "1")}, ""},
		{"a second delivery without the parent", []*ahp.Event{fileChanged("urn:a", "2", "1"), fileChanged("urn:a", "2", "")}, ""},
		{"a second delivery with the parent", []*ahp.Event{fileChanged("urn:a", "2", ""), fileChanged("urn:a", "2", "1"), fileChanged("urn:a", "1", "2")}, "/parentEventId"},
		{"a second parent", []*ahp.Event{fileChanged("urn:a", "2", "1"), fileChanged("urn:a", "2", "3")}, "/parentEventId"},
		{"an actual change like its proposal", []*ahp.Event{taskEvent(before, "1", "", "t", "update"), taskEvent(after, "2", "1", "t", "update")}, ""},
		{"another task", []*ahp.Event{taskEvent(before, "1", "", "t", "update"), taskEvent(after, "2", "1", "u", "update")}, "/parentEventId"},
		{"another operation", []*ahp.Event{taskEvent(before, "1", "", "t", "update"), taskEvent(after, "2", "1", "t", "remove")}, "/parentEventId"},
		{"a late proposal", []*ahp.Event{taskEvent(after, "2", "1", "t", "update"), taskEvent(before, "1", "", "t", "update")}, ""},
		{"a late proposal of another task", []*ahp.Event{taskEvent(after, "2", "1", "t", "update"), taskEvent(before, "1", "", "u", "update")}, "/task"},
		{"a parent that is no proposal", []*ahp.Event{taskEvent(after, "1", "", "t", "update"), taskEvent(after, "2", "1", "u", "create")}, ""},
		{"a proposal out of a proposal", []*ahp.Event{taskEvent(before, "1", "", "t", "update"), taskEvent(before, "2", "1", "u", "create")}, ""},
		{"an answer", []*ahp.Event{elicitationEvent(ask, "1", "", "s", "form", "a"), elicitationEvent(answer, "2", "1", "s", "form", "a")}, ""},
		{"an answer without a session", []*ahp.Event{elicitationEvent(ask, "1", "", "s", "form", "a"), elicitationEvent(answer, "2", "1", "s", "form", "")}, ""},
		{"an answer to another server", []*ahp.Event{elicitationEvent(ask, "1", "", "s", "form", "a"), elicitationEvent(answer, "2", "1", "r", "form", "a")}, "/parentEventId"},
		{"an answer in another mode", []*ahp.Event{elicitationEvent(ask, "1", "", "s", "form", "a"), elicitationEvent(answer, "2", "1", "s", "url", "a")}, "/parentEventId"},
		{"an answer in another session", []*ahp.Event{elicitationEvent(ask, "1", "", "s", "form", "a"), elicitationEvent(answer, "2", "1", "s", "form", "b")}, "/parentEventId"},
		{"a late question of another server", []*ahp.Event{elicitationEvent(answer, "2", "1", "s", "form", "a"), elicitationEvent(ask, "1", "", "r", "form", "a")}, "/elicitation"},
		{"an update to the same", []*ahp.Event{noOp("update", `{"a":1,"b":[]}`, `{"b":[],"a":1}`)}, "/task/change"},
		{"an update to something else", []*ahp.Event{noOp("update", `{"a":1}`, `{"a":2}`)}, ""},
		{"a removal, whose prior is what it was", []*ahp.Event{noOp("remove", `{"a":1}`, `{"a":1}`)}, ""},
		{"a workspace that stays", []*ahp.Event{noOp("", `{"cwd":"/a","workspaceRoots":["/a"]}`, `{"cwd":"/a","workspaceRoots":["/a"]}`)}, "/workspace/change"},
		{"a workspace that moves", []*ahp.Event{noOp("", `{"cwd":"/b"}`, `{"cwd":"/a"}`)}, ""},
		{"a workspace that loses its roots", []*ahp.Event{noOp("", `{"cwd":"/a","workspaceRoots":[]}`, `{"cwd":"/a"}`)}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := ahp.NewLineage(ahp.LineageOptions{})
			for i, e := range tt.events {
				if err := e.Validate(); err != nil {
					t.Fatal(err)
				}
				err := l.Add(e)
				if i < len(tt.events)-1 || tt.pointer == "" {
					if err != nil {
						t.Fatalf("event %d: %v", i, err)
					}
					continue
				}
				var fault *ahp.Error
				if !errors.As(err, &fault) || fault.Kind != ahp.KindLineage || fault.Kind.Layer() != "lineage" || fault.Pointer != tt.pointer {
					t.Fatalf("got %v, want a fault at %s", err, tt.pointer)
				}
			}
		})
	}
}

// TestLineageForgetsRefused holds that a refused event leaves nothing behind.
func TestLineageForgetsRefused(t *testing.T) {
	l := ahp.NewLineage(ahp.LineageOptions{})
	for _, e := range []*ahp.Event{taskEvent(ahp.TaskChangeBefore, "1", "", "t", "update"), taskEvent(ahp.TaskChangeAfter, "2", "1", "u", "update")} {
		_ = l.Add(e)
	}
	if l.Len() != 1 {
		t.Errorf("%d events are remembered", l.Len())
	}
	// Had the refused event stayed, this would be a second parent, or a cycle.
	for _, e := range []*ahp.Event{fileChanged("urn:a", "2", "3"), fileChanged("urn:a", "1", "2")} {
		if err := l.Add(e); err != nil {
			t.Error(err)
		}
	}
}

func TestLineageBounds(t *testing.T) {
	l := ahp.NewLineage(ahp.LineageOptions{MaxEvents: 3})
	for i := range 1000 {
		if err := l.Add(fileChanged("urn:a", fmt.Sprint(i), fmt.Sprint(i/2))); i > 0 && err != nil {
			t.Fatal(err)
		}
		if l.Len() > 3 {
			t.Fatalf("%d events are remembered", l.Len())
		}
	}
	if err := l.Add(fileChanged("urn:a", "999", "1")); err == nil {
		t.Error("the newest event is forgotten")
	}
	if err := l.Add(fileChanged("urn:a", "900", "1")); err != nil {
		t.Errorf("an old event is not forgotten: %v", err)
	}

	l = ahp.NewLineage(ahp.LineageOptions{MaxBytes: 10_000})
	long := strings.Repeat("x", 1000)
	for i := range 100 {
		if err := l.Add(fileChanged("urn:a", long+fmt.Sprint(i), "")); err != nil {
			t.Fatal(err)
		}
	}
	if l.Len() < 5 || l.Len() > 9 {
		t.Errorf("%d events of 1,000 bytes are remembered in 10,000", l.Len())
	}
	n := l.Len()
	if err := l.Add(fileChanged("urn:a", strings.Repeat(long, 20), "")); err != nil || l.Len() != n {
		t.Errorf("a huge event drives the others out: %d remembered, %v", l.Len(), err)
	}
	// The same event with ever larger texts must not escape the bound.
	for i := range 20 {
		e := fileChanged("urn:a", "again", "")
		e.Session = &ahp.Session{ID: strings.Repeat(long, 1+i%9)}
		if err := l.Add(e); err != nil {
			t.Fatal(err)
		}
	}
	if l.Len() > 9 {
		t.Errorf("%d events are remembered", l.Len())
	}
}

// TestLineageProperties compares random streams with an obvious judge: whatever
// the order, an event is refused exactly if it closes a cycle or names a second
// parent; and small bounds only make the judge milder.
func TestLineageProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		whole := ahp.NewLineage(ahp.LineageOptions{})
		small := ahp.NewLineage(ahp.LineageOptions{MaxEvents: 3})
		parents := map[string]string{}
		for range rapid.IntRange(1, 40).Draw(t, "events") {
			id := rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"}).Draw(t, "id")
			parent := rapid.SampledFrom([]string{"", "a", "b", "c", "d", "e", "f"}).Draw(t, "parent")
			want := parent == "" || parents[id] == "" || parents[id] == parent
			for p, n := parent, 0; p != "" && n < 10; p, n = parents[p], n+1 {
				want = want && p != id
			}
			err := whole.Add(fileChanged("urn:a", id, parent))
			if (err == nil) != want {
				t.Fatalf("%s with parent %q: %v, want accepted %v", id, parent, err, want)
			}
			if err != nil {
				continue
			}
			if parent != "" {
				parents[id] = parent
			}
			if err := small.Add(fileChanged("urn:a", id, parent)); err != nil {
				t.Fatalf("forgetting refuses %s with parent %q: %v", id, parent, err)
			}
		}
	})
}
