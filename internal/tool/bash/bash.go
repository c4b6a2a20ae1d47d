// Package bash is the tool that runs shell commands.
//
// It guarantees that a command runs in the sandbox that the session has, in a
// process group of its own, without input and without a terminal; that it ends at
// its time limit or with the context, with every process it started; that a
// process which keeps the output open does not hold up the result; and that the
// result is bounded text, with the exact exit code, and says what was left out.
// The working directory of a command is that of the next one.
//
// Do not assume that anything else of the shell lives on, nor that the output is
// harmless: it is whatever the command printed.
package bash

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/proc"
	"github.com/abhed/abhed/internal/sandbox"
	"github.com/abhed/abhed/internal/tool"
)

// Options are the bounds of the tool. The zero value is the usual.
type Options struct {
	// Policy is what commands may do in the sandbox. The roots of a call are added to
	// its roots.
	Policy sandbox.Policy
	// Before, if set, is asked before each command for paths that it may not read and
	// paths that it may not change, beside those of Policy. After an error the command
	// isn't started.
	Before func() (hidden, protected []string, err error)
	// After, if set, is called when a command and everything it started have ended;
	// what it returns, unless empty, is added to the result. For a command in the
	// background it is called when that has ended, unless Guard is set. It is never
	// called twice at a time, nor together with Before.
	After func() string
	// Guard, if set, is asked before each command in the background in place of Before
	// and After. After an error the command isn't started.
	Guard func() (Guard, error)
	// Jobs, if set, takes the commands that are to run in the background; without it
	// there is no argument for that. It is the caller's to close.
	Jobs *Jobs
	// Env is the complete environment; nil means proc.Environ plus settings that keep
	// programs from paging and asking.
	Env []string
	// Timeout is the time limit of a command that names none; zero means two minutes.
	Timeout time.Duration
	// MaxTimeout is the longest limit that a command may ask for; zero means ten
	// minutes.
	MaxTimeout time.Duration
	// Head and Tail are how many bytes of the output's begin and end are kept; zero
	// means 16 KiB each.
	Head, Tail int
	// OutputDir is the folder for the full output of a command whose output is cut; nil
	// keeps none. The files are the owner's to remove. Commands may be able to write there
	// and put another folder, or a link, in its place: the files are made in the one that
	// was opened.
	OutputDir *os.Root
	// Grace is how long a command may take to end after SIGTERM; zero means half a
	// second. The sandbox may not pass the signal on.
	Grace time.Duration
}

// Tool is the bash tool. Make it with New.
type Tool struct {
	plan  sandbox.Plan
	o     Options
	shell string
	bash  bool // the shell is bash

	asking sync.Mutex // lets one at a time ask Before and After
}

var _ tool.Tool = (*Tool)(nil)

// maxCommand bounds a command: the system takes 128 KiB in one argument.
const maxCommand = 100 << 10

// New returns the tool, which runs every command under plan. Without bash it uses
// sh; with neither it fails.
func New(plan sandbox.Plan, o Options) (*Tool, error) {
	o.Timeout = cmp.Or(o.Timeout, 2*time.Minute)
	o.MaxTimeout = max(cmp.Or(o.MaxTimeout, 10*time.Minute), o.Timeout)
	o.Head, o.Tail = cmp.Or(o.Head, 16<<10), cmp.Or(o.Tail, 16<<10)
	o.Grace = cmp.Or(o.Grace, 500*time.Millisecond)
	if o.Env == nil {
		o.Env = proc.Environ([]string{"TERM=dumb", "PAGER=cat", "GIT_PAGER=cat", "GIT_TERMINAL_PROMPT=0"})
	}
	t := &Tool{plan: plan, o: o, bash: true}
	var err error
	if t.shell, err = exec.LookPath("bash"); err != nil {
		t.bash = false
		if t.shell, err = exec.LookPath("sh"); err != nil {
			return nil, fmt.Errorf("tool bash: neither bash nor sh is in PATH: %w", err)
		}
	}
	return t, nil
}

