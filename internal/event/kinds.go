package event

import "github.com/go-json-experiment/json/jsontext"

// The types of events, with the payload of each.
const (
	TypeSessionStarted   Type = "session.started"
	TypeSessionResumed   Type = "session.resumed"
	TypeSessionEnded     Type = "session.ended"
	TypeRulesSet         Type = "rules.set"
	TypeUserMessage      Type = "user.message"
	TypeTurnStarted      Type = "turn.started"
	TypeTurnEnded        Type = "turn.ended"
	TypeModelRequested   Type = "model.requested"
	TypeModelResponded   Type = "model.responded"
	TypeModelFailed      Type = "model.failed"
	TypeDecision         Type = "decision"
	TypeApproval         Type = "approval"
	TypeToolStarted      Type = "tool.started"
	TypeToolEnded        Type = "tool.ended"
	TypeExtensionChanged Type = "extension.changed"
	TypeExtensionLogged  Type = "extension.logged"
	TypeBackendFailed    Type = "backend.failed"
	TypeHooksDecided     Type = "hooks.decided"
	TypeNotice           Type = "notice"
	TypeRecordRepaired   Type = "record.repaired"
	TypeHeadSigned       Type = "head.signed"

	TypeApprovalRequested Type = "approval.requested"
	TypeQuestionRequested Type = "question.requested"
	TypeQuestionAnswered  Type = "question.answered"
	TypeContextReduced    Type = "context.reduced"
	TypeModelSwitched     Type = "model.switched"
	TypeModeChanged       Type = "mode.changed"
	TypeAgentStarted      Type = "agent.started"
	TypeAgentEnded        Type = "agent.ended"
	TypeServerChanged     Type = "mcp.changed"
	TypeRunEnded          Type = "run.ended"
	TypeSessionForked     Type = "session.forked"
)

// SessionStarted opens a record.
type SessionStarted struct {
	Version   string   `json:"version"`
	Workspace string   `json:"workspace"`
	Roots     []string `json:"roots"`
	Model     string   `json:"model"`
	Mode      string   `json:"mode"`
	// Tier is the sandbox tier in force; NotProtected lists what it does not stop.
	Tier         string   `json:"tier"`
	Network      bool     `json:"network"`
	NotProtected []string `json:"not_protected,omitempty"`
	// Prompt is the system text sent with every request.
	System string   `json:"system"`
	Tools  []string `json:"tools"`
	// Memory lists the instruction files that are part of System.
	Memory []string `json:"memory,omitempty"`
}

// SessionResumed follows everything that was recorded before a resume.
type SessionResumed struct {
	SessionStarted
	// Interrupted lists the ids of calls that had no outcome.
	Interrupted []string `json:"interrupted,omitempty"`
	// UnsignedTail counts the chained events after the last signed head.
	UnsignedTail     int64    `json:"unsigned_tail"`
	AcceptedUnsigned bool     `json:"accepted_unsigned,omitzero"`
	AcceptedBroken   string   `json:"accepted_broken,omitempty"`
	Skipped          []string `json:"skipped,omitempty"`
}

// SessionEnded closes a session with the reason of its last run, or why there is
// none.
type SessionEnded struct {
	Reason string `json:"reason"`
	Detail string `json:"detail,omitempty"`
	Turns  int    `json:"turns"`
	Usage  *Usage `json:"usage,omitzero"`
}

// RulesSet stores a rule set once, so that decisions that name its hash can be
// judged again.
type RulesSet struct {
	Hash  string `json:"hash"`
	Rules Raw    `json:"rules"`
}

// UserMessage is what a person said.
type UserMessage struct {
	// AgentID names the sub-agent that was given the text; "" is the main agent.
	AgentID string `json:"agent_id,omitempty"`
	Text    string `json:"text"`
	// RewrittenBy lists the backends that changed what the person said.
	RewrittenBy []string `json:"rewritten_by,omitempty"`
	// Deferred says that the text is the oldest of the Later that waited.
	Deferred bool `json:"deferred,omitzero"`
	// Images came with the text.
	Images []Image `json:"images,omitempty"`
	// Steered says that the text reached a run that was going on already.
	Steered bool `json:"steered,omitzero"`
}

