package gemini

import (
	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/model/httpapi"
)

// noSignature is the word that models which check signatures accept where a call was
// made by another model, which can't have signed it.
const noSignature = "skip_thought_signature_validator"

// encoder keeps the encoded form of the messages, tools and system text that it has
// seen.
type encoder struct {
	seals httpapi.Seals
	// fill says that a step that asked for tools and has no signature gets noSignature.
	fill bool

	groups  grouper
	history httpapi.History
	tools   httpapi.ToolList
	// calls holds, by our id, how the calls of the history are named on the wire. A
	// result is always encoded after its call.
	calls map[string]wireCall

	system    string
	systemEnc []byte
}

// wireCall is what a result must repeat of its call.
type wireCall struct {
	id   string // "" if the endpoint gave none
	name string
}

func newEncoder(origin string) *encoder {
	e := &encoder{seals: httpapi.Seals{Origin: origin}, calls: map[string]wireCall{}}
	e.history.Append, e.tools.Append = e.appendMessage, appendTool
	return e
}

// contents returns the elements of the contents member.
func (e *encoder) contents(ms []*model.Message) []byte { return e.history.Encode(e.groups.group(ms)) }

// instruction returns the systemInstruction member with a comma, or nothing.
func (e *encoder) instruction(system string) []byte {
	if system != e.system {
		e.system, e.systemEnc = system, nil
		if system != "" {
			e.systemEnc = append(httpapi.AppendQuote([]byte(`"systemInstruction":{"parts":[{"text":`), system), `}]},`...)
		}
	}
	return e.systemEnc
}

// toolList returns the tools member with a comma, or nothing if there are no tools.
func (e *encoder) toolList(tools []model.ToolSpec) ([]byte, error) {
	list, err := e.tools.Encode(tools)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return append(append([]byte(`"tools":[{"functionDeclarations":[`), list...), "]}],"...), nil
}

func appendTool(dst []byte, t model.ToolSpec, schema []byte) []byte {
	dst = httpapi.AppendQuote(append(dst, `{"name":`...), t.Name)
	if t.Description != "" {
		dst = httpapi.AppendQuote(append(dst, `,"description":`...), t.Description)
	}
	return append(append(append(dst, `,"parametersJsonSchema":`...), schema...), '}')
}

// appendMessage adds m as one content, or none if nothing of it can be sent.
func (e *encoder) appendMessage(dst []byte, m *model.Message) []byte {
	start := len(dst)
	role, add := `"user"`, e.appendUser
	switch m.Role {
	case "assistant":
		role, add = `"model"`, e.appendModel
	case "tool":
		add = e.appendResults
	}
	dst = append(append(append(dst, `,{"role":`...), role...), `,"parts":[`...)
	opened := len(dst)
	if dst = add(dst, m); len(dst) == opened {
		return dst[:start]
	}
	dst[len(dst)-1] = ']' // the last comma
	return append(dst, '}')
}

// appendUser adds the parts of a user's message, each with a comma after it.
func (e *encoder) appendUser(dst []byte, m *model.Message) []byte {
	for _, p := range m.Parts {
		switch {
		case p.Text != nil && *p.Text != "":
			dst = append(httpapi.AppendQuote(append(dst, `{"text":`...), *p.Text), "},"...)
		case p.Image != nil:
			dst = appendImage(dst, p.Image)
		}
	}
	return dst
}

// appendModel adds the parts of the model's message, each with a comma after it.
func (e *encoder) appendModel(dst []byte, m *model.Message) []byte {
	first := true // of the calls
	for _, p := range m.Parts {
		signature, id := "", ""
		if e.seals.Mine(p.Seal) {
			signature, id = p.Seal.Data, p.Seal.ID
		}
		switch {
		case p.Reasoning != nil && signature != "":
			dst = append(httpapi.AppendQuote(append(dst, `{"text":`...), *p.Reasoning), `,"thought":true`...)
		case p.Text != nil && *p.Text+signature != "":
			dst = httpapi.AppendQuote(append(dst, `{"text":`...), *p.Text)
		case p.ToolCall != nil:
			dst = e.appendCall(dst, p.ToolCall, id)
			if signature == "" && first && e.fill {
				signature = noSignature
			}
			first = false
		default:
			continue
		}
		if signature != "" {
			dst = httpapi.AppendQuote(append(dst, `,"thoughtSignature":`...), signature)
		}
		dst = append(dst, "},"...)
	}
	return dst
}

// appendCall adds a call without the brace that closes its part.
func (e *encoder) appendCall(dst []byte, c *model.ToolCall, id string) []byte {
	w := wireCall{id: id, name: httpapi.SafeName(c.Name)}
	e.calls[c.ID] = w
	dst = w.append(append(dst, `{"functionCall":{`...))
	return append(append(append(dst, `,"args":`...), httpapi.SafeArgs(c.Args)...), '}')
}

// append adds the members that a call and its response have in common.
func (w wireCall) append(dst []byte) []byte {
	if w.id != "" {
		dst = append(httpapi.AppendQuote(append(dst, `"id":`...), w.id), ',')
	}
	return httpapi.AppendQuote(append(dst, `"name":`...), w.name)
}

// appendResults adds the results in a message, each with a comma after it and its
// images behind it.
func (e *encoder) appendResults(dst []byte, m *model.Message) []byte {
	for _, p := range m.Parts {
		r := p.ToolResult
		if r == nil {
			continue
		}
		w, known := e.calls[r.CallID]
		if !known {
			w.name = httpapi.SafeName(r.Name)
		}
		dst = w.append(append(dst, `{"functionResponse":{`...))
		member := `,"response":{"output":`
		if r.IsError {
			member = `,"response":{"error":`
		}
		dst = append(httpapi.AppendQuote(append(dst, member...), r.Content), "}}},"...)
		for i := range r.Images {
			dst = appendImage(dst, &r.Images[i])
		}
	}
	return dst
}

func appendImage(dst []byte, image *model.Image) []byte {
	dst = httpapi.AppendQuote(append(dst, `{"inlineData":{"mimeType":`...), image.MediaType)
	return append(httpapi.AppendQuote(append(dst, `,"data":`...), image.Data), "}},"...)
}
