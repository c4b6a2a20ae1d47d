package mcp

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/abhed/abhed/internal/strictjson"
)

// rawKey is the member of _meta in which screen hands over a text that must reach
// us as the server wrote it: the SDK's own decoding loses the order of members and
// the form of numbers, and one wrong type in a list fails the whole list.
const rawKey = "abhed/raw"

// envelope is one JSON-RPC message.
type envelope struct {
	Version jsontext.Value `json:"jsonrpc,omitzero"`
	ID      jsontext.Value `json:"id,omitzero"`
	Method  jsontext.Value `json:"method,omitzero"`
	Params  jsontext.Value `json:"params,omitzero"`
	Result  jsontext.Value `json:"result,omitzero"`
	Error   jsontext.Value `json:"error,omitzero"`
}

// hear looks at one message of the server and returns what the SDK gets to see of
// it, nil for nothing. That the list of tools changed is noted here, since the SDK
// may tell of it only after it has handed out the answer that came behind it.
func (s *server) hear(line []byte) []byte {
	out, problem, changed := screen(line)
	if problem != "" {
		s.remark(problem)
	}
	if changed {
		s.outdated()
	}
	return out
}

// screen returns the message to pass on, nil if there is none, what was wrong with
// it, or "", and whether it says that the list of tools changed. Tools, results of
// tools and questions come out wrapped: see rawKey.
func screen(line []byte) (out []byte, problem string, changed bool) {
	line = bytes.TrimSpace(line)
	if len(line) == 0 {
		return nil, "", false
	}
	if line[0] != '{' {
		return nil, fmt.Sprintf("a line of its output is no message and was passed over: %s", quoted(visible(string(line[:min(len(line), 200)])))), false
	}
	if !utf8.Valid(line) {
		line, problem = bytes.ToValidUTF8(line, []byte("\uFFFD")), "a message held invalid UTF-8; the bytes were replaced"
	}
	if whole, n := withoutHalves(line); n > 0 {
		line, problem = whole, fmt.Sprintf("a message held %d half characters; they were replaced", n)
	}
	var e envelope
	if err := strictjson.Unmarshal(line, &e, strictjson.Options{MaxBytes: maxMessage}); err != nil {
		out, problem = refusal(line, err)
		return out, problem, false
	}
	switch {
	case string(e.Method) == `"notifications/tools/list_changed"`:
		out, problem = other(line, problem)
		return out, problem, true
	case string(e.Method) == `"elicitation/create"`:
		e.Params = wrap(map[string]jsontext.Value{"mode": jsontext.Value(`"form"`), "message": jsontext.Value(`""`)}, e.Params)
	case e.Method == nil && e.Result.Kind() == '{':
		if wrapped := wrapResult(e.Result); wrapped != nil {
			e.Result = wrapped
			break
		}
		out, problem = other(line, problem)
		return out, problem, false
	default:
		out, problem = other(line, problem)
		return out, problem, false
	}
	wrapped, err := strictjson.Marshal(e)
	if err != nil {
		out, problem = refusal(line, err)
		return out, problem, false
	}
	return wrapped, problem, false
}

// withoutHalves returns the message with U+FFFD for each escape of half a character, as
// servers send that cut a text in the midst of one, and how many there were.
func withoutHalves(line []byte) (out []byte, n int) {
	done := 0
	strictjson.LoneSurrogates(line, func(at int, _ rune) {
		out = utf8.AppendRune(append(out, line[done:at]...), utf8.RuneError)
		done = at + strictjson.EscapeLen
		n++
	})
	if n == 0 {
		return line, 0
	}
	return append(out, line[done:]...), n
}

// other passes a message on that isn't wrapped, so that the SDK makes values of all
// of it, unless it is too large for that.
func other(line []byte, problem string) ([]byte, string) {
	if len(line) <= maxOther {
		return line, problem
	}
	return refusal(line, fmt.Errorf("it has %d bytes, the limit for what is neither a list nor a result of tools is %d", len(line), maxOther))
}

