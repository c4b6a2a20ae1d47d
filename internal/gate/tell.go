package gate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/harness"
	"github.com/abhed/abhed/internal/agent"
	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/tool"
)

// Tell lets the observers know of m (see agent.Hooks), and of an Attention the
// extensions too. Nothing depends on it.
func (g *Gate) Tell(ctx context.Context, at agent.At, m agent.Moment) {
	switch m := m.(type) {
	case *agent.Attention:
		g.attend(ctx, at, m, "", "")
		return
	case *agent.ModelSwitch:
		g.SetModel(m.Current)
	}
	if t, ok := m.(*agent.TaskChange); ok {
		if t.Operation == "update" && t.Prior != nil && compact(t.Change) == compact(t.Prior) {
			return // nothing changed, so there is no event
		}
		at = g.ofCall(at)
	}
	if !g.observed(m.EventType()) {
		return
	}
	e := g.at(m.EventType(), at)
	switch m := m.(type) {
	case *agent.TurnEnd:
		g.turnEnd(e, m)
	case *agent.TurnProgress:
		g.progress(e, m)
	case *agent.ModelError:
		g.modelError(e, m)
	case *agent.ToolProgress:
		e = g.toolEvent(ahp.ToolProgress, at.TurnID, m.Batch, m.Call)
		text := ahp.TextMessage(agent.ResultID(m.Call.ID), ahp.RoleTool, tool.Clean(m.Text))
		e.PartialOutput, e.ParentEventID = &text, g.parents.get(callKey(m.Call.ID))
	case *agent.WorkDirChange:
		e.Workspace = workDirChange(m.From, m.To)
		if e.ParentEventID = g.parents.get(moveKey(m.CallID)); e.ParentEventID == "" {
			e.ParentEventID = g.parents.get(endKey(m.CallID))
		}
	case *agent.ModelSwitch:
		e.Previous, e.Current, e.Reason = splitModel(m.Previous), splitModel(m.Current), tool.Clean(m.Reason)
		e.ParentEventID = g.parents.take(switchKey)
	case *agent.ModeChange:
		e.Change, e.ParentEventID = modeChange(m.From, m.To), g.parents.take(modeKey)
	case *agent.TaskChange:
		e.Task, e.ParentEventID = wireTask(m.ID, m.Operation, m.Change, m.Prior), g.parents.take(taskKey(m.ID, m.Operation))
	default:
		g.recordBug(fmt.Errorf("nobody can be told of %s", m.EventType()))
		return
	}
	g.observe(ctx, e)
}

func (g *Gate) observe(ctx context.Context, e *ahp.Event) {
	if _, err := g.o.Backends.h.Observe(ctx, e); err != nil && !errors.Is(err, harness.ErrClosed) {
		g.recordBug(err)
	}
}

func (g *Gate) turnEnd(e *ahp.Event, m *agent.TurnEnd) {
	e.Outcome, e.ContinuationCount = turnOutcome(m.Reason), int64(m.Continuations)
	e.Items, e.Usage, e.ParentEventID = ahp.MessageItems(), turnUsage(m.Usage), g.parents.get("turn")
	if m.Reply != nil {
		e.Items, e.LastAssistantItem = ahp.MessageItems(g.canonical(m.Item, m.Reply)), &ahp.Ref{ID: m.Item}
	}
	if e.Outcome != "completed" {
		text := m.Detail
		if text == "" {
			text = "the turn ended with " + string(m.Reason)
		}
		e.Error = &ahp.Problem{Class: string(m.Reason), Message: tool.Clean(text)}
	}
}

// turnOutcome returns how a turn ended in the protocol's words.
func turnOutcome(r agent.Reason) string {
	switch r {
	case agent.ReasonCompleted:
		return "completed"
	case agent.ReasonMaxTurns:
		return "max_iterations"
	case agent.ReasonUserInterrupt, agent.ReasonShutdown, agent.ReasonStopped:
		return "cancelled"
	default:
		return "failed"
	}
}

