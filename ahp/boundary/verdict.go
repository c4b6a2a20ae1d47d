package boundary

import (
	"fmt"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/harness"
)

// Status says what came of an operation. The set is closed.
type Status uint8

// The statuses. Only Passed, Ran and Supplied let a harness go on with a result.
const (
	// None is the zero value: nothing happened, and nothing is allowed.
	None Status = iota
	// Passed: nothing stands against an operation that has no executor here.
	Passed
	// Ran: the executor ran and succeeded.
	Ran
	// Failed: the executor ran and returned an error.
	Failed
	// Supplied: a backend gave the result, and the executor did not run.
	Supplied
	// Withheld: there is a result, which must not be used, since a backend was to
	// check it and couldn't. What the executor did isn't undone.
	Withheld
	// Denied: a backend denied, or a required one couldn't be asked. Nothing ran.
	Denied
	// Refused: an approval was asked for and not given, or the executor returned a
	// *Refusal. Nothing ran.
	Refused
	// Stopped: a backend stopped the turn. Nothing ran.
	Stopped
	// Interrupted: the call was cancelled. What had not begun did not run.
	Interrupted
)

// String returns the status in one or two lower-case words.
func (s Status) String() string {
	names := [...]string{"none", "passed", "ran", "failed", "supplied", "withheld", "denied", "refused", "stopped", "interrupted"}
	if int(s) < len(names) {
		return names[s]
	}
	return fmt.Sprintf("status %d", s)
}

// Verdict is what every boundary call comes to, besides its own result.
type Verdict struct {
	Status Status
	// Executed tells that the executor was called and did not refuse: there may be
	// effects in the world, whatever the status is.
	Executed bool
	// Reason says why there is no result; a model may read it.
	Reason string
	// By is who denied, stopped or supplied; zero for nobody.
	By ahp.SubscriptionID
	// Notices are messages for the user, in order.
	Notices []string
	// Injections are what backends want to add to the model's context, in order. They
	// count whatever the status is.
	Injections []*ahp.Inject
	// Stop tells that the turn must end: no further work of the model. StopReason
	// says why.
	Stop       bool
	StopReason string
	// Continue tells that one more step was asked for and paid for, with the
	// Instructions for it, which may be none.
	Continue     bool
	Instructions []string
	// Err is what the executor returned. It is local: it isn't for a model as it is.
	Err error
	// Outcomes are what the interceptors came to, in the order of the events.
	Outcomes []*harness.Outcome
}

// OK reports whether there is a result to go on with, or nothing stands against
// going on.
func (v *Verdict) OK() bool { return v.Status == Passed || v.Status == Ran || v.Status == Supplied }

// seal makes sure that an error leaves a status that allows nothing.
func (v *Verdict) seal(err error) {
	switch {
	case err == nil || !v.OK():
	case v.Executed:
		v.Status, v.Reason = Withheld, reasonWithheld
	default:
		v.Status = None
	}
}

// refused reports whether the operation was refused before it began.
func (v *Verdict) refused() bool { return v.Status == Denied || v.Status == Refused }

// Injected returns the messages that were injected for that time, in order.
func (v *Verdict) Injected(at ahp.Delivery) []ahp.Message {
	var out []ahp.Message
	for _, i := range v.Injections {
		if i.DeliverAt == at {
			out = append(out, i.Messages...)
		}
	}
	return out
}

// Refusal is what an executor returns where the harness's own rules refuse the
// operation: it has not begun. Reason may be read by a model.
type Refusal struct{ Reason string }

// Error returns the reason.
func (r *Refusal) Error() string { return "refused: " + r.Reason }

const (
	reasonApproval    = "The operation needs an approval that was not given."
	reasonInterrupted = "The call was interrupted."
	reasonWithheld    = "The result was withheld: a required policy check of it could not be completed."
	reasonFailed      = "The operation failed."
)

// judged takes what the interceptors came to before an operation into v, and tells
// whether approval is still to be asked for. The status is Passed or Supplied where
// nothing else stands against it.
func (v *Verdict) judged(out *harness.Outcome) (approve bool) {
	v.By = ahp.SubscriptionID{}
	switch {
	case out.Interrupted:
		v.Status, v.Reason = Interrupted, reasonInterrupted
	case out.Permission == ahp.PermissionDeny:
		v.Status, v.Reason = Denied, harness.SyntheticReason
		if d := out.Denial(); d != nil {
			v.By, v.Reason = d.By, d.Reason
		}
		v.stopped(out)
	case out.Flow == ahp.FlowStateStop:
		v.Status, v.By, v.Reason = Stopped, out.StoppedBy, out.StopReason
		v.stopped(out)
	case out.Candidate != nil:
		v.Status, v.By = Supplied, out.CandidateBy
		return out.Permission == ahp.PermissionAsk
	default:
		v.Status = Passed
		return out.Permission == ahp.PermissionAsk
	}
	return false
}

// stopped takes a stop of the turn into v.
func (v *Verdict) stopped(out *harness.Outcome) {
	if out.Flow == ahp.FlowStateStop && !v.Stop {
		v.Stop, v.StopReason = true, out.StopReason
	}
}

// checked takes what the interceptors came to about a result into v, and tells
// whether the result may be used.
func (v *Verdict) checked(out *harness.Outcome) bool {
	switch {
	case out.Interrupted:
		if !v.refused() {
			v.Status, v.Reason = Interrupted, reasonInterrupted
		}
		return false
	case out.Permission == ahp.PermissionDeny:
		v.stopped(out)
		if !v.refused() {
			v.Status, v.Reason = Withheld, reasonWithheld
		}
		return false
	}
	v.stopped(out)
	return true
}
