package conformance

import (
	"context"
	"slices"
)

// Role is the role of the peer under test.
type Role string

// The roles.
const (
	RoleBackend Role = "backend"
	RoleHarness Role = "harness"
)

// Binding is a way in which the two ends are joined (§16, §17).
type Binding string

// The bindings.
const (
	StdioPersistent Binding = "stdio"
	StdioPerEvent   Binding = "stdio-per-event"
	HTTP            Binding = "http"
)

// Profile is a set of requirements that a claim names (§25).
type Profile string

// The profiles.
const (
	ProfileBase             Profile = "base"
	ProfileToolInterception Profile = "tool-interception"
	ProfileObservation      Profile = "lifecycle-observation"
	ProfileStdio            Profile = "stdio"
	ProfileHTTP             Profile = "http"
)

// Level is the keyword of a requirement: what breaks a MUST or a MUST NOT fails,
// what breaks a SHOULD warns.
type Level string

// The levels.
const (
	Must    Level = "MUST"
	MustNot Level = "MUST NOT"
	Should  Level = "SHOULD"
)

// Check is one thing that the suite does and looks at. Its id is stable: baselines
// and reports use it.
type Check struct {
	ID string `json:"id"`
	// About says in a sentence what a peer has to do.
	About string `json:"about"`
	// Requirements are the ids of what the check stands for; see Requirements.
	Requirements []string `json:"requirements"`
	Level        Level    `json:"level"`
	Role         Role     `json:"role"`
	Profile      Profile  `json:"profile"`
	// Bindings says where the check makes sense.
	Bindings []Binding `json:"bindings"`
	// DependsOn names checks without which this one says nothing: if one of them
	// fails, this one is blocked.
	DependsOn []string `json:"dependsOn,omitempty"`
}

// Checks returns the checks of a role in the order in which they run. A check
// comes after those that it depends on.
func Checks(role Role) []Check {
	var out []Check
	switch role {
	case RoleBackend:
		for _, s := range backendChecks() {
			out = append(out, s.Check)
		}
	case RoleHarness:
		for _, s := range harnessChecks() {
			out = append(out, s.Check)
		}
	}
	return out
}

// scenario is a check with what it does; E is what the checks of a role have to
// work with.
type scenario[E any] struct {
	Check
	// run returns nil if the peer passes, what probe.failf or probe.notApplicable
	// returns, or any other error, which is a fault of the suite.
	run func(ctx context.Context, p *probe, env E) error
}

// concerns reports whether the check makes sense with binding b.
func (c *Check) concerns(b Binding) bool { return slices.Contains(c.Bindings, b) }

// everywhere lists all bindings.
func everywhere() []Binding { return []Binding{StdioPersistent, StdioPerEvent, HTTP} }
