package modelserver

import (
	"strings"

	"github.com/abhed/abhed/internal/strictjson"
)

// API is one of the model APIs that agents speak.
type API string

// The APIs.
const (
	Anthropic API = "anthropic-messages"
	Responses API = "openai-responses"
	Chat      API = "openai-chat-completions"
	Gemini    API = "gemini-generate-content"
)

// apiOf tells the API by the path of a request.
func apiOf(path string) (API, bool) {
	switch {
	case strings.HasSuffix(path, "/messages"):
		return Anthropic, true
	case strings.HasSuffix(path, "/responses"):
		return Responses, true
	case strings.HasSuffix(path, "/chat/completions"):
		return Chat, true
	case strings.HasSuffix(path, ":generateContent"), strings.HasSuffix(path, ":streamGenerateContent"):
		return Gemini, true
	}
	return "", false
}

// query is what the server must know of a request, whatever its API.
type query struct {
	model   string
	stream  bool
	tools   []string
	results []string
	// schema is the JSON Schema that the answer must fit, nil for none.
	schema object
}

// object is a JSON object whose members' types only the reader of each knows.
type object = map[string]any

// read decodes a body. It is lenient about all that it does not need.
func (a API) read(body []byte) (query, error) {
	var b object
	// The bounds are those of the body itself: conversations may be long.
	if err := strictjson.Unmarshal(body, &b, strictjson.Options{MaxBytes: maxBody}); err != nil {
		return query{}, err
	}
	q := query{model: text(b["model"]), stream: b["stream"] == true}
	switch a {
	case Anthropic:
		q.readAnthropic(b)
	case Responses:
		q.readResponses(b)
	case Chat:
		q.readChat(b)
	case Gemini:
		q.readGemini(b)
	}
	return q, nil
}

func (q *query) readAnthropic(b object) {
	for _, tool := range objects(b["tools"]) {
		q.tools = append(q.tools, text(tool["name"]))
	}
	for _, message := range objects(b["messages"]) {
		for _, block := range objects(message["content"]) {
			if block["type"] == "tool_result" {
				q.results = append(q.results, text(block["content"]))
			}
		}
	}
	q.schema = member(b, "output_config", "format", "schema")
}

func (q *query) readResponses(b object) {
	for _, tool := range objects(b["tools"]) {
		q.tools = append(q.tools, either(text(tool["name"]), text(tool["type"])))
	}
	for _, item := range objects(b["input"]) {
		switch item["type"] {
		case "function_call_output", "custom_tool_call_output":
			q.results = append(q.results, text(item["output"]))
		}
	}
	q.schema = member(b, "text", "format", "schema")
}

func (q *query) readChat(b object) {
	for _, tool := range objects(b["tools"]) {
		q.tools = append(q.tools, text(member(tool, "function")["name"]))
	}
	for _, message := range objects(b["messages"]) {
		if message["role"] == "tool" {
			q.results = append(q.results, text(message["content"]))
		}
	}
	q.schema = member(b, "response_format", "json_schema", "schema")
	if q.schema == nil && member(b, "response_format")["type"] == "json_object" {
		q.schema = object{"type": "object"}
	}
}

func (q *query) readGemini(b object) {
	for _, tool := range objects(b["tools"]) {
		for _, declaration := range objects(tool["functionDeclarations"]) {
			q.tools = append(q.tools, text(declaration["name"]))
		}
	}
	for _, content := range objects(b["contents"]) {
		for _, part := range objects(content["parts"]) {
			if response := member(part, "functionResponse"); response != nil {
				q.results = append(q.results, encode(response["response"]))
			}
		}
	}
	q.schema = member(b, "generationConfig", "responseJsonSchema")
	if q.schema == nil {
		q.schema = member(b, "generationConfig", "responseSchema")
	}
}

// objects returns the objects of a list; nothing if v is no list.
func objects(v any) []object {
	list, _ := v.([]any)
	var out []object
	for _, e := range list {
		if o, is := e.(object); is {
			out = append(out, o)
		}
	}
	return out
}

// member returns the object at the end of a path of names, nil if there is none.
func member(o object, path ...string) object {
	for _, name := range path {
		o, _ = o[name].(object)
	}
	return o
}

// text returns the text of a content, which is a string or a list of parts that
// have a text or a content each.
func text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case []any:
		var b strings.Builder
		for _, part := range v {
			if o, is := part.(object); is {
				part = either(text(o["text"]), text(o["content"]))
			}
			b.WriteString(text(part))
		}
		return b.String()
	}
	return ""
}

func either(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// aside is the answer to a request outside the conversation.
func aside(schema object) string {
	if schema == nil {
		return "a title"
	}
	return encode(smallest(schema, 8))
}

// smallest returns a small value that fits a JSON Schema, as far as the schemas
// that agents send go; levels bounds how deep it looks.
func smallest(schema object, levels int) any {
	if levels == 0 {
		return "ok"
	}
	if all, is := schema["enum"].([]any); is && len(all) > 0 {
		return all[0]
	}
	if value, is := schema["const"]; is {
		return value
	}
	for _, name := range []string{"anyOf", "oneOf", "allOf"} {
		if some := objects(schema[name]); len(some) > 0 {
			return smallest(some[0], levels-1)
		}
	}
	kind := schema["type"]
	if kinds, is := kind.([]any); is && len(kinds) > 0 {
		kind = kinds[0]
	}
	properties := member(schema, "properties")
	switch strings.ToLower(text(kind)) {
	case "object":
	case "array":
		return []any{}
	case "number", "integer":
		return 1
	case "boolean":
		return false
	default:
		if properties == nil {
			return "ok"
		}
	}
	out := object{}
	for name := range properties {
		out[name] = smallest(member(properties, name), levels-1)
	}
	return out
}
