package gate

import (
	"slices"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/agent"
)

// offer is one row of what Abhed sends: an event and the effects that it enforces
// there. A row without effects is only observed.
type offer struct {
	event   ahp.EventType
	effects []ahp.EffectType
}

// offers is the table that the manifest and every request are made from, in the
// order of the specification. It never offers allow, on any event (gate.md §2
// step 3), and no row that isn't held by a test.
func offers() []offer {
	const (
		deny, ask, modify, message = ahp.EffectDeny, ahp.EffectAsk, ahp.EffectModify, ahp.EffectMessage
		supply, flow, inject       = ahp.EffectReturn, ahp.EffectFlow, ahp.EffectInject
	)
	of := func(t ahp.EventType, effects ...ahp.EffectType) offer { return offer{t, effects} }
	return []offer{
		of(ahp.SessionStart, inject, message),
		of(ahp.SessionEnd),
		of(ahp.ConfigChangeBefore, deny, message),
		of(ahp.ConfigChangeAfter),
		of(ahp.TurnStart, deny, modify, inject, flow, message),
		of(ahp.TurnFinishBefore, modify, flow, message),
		of(ahp.TurnEnd),
		of(ahp.TurnProgress),
		of(ahp.ModelRequestBefore, deny, modify, inject, supply, flow, message),
		of(ahp.ModelResponseAfter, modify, flow, message),
		of(ahp.ModelErrorEvent),
		of(ahp.ModelSwitchBefore, deny, flow, message),
		of(ahp.ModelSwitchAfter),
		of(ahp.ToolBefore, deny, ask, modify, message, supply, flow, inject),
		of(ahp.ToolPermissionRequest, deny, message, flow),
		of(ahp.ToolPermissionResolved),
		of(ahp.ToolProgress),
		of(ahp.ToolAfter, modify, inject, message, flow),
		of(ahp.ToolBatchAfter, flow, inject, message),
		of(ahp.ContextCompactBefore, deny, modify, supply, inject, message),
		of(ahp.ContextCompactAfter, inject, modify, message),
		of(ahp.TaskChangeBefore, deny, message),
		of(ahp.TaskChangeAfter),
		of(ahp.WorkspaceChangeBefore, deny, message),
		of(ahp.WorkspaceChangeAfter),
		of(ahp.FileChanged),
		of(ahp.UserAttention),
		of(ahp.UserElicitationRequest, deny, supply, message),
		of(ahp.UserElicitationResult, modify, message),
		of(ahp.UserMessageInbound, deny, modify, message),
		of(ahp.UserMessageOutbound, deny, modify, message),
		of(ahp.HookFailure),
	}
}

// capabilities returns what is offered at t, but for the effects in without.
func capabilities(t ahp.EventType, without ...ahp.EffectType) *ahp.Capabilities {
	c := &ahp.Capabilities{}
	for _, o := range offers() {
		if o.event == t {
			c.Effects = slices.DeleteFunc(o.effects, func(e ahp.EffectType) bool { return slices.Contains(without, e) })
		}
	}
	if c.Has(ahp.EffectModify) {
		c.Modify = map[ahp.Target]ahp.ModifyCapability{t.Target(): {Replace: true, Merge: true}}
	}
	if c.Has(ahp.EffectFlow) {
		c.Flow = &ahp.FlowCapability{Operations: []ahp.FlowOperation{ahp.FlowStop}}
	}
	if t == ahp.UserElicitationRequest || t == ahp.UserElicitationResult {
		c.Elicitation = &ahp.ElicitationCapability{Form: &ahp.ElicitationMode{}}
	}
	if c.Has(ahp.EffectInject) {
		c.Inject = &ahp.InjectCapability{Context: ahp.ContextInjection{Append: true, DeliverAt: []ahp.Delivery{ahp.DeliverNow, ahp.DeliverNextTurn}}}
	}
	return c
}

// finishCapabilities is what is offered before a turn ends: a continuation too,
// while one is left.
func finishCapabilities(count, remaining int) *ahp.Capabilities {
	c := capabilities(ahp.TurnFinishBefore)
	if remaining > 0 {
		n, left, most := int64(count), int64(remaining), int64(agent.MaxContinuations)
		c.Flow.Operations = append(c.Flow.Operations, ahp.FlowContinue)
		c.Flow.ContinuationCount, c.Flow.RemainingContinuations, c.Flow.MaxContinuations = &n, &left, &most
	}
	return c
}

