package modeltest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/abhed/abhed/internal/strictjson"
)

type geminiContent struct {
	Role  string       `json:"role"`
	Parts []geminiPart `json:"parts"`
}

type geminiPart struct {
	Text      *string         `json:"text"`
	Thought   bool            `json:"thought"`
	Signature *string         `json:"thoughtSignature"`
	Call      *geminiCall     `json:"functionCall"`
	Response  *geminiResponse `json:"functionResponse"`
	Image     *geminiImage    `json:"inlineData"`
}

type geminiCall struct {
	ID   *string        `json:"id"`
	Name string         `json:"name"`
	Args jsontext.Value `json:"args"`
}

type geminiResponse struct {
	ID       *string        `json:"id"`
	Name     string         `json:"name"`
	Response jsontext.Value `json:"response"`
}

type geminiImage struct {
	MimeType string `json:"mimeType"`
	Data     string `json:"data"`
}

// strictly decodes a member and refuses what it doesn't know.
func strictly(raw jsontext.Value, dst any) error {
	return strictjson.Unmarshal(raw, dst, strictjson.Options{RejectUnknown: true, MaxBytes: 256 << 20})
}

// decodeGemini reads a request of the Gemini API.
func (s *Server) decodeGemini(body []byte) (Request, string) {
	r := Request{Body: body}
	if err := strictjson.Unmarshal(body, &r.Params, strictjson.Options{MaxBytes: 256 << 20}); err != nil {
		return r, err.Error()
	}
	for name := range r.Params {
		if !slices.Contains([]string{"contents", "systemInstruction", "tools", "generationConfig"}, name) {
			return r, "unknown member " + name
		}
	}
	if raw, ok := r.Params["tools"]; ok {
		var problem string
		if r.Tools, problem = checkGeminiTools(raw); problem != "" {
			return r, problem
		}
		delete(r.Params, "tools")
	}
	if raw, ok := r.Params["generationConfig"]; ok {
		if problem := checkGeneration(raw, r.Tools != nil); problem != "" {
			return r, problem
		}
	}
	if raw, ok := r.Params["systemInstruction"]; ok {
		var c geminiContent
		if err := strictly(raw, &c); err != nil || len(c.Parts) != 1 || c.Parts[0].Text == nil || *c.Parts[0].Text == "" {
			return r, "systemInstruction is not one text"
		}
		r.Messages = append(r.Messages, Message{Role: "system", Content: encode(*c.Parts[0].Text)})
		delete(r.Params, "systemInstruction")
	}
	var contents []geminiContent
	if err := strictly(r.Params["contents"], &contents); err != nil {
		return r, "contents: " + err.Error()
	}
	delete(r.Params, "contents")
	return s.geminiMessages(r, contents)
}

// geminiMessages checks the contents and puts them into the common form, in which
// every response is a message of its own.
func (s *Server) geminiMessages(r Request, contents []geminiContent) (Request, string) {
	var open []*geminiCall // the calls of the content before
	used := map[string]bool{}
	for i, c := range contents {
		at := fmt.Sprintf("contents/%d (%s): ", i, c.Role)
		if len(c.Parts) == 0 {
			return r, at + "has no parts"
		}
		var problem string
		switch {
		case c.Role == "model" && (i == 0 || contents[i-1].Role == "model"):
			problem = "does not come after a user's content"
		case c.Role == "model":
			open, problem = s.addModelContent(&r, c, used)
		case c.Role == "user":
			problem = addUserContent(&r, c, open)
			open = nil
		default:
			problem = "unknown role"
		}
		if problem != "" {
			return r, placed(at, problem)
		}
	}
	if n := len(contents); n == 0 || contents[n-1].Role != "user" {
		return r, "the last content is not from the user"
	}
	return r, ""
}

// placed adds a place to a problem, behind the word that marks one with a seal.
func placed(at, problem string) string {
	if rest, is := strings.CutPrefix(problem, badSeal); is {
		return badSeal + at + rest
	}
	return at + problem
}

// sealed returns what is wrong with the signature of a part that holds text.
func (s *Server) sealed(p geminiPart, text string) string {
	switch {
	case p.Signature == nil:
		return ""
	case s.o.RefuseReasoning:
		return "signatures are not supported"
	case *p.Signature != seal(s.o.SealKey, text) && !(p.Call != nil && *p.Signature == UnsignedCall):
		return badSeal + "Thought signature is not valid"
	}
	return ""
}

