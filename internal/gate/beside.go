package gate

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/harness"
	"github.com/abhed/abhed/internal/agent"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/strictjson"
	"github.com/abhed/abhed/internal/tool"
)

// Names of what comes before something among the parents.
const (
	compactKey = "compact"
	switchKey  = "switch"
	modeKey    = "mode"
)

func taskKey(id, operation string) string { return "task " + operation + " " + id }

func elicitKey(server string) string { return "elicitation " + server }

// ofTurn returns the id of the event that the turn began with, "" outside a turn.
func (g *Gate) ofTurn(at agent.At) string {
	if at.TurnID == "" {
		return ""
	}
	return g.parents.get("turn")
}

// ofCall returns at with the turn in which the newest call was judged, for a moment
// that only a running call brings about.
func (g *Gate) ofCall(at agent.At) agent.At {
	if at.TurnID == "" {
		at.TurnID = g.parents.current()
	}
	return at
}

// partsText returns the text of parts that all have one.
func partsText(parts []ahp.Part) (string, error) {
	return plainText([]ahp.Message{{Role: ahp.RoleUser, Parts: parts}}, ahp.RoleUser)
}

func (g *Gate) compactBefore(at agent.At, m *agent.CompactBefore) *question {
	q := g.ask(ahp.ContextCompactBefore, at)
	e := q.event
	e.Trigger = "auto"
	if m.Trigger == "manual" {
		e.Trigger = m.Trigger
	}
	e.Items = ahp.MessageItems()
	for i, msg := range m.Messages {
		e.Items.Messages = append(e.Items.Messages, g.canonical(agent.ItemID(m.First+i, msg), msg))
	}
	e.Instructions = []ahp.Part{ahp.TextPart(e.ID+":instructions", tool.Clean(m.Instructions))}
	e.TokenCounts, e.ParentEventID = &ahp.TokenCounts{Before: &m.Before}, g.ofTurn(at)
	g.parents.set(compactKey, e.ID)
	q.take = func(out *harness.Outcome, say *agent.Say, d *event.HooksDecided) (err error) {
		say.Text = m.Instructions
		if out.Changed {
			if say.Text, err = partsText(out.Event.Instructions); err != nil {
				return err
			}
		}
		if out.Candidate == nil {
			return nil
		}
		parts, err := ahp.DecodeTextParts(out.Candidate.Value)
		if err != nil {
			return err
		}
		text, err := summaryText(parts)
		if err != nil {
			return err
		}
		say.Summary = &text
		d.Outcome, d.By = "supplied", backendSource(out.CandidateBy).String()
		say.By = append(say.By, d.By)
		return nil
	}
	return q
}

// summaryText returns the text of a summary.
func summaryText(parts []ahp.Part) (string, error) {
	text, err := partsText(parts)
	if err == nil && strings.TrimSpace(text) == "" {
		err = errors.New("nothing is left of the summary")
	}
	return text, err
}

func (g *Gate) compactAfter(at agent.At, m *agent.CompactAfter) *question {
	q := g.ask(ahp.ContextCompactAfter, at)
	e := q.event
	e.Summary = []ahp.Part{ahp.TextPart(e.ID+":summary", tool.Clean(m.Summary))}
	e.Removed = []ahp.Ref{}
	for _, id := range m.Removed {
		e.Removed = append(e.Removed, ahp.Ref{ID: id})
	}
	e.Execution = ahp.Executed()
	if m.Supplied {
		e.Execution = ahp.Skipped("supplied_result")
	}
	e.TokenCounts = &ahp.TokenCounts{Before: &m.Before, After: &m.After}
	if e.ParentEventID = g.parents.take(compactKey); e.ParentEventID == "" {
		e.ParentEventID = g.ofTurn(at)
	}
	q.hidden = m.Summary
	q.take = func(out *harness.Outcome, say *agent.Say, _ *event.HooksDecided) (err error) {
		say.Text = m.Summary
		if out.Changed {
			say.Text, err = summaryText(out.Event.Summary)
		}
		return err
	}
	return q
}

func (g *Gate) modelSwitch(at agent.At, m *agent.ModelSwitchBefore) *question {
	q := g.ask(ahp.ModelSwitchBefore, at)
	e := q.event
	e.Current, e.Proposed, e.Reason = splitModel(m.Current), splitModel(m.Proposed), tool.Clean(m.Reason)
	if p := m.Price; p != nil {
		e.Pricing = &ahp.Pricing{
			Currency: "USD", InputPerMillionTokens: number(p.Input), OutputPerMillionTokens: number(p.Output),
			CacheReadPerMillionTokens: number(p.CacheRead), CacheWritePerMillionTokens: number(p.CacheWrite),
		}
	}
	g.parents.set(switchKey, e.ID)
	return q
}

func number(f float64) ahp.Raw { return ahp.Raw(strconv.FormatFloat(f, 'f', -1, 64)) }

// modeChange describes a change of the permission mode.
func modeChange(from, to string) *ahp.ConfigChange {
	const name = "permissions.mode"
	return &ahp.ConfigChange{Source: "user", Scope: "session", Settings: []string{name}, Summary: name + " changes from " + from + " to " + to}
}

// wireTask describes a change of a task list.
func wireTask(id, operation string, change, prior []byte) *ahp.Task {
	t := &ahp.Task{ID: id, Operation: operation, Change: ahp.Raw(change), Prior: ahp.Raw(prior)}
	if len(change) == 0 {
		t.Change = ahp.Raw("{}")
	}
	return t
}

// attend says that a person is wanted: to the observers, and as a notification to
// the extensions. parent is the event that it comes from, about the tool; both may be
// "".
func (g *Gate) attend(ctx context.Context, at agent.At, m *agent.Attention, parent, about string) {
	title, message := tool.Clean(m.Title), tool.Clean(m.Message)
	if g.extensionsTake(notificationEvent) {
		g.o.Extensions.Notification(ctx, g.where(at), strings.Trim(title+": "+message, ": "), about)
	}
	if !g.observed(ahp.UserAttention) {
		return
	}
	e := g.at(ahp.UserAttention, at)
	if e.ParentEventID = parent; parent == "" {
		e.ParentEventID = g.ofTurn(at)
	}
	e.Attention = &ahp.Attention{
		Kind: m.Kind, Title: []ahp.Part{ahp.TextPart(e.ID+":title", title)}, Message: []ahp.Part{ahp.TextPart(e.ID+":message", message)},
	}
	g.observe(ctx, e)
}

// compact returns a JSON value in canonical form, as it is if it has none.
func compact(value []byte) string {
	canon, err := strictjson.Canonical(value)
	if err != nil {
		return string(bytes.TrimSpace(value))
	}
	return string(canon)
}