// againCapabilities is what a backend may answer when it is asked once more about
// input that a later one changed.
func againCapabilities() *ahp.Capabilities {
	return capabilities(ahp.ToolBefore, ahp.EffectModify, ahp.EffectReturn, ahp.EffectFlow, ahp.EffectInject)
}

// Manifest returns what Abhed promises to send and to enforce, always the same.
func Manifest() *ahp.Manifest {
	most, upload := int64(agent.MaxContinuations), int64(maxUpload)
	m := &ahp.Manifest{
		Gaps: gaps(), Transports: []string{"stdio", "http"}, Authentication: []string{"bearer", "oauth"}, ToolPaths: []string{toolPath},
		ContentCategories:         []string{"text", "reasoning", categoryCall, "images", "audio", "video", "files"},
		Limits:                    ahp.Limits{MaxContinuations: &most, MaxUploadBytes: &upload},
		ManagedPolicy:             ahp.ManagedPolicy{Scopes: []string{"managed", "user", "project"}},
		CorrelationIdentityFields: []string{"id", "parentEventId", "session.id", "turn.id", "call.id", "batch.id", "attempt.id"},
	}
	for _, o := range offers() {
		row := ahp.ManifestEvent{Event: o.event, Modes: []ahp.Mode{ahp.ModeObserve}}
		if len(o.effects) > 0 {
			row.Modes, row.Capabilities = append(row.Modes, ahp.ModeIntercept), capabilities(o.event)
		}
		if o.event == ahp.TurnFinishBefore {
			row.Capabilities = finishCapabilities(0, agent.MaxContinuations)
		}
		m.Events = append(m.Events, row)
	}
	return m
}

// gaps says what isn't sent, what isn't in what is sent, and which limits are not
// stated.
func gaps() []ahp.Gap {
	return []ahp.Gap{
		{Path: "events", Reason: "a message has at most 16 MiB and a depth of 128"},
		{Path: "events.config.change", Reason: "the permission mode; no other setting changes within a session"},
		{Path: "events.context.compact", Reason: "summaries of the older part; an old result that a line stands for is not announced"},
		{Path: "events.task.change", Reason: "the entries of an agent's task list; commands and agents in the background are not in it"},
		{Path: "events.user.attention", Reason: "where there is somebody to ask: never in a headless run"},
		{Path: "events.user.elicitation", Reason: "form mode; a request in url mode is refused"},
		{Path: "events.workspace.change", Reason: "the working directory of later calls; a command itself has been there already. Roots don't change within a session"},
		{Path: "events.turn.finish.before", Reason: "where the model has not answered nothing but a message is accepted, and an interrupted turn ends with turn.end alone"},
		{Path: "events.turn.progress", Reason: "pieces are joined, at most four a second, and are as the model said them"},
		{Path: "events.tool.progress", Reason: "pieces are joined, at most four a second, with at most 64 KiB each; only commands stream"},
		{Path: "events.tool.batch.after.calls", Reason: "a call whose arguments could not be used, or that was never judged, is left out: it has no input"},
		{Path: "events.file.changed", Reason: "changes by the tools write and edit; what commands change isn't watched; of a text above 256 KiB there is size and hash"},
		{Path: "events.user.message.outbound", Reason: "the answer of a turn; what the model says beside its calls is held back from the user instead, and stands in the record"},
		{Path: "events.model.request.before.params", Reason: "the names of the tools; sampling and tool descriptions are left out"},
		{Path: "events.model.request.before.modify", Reason: "tool calls and their order can't be changed; the change holds for this request alone"},
		{Path: "native", Reason: "there is nothing beneath these events, so includeNative adds nothing"},
		{Path: "limits.minTimeoutMs", Reason: "no bound is set"},
		{Path: "limits.maxTimeoutMs", Reason: "no bound is set"},
		{Path: "authentication", Reason: "oauth by client credentials; nobody can be asked to log in"},
		{Path: "usage", Reason: "tokens as the provider reports them; without a report there is no usage, and never a cost"},
	}
}
