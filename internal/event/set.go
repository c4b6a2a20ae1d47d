package event

// kind is one row of the closed set: a type and how its payload is made.
type kind struct {
	typ  Type
	make func() Payload
}

// kinds is the closed set, in the order in which a reader meets the types. A
// new payload is a row here, a Type constant, and the two methods below.
var kinds = []kind{
	{TypeSessionStarted, func() Payload { return new(SessionStarted) }},
	{TypeSessionResumed, func() Payload { return new(SessionResumed) }},
	{TypeSessionEnded, func() Payload { return new(SessionEnded) }},
	{TypeRulesSet, func() Payload { return new(RulesSet) }},
	{TypeUserMessage, func() Payload { return new(UserMessage) }},
	{TypeTurnStarted, func() Payload { return new(TurnStarted) }},
	{TypeTurnEnded, func() Payload { return new(TurnEnded) }},
	{TypeModelRequested, func() Payload { return new(ModelRequested) }},
	{TypeModelResponded, func() Payload { return new(ModelResponded) }},
	{TypeModelFailed, func() Payload { return new(ModelFailed) }},
	{TypeDecision, func() Payload { return new(Decision) }},
	{TypeApproval, func() Payload { return new(Approval) }},
	{TypeToolStarted, func() Payload { return new(ToolStarted) }},
	{TypeToolEnded, func() Payload { return new(ToolEnded) }},
	{TypeExtensionChanged, func() Payload { return new(ExtensionChanged) }},
	{TypeExtensionLogged, func() Payload { return new(ExtensionLogged) }},
	{TypeBackendFailed, func() Payload { return new(BackendFailed) }},
	{TypeHooksDecided, func() Payload { return new(HooksDecided) }},
	{TypeNotice, func() Payload { return new(Notice) }},
	{TypeRecordRepaired, func() Payload { return new(RecordRepaired) }},
	{TypeHeadSigned, func() Payload { return new(HeadSigned) }},
	{TypeApprovalRequested, func() Payload { return new(ApprovalRequested) }},
	{TypeQuestionRequested, func() Payload { return new(QuestionRequested) }},
	{TypeQuestionAnswered, func() Payload { return new(QuestionAnswered) }},
	{TypeContextReduced, func() Payload { return new(ContextReduced) }},
	{TypeModelSwitched, func() Payload { return new(ModelSwitched) }},
	{TypeModeChanged, func() Payload { return new(ModeChanged) }},
	{TypeAgentStarted, func() Payload { return new(AgentStarted) }},
	{TypeAgentEnded, func() Payload { return new(AgentEnded) }},
	{TypeServerChanged, func() Payload { return new(ServerChanged) }},
	{TypeRunEnded, func() Payload { return new(RunEnded) }},
	{TypeSessionForked, func() Payload { return new(SessionForked) }},
}

// Types returns the closed set of event types, in a fixed order. The slice is
// the caller's.
func Types() []Type {
	types := make([]Type, len(kinds))
	for i, k := range kinds {
		types[i] = k.typ
	}
	return types
}

// New returns an empty payload of type t, or nil if t isn't in the closed set.
func New(t Type) Payload {
	for _, k := range kinds {
		if k.typ == t {
			return k.make()
		}
	}
	return nil
}

// Type returns TypeSessionStarted.
func (*SessionStarted) Type() Type { return TypeSessionStarted }

// Type returns TypeSessionResumed.
func (*SessionResumed) Type() Type { return TypeSessionResumed }

// Type returns TypeSessionEnded.
func (*SessionEnded) Type() Type { return TypeSessionEnded }

// Type returns TypeRulesSet.
func (*RulesSet) Type() Type { return TypeRulesSet }

// Type returns TypeUserMessage.
func (*UserMessage) Type() Type { return TypeUserMessage }

// Type returns TypeTurnStarted.
func (*TurnStarted) Type() Type { return TypeTurnStarted }

// Type returns TypeTurnEnded.
func (*TurnEnded) Type() Type { return TypeTurnEnded }

// Type returns TypeModelRequested.
func (*ModelRequested) Type() Type { return TypeModelRequested }

