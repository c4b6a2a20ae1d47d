package openai

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/strictjson"
)

const (
	fieldReasoningContent = "reasoning_content"
	fieldReasoning        = "reasoning"
	maxNameLength         = 64
)

// quote returns s as a JSON string. It can't fail: bytes that aren't UTF-8 become
// U+FFFD, because a request with broken UTF-8 is refused for ever after.
func quote(s string) []byte { return appendQuote(nil, s) }

func appendQuote(dst []byte, s string) []byte {
	dst, _ = jsontext.AppendQuote(dst, s) // the error says only that bytes were replaced
	return dst
}

// encoder keeps the encoded form of the messages, tools and system text that it
// has seen, so that a request costs the encoding of what is new.
//
// Slices that it has handed out are never written to again: the HTTP transport
// may still be reading a body after the call that sent it has returned.
type encoder struct {
	// field is the member for an assistant's reasoning, "" to send none.
	field string

	seen []*model.Message
	ends []int  // buf[:ends[i]] holds the messages up to and including i
	buf  []byte // each message with a comma before it

	ids map[string]bool // the call ids in seen

	system    string
	systemEnc []byte

	tools    []model.ToolSpec
	toolsEnc []byte

	// encoded counts the messages encoded so far, for the test of linear growth.
	encoded int
}

// setField changes the member for reasoning; what was encoded with another is
// forgotten.
func (e *encoder) setField(field string) {
	if e.field != field {
		e.field = field
		e.forget(0)
	}
}

// messages returns the parts of the messages array for req, without brackets.
func (e *encoder) messages(req *model.Request) (system, messages []byte) {
	if req.System != e.system {
		e.system, e.systemEnc = req.System, nil
		if req.System != "" {
			e.systemEnc = append(appendQuote([]byte(`{"role":"system","content":`), req.System), '}')
		}
	}
	same := 0
	for same < len(e.seen) && same < len(req.Messages) && e.seen[same] == req.Messages[same] {
		same++
	}
	if same < len(e.seen) {
		e.forget(same)
	}
	for _, m := range req.Messages[same:] {
		e.buf = e.appendMessage(e.buf, m)
		e.seen = append(e.seen, m)
		e.ends = append(e.ends, len(e.buf))
		e.encoded++
	}
	messages = e.buf
	if len(e.systemEnc) == 0 {
		messages = bytes.TrimPrefix(messages, []byte(","))
	}
	return e.systemEnc, messages[:len(messages):len(messages)]
}

// forget drops all but the first n messages.
func (e *encoder) forget(n int) {
	end := 0
	if n > 0 {
		end = e.ends[n-1]
	}
	e.seen, e.ends = slices.Clone(e.seen[:n]), e.ends[:n]
	e.buf = e.buf[:end:end] // the next append copies
	e.ids = nil
	for _, m := range e.seen {
		e.remember(m)
	}
}

func (e *encoder) remember(m *model.Message) {
	for _, c := range m.ToolCalls() {
		if e.ids == nil {
			e.ids = map[string]bool{}
		}
		e.ids[c.ID] = true
	}
}

// appendMessage adds m as none, one or (a message with several tool results)
// more messages of the API, each with a comma before it.
func (e *encoder) appendMessage(dst []byte, m *model.Message) []byte {
	e.remember(m)
	switch m.Role {
	case "assistant":
		return e.appendAssistant(dst, m)
	case "tool":
		for _, p := range m.Parts {
			if r := p.ToolResult; r != nil {
				dst = appendQuote(append(dst, `,{"role":"tool","tool_call_id":`...), r.CallID)
				dst = append(appendQuote(append(dst, `,"content":`...), r.Content), '}')
			}
		}
		return dst
	default:
		text := joinText(m, "\n\n")
		if text == "" {
			return dst // an empty text is refused by some endpoints
		}
		return append(appendQuote(append(dst, `,{"role":"user","content":`...), text), '}')
	}
}