func (s *Server) addModelContent(r *Request, c geminiContent, used map[string]bool) (open []*geminiCall, problem string) {
	m := Message{Role: "assistant"}
	text := ""
	for i, p := range c.Parts {
		at := fmt.Sprintf("parts/%d: ", i)
		switch {
		case p.Text != nil && p.Call == nil && p.Response == nil && p.Image == nil:
			if *p.Text == "" && p.Signature == nil {
				return nil, at + "an empty text"
			}
			if problem := s.sealed(p, *p.Text); problem != "" {
				return nil, placed(at, problem)
			}
			if p.Thought {
				m.ReasoningContent = p.Text
			} else {
				text += *p.Text
			}
		case p.Call != nil && p.Text == nil && p.Response == nil && p.Image == nil && !p.Thought:
			problem := s.sealed(p, p.Call.Name)
			if problem == "" && len(open) == 0 && s.o.NeedReasoning && p.Signature == nil {
				problem = badSeal + "Function call is missing a thought_signature in functionCall parts"
			}
			if problem == "" {
				problem = addGeminiCall(&m, p.Call, used)
			}
			if problem != "" {
				return nil, placed(at, problem)
			}
			open = append(open, p.Call)
		default:
			return nil, at + "is neither text nor a call"
		}
	}
	m.Content = encode(text)
	r.Messages = append(r.Messages, m)
	return open, ""
}

func addGeminiCall(m *Message, c *geminiCall, used map[string]bool) string {
	t := ToolCall{Type: "function"}
	if c.ID != nil {
		if *c.ID == "" || used[*c.ID] {
			return fmt.Sprintf("the id %q is empty or used twice", *c.ID)
		}
		used[*c.ID], t.ID = true, *c.ID
	}
	switch {
	case !namePattern.MatchString(c.Name):
		return fmt.Sprintf("the name %q is bad", c.Name)
	case c.Args.Kind() != '{':
		return "args is not an object"
	}
	t.Function.Name, t.Function.Arguments = c.Name, string(c.Args)
	m.ToolCalls = append(m.ToolCalls, t)
	return ""
}

func addUserContent(r *Request, c geminiContent, open []*geminiCall) string {
	m := Message{Role: "user"}
	text, answers := "", 0
	for i, p := range c.Parts {
		at := fmt.Sprintf("parts/%d: ", i)
		switch {
		case p.Thought || p.Signature != nil || p.Call != nil:
			return at + "only the model has such parts"
		case p.Response != nil && p.Text == nil && p.Image == nil:
			if answers == len(open) {
				return at + "answers no open call"
			}
			call := open[answers]
			answers++
			sameID := (call.ID == nil) == (p.Response.ID == nil) && (call.ID == nil || *call.ID == *p.Response.ID)
			if p.Response.Name != call.Name || !sameID {
				return at + fmt.Sprintf("answers %q, expected an answer to %q with the same id", p.Response.Name, call.Name)
			}
			var members map[string]string
			if err := strictly(p.Response.Response, &members); err != nil || len(members) != 1 {
				return at + "the response is not an object with one text"
			}
			id := call.Name
			if call.ID != nil {
				id = *call.ID
			}
			r.Messages = append(r.Messages, Message{Role: "tool", ToolCallID: &id, Content: encode(members["output"] + members["error"])})
		case p.Image != nil && p.Text == nil:
			url := "data:" + p.Image.MimeType + ";base64," + p.Image.Data
			if len(open) > 0 && answers > 0 {
				last := &r.Messages[len(r.Messages)-1]
				last.Images = append(last.Images, url)
			} else {
				m.Images = append(m.Images, url)
			}
		case p.Text != nil && *p.Text != "" && len(open) == 0:
			text += *p.Text
		default:
			return at + "an empty text, or a text among answers"
		}
	}
	if answers < len(open) {
		return fmt.Sprintf("%d calls before it have no answer", len(open)-answers)
	}
	if len(open) == 0 {
		m.Content = encode(text)
		r.Messages = append(r.Messages, m)
	}
	return ""
}
