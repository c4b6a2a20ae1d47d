package modeltest

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/abhed/abhed/internal/strictjson"
)

// Messages is Anthropic's Messages API.
const Messages API = "anthropic"

// messagesAPI is the Messages API. Finish reasons are translated where chat
// completions has another word. Reasoning is sent as a signed thinking block. NoDone
// leaves out message_stop; faults that name choices or members of chat completions do
// nothing here.
func messagesAPI() dialect {
	return dialect{
		serves:     func(path string) bool { return strings.HasSuffix(path, "/messages") },
		key:        func(h http.Header) string { return h.Get("x-api-key") },
		decode:     (*Server).decodeMessages,
		frames:     messageFrames,
		whole:      wholeMessage,
		errorEvent: "error",
		refusal: func(kind, message string) object {
			return object{"type": "error", "error": object{"type": kind, "message": message}}
		},
	}
}

// messageBlocks returns the content as whole blocks.
func (p *plan) messageBlocks() []object {
	var out []object
	if r := p.turn.Reasoning; r != "" {
		out = append(out, object{"type": "thinking", "thinking": r, "signature": seal(p.sealKey, r)})
	}
	if s := p.turn.Text; s != "" {
		out = append(out, object{"type": "text", "text": s})
	}
	for _, c := range p.turn.Calls {
		var input any = p.args(c)
		if strictjson.Check([]byte(p.args(c)), strictjson.Options{}) == nil {
			input = jsontext.Value(p.args(c))
		}
		b := object{"type": "tool_use", "name": c.Name, "input": input}
		if c.ID != "" {
			b["id"] = c.ID
		}
		out = append(out, b)
	}
	return out
}

func (p *plan) stopReason() any {
	words := map[string]string{"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens", "content_filter": "refusal"}
	reason := p.finish()
	if p.noFinish {
		return nil
	}
	if w := words[reason]; w != "" {
		return w
	}
	return reason
}

// messageUsage counts what was cached apart, as the API does.
func (p *plan) messageUsage(output bool) object {
	if p.noUsage {
		return nil
	}
	u := p.counts()
	o := object{"input_tokens": u.Prompt - u.Cached, "cache_read_input_tokens": u.Cached, "cache_creation_input_tokens": 0, "output_tokens": 1}
	if output {
		o["output_tokens"] = u.Completion
	}
	return o
}

func (p *plan) messageHead(content []object, stop any, usage object) object {
	m := object{"id": "msg_1", "type": "message", "role": "assistant", "model": "scripted-1", "content": content, "stop_reason": stop, "stop_sequence": nil}
	if content == nil {
		m["content"] = []any{}
	}
	if usage != nil {
		m["usage"] = usage
	}
	return m
}

func wholeMessage(p *plan) object {
	return p.messageHead(p.messageBlocks(), p.stopReason(), p.messageUsage(true))
}

// messageFrames returns the whole reply as events.
func messageFrames(p *plan) []frame {
	var out []frame
	add := func(kind string, o object) {
		o["type"] = kind
		if p.nulls {
			for _, name := range []string{"error", "delta", "usage", "message", "content_block", "index"} {
				if _, ok := o[name]; !ok {
					o[name] = nil
				}
			}
		}
		out = append(out, frame{name: kind, data: encode(o)})
	}
	add("message_start", object{"message": p.messageHead(nil, nil, p.messageUsage(p.earlyUsage))})
	add("ping", object{})
	for i, b := range p.messageBlocks() {
		p.blockFrames(b, func(kind string, o object) {
			switch {
			case p.zeroIndex:
				o["index"] = 0
			case !p.missingIndex:
				o["index"] = i
			}
			add(kind, o)
		})
	}
	if p.errorFrame != "" {
		return out
	}
	final := object{"delta": object{"stop_reason": p.stopReason(), "stop_sequence": nil}}
	if u := p.messageUsage(true); u != nil && !p.earlyUsage {
		final["usage"] = object{"output_tokens": u["output_tokens"]}
	}
	add("message_delta", final)
	if p.repeatFinal {
		add("message_delta", final)
	}
	if !p.noDone {
		add("message_stop", object{})
	}
	return out
}

// blockFrames adds the events of one block.
func (p *plan) blockFrames(b object, add func(kind string, o object)) {
	begun := object{"type": b["type"]}
	var deltas []object
	switch b["type"] {
	case "thinking":
		begun["thinking"], begun["signature"] = "", ""
		for _, s := range split(p.turn.Reasoning, 4) {
			deltas = append(deltas, object{"type": "thinking_delta", "thinking": s})
		}
		deltas = append(deltas, object{"type": "signature_delta", "signature": b["signature"]})
	case "text":
		begun["text"] = ""
		for _, s := range split(p.turn.Text, 3) {
			deltas = append(deltas, object{"type": "text_delta", "text": s})
		}
	default:
		begun["name"], begun["input"] = b["name"], object{}
		if id, ok := b["id"]; ok {
			begun["id"] = id
		}
		if p.wholeCalls || p.argsObject {
			begun["input"] = b["input"]
			break
		}
		args, _ := b["input"].(string) // arguments that are no JSON
		if v, ok := b["input"].(jsontext.Value); ok {
			args = string(v)
		}
		deltas = append(deltas, object{"type": "input_json_delta", "partial_json": ""})
		for _, s := range split(args, 5) {
			deltas = append(deltas, object{"type": "input_json_delta", "partial_json": s})
		}
	}
	add("content_block_start", object{"content_block": begun})
	for _, d := range deltas {
		add("content_block_delta", object{"delta": d})
	}
	add("content_block_stop", object{})
}

