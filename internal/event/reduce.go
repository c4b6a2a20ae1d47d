package event

import "strings"

// HarnessMark begins every text that the harness itself says in the conversation.
const HarnessMark = "[abhed] "

// UserSaid returns the message that m stands for in the conversation.
func UserSaid(m *UserMessage) *Message {
	out := &Message{Role: RoleUser, Parts: []Part{TextPart(m.Text)}}
	for i := range m.Images {
		out.Parts = append(out.Parts, Part{Image: &m.Images[i]})
	}
	return out
}

// Reduce returns the conversation that messages becomes by r. Neither the slice nor
// a message in it is changed. What r says of messages that aren't there is left out.
func Reduce(messages []*Message, r *ContextReduced) []*Message {
	stubs := make(map[string]string, len(r.Stubs))
	for _, s := range r.Stubs {
		stubs[s.CallID] = s.Text
	}
	out := make([]*Message, 0, len(messages)+1)
	for i, m := range messages {
		if i == r.From && r.From < r.To {
			out = append(out, &Message{Role: RoleUser, Parts: []Part{TextPart(r.Summary)}})
		}
		if i < r.From || i >= r.To {
			out = append(out, stubbed(m, stubs))
		}
	}
	return out
}

// stubbed returns m with the results in stubs replaced.
func stubbed(m *Message, stubs map[string]string) *Message {
	if m.Role != RoleTool || len(stubs) == 0 {
		return m
	}
	out := *m
	out.Parts = append([]Part(nil), m.Parts...)
	changed := false
	for i, p := range out.Parts {
		if p.ToolResult == nil {
			continue
		}
		if text, ok := stubs[p.ToolResult.CallID]; ok {
			out.Parts[i].ToolResult = &ToolResult{CallID: p.ToolResult.CallID, Name: p.ToolResult.Name, Content: text, IsError: p.ToolResult.IsError}
			changed = true
		}
	}
	if !changed {
		return m
	}
	return &out
}

// ByHarness reports whether the harness itself said m.
func ByHarness(m *Message) bool { return strings.HasPrefix(m.Text(), HarnessMark) }
