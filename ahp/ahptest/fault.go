package ahptest

import (
	"context"
	"io"

	"github.com/abhed/abhed/ahp/ahptest/fault"
)

// Carrier is a way in which a fake backend can be reached.
type Carrier = fault.Carrier

// The carriers.
const (
	InProcess       = fault.InProcess
	StdioPersistent = fault.StdioPersistent
	StdioPerEvent   = fault.StdioPerEvent
	HTTP            = fault.HTTP
)

// Carriers returns all carriers.
func Carriers() []Carrier { return fault.Carriers() }

// LateBy is how long the fault "late" holds its reply back.
const LateBy = fault.LateBy

// Fault is one way in which a backend can misbehave when it is asked, for tests.
type Fault struct{ fault.Fault }

// Faults returns the menu. The faults concern a request for a decision; those of a
// notification are in NotifyFaults.
func Faults() []Fault { return wrap(fault.Menu()) }

// NotifyFaults returns the faults of a notification's delivery.
func NotifyFaults() []Fault { return wrap(fault.NotifyMenu()) }

func wrap(menu []fault.Fault) []Fault {
	out := make([]Fault, len(menu))
	for i, f := range menu {
		out[i] = Fault{f}
	}
	return out
}

// FindFault returns the fault of that name.
func FindFault(name string) (Fault, bool) {
	f, ok := fault.Find(name)
	return Fault{f}, ok
}

// RunFault misbehaves on in and out like a stdio backend with the fault and
// returns the exit code. It reads until in ends.
func RunFault(f Fault, in io.Reader, out, stderr io.Writer) int {
	return f.Run(context.Background(), in, out, stderr)
}
