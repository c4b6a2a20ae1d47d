// Package sandbox turns a command into a confined one.
//
// A Plan is one back end that was tried and works; Confine rewrites a proc.Spec so
// that the back end runs it. Nothing is started by Confine, and nothing but the
// kernel holds the confinement once the command runs.
//
// In tier "process" (bubblewrap) it guarantees: only the roots and a private
// temporary folder can be written; protected paths inside the roots can't be
// changed, replaced or moved away; hidden paths and the home folder can't be read,
// but for the home paths that were listed; without Network there is no network,
// abstract Unix sockets included; the command has no privileges and can gain none,
// sees no process but its own, and ends with this process. What is mounted in a root is
// compared with what was meant before the command runs, so that another command that
// replaces a path there meanwhile wins nothing but that this one doesn't run.
//
// It never downgrades by itself: a tier that is not available is an error that
// says what was tried.
//
// Do not assume that a file which the sandbox can read is harmless to read: all of
// the system outside the home folder stays readable unless hidden. Nor that the
// kernel is a boundary against its own bugs; nor that no empty file or folder of a
// protected or hidden path's name is made where such a replaced path leads. What a plan does not hold is what
// Plan.Gaps says.
package sandbox

import (
	"fmt"
	"strings"

	"github.com/abhed/abhed/internal/proc"
)

// Tier is how strongly a command is confined. The zero Tier is no tier; the others
// are ordered (spec/abhed.md, Sandbox).
type Tier uint8

const (
	// TierNone runs the command as it is.
	TierNone Tier = iota + 1
	// TierProcess confines the command by means of the kernel's namespaces.
	TierProcess
	// TierContainer runs the command in a container of its own.
	TierContainer
)

// String returns the name that ParseTier reads.
func (t Tier) String() string {
	switch t {
	case TierNone:
		return "none"
	case TierProcess:
		return "process"
	case TierContainer:
		return "container"
	}
	return "unset"
}

// ParseTier returns the tier of that name.
func ParseTier(name string) (Tier, error) {
	for t := TierNone; t <= TierContainer; t++ {
		if t.String() == name {
			return t, nil
		}
	}
	return 0, fmt.Errorf("unknown sandbox tier %q; the tiers are none, process and container", name)
}

// Policy says what a confined command may do. All paths are absolute.
type Policy struct {
	// Roots are existing folders that can be written; none is a home itself.
	Roots []string
	// Protected are read-only even inside a root. One that doesn't exist can't be
	// made by the command: an empty read-only file is put there, or a folder if the
	// path ends in a slash, and its empty place stays behind in the root.
	Protected []string
	// Hidden are files and folders that can't be read. Missing ones are skipped.
	Hidden []string
	// HomePaths are the files and folders of the home that can be read. Missing
	// ones are skipped.
	HomePaths []string
	// Network leaves the network, and with it abstract Unix sockets, as it is.
	Network bool
	// TmpDir is an existing folder that becomes /tmp, and stays reachable under its
	// own path, which TMPDIR names. Empty means an empty /tmp for each command. It
	// must not contain a root, a protected or a hidden path.
	TmpDir string
	// MaxMemory is how many bytes of private memory one process may use; zero means
	// 8 GiB, a negative value no limit.
	MaxMemory int64
	// MaxProcesses is how many processes and threads the command may have at a
	// time; zero means 4096, a negative value no limit. It doesn't bind root.
	MaxProcesses int
}

const (
	defaultMemory    = 8 << 30
	defaultProcesses = 4096
)

// Plan is a back end that is known to work here. Get one from Report.Plan; the
// zero Plan confines nothing and refuses everything. A Plan is immutable.
type Plan struct {
	tier    Tier
	bwrap   string // program, for TierProcess
	prlimit string // program, or "" if there is none
	root    bool   // this process runs as root
}

// Tier returns the tier that the plan holds.
func (p Plan) Tier() Tier { return p.tier }

// Backend returns the name of what confines: "bubblewrap", or "none".
func (p Plan) Backend() string {
	if p.tier == TierProcess {
		return "bubblewrap"
	}
	return "none"
}

// Gaps says, in sentences for the user, what the plan does not stop.
func (p Plan) Gaps() []string {
	if p.tier != TierProcess {
		return []string{"Nothing is confined: commands can do whatever this user can."}
	}
	gaps := []string{
		"Files outside the home folder that this user can read stay readable unless a rule denies it.",
		"Services that listen on a Unix socket outside /run, /tmp and the home folder can be reached.",
	}
	switch {
	case p.prlimit == "":
		gaps = append(gaps, "Memory and the number of processes are not limited: the program prlimit is missing.")
	case p.root:
		gaps = append(gaps, "The number of processes is not limited, because the kernel exempts root.")
	}
	return gaps
}

// Confine returns spec changed so that the plan's back end runs it under policy.
// Environment, streams, name and grace stay; TMPDIR is set. It looks at the file
// system, since what exists decides what must be mounted, and changes nothing. An
// error is a *PolicyError or a *proc.StartError, and then the command must not run.
func (p Plan) Confine(spec proc.Spec, policy Policy) (proc.Spec, error) {
	switch p.tier {
	case TierNone:
		return spec, nil
	case TierProcess:
		return p.bubblewrap(spec, policy)
	}
	return proc.Spec{}, &PolicyError{What: "plan", Reason: "no sandbox tier was chosen; detect one first"}
}

// PolicyError says why a policy can't be enforced. It is an operational failure:
// the command has not run.
type PolicyError struct {
	// What is the part of the policy, as "root" or "protected path".
	What string
	// Path is the path in question, or "".
	Path string
	// Reason says what is wrong and what would be right.
	Reason string
}

// Error returns part, path and reason.
func (e *PolicyError) Error() string {
	if e.Path == "" {
		return fmt.Sprintf("sandbox: %s: %s", e.What, e.Reason)
	}
	return fmt.Sprintf("sandbox: %s %q: %s", e.What, e.Path, e.Reason)
}

// UnavailableError says that no back end holds the tier that is asked for.
type UnavailableError struct {
	// Tier is what was asked for.
	Tier Tier
	// Tried says for each back end that was looked at why it can't be used.
	Tried []string
}

// Error names the tier, what was tried and what to do.
func (e *UnavailableError) Error() string {
	return fmt.Sprintf("sandbox tier %q is not available here: %s. Install what is missing, or accept a lower tier with --min-tier",
		e.Tier, strings.Join(e.Tried, "; "))
}
