package ahp

import (
	"iter"
	"maps"
	"slices"
	"strings"
)

// eventRule is one row of the event table (§6) with its row of the capability
// bounds (§10). Lists are separated by spaces.
type eventRule struct {
	name EventType
	// messages tells that items are messages; otherwise they are bare parts.
	messages bool
	// need, may and never name the members beyond the envelope. A member named in
	// none of them is unknown in this event.
	need, may, never string
	// enums holds "member=value|value".
	enums string
	check func(*Event) *fault
	// effects is empty for an event that can only be observed.
	effects string
	target  Target
	flow    string
	// closedTurn tells that turn is a payload here, and no part of the envelope: then it
	// is closed (§4).
	closedTurn bool
}

// The members of every event, whose shape doesn't depend on its type, and those
// that it must have, its type included.
const (
	envelopeMembers  = "id source time session turn parentEventId gaps native extensions synthesized"
	envelopeRequired = "id source type time"
)

const (
	toolMembers  = "call tool path"
	turnOutcomes = "outcome=completed|failed|cancelled|max_iterations"
	toolOutcomes = "outcome=ok|error|denied|cancelled|timeout"
)

// eventRules is the table; its order is that of the specification.
var eventRules = [...]eventRule{
	{name: SessionStart, messages: true, need: "session trigger harness permissionMode manifest items", may: "resumedFrom",
		never: "tool outcome", enums: "trigger=startup|resume|clear|compact|fork", check: checkSessionStart, effects: "inject message"},
	{name: SessionEnd, need: "session outcome reason", may: "counters", never: "tool", enums: "outcome=completed|cancelled|error|unknown"},
	{name: ConfigChangeBefore, need: "change", check: checkConfigBefore, effects: "deny message"},
	{name: ConfigChangeAfter, need: "change"},
	{name: TurnStart, closedTurn: true, messages: true, need: "turn trigger items", may: "expandedFrom", enums: "trigger=user|continuation|hook|external",
		effects: "deny modify inject flow message", target: TargetPrompt, flow: "stop"},
	{name: TurnFinishBefore, closedTurn: true, messages: true, need: "turn outcome continuationCount items", may: "lastAssistantItem usage", enums: turnOutcomes,
		check: checkTurnUsage, effects: "modify flow message", target: TargetResponse, flow: "stop continue"},
	{name: TurnEnd, closedTurn: true, messages: true, need: "turn outcome continuationCount items", may: "lastAssistantItem usage error", enums: turnOutcomes, check: checkTurnEnd},
	{name: TurnProgress, closedTurn: true, need: "turn item delta final"},
	{name: ModelRequestBefore, messages: true, need: "model attempt params items", never: "usage execution finishReason latencyMs error",
		effects: "deny modify inject return flow message", target: TargetRequest, flow: "stop"},
	{name: ModelResponseAfter, messages: true, need: "model attempt execution items finishReason", may: "usage latencyMs", never: "error",
		check: checkModelResponse, effects: "modify flow message", target: TargetResponse, flow: "stop"},
	{name: ModelErrorEvent, need: "model attempt execution error", may: "usage latencyMs recovery", never: "finishReason", check: checkModelError},
	{name: ModelSwitchBefore, need: "current proposed reason", may: "pricing", never: "previous", effects: "deny flow message", flow: "stop"},
	{name: ModelSwitchAfter, need: "previous current reason", never: "proposed"},
	{name: ToolBefore, need: toolMembers, may: "batch", never: "outcome execution durationMs fileChanges", check: checkCallBatch,
		effects: "deny allow ask modify inject flow return message", target: TargetInput, flow: "stop"},
	{name: ToolPermissionRequest, need: toolMembers + " suggestions sandboxBypass", may: "batch", never: "decision decidedBy outcome execution",
		check: checkCallBatch, effects: "allow deny modify flow message", target: TargetInput, flow: "stop"},
	{name: ToolPermissionResolved, need: toolMembers + " decision decidedBy", may: "batch",
		enums: "decision=allow|deny decidedBy=user|policy|hook|auto|classifier", check: checkCallBatch},
	{name: ToolProgress, need: toolMembers + " partialOutput backgrounded", may: "batch", never: "outcome execution", check: checkCallBatch},
	{name: ToolAfter, messages: true, need: "outcome execution " + toolMembers + " items", may: "batch error durationMs fileChanges",
		enums: toolOutcomes, check: checkToolAfter, effects: "modify inject flow message", target: TargetOutput, flow: "stop continue"},
	{name: ToolBatchAfter, need: "batch calls", check: checkBatchAfter, effects: "flow inject message", flow: "stop"},
	{name: ContextCompactBefore, messages: true, need: "trigger items", may: "instructions tokenCounts", never: "summary removed execution",
		enums: "trigger=auto|manual|hook", check: checkCompactBefore, effects: "deny modify return inject message", target: TargetInstructions},
	{name: ContextCompactAfter, messages: true, need: "summary removed execution", may: "tokenCounts", check: checkCompactAfter,
		effects: "inject modify message", target: TargetSummary},
	{name: TaskChangeBefore, need: "task", effects: "deny message"},
	{name: TaskChangeAfter, need: "task"},
	{name: WorkspaceChangeBefore, need: "workspace", effects: "deny modify message", target: TargetWorkspace},
	{name: WorkspaceChangeAfter, need: "workspace"},
	{name: FileChanged, need: "changes"},
	{name: UserAttention, need: "attention"},
	{name: UserElicitationRequest, need: "elicitation", check: checkElicitationRequest, effects: "deny return message"},
	{name: UserElicitationResult, need: "elicitation", check: checkElicitationResult, effects: "modify message", target: TargetContent},
	{name: UserMessageInbound, need: "message", check: checkInbound, effects: "deny modify message", target: TargetPrompt},
	{name: UserMessageOutbound, need: "message", check: checkOutbound, effects: "deny modify message", target: TargetContent},
	{name: HookFailure, need: "failure parentEventId"},
}

