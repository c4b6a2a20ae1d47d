package extension

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/proc"
)

// OnFailure is what a dead extension means for what it would have judged, the
// call or result in hand included.
type OnFailure string

const (
	// Skip lets policy alone decide; it is what the zero OnFailure means.
	Skip OnFailure = "skip"
	// AskPerson forces an approval; a result is withheld.
	AskPerson OnFailure = "ask"
	// Block refuses the call; a result is withheld.
	Block OnFailure = "block"
)

// Bounds in force when a Config leaves them at zero.
const (
	DefaultTimeout       = 5 * time.Second
	DefaultInvokeTimeout = 120 * time.Second
)

// Config says how to run one extension. It is copied by Start.
type Config struct {
	// Name is the extension's identity, unique in a host.
	Name string
	// Command is the program, run directly and never through a shell.
	Command string
	// Args are the program's arguments.
	Args []string
	// Env is added to the small environment of proc.Environ, as NAME=value.
	Env []string
	// Dir is the working directory; empty means that of this process.
	Dir string
	// Events lists the events that it is asked about; empty means all. list_tools
	// is sent in any case.
	Events []string
	// Match narrows tool_call and permission_request; nil means all calls. It is
	// called from several goroutines at once.
	Match func(policy.Call, policy.Declaration) bool
	// Timeout bounds every request but invoke_tool; zero means DefaultTimeout.
	Timeout time.Duration
	// InvokeTimeout bounds invoke_tool; zero means DefaultInvokeTimeout.
	InvokeTimeout time.Duration
	// OnFailure is what its death means; empty means Skip.
	OnFailure OnFailure
	// Sandbox runs it confined by Options.Confine; without that it is dead from the
	// start, never run unconfined.
	Sandbox bool
}

// Options are the host's surroundings. The zero value records nothing.
type Options struct {
	// SessionID is sent with every request.
	SessionID string
	// Record stores extension.changed and extension.logged; nil drops them. It is
	// called from any goroutine and must not call the host. Its error is not acted
	// on here: a record that can't be written stops the gate at its own next write.
	Record func(event.Draft) error
	// Confine turns a process into a confined one, for Config.Sandbox.
	Confine func(proc.Spec) (proc.Spec, error)
	// Taken lists the tool names that are in use already.
	Taken []string
	// Now is the clock for latencies; nil means time.Now. Time-outs use real time.
	Now func() time.Time
	// trace sees each request before it is written and each reply that is whole.
	trace func(sent bool, line []byte)
}

// StartError says why a configuration of extensions can't be used as it is. It is
// the configuration's fault; a process that doesn't start is no StartError.
type StartError struct {
	// Extension is the name of the extension at fault.
	Extension string
	// Msg says what was found, what was expected and what to do.
	Msg string
}

// Error returns the message with the extension's name.
func (e *StartError) Error() string {
	return fmt.Sprintf("extension %q: %s", e.Extension, e.Msg)
}

// The names of the events (spec/extensions.md, Wire).
const (
	eventListTools    = "list_tools"
	eventSessionStart = "session_start"
	eventSessionEnd   = "session_end"
	eventPrompt       = "user_prompt_submit"
	eventAgentStart   = "before_agent_start"
	eventContext      = "context"
	eventToolCall     = "tool_call"
	eventPermission   = "permission_request"
	eventToolResult   = "tool_result"
	eventCompact      = "before_compact"
	eventInvokeTool   = "invoke_tool"
	eventTurnEnd      = "turn_end"
	eventSubagentEnd  = "subagent_end"
	eventNotification = "notification"
)

// Events returns the names of all events, in the order of the protocol's table. A
// subscription may hold any of them.
func Events() []string {
	return []string{
		eventListTools, eventSessionStart, eventSessionEnd, eventPrompt, eventAgentStart, eventContext,
		eventToolCall, eventPermission, eventToolResult, eventCompact, eventInvokeTool,
		eventTurnEnd, eventSubagentEnd, eventNotification,
	}
}

// checkEvents refuses a subscription to an event that the protocol doesn't have: it
// would look like a guard and never be asked.
func (c *Config) checkEvents() error {
	known := Events()
	for _, ev := range c.Events {
		if slices.Contains(known, ev) {
			continue
		}
		near := nearest(ev, known)
		if i := slices.IndexFunc(known, func(k string) bool { return strings.EqualFold(k, ev) }); i >= 0 {
			near = known[i]
		}
		hint := ""
		if near != "" {
			hint = fmt.Sprintf(" (did you mean %q?)", near)
		}
		return &StartError{Extension: c.Name, Msg: fmt.Sprintf("unknown event %q%s. The events are %s", ev, hint, strings.Join(known, ", "))}
	}
	return nil
}

// withDefaults returns a checked copy of c with its zero values replaced.
func (c Config) withDefaults() (Config, error) {
	fail := func(format string, a ...any) (Config, error) {
		return Config{}, &StartError{Extension: c.Name, Msg: fmt.Sprintf(format, a...)}
	}
	switch {
	case c.Name == "":
		return fail("it has no name; every extension needs one")
	case c.Command == "":
		return fail("it has no command; give the program to run")
	case c.Timeout < 0 || c.InvokeTimeout < 0:
		return fail("a negative time-out; use a positive number of milliseconds, or none for the default")
	}
	if err := c.checkEvents(); err != nil {
		return Config{}, err
	}
	switch c.OnFailure {
	case "":
		c.OnFailure = Skip
	case Skip, AskPerson, Block:
	default:
		return fail("on_failure is %q, expected %q, %q or %q", c.OnFailure, Skip, AskPerson, Block)
	}
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if c.InvokeTimeout == 0 {
		c.InvokeTimeout = DefaultInvokeTimeout
	}
	c.Args, c.Env, c.Events = slices.Clone(c.Args), slices.Clone(c.Env), slices.Clone(c.Events)
	return c, nil
}

// subscribes reports whether the extension is to be asked about the event.
func (c *Config) subscribes(ev string) bool {
	return len(c.Events) == 0 || slices.Contains(c.Events, ev)
}

// spec returns the process to start for the extension.
func (c *Config) spec(confine func(proc.Spec) (proc.Spec, error), onStderr func(string)) (proc.Spec, error) {
	s := proc.Spec{
		Name: c.Name, Path: c.Command, Args: c.Args, Dir: c.Dir, Env: proc.Environ(c.Env),
		StderrTail: stderrTail, OnStderr: onStderr, Grace: closeGrace,
	}
	if !c.Sandbox {
		return s, nil
	}
	if confine == nil {
		return s, fmt.Errorf("sandbox is true, but there is no sandbox here to run it in")
	}
	return confine(s)
}
