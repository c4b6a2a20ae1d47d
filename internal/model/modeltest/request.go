package modeltest

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/abhed/abhed/internal/strictjson"
)

var namePattern = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// Request is a request as it was received.
type Request struct {
	Header   http.Header
	Body     []byte
	Model    string
	Messages []Message
	// Tools holds the tools member, nil if there was none.
	Tools []jsontext.Value
	// Params holds the other members, stream among them.
	Params map[string]jsontext.Value
}

// Message is a message of a request, in the form of chat completions whatever the
// API. Nil members were absent or null.
type Message struct {
	Role             string         `json:"role"`
	Content          jsontext.Value `json:"content"`
	ReasoningContent *string        `json:"reasoning_content"`
	Reasoning        *string        `json:"reasoning"`
	ToolCalls        []ToolCall     `json:"tool_calls"`
	ToolCallID       *string        `json:"tool_call_id"`
	// Images holds the URLs of the pictures.
	Images []string `json:"-"`
}

// ToolCall is a call in a message of a request.
type ToolCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// Text returns the content if it is text, the texts in it if it is a list with a
// picture, else "".
func (m Message) Text() string {
	var s string
	if strictjson.Unmarshal(m.Content, &s, strictjson.Options{}) == nil {
		return s
	}
	texts, images, ok := chatParts(m.Content)
	if !ok || len(images) == 0 {
		return ""
	}
	return texts
}

// chatParts reads a content list of texts and pictures.
func chatParts(content jsontext.Value) (texts string, images []string, ok bool) {
	var parts []struct {
		Type     string `json:"type"`
		Text     string `json:"text"`
		ImageURL *struct {
			URL string `json:"url"`
		} `json:"image_url"`
	}
	if strictjson.Unmarshal(content, &parts, strictjson.Options{RejectUnknown: true, MaxBytes: 256 << 20}) != nil {
		return "", nil, false
	}
	for _, p := range parts {
		switch {
		case p.Type == "text" && p.Text != "" && p.ImageURL == nil:
			texts += p.Text
		case p.Type == "image_url" && p.Text == "" && p.ImageURL != nil && strings.HasPrefix(p.ImageURL.URL, "data:image/"):
			images = append(images, p.ImageURL.URL)
		default:
			return "", nil, false
		}
	}
	return texts, images, true
}

// decode reads a request and returns what is wrong with it, "" if nothing is.
func (s *Server) decode(body []byte) (Request, string) {
	r := Request{Body: body}
	if err := strictjson.Unmarshal(body, &r.Params, strictjson.Options{MaxBytes: 256 << 20}); err != nil {
		return r, err.Error()
	}
	for _, member := range []struct {
		name     string
		dst      any
		optional bool
	}{{"model", &r.Model, false}, {"messages", &r.Messages, false}, {"tools", &r.Tools, true}} {
		raw, ok := r.Params[member.name]
		delete(r.Params, member.name)
		if !ok && member.optional {
			continue
		}
		if !ok {
			return r, "no member " + member.name
		}
		if err := strictjson.Unmarshal(raw, member.dst, strictjson.Options{RejectUnknown: true, MaxBytes: 256 << 20}); err != nil {
			return r, member.name + ": " + err.Error()
		}
	}
	if string(r.Params["stream"]) != "true" {
		return r, "stream is not true"
	}
	if r.Model == "" {
		return r, "model is empty"
	}
	if problem := checkTools(r.Tools); problem != "" {
		return r, problem
	}
	return r, s.checkMessages(r.Messages)
}