// TurnStarted opens turn N, counted from 1 over the session.
type TurnStarted struct {
	// AgentID names the sub-agent that the event belongs to; "" is the main agent.
	AgentID string `json:"agent_id,omitempty"`
	Turn    int    `json:"turn"`
}

// TurnEnded closes a turn.
type TurnEnded struct {
	// AgentID names the sub-agent that the event belongs to; "" is the main agent.
	AgentID string `json:"agent_id,omitempty"`
	Turn    int    `json:"turn"`
}

// ModelRequested says that a model call was sent.
type ModelRequested struct {
	// AgentID names the sub-agent that the event belongs to; "" is the main agent.
	AgentID  string `json:"agent_id,omitempty"`
	Turn     int    `json:"turn"`
	Attempt  int    `json:"attempt"`
	Model    string `json:"model"`
	Messages int    `json:"messages"`
	// Purpose says what for, if not for the conversation: "summary".
	Purpose string `json:"purpose,omitempty"`
}

// ModelResponded holds a whole reply.
type ModelResponded struct {
	// AgentID names the sub-agent that the event belongs to; "" is the main agent.
	AgentID   string  `json:"agent_id,omitempty"`
	Turn      int     `json:"turn"`
	Attempt   int     `json:"attempt"`
	Message   Message `json:"message"`
	Finish    string  `json:"finish"`
	Model     string  `json:"model,omitempty"`
	Usage     *Usage  `json:"usage,omitzero"`
	Note      string  `json:"note,omitempty"`
	LatencyMS int64   `json:"latency_ms"`
	// SuppliedBy names the backend that gave the reply, so that no model was asked.
	SuppliedBy string `json:"supplied_by,omitempty"`
	// RewrittenBy lists the backends that changed the reply; OriginalHash is the
	// SHA-256 of the text before them.
	RewrittenBy  []string `json:"rewritten_by,omitempty"`
	OriginalHash string   `json:"original_hash,omitempty"`
	// Withheld says why the message is empty although the model said something.
	Withheld string `json:"withheld,omitempty"`
	// Purpose says what for, if the reply is no part of the conversation: "summary".
	Purpose string `json:"purpose,omitempty"`
}

// ModelFailed is an attempt that brought no reply. RetryMS is the wait before the
// next attempt; Final means that there is none.
type ModelFailed struct {
	// AgentID names the sub-agent that the event belongs to; "" is the main agent.
	AgentID string `json:"agent_id,omitempty"`
	Turn    int    `json:"turn"`
	Attempt int    `json:"attempt"`
	Kind    string `json:"kind"`
	Status  int    `json:"status,omitzero"`
	Detail  string `json:"detail"`
	Partial string `json:"partial,omitempty"`
	RetryMS int64  `json:"retry_ms,omitzero"`
	Final   bool   `json:"final,omitzero"`
	// Purpose is the request's.
	Purpose string `json:"purpose,omitempty"`
}

// Asked is one party's part in a decision: an extension in one round, or a
// backend subscription in one dispatch.
type Asked struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Version is the hash of the program or the version that the party names.
	Version string `json:"version,omitempty"`
	// Step is where it was asked: "tool_call", "permission_request", or the type of
	// the AHP event.
	Step string `json:"step"`
	// EventID is the id of the AHP event, "" for an extension.
	EventID string `json:"event_id,omitempty"`
	Round   int    `json:"round,omitzero"`
	// Answer is "none", "ask", "deny", "rewrite", "failed" or "not_asked", and
	// "return", "stop" for backends; several are joined by "+".
	Answer string `json:"answer"`
	Reason string `json:"reason,omitempty"`
	Code   string `json:"code,omitempty"`
	// Failure is the failure class when Answer is "failed", Policy what it led to.
	Failure string `json:"failure,omitempty"`
	Policy  string `json:"policy,omitempty"`
	// Attempts is how often the request was sent, where that was not once.
	Attempts int   `json:"attempts,omitzero"`
	MS       int64 `json:"ms"`
}

// Approval scopes.
const (
	ScopeOnce    = "once"
	ScopeSession = "session"
)

