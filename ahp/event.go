package ahp

// EventType names one of the 32 event types (§6).
type EventType string

// The event types. Those that end in "before", and some others, can be
// intercepted: see EventType.Interceptable.
const (
	SessionStart           EventType = "session.start"
	SessionEnd             EventType = "session.end"
	ConfigChangeBefore     EventType = "config.change.before"
	ConfigChangeAfter      EventType = "config.change.after"
	TurnStart              EventType = "turn.start"
	TurnFinishBefore       EventType = "turn.finish.before"
	TurnEnd                EventType = "turn.end"
	TurnProgress           EventType = "turn.progress"
	ModelRequestBefore     EventType = "model.request.before"
	ModelResponseAfter     EventType = "model.response.after"
	ModelErrorEvent        EventType = "model.error"
	ModelSwitchBefore      EventType = "model.switch.before"
	ModelSwitchAfter       EventType = "model.switch.after"
	ToolBefore             EventType = "tool.before"
	ToolPermissionRequest  EventType = "tool.permission.request"
	ToolPermissionResolved EventType = "tool.permission.resolved"
	ToolProgress           EventType = "tool.progress"
	ToolAfter              EventType = "tool.after"
	ToolBatchAfter         EventType = "tool.batch.after"
	ContextCompactBefore   EventType = "context.compact.before"
	ContextCompactAfter    EventType = "context.compact.after"
	TaskChangeBefore       EventType = "task.change.before"
	TaskChangeAfter        EventType = "task.change.after"
	WorkspaceChangeBefore  EventType = "workspace.change.before"
	WorkspaceChangeAfter   EventType = "workspace.change.after"
	FileChanged            EventType = "file.changed"
	UserAttention          EventType = "user.attention"
	UserElicitationRequest EventType = "user.elicitation.request"
	UserElicitationResult  EventType = "user.elicitation.result"
	UserMessageInbound     EventType = "user.message.inbound"
	UserMessageOutbound    EventType = "user.message.outbound"
	HookFailure            EventType = "hook.failure"
)