func (g *Gate) progress(e *ahp.Event, m *agent.TurnProgress) {
	delta := ahp.Message{ID: m.Item, Role: ahp.RoleAssistant, Parts: []ahp.Part{}}
	if m.Text != "" {
		p := ahp.TextPart(e.ID+":text", tool.Clean(m.Text))
		if m.Reasoning {
			p.Category = categoryReasoning
		}
		delta.Parts = append(delta.Parts, p)
	}
	e.Item, e.Delta, e.Final, e.ParentEventID = &ahp.Ref{ID: m.Item}, &delta, m.Final, g.parents.get("request")
}

func (g *Gate) modelError(e *ahp.Event, m *agent.ModelError) {
	g.attempt(e, m.Attempt)
	ms := m.Latency.Milliseconds()
	e.Execution, e.LatencyMs, e.ParentEventID = ahp.Executed(), &ms, g.parents.get("request")
	e.Recovery = "none"
	if !m.Final {
		e.Recovery = fmt.Sprintf("retry in %s", m.Retry.Round(time.Millisecond))
	}
	e.Error = &ahp.Problem{Class: "internal", Message: tool.Clean(m.Err.Error())}
	var me *model.Error
	if !errors.As(m.Err, &me) {
		return
	}
	e.Error.Class = string(me.Kind)
	if me.Status != 0 {
		e.Error.Status = ahp.Raw(fmt.Sprint(me.Status))
	}
	if me.Partial != "" {
		e.Items = ahp.PartItems(ahp.TextPart(e.ID+":partial", tool.Clean(me.Partial)))
	}
}

// resolved lets the observers know how the permission for a call was decided.
func (j *judgement) resolved(ctx context.Context, ruling agent.Ruling) {
	if !j.g.observed(ahp.ToolPermissionResolved) || j.call.Args == nil {
		return
	}
	decision := "allow"
	switch ruling.(type) {
	case *agent.Run, *agent.Supplied:
	case *agent.Refused:
		decision = "deny"
	default:
		return // it was not decided
	}
	e := j.g.toolEvent(ahp.ToolPermissionResolved, j.p.TurnID, j.p.Batch, j.call)
	e.Decision, e.DecidedBy, e.ParentEventID = decision, j.decidedBy(decision), j.requested
	if e.ParentEventID == "" {
		e.ParentEventID = j.g.parents.get(callKey(j.call.ID))
	}
	j.g.observe(ctx, e)
}

// decidedBy returns who decided in the protocol's words: a person; an extension or
// a backend; a rule, or the lack of anybody to ask; or nothing but the mode and the
// kind of the tool.
func (j *judgement) decidedBy(decision string) string {
	switch j.d.Step {
	case "approval":
		return "user"
	case "extension", "backend", hookKind:
		return "hook"
	case "rules":
		if decision == "allow" && j.onFinal.Rule == nil {
			return "auto"
		}
	}
	return "policy"
}

// filesChanged lets the observers know which files a call changed.
func (g *Gate) filesChanged(ctx context.Context, o agent.Outcome) {
	if len(o.Changes) == 0 || !g.observed(ahp.FileChanged) {
		return
	}
	e := g.at(ahp.FileChanged, agent.At{TurnID: o.TurnID, WorkDir: o.Call.WorkDir})
	if e.ParentEventID = g.parents.get(endKey(o.Call.ID)); e.ParentEventID == "" {
		e.ParentEventID = g.parents.get(callKey(o.Call.ID))
	}
	for _, f := range g.fileChanges(o) {
		c := ahp.ObservedChange{Path: f.Path, Operation: "update", AgentCaused: true, Before: f.Before, After: f.After}
		if f.Change == "created" {
			c.Operation = "create"
		}
		e.Changes = append(e.Changes, c)
	}
	g.observe(ctx, e)
}

// failed lets the observers of other backends know that a backend could not be
// asked. Their own failures to hear of it are only recorded, so nothing loops.
func (g *Gate) failed(ctx context.Context, about *ahp.Event, a *ahp.Answer) {
	b := g.o.Backends
	if !g.observed(ahp.HookFailure) {
		return
	}
	e := g.envelope(ahp.HookFailure)
	e.Turn, e.ParentEventID = about.Turn, about.ID
	e.Failure = &ahp.HookProblem{BackendID: a.By.Backend, Reason: string(a.Failure.Class), Policy: string(a.Policy)}
	if _, err := b.h.ObserveOthers(ctx, e, a.By.Backend); err != nil && !errors.Is(err, harness.ErrClosed) {
		g.recordBug(err)
	}
}
