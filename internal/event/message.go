package event

// Role is who a message is from.
type Role string

// The roles of a conversation. A tool's answer has RoleTool.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// Message is one provider-neutral message of a conversation. It is immutable
// once it is part of a history: model clients may keep its encoded form.
type Message struct {
	Role  Role   `json:"role"`
	Parts []Part `json:"parts"`
}

// Part is one part of a message: exactly one of its members is set, but for Seal,
// which also stands beside Text, Reasoning or ToolCall.
type Part struct {
	Text       *string     `json:"text,omitzero"`
	Reasoning  *string     `json:"reasoning,omitzero"`
	ToolCall   *ToolCall   `json:"tool_call,omitzero"`
	ToolResult *ToolResult `json:"tool_result,omitzero"`
	Image      *Image      `json:"image,omitzero"`
	Seal       *Seal       `json:"seal,omitzero"`
}

// Seal is what a provider wants back unchanged with the part that it came with: a
// signature, encrypted reasoning. Nobody else can read it, and no other provider
// accepts it, so it is sent to Origin alone.
type Seal struct {
	// Origin names the API, the provider and the model that made it.
	Origin string `json:"origin"`
	// Kind is the client's own word for what it is.
	Kind string `json:"kind,omitempty"`
	// ID is the id that the provider gave the part, "" if none.
	ID string `json:"id,omitempty"`
	// Data is "" where the part itself is what is wanted back.
	Data string `json:"data"`
}

// Image is a picture. Data is base64.
type Image struct {
	MediaType string `json:"media_type"`
	Data      string `json:"data"`
}

// ToolCall is a call as the model wrote it. Args is the text that the model
// sent, which need not be valid JSON: the gate judges it.
type ToolCall struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Args string `json:"args"`
}

// ToolResult answers a ToolCall.
type ToolResult struct {
	CallID  string `json:"call_id"`
	Name    string `json:"name"`
	Content string `json:"content"`
	IsError bool   `json:"is_error,omitzero"`
	// Images come with the text, for models that take them.
	Images []Image `json:"images,omitempty"`
}

// TextPart returns a part that holds text.
func TextPart(s string) Part { return Part{Text: &s} }

// Text returns the text parts of m, joined.
func (m *Message) Text() string {
	var s string
	for _, p := range m.Parts {
		if p.Text != nil {
			s += *p.Text
		}
	}
	return s
}

// ToolCalls returns the calls in m in the model's order.
func (m *Message) ToolCalls() []*ToolCall {
	var calls []*ToolCall
	for _, p := range m.Parts {
		if p.ToolCall != nil {
			calls = append(calls, p.ToolCall)
		}
	}
	return calls
}

// Usage counts the tokens of one model reply. A nil pointer is unknown, which is
// not zero. No token is in two counts: Input is what was neither read from a cache
// nor written to one. Reasoning is a part of Output.
type Usage struct {
	Input      *int64 `json:"input,omitzero"`
	Output     *int64 `json:"output,omitzero"`
	CacheRead  *int64 `json:"cache_read,omitzero"`
	CacheWrite *int64 `json:"cache_write,omitzero"`
	Reasoning  *int64 `json:"reasoning,omitzero"`
}

// Plus returns the sum of u and o; a count that neither knows is unknown.
func (u Usage) Plus(o Usage) Usage {
	sum := func(a, b *int64) *int64 {
		switch {
		case b == nil:
			return a
		case a == nil:
			return b
		}
		n := *a + *b
		return &n
	}
	return Usage{
		Input: sum(u.Input, o.Input), Output: sum(u.Output, o.Output), CacheRead: sum(u.CacheRead, o.CacheRead),
		CacheWrite: sum(u.CacheWrite, o.CacheWrite), Reasoning: sum(u.Reasoning, o.Reasoning),
	}
}
