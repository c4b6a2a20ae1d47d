package policy

import (
	"fmt"
	"os"
	"os/exec"
)

// Input is what one evaluation judges.
type Input struct {
	// Call is the call as it would run. Its Roots and WorkDir are absolute; for a
	// command an empty WorkDir is one that isn't known.
	Call Call
	// Declaration is what the tool says of the call.
	Declaration Declaration
	Env         Env
	// Trace asks for the trace of all steps, which people read and no record needs:
	// judging again gives the same.
	Trace bool
}

// Env is what the judgement of a call depends on besides the call and the rules.
// It is JSON but for its functions, so that a record can keep it.
type Env struct {
	// Mode is the mode in force; zero behaves as ModePlan.
	Mode Mode `json:"mode"`
	// MaxMode is the least strict mode that is permitted; zero is no bound.
	MaxMode Mode `json:"max_mode,omitzero"`
	// Home is the home directory that "~" stands for; "" means that it is unknown.
	Home string `json:"home,omitzero"`
	// TierProcess reports a sandbox of at least tier "process".
	TierProcess bool `json:"tier_process,omitzero"`
	// NetworkOff reports that the sandbox has no network.
	NetworkOff bool `json:"network_off,omitzero"`
	// Writable are absolute directories outside the roots that the agent can
	// write, for example the one for temporary files.
	Writable []string `json:"writable,omitempty"`
	// Protected are the protected paths (gate.md §3).
	Protected Protected `json:"protected,omitzero"`
	// EnvHarmless are names of variables that an allowed command may set, besides
	// the built-in ones.
	EnvHarmless []string `json:"env_harmless,omitempty"`
	// Runners are programs, with subcommand where they have one, that run the
	// command in their arguments elsewhere: "ssh", "docker exec".
	Runners []string `json:"runners,omitempty"`

	// Getenv returns a variable of the environment that commands run in; nil means
	// os.Getenv.
	Getenv func(string) string `json:"-"`
	// LookPath finds a program in PATH; nil means exec.LookPath.
	LookPath func(string) (string, error) `json:"-"`
	// Resolve finds where a path lands; nil means to look at the file system. A
	// judgement of a recorded call sets it to answer from the record.
	Resolve func(workdir, given, home string) (PathForms, error) `json:"-"`
}

// Protected are absolute paths that no tool may touch; a directory covers all
// that is in it.
type Protected struct {
	Write []string `json:"write,omitempty"`
	Read  []string `json:"read,omitempty"`
}

func (e *Env) getenv(name string) string {
	if e.Getenv != nil {
		return e.Getenv(name)
	}
	return os.Getenv(name)
}

func (e *Env) lookPath(name string) (string, error) {
	if e.LookPath != nil {
		return e.LookPath(name)
	}
	return exec.LookPath(name)
}

// mode returns the mode in force under the bound.
func (e *Env) mode() Mode {
	if e.Mode == 0 {
		return ModePlan
	}
	return Strictest(e.Mode, e.MaxMode)
}

// Step is the stable name of a step of the evaluation (gate.md §2 step 4).
type Step string

// The steps in their order. StepPath stands before the first: a path that leads
// nowhere can't be judged and is refused.
const (
	StepPath        Step = "path"
	StepProtected   Step = "protected"
	StepDenyRule    Step = "deny_rule"
	StepPlanMode    Step = "plan_mode"
	StepDestructive Step = "destructive"
	StepUnjudgeable Step = "unjudgeable"
	StepAskRule     Step = "ask_rule"
	StepMode        Step = "mode"
	StepAllowRule   Step = "allow_rule"
	StepDefault     Step = "default"
)

// Result is the verdict of the rules on one call, and how it came about. It is
// encoded as JSON in the record and by `abhed policy explain --json`.
type Result struct {
	// Parts are the simple commands that may run, in order of appearance.
	Parts []Part `json:"parts,omitempty"`
	// Paths are the path of the call, or the targets of a command's redirections,
	// as they were resolved.
	Paths []PathForms `json:"paths,omitempty"`
	// Reason says to the model who decided, why, and what would be accepted.
	Reason string `json:"reason"`
	// Rule is the rule that decided, or nil. When several rules together allowed a
	// command it is the one of the first part.
	Rule *RuleRef `json:"rule,omitempty"`
	// Step is the step that decided.
	Step Step `json:"step"`
	// Trace has every step that was taken, in order; the last one decided. It is
	// there only if the Input asked for it.
	Trace   []TraceStep `json:"trace,omitempty"`
	Verdict Verdict     `json:"verdict"`
}

// Part is one simple command of a command line.
type Part struct {
	// Note says why no rule covers it, or "".
	Note string `json:"note,omitzero"`
	// Program is where its bare name was found in PATH, when that was asked.
	Program string `json:"program,omitzero"`
	// Rule is the allow rule that covers it, or nil.
	Rule *RuleRef `json:"rule,omitempty"`
	// Text is the command after quote removal; "…" stands for what isn't known
	// before it runs.
	Text string `json:"text"`
	// Via is the wrapper or construct that runs it, or "".
	Via string `json:"via,omitzero"`
	// Wrapper reports that what this part runs is a part of its own.
	Wrapper bool `json:"wrapper,omitzero"`
}

// TraceStep is one step of an evaluation.
type TraceStep struct {
	// Matched reports that this step decided.
	Matched bool `json:"matched,omitzero"`
	// Note says what was found.
	Note string `json:"note"`
	Step Step   `json:"step"`
}

// MarshalText encodes the verdict as its name.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText decodes the name of a verdict; "none" is the zero Verdict.
func (v *Verdict) UnmarshalText(b []byte) error {
	w := ParseVerdict(string(b))
	if w == 0 && string(b) != "none" {
		return fmt.Errorf("unknown verdict %q; expected allow, ask or deny", b)
	}
	*v = w
	return nil
}

var subjectNames = [...]string{"none", "command", "path", "url", "text"}

// String returns "none", "command", "path", "url" or "text".
func (k SubjectKind) String() string {
	if int(k) >= len(subjectNames) {
		return fmt.Sprintf("SubjectKind(%d)", uint8(k))
	}
	return subjectNames[k]
}

// MarshalText encodes the kind as its name.
func (k SubjectKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText decodes the name of a kind.
func (k *SubjectKind) UnmarshalText(b []byte) error {
	for i, n := range subjectNames {
		if n == string(b) {
			*k = SubjectKind(i)
			return nil
		}
	}
	return fmt.Errorf("unknown kind of subject %q; expected none, command, path, url or text", b)
}
