package anthropic

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/model/httpapi"
	"github.com/abhed/abhed/internal/strictjson"
)

// cacheMark is what ends a block up to which the endpoint is to cache. The API takes
// four: the tools, the system text, and the two newest turns of the user. The last
// but one finds what the request before has written.
const cacheMark = `,"cache_control":{"type":"ephemeral"}`

const (
	kindThinking = "thinking"
	kindRedacted = "redacted_thinking"
	maxIDLength  = 64
)

type role byte

const (
	noRole role = iota
	userRole
	assistantRole
)

// place is what was known after a message had been added to the history. Its marks
// are where the last block of a turn of the user ends, before the brace; 0 is none.
type place struct {
	end        int // the history's length
	role       role
	mark       int // of the last turn of the user
	markBefore int // of the one before
	answers    bool
	thought    bool // thinking was sent since the last turn that isn't of results
	called     bool // tools were called at any time
}

// encoder lays requests out. What it hands out is never written to again.
//
// The kept history has one message of the API, and the last one is left open: the next
// message either continues it, where the role is the same, or closes it.
type encoder struct {
	seals   *httpapi.Seals
	tools   httpapi.ToolList
	offered []byte // the tools that were last offered, encoded
	history httpapi.History
	places  []place

	system    string
	systemEnc []byte
	schema    []byte
	format    []byte
}

func newEncoder(seals *httpapi.Seals) *encoder {
	e := &encoder{seals: seals, tools: httpapi.ToolList{Append: appendTool}}
	e.history.Append = e.appendMessage
	return e
}

func appendTool(dst []byte, t model.ToolSpec, schema []byte) []byte {
	dst = httpapi.AppendQuote(append(dst, `{"name":`...), t.Name)
	if t.Description != "" {
		dst = httpapi.AppendQuote(append(dst, `,"description":`...), t.Description)
	}
	return append(append(append(dst, `,"input_schema":`...), schema...), '}')
}

// body lays the request out as slices that are sent one after the other. The note
// says what was left out.
func (c *Client) body(req *model.Request) (parts [][]byte, note string, err error) {
	e := c.enc
	config, err := e.outputConfig(c.params.effort, req.Output)
	if err != nil {
		return nil, "", c.api.Fail(model.ErrRequest, err, "%v", err)
	}
	messages := e.history.Encode(req.Messages)
	at := e.at(len(messages) + 1) // the comma before the first is cut off
	tools, err := e.toolList(req.Tools, at.called)
	if err != nil {
		return nil, "", c.api.Fail(model.ErrRequest, err, "%v", err)
	}
	limits, note := c.params.limits(req.MaxOutput, at.answers && !at.thought)
	parts = append(parts, c.params.start, limits, config)
	parts = append(append(parts, tools...), e.systemText(req.System), []byte(`"messages":[`))
	done := 0
	for _, mark := range []int{at.markBefore, at.mark} {
		if mark > 0 {
			parts = append(parts, messages[done:mark-1], []byte(cacheMark))
			done = mark - 1
		}
	}
	parts = append(parts, messages[done:])
	if len(messages) > 0 {
		parts = append(parts, []byte(`]}`))
	}
	return append(parts, []byte(`]}`)), note, nil
}

// toolList returns the slices of the tools member with the comma after it, none for no
// tools. Where calls are in the history the API wants tools to be named, so that a
// request without any names those of the one before, and forbids to call them.
func (e *encoder) toolList(tools []model.ToolSpec, called bool) ([][]byte, error) {
	tail := `}],`
	if len(tools) > 0 {
		enc, err := e.tools.Encode(tools)
		if err != nil {
			return nil, err
		}
		e.offered = enc
	} else {
		if !called {
			return nil, nil
		}
		tail += `"tool_choice":{"type":"none"},`
		if e.offered == nil {
			e.offered = []byte(`{"name":"none","description":"Not available.","input_schema":{"type":"object","properties":{}}}`)
		}
	}
	return [][]byte{[]byte(`"tools":[`), e.offered[:len(e.offered)-1], []byte(cacheMark), []byte(tail)}, nil
}