// wrap returns an object with the given members and raw in its _meta.
func wrap(members map[string]jsontext.Value, raw jsontext.Value) jsontext.Value {
	meta, err := strictjson.Marshal(map[string]string{rawKey: string(raw)})
	if err != nil {
		meta = []byte("{}") // not UTF-8, which has been looked at
	}
	members["_meta"] = meta
	out, err := strictjson.Marshal(members)
	if err != nil {
		return jsontext.Value("{}")
	}
	return out
}

// outcome is a result of which only the members that concern us are read.
type outcome struct {
	Type       jsontext.Value `json:"resultType,omitzero"`
	NextCursor jsontext.Value `json:"nextCursor,omitzero"`
	Tools      jsontext.Value `json:"tools,omitzero"`
	Content    jsontext.Value `json:"content,omitzero"`
	Structured jsontext.Value `json:"structuredContent,omitzero"`
	Asks       jsontext.Value `json:"inputRequests,omitzero"`
	State      jsontext.Value `json:"requestState,omitzero"`
	IsError    jsontext.Value `json:"isError,omitzero"`
}

func readOutcome(v jsontext.Value) (outcome, error) {
	var o outcome
	err := strictjson.Unmarshal(v, &o, strictjson.Options{MaxBytes: maxMessage})
	return o, err
}

// elements returns the first elements of a list that has passed the door, and
// whether there are more: many small ones take up far more room than their text.
func elements(list jsontext.Value, limit int) (items []jsontext.Value, more bool) {
	if list.Kind() != '[' {
		return nil, false
	}
	dec := jsontext.NewDecoder(bytes.NewReader(list))
	if _, err := dec.ReadToken(); err != nil {
		return nil, false
	}
	for dec.PeekKind() != ']' {
		if len(items) == limit {
			return items, true
		}
		v, err := dec.ReadValue()
		if err != nil {
			return items, true
		}
		end := int(dec.InputOffset())
		items = append(items, list[end-len(v):end])
	}
	return items, false
}

// wrapResult wraps a list of tools and the result of a tool; nil is any other.
func wrapResult(result jsontext.Value) jsontext.Value {
	o, err := readOutcome(result)
	if err != nil {
		return nil
	}
	keep := map[string]jsontext.Value{}
	for name, v := range map[string]jsontext.Value{"resultType": o.Type, "nextCursor": o.NextCursor} {
		if v.Kind() == '"' {
			keep[name] = v
		}
	}
	if o.Tools.Kind() != '[' {
		if o.Asks == nil && o.Content == nil && o.Structured == nil {
			return nil
		}
		keep["content"] = jsontext.Value("[]")
		return wrap(keep, result)
	}
	items, _ := elements(o.Tools, maxEntries+1) // one more, so that whoever counts sees that there was
	wrapped := make([]jsontext.Value, 0, len(items))
	for i, item := range items {
		name := jsontext.Value(fmt.Sprintf(`"%d"`, i))
		wrapped = append(wrapped, wrap(map[string]jsontext.Value{"name": name, "inputSchema": jsontext.Value(`{"type":"object"}`)}, item))
	}
	if keep["tools"], err = strictjson.Marshal(wrapped); err != nil {
		return nil
	}
	out, err := strictjson.Marshal(keep)
	if err != nil {
		return nil
	}
	return out
}

// refusal turns a response that isn't sound JSON into an error for its call, and
// anything else into nothing.
func refusal(line []byte, cause error) ([]byte, string) {
	problem := fmt.Sprintf("a message isn't sound JSON: %v", cause)
	if len(line) > maxMessage || strictjson.TooDeep(line, 900) >= 0 {
		return nil, problem
	}
	msg, err := jsonrpc.DecodeMessage(line)
	resp, ok := msg.(*jsonrpc.Response)
	if err != nil || !ok {
		return nil, problem
	}
	out, err := jsonrpc.EncodeMessage(&jsonrpc.Response{ID: resp.ID, Error: &jsonrpc.Error{Code: jsonrpc.CodeParseError, Message: "the server's answer isn't sound JSON: " + cut(cause.Error(), 300)}})
	if err != nil {
		return nil, problem
	}
	return out, problem
}

// unwrap returns the text that screen put into a _meta.
func unwrap(meta map[string]any) (jsontext.Value, bool) {
	s, ok := meta[rawKey].(string)
	return jsontext.Value(s), ok
}
