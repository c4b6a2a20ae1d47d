package gate

import (
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/agent"
	"github.com/abhed/abhed/internal/policy"
)

// toolPath names the one path on which Abhed's tools run.
const toolPath = "native"

// Identity is what every AHP event of a session says of its sender.
type Identity struct {
	// Source is the absolute URI of this installation.
	Source string
	// Session, Workspace, Roots and Model describe the session, Agent who works in it.
	Session   string
	Workspace string
	Roots     []string
	Model     string
	Agent     string
	// Version is the harness's version, Mode the permission mode.
	Version string
	Mode    string
}

func newID() string {
	id, err := uuid.NewV7()
	if err != nil {
		return uuid.NewString()
	}
	return id.String()
}

// envelope returns what all events have.
func (b *Backends) envelope(t ahp.EventType, at time.Time) *ahp.Event {
	i := &b.id
	e := &ahp.Event{
		ID: newID(), Source: i.Source, Type: t, Time: ahp.Timestamp(at),
		Session: &ahp.Session{ID: i.Session, Cwd: i.Workspace, WorkspaceRoots: i.Roots, Model: *b.model.Load()},
	}
	if i.Agent != "" {
		e.Session.Agent = &ahp.Agent{ID: i.Agent}
	}
	return e
}

// subagent is the type of every agent but the main one.
const subagent = "subagent"

// envelope returns what all events of the gate's agent have.
func (g *Gate) envelope(t ahp.EventType) *ahp.Event {
	e := g.o.Backends.envelope(t, g.o.Now())
	e.Session.Model = g.modelName()
	if g.o.Agent.ID != "" {
		e.Session.Agent = &ahp.Agent{ID: g.o.Agent.ID}
	}
	if g.o.Parent == nil {
		return e
	}
	if e.Session.Agent != nil {
		e.Session.Agent.Type = subagent
	}
	if len(g.o.Roots) > 0 {
		e.Session.WorkspaceRoots, e.Session.Cwd = g.o.Roots, g.o.Roots[0]
	}
	return e
}

// modelName returns the model that the gate's agent works with.
func (g *Gate) modelName() string {
	for p := g; p != nil; p = p.o.Parent {
		if m := p.model.Load(); m != nil {
			return *m
		}
	}
	return *g.o.Backends.model.Load()
}

// at returns an event at a point of a run.
func (g *Gate) at(t ahp.EventType, at agent.At) *ahp.Event {
	g.parents.enter(at.TurnID)
	e := g.envelope(t)
	if at.WorkDir != "" {
		e.Session.Cwd = at.WorkDir
	}
	if at.TurnID != "" {
		e.Turn = &ahp.Turn{ID: at.TurnID}
	}
	return e
}

// parents remembers which events later ones come from: the turn's, the request's,
// the reply's, and of each open call. An event that was built for nobody has no id
// here. Its methods may be called from any goroutine.
type parents struct {
	mu   sync.Mutex
	turn string
	ids  map[string]string
}

// enter forgets an earlier turn.
func (p *parents) enter(turnID string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if turnID != "" && turnID != p.turn {
		p.turn = turnID
		clear(p.ids)
	}
}

// current returns the turn that was entered last, "" if none was.
func (p *parents) current() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.turn
}

func (p *parents) set(what, id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ids == nil {
		p.ids = map[string]string{}
	}
	p.ids[what] = id
}

// get returns the id of the event, "" if there was none.
func (p *parents) get(what string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ids[what]
}

// take returns the id of the event and forgets it, as there is one later event for it.
func (p *parents) take(what string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	id := p.ids[what]
	delete(p.ids, what)
	return id
}

// callKey names the proposal of a call among the parents, endKey its end, moveKey
// the proposal to change the working directory after it.
func callKey(callID string) string { return "call " + callID }

func moveKey(callID string) string { return "move " + callID }

func endKey(callID string) string { return "end " + callID }

