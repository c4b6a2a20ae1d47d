package gate

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/agent"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/strictjson"
	"github.com/abhed/abhed/internal/tool"
)

// Categories of parts. The protocol has no part for a tool call: it is a text part
// with the call as JSON.
const (
	categoryReasoning = "reasoning"
	categoryCall      = "tool_call"
)

// systemItem is the id of the system prompt.
const systemItem = "system"

// callText is a tool call as backends read it in a message.
type callText struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// canonical returns m as the protocol has it, with the given id.
func (g *Gate) canonical(id string, m *model.Message) ahp.Message {
	out := ahp.Message{ID: id, Role: ahp.Role(m.Role), Parts: []ahp.Part{}}
	for i, p := range m.Parts {
		part := fmt.Sprintf("%s:%d", id, i)
		if p.Image != nil {
			out.Parts = append(out.Parts, g.imagePart(part, p.Image))
			continue
		}
		out.Parts = append(out.Parts, canonicalPart(part, p))
		if p.ToolResult != nil {
			out.Parts = append(out.Parts, g.imageParts(part, p.ToolResult.Images)...)
		}
	}
	return out
}

// canonicalPart returns p, which is no image, without the images that come with it.

func canonicalPart(id string, p model.Part) ahp.Part {
	switch {
	case p.Reasoning != nil:
		out := ahp.TextPart(id, tool.Clean(*p.Reasoning))
		out.Category = categoryReasoning
		return out
	case p.ToolCall != nil:
		text, err := strictjson.Marshal(callText{p.ToolCall.ID, p.ToolCall.Name, tool.Clean(p.ToolCall.Args)})
		if err != nil {
			text = []byte("a call that can't be shown")
		}
		out := ahp.TextPart(id, string(text))
		out.Category = categoryCall
		return out
	case p.ToolResult != nil:
		return ahp.TextPart(id, p.ToolResult.Content)
	case p.Text != nil:
		return ahp.TextPart(id, tool.Clean(*p.Text))
	}
	out := ahp.TextPart(id, "") // what only its provider can read
	out.Category = categoryReasoning
	return out
}

// canonicalRequest returns a request's messages, the system prompt first.
func (g *Gate) canonicalRequest(system string, messages []*model.Message) []ahp.Message {
	out := []ahp.Message{ahp.TextMessage(systemItem, ahp.RoleSystem, system)}
	ids := g.itemIDs(messages)
	for i, m := range messages {
		out = append(out, g.canonical(ids[i], m))
	}
	return out
}

// plainText returns the text of messages that all have one of the roles.
func plainText(list []ahp.Message, roles ...ahp.Role) (string, error) {
	var texts []string
	for _, m := range list {
		if !slices.Contains(roles, m.Role) {
			return "", fmt.Errorf("it has a message of the role %s, expected %v", m.Role, roles)
		}
		for _, p := range m.Parts {
			if p.Text == nil {
				return "", fmt.Errorf("its part %s has no text, and only text can be used here", p.ID)
			}
			texts = append(texts, *p.Text)
		}
	}
	return tool.Clean(strings.Join(texts, "\n")), nil
}

// adopted turns messages that a backend changed back into the loop's own. What is
// as it was stays the same value; calls can be left out and nothing else: they are
// for tool.before to change.
type adopted struct {
	g      *Gate
	parts  map[string]original      // by part id
	images map[string]originalImage // likewise
	calls  map[string]bool          // ids of calls used already
}

type original struct {
	part model.Part
	sent ahp.Part
}

func (g *Gate) newAdopted() *adopted {
	return &adopted{g, map[string]original{}, map[string]originalImage{}, map[string]bool{}}
}

// know adds a message that was sent with the given id.
func (a *adopted) know(id string, m *model.Message) {
	for i, p := range m.Parts {
		part := fmt.Sprintf("%s:%d", id, i)
		if p.Image != nil {
			a.images[part] = originalImage{p.Image, a.g.imagePart(part, p.Image)}
			continue
		}
		a.parts[part] = original{p, canonicalPart(part, p)}
		if p.ToolResult == nil {
			continue
		}
		for n, sent := range a.g.imageParts(part, p.ToolResult.Images) {
			a.images[sent.ID] = originalImage{&p.ToolResult.Images[n], sent}
		}
	}
}

// part returns what the text part p stands for; ok is false for an empty text, which
// no model takes. A result is without its images: they are parts of their own.
func (a *adopted) part(p *ahp.Part) (out model.Part, ok bool, err error) {
	was, known := a.parts[p.ID]
	if known && was.sent.Category == p.Category && *was.sent.Text == *p.Text {
		if c := was.part.ToolCall; c != nil {
			if a.calls[c.ID] {
				return out, false, fmt.Errorf("it has the call %s twice", c.ID)
			}
			a.calls[c.ID] = true
		}
		if r := was.part.ToolResult; r != nil {
			return withContent(r, r.Content), true, nil
		}
		return was.part, true, nil
	}
	text := tool.Clean(*p.Text)
	switch {
	case known && was.part.ToolCall != nil || p.Category == categoryCall:
		return out, false, errors.New("a tool call can be left out here, but not changed or added")
	case known && was.part.ToolResult != nil:
		return withContent(was.part.ToolResult, text), true, nil
	case p.Category == categoryReasoning:
		return model.Part{Reasoning: &text}, text != "", nil
	}
	return event.TextPart(text), text != "", nil
}

