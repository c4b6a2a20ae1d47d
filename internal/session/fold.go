package session

import (
	"maps"
	"slices"

	"github.com/abhed/abhed/internal/event"
)

// State is what a session has come to: the fold over its events.
type State struct {
	// Messages is the main agent's conversation. Every call in it is answered,
	// in the call's order, by one message of the tool role each.
	Messages []*event.Message
	// First and Newest are the person's first and newest message; nil if there is
	// none. A summary in Messages may stand for them.
	First, Newest *event.Message
	// Turns is the number of the last turn begun, Usage the sum over all replies,
	// those to sub-agents included; a count that no reply stated is nil.
	Turns int
	Usage event.Usage
	// WorkDir is the working directory after the last call, LastMode the mode
	// last seen. The mode is for display: permissions are never restored.
	WorkDir  string
	LastMode string
	// Ended says that the last run ended in order, Reason with what.
	Ended  bool
	Reason string
	// Later is context of backends that waits for the next prompt.
	Later []string
	// Stubbed holds the results that stand as stubs in Messages, by call id.
	Stubbed map[string]string
	// Model is the model last in use.
	Model string
	// Agents counts the sub-agents that there were.
	Agents int
	// Interrupted lists the calls at the end that have no outcome, in order;
	// Messages answers them.
	Interrupted []string
}

// The answers to calls that have no outcome. They tell the model whether the
// world may have changed.
const (
	interruptedText = "interrupted: the session ended while this call ran, so part of its work may be done. Check before you repeat it."
	notStartedText  = "interrupted: the session ended before this call was started. It did nothing."
)

// Fold folds events into a State. The zero Fold is ready. It is not safe for
// concurrent use. It keeps the messages of the events it is given.
type Fold struct {
	state State
	open  []openCall // of the last reply, until all are answered
}

type openCall struct {
	call    *event.ToolCall
	result  *event.ToolResult
	inject  []string
	started bool
}

// Apply takes in the next event.
func (f *Fold) Apply(e event.Event) {
	switch p := e.Payload.(type) {
	case *event.SessionStarted:
		f.state.WorkDir, f.state.LastMode, f.state.Model = p.Workspace, p.Mode, p.Model
	case *event.SessionResumed:
		f.settle()
		f.state.LastMode, f.state.Model = p.Mode, p.Model
		f.state.Ended, f.state.Reason = false, ""
	case *event.AgentStarted:
		f.state.Agents++
	case *event.ModelSwitched:
		f.state.Model = p.To
	case *event.ModeChanged:
		f.state.LastMode = p.To
	case *event.ContextReduced:
		if p.AgentID == "" {
			f.reduce(p)
		}
	case *event.RunEnded:
		f.settle()
		f.state.Ended, f.state.Reason = true, p.Reason
	case *event.SessionEnded:
		f.settle()
		f.state.Ended, f.state.Reason = true, p.Reason
	case *event.TurnStarted:
		if p.AgentID == "" {
			f.state.Turns = max(f.state.Turns, p.Turn)
		}
	case *event.Decision:
		if p.Mode != "" && p.Depth == 0 {
			f.state.LastMode = p.Mode
		}
	case *event.UserMessage:
		if p.AgentID == "" {
			f.settle()
			f.said(e.Actor, event.UserSaid(p))
			if p.Deferred && len(f.state.Later) > 0 {
				f.state.Later = f.state.Later[1:]
			}
		}
	case *event.HooksDecided:
		if p.AgentID == "" {
			f.state.Later = append(f.state.Later, p.Later...)
		}
	case *event.ModelResponded:
		f.usage(p.Usage)
		if p.AgentID == "" && p.Purpose == "" {
			f.reply(&p.Message)
		}
	case *event.ToolStarted:
		if c := f.waiting(p.AgentID, p.CallID); c != nil {
			c.started = true
		}
	case *event.ToolEnded:
		f.ended(p)
	}
}

