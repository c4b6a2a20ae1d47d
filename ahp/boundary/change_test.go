package boundary_test

import (
	"context"
	"errors"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/boundary"
)

func str(s string) *string { return &s }

// changes has one change per kind, with the types of its events.
func changes() map[string]struct {
	change        boundary.Change
	before, after ahp.EventType
} {
	return map[string]struct {
		change        boundary.Change
		before, after ahp.EventType
	}{
		"config": {boundary.Change{Config: &ahp.ConfigChange{Source: "s", Scope: "user", Settings: []string{"a"}, Summary: "x"}}, ahp.ConfigChangeBefore, ahp.ConfigChangeAfter},
		"model": {boundary.Change{Model: &boundary.ModelSwitch{Current: ahp.Model{ID: "a", Provider: "p"}, Proposed: ahp.Model{ID: "b", Provider: "p"}, Reason: "cost"}},
			ahp.ModelSwitchBefore, ahp.ModelSwitchAfter},
		"task": {boundary.Change{Task: &ahp.Task{ID: "1", Operation: "update", Change: ahp.Raw(`{"done":true}`), Prior: ahp.Raw(`{"done":false}`)}}, ahp.TaskChangeBefore, ahp.TaskChangeAfter},
		"workspace": {boundary.Change{Workspace: &ahp.Workspace{Kind: "cwd", Change: ahp.WorkspaceState{Cwd: str("/b")}, Prior: &ahp.WorkspaceState{Cwd: str("/a")}}},
			ahp.WorkspaceChangeBefore, ahp.WorkspaceChangeAfter},
	}
}

func TestChangeStatuses(t *testing.T) {
	for name, c := range changes() {
		t.Run(name, func(t *testing.T) {
			var all []row
			for _, r := range rows() {
				// The events after can't be intercepted.
				if r.name != "nobody to ask about the result" && r.name != "cancelled after" {
					all = append(all, r)
				}
			}
			play(t, c.before, c.after, all, func(ctx context.Context, w *world, ran func() error) (boundary.Verdict, bool, error) {
				r, err := w.Change(ctx, c.change, func(context.Context, boundary.Change) (boundary.Change, error) { return boundary.Change{}, ran() })
				result := r.Change.Config != nil || r.Change.Model != nil || r.Change.Task != nil || r.Change.Workspace != nil
				return r.Verdict, result, err
			})
		})
	}
}

func TestModelSwitch(t *testing.T) {
	w := newWorld(t, boundary.Options{}, nil)
	c := changes()["model"].change
	if _, err := w.Change(t.Context(), c, func(_ context.Context, c boundary.Change) (boundary.Change, error) { return c, nil }); err != nil {
		t.Fatal(err)
	}
	_, events := w.observed(t)
	if before, after := events[0], events[1]; before.Proposed.ID != "b" || after.Previous.ID != "a" || after.Current.ID != "b" || after.Proposed != nil || after.Reason != "cost" {
		t.Errorf("%+v, %+v", before, after)
	}
	w = newWorld(t, boundary.Options{}, at(ahp.ModelSwitchBefore, stop))
	r, err := w.Change(t.Context(), c, func(context.Context, boundary.Change) (boundary.Change, error) {
		t.Error("applied")
		return boundary.Change{}, nil
	})
	if err != nil || r.Status != boundary.Stopped || !r.Stop {
		t.Errorf("%s, %v", r.Status, err)
	}
}

// TestWorkspaceEdit holds that the effective change is applied and told.
func TestWorkspaceEdit(t *testing.T) {
	w := newWorld(t, boundary.Options{}, at(ahp.WorkspaceChangeBefore, &ahp.Modify{Target: ahp.TargetWorkspace, Operation: ahp.OpMerge, Value: ahp.Raw(`{"cwd":"/c"}`)}))
	r, err := w.Change(t.Context(), changes()["workspace"].change, func(_ context.Context, c boundary.Change) (boundary.Change, error) {
		if *c.Workspace.Change.Cwd != "/c" {
			t.Errorf("applied %s", *c.Workspace.Change.Cwd)
		}
		return boundary.Change{}, nil
	})
	if err != nil || *r.Change.Workspace.Change.Cwd != "/c" {
		t.Errorf("%+v, %v", r, err)
	}
	if _, events := w.observed(t); *events[1].Workspace.Change.Cwd != "/c" {
		t.Errorf("told %s", *events[1].Workspace.Change.Cwd)
	}
}

// TestRealChanges holds what is told where something else was applied, or nothing.
func TestRealChanges(t *testing.T) {
	task := changes()["task"].change
	with := func(f func(*ahp.Task)) boundary.Change {
		n := *task.Task
		f(&n)
		return boundary.Change{Task: &n}
	}
	for _, tt := range []struct {
		name  string
		real  boundary.Change
		err   error
		bad   bool
		after string // the change that is told; "" for none
	}{
		{"less", with(func(n *ahp.Task) { n.Change = ahp.Raw(`{"done":true,"note":"half"}`) }), nil, false, `{"done":true,"note":"half"}`},
		{"nothing", with(func(n *ahp.Task) { n.Change = ahp.Raw(`{ "done": false }`) }), nil, false, ""},
		{"another task", with(func(n *ahp.Task) { n.ID = "2" }), nil, true, ""},
		{"another operation", with(func(n *ahp.Task) { n.Operation = "remove" }), nil, true, ""},
		{"another kind", changes()["model"].change, nil, true, ""},
		{"failed", boundary.Change{}, errors.New("no"), false, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, boundary.Options{}, nil)
			r, err := w.Change(t.Context(), task, func(context.Context, boundary.Change) (boundary.Change, error) { return tt.real, tt.err })
			if (err != nil) != tt.bad || tt.bad && r.OK() {
				t.Errorf("%s, %v", r.Status, err)
			}
			_, events := w.observed(t)
			got := ""
			if len(events) > 1 {
				got = string(events[1].Task.Change)
			}
			if got != tt.after {
				t.Errorf("told %s, want %s", got, tt.after)
			}
		})
	}
	w := newWorld(t, boundary.Options{})
	two := task
	two.Workspace = changes()["workspace"].change.Workspace
	for _, c := range []boundary.Change{{}, two} {
		if r, err := w.Change(t.Context(), c, nil); err == nil || r.Status != boundary.None {
			t.Errorf("%s, %v", r.Status, err)
		}
	}
}
