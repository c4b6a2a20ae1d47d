package modeltest

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/abhed/abhed/internal/strictjson"
)

// responses is OpenAI's responses API. Of the faults, those that name indices,
// choices, [DONE] or members of chat completions do nothing here.
func responses() dialect {
	return dialect{
		serves:     func(path string) bool { return strings.HasSuffix(path, "/responses") },
		key:        bearer,
		decode:     (*Server).decodeResponses,
		frames:     responseFrames,
		whole:      func(p *plan) object { return p.response(p.responseStatus(), p.items("completed")) },
		errorEvent: "error",
		refusal: func(kind, message string) object {
			e := object{"message": message, "type": kind, "param": nil, "code": nil}
			if strings.Contains(message, badSeal) {
				e["code"] = "invalid_encrypted_content"
			}
			return object{"error": e}
		},
	}
}

// items returns the reply's output with the given status.
func (p *plan) items(status string) []object {
	var out []object
	if r := p.turn.Reasoning; r != "" {
		out = append(out, object{"type": "reasoning", "id": "rs_1", "summary": []any{object{"type": "summary_text", "text": r}}, "encrypted_content": seal(p.sealKey, "rs_1"+r)})
	}
	if s := p.turn.Text; s != "" {
		out = append(out, object{"type": "message", "id": "msg_1", "role": "assistant", "status": status,
			"content": []any{object{"type": "output_text", "text": s, "annotations": []any{}}}})
	}
	for i, c := range p.turn.Calls {
		item := object{"type": "function_call", "id": fmt.Sprintf("fc_%d", i), "status": status, "name": c.Name, "arguments": p.args(c)}
		if c.ID != "" {
			item["call_id"] = c.ID
		}
		out = append(out, item)
	}
	return out
}

// responseStatus returns the status of the whole response.
func (p *plan) responseStatus() string {
	switch p.turn.Finish {
	case "length", "content_filter":
		return "incomplete"
	case "error":
		return "failed"
	}
	if p.truncateArgs {
		return "incomplete"
	}
	return "completed"
}

// response returns the response object.
func (p *plan) response(status string, output []object) object {
	r := object{"id": "resp_1", "object": "response", "created_at": 1, "model": "scripted-1", "status": status,
		"output": output, "error": nil, "incomplete_details": nil, "usage": nil}
	if output == nil {
		r["output"] = []any{}
	}
	switch status {
	case "in_progress":
		return r
	case "incomplete":
		reason := "max_output_tokens"
		if p.turn.Finish == "content_filter" {
			reason = "content_filter"
		}
		r["incomplete_details"] = object{"reason": reason}
	case "failed":
		r["error"] = object{"code": "server_error", "message": "the model gave up"}
	}
	if !p.noUsage {
		u := p.counts()
		r["usage"] = object{"input_tokens": u.Prompt, "input_tokens_details": object{"cached_tokens": u.Cached},
			"output_tokens": u.Completion, "output_tokens_details": object{"reasoning_tokens": u.Reasoning}, "total_tokens": u.Prompt + u.Completion}
	}
	return r
}

// responseFrames returns the whole reply as events.
func responseFrames(p *plan) []frame {
	var out []frame
	add := func(kind string, o object) {
		o["type"], o["sequence_number"] = kind, len(out)
		out = append(out, frame{name: kind, data: encode(o)})
	}
	add("response.created", object{"response": p.response("in_progress", nil)})
	add("response.in_progress", object{"response": p.response("in_progress", nil)})
	status := "completed"
	if p.responseStatus() == "incomplete" {
		status = "incomplete"
	}
	for i, item := range p.items(status) {
		p.itemFrames(item, func(kind string, o object) {
			if _, is := o["item"]; !is {
				o["item_id"] = item["id"]
			}
			o["output_index"] = i
			if p.zeroIndex {
				o["output_index"] = 0
			}
			add(kind, o)
		})
	}
	if p.noFinish || p.errorFrame != "" {
		return out
	}
	final := p.responseStatus()
	add("response."+final, object{"response": p.response(final, p.items(status))})
	if p.repeatFinal {
		add("response."+final, object{"response": p.response(final, p.items(status))})
	}
	return out
}

