package openai

import (
	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/model/httpapi"
)

const (
	fieldReasoningContent = "reasoning_content"
	fieldReasoning        = "reasoning"
)

// encoder keeps the encoded form of the messages, tools and system text that it
// has seen.
type encoder struct {
	// field is the member for an assistant's reasoning, "" to send none.
	field string

	history httpapi.History
	tools   httpapi.ToolList

	system    string
	systemEnc []byte
}

func newEncoder(field string) *encoder {
	e := &encoder{field: field}
	e.history.Append, e.tools.Append = e.appendMessage, appendTool
	return e
}

// setField changes the member for reasoning; what was encoded with another is
// forgotten.
func (e *encoder) setField(field string) {
	if e.field != field {
		e.field = field
		e.history.Forget()
	}
}

// messages returns the parts of the messages array for req, without brackets.
func (e *encoder) messages(req *model.Request) (system, messages []byte) {
	messages = e.history.Encode(req.Messages)
	if req.System != e.system {
		e.system, e.systemEnc = req.System, nil
		if req.System != "" {
			e.systemEnc = append(httpapi.AppendQuote([]byte(`{"role":"system","content":`), req.System), '}')
		}
	}
	return e.systemEnc, messages
}

// appendMessage adds m as none, one or (a message with several tool results)
// more messages of the API, each with a comma before it.
func (e *encoder) appendMessage(dst []byte, m *model.Message) []byte {
	switch m.Role {
	case "assistant":
		return e.appendAssistant(dst, m)
	case "tool":
		for _, p := range m.Parts {
			if r := p.ToolResult; r != nil {
				dst = httpapi.AppendQuote(append(dst, `,{"role":"tool","tool_call_id":`...), r.CallID)
				dst = append(httpapi.AppendQuote(append(dst, `,"content":`...), r.Content), '}')
			}
		}
		return dst
	default:
		text := httpapi.JoinText(m, "\n\n")
		if text == "" {
			return dst // an empty text is refused by some endpoints
		}
		return append(httpapi.AppendQuote(append(dst, `,{"role":"user","content":`...), text), '}')
	}
}

func (e *encoder) appendAssistant(dst []byte, m *model.Message) []byte {
	text, calls := httpapi.JoinText(m, ""), m.ToolCalls()
	if text == "" && len(calls) == 0 {
		return dst // a turn of mere reasoning, or an empty one, can't be sent back
	}
	dst = append(dst, `,{"role":"assistant","content":`...)
	if text == "" {
		dst = append(dst, "null"...)
	} else {
		dst = httpapi.AppendQuote(dst, text)
	}
	if len(calls) > 0 {
		if reasoning := joinReasoning(m); reasoning != "" && e.field != "" {
			dst = append(httpapi.AppendQuote(append(dst, ','), e.field), ':')
			dst = httpapi.AppendQuote(dst, reasoning)
		}
		dst = append(dst, `,"tool_calls":[`...)
		for i, c := range calls {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = httpapi.AppendQuote(append(dst, `{"id":`...), c.ID)
			dst = httpapi.AppendQuote(append(dst, `,"type":"function","function":{"name":`...), httpapi.SafeName(c.Name))
			dst = append(httpapi.AppendQuote(append(dst, `,"arguments":`...), httpapi.SafeArgs(c.Args)), "}}"...)
		}
		dst = append(dst, ']')
	}
	return append(dst, '}')
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

func appendTool(dst []byte, t model.ToolSpec, schema []byte) []byte {
	dst = httpapi.AppendQuote(append(dst, `{"type":"function","function":{"name":`...), t.Name)
	if t.Description != "" {
		dst = httpapi.AppendQuote(append(dst, `,"description":`...), t.Description)
	}
	return append(append(append(dst, `,"parameters":`...), schema...), "}}"...)
}

// toolList returns the tools member with a comma, or nothing if there are no tools.
func (e *encoder) toolList(tools []model.ToolSpec) ([]byte, error) {
	list, err := e.tools.Encode(tools)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return append(append([]byte(`"tools":[`), list...), "],"...), nil
}
