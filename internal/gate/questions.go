package gate

import (
	"errors"
	"strings"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/harness"
	"github.com/abhed/abhed/internal/agent"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/strictjson"
)

// channel is where prompts come from and answers go to, and sender who writes them.
const (
	channel = "cli"
	sender  = "user"
)

// question returns what the backends are asked at m; nil if there is nothing that
// they could be asked.
func (g *Gate) question(at agent.At, m agent.Moment) *question {
	switch m := m.(type) {
	case *agent.Inbound:
		return g.inbound(at, m)
	case *agent.TurnStart:
		return g.turnStart(at, m)
	case *agent.RequestBefore:
		return g.request(at, m)
	case *agent.ResponseAfter:
		return g.response(at, m)
	case *agent.WorkDirBefore:
		return g.move(at, m)
	case *agent.BatchAfter:
		return g.batch(at, m)
	case *agent.TurnFinish:
		return g.turnFinish(at, m)
	case *agent.Outbound:
		return g.outbound(at, m)
	}
	return g.questionBeside(at, m)
}

// questionBeside is question for the moments beside the course of a turn.
func (g *Gate) questionBeside(at agent.At, m agent.Moment) *question {
	switch m := m.(type) {
	case *agent.CompactBefore:
		return g.compactBefore(at, m)
	case *agent.CompactAfter:
		return g.compactAfter(at, m)
	case *agent.ModelSwitchBefore:
		return g.modelSwitch(at, m)
	case *agent.ModeChangeBefore:
		q := g.ask(ahp.ConfigChangeBefore, at)
		q.event.Change = modeChange(m.From, m.To)
		g.parents.set(modeKey, q.event.ID)
		return q
	case *agent.TaskBefore:
		q := g.ask(ahp.TaskChangeBefore, at)
		q.event.Task = wireTask(m.ID, m.Operation, m.Change, m.Prior)
		g.parents.set(taskKey(m.ID, m.Operation), q.event.ID)
		return q
	case *agent.ElicitBefore:
		q, _ := g.elicitBefore(at, m)
		return q
	case *agent.ElicitResult:
		return g.elicitResult(at, m, g.parents.take(elicitKey(m.Server)))
	}
	return nil
}

// ask returns a question about an event of type t.
func (g *Gate) ask(t ahp.EventType, at agent.At) *question {
	return &question{event: g.at(t, at), caps: capabilities(t)}
}

func (g *Gate) inbound(at agent.At, m *agent.Inbound) *question {
	q := g.ask(ahp.UserMessageInbound, at)
	q.event.Message = &ahp.UserMessage{Channel: channel, Sender: sender, Messages: []ahp.Message{ahp.TextMessage(m.Item, ahp.RoleUser, m.Text)}}
	q.original = m.Text
	q.take = func(out *harness.Outcome, say *agent.Say, _ *event.HooksDecided) error {
		return prompt(out.Changed, out.Event.Message.Messages, m.Text, say)
	}
	return q
}

func (g *Gate) turnStart(at agent.At, m *agent.TurnStart) *question {
	q := g.ask(ahp.TurnStart, at)
	q.event.Trigger, q.event.Items = "user", ahp.MessageItems(ahp.TextMessage(m.Item, ahp.RoleUser, m.Text))
	q.original = m.Text
	if p := g.o.Parent; p != nil && g.o.ParentCall != "" {
		q.event.ParentEventID = p.parents.get(callKey(g.o.ParentCall))
	}
	g.parents.set("turn", q.event.ID)
	q.take = func(out *harness.Outcome, say *agent.Say, _ *event.HooksDecided) error {
		return prompt(out.Changed, out.Event.Items.Messages, m.Text, say)
	}
	return q
}

// prompt takes what became of a person's prompt.
func prompt(changed bool, list []ahp.Message, was string, say *agent.Say) error {
	say.Text = was
	if !changed {
		return nil
	}
	text, err := plainText(list, ahp.RoleUser, ahp.RoleDeveloper, ahp.RoleSystem)
	if err == nil && strings.TrimSpace(text) == "" {
		err = errors.New("nothing is left of the prompt")
	}
	say.Text = text
	return err
}

