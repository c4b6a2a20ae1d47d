package event

// ApprovalRequested says that a person is asked about a call.
type ApprovalRequested struct {
	// AgentID names the sub-agent that the event belongs to; "" is the main agent.
	AgentID string `json:"agent_id,omitempty"`
	// Request is the question's id; an answer names it and Hash.
	Request string `json:"request"`
	CallID  string `json:"call_id"`
	Tool    string `json:"tool"`
	// Args holds the final arguments, and Original the model's if somebody rewrote
	// them, as they are shown: with every byte visible or escaped.
	Args     string   `json:"args"`
	Original string   `json:"original,omitempty"`
	WorkDir  string   `json:"workdir,omitempty"`
	Hash     string   `json:"hash"`
	Why      []string `json:"why"`
	// SessionOffered says whether the answer may hold for the session.
	SessionOffered bool `json:"session_offered,omitzero"`
}

// QuestionRequested says that a person is asked something that isn't about a call:
// by the agent, or by an MCP server.
type QuestionRequested struct {
	// AgentID names the sub-agent that the event belongs to; "" is the main agent.
	AgentID string   `json:"agent_id,omitempty"`
	Request string   `json:"request"`
	From    string   `json:"from"`
	Text    string   `json:"text"`
	Choices []string `json:"choices,omitempty"`
	// Schema is the JSON Schema of the answer, absent for a text.
	Schema Raw `json:"schema,omitzero"`
}

// QuestionAnswered is what came of it. Action is "accept", "decline" or "cancel".
type QuestionAnswered struct {
	// AgentID names the sub-agent that the event belongs to; "" is the main agent.
	AgentID string `json:"agent_id,omitempty"`
	Request string `json:"request"`
	Action  string `json:"action"`
	Text    string `json:"text,omitempty"`
	By      string `json:"by,omitempty"`
}

// ContextReduced says that the conversation was made smaller: what lies in front
// of it in the record is still there, but no longer sent. It is applied in this
// order: the results named in Stubs are replaced, then the messages From to To (not
// included), counted from 0, are replaced by one user message with Summary.
type ContextReduced struct {
	// AgentID names the sub-agent that the event belongs to; "" is the main agent.
	AgentID string `json:"agent_id,omitempty"`
	Turn    int    `json:"turn,omitzero"`
	// Trigger is "auto", "overflow", "model" (a switch to a smaller one) or "manual".
	Trigger string `json:"trigger"`
	Stubs   []Stub `json:"stubs,omitempty"`
	From    int    `json:"from,omitzero"`
	To      int    `json:"to,omitzero"`
	Summary string `json:"summary,omitempty"`
	// By names who gave the summary if it wasn't the model.
	By string `json:"by,omitempty"`
	// Before and After are estimated tokens of the next request.
	Before int64 `json:"before_tokens"`
	After  int64 `json:"after_tokens"`
}

// Stub stands for a result that is no longer sent whole.
type Stub struct {
	CallID string `json:"call_id"`
	Text   string `json:"text"`
}

// ModelSwitched says that the model was changed within the session.
type ModelSwitched struct {
	From string `json:"from"`
	To   string `json:"to"`
	// By is "user", or who else changed it.
	By string `json:"by"`
}

// ModeChanged says that the permission mode was changed within the session.
type ModeChanged struct {
	From string `json:"from"`
	To   string `json:"to"`
	By   string `json:"by"`
}

// AgentStarted says that a sub-agent begins. Its events name it as agent_id.
type AgentStarted struct {
	AgentID string `json:"agent_id"`
	// Parent is the agent that started it, "" for the main agent; CallID its call.
	Parent string `json:"parent,omitempty"`
	CallID string `json:"call_id"`
	Depth  int    `json:"depth"`
	Title  string `json:"title"`
	// Worktree is the folder of its own that it works in, "" for the parent's.
	Worktree string   `json:"worktree,omitempty"`
	Model    string   `json:"model,omitempty"`
	Tools    []string `json:"tools,omitempty"`
	// System is its system text.
	System string `json:"system"`
}

// AgentEnded says that a sub-agent ended, with a reason of abhed.md "Loop".
type AgentEnded struct {
	AgentID string `json:"agent_id"`
	Reason  string `json:"reason"`
	Detail  string `json:"detail,omitempty"`
	Turns   int    `json:"turns"`
	Usage   *Usage `json:"usage,omitzero"`
}

// ServerChanged is a change in an MCP server's life, or a warning about it.
type ServerChanged struct {
	Name string `json:"name"`
	// State is "started", "failed", "restarted", "ended" or "warning".
	State  string   `json:"state"`
	Detail string   `json:"detail,omitempty"`
	Stderr string   `json:"stderr,omitempty"`
	Pid    int      `json:"pid,omitzero"`
	Tools  []string `json:"tools,omitempty"`
}

// RunEnded closes one prompt with its reason (abhed.md "Loop").
type RunEnded struct {
	Reason string `json:"reason"`
	Detail string `json:"detail,omitempty"`
	Turns  int    `json:"turns"`
	Usage  *Usage `json:"usage,omitzero"`
	// CostUSD is what it cost with its sub-agents, a JSON number, absent if a price is
	// unknown or a reply came without usage.
	CostUSD Raw `json:"cost_usd,omitzero"`
}

// SessionForked says that the events before it were another session's, up to its
// event At.
type SessionForked struct {
	From string `json:"from"`
	At   int64  `json:"at"`
}

// RecordRepaired says that a torn last line was cut off.
type RecordRepaired struct {
	DroppedBytes int64  `json:"dropped_bytes"`
	DroppedHash  string `json:"dropped_hash"`
}

// HeadSigned is a signature of the installation's key over the head.
type HeadSigned struct {
	Seq  int64  `json:"seq"`
	Head string `json:"head"`
	// KeyID is the SHA-256 of the public key in hex; Signature is base64.
	KeyID     string `json:"key_id"`
	Signature string `json:"signature"`
}

// SetAgent puts the id of a sub-agent into a payload that has one and names none.
func SetAgent(p Payload, id string) {
	if f := agentOf(p); f != nil && *f == "" {
		*f = id
	}
}

// AgentOf returns the id of the sub-agent that a payload belongs to, "" for the
// main agent and for what belongs to none.
func AgentOf(p Payload) string {
	if f := agentOf(p); f != nil {
		return *f
	}
	if d, ok := p.(*Decision); ok && d.Depth > 0 {
		return d.AgentID
	}
	return ""
}

// agentOf returns the member that names a sub-agent, nil if there is none.
func agentOf(p Payload) *string {
	switch p := p.(type) {
	case *UserMessage:
		return &p.AgentID
	case *TurnStarted:
		return &p.AgentID
	case *TurnEnded:
		return &p.AgentID
	case *ModelRequested:
		return &p.AgentID
	case *ModelResponded:
		return &p.AgentID
	case *ModelFailed:
		return &p.AgentID
	case *ToolStarted:
		return &p.AgentID
	case *ToolEnded:
		return &p.AgentID
	case *HooksDecided:
		return &p.AgentID
	case *Approval:
		return &p.AgentID
	case *ApprovalRequested:
		return &p.AgentID
	case *QuestionRequested:
		return &p.AgentID
	case *QuestionAnswered:
		return &p.AgentID
	case *ContextReduced:
		return &p.AgentID
	}
	return nil
}
