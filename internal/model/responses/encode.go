package responses

import (
	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/model/httpapi"
)

// encoder keeps the encoded form of what it has seen.
type encoder struct {
	history httpapi.History
	tools   httpapi.ToolList
	seals   httpapi.Seals
	replay  bool // send reasoning back

	system    string
	systemEnc []byte
}

func newEncoder(origin string, replay bool) *encoder {
	e := &encoder{seals: httpapi.Seals{Origin: origin}, replay: replay}
	e.history.Append = e.appendMessage
	e.tools = httpapi.ToolList{Append: appendTool, Open: `"tools":[`, Close: "],"}
	return e
}

// instructions returns the member for the system text with a comma, or nothing.
func (e *encoder) instructions(system string) []byte {
	if system != e.system {
		e.system, e.systemEnc = system, nil
		if system != "" {
			e.systemEnc = append(httpapi.AppendQuote([]byte(`"instructions":`), system), ',')
		}
	}
	return e.systemEnc
}

func appendTool(dst []byte, t model.ToolSpec, schema []byte) []byte {
	dst = httpapi.AppendQuote(append(dst, `{"type":"function","name":`...), t.Name)
	if t.Description != "" {
		dst = httpapi.AppendQuote(append(dst, `,"description":`...), t.Description)
	}
	// Strict is the default, and rewrites the schema.
	return append(append(append(dst, `,"strict":false,"parameters":`...), schema...), '}')
}

// appendMessage adds the items of m, each with a comma before it.
func (e *encoder) appendMessage(dst []byte, m *model.Message) []byte {
	switch m.Role {
	case "assistant":
		return e.appendAssistant(dst, m)
	case "tool":
		for _, p := range m.Parts {
			if r := p.ToolResult; r != nil {
				dst = appendResult(dst, r)
			}
		}
		return dst
	default:
		return appendUser(dst, m)
	}
}

func appendUser(dst []byte, m *model.Message) []byte {
	var content []byte
	for _, p := range m.Parts {
		switch {
		case p.Text != nil && *p.Text != "":
			content = appendText(content, "input_text", *p.Text)
		case p.Image != nil:
			content = appendImage(content, p.Image)
		}
	}
	if len(content) == 0 {
		return dst // an empty message is refused
	}
	dst = append(append(dst, `,{"type":"message","role":"user","content":[`...), content[1:]...)
	return append(dst, "]}"...)
}

// appendText adds a part with a comma before it.
func appendText(dst []byte, kind, text string) []byte {
	dst = append(append(append(dst, `,{"type":"`...), kind...), `","text":`...)
	return append(httpapi.AppendQuote(dst, text), '}')
}

func appendImage(dst []byte, i *model.Image) []byte {
	dst = append(dst, `,{"type":"input_image","image_url":`...)
	return append(httpapi.AppendQuote(dst, "data:"+i.MediaType+";base64,"+i.Data), '}')
}

func appendResult(dst []byte, r *model.ToolResult) []byte {
	dst = httpapi.AppendQuote(append(dst, `,{"type":"function_call_output","call_id":`...), r.CallID)
	dst = append(dst, `,"output":`...)
	if len(r.Images) == 0 {
		return append(httpapi.AppendQuote(dst, r.Content), '}')
	}
	var parts []byte
	if r.Content != "" {
		parts = appendText(parts, "input_text", r.Content)
	}
	for i := range r.Images {
		parts = appendImage(parts, &r.Images[i])
	}
	return append(append(append(dst, '['), parts[1:]...), "]}"...)
}

// appendAssistant adds the parts in their order. Reasoning stands before the item
// that it led to, and is left out where that isn't sent: the API refuses one
// without the other.
func (e *encoder) appendAssistant(dst []byte, m *model.Message) []byte {
	var waiting []byte
	for _, p := range m.Parts {
		switch {
		case p.Text != nil && *p.Text != "":
			dst = append(append(dst, waiting...), `,{"type":"message","role":"assistant","content":[`...)
			dst = append(append(dst, appendText(nil, "output_text", *p.Text)[1:]...), "]}"...)
		case p.ToolCall != nil:
			dst = httpapi.AppendQuote(append(append(dst, waiting...), `,{"type":"function_call","call_id":`...), p.ToolCall.ID)
			dst = httpapi.AppendQuote(append(dst, `,"name":`...), httpapi.SafeName(p.ToolCall.Name))
			dst = append(httpapi.AppendQuote(append(dst, `,"arguments":`...), httpapi.SafeArgs(p.ToolCall.Args)), '}')
		default:
			waiting = e.appendReasoning(waiting, &p)
			continue
		}
		waiting = nil
	}
	return dst
}

func (e *encoder) appendReasoning(dst []byte, p *model.Part) []byte {
	s := p.Seal
	if !e.replay || !e.seals.Mine(s) || s.Data == "" {
		return dst
	}
	dst = append(httpapi.AppendQuote(append(dst, `,{"type":"reasoning","id":`...), s.ID), `,"summary":[`...)
	if p.Reasoning != nil && *p.Reasoning != "" {
		dst = append(dst, appendText(nil, "summary_text", *p.Reasoning)[1:]...)
	}
	return append(httpapi.AppendQuote(append(dst, `],"encrypted_content":`...), s.Data), '}')
}
