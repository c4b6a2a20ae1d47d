package modeltest

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/abhed/abhed/internal/strictjson"
)

// conversation checks the messages of a request of the Messages API and puts them
// into the common form.
type conversation struct {
	s       *Server
	r       *Request
	open    map[string]bool // calls of the last assistant message without an answer
	used    map[string]bool
	thinks  bool // the request turns thinking on
	thought bool // thinking was seen since the user last said something
}

func (s *Server) readMessages(r Request, q *apiRequest) (Request, string) {
	c := conversation{s: s, r: &r, open: map[string]bool{}, used: map[string]bool{}, thinks: q.Thinking.Type == "enabled"}
	role := "assistant"
	for i, m := range q.Messages {
		at := fmt.Sprintf("messages.%d", i)
		if m.Role == role || m.Role != "user" && m.Role != "assistant" {
			return r, at + ": roles must alternate between user and assistant, found " + m.Role
		}
		role = m.Role
		if len(m.Content) == 0 {
			return r, at + ": must have non-empty content"
		}
		read := c.user
		if role == "assistant" {
			read = c.assistant
		}
		if problem := read(at, m.Content); problem != "" {
			return r, problem
		}
	}
	last := q.Messages
	switch {
	case len(c.used) > 0 && r.Tools == nil:
		return r, "Requests which include `tool_use` or `tool_result` blocks must define tools"
	case role != "user" || len(last) == 0:
		return r, "the last message is not the user's"
	case c.thinks && !c.thought && last[len(last)-1].Content[0].Type == "tool_result":
		return r, "Expected `thinking` or `redacted_thinking`, but found `tool_use`: when thinking is enabled, a tool loop must begin with it"
	}
	return r, ""
}

// user reads a message of the user's: results of all open calls first, then the rest.
func (c *conversation) user(at string, blocks []messageBlock) string {
	said := Message{Role: "user"}
	text, results, others := "", 0, 0
	for i, b := range blocks {
		here := fmt.Sprintf("%s.content.%d", at, i)
		switch {
		case b.Type == "tool_result" && others == 0 && c.open[b.ToolUseID]:
			delete(c.open, b.ToolUseID)
			results++
			m, problem := c.result(b)
			if problem != "" {
				return here + ": " + problem
			}
			c.r.Messages = append(c.r.Messages, m)
		case b.Type == "tool_result":
			return here + ": the tool_result has no corresponding tool_use in the previous message, or stands after other content"
		case b.Type == "text" && !blank(b.Text):
			text += *b.Text
			others++
		case b.Type == "image" && goodImage(b.Source):
			said.Images = append(said.Images, "data:"+b.Source.MediaType+";base64,"+b.Source.Data)
			others++
		default:
			return here + ": a block of type " + b.Type + " that is empty or not the user's"
		}
	}
	if len(c.open) > 0 {
		return fmt.Sprintf("%s: %d tool_use blocks of the message before have no tool_result", at, len(c.open))
	}
	if others > 0 {
		said.Content = encode(text)
		c.r.Messages = append(c.r.Messages, said)
	}
	if results == 0 {
		c.thought = false
	}
	return ""
}

func goodImage(s *imageSource) bool { return s != nil && s.Type == "base64" && s.Data != "" }

func (c *conversation) result(b messageBlock) (m Message, problem string) {
	m = Message{Role: "tool", ToolCallID: &b.ToolUseID, Content: encode("")}
	switch {
	case b.Content == nil:
		return m, ""
	case b.Content.Kind() == '"':
		m.Content = b.Content
		if s := m.Text(); blank(&s) {
			return m, "text content blocks must be non-empty"
		}
		return m, ""
	}
	var parts []messageBlock
	if err := strictjson.Unmarshal(b.Content, &parts, strictjson.Options{RejectUnknown: true, MaxBytes: 256 << 20}); err != nil {
		return m, err.Error()
	}
	text := ""
	for _, p := range parts {
		switch {
		case p.Type == "text" && !blank(p.Text):
			text += *p.Text
		case p.Type == "image" && goodImage(p.Source) && !b.IsError:
			m.Images = append(m.Images, "data:"+p.Source.MediaType+";base64,"+p.Source.Data)
		default:
			return m, "content of type " + p.Type + " that is empty, or not allowed with is_error"
		}
	}
	m.Content = encode(text)
	return m, ""
}

// assistant reads a message of the model's.
func (c *conversation) assistant(at string, blocks []messageBlock) string {
	m := Message{Role: "assistant"}
	text, thinking, thought := "", "", false
	for i, b := range blocks {
		here := fmt.Sprintf("%s.content.%d: ", at, i)
		switch {
		case b.Type == "text" && !blank(b.Text):
			text += *b.Text
		case b.Type == "thinking" && b.Thinking != nil && b.Cache == nil:
			if b.Signature != seal(c.s.o.SealKey, *b.Thinking) {
				return badSeal + here + "Invalid `signature` in `thinking` block"
			}
			thinking += *b.Thinking
			thought = true
		case b.Type == "tool_use":
			if problem := c.call(&m, b, thought); problem != "" {
				return here + problem
			}
		default:
			return here + "a block of type " + b.Type + " that is empty or not the model's"
		}
		if thought && c.s.o.RefuseReasoning {
			return here + "thinking is not supported"
		}
		if i == len(blocks)-1 && b.Type == "thinking" {
			return at + ": The final block in an assistant message cannot be `thinking`."
		}
	}
	m.Content = jsontext.Value("null")
	if text != "" {
		m.Content = encode(text)
	}
	if thought {
		m.ReasoningContent = &thinking
		c.thought = true
	}
	c.r.Messages = append(c.r.Messages, m)
	return ""
}

func (c *conversation) call(m *Message, b messageBlock, thought bool) string {
	switch {
	case !namePattern.MatchString(b.ID) || c.used[b.ID]:
		return fmt.Sprintf("the id %q is bad or used twice", b.ID)
	case !namePattern.MatchString(b.Name):
		return fmt.Sprintf("the name %q is bad", b.Name)
	case b.Input.Kind() != '{':
		return "input: Input should be a valid dictionary"
	case c.s.o.NeedReasoning && !thought:
		return "a tool_use without the thinking that it came with"
	}
	c.open[b.ID], c.used[b.ID] = true, true
	call := ToolCall{ID: b.ID, Type: "function"}
	call.Function.Name, call.Function.Arguments = b.Name, string(b.Input)
	m.ToolCalls = append(m.ToolCalls, call)
	return ""
}
