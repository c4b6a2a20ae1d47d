package ahp

import "errors"

// FailureClass names an operational failure: a reason for which a backend could
// not be asked, or gave no valid answer in time (§14). An explicit denial is none
// of them.
type FailureClass string

// The classes of operational failure.
const (
	// FailDeadline: the deadline passed before a reply was accepted.
	FailDeadline FailureClass = "deadline"
	// FailConnect: a connection was refused, reset or lost.
	FailConnect FailureClass = "connect"
	// FailLaunch: the backend's process could not be started.
	FailLaunch FailureClass = "launch"
	// FailExit: the process ended before it replied, or with a nonzero status.
	FailExit FailureClass = "exit"
	// FailAuth: a credential is missing or was refused.
	FailAuth FailureClass = "auth"
	// FailHTTPStatus: an HTTP status other than the binding's.
	FailHTTPStatus FailureClass = "http_status"
	// FailMalformed: the reply is not one strict JSON-RPC response, has the wrong
	// media type, or is beyond a bound.
	FailMalformed FailureClass = "malformed"
	// FailRPCError: the backend answered with a JSON-RPC error.
	FailRPCError FailureClass = "rpc_error"
	// FailIDMismatch: the reply is to another request.
	FailIDMismatch FailureClass = "id_mismatch"
	// FailVersion: the revision is not supported by one side.
	FailVersion FailureClass = "version"
	// FailEvent: the backend doesn't support the event.
	FailEvent FailureClass = "event"
	// FailEffect: an effect is unknown, malformed, not advertised or conflicting.
	FailEffect FailureClass = "effect"
	// FailLate: a valid reply came after the deadline.
	FailLate FailureClass = "late"
	// FailContent: content that a subscription asks for could not be read, or not be
	// uploaded to its receiver.
	FailContent FailureClass = "content"
	// FailShutdown: the transport or the harness was already closed.
	FailShutdown FailureClass = "closed"
)

// FailureClasses returns every class.
func FailureClasses() []FailureClass {
	return []FailureClass{FailDeadline, FailConnect, FailLaunch, FailExit, FailAuth, FailHTTPStatus, FailMalformed,
		FailRPCError, FailIDMismatch, FailVersion, FailEvent, FailEffect, FailLate, FailContent, FailShutdown}
}

// Failure is an operational failure: "could not ask". Failure policy applies to
// it and to nothing else.
type Failure struct {
	Class FailureClass
	// Detail is for the local audit, never for a model: it may quote the backend.
	Detail string
	// Status is the HTTP status with FailHTTPStatus, and 0 otherwise.
	Status int
	// Final says that the same request would fail in the same way if it were sent
	// again soon, where the class alone doesn't: with FailConnect, that the server's
	// certificate isn't valid, or that it doesn't speak TLS.
	Final bool
	// Err is the cause, or nil.
	Err error
}

// Error returns class and detail.
func (f *Failure) Error() string {
	s := "ahp: " + string(f.Class)
	if f.Detail != "" {
		s += ": " + f.Detail
	}
	return s
}

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Err }

// AsFailure returns the Failure in err's chain, or nil.
func AsFailure(err error) *Failure {
	var f *Failure
	if errors.As(err, &f) {
		return f
	}
	return nil
}
