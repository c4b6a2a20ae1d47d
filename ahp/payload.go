package ahp

// Model identifies a model.
type Model struct {
	ID       string `json:"id" ahp:"req,min1"`
	Provider string `json:"provider" ahp:"req,min1"`
}

// Attempt identifies one attempt of a model request.
type Attempt struct {
	ID          string `json:"id" ahp:"req,min1"`
	Number      int64  `json:"number" ahp:"req,pos"`
	Synthesized bool   `json:"synthesized"`
}

// Usage counts tokens. A nil count is unknown, which is not zero.
type Usage struct {
	Kind             string `json:"kind" ahp:"req,enum=amount|total"`
	Scope            string `json:"scope" ahp:"req,enum=attempt|turn"`
	Completeness     string `json:"completeness" ahp:"req,enum=complete|partial|unknown"`
	Provenance       string `json:"provenance" ahp:"req,enum=provider|estimate|mixed"`
	InputTokens      *int64 `json:"inputTokens" ahp:"nonneg"`
	OutputTokens     *int64 `json:"outputTokens" ahp:"nonneg"`
	CacheReadTokens  *int64 `json:"cacheReadTokens" ahp:"nonneg"`
	CacheWriteTokens *int64 `json:"cacheWriteTokens" ahp:"nonneg"`
	Cost             *Cost  `json:"cost"`
}

// Cost is an amount of money.
type Cost struct {
	// Amount is a JSON number of 0 or more.
	Amount   Raw    `json:"amount" ahp:"req,num"`
	Currency string `json:"currency" ahp:"req,currency"`
	Basis    string `json:"basis" ahp:"req,enum=billed|reported|estimated"`
}

// Pricing is what a proposed model costs.
type Pricing struct {
	Currency                   string `json:"currency" ahp:"req,currency"`
	InputPerMillionTokens      Raw    `json:"inputPerMillionTokens" ahp:"num"`
	OutputPerMillionTokens     Raw    `json:"outputPerMillionTokens" ahp:"num"`
	CacheReadPerMillionTokens  Raw    `json:"cacheReadPerMillionTokens" ahp:"num"`
	CacheWritePerMillionTokens Raw    `json:"cacheWritePerMillionTokens" ahp:"num"`
}

// TokenCounts are the sizes of the context around a compaction, in tokens.
type TokenCounts struct {
	Before *int64 `json:"before" ahp:"nonneg"`
	After  *int64 `json:"after" ahp:"nonneg"`
}

// Task is a change to one task of the agent's list. Change and Prior are open
// objects.
type Task struct {
	ID          string `json:"id" ahp:"req,min1"`
	Operation   string `json:"operation" ahp:"req,enum=create|update|remove"`
	Change      Raw    `json:"change" ahp:"req,obj"`
	Prior       Raw    `json:"prior" ahp:"obj"`
	Description string `json:"description"`
	Synthesized bool   `json:"synthesized"`
}

// Workspace is a change of the working directory or the roots.
type Workspace struct {
	Kind   string          `json:"kind" ahp:"req,enum=cwd|roots|switch"`
	Change WorkspaceState  `json:"change" ahp:"req"`
	Prior  *WorkspaceState `json:"prior"`
	Reason string          `json:"reason"`
}

// WorkspaceState has at least one of its members. A nil list is absent, an empty
// one is a workspace without roots.
type WorkspaceState struct {
	Cwd            *string  `json:"cwd"`
	WorkspaceRoots []string `json:"workspaceRoots" ahp:"uniq"`
}

// DecodeWorkspaceState decodes and validates a workspace state.
func DecodeWorkspaceState(data []byte) (*WorkspaceState, error) {
	return decode[WorkspaceState](data)
}

// Encode returns s as JSON, validated.
func (s *WorkspaceState) Encode() ([]byte, error) { return encodeChecked(s) }

func checkWorkspaceState(s *WorkspaceState) *fault {
	if s.Cwd == nil && s.WorkspaceRoots == nil {
		return &fault{found: "neither cwd nor workspaceRoots", expected: "at least one of them"}
	}
	return nil
}

// ObservedChange is a change to a file that the harness noticed.
type ObservedChange struct {
	Path        string `json:"path" ahp:"req,min1"`
	Operation   string `json:"operation" ahp:"req,enum=create|update|remove"`
	AgentCaused bool   `json:"agentCaused" ahp:"req"`
	Before      *Part  `json:"before"`
	After       *Part  `json:"after"`
}

// Attention asks for a person's attention; both texts are lists of text parts.
type Attention struct {
	Kind    string `json:"kind" ahp:"req,min1"`
	Message []Part `json:"message" ahp:"req,text"`
	Title   []Part `json:"title" ahp:"req,text"`
}

// Elicitation is an MCP server's question to a person, or the answer. The text
// of Request and Result is itself JSON, which this package does not look into.
type Elicitation struct {
	Server  string `json:"server" ahp:"req,min1"`
	Mode    string `json:"mode" ahp:"req,enum=form|url"`
	Action  string `json:"action" ahp:"enum=accept|decline|cancel"`
	Request *Part  `json:"request"`
	Result  *Part  `json:"result"`
}

func checkElicitation(e *Elicitation) *fault {
	if e.Request != nil && e.Request.Kind != KindText {
		return &fault{at: "request", found: "an attachment", expected: "a text part"}
	}
	if e.Result != nil && e.Result.Kind != KindText {
		return &fault{at: "result", found: "an attachment", expected: "a text part"}
	}
	return nil
}

// UserMessage is what a user sends, or is sent, over a channel. Sender is of
// inbound messages only.
type UserMessage struct {
	Channel  string    `json:"channel" ahp:"req,min1"`
	Sender   string    `json:"sender" ahp:"min1"`
	Messages []Message `json:"messages" ahp:"req"`
}

// HookProblem reports that a backend could not be asked.
type HookProblem struct {
	BackendID string `json:"backendId" ahp:"req,rdns"`
	Reason    string `json:"reason" ahp:"req,min1"`
	Policy    string `json:"policy" ahp:"req,enum=fail-open|fail-closed"`
}