// Type returns TypeModelResponded.
func (*ModelResponded) Type() Type { return TypeModelResponded }

// Type returns TypeModelFailed.
func (*ModelFailed) Type() Type { return TypeModelFailed }

// Type returns TypeDecision.
func (*Decision) Type() Type { return TypeDecision }

// Type returns TypeApproval.
func (*Approval) Type() Type { return TypeApproval }

// Type returns TypeToolStarted.
func (*ToolStarted) Type() Type { return TypeToolStarted }

// Type returns TypeToolEnded.
func (*ToolEnded) Type() Type { return TypeToolEnded }

// Type returns TypeExtensionChanged.
func (*ExtensionChanged) Type() Type { return TypeExtensionChanged }

// Type returns TypeExtensionLogged.
func (*ExtensionLogged) Type() Type { return TypeExtensionLogged }

// Type returns TypeBackendFailed.
func (*BackendFailed) Type() Type { return TypeBackendFailed }

// Type returns TypeHooksDecided.
func (*HooksDecided) Type() Type { return TypeHooksDecided }

// Type returns TypeNotice.
func (*Notice) Type() Type { return TypeNotice }

// Type returns TypeRecordRepaired.
func (*RecordRepaired) Type() Type { return TypeRecordRepaired }

// Type returns TypeHeadSigned.
func (*HeadSigned) Type() Type { return TypeHeadSigned }

// Type returns TypeApprovalRequested.
func (*ApprovalRequested) Type() Type { return TypeApprovalRequested }

// Type returns TypeQuestionRequested.
func (*QuestionRequested) Type() Type { return TypeQuestionRequested }

// Type returns TypeQuestionAnswered.
func (*QuestionAnswered) Type() Type { return TypeQuestionAnswered }

// Type returns TypeContextReduced.
func (*ContextReduced) Type() Type { return TypeContextReduced }

// Type returns TypeModelSwitched.
func (*ModelSwitched) Type() Type { return TypeModelSwitched }

// Type returns TypeModeChanged.
func (*ModeChanged) Type() Type { return TypeModeChanged }

// Type returns TypeAgentStarted.
func (*AgentStarted) Type() Type { return TypeAgentStarted }

// Type returns TypeAgentEnded.
func (*AgentEnded) Type() Type { return TypeAgentEnded }

// Type returns TypeServerChanged.
func (*ServerChanged) Type() Type { return TypeServerChanged }

// Type returns TypeRunEnded.
func (*RunEnded) Type() Type { return TypeRunEnded }

// Type returns TypeSessionForked.
func (*SessionForked) Type() Type { return TypeSessionForked }

// Type returns the type that the record names.
func (u *Unknown) Type() Type { return u.Kind }

// The methods below close the set of payloads.

func (*SessionStarted) payload()    {}
func (*SessionResumed) payload()    {}
func (*SessionEnded) payload()      {}
func (*RulesSet) payload()          {}
func (*UserMessage) payload()       {}
func (*TurnStarted) payload()       {}
func (*TurnEnded) payload()         {}
func (*ModelRequested) payload()    {}
func (*ModelResponded) payload()    {}
func (*ModelFailed) payload()       {}
func (*Decision) payload()          {}
func (*Approval) payload()          {}
func (*ToolStarted) payload()       {}
func (*ToolEnded) payload()         {}
func (*ExtensionChanged) payload()  {}
func (*ExtensionLogged) payload()   {}
func (*BackendFailed) payload()     {}
func (*HooksDecided) payload()      {}
func (*Notice) payload()            {}
func (*RecordRepaired) payload()    {}
func (*HeadSigned) payload()        {}
func (*ApprovalRequested) payload() {}
func (*QuestionRequested) payload() {}
func (*QuestionAnswered) payload()  {}
func (*ContextReduced) payload()    {}
func (*ModelSwitched) payload()     {}
func (*ModeChanged) payload()       {}
func (*AgentStarted) payload()      {}
func (*AgentEnded) payload()        {}
func (*RunEnded) payload()          {}
func (*SessionForked) payload()     {}
func (*ServerChanged) payload()     {}
func (*Unknown) payload()           {}