type args struct {
	Command     string `json:"command"`
	Description string `json:"description"`
	TimeoutMS   int64  `json:"timeout_ms"`
	Background  bool   `json:"background"`
}

const schema = `{
  "type": "object",
  "properties": {
    "command": {"type": "string", "minLength": 1, "description": "The command line, as for a shell. It may have several lines."},
    "description": {"type": "string", "description": "What the command does, in a few words, for the person who may be asked to approve it."},
    "timeout_ms": {"type": "integer", "minimum": 1, "maximum": %d, "description": "The time limit in milliseconds. Default %d."}%s
  },
  "required": ["command"],
  "additionalProperties": false
}`

const backgroundSchema = `,
    "background": {"type": "boolean", "description": "Leave the command running and return at once, for servers and long builds. It has no time limit unless timeout_ms is given; its output and its end are to be had from the tool jobs; the working directory stays. Default false."}`

// Spec returns the tool's description for the model.
func (t *Tool) Spec() tool.Spec {
	shell := "bash"
	if !t.bash {
		shell = "sh (bash is not installed)"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Run a command in %s. Every call is a new shell: only the working directory is kept, variables and functions are not. "+
		"There is no input and no terminal, so nothing can ask questions. The output of both streams is returned in order, its middle left out if it is long, with the exit code, "+
		"which for a pipeline is that of its last command (pipefail is off). The command and everything it started end at the time limit; "+
		"processes left in the background end with the call.", shell)
	if t.plan.Tier() >= sandbox.TierProcess {
		b.WriteString(" It runs in a sandbox: only the workspace and the temporary folder can be written, most of the home folder is not there")
		if !t.o.Policy.Network {
			b.WriteString(", and there is no network")
		}
		b.WriteString(".")
	}
	b.WriteString(" To read, change or find files use the tools for that.")
	more := ""
	if t.o.Jobs != nil {
		more = backgroundSchema
	}
	return tool.Spec{
		Name: "bash", Version: "1", Fixed: true, Description: b.String(),
		Schema: fmt.Appendf(nil, schema, t.o.MaxTimeout.Milliseconds(), t.o.Timeout.Milliseconds(), more),
	}
}

// Declare says that the call is about its command and may change anything.
func (t *Tool) Declare(raw []byte) policy.Declaration {
	a, _ := tool.Decode[args](raw) // the schema has been checked
	return policy.Declaration{Kind: policy.SubjectCommand, Subject: a.Command, Mutates: true}
}

// Run runs the granted command.
func (t *Tool) Run(ctx context.Context, g tool.Grant) (tool.Result, error) {
	a, err := tool.Decode[args](g.Args())
	if err != nil {
		return tool.Result{}, err
	}
	switch {
	case len(a.Command) > maxCommand:
		return tool.Fail(fmt.Sprintf("The command has %d bytes; at most %d are possible. Write it to a file and run that.", len(a.Command), maxCommand)), nil
	case strings.IndexByte(a.Command, 0) >= 0:
		return tool.Fail("The command holds a NUL byte, which no command line can."), nil
	}
	if a.Background {
		return t.background(ctx, g, a), nil
	}
	limit := t.o.Timeout
	if a.TimeoutMS > 0 {
		limit = min(time.Duration(a.TimeoutMS)*time.Millisecond, t.o.MaxTimeout)
	}
	r := &running{tool: t, grant: g, dir: g.Call().WorkDir, limit: limit, policy: t.policy(g)}
	hidden, held, err := t.before()
	if err != nil {
		return tool.Fail(fmt.Sprintf("The command was not started: %v.", err)), nil
	}
	r.policy.Hidden = slices.Concat(t.o.Policy.Hidden, hidden)
	r.policy.Protected = slices.Concat(t.o.Policy.Protected, held)
	return r.run(ctx, a.Command)
}
