package script

import (
	"fmt"

	"github.com/abhed/abhed/internal/model"
)

// checkHistory returns the rule that ms breaks, "" if it breaks none.
func checkHistory(ms []*model.Message) string {
	h := history{open: map[string]bool{}, used: map[string]bool{}}
	for i, m := range ms {
		if problem := h.add(m); problem != "" {
			return fmt.Sprintf("message %d (%s): %s", i+1, m.Role, problem)
		}
	}
	if len(h.open) > 0 {
		return fmt.Sprintf("%d tool calls at the end have no result", len(h.open))
	}
	if h.last != "user" && h.last != "tool" {
		return fmt.Sprintf("the last message is from %q, expected user or tool", h.last)
	}
	return ""
}

// history is the state of a conversation as far as it was judged.
type history struct {
	last string
	open map[string]bool // calls without a result
	used map[string]bool // call ids so far
}

func (h *history) add(m *model.Message) string {
	role := string(m.Role)
	if role != "tool" && len(h.open) > 0 {
		return fmt.Sprintf("%d tool calls before it have no result", len(h.open))
	}
	if len(m.Parts) == 0 && role != "assistant" {
		return "has no parts"
	}
	for i, p := range m.Parts {
		if problem := h.part(role, p); problem != "" {
			return fmt.Sprintf("part %d %s", i+1, problem)
		}
	}
	switch role {
	case "user", "tool":
	case "assistant":
		if h.last != "user" && h.last != "tool" {
			return fmt.Sprintf("follows %q, expected it after user or tool", h.last)
		}
	default:
		return "unknown role"
	}
	h.last = role
	return ""
}

// part judges one part of a message.
func (h *history) part(role string, p model.Part) string {
	set := 0
	for _, is := range []bool{p.Text != nil, p.Reasoning != nil, p.ToolCall != nil, p.ToolResult != nil} {
		if is {
			set++
		}
	}
	switch {
	case set != 1:
		return fmt.Sprintf("has %d members set, expected 1", set)
	case (p.ToolResult != nil) != (role == "tool"):
		return "is a tool result in another message, or another part in a tool message"
	case (p.ToolCall != nil || p.Reasoning != nil) && role != "assistant":
		return "may only be in an assistant's message"
	case p.Text != nil && *p.Text == "":
		return "is an empty text"
	}
	if c := p.ToolCall; c != nil {
		if c.ID == "" || c.Name == "" || h.used[c.ID] {
			return fmt.Sprintf("is a call with an empty or repeated id, or without a name (id %q, name %q)", c.ID, c.Name)
		}
		h.open[c.ID], h.used[c.ID] = true, true
	}
	if r := p.ToolResult; r != nil {
		if !h.open[r.CallID] {
			return fmt.Sprintf("answers the call %q, which is not open", r.CallID)
		}
		delete(h.open, r.CallID)
	}
	return ""
}