// toolEvent returns an event about a call.
func (g *Gate) toolEvent(t ahp.EventType, turnID string, b *agent.Batch, c policy.Call) *ahp.Event {
	e := g.at(t, agent.At{TurnID: turnID, WorkDir: c.WorkDir})
	e.Call = &ahp.Identity{ID: c.ID}
	tool := toolOf(c)
	e.Tool, e.Path, e.Batch = &tool, toolPath, wireBatch(b)
	return e
}

func toolOf(c policy.Call) ahp.Tool {
	return ahp.Tool{Name: c.Tool, Input: ahp.Raw(c.Args), Origin: ahp.OriginNative, Kind: policy.KindOf(c.Tool)}
}

// wireBatch returns the batch that a call is of, nil for none.
func wireBatch(b *agent.Batch) *ahp.Batch {
	if b == nil {
		return nil
	}
	return &ahp.Batch{ID: b.ID, CallIDs: b.CallIDs}
}

// before returns the proposal of the call. A second one, on changed input, has the
// first as its parent.
func (j *judgement) before() *ahp.Event {
	e := j.g.toolEvent(ahp.ToolBefore, j.p.TurnID, j.p.Batch, j.call)
	key := callKey(j.call.ID)
	if e.ParentEventID = j.g.parents.get(key); e.ParentEventID == "" {
		e.ParentEventID = j.g.parents.get("response")
		j.g.parents.set(key, e.ID)
	}
	return e
}

func (j *judgement) permission() *ahp.Event {
	e := j.g.toolEvent(ahp.ToolPermissionRequest, j.p.TurnID, j.p.Batch, j.call)
	e.Suggestions, e.ParentEventID = []ahp.Raw{}, j.g.parents.get(callKey(j.call.ID))
	return e
}

// outcomeOf returns how a call ended in the protocol's words.
func outcomeOf(o agent.Outcome) (outcome string, x *ahp.Execution) {
	switch o.Kind {
	case "ok":
		return "ok", ahp.Executed()
	case "supplied":
		return "ok", ahp.Skipped("supplied_result")
	case "error":
		return "error", ahp.Executed()
	case "timeout":
		return "timeout", ahp.Executed()
	case "denied":
		return "denied", ahp.Skipped("policy")
	case "stopped":
		return "cancelled", ahp.Skipped("policy")
	}
	if o.Ran {
		return "cancelled", ahp.Executed()
	}
	return "cancelled", ahp.Skipped("cancelled")
}

// after returns the event of a call's end. content is what the model would read, with
// the images if untouched.
func (g *Gate) after(o agent.Outcome, content string, untouched bool) *ahp.Event {
	var images []ahp.Part
	if untouched {
		images = g.imageParts(agent.ResultID(o.Call.ID)+":0", o.Images)
	}
	e := g.toolEvent(ahp.ToolAfter, o.TurnID, o.Batch, o.Call)
	id := agent.ResultID(o.Call.ID)
	parts := append([]ahp.Part{ahp.TextPart(id+":0", content)}, images...)
	e.Items = ahp.MessageItems(ahp.Message{ID: id, Role: ahp.RoleTool, Parts: parts})
	e.ParentEventID = g.parents.get(callKey(o.Call.ID))
	e.Outcome, e.Execution = outcomeOf(o)
	if e.Outcome == "error" {
		// What the tool said is content: it stands in items, as reviewed and selected.
		e.Error = &ahp.Problem{Class: "tool", Message: "the tool reported an error"}
	}
	if e.Execution.Status == "executed" {
		ms := o.Duration.Milliseconds()
		e.DurationMs = &ms
		e.FileChanges = g.fileChanges(o)
	}
	return e
}

// splitModel returns the parts of a model's name.
func splitModel(name string) *ahp.Model {
	provider, id, ok := strings.Cut(name, "/")
	if !ok || id == "" || provider == "" {
		return &ahp.Model{ID: name, Provider: "unknown"}
	}
	return &ahp.Model{ID: id, Provider: provider}
}