// itemFrames adds the events of one item.
func (p *plan) itemFrames(item object, add func(kind string, o object)) {
	begun := object{"type": item["type"], "id": item["id"]}
	switch item["type"] {
	case "reasoning":
		begun["summary"] = []any{}
		add("response.output_item.added", object{"item": begun})
		add("response.reasoning_summary_part.added", object{"summary_index": 0, "part": object{"type": "summary_text", "text": ""}})
		for _, s := range split(p.turn.Reasoning, 4) {
			add("response.reasoning_summary_text.delta", object{"summary_index": 0, "delta": s})
		}
		add("response.reasoning_summary_text.done", object{"summary_index": 0, "text": p.turn.Reasoning})
	case "message":
		begun["role"], begun["status"], begun["content"] = "assistant", "in_progress", []any{}
		add("response.output_item.added", object{"item": begun})
		add("response.content_part.added", object{"content_index": 0, "part": object{"type": "output_text", "text": ""}})
		for _, s := range split(p.turn.Text, 3) {
			add("response.output_text.delta", object{"content_index": 0, "delta": s})
		}
		add("response.output_text.done", object{"content_index": 0, "text": p.turn.Text})
	case "function_call":
		begun["status"], begun["call_id"], begun["name"], begun["arguments"] = "in_progress", item["call_id"], item["name"], ""
		args, _ := item["arguments"].(string)
		if p.wholeCalls {
			begun["arguments"] = args
			add("response.output_item.added", object{"item": begun})
			break
		}
		add("response.output_item.added", object{"item": begun})
		for _, s := range split(args, 5) {
			add("response.function_call_arguments.delta", object{"delta": s})
		}
		if !p.truncateArgs {
			add("response.function_call_arguments.done", object{"arguments": args})
		}
	}
	if !p.truncateArgs || item["type"] != "function_call" {
		add("response.output_item.done", object{"item": item})
	}
}

// responseItem is an element of a request's input.
type responseItem struct {
	Type             string         `json:"type"`
	Role             string         `json:"role"`
	ID               string         `json:"id"`
	Content          []contentPart  `json:"content"`
	Summary          *[]contentPart `json:"summary"`
	EncryptedContent string         `json:"encrypted_content"`
	CallID           string         `json:"call_id"`
	Name             string         `json:"name"`
	Arguments        string         `json:"arguments"`
	Output           jsontext.Value `json:"output"`
}

type contentPart struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	ImageURL string `json:"image_url"`
}

// decodeResponses reads a request of the responses API.
func (s *Server) decodeResponses(body []byte) (Request, string) {
	r := Request{Body: body}
	if err := strictjson.Unmarshal(body, &r.Params, strictjson.Options{MaxBytes: 256 << 20}); err != nil {
		return r, err.Error()
	}
	var items []responseItem
	var instructions string
	for _, m := range []struct {
		name     string
		dst      any
		optional bool
	}{{"model", &r.Model, false}, {"input", &items, false}, {"instructions", &instructions, true}, {"tools", &r.Tools, true}} {
		raw, ok := r.Params[m.name]
		delete(r.Params, m.name)
		if !ok && m.optional {
			continue
		}
		if !ok {
			return r, "no member " + m.name
		}
		if err := strictjson.Unmarshal(raw, m.dst, strictjson.Options{RejectUnknown: true, MaxBytes: 256 << 20}); err != nil {
			return r, m.name + ": " + err.Error()
		}
	}
	switch {
	case string(r.Params["stream"]) != "true":
		return r, "stream is not true"
	case string(r.Params["store"]) != "false":
		return r, "store is not false"
	case r.Model == "":
		return r, "model is empty"
	}
	if problem := checkResponseTools(r.Tools); problem != "" {
		return r, problem
	}
	if instructions != "" {
		r.Messages = append(r.Messages, Message{Role: "system", Content: encode(instructions)})
	}
	return s.responseMessages(r, items)
}

func checkResponseTools(tools []jsontext.Value) string {
	for i, raw := range tools {
		var t struct {
			Type        string         `json:"type"`
			Name        string         `json:"name"`
			Description *string        `json:"description"`
			Parameters  jsontext.Value `json:"parameters"`
			Strict      *bool          `json:"strict"`
		}
		if err := strictjson.Unmarshal(raw, &t, strictjson.Options{RejectUnknown: true}); err != nil {
			return fmt.Sprintf("tools/%d: %v", i, err)
		}
		switch {
		case t.Type != "function" || !namePattern.MatchString(t.Name):
			return fmt.Sprintf("tools/%d: type %q, name %q", i, t.Type, t.Name)
		case t.Parameters.Kind() != '{':
			return fmt.Sprintf("tools/%d: parameters is not an object", i)
		case t.Strict == nil || *t.Strict:
			return fmt.Sprintf("tools/%d: strict must be false, or the schema is changed", i)
		}
	}
	return ""
}