func checkTools(tools []jsontext.Value) string {
	seen := map[string]bool{}
	if tools != nil && len(tools) == 0 {
		return "tools is an empty list"
	}
	for i, raw := range tools {
		var t struct {
			Type     string `json:"type"`
			Function struct {
				Name        string         `json:"name"`
				Description *string        `json:"description"`
				Parameters  jsontext.Value `json:"parameters"`
			} `json:"function"`
		}
		if err := strictjson.Unmarshal(raw, &t, strictjson.Options{RejectUnknown: true}); err != nil {
			return fmt.Sprintf("tools/%d: %v", i, err)
		}
		name := t.Function.Name
		switch {
		case t.Type != "function":
			return fmt.Sprintf("tools/%d: type %q", i, t.Type)
		case !namePattern.MatchString(name) || seen[name]:
			return fmt.Sprintf("tools/%d: the name %q is bad or used twice", i, name)
		case t.Function.Parameters.Kind() != '{':
			return fmt.Sprintf("tools/%d: parameters is not an object", i)
		}
		seen[name] = true
	}
	return ""
}

// checkMessages holds the rules that strict endpoints have for a conversation.
func (s *Server) checkMessages(ms []Message) string {
	open := map[string]bool{} // calls of the last assistant message without an answer
	used := map[string]bool{}
	last := ""
	for i, m := range ms {
		at := fmt.Sprintf("messages/%d (%s): ", i, m.Role)
		if m.Role != "tool" && len(open) > 0 {
			return at + fmt.Sprintf("%d tool calls before it have no answer", len(open))
		}
		var problem string
		switch m.Role {
		case "system":
			if i != 0 || m.Text() == "" {
				problem = "must be first and hold text"
			}
		case "user":
			_, ms[i].Images, _ = chatParts(m.Content)
			if m.Text() == "" && len(ms[i].Images) == 0 {
				problem = "holds no text"
			}
		case "assistant":
			problem = s.checkAssistant(m, last, open, used)
		case "tool":
			problem = checkResult(m, open)
		default:
			problem = "unknown role"
		}
		if m.Role != "assistant" && (m.ToolCalls != nil || m.ReasoningContent != nil || m.Reasoning != nil) {
			problem = "members that only an assistant may have"
		}
		if problem != "" {
			return at + problem
		}
		last = m.Role
	}
	if last != "user" && last != "tool" {
		return fmt.Sprintf("the last message is %q, expected user or tool", last)
	}
	if len(open) > 0 {
		return fmt.Sprintf("%d tool calls have no answer", len(open))
	}
	return ""
}

func (s *Server) checkAssistant(m Message, last string, open, used map[string]bool) string {
	switch {
	case last == "assistant" || last == "system" || last == "":
		return fmt.Sprintf("follows %q", last)
	case m.Content == nil:
		return "has no content member"
	case m.Text() == "" && len(m.ToolCalls) == 0:
		return "has neither text nor calls"
	case string(m.Content) == `""`:
		return "has an empty text"
	case s.o.NeedReasoning && len(m.ToolCalls) > 0 && m.ReasoningContent == nil:
		return "has tool calls and no reasoning_content"
	case s.o.RefuseReasoning && (m.ReasoningContent != nil || m.Reasoning != nil):
		return "reasoning is not supported"
	}
	for i, c := range m.ToolCalls {
		at := fmt.Sprintf("tool_calls/%d: ", i)
		var args map[string]jsontext.Value
		switch err := strictjson.Unmarshal([]byte(c.Function.Arguments), &args, strictjson.Options{}); {
		case c.ID == "" || used[c.ID]:
			return at + fmt.Sprintf("the id %q is empty or used twice", c.ID)
		case c.Type != "function":
			return at + fmt.Sprintf("type %q", c.Type)
		case !namePattern.MatchString(c.Function.Name):
			return at + fmt.Sprintf("the name %q is bad", c.Function.Name)
		case err != nil:
			return at + "arguments: " + err.Error()
		}
		open[c.ID], used[c.ID] = true, true
	}
	return ""
}

func checkResult(m Message, open map[string]bool) string {
	if m.ToolCallID == nil || !open[*m.ToolCallID] {
		return "answers no open call"
	}
	if m.Content.Kind() != '"' {
		return "content is not text"
	}
	delete(open, *m.ToolCallID)
	return ""
}
