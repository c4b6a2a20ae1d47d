package harness

import (
	"errors"
	"fmt"
	"time"

	"github.com/abhed/abhed/ahp"
)

// HookFailure is news of an interceptor that could not be asked, or whose answer
// was refused.
type HookFailure struct {
	// By is for the local audit. The event names the backend alone (spec §28, A4).
	By ahp.SubscriptionID
	// Event is of type hook.failure, and its parent is the event that was judged. Its
	// reason says what kind of failure it was, in words of ours: it quotes neither the
	// backend nor the network.
	Event *ahp.Event
}

// HookFailures returns the news of every operational failure in the trace of o, in
// its order, for the host to send with ObserveOthers: telling the backend that
// failed may fail for the same reason. newID returns an event id that is unique for
// o.Event.Source; at is when the failures were seen. An interruption is none.
func HookFailures(o *ahp.Outcome, at time.Time, newID func() string) []HookFailure {
	var out []HookFailure
	for _, a := range o.Trace {
		if a.Kind != ahp.AnswerFailure || a.Failure == nil {
			continue
		}
		e := &ahp.Event{
			ID: newID(), Source: o.Event.Source, Type: ahp.HookFailure, Time: ahp.Timestamp(at),
			Session: o.Event.Session, Turn: o.Event.Turn, ParentEventID: o.Event.ID,
			Failure: &ahp.HookProblem{BackendID: a.By.Backend, Reason: reasonOf(a.Failure.Class), Policy: string(a.Policy)},
		}
		out = append(out, HookFailure{By: a.By, Event: e})
	}
	return out
}

// quoted is how many bytes of a reply that isn't JSON its failure quotes.
const quoted = 80

// replyFailure is the failure of a reply that was refused. Where it isn't one JSON
// value the start of it is quoted, for the local audit: a byte alone doesn't tell
// that a library printed a banner.
func replyFailure(reply []byte, refused error) *ahp.Failure {
	f := ahp.ReplyFailure(refused)
	var e *ahp.Error
	if !errors.As(refused, &e) || e.Kind != ahp.KindSyntax {
		return f
	}
	if len(reply) > quoted {
		f.Detail += fmt.Sprintf("; the reply starts with %q", reply[:quoted])
	} else {
		f.Detail += fmt.Sprintf("; the reply is %q", reply)
	}
	return f
}

// reasonOf says in a few words what a class of failure is.
func reasonOf(c ahp.FailureClass) string {
	switch c {
	case ahp.FailDeadline:
		return "deadline: no answer in time"
	case ahp.FailConnect:
		return "connect: the connection failed"
	case ahp.FailLaunch:
		return "launch: the process could not be started"
	case ahp.FailExit:
		return "exit: the process ended too early or with an error"
	case ahp.FailAuth:
		return "auth: a credential is missing or was refused"
	case ahp.FailHTTPStatus:
		return "http_status: an unexpected HTTP status"
	case ahp.FailMalformed:
		return "malformed: the reply was no valid message"
	case ahp.FailRPCError:
		return "rpc_error: the backend answered with an error"
	case ahp.FailIDMismatch:
		return "id_mismatch: the reply was to another request"
	case ahp.FailVersion:
		return "version: the revision isn't supported"
	case ahp.FailEvent:
		return "event: the event isn't supported"
	case ahp.FailEffect:
		return "effect: an effect was unknown, malformed or not advertised"
	case ahp.FailLate:
		return "late: the reply came after the deadline"
	case ahp.FailContent:
		return "content: content that the backend asks for could not be had"
	case ahp.FailShutdown:
		return "closed: the connection to the backend was closed"
	}
	return "unknown"
}
