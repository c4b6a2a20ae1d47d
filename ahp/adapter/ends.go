package adapter

import "github.com/abhed/abhed/ahp"

// Resolved returns a tool.permission.resolved: whether a call may run, and by whom that
// was decided ("user", "policy", "hook", "auto" or "classifier").
func (b *Base) Resolved(c Call, allowed bool, by string) *ahp.Event {
	e := b.call(ahp.ToolPermissionResolved, c)
	e.Decision, e.DecidedBy = "deny", by
	if allowed {
		e.Decision = "allow"
	}
	return e
}

// TurnEnd returns a turn.end. outcome is one of the protocol's; problem is what made
// the turn fail, and counts only there.
func (b *Base) TurnEnd(outcome, problem string, seed []byte) *ahp.Event {
	b.needTurn(seed)
	e := b.Event(ahp.TurnEnd)
	e.Outcome, e.Items = outcome, ahp.MessageItems()
	if problem = Clean(problem); outcome == "failed" && problem != "" {
		e.Error = &ahp.Problem{Class: "turn", Message: problem}
	}
	return e
}

// Inbound returns a user.message.inbound: what a person, or something else, sends over
// a channel.
func (b *Base) Inbound(channel, sender, text string) *ahp.Event {
	e := b.Event(ahp.UserMessageInbound)
	m := ahp.TextMessage("message", ahp.RoleUser, text)
	m.Synthesized = true
	e.Message = &ahp.UserMessage{Channel: channel, Sender: sender, Messages: []ahp.Message{m}}
	return e
}
