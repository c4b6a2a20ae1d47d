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

// Part is one part of a message: exactly one of its members is set.
type Part struct {
	Text       *string     `json:"text,omitzero"`
	Reasoning  *string     `json:"reasoning,omitzero"`
	ToolCall   *ToolCall   `json:"tool_call,omitzero"`
	ToolResult *ToolResult `json:"tool_result,omitzero"`
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
// not zero.
type Usage struct {
	Input      *int64 `json:"input,omitzero"`
	Output     *int64 `json:"output,omitzero"`
	CacheRead  *int64 `json:"cache_read,omitzero"`
	CacheWrite *int64 `json:"cache_write,omitzero"`
}
