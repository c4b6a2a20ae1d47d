package event

// The methods below close the set of payloads.

func (*SessionStarted) Type() Type   { return TypeSessionStarted }
func (*SessionResumed) Type() Type   { return TypeSessionResumed }
func (*SessionEnded) Type() Type     { return TypeSessionEnded }
func (*RulesSet) Type() Type         { return TypeRulesSet }
func (*UserMessage) Type() Type      { return TypeUserMessage }
func (*TurnStarted) Type() Type      { return TypeTurnStarted }
func (*TurnEnded) Type() Type        { return TypeTurnEnded }
func (*ModelRequested) Type() Type   { return TypeModelRequested }
func (*ModelResponded) Type() Type   { return TypeModelResponded }
func (*ModelFailed) Type() Type      { return TypeModelFailed }
func (*Decision) Type() Type         { return TypeDecision }
func (*Approval) Type() Type         { return TypeApproval }
func (*ToolStarted) Type() Type      { return TypeToolStarted }
func (*ToolEnded) Type() Type        { return TypeToolEnded }
func (*ExtensionChanged) Type() Type { return TypeExtensionChanged }
func (*ExtensionLogged) Type() Type  { return TypeExtensionLogged }
func (*BackendFailed) Type() Type    { return TypeBackendFailed }
func (*Notice) Type() Type           { return TypeNotice }
func (*RecordRepaired) Type() Type   { return TypeRecordRepaired }
func (*HeadSigned) Type() Type       { return TypeHeadSigned }
func (u *Unknown) Type() Type        { return u.Kind }

func (*SessionStarted) payload()   {}
func (*SessionResumed) payload()   {}
func (*SessionEnded) payload()     {}
func (*RulesSet) payload()         {}
func (*UserMessage) payload()      {}
func (*TurnStarted) payload()      {}
func (*TurnEnded) payload()        {}
func (*ModelRequested) payload()   {}
func (*ModelResponded) payload()   {}
func (*ModelFailed) payload()      {}
func (*Decision) payload()         {}
func (*Approval) payload()         {}
func (*ToolStarted) payload()      {}
func (*ToolEnded) payload()        {}
func (*ExtensionChanged) payload() {}
func (*ExtensionLogged) payload()  {}
func (*BackendFailed) payload()    {}
func (*Notice) payload()           {}
func (*RecordRepaired) payload()   {}
func (*HeadSigned) payload()       {}
func (*Unknown) payload()          {}