// messageBlock is a content block of a request, of any type.
type messageBlock struct {
	Type      string          `json:"type"`
	Text      *string         `json:"text"`
	Source    *imageSource    `json:"source"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     jsontext.Value  `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   jsontext.Value  `json:"content"`
	IsError   bool            `json:"is_error"`
	Thinking  *string         `json:"thinking"`
	Signature string          `json:"signature"`
	Data      string          `json:"data"`
	Cache     *jsontext.Value `json:"cache_control"`
}

type imageSource struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      string `json:"data"`
}

type apiMessage struct {
	Role    string         `json:"role"`
	Content []messageBlock `json:"content"`
}

// apiRequest is a request of the Messages API.
type apiRequest struct {
	Messages  []apiMessage
	System    []messageBlock
	MaxTokens int64
	Thinking  struct {
		Type   string `json:"type"`
		Budget int64  `json:"budget_tokens"`
	}
}

// decodeMessages reads a request of the Messages API.
func (s *Server) decodeMessages(body []byte) (Request, string) {
	r := Request{Body: body}
	if err := strictjson.Unmarshal(body, &r.Params, strictjson.Options{MaxBytes: 256 << 20}); err != nil {
		return r, err.Error()
	}
	var q apiRequest
	for _, m := range []struct {
		name     string
		dst      any
		optional bool
		taken    bool
	}{
		{"model", &r.Model, false, true}, {"messages", &q.Messages, false, true}, {"system", &q.System, true, true}, {"tools", &r.Tools, true, true},
		{"max_tokens", &q.MaxTokens, false, false}, {"thinking", &q.Thinking, true, false},
	} {
		raw, ok := r.Params[m.name]
		if m.taken {
			delete(r.Params, m.name)
		}
		if !ok && m.optional {
			continue
		}
		if !ok {
			return r, m.name + ": Field required"
		}
		if err := strictjson.Unmarshal(raw, m.dst, strictjson.Options{RejectUnknown: true, MaxBytes: 256 << 20}); err != nil {
			return r, m.name + ": " + err.Error()
		}
	}
	known := []string{"max_tokens", "thinking", "stream", "temperature", "top_p", "top_k", "stop_sequences", "output_config", "tool_choice", "metadata"}
	for name := range r.Params {
		if !slices.Contains(known, name) {
			return r, name + ": Extra inputs are not permitted"
		}
	}
	if problem := r.checkMembers(&q); problem != "" {
		return r, problem
	}
	return s.readMessages(r, &q)
}

func (r *Request) checkMembers(q *apiRequest) string {
	marks := strings.Count(string(r.Body), `"cache_control":{"type":"ephemeral"}`)
	thinks := q.Thinking.Type == "enabled"
	switch {
	case string(r.Params["stream"]) != "true":
		return "stream is not true"
	case r.Model == "" || q.MaxTokens < 1:
		return fmt.Sprintf("model %q, max_tokens %d", r.Model, q.MaxTokens)
	case marks > 4:
		return fmt.Sprintf("A maximum of 4 blocks with cache_control may be provided. Found %d.", marks)
	case thinks && (q.Thinking.Budget < 1 || q.Thinking.Budget >= q.MaxTokens):
		return "`max_tokens` must be greater than `thinking.budget_tokens`"
	case thinks && (r.Params["temperature"] != nil || r.Params["top_k"] != nil):
		return "`temperature` and `top_k` may not be set when thinking is enabled"
	case r.Tools != nil && len(r.Tools) == 0:
		return "tools is an empty list"
	}
	for i, raw := range r.Tools {
		var t struct {
			Name        string          `json:"name"`
			Description *string         `json:"description"`
			Schema      jsontext.Value  `json:"input_schema"`
			Cache       *jsontext.Value `json:"cache_control"`
		}
		if err := strictjson.Unmarshal(raw, &t, strictjson.Options{RejectUnknown: true}); err != nil {
			return fmt.Sprintf("tools.%d: %v", i, err)
		}
		if !namePattern.MatchString(t.Name) || t.Schema.Kind() != '{' {
			return fmt.Sprintf("tools.%d: the name %q is bad, or input_schema is no object", i, t.Name)
		}
	}
	for i, b := range q.System {
		if b.Type != "text" || blank(b.Text) {
			return fmt.Sprintf("system.%d: text content blocks must be non-empty", i)
		}
		r.Messages = append(r.Messages, Message{Role: "system", Content: encode(*b.Text)})
	}
	return ""
}

func blank(s *string) bool { return s == nil || strings.TrimSpace(*s) == "" }