// Decision is the gate's judgement of one call (record.md "What a decision event
// holds").
type Decision struct {
	Turn        int    `json:"turn"`
	CallID      string `json:"call_id"`
	Tool        string `json:"tool"`
	ToolVersion string `json:"tool_version,omitempty"`
	AgentID     string `json:"agent_id"`
	Depth       int    `json:"depth"`
	// ArgsText is what the model wrote when that can't be used; otherwise Original
	// holds it as canonical JSON, and Final what it was rewritten to, absent if it
	// wasn't.
	ArgsText     string `json:"args_text,omitempty"`
	Original     Raw    `json:"original,omitzero"`
	OriginalHash string `json:"original_hash,omitempty"`
	Final        Raw    `json:"final,omitzero"`
	FinalHash    string `json:"final_hash,omitempty"`
	// Outcome is "run", "deny", "supplied", "stopped" or "cancelled".
	Outcome string `json:"outcome"`
	// Verdict is the join of rules and objections: allow, ask, deny.
	Verdict string `json:"verdict,omitempty"`
	// Step is what settled it: "args", "extension", "backend", "rules", "approval",
	// "headless", "expired", "stop", "permit".
	Step   string `json:"step"`
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
	Code   string `json:"code,omitempty"`
	// Asked lists every party in the order of asking; within one extension round
	// sorted by name.
	Asked []Asked `json:"asked,omitempty"`
	// RulesHash names the rule set; RulesOriginal, RulesFinal and RulesPermit are
	// the results of evaluating it, with step, rule, file and line.
	RulesHash     string   `json:"rules_hash,omitempty"`
	RulesOriginal Raw      `json:"rules_original,omitzero"`
	RulesFinal    Raw      `json:"rules_final,omitzero"`
	RulesPermit   Raw      `json:"rules_permit,omitzero"`
	WorkDir       string   `json:"workdir,omitempty"`
	Roots         []string `json:"roots,omitempty"`
	Mode          string   `json:"mode,omitempty"`
	SubjectKind   string   `json:"subject_kind,omitempty"`
	Subject       string   `json:"subject,omitempty"`
	Mutates       bool     `json:"mutates,omitzero"`
	Approvals     []string `json:"approvals,omitempty"`
	// Messages are user-facing texts of backends, in order.
	Messages []string `json:"messages,omitempty"`
	MS       int64    `json:"ms"`
}

// Approval is a person's answer to a question.
type Approval struct {
	// AgentID names the sub-agent that the event belongs to; "" is the main agent.
	AgentID string `json:"agent_id,omitempty"`
	// Request is the id of the approval.requested event's question.
	Request string `json:"request,omitempty"`
	CallID  string `json:"call_id"`
	Hash    string `json:"hash"`
	Allowed bool   `json:"allowed"`
	Scope   string `json:"scope,omitempty"`
	By      string `json:"by"`
	Reason  string `json:"reason,omitempty"`
}

// ToolStarted says that a permit was redeemed and the tool begins.
type ToolStarted struct {
	// AgentID names the sub-agent that the event belongs to; "" is the main agent.
	AgentID string `json:"agent_id,omitempty"`
	Turn    int    `json:"turn"`
	CallID  string `json:"call_id"`
	Tool    string `json:"tool"`
	Hash    string `json:"hash"`
}

// ToolEnded gives a call's outcome; every call of the model has exactly one.
type ToolEnded struct {
	// AgentID names the sub-agent that the event belongs to; "" is the main agent.
	AgentID string `json:"agent_id,omitempty"`
	Turn    int    `json:"turn"`
	CallID  string `json:"call_id"`
	Tool    string `json:"tool"`
	// Outcome is "ok", "error", "denied", "cancelled", "timeout", "supplied",
	// "stopped" or "interrupted".
	Outcome string `json:"outcome"`
	// Content is what the model reads.
	Content string  `json:"content"`
	IsError bool    `json:"is_error,omitzero"`
	Images  []Image `json:"images,omitempty"`
	// RewrittenBy lists the extensions and backends that changed the result;
	// OriginalHash is the SHA-256 of the text before them.
	RewrittenBy  []string `json:"rewritten_by,omitempty"`
	OriginalHash string   `json:"original_hash,omitempty"`
	Asked        []Asked  `json:"asked,omitempty"`
	DurationMS   int64    `json:"duration_ms"`
	// WorkDir is the working directory after the call, if it changed.
	WorkDir string `json:"workdir,omitempty"`
	// Injected is context that backends added, delivered with the next request;
	// Later is delivered with the next prompt.
	Injected []string `json:"injected,omitempty"`
	Later    []string `json:"later,omitempty"`
	Messages []string `json:"messages,omitempty"`
}

