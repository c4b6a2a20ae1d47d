package gate

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/abhed/abhed/internal/agent"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/extension"
	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/tool"
)

var _ agent.Extensions = (*Gate)(nil)

// The events of the extension protocol that aren't about a tool call.
const (
	promptEvent       = "user_prompt_submit"
	agentStartEvent   = "before_agent_start"
	contextEvent      = "context"
	compactEvent      = "before_compact"
	turnEndEvent      = "turn_end"
	subagentEndEvent  = "subagent_end"
	notificationEvent = "notification"
)

// extensionsTake reports whether an extension subscribes to the event.
func (g *Gate) extensionsTake(name string) bool {
	return g.o.Extensions != nil && g.o.Extensions.Subscribes(name)
}

// where says to extensions where something happens.
func (g *Gate) where(at agent.At) extension.At {
	return extension.At{Turn: at.Turn, Agent: g.o.Agent}
}

// named names extensions as those who did something.
func named(names ...string) string {
	var out []string
	for _, n := range names {
		out = append(out, "extension "+n)
	}
	return strings.Join(out, ", ")
}

// asking is one asking of the extensions at a point of a run that isn't a tool call.
type asking struct {
	g     *Gate
	d     event.HooksDecided
	began time.Time
}

func (g *Gate) asking(at agent.At, name string) *asking {
	return &asking{g, event.HooksDecided{Turn: at.Turn, TurnID: at.TurnID, EventType: name, Outcome: "none"}, g.o.Now()}
}

// decide notes what the extensions came to.
func (a *asking) decide(outcome, by, reason string) {
	a.d.Outcome, a.d.By, a.d.Reason = outcome, by, reason
}

// record puts on disk who was asked, and what came of it. A refusal is the end of ctx,
// which whatever was answered can't undo, or of the record.
func (a *asking) record(ctx context.Context, asked []event.Asked) *agent.Refusal {
	var r *agent.Refusal
	if ctx.Err() != nil {
		r = &agent.Refusal{By: "the harness", Reason: "it was cancelled while the extensions were asked", Interrupted: true}
		a.d.Injected, a.d.LeftOut = nil, nil
		a.decide("interrupted", r.By, r.Reason)
	}
	if len(asked) == 0 {
		return r
	}
	a.d.Asked, a.d.MS = asked, a.g.o.Now().Sub(a.began).Milliseconds()
	if _, err := a.g.o.Log.AppendDurable(event.Draft{Actor: event.ActorGate, Trust: event.TrustHarness, Payload: &a.d}); err != nil {
		return &agent.Refusal{By: "the record", Err: err}
	}
	return r
}

// Submit asks the extensions about a person's text (see agent.Extensions). What an
// agent gives its sub-agent to do is no person's: the call that does so was judged.
func (g *Gate) Submit(ctx context.Context, at agent.At, text string) *agent.Refusal {
	if g.o.Agent.Depth > 0 || !g.extensionsTake(promptEvent) {
		g.said(text)
		return nil
	}
	q := g.asking(at, promptEvent)
	a := g.o.Extensions.PromptSubmit(ctx, g.where(at), text)
	var refusal *agent.Refusal
	if a.Refused {
		refusal = &agent.Refusal{By: named(a.By), Reason: a.Reason}
		q.decide("denied", refusal.By, a.Reason)
		q.d.Original = text
	}
	if r := q.record(ctx, a.Asked); r != nil {
		return r
	}
	if refusal == nil {
		g.said(text)
	}
	return refusal
}

// maxPrompts is how many texts of the person are remembered: one may have been
// accepted that isn't among the messages yet.
const maxPrompts = 8