// systemText returns the system member with the comma after it.
func (e *encoder) systemText(s string) []byte {
	if s != e.system {
		e.system, e.systemEnc = s, nil
		if !blank(s) {
			enc := httpapi.AppendQuote([]byte(`"system":[{"type":"text","text":`), s)
			e.systemEnc = append(enc, cacheMark+`}],`...)
		}
	}
	return e.systemEnc
}

// outputConfig returns the member that holds the effort and the schema of the answer.
func (e *encoder) outputConfig(effort, schema []byte) ([]byte, error) {
	if len(schema) > 0 && !bytes.Equal(schema, e.schema) {
		if err := strictjson.Check(schema, strictjson.Options{}); err != nil {
			return nil, fmt.Errorf("the schema of the answer is not valid JSON: %w", err)
		}
		e.schema = bytes.Clone(schema)
		e.format = slices.Concat([]byte(`"format":{"type":"json_schema","schema":`), schema, []byte(`}`))
	}
	var members [][]byte
	if effort != nil {
		members = append(members, slices.Concat([]byte(`"effort":`), effort))
	}
	if len(schema) > 0 {
		members = append(members, e.format)
	}
	if members == nil {
		return nil, nil
	}
	return slices.Concat([]byte(`"output_config":{`), bytes.Join(members, []byte(",")), []byte(`},`)), nil
}

// at returns the last place in the first n bytes of the history and forgets later
// ones.
func (e *encoder) at(n int) place {
	for len(e.places) > 0 && e.places[len(e.places)-1].end > n {
		e.places = e.places[:len(e.places)-1]
	}
	if len(e.places) == 0 {
		return place{}
	}
	return e.places[len(e.places)-1]
}

// appendMessage adds m to the history. What it adds depends on m and on what dst
// ends with, which places tells.
func (e *encoder) appendMessage(dst []byte, m *model.Message) []byte {
	p := e.at(len(dst))
	blocks, results, thought := e.blocks(m)
	if len(blocks) == 0 {
		return dst
	}
	next := userRole
	if m.Role == "assistant" {
		next = assistantRole
	}
	if next == assistantRole && p.role == noRole {
		dst = append(dst, `,{"role":"user","content":[{"type":"text","text":"(the conversation so far is not shown)"}`...)
		p.role = userRole // the API wants the user to begin
	}
	switch {
	case p.role == next:
		dst = append(append(dst, ','), blocks...)
	default:
		if p.role != noRole {
			dst = append(dst, `]}`...)
		}
		open := `,{"role":"user","content":[`
		if next == assistantRole {
			open = `,{"role":"assistant","content":[`
		}
		dst = append(append(dst, open...), blocks...)
	}
	if next == userRole {
		if p.role != userRole {
			p.markBefore = p.mark
			p.answers = false
		}
		p.mark = len(dst) - 1
		p.answers = p.answers || results
		p.thought = p.thought && p.answers
	} else {
		p.thought = p.thought || thought
		p.called = p.called || len(m.ToolCalls()) > 0
	}
	p.role, p.end = next, len(dst)
	e.places = append(e.places, p)
	return dst
}

// blocks returns the content of m with commas between the blocks, and whether results
// of tools or thinking are in it.
func (e *encoder) blocks(m *model.Message) (out []byte, results, thought bool) {
	if m.Role == "assistant" {
		out, thought = e.assistant(m)
		return out, false, thought
	}
	for _, part := range m.Parts {
		switch {
		case part.ToolResult != nil:
			out = appendResult(comma(out), part.ToolResult)
			results = true
		case part.Image != nil:
			out = appendImage(comma(out), *part.Image)
		case part.Text != nil && !blank(*part.Text):
			out = appendText(comma(out), *part.Text)
		}
	}
	return out, results, false
}

