package boundary

import (
	"context"
	"errors"
	"reflect"

	"github.com/abhed/abhed/ahp"
)

// Change is a change that the harness is about to make to itself. Exactly one of
// Config, Model, Task and Workspace is set.
type Change struct {
	// Config is a change of settings; its MCPServers are known only afterwards.
	Config *ahp.ConfigChange
	Model  *ModelSwitch
	// Task is a change to one task of the agent's list.
	Task      *ahp.Task
	Workspace *ahp.Workspace
	Turn      *Turn
	// Parent is the id of the event that led to it, such as that of a tool, or "".
	Parent string
}

// ModelSwitch is a change of the model.
type ModelSwitch struct {
	Current, Proposed ahp.Model
	Reason            string
	// Pricing is that of the proposed model, or nil.
	Pricing *ahp.Pricing
}

// ChangeResult is how a change ended. Change is what was really applied, and zero
// unless the status is Ran.
type ChangeResult struct {
	Verdict
	Change Change
}

// Change has a change judged, runs apply on what is in effect if nothing stands
// against it, and tells the observers what was really applied: what apply returns,
// or the effective change where it returns the zero Change. A change that left
// everything as it was before has no event after it (§20), and neither has one that
// failed or was refused. The error is as that of Model.
func (b *Boundary) Change(ctx context.Context, c Change, apply func(ctx context.Context, c Change) (Change, error)) (r ChangeResult, err error) {
	defer func() { r.seal(err) }()
	before, err := b.changeEvent(&c, true, c.Parent)
	if err != nil {
		return r, err
	}
	out, err := b.ask(ctx, &r.Verdict, before, c.Turn, nil)
	if err != nil {
		return r, err
	}
	if r.judged(out); r.Status != Passed {
		return r, nil
	}
	if c.Workspace != nil {
		c.Workspace = out.Event.Workspace // the only one that a backend may edit
	}
	var real Change
	bug := r.execute(ctx, func() (err error) {
		real, err = apply(ctx, c)
		return err
	})
	if r.Status == Failed && ctx.Err() != nil {
		r.Status, r.Reason = Interrupted, reasonInterrupted
	}
	if bug != nil || r.Status != Ran {
		return r, bug
	}
	if reflect.ValueOf(real).IsZero() {
		real = c
	}
	real.Turn, real.Parent = c.Turn, c.Parent
	if err := sameSubject(&c, &real); err != nil {
		return r, err
	}
	r.Change = real
	if real.idle() {
		return r, nil
	}
	after, err := b.changeEvent(&real, false, before.ID)
	if err != nil {
		return r, err
	}
	err = b.observe(ctx, after)
	return r, err
}

// changeEvent returns the event before or after c.
func (b *Boundary) changeEvent(c *Change, before bool, parent string) (*ahp.Event, error) {
	types := map[bool][4]ahp.EventType{
		true:  {ahp.ConfigChangeBefore, ahp.ModelSwitchBefore, ahp.TaskChangeBefore, ahp.WorkspaceChangeBefore},
		false: {ahp.ConfigChangeAfter, ahp.ModelSwitchAfter, ahp.TaskChangeAfter, ahp.WorkspaceChangeAfter},
	}[before]
	kind, err := c.kind()
	if err != nil {
		return nil, err
	}
	e, err := b.event(types[kind], c.Turn, parent)
	if err != nil {
		return nil, err
	}
	e.Change, e.Task, e.Workspace = c.Config, c.Task, c.Workspace
	if m := c.Model; m != nil && before {
		e.Current, e.Proposed, e.Reason, e.Pricing = &m.Current, &m.Proposed, m.Reason, m.Pricing
	} else if m != nil {
		e.Previous, e.Current, e.Reason = &m.Current, &m.Proposed, m.Reason
	}
	return e, nil
}

// kind returns which of the four c is.
func (c *Change) kind() (int, error) {
	found := -1
	for i, set := range []bool{c.Config != nil, c.Model != nil, c.Task != nil, c.Workspace != nil} {
		if set && found >= 0 {
			return 0, errors.New("boundary: a change of two things at once; make two changes of it")
		}
		if set {
			found = i
		}
	}
	if found < 0 {
		return 0, errors.New("boundary: a change of nothing: set Config, Model, Task or Workspace")
	}
	return found, nil
}

// sameSubject refuses an actual change of something else than was judged.
func sameSubject(judged, real *Change) error {
	a, _ := judged.kind()
	b, err := real.kind()
	switch {
	case err != nil:
		return err
	case a != b, real.Task != nil && (real.Task.ID != judged.Task.ID || real.Task.Operation != judged.Task.Operation):
		return errors.New("boundary: what was applied is another change than the one that was judged")
	}
	return nil
}

// idle reports whether c is known to change nothing.
func (c *Change) idle() bool {
	switch {
	case c.Task != nil:
		return c.Task.Operation == "update" && c.Task.Prior != nil && c.Task.Change.Equal(c.Task.Prior)
	case c.Workspace != nil && c.Workspace.Prior != nil:
		return reflect.DeepEqual(c.Workspace.Change, *c.Workspace.Prior)
	case c.Model != nil:
		return c.Model.Current == c.Model.Proposed
	}
	return false
}
