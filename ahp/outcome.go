package ahp

// SubscriptionID names one subscription of a registration: it is local to the
// harness and never on the wire.
type SubscriptionID struct {
	// Backend is the backend's id.
	Backend string
	// Index is the subscription's place within the backend, from 0.
	Index int
}

// Denial says who refused an operation, and why.
type Denial struct {
	By SubscriptionID
	// Reason may be shown to a model. That of a synthetic denial is generic.
	Reason string
	// Code is a reverse-DNS name, or "".
	Code string
	// Synthetic tells that nobody denied: the backend could not be asked, and its
	// policy is fail-closed.
	Synthetic bool
}

// AnswerKind says how a subscription answered.
type AnswerKind string

// The kinds of answers.
const (
	// AnswerEffects: a valid reply was accepted, perhaps without any effect.
	AnswerEffects AnswerKind = "effects"
	// AnswerFailure: an operational failure.
	AnswerFailure AnswerKind = "failure"
	// AnswerInterrupted: the operation was cancelled while it was pending.
	AnswerInterrupted AnswerKind = "interrupted"
)

// Answer is the trace of one subscription that was asked.
type Answer struct {
	By   SubscriptionID
	Kind AnswerKind
	// Effects holds what was accepted, in order.
	Effects []Effect
	// Changed tells that the effective value was another after the answer.
	Changed bool
	// Milliseconds is how long it took, from dispatch to acceptance.
	Milliseconds int64
	// Failure is set with AnswerFailure; Policy is what was applied then.
	Failure *Failure
	Policy  FailurePolicy
	// Content says why content that the subscription asks for wasn't shown to it; nil
	// if all was. It was asked all the same, unless it is the Failure too.
	Content *Failure
	// Attempts is how often the request was sent; 0 if it never was. Earlier says why
	// each attempt before the last failed, in order.
	Attempts int
	Earlier  []*Failure
}

// Outcome is what a chain of interceptors came to (§11). It is data: nothing in
// it permits anything, and what to do is the harness's business.
type Outcome struct {
	// Event is the effective event: the one that was dispatched, with every
	// accepted edit.
	Event *Event
	// Changed tells that the effective value differs from the dispatched one;
	// ChangedBy made the last change.
	Changed   bool
	ChangedBy SubscriptionID
	// Permission is none, allow, ask or deny.
	Permission Permission
	// Denials holds who denied, in order; the first is shown first.
	Denials []Denial
	// Candidate is the supplied result that is to be used if nothing forbids it.
	Candidate *Candidate
	// CandidateBy supplied it; zero if the harness itself did.
	CandidateBy SubscriptionID
	Flow        FlowState
	// StopReason is set with FlowStateStop by an effect.
	StopReason string
	StoppedBy  SubscriptionID
	// Instructions belong to accepted continuations.
	Instructions []string
	// Messages are for the user, in order.
	Messages []string
	// Injections are the accepted injections, in order.
	Injections []*Inject
	// Interrupted tells that the operation was cancelled: it must not run.
	Interrupted bool
	// Expired tells that the time for the whole call ran out. With Interrupted it was
	// the caller's own deadline that passed, where otherwise somebody cancelled the
	// call; without, the budget of the dispatch, and everybody not heard by then
	// counts as failed under its own policy (§14).
	Expired bool
	// Trace holds every subscription that was asked, in order.
	Trace []Answer
}

// Denial returns the first denial, or nil.
func (o *Outcome) Denial() *Denial {
	if len(o.Denials) == 0 {
		return nil
	}
	return &o.Denials[0]
}

// MayExecute reports whether nothing in o stands against executing the operation:
// no denial, no ask, no stop, no supplied result, no interruption. It is no
// permission; a harness applies its own rules as well (AHP-DEC-003). It is false
// for nil and for the zero Outcome, which is that of no dispatch.
func (o *Outcome) MayExecute() bool {
	return o != nil && o.Event != nil && !o.Interrupted && o.Flow != FlowStateStop && o.Flow != FlowStateContinue && o.Candidate == nil &&
		!o.Permission.Stricter(PermissionAllow)
}
