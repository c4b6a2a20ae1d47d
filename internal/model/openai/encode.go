package openai

import (
	"slices"

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
	// origin is what the client writes into its seals.
	origin string
	// always sends the field with every call, empty where nothing is known.
	always bool
	// sentReasoning is set once reasoning has been encoded.
	sentReasoning bool

	history httpapi.History
	tools   httpapi.ToolList

	system    string
	systemEnc []byte
}

func newEncoder(field, origin string) *encoder {
	e := &encoder{field: field, origin: origin}
	e.history.Append = e.appendMessage
	e.tools = httpapi.ToolList{Append: appendTool, Open: `"tools":[`, Close: "],"}
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

// demand sends reasoning with every call from now on, and reports whether that is
// new.
func (e *encoder) demand() bool {
	if e.always {
		return false
	}
	e.always = true
	e.history.Forget()
	return true
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
		return appendResults(dst, m)
	default:
		return appendUser(dst, m)
	}
}

// appendResults adds the results of calls, and after the last of them their
// pictures: the API has no place for those in a result.
func appendResults(dst []byte, m *model.Message) []byte {
	var pictures []byte
	for _, p := range m.Parts {
		r := p.ToolResult
		if r == nil {
			continue
		}
		dst = httpapi.AppendQuote(append(dst, `,{"role":"tool","tool_call_id":`...), r.CallID)
		dst = append(httpapi.AppendQuote(append(dst, `,"content":`...), r.Content), '}')
		if len(r.Images) > 0 {
			pictures = appendText(pictures, "Pictures that belong to the result of call "+r.CallID+":")
		}
		for i := range r.Images {
			pictures = appendImage(pictures, &r.Images[i])
		}
	}
	return appendParts(dst, pictures)
}

func appendUser(dst []byte, m *model.Message) []byte {
	if !slices.ContainsFunc(m.Parts, func(p model.Part) bool { return p.Image != nil }) {
		text := httpapi.JoinText(m, "\n\n")
		if text == "" {
			return dst // an empty text is refused by some endpoints
		}
		return append(httpapi.AppendQuote(append(dst, `,{"role":"user","content":`...), text), '}')
	}
	var parts []byte
	for _, p := range m.Parts {
		switch {
		case p.Text != nil && *p.Text != "":
			parts = appendText(parts, *p.Text)
		case p.Image != nil:
			parts = appendImage(parts, p.Image)
		}
	}
	return appendParts(dst, parts)
}

// appendParts adds a user's message of parts, each of which has a comma before it.
func appendParts(dst, parts []byte) []byte {
	if len(parts) == 0 {
		return dst
	}
	return append(append(append(dst, `,{"role":"user","content":[`...), parts[1:]...), "]}"...)
}

func appendText(dst []byte, s string) []byte {
	return append(httpapi.AppendQuote(append(dst, `,{"type":"text","text":`...), s), '}')
}

func appendImage(dst []byte, i *model.Image) []byte {
	dst = append(dst, `,{"type":"image_url","image_url":{"url":`...)
	return append(httpapi.AppendQuote(dst, "data:"+i.MediaType+";base64,"+i.Data), "}}"...)
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
		if reasoning := joinReasoning(m, e.origin); e.field != "" && (reasoning != "" || e.always) {
			e.sentReasoning = true
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

// joinReasoning returns the reasoning in m that came from origin: another endpoint may
// refuse the field.
func joinReasoning(m *model.Message, origin string) string {
	var out []byte
	for _, p := range m.Parts {
		if p.Reasoning != nil && p.Seal != nil && p.Seal.Origin == origin {
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