// enumsByMember yields the members with values of this event's own.
func (r *eventRule) enumsByMember() iter.Seq2[string, []string] {
	return func(yield func(string, []string) bool) {
		for e := range strings.FieldsSeq(r.enums) {
			name, values, _ := strings.Cut(e, "=")
			if !yield(name, strings.Split(values, "|")) {
				return
			}
		}
	}
}

// ruleOf returns the row of t, or nil.
func ruleOf(t EventType) *eventRule {
	for i := range eventRules {
		if eventRules[i].name == t {
			return &eventRules[i]
		}
	}
	return nil
}

// EventTypes returns all event types in the order of the specification.
func EventTypes() []EventType {
	out := make([]EventType, len(eventRules))
	for i := range eventRules {
		out[i] = eventRules[i].name
	}
	return out
}

// Known reports whether t is one of the 32 event types.
func (t EventType) Known() bool { return ruleOf(t) != nil }

// Interceptable reports whether t can be intercepted, and not only observed.
func (t EventType) Interceptable() bool {
	r := ruleOf(t)
	return r != nil && r.effects != ""
}

// HasMessages reports whether the items of t are messages; those of any other
// type are bare parts.
func (t EventType) HasMessages() bool {
	r := ruleOf(t)
	return r != nil && r.messages
}

// Effects returns the effects that may be advertised at t, or nil (§10).
func (t EventType) Effects() []EffectType {
	r := ruleOf(t)
	if r == nil {
		return nil
	}
	var out []EffectType
	for name := range strings.FieldsSeq(r.effects) {
		out = append(out, EffectType(name))
	}
	return out
}

// Target returns what a modify effect may edit at t, or "".
func (t EventType) Target() Target {
	if r := ruleOf(t); r != nil {
		return r.target
	}
	return ""
}

// FlowOperations returns the flow operations that may be advertised at t.
func (t EventType) FlowOperations() []FlowOperation {
	r := ruleOf(t)
	if r == nil {
		return nil
	}
	var out []FlowOperation
	for name := range strings.FieldsSeq(r.flow) {
		out = append(out, FlowOperation(name))
	}
	return out
}

// hasWord reports whether the space-separated list holds word.
func hasWord(list, word string) bool {
	for w := range strings.FieldsSeq(list) {
		if w == word {
			return true
		}
	}
	return false
}

// checkTurn holds that a closed turn has no unknown member.
func checkTurn(e *Event) *fault {
	if e.Turn == nil || len(e.Turn.Unknown) == 0 {
		return nil
	}
	name := slices.Min(slices.Collect(maps.Keys(e.Turn.Unknown)))
	return &fault{at: "turn", found: "unknown member " + quote(name), expected: "only members that the object has"}
}

func checkSessionStart(e *Event) *fault {
	if (e.Trigger == "clear" || e.Trigger == "fork") && e.ResumedFrom == nil {
		return &fault{found: "no resumedFrom", expected: "one with trigger " + quote(e.Trigger)}
	}
	return nil
}

func checkConfigBefore(e *Event) *fault {
	if e.Change.MCPServers != nil {
		return &fault{at: "change/mcpServers", found: "mcpServers", expected: "them only after the change"}
	}
	return nil
}

