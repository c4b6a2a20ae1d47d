package ahp

// Permission is the pending permission of an operation. Its order of precedence
// is none, allow, ask, deny (§11).
type Permission string

// The permissions.
const (
	PermissionNone  Permission = "none"
	PermissionAllow Permission = "allow"
	PermissionAsk   Permission = "ask"
	PermissionDeny  Permission = "deny"
)

// Stricter reports whether p takes precedence over q. The empty Permission counts
// as none.
func (p Permission) Stricter(q Permission) bool { return p.rank() > q.rank() }

func (p Permission) rank() int {
	switch p {
	case PermissionAllow:
		return 1
	case PermissionAsk:
		return 2
	case PermissionDeny:
		return 3
	}
	return 0
}

// FlowState is the pending flow of a turn: none, continue, stop.
type FlowState string

// The flow states.
const (
	FlowStateNone     FlowState = "none"
	FlowStateStop     FlowState = "stop"
	FlowStateContinue FlowState = "continue"
)

// State is the pending decision that a request reports to a backend (§12). It
// carries no authority.
type State struct {
	Permission Permission `json:"permission" ahp:"req,enum=none|allow|ask|deny"`
	// Candidate is the supplied result so far, or nil.
	Candidate    *Candidate `json:"candidate" ahp:"req,null"`
	Flow         FlowState  `json:"flow" ahp:"enum=none|stop|continue"`
	Instructions []string   `json:"instructions" ahp:"each1"`
	Injections   []Raw      `json:"injections"`
	Unknown      `json:"-"`
}

// Candidate is a supplied result; its Value may be null.
type Candidate struct {
	Value      Raw `json:"value" ahp:"req"`
	Provenance Raw `json:"provenance" ahp:"obj"`
	Unknown    `json:"-"`
}

// Validate reports how s breaks the rules of a state, or nil.
func (s *State) Validate() error {
	_, err := encodeChecked(s)
	return err
}