// toolNames is what params has of a request beside the messages.
type toolNames struct {
	Tools []string `json:"tools"`
}

func (g *Gate) request(at agent.At, m *agent.RequestBefore) *question {
	q := g.ask(ahp.ModelRequestBefore, at)
	params := toolNames{Tools: []string{}}
	for _, t := range m.Tools {
		params.Tools = append(params.Tools, t.Name)
	}
	text, err := strictjson.Marshal(params)
	if err != nil {
		text = []byte("{}")
	}
	q.event.Params, q.event.Items = text, ahp.MessageItems(g.canonicalRequest(m.System, m.Messages)...)
	q.event.ParentEventID = g.parents.get("turn")
	g.attempt(q.event, m.Attempt)
	g.parents.set("request", q.event.ID)
	q.take = func(out *harness.Outcome, say *agent.Say, d *event.HooksDecided) (err error) {
		if out.Changed {
			if say.Request, d.Request, err = g.newAdopted().request(m, out.Event.Items.Messages); err != nil {
				return err
			}
		}
		if out.Candidate == nil {
			return nil
		}
		list, err := ahp.DecodeMessages(out.Candidate.Value)
		if err != nil {
			return err
		}
		if say.Reply, err = g.newAdopted().reply(list); err != nil {
			return err
		}
		d.Outcome, d.By = "supplied", backendSource(out.CandidateBy).String()
		say.By = append(say.By, d.By)
		return nil
	}
	return q
}

// attempt fills in what all events of a model call have.
func (g *Gate) attempt(e *ahp.Event, a agent.Attempt) {
	e.Model, e.Attempt = splitModel(g.modelName()), &ahp.Attempt{ID: a.ID, Number: int64(a.Number)}
}

func (g *Gate) response(at agent.At, m *agent.ResponseAfter) *question {
	q := g.ask(ahp.ModelResponseAfter, at)
	e := q.event
	g.attempt(e, m.Attempt)
	e.Items, e.FinishReason = ahp.MessageItems(g.canonical(m.Item, m.Response.Message)), string(m.Response.Finish)
	e.ParentEventID = g.parents.get("request")
	if m.SuppliedBy != "" {
		e.Execution = ahp.Skipped("supplied_result")
	} else {
		ms := m.Latency.Milliseconds()
		e.Execution, e.LatencyMs, e.Usage = ahp.Executed(), &ms, attemptUsage(m.Response.Usage)
	}
	g.parents.set("response", e.ID)
	q.hidden = m.Response.Message.Text()
	q.take = g.takeReply(m.Item, m.Response.Message)
	return q
}

// takeReply takes what became of a reply.
func (g *Gate) takeReply(item string, was *model.Message) func(*harness.Outcome, *agent.Say, *event.HooksDecided) error {
	return func(out *harness.Outcome, say *agent.Say, d *event.HooksDecided) (err error) {
		if !out.Changed {
			return nil
		}
		a := g.newAdopted()
		a.know(item, was)
		if say.Reply, err = a.reply(out.Event.Items.Messages); err != nil {
			return err
		}
		for _, c := range was.ToolCalls() {
			if !a.calls[c.ID] {
				d.LeftOut = append(d.LeftOut, c.ID+" "+c.Name)
			}
		}
		return nil
	}
}

func (g *Gate) turnFinish(at agent.At, m *agent.TurnFinish) *question {
	q := g.ask(ahp.TurnFinishBefore, at)
	q.caps = finishCapabilities(m.Continuations, m.Remaining)
	e := q.event
	e.Outcome, e.ContinuationCount = "completed", int64(m.Continuations)
	e.Usage, e.ParentEventID = turnUsage(m.Usage), g.parents.get("turn")
	if m.Reply == nil { // it ends whatever anybody says
		e.Outcome, e.Items = turnOutcome(m.Reason), ahp.MessageItems()
		q.caps = capabilities(ahp.TurnFinishBefore, ahp.EffectModify, ahp.EffectFlow)
		return q
	}
	e.Items, e.LastAssistantItem = ahp.MessageItems(g.canonical(m.Item, m.Reply)), &ahp.Ref{ID: m.Item}
	q.hidden = m.Reply.Text()
	q.take = g.takeReply(m.Item, m.Reply)
	return q
}