// withContent returns a copy of r with another text and no images.
func withContent(r *model.ToolResult, text string) model.Part {
	c := *r
	c.Content, c.Images = text, nil
	return model.Part{ToolResult: &c}
}

// reply joins messages of an assistant to one.
func (a *adopted) reply(list []ahp.Message) (*model.Message, error) {
	out := &model.Message{Role: event.RoleAssistant, Parts: []model.Part{}}
	for i := range list {
		if list[i].Role != ahp.RoleAssistant {
			return nil, fmt.Errorf("it has a message of the role %s, expected %s", list[i].Role, ahp.RoleAssistant)
		}
		before := len(out.Parts)
		if err := a.append(out, &list[i]); err != nil {
			return nil, err
		}
		if before > 0 && len(out.Parts) > before && out.Parts[before].Text != nil && out.Parts[before-1].Text != nil {
			out.Parts[before] = event.TextPart("\n\n" + *out.Parts[before].Text) // it was a message of its own
		}
	}
	return out, nil
}

func (a *adopted) append(out *model.Message, m *ahp.Message) error {
	for j := range m.Parts {
		if m.Parts[j].Text == nil {
			img, err := a.image(&m.Parts[j])
			if err == nil {
				err = appendImage(out, img)
			}
			if err != nil {
				return err
			}
			continue
		}
		p, ok, err := a.part(&m.Parts[j])
		if err != nil {
			return err
		}
		if p.Reasoning != nil && out.Role != event.RoleAssistant {
			p = event.TextPart(*p.Reasoning)
		}
		if (p.ToolResult != nil) != (out.Role == event.RoleTool) || p.ToolCall != nil && out.Role != event.RoleAssistant {
			return fmt.Errorf("the part %s can't be in a message of the role %s", m.Parts[j].ID, m.Role)
		}
		if ok {
			out.Parts = append(out.Parts, p)
		}
	}
	return nil
}

// request turns messages back into a request like was. items says which of them
// are the conversation's own.
func (a *adopted) request(was *agent.RequestBefore, list []ahp.Message) (*model.Request, []event.RequestItem, error) {
	sent := map[string]*model.Message{}
	ids := a.g.itemIDs(was.Messages)
	for i, m := range was.Messages {
		sent[ids[i]] = m
		a.know(ids[i], m)
	}
	req := &model.Request{Tools: was.Tools}
	var items []event.RequestItem
	var system []string
	for i := range list {
		m := &list[i]
		if m.Role == ahp.RoleSystem {
			text, err := plainText([]ahp.Message{*m}, ahp.RoleSystem)
			if err != nil {
				return nil, nil, err
			}
			system = append(system, text)
			item := event.RequestItem{ID: m.ID}
			if m.ID != systemItem || text != was.System {
				item.Message = &event.Message{Role: "system", Parts: []event.Part{event.TextPart(text)}}
			}
			items = append(items, item)
			continue
		}
		own, item, err := a.message(m, sent[m.ID])
		if err != nil {
			return nil, nil, fmt.Errorf("message %s: %w", m.ID, err)
		}
		if own != nil {
			req.Messages, items = append(req.Messages, own), append(items, item)
		}
	}
	req.System = strings.Join(system, "\n\n")
	return req, items, sendable(req.Messages)
}

// message returns what m stands for; nil if nothing is left of it.
func (a *adopted) message(m *ahp.Message, was *model.Message) (*model.Message, event.RequestItem, error) {
	out := &model.Message{Role: event.Role(m.Role)}
	if m.Role == ahp.RoleDeveloper {
		out.Role = event.RoleUser
	}
	if err := a.append(out, m); err != nil {
		return nil, event.RequestItem{}, err
	}
	if was != nil && was.Role == out.Role && sameParts(was.Parts, out.Parts) {
		return was, event.RequestItem{ID: m.ID}, nil
	}
	if len(out.Parts) == 0 {
		return nil, event.RequestItem{}, nil
	}
	return out, event.RequestItem{ID: m.ID, Message: out}, nil
}

// sendable reports why no model would take the messages, or nil.
func sendable(list []*model.Message) error {
	open := map[string]bool{}
	for i, m := range list {
		if m.Role != event.RoleTool {
			if len(open) > 0 {
				return errors.New("a tool call has no result right behind it")
			}
			if m.Role == event.RoleAssistant && (i == 0 || list[i-1].Role == event.RoleAssistant) {
				return errors.New("a message of the model's own is the first, or follows another")
			}
			for _, c := range m.ToolCalls() {
				open[c.ID] = true
			}
			continue
		}
		for _, p := range m.Parts {
			if p.ToolResult == nil || !open[p.ToolResult.CallID] {
				return errors.New("a tool's message doesn't answer a call before it")
			}
			delete(open, p.ToolResult.CallID)
		}
	}
	switch {
	case len(open) > 0:
		return errors.New("a tool call has no result")
	case len(list) == 0:
		return errors.New("there is no message left")
	case list[len(list)-1].Role == event.RoleAssistant:
		return errors.New("the last message is the model's own")
	}
	return nil
}