// State returns the state after the events so far. The slices are the caller's,
// the messages in them are shared and must not be changed.
func (f *Fold) State() *State {
	g := Fold{state: f.state, open: slices.Clone(f.open)}
	g.state.Messages, g.state.Later = slices.Clone(f.state.Messages), slices.Clone(f.state.Later)
	g.state.Stubbed = maps.Clone(f.state.Stubbed)
	for _, c := range g.open {
		if c.result == nil {
			g.state.Interrupted = append(g.state.Interrupted, c.call.ID)
		}
	}
	g.settle()
	return &g.state
}

// said takes in what somebody told the model.
func (f *Fold) said(by event.Actor, m *event.Message) {
	f.state.Messages = append(f.state.Messages, m)
	if by != event.ActorUser {
		return
	}
	if f.state.First == nil {
		f.state.First = m
	}
	f.state.Newest = m
}

func (f *Fold) say(role event.Role, texts ...string) {
	m := &event.Message{Role: role}
	for _, t := range texts {
		m.Parts = append(m.Parts, event.TextPart(t))
	}
	f.state.Messages = append(f.state.Messages, m)
}

func (f *Fold) reply(m *event.Message) {
	f.settle()
	if len(m.Parts) == 0 {
		return // no model takes a message without content
	}
	f.state.Messages = append(f.state.Messages, m)
	for _, c := range m.ToolCalls() {
		f.open = append(f.open, openCall{call: c})
	}
}

// waiting returns the first call of this id that has no outcome, or nil: models
// use ids again, even within one reply.
func (f *Fold) waiting(agent, id string) *openCall {
	if agent != "" {
		return nil
	}
	for i := range f.open {
		if c := &f.open[i]; c.call.ID == id && c.result == nil {
			return c
		}
	}
	return nil
}

func (f *Fold) ended(p *event.ToolEnded) {
	if p.AgentID == "" && p.WorkDir != "" {
		f.state.WorkDir = p.WorkDir
	}
	if p.AgentID == "" {
		f.state.Later = append(f.state.Later, p.Later...)
	}
	c := f.waiting(p.AgentID, p.CallID)
	if c == nil {
		return
	}
	c.result = &event.ToolResult{CallID: p.CallID, Name: c.call.Name, Content: p.Content, IsError: p.IsError, Images: p.Images}
	c.inject = p.Injected
	if !slices.ContainsFunc(f.open, func(o openCall) bool { return o.result == nil }) {
		f.settle()
	}
}

// settle answers the open calls in the model's order, and puts what backends
// injected behind all results, where it can't come between a call and its
// answer.
func (f *Fold) settle() {
	var injected []string
	for _, c := range f.open {
		if c.result == nil {
			text := notStartedText
			if c.started {
				text = interruptedText
			}
			c.result = &event.ToolResult{CallID: c.call.ID, Name: c.call.Name, Content: text, IsError: true}
		}
		f.state.Messages = append(f.state.Messages, &event.Message{Role: event.RoleTool, Parts: []event.Part{{ToolResult: c.result}}})
		injected = append(injected, c.inject...)
	}
	f.open = nil
	if len(injected) > 0 {
		f.say(event.RoleUser, injected...)
	}
}

// reduce makes the conversation smaller as the loop did, and keeps what stubs stand
// for.
func (f *Fold) reduce(p *event.ContextReduced) {
	f.settle()
	stubs := map[string]bool{}
	for _, s := range p.Stubs {
		stubs[s.CallID] = true
	}
	for _, m := range f.state.Messages {
		for _, part := range m.Parts {
			if r := part.ToolResult; r != nil && stubs[r.CallID] {
				if f.state.Stubbed == nil {
					f.state.Stubbed = map[string]string{}
				}
				f.state.Stubbed[r.CallID] = r.Content
			}
		}
	}
	f.state.Messages = event.Reduce(f.state.Messages, p)
}

func (f *Fold) usage(u *event.Usage) {
	if u != nil {
		f.state.Usage = f.state.Usage.Plus(*u)
	}
}