// said remembers what the person said, as it goes into the conversation.
func (g *Gate) said(text string) {
	if text == "" {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.prompts = append(g.prompts, tool.Clean(text))
	if len(g.prompts) > maxPrompts {
		g.prompts = g.prompts[1:]
	}
}

// prompt returns the person's newest message, nil if none is known: messages in the
// person's name come from backends and from this program too.
func (g *Gate) prompt(messages []*model.Message) *model.Message {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, m := range slices.Backward(messages) {
		if m.Role == event.RoleUser && slices.Contains(g.prompts, m.Text()) {
			return m
		}
	}
	return nil
}

// Begin asks the extensions what to add to the system text (see agent.Extensions).
func (g *Gate) Begin(ctx context.Context, at agent.At, system string) ([]string, *agent.Refusal) {
	if !g.extensionsTake(agentStartEvent) {
		return nil, nil
	}
	q := g.asking(at, agentStartEvent)
	a := g.o.Extensions.AgentStart(ctx, g.where(at), system)
	var texts, by []string
	for _, t := range a.Append {
		texts, by = append(texts, t.Text), append(by, t.By)
	}
	if len(texts) > 0 {
		q.decide("changed", named(by...), "")
		q.d.Injected = texts
	}
	if r := q.record(ctx, a.Asked); r != nil {
		return nil, r
	}
	return texts, nil
}

// Select asks the extensions which messages to send (see agent.Extensions). The
// record names those that are kept out.
func (g *Gate) Select(ctx context.Context, at agent.At, messages []*model.Message) ([]*model.Message, *agent.Refusal) {
	if !g.extensionsTake(contextEvent) {
		return messages, nil
	}
	q := g.asking(at, contextEvent)
	place := g.where(at)
	place.Prompt = g.prompt(messages)
	a := g.o.Extensions.Context(ctx, place, messages)
	var refusal *agent.Refusal
	kept := messages
	switch {
	case a.Refused:
		refusal = &agent.Refusal{By: named(a.RefusedBy), Reason: a.Reason}
		q.decide("denied", refusal.By, a.Reason)
	case a.Keep != nil:
		var ids []string
		kept, ids, q.d.LeftOut = choose(messages, a.Keep)
		defer g.choice(kept, ids)
		q.decide("changed", named(a.By...), "")
	}
	if r := q.record(ctx, a.Asked); r != nil {
		return nil, r
	}
	if refusal != nil {
		return nil, refusal
	}
	return kept, nil
}

// choose returns the messages to keep with their ids, and the ids of the others.
func choose(messages []*model.Message, keep []bool) (kept []*model.Message, ids, out []string) {
	for i, m := range messages {
		if id := agent.ItemID(i, m); keep[i] {
			kept, ids = append(kept, m), append(ids, id)
		} else {
			out = append(out, id)
		}
	}
	return kept, ids, out
}

// choice remembers what was kept of a conversation: the ids of messages are those of
// their places there.
func (g *Gate) choice(kept []*model.Message, ids []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.chosen, g.chosenIDs = kept, ids
}

// itemIDs returns the ids of the messages of a request.
func (g *Gate) itemIDs(messages []*model.Message) []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(messages) > 0 && slices.Equal(messages, g.chosen) {
		return g.chosenIDs
	}
	ids := make([]string, 0, len(messages))
	for i, m := range messages {
		ids = append(ids, agent.ItemID(i, m))
	}
	return ids
}

// Compact asks the extensions about a compaction (see agent.Extensions).
func (g *Gate) Compact(ctx context.Context, at agent.At, messages []*model.Message) (agent.Compaction, *agent.Refusal) {
	if !g.extensionsTake(compactEvent) {
		return agent.Compaction{}, nil
	}
	q := g.asking(at, compactEvent)
	a := g.o.Extensions.BeforeCompact(ctx, g.where(at), messages)
	out := agent.Compaction{Cancel: a.Cancel, Summary: a.Summary, By: strings.Join(a.By, ", ")}
	switch {
	case a.Cancel:
		q.decide("denied", named(a.By...), a.Reason)
	case a.Summary != nil:
		q.decide("supplied", named(a.By...), a.Reason)
	default:
		q.d.Reason = a.Reason
	}
	if r := q.record(ctx, a.Asked); r != nil {
		return agent.Compaction{}, r
	}
	return out, nil
}

// Ended tells the extensions of the end of a run: the main agent's as turn_end, a
// sub-agent's as subagent_end.
func (g *Gate) Ended(ctx context.Context, at agent.At, _ agent.Reason, content string) {
	switch {
	case g.o.Agent.Depth > 0:
		if g.extensionsTake(subagentEndEvent) {
			g.o.Extensions.SubagentEnd(ctx, g.where(at), content)
		}
	case g.extensionsTake(turnEndEvent):
		g.o.Extensions.TurnEnd(ctx, g.where(at), content)
	}
}