func checkTurnUsage(e *Event) *fault {
	if u := e.Usage; u != nil && (u.Kind != "total" || u.Scope != "turn") {
		return &fault{at: "usage", found: "usage of " + u.Kind + " per " + u.Scope, expected: "the total of the turn"}
	}
	return nil
}

func checkTurnEnd(e *Event) *fault {
	if e.Outcome == "completed" && e.Error != nil {
		return &fault{at: "error", found: "an error", expected: `none where the outcome is "completed"`}
	}
	return checkTurnUsage(e)
}

func checkAttemptUsage(e *Event) *fault {
	if u := e.Usage; u != nil && (u.Kind != "amount" || u.Scope != "attempt" || u.Provenance == "mixed") {
		return &fault{at: "usage", found: "usage of " + u.Kind + " per " + u.Scope + " from " + u.Provenance, expected: "an amount per attempt from the provider or an estimate"}
	}
	return nil
}

func checkModelResponse(e *Event) *fault {
	if e.Execution.Status == "skipped" {
		switch {
		case e.Execution.Reason != "supplied_result":
			return &fault{at: "execution/reason", found: quote(e.Execution.Reason), expected: `"supplied_result"`}
		case e.Usage != nil || e.LatencyMs != nil:
			return &fault{found: "usage or latencyMs", expected: "neither where nothing was executed"}
		}
	}
	return checkAttemptUsage(e)
}

func checkModelError(e *Event) *fault {
	if e.Execution.Status != "executed" {
		return &fault{at: "execution/status", found: quote(e.Execution.Status), expected: `"executed"`}
	}
	return checkAttemptUsage(e)
}

func checkCallBatch(e *Event) *fault {
	if e.Batch != nil && e.Batch.CallIDs == nil {
		return &fault{at: "batch", found: "no callIds", expected: "a list of at least one call id"}
	}
	return nil
}

func checkToolAfter(e *Event) *fault {
	skipped := e.Execution.Status == "skipped"
	switch {
	case (e.Outcome == "error") != (e.Error != nil):
		return &fault{at: "outcome", found: quote(e.Outcome), expected: `an error member exactly where the outcome is "error"`}
	case e.Outcome == "denied" && (!skipped || e.Execution.Reason != "policy"):
		return &fault{at: "execution", found: "a denied call that was not skipped by policy", expected: `skipped with reason "policy"`}
	case skipped && e.DurationMs != nil:
		return &fault{at: "durationMs", found: "a duration", expected: "none where nothing was executed"}
	case skipped && e.FileChanges != nil:
		return &fault{at: "fileChanges", found: "file changes", expected: "none where nothing was executed"}
	}
	return checkCallBatch(e)
}

func checkBatchAfter(e *Event) *fault {
	if e.Batch.CallIDs != nil {
		return &fault{at: "batch/callIds", found: "callIds", expected: "none here: see calls"}
	}
	return nil
}

func checkCompactBefore(e *Event) *fault {
	if e.TokenCounts != nil && (e.TokenCounts.After != nil || e.TokenCounts.Before == nil) {
		return &fault{at: "tokenCounts", found: "other counts", expected: "before alone"}
	}
	return nil
}

func checkCompactAfter(e *Event) *fault {
	if e.Execution.Status == "skipped" && e.Execution.Reason != "supplied_result" {
		return &fault{at: "execution/reason", found: quote(e.Execution.Reason), expected: `"supplied_result"`}
	}
	return nil
}

func checkElicitationRequest(e *Event) *fault {
	if e.Elicitation.Action != "" || e.Elicitation.Result != nil {
		return &fault{at: "elicitation", found: "an answer", expected: "server, mode and perhaps request"}
	}
	return nil
}

func checkElicitationResult(e *Event) *fault {
	if e.Elicitation.Action == "" || e.Elicitation.Request != nil {
		return &fault{at: "elicitation", found: "no action, or a request", expected: "server, mode, action and perhaps result"}
	}
	return nil
}

func checkInbound(e *Event) *fault {
	if e.Message.Sender == "" {
		return &fault{at: "message", found: "no sender", expected: "one in an inbound message"}
	}
	return checkRoles(e, RoleUser)
}

func checkOutbound(e *Event) *fault {
	if e.Message.Sender != "" {
		return &fault{at: "message/sender", found: "a sender", expected: "none in an outbound message"}
	}
	return checkRoles(e, RoleAssistant)
}

func checkRoles(e *Event, role Role) *fault {
	i := slices.IndexFunc(e.Message.Messages, func(m Message) bool { return m.Role != role })
	if i < 0 {
		return nil
	}
	return &fault{at: "message/messages/" + itoa(i) + "/role", found: quote(string(e.Message.Messages[i].Role)), expected: quote(string(role))}
}