// ExtensionChanged is a change in an extension's life.
type ExtensionChanged struct {
	Name string `json:"name"`
	// State is "started", "dead" or "ended".
	State string `json:"state"`
	Cause string `json:"cause,omitempty"`
	// OnFailure is what the death means from now on: skip, ask or block.
	OnFailure string   `json:"on_failure,omitempty"`
	Stderr    string   `json:"stderr,omitempty"`
	Pid       int      `json:"pid,omitzero"`
	Hash      string   `json:"hash,omitempty"`
	Tools     []string `json:"tools,omitempty"`
}

// ExtensionLogged is a line that an extension asked to keep, or a warning about
// it.
type ExtensionLogged struct {
	Name string `json:"name"`
	// Level is "log" or "warning".
	Level string `json:"level"`
	Line  string `json:"line"`
}

// BackendFailed is the audit of an operational failure (hook.failure), and of an
// observer's failed delivery, for which Policy is "none".
type BackendFailed struct {
	Backend      string `json:"backend"`
	Subscription int    `json:"subscription"`
	EventID      string `json:"event_id"`
	EventType    string `json:"event_type"`
	Class        string `json:"class"`
	Policy       string `json:"policy"`
	Detail       string `json:"detail,omitempty"`
}

// HooksDecided is what the backends came to at a point of a run that isn't a tool
// call: about a prompt, a request to the model, its reply, the end of a turn.
type HooksDecided struct {
	// AgentID names the sub-agent that the event belongs to; "" is the main agent.
	AgentID string `json:"agent_id,omitempty"`
	Turn    int    `json:"turn,omitzero"`
	// TurnID is the turn's id on the wire: from one prompt to its answer.
	TurnID    string `json:"turn_id,omitempty"`
	EventType string `json:"event_type"`
	EventID   string `json:"event_id"`
	// Outcome is "none", "changed", "supplied", "continued", "stopped", "denied" or
	// "interrupted"; the last that applies counts.
	Outcome string `json:"outcome"`
	By      string `json:"by,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Code    string `json:"code,omitempty"`
	// Asked lists the subscriptions that were asked, in order.
	Asked []Asked `json:"asked,omitempty"`
	// Original is what a person said, where it was changed or refused. Of what the
	// model said there is only the SHA-256, as it may be what had to be kept out.
	Original     string `json:"original,omitempty"`
	OriginalHash string `json:"original_hash,omitempty"`
	// LeftOut lists the calls of a reply that a backend took out of it, as id and
	// tool.
	LeftOut []string `json:"left_out,omitempty"`
	// Request is a changed request to the model, in order.
	Request []RequestItem `json:"request,omitempty"`
	// Injected is context for the model, Later what waits for the next prompt,
	// Instructions what comes with a continuation, Messages what backends tell the
	// user.
	Injected     []string `json:"injected,omitempty"`
	Later        []string `json:"later,omitempty"`
	Instructions []string `json:"instructions,omitempty"`
	Messages     []string `json:"messages,omitempty"`
	MS           int64    `json:"ms"`
}

// RequestItem is one message of a request that a backend changed: Message is set
// where it isn't the conversation's own with that id.
type RequestItem struct {
	ID      string   `json:"id"`
	Message *Message `json:"message,omitzero"`
}

// Notice is something that a reader of the record should know.
type Notice struct {
	// Level is "info" or "warning".
	Level string `json:"level"`
	Text  string `json:"text"`
}

// Raw is a JSON value kept as it is.
type Raw = jsontext.Value

// Unknown is the payload of an event whose type this version doesn't know.
type Unknown struct {
	Kind Type
	Body Raw
}