// assistant returns the blocks of an assistant's message. Thinking after the last text
// or call is left out: the API wants no message to end in it.
func (e *encoder) assistant(m *model.Message) (out []byte, thought bool) {
	parts := m.Parts
	for len(parts) > 0 && !spoken(parts[len(parts)-1]) {
		parts = parts[:len(parts)-1]
	}
	for _, part := range parts {
		switch {
		case part.ToolCall != nil:
			out = httpapi.AppendQuote(append(comma(out), `{"type":"tool_use","id":`...), safeID(part.ToolCall.ID))
			out = httpapi.AppendQuote(append(out, `,"name":`...), httpapi.SafeName(part.ToolCall.Name))
			out = append(append(append(out, `,"input":`...), httpapi.SafeArgs(part.ToolCall.Args)...), '}')
		case spoken(part):
			out = appendText(comma(out), *part.Text)
		case !e.seals.Mine(part.Seal):
		case part.Seal.Kind == kindRedacted:
			out = append(httpapi.AppendQuote(append(comma(out), `{"type":"redacted_thinking","data":`...), part.Seal.Data), '}')
			thought = true
		case part.Seal.Kind == kindThinking && part.Reasoning != nil:
			out = httpapi.AppendQuote(append(comma(out), `{"type":"thinking","thinking":`...), *part.Reasoning)
			out = append(httpapi.AppendQuote(append(out, `,"signature":`...), part.Seal.Data), '}')
			thought = true
		}
	}
	return out, thought
}

// spoken reports whether p is a text or a call that can be sent.
func spoken(p model.Part) bool {
	return p.ToolCall != nil || p.Text != nil && !blank(*p.Text)
}

// sendable reports whether something of an assistant's message can be sent.
func sendable(m *model.Message) bool { return slices.ContainsFunc(m.Parts, spoken) }

// blank reports whether the API would refuse s as the text of a block.
func blank(s string) bool { return strings.TrimSpace(s) == "" }

func comma(dst []byte) []byte {
	if len(dst) > 0 {
		dst = append(dst, ',')
	}
	return dst
}

func appendText(dst []byte, s string) []byte {
	return append(httpapi.AppendQuote(append(dst, `{"type":"text","text":`...), s), '}')
}

// appendImage adds an image, or says that there was one of a type that the API refuses,
// since a refused message would be refused in every later request too.
func appendImage(dst []byte, i model.Image) []byte {
	if !slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp"}, i.MediaType) || i.Data == "" {
		return appendText(dst, fmt.Sprintf("[an image of type %q was left out: the API does not take it]", i.MediaType))
	}
	dst = httpapi.AppendQuote(append(dst, `{"type":"image","source":{"type":"base64","media_type":`...), i.MediaType)
	return append(httpapi.AppendQuote(append(dst, `,"data":`...), i.Data), "}}"...)
}

func appendResult(dst []byte, r *model.ToolResult) []byte {
	dst = httpapi.AppendQuote(append(dst, `{"type":"tool_result","tool_use_id":`...), safeID(r.CallID))
	switch {
	case len(r.Images) > 0:
		var list []byte
		if !blank(r.Content) {
			list = appendText(list, r.Content)
		}
		for _, i := range r.Images {
			list = appendImage(comma(list), i)
		}
		return append(append(append(dst, `,"content":[`...), list...), "]}"...) // is_error takes text alone
	case !blank(r.Content):
		dst = httpapi.AppendQuote(append(dst, `,"content":`...), r.Content)
	}
	if r.IsError {
		dst = append(dst, `,"is_error":true`...)
	}
	return append(dst, '}')
}

// safeID returns a call's id in the form that the API takes, the same for the same id
// always. Ids of other providers may hold other characters.
func safeID(id string) string {
	out := []byte(id)
	for i, c := range out {
		alnum := '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
		if !alnum && c != '_' && c != '-' {
			out[i] = '_'
		}
	}
	if len(out) > 0 && len(out) <= maxIDLength && string(out) == id {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return string(out[:min(len(out), maxIDLength-17)]) + "_" + hex.EncodeToString(sum[:8])
}