// responseMessages puts the items into the common form, in which what the model
// said in one go is one message.
func (s *Server) responseMessages(r Request, items []responseItem) (Request, string) {
	open, used := map[string]bool{}, map[string]bool{}
	loose := false // a reasoning item that waits for the item that it belongs to
	for i, it := range items {
		at := fmt.Sprintf("input/%d (%s): ", i, it.Type)
		own := it.Type == "reasoning" || it.Type == "function_call" || it.Type == "message" && it.Role == "assistant"
		if loose && !own {
			return r, at + "the reasoning item before it was provided without its required following item"
		}
		if own && (len(r.Messages) == 0 || r.Messages[len(r.Messages)-1].Role != "assistant") {
			r.Messages = append(r.Messages, Message{Role: "assistant"})
		}
		var problem string
		switch it.Type {
		case "message":
			problem = r.addMessage(it)
		case "reasoning":
			problem = s.addReasoning(&r, it)
		case "function_call":
			problem = s.addCall(&r, it, open, used)
		case "function_call_output":
			if !open[it.CallID] {
				problem = "answers no open call"
			}
			delete(open, it.CallID)
			m := Message{Role: "tool", ToolCallID: &it.CallID, Content: it.Output}
			var parts []contentPart
			if strictjson.Unmarshal(it.Output, &parts, strictjson.Options{RejectUnknown: true}) == nil {
				m = fromParts("tool", parts)
				m.ToolCallID = &it.CallID
			} else if it.Output.Kind() != '"' {
				problem = "output is neither text nor a list of parts"
			}
			r.Messages = append(r.Messages, m)
		default:
			problem = "unknown type"
		}
		if problem != "" && !strings.HasPrefix(problem, badSeal) {
			problem = at + problem
		}
		if problem != "" {
			return r, problem
		}
		loose = it.Type == "reasoning"
	}
	if loose {
		return r, "the last reasoning item has no following item"
	}
	if len(open) > 0 {
		return r, fmt.Sprintf("%d calls have no answer", len(open))
	}
	if n := len(r.Messages); n == 0 || r.Messages[n-1].Role == "assistant" || r.Messages[n-1].Role == "system" {
		return r, "the last item is not from the user or a tool"
	}
	return r, ""
}

func fromParts(role string, parts []contentPart) Message {
	m := Message{Role: role}
	text := ""
	for _, p := range parts {
		text += p.Text
		if p.ImageURL != "" {
			m.Images = append(m.Images, p.ImageURL)
		}
	}
	m.Content = encode(text)
	return m
}

func (r *Request) addMessage(it responseItem) string {
	if len(it.Content) == 0 {
		return "has no content"
	}
	for _, p := range it.Content {
		switch {
		case it.Role == "assistant" && p.Type == "output_text" && p.Text != "":
		case it.Role == "user" && p.Type == "input_text" && p.Text != "":
		case it.Role == "user" && p.Type == "input_image" && strings.HasPrefix(p.ImageURL, "data:image/"):
		default:
			return fmt.Sprintf("a part of type %q in a message of role %q, or it is empty", p.Type, it.Role)
		}
	}
	if it.Role != "assistant" {
		r.Messages = append(r.Messages, fromParts(it.Role, it.Content))
		return ""
	}
	last := &r.Messages[len(r.Messages)-1]
	last.Content = encode(last.Text() + fromParts("", it.Content).Text())
	return ""
}

func (s *Server) addReasoning(r *Request, it responseItem) string {
	if s.o.RefuseReasoning {
		return "reasoning is not supported"
	}
	if it.Summary == nil || it.ID == "" {
		return "a reasoning item without id or summary"
	}
	text := fromParts("", *it.Summary).Text()
	if it.EncryptedContent != seal(s.o.SealKey, it.ID+text) {
		return badSeal + "the encrypted content of item " + it.ID + " could not be verified"
	}
	r.Messages[len(r.Messages)-1].ReasoningContent = &text
	return ""
}

func (s *Server) addCall(r *Request, it responseItem, open, used map[string]bool) string {
	var args map[string]jsontext.Value
	last := &r.Messages[len(r.Messages)-1]
	switch err := strictjson.Unmarshal([]byte(it.Arguments), &args, strictjson.Options{}); {
	case it.CallID == "" || used[it.CallID]:
		return fmt.Sprintf("the call id %q is empty or used twice", it.CallID)
	case !namePattern.MatchString(it.Name):
		return fmt.Sprintf("the name %q is bad", it.Name)
	case err != nil:
		return "arguments: " + err.Error()
	case s.o.NeedReasoning && last.ReasoningContent == nil:
		return "a call without the reasoning item that it came with"
	}
	open[it.CallID], used[it.CallID] = true, true
	c := ToolCall{ID: it.CallID, Type: "function"}
	c.Function.Name, c.Function.Arguments = it.Name, it.Arguments
	last.ToolCalls = append(last.ToolCalls, c)
	return ""
}