func (g *Gate) outbound(at agent.At, m *agent.Outbound) *question {
	q := g.ask(ahp.UserMessageOutbound, at)
	q.event.Message = &ahp.UserMessage{Channel: channel, Messages: []ahp.Message{ahp.TextMessage(m.Item, ahp.RoleAssistant, m.Text)}}
	q.event.ParentEventID = g.parents.get("turn")
	q.hidden = m.Text
	q.take = func(out *harness.Outcome, say *agent.Say, _ *event.HooksDecided) (err error) {
		say.Text = m.Text
		if out.Changed {
			say.Text, err = plainText(out.Event.Message.Messages, ahp.RoleAssistant)
		}
		return err
	}
	return q
}

func (g *Gate) move(at agent.At, m *agent.WorkDirBefore) *question {
	q := g.ask(ahp.WorkspaceChangeBefore, at)
	q.event.Workspace = workDirChange(m.From, m.To)
	q.event.ParentEventID = g.parents.get(callKey(m.CallID))
	g.parents.set(moveKey(m.CallID), q.event.ID)
	return q
}

func workDirChange(from, to string) *ahp.Workspace {
	return &ahp.Workspace{Kind: "cwd", Change: ahp.WorkspaceState{Cwd: &to}, Prior: &ahp.WorkspaceState{Cwd: &from}, Reason: "a command changed it"}
}

func (g *Gate) batch(at agent.At, m *agent.BatchAfter) *question {
	q := g.ask(ahp.ToolBatchAfter, at)
	q.event.Batch = &ahp.Batch{ID: m.Batch.ID}
	q.event.ParentEventID = g.parents.get("response")
	for _, o := range m.Outcomes {
		if o.Call.Args == nil {
			q.event.Gaps = append(q.event.Gaps, ahp.Gap{Path: "calls", Reason: "the call " + o.Call.ID + " has no input: its arguments could not be used, or it was never judged"})
			continue
		}
		outcome, execution := outcomeOf(o)
		q.event.Calls = append(q.event.Calls, ahp.BatchCall{
			Call: ahp.Identity{ID: o.Call.ID}, Tool: toolOf(o.Call), Path: toolPath, Outcome: outcome, Execution: *execution, Batch: wireBatch(m.Batch),
		})
	}
	if len(q.event.Calls) == 0 {
		return nil
	}
	return q
}

// attemptUsage returns the usage of one attempt; nil if the provider said nothing.
func attemptUsage(u *model.Usage) *ahp.Usage {
	if u == nil || u.Input == nil && u.Output == nil && u.CacheRead == nil && u.CacheWrite == nil {
		return nil
	}
	out := tokens(u)
	out.Kind, out.Scope, out.Completeness = "amount", "attempt", "complete"
	if u.Input == nil || u.Output == nil {
		out.Completeness = "partial"
	}
	return out
}

// turnUsage returns the usage of a turn so far; nil if no provider said anything.
func turnUsage(u agent.TurnUsage) *ahp.Usage {
	if u.Input == nil && u.Output == nil && u.CacheRead == nil && u.CacheWrite == nil {
		return nil
	}
	out := tokens(&u.Usage)
	out.Kind, out.Scope, out.Completeness = "total", "turn", "complete"
	if u.Reported < u.Replies {
		out.Completeness = "partial"
	}
	return out
}

func tokens(u *model.Usage) *ahp.Usage {
	return &ahp.Usage{Provenance: "provider", InputTokens: u.Input, OutputTokens: u.Output, CacheReadTokens: u.CacheRead, CacheWriteTokens: u.CacheWrite}
}