func (e *encoder) appendAssistant(dst []byte, m *model.Message) []byte {
	text, calls := joinText(m, ""), m.ToolCalls()
	if text == "" && len(calls) == 0 {
		return dst // a turn of mere reasoning, or an empty one, can't be sent back
	}
	dst = append(dst, `,{"role":"assistant","content":`...)
	if text == "" {
		dst = append(dst, "null"...)
	} else {
		dst = appendQuote(dst, text)
	}
	if len(calls) > 0 {
		if reasoning := joinReasoning(m); reasoning != "" && e.field != "" {
			dst = append(appendQuote(append(dst, ','), e.field), ':')
			dst = appendQuote(dst, reasoning)
		}
		dst = append(dst, `,"tool_calls":[`...)
		for i, c := range calls {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendQuote(append(dst, `{"id":`...), c.ID)
			dst = appendQuote(append(dst, `,"type":"function","function":{"name":`...), safeName(c.Name))
			dst = append(appendQuote(append(dst, `,"arguments":`...), safeArgs(c.Args)), "}}"...)
		}
		dst = append(dst, ']')
	}
	return append(dst, '}')
}

func joinText(m *model.Message, sep string) string {
	var out []byte
	for _, p := range m.Parts {
		if p.Text != nil && *p.Text != "" {
			if len(out) > 0 {
				out = append(out, sep...)
			}
			out = append(out, *p.Text...)
		}
	}
	return string(out)
}

func joinReasoning(m *model.Message) string {
	var out []byte
	for _, p := range m.Parts {
		if p.Reasoning != nil {
			out = append(out, *p.Reasoning...)
		}
	}
	return string(out)
}

// safeArgs returns the arguments as a JSON object's text. Servers parse the
// arguments in the history, and one call with broken ones, kept as it was, would
// make every later request fail; so they are shown to the model wrapped.
func safeArgs(args string) string {
	trimmed := bytes.TrimLeft([]byte(args), " \t\r\n")
	if len(trimmed) == 0 {
		return "{}"
	}
	if trimmed[0] == '{' && strictjson.Check([]byte(args), strictjson.Options{}) == nil {
		return args
	}
	return string(append(appendQuote([]byte(`{"invalid_arguments":`), args), '}'))
}

// safeName returns a name in the form that endpoints accept in a history, where a
// model may have called something that was never offered.
func safeName(name string) string {
	out := []byte(name)
	for i, c := range out {
		alnum := '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
		if !alnum && c != '_' && c != '-' {
			out[i] = '_'
		}
	}
	if len(out) == 0 {
		return "unnamed"
	}
	return string(out[:min(len(out), maxNameLength)])
}

// toolList returns the tools array, or nothing if there are no tools.
func (e *encoder) toolList(tools []model.ToolSpec) ([]byte, error) {
	same := slices.EqualFunc(tools, e.tools, func(a, b model.ToolSpec) bool {
		return a.Name == b.Name && a.Description == b.Description && bytes.Equal(a.Schema, b.Schema)
	})
	if same {
		return e.toolsEnc, nil
	}
	var out []byte
	for i, t := range tools {
		schema := t.Schema
		if len(schema) == 0 {
			schema = []byte(`{"type":"object","properties":{}}`)
		}
		if err := strictjson.Check(schema, strictjson.Options{}); err != nil {
			return nil, fmt.Errorf("the schema of tool %q is not valid JSON: %w", t.Name, err)
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = appendQuote(append(out, `{"type":"function","function":{"name":`...), t.Name)
		if t.Description != "" {
			out = appendQuote(append(out, `,"description":`...), t.Description)
		}
		out = append(append(append(out, `,"parameters":`...), schema...), "}}"...)
	}
	if len(tools) > 0 {
		out = append(append([]byte(`"tools":[`), out...), "],"...)
	}
	e.tools, e.toolsEnc = slices.Clone(tools), out
	return out, nil
}
