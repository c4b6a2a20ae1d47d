package app

import (
	"context"
	"errors"
	"fmt"

	"github.com/abhed/abhed/internal/agent"
	"github.com/abhed/abhed/internal/control"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/tool/task"
)

// maxAgents is how many sub-agents a session may have in all.
const maxAgents = 1000

// runTask does a task of the agent by with a sub-agent: fresh context, the session's
// gate, rules, extensions and backends, and the budget of the run.
func (e *engine) runTask(ctx context.Context, by policy.Agent, r task.Request) (task.Reply, error) {
	parent := e.worker(by.ID)
	switch {
	case parent == nil:
		return task.Reply{}, fmt.Errorf("the agent %q is unknown", by.ID)
	case parent.id.Depth >= maxDepth:
		return task.Reply{}, fmt.Errorf("a sub-agent of depth %d can't have sub-agents", maxDepth)
	case parent.loop.Budget() == nil:
		return task.Reply{}, errors.New("the run has ended")
	case r.Worktree && (r.ReadOnly || parent.readOnly):
		return task.Reply{}, errors.New("a sub-agent that can change nothing gets no worktree of its own; ask again without")
	case r.Worktree && e.mode() == policy.ModePlan: // the call itself is judged as one that changes nothing
		return task.Reply{}, errors.New("in plan mode nothing may change, and a worktree is made in the repository; ask again without")
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w, err := e.hire(parent, r, cancel)
	if err != nil {
		return task.Reply{}, err
	}
	reply := task.Reply{}
	tree, err := w.place(ctx, parent, r)
	if err == nil {
		err = w.equip(parent, r)
	}
	if err != nil {
		e.dismiss(w, "error")
		return task.Reply{}, errors.Join(err, tree.remove(ctx))
	}
	res := w.work(ctx, parent, r, tree)
	e.jobs.EndAgent(w.id.ID)
	e.dismiss(w, string(res.Reason))
	reply.Text, reply.Reason, reply.Detail = res.Text, string(res.Reason), res.Detail
	reply.Completed = res.Reason == agent.ReasonCompleted
	if tree != nil {
		reply.Notes = append(reply.Notes, tree.finish(context.WithoutCancel(ctx)))
	}
	return reply, nil
}

// running is a sub-agent as the session's surfaces see it.
type running struct {
	task   control.Task
	cancel context.CancelCauseFunc // nil once it has ended
}

// hire gives a new sub-agent its id.
func (e *engine) hire(parent *worker, r task.Request, cancel context.CancelCauseFunc) (*worker, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.agents) >= maxAgents {
		return nil, fmt.Errorf("the session has had %d sub-agents, which is the most there may be", maxAgents)
	}
	id := fmt.Sprintf("a%d", len(e.agents)+1+e.agentsBefore)
	w := &worker{e: e, id: policy.Agent{ID: id, Depth: parent.id.Depth + 1}, parent: parent, call: r.CallID, scope: parent.scope, readOnly: r.ReadOnly || parent.readOnly}
	e.workers[id] = w
	e.agents = append(e.agents, &running{control.Task{ID: id, Kind: "agent", Title: r.Title, State: "running", AgentID: parent.agentID()}, cancel})
	return w, nil
}

// dismiss notes that a sub-agent has ended.
func (e *engine) dismiss(w *worker, state string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.workers, w.id.ID)
	for _, a := range e.agents {
		if a.task.ID == w.id.ID {
			a.task.State, a.cancel = state, nil
		}
	}
}

// place gives the sub-agent a worktree of its own if the task asks for one.
func (w *worker) place(ctx context.Context, parent *worker, r task.Request) (*worktree, error) {
	if !r.Worktree {
		return nil, nil
	}
	tree, err := newWorktree(ctx, w.e, parent.scope.roots[0], w.id.ID)
	if err != nil {
		return nil, err
	}
	s, err := w.e.newScope([]string{tree.dir}, tree.common)
	if err != nil {
		return tree, err
	}
	w.e.tuning.Lock() // the mode of a scope never lags behind the session's
	defer w.e.tuning.Unlock()
	if err := s.setRules(w.e.mode()); err != nil {
		return tree, err
	}
	w.e.mu.Lock()
	w.e.scopes = append(w.e.scopes, s)
	w.e.mu.Unlock()
	w.scope = s
	return tree, nil
}

// equip makes tools, gate and loop.
func (w *worker) equip(parent *worker, r task.Request) error {
	e := w.e
	if err := w.makeTools(); err != nil {
		return err
	}
	w.system = subPrompt(w, r)
	m, err := e.connect(parent.loop.Model().Client.Name(), r.Title)
	if err != nil {
		return err
	}
	w.makeGate()
	w.gate.SetModel(m.Client.Name())
	return w.makeLoop(loopState{workDir: w.scope.roots[0], budget: parent.loop.Budget(), model: m})
}

// work runs the task and records its bounds.
func (w *worker) work(ctx context.Context, parent *worker, r task.Request, tree *worktree) agent.Result {
	e := w.e
	var names []string
	for _, s := range w.tools.Specs() {
		names = append(names, s.Name)
	}
	started := &event.AgentStarted{AgentID: w.id.ID, Parent: parent.agentID(), CallID: r.CallID, Depth: w.id.Depth, Title: r.Title, Model: w.loop.Model().Client.Name(), Tools: names, System: w.system}
	if tree != nil {
		started.Worktree = tree.dir
	}
	if _, err := e.log.AppendDurable(system(started)); err != nil {
		return agent.Result{Reason: agent.ReasonError, Detail: err.Error()}
	}
	res := w.loop.Run(ctx, agent.Prompt{Text: r.Prompt})
	ended := &event.AgentEnded{AgentID: w.id.ID, Reason: string(res.Reason), Detail: res.Detail, Turns: res.Turns, Usage: &res.Usage}
	last, err := e.log.AppendDurable(system(ended))
	if err != nil {
		return agent.Result{Reason: agent.ReasonError, Detail: err.Error()}
	}
	if p, ok := last.Payload.(*event.AgentEnded); ok { // as it is recorded, without secrets
		res.Detail = p.Detail
	}
	return res
}
