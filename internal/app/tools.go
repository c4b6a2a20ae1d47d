package app

import (
	"context"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/abhed/abhed/internal/agent"
	"github.com/abhed/abhed/internal/control"
	"github.com/abhed/abhed/internal/memory"
	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/tool"
	"github.com/abhed/abhed/internal/tool/ask"
	"github.com/abhed/abhed/internal/tool/bash"
	"github.com/abhed/abhed/internal/tool/edit"
	"github.com/abhed/abhed/internal/tool/fetch"
	"github.com/abhed/abhed/internal/tool/glob"
	"github.com/abhed/abhed/internal/tool/grep"
	"github.com/abhed/abhed/internal/tool/read"
	"github.com/abhed/abhed/internal/tool/recall"
	"github.com/abhed/abhed/internal/tool/skill"
	"github.com/abhed/abhed/internal/tool/task"
	"github.com/abhed/abhed/internal/tool/todo"
	"github.com/abhed/abhed/internal/tool/write"
	"github.com/abhed/abhed/internal/workspace"
)

// maxDepth is how deep sub-agents may be started: those of the main agent have
// depth 1.
const maxDepth = 2

// builtinNames are the names that no extension and no MCP server may take, in the
// order in which the model is told of the tools.
func builtinNames() []string {
	return []string{"read", "write", "edit", "glob", "grep", "bash", "jobs", "fetch", "todo", "task", "ask_user", "skill", "recall"}
}

// makeTools makes what the tools of all agents share, and the main agent's.
func (e *engine) makeTools(context.Context) error {
	l := e.o.loaded
	e.jobs = bash.NewJobs(bash.JobsOptions{})
	e.onClose(e.jobs.Close)
	e.todos = todo.New(todo.Options{Before: e.mayChangeTodos, OnChange: e.todosChanged})
	var err error
	if e.mainScope, err = e.newScope(l.roots); err != nil {
		return err
	}
	e.scopes = append(e.scopes, e.mainScope)
	var warnings []string
	e.skills, warnings = memory.FindSkills(memory.SkillOptions{
		Config: e.sys.configDir(), Home: e.sys.home(), Extra: l.Skills.Paths, Roots: l.roots, Denied: e.mainScope.readDenied,
	})
	e.warnings = append(e.warnings, warnings...)
	e.instructions = memory.New(l.roots, memory.Options{Denied: e.mainScope.readDenied})
	e.main = &worker{e: e, id: policy.Agent{ID: mainAgent}, scope: e.mainScope}
	return e.main.makeTools()
}

// makeTools builds the registry of an agent: the built-in tools, then those of
// extensions and of MCP servers.
func (w *worker) makeTools() error {
	e := w.e
	var list []tool.Tool
	for _, t := range w.candidates() {
		if w.offered(t) {
			list = append(list, t)
		}
	}
	var err error
	if w.tools, err = tool.NewRegistry(list...); err != nil {
		return err
	}
	w.specs = e.listing(w.tools)
	return nil
}

// candidates are all tools that there are, in order. Those that remember what an
// agent has read are the agent's own.
func (w *worker) candidates() []tool.Tool {
	e, s := w.e, w.scope
	tracker, ignore := workspace.NewTracker(), e.globalIgnore()
	list := []tool.Tool{
		read.New(tracker, read.Options{Images: e.takesImages()}), write.New(tracker), edit.New(tracker),
		glob.New(glob.Options{Denied: s.readDenied, GlobalIgnore: ignore}), grep.New(grep.Options{Denied: s.readDenied, GlobalIgnore: ignore}),
		s.shell, bash.NewJobsTool(e.jobs), fetch.New(fetch.Options{}), e.todos,
		task.New(task.Options{Run: e.runTask}), ask.New(ask.Options{Ask: e.askPerson}), skill.New(e.skills), recall.New(e.recallResult),
	}
	if e.ext != nil {
		list = append(list, e.ext.Tools()...)
	}
	if e.servers != nil {
		list = append(list, e.servers.Tools()...)
	}
	return append(list, e.o.tools...)
}

// offered reports whether the agent gets the tool.
func (w *worker) offered(t tool.Tool) bool {
	name := t.Spec().Name
	switch {
	case slices.Contains(w.e.o.loaded.Tools.Disabled, name):
		return false
	case name == "task" && w.id.Depth >= maxDepth:
		return false
	case name == "skill" && len(w.e.skills) == 0:
		return false
	case w.readOnly:
		return !t.Declare([]byte("{}")).Mutates && name != "fetch"
	}
	return true
}

// listing returns what tells the model of the tools of r: those of MCP servers last,
// and past the budget only when the model has asked for them.
func (e *engine) listing(r *tool.Registry) func() []model.ToolSpec {
	var mu sync.Mutex // surfaces ask, too
	var own, specs []model.ToolSpec
	var last []tool.Spec
	for _, s := range r.Specs() {
		if e.servers == nil || !e.servers.Offers(s.Name) {
			own = append(own, toolSpec(s))
		}
	}
	if e.servers == nil {
		return func() []model.ToolSpec { return own }
	}
	return func() []model.ToolSpec {
		mu.Lock()
		defer mu.Unlock()
		listed := e.servers.Listed()
		if specs != nil && slices.EqualFunc(listed, last, func(a, b tool.Spec) bool { return a.Name == b.Name }) {
			return specs
		}
		last, specs = listed, slices.Clip(own)
		for _, s := range listed {
			if _, ok := r.Lookup(s.Name); ok { // else the agent isn't given it
				specs = append(specs, toolSpec(s))
			}
		}
		return specs
	}
}

func toolSpec(s tool.Spec) model.ToolSpec {
	return model.ToolSpec{Name: s.Name, Description: s.Description, Schema: s.Schema}
}

// globalIgnore returns the person's own ignore file, where git looks for it unless
// told otherwise; "" if there is none.
func (e *engine) globalIgnore() string {
	dir := e.sys.dir("XDG_CONFIG_HOME", ".config")
	if dir == "" {
		return ""
	}
	data, err := readBounded(filepath.Join(dir, "git", "ignore"), 1<<20)
	if err != nil {
		return ""
	}
	return string(data)
}

// askLimit bounds the wait for a person's answer to a question of the agent.
const askLimit = 10 * time.Minute

// askPerson puts a question of an agent to the person.
func (e *engine) askPerson(ctx context.Context, by policy.Agent, question string, choices []string) (control.Reply, error) {
	w := e.worker(by.ID)
	if w == nil {
		return control.Reply{Declined: true}, nil
	}
	return w.gate.Inquire(ctx, agent.At{}, control.Inquiry{From: "agent", Text: question, Choices: choices}, e.o.asker, askLimit)
}

// recallResult returns a result of an agent that stands as a stub in its
// conversation.
func (e *engine) recallResult(by policy.Agent, callID string) (string, bool) {
	w := e.worker(by.ID)
	if w == nil || w.loop == nil {
		return "", false
	}
	return w.loop.Stubbed(callID)
}
