package extension

import "fmt"

// The classes of failure, as event.Asked.Failure holds them.
const (
	failStart       = "start"        // the process could not be started
	failExit        = "exit"         // the process ended or closed a stream
	failTimeout     = "timeout"      // no reply in time
	failInvalid     = "invalid"      // what it wrote is no reply
	failTooLarge    = "too_large"    // the reply is over the bound
	failStep        = "out_of_step"  // it wrote unasked, or named another request
	failInterrupted = "interrupted"  // the caller's context ended; nobody is dead
	failClosed      = "closed"       // the host was closed
	failBug         = "internal_bug" // this program is at fault
)

// failure says why an extension could not be asked. It is never a refusal.
type failure struct {
	class string
	msg   string
}

// Error returns what happened.
func (f *failure) Error() string { return f.msg }

func invalidf(format string, a ...any) *failure {
	return &failure{class: failInvalid, msg: fmt.Sprintf(format, a...)}
}

// ours reports whether the extension isn't to blame, so that its OnFailure says
// nothing: the call must not run.
func (f *failure) ours() bool {
	return f.class == failInterrupted || f.class == failClosed || f.class == failBug
}