// Event is one event of any type: the envelope that every event has, and the
// members of the event types. Which members an event has follows from its type
// (§6); a member that the type doesn't have must be zero in an event that is
// encoded, and is ignored or refused, as the protocol says, in one that is
// decoded.
//
// An event is identified by Source and ID together.
type Event struct {
	// ID is unique per source, and stays the same over retries.
	ID string `json:"id" ahp:"min1"`
	// Source is an absolute URI that identifies the harness's installation; it
	// holds no secret.
	Source string    `json:"source" ahp:"uri"`
	Type   EventType `json:"type" ahp:"min1"`
	// Time is RFC 3339; see Timestamp.
	Time    string   `json:"time" ahp:"time"`
	Session *Session `json:"session"`
	Turn    *Turn    `json:"turn"`
	// ParentEventID is the id of an earlier event of the same source.
	ParentEventID string `json:"parentEventId" ahp:"min1"`
	// Items holds messages or bare parts, by type.
	Items Items `json:"items"`
	Gaps  []Gap `json:"gaps"`
	// Native is the provider's own event, sent only where it is authorised.
	Native      Raw        `json:"native"`
	Extensions  Extensions `json:"extensions"`
	Synthesized bool       `json:"synthesized"`

	// Sessions.
	Trigger        string           `json:"trigger" ahp:"min1"`
	Harness        *HarnessInfo     `json:"harness"`
	PermissionMode string           `json:"permissionMode"`
	Manifest       *Manifest        `json:"manifest"`
	ResumedFrom    *Identity        `json:"resumedFrom"`
	Outcome        string           `json:"outcome" ahp:"min1"`
	Reason         string           `json:"reason"`
	Counters       map[string]int64 `json:"counters" ahp:"nonneg"`
	Change         *ConfigChange    `json:"change"`

	// Turns.
	ExpandedFrom      string   `json:"expandedFrom"`
	ContinuationCount int64    `json:"continuationCount" ahp:"nonneg"`
	LastAssistantItem *Ref     `json:"lastAssistantItem"`
	Usage             *Usage   `json:"usage"`
	Error             *Problem `json:"error"`
	Item              *Ref     `json:"item"`
	Delta             *Message `json:"delta"`
	Final             bool     `json:"final"`

	// Models.
	Model        *Model     `json:"model"`
	Attempt      *Attempt   `json:"attempt"`
	Params       Raw        `json:"params" ahp:"obj"`
	Execution    *Execution `json:"execution"`
	FinishReason string     `json:"finishReason"`
	LatencyMs    *int64     `json:"latencyMs" ahp:"nonneg"`
	Recovery     string     `json:"recovery"`
	Current      *Model     `json:"current"`
	Proposed     *Model     `json:"proposed"`
	Previous     *Model     `json:"previous"`
	Pricing      *Pricing   `json:"pricing"`

	// Tools.
	Call *Identity `json:"call"`
	Tool *Tool     `json:"tool"`
	// Path names the covered tool path, such as "native".
	Path          string       `json:"path" ahp:"min1"`
	Batch         *Batch       `json:"batch"`
	Suggestions   []Raw        `json:"suggestions" ahp:"obj"`
	SandboxBypass bool         `json:"sandboxBypass"`
	Decision      string       `json:"decision" ahp:"min1"`
	DecidedBy     string       `json:"decidedBy" ahp:"min1"`
	PartialOutput *Message     `json:"partialOutput"`
	Backgrounded  bool         `json:"backgrounded"`
	DurationMs    *int64       `json:"durationMs" ahp:"nonneg"`
	FileChanges   []FileChange `json:"fileChanges"`
	Calls         []BatchCall  `json:"calls" ahp:"min1"`

	// Context, tasks, workspace, files.
	Instructions []Part           `json:"instructions" ahp:"text"`
	TokenCounts  *TokenCounts     `json:"tokenCounts"`
	Summary      []Part           `json:"summary" ahp:"text"`
	Removed      []Ref            `json:"removed"`
	Task         *Task            `json:"task"`
	Workspace    *Workspace       `json:"workspace"`
	Changes      []ObservedChange `json:"changes" ahp:"min1"`

	// Users and hooks.
	Attention   *Attention   `json:"attention"`
	Elicitation *Elicitation `json:"elicitation"`
	Message     *UserMessage `json:"message"`
	Failure     *HookProblem `json:"failure"`
	Unknown     `json:"-"`
}

// Session identifies the session that an event belongs to.
type Session struct {
	ID             string   `json:"id" ahp:"req,min1"`
	Cwd            string   `json:"cwd"`
	WorkspaceRoots []string `json:"workspaceRoots"`
	Model          string   `json:"model"`
	Agent          *Agent   `json:"agent"`
	Synthesized    bool     `json:"synthesized"`
	Unknown        `json:"-"`
}

// Agent identifies the agent within a session.
type Agent struct {
	ID      string `json:"id" ahp:"req,min1"`
	Type    string `json:"type"`
	Unknown `json:"-"`
}

// Turn identifies a turn.
type Turn struct {
	ID          string `json:"id" ahp:"req,min1"`
	Synthesized bool   `json:"synthesized"`
	Unknown     `json:"-"`
}

// Identity is an id, and whether an adapter made it up. A tool call has one, and
// a session that another was resumed from.
type Identity struct {
	ID          string `json:"id" ahp:"req,min1"`
	Synthesized bool   `json:"synthesized"`
}

// HarnessInfo names the harness and its version.
type HarnessInfo struct {
	Name    string `json:"name" ahp:"req,min1"`
	Version string `json:"version" ahp:"req,min1"`
}

// ConfigChange describes a change of the harness's settings.
type ConfigChange struct {
	Source     string   `json:"source" ahp:"req,min1"`
	Scope      string   `json:"scope" ahp:"req,min1"`
	Settings   []string `json:"settings" ahp:"req"`
	Summary    string   `json:"summary" ahp:"req"`
	Path       string   `json:"path"`
	MCPServers []Raw    `json:"mcpServers" ahp:"obj"`
}
