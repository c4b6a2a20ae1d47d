// Package abhed embeds the harness in a Go program: the same engine as the command's,
// with tools and hooks of the program's own.
//
// It guarantees that every tool call passes the gate, those of Options.Tools too: the
// rules, extensions and backends of the settings judge it first. A Hook may object to a
// call, and can't permit one. Everything that happens is in the record before it is
// acted on, and Session.Close ends everything that New started.
//
// Do not assume that the settings of the account don't count: without Options.Settings
// and Options.ConfigFile they are read as the command reads them, and managed settings
// always are. Do not assume that a call which the program's own Approver allowed runs:
// what a rule, an extension or a backend denies stays denied.
package abhed

import (
	"context"
	"io"
	"iter"
	"os"
	"path/filepath"
	"time"

	"github.com/abhed/abhed/internal/app"
	"github.com/abhed/abhed/internal/control"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/gate"
	"github.com/abhed/abhed/internal/tool"
)

// Version is what records and backends are told of this program's harness.
const Version = "0.1.0-dev"

// What is said between a session and the program.
type (
	// Answer is the end of a prompt: its text, the reason why it ended, and what it cost.
	Answer = control.Answer
	// Error is why something was not done; Code sorts it.
	Error = control.Error
	// Info describes a session.
	Info = control.Info
	// Usage is what a session used so far.
	Usage = control.Usage
	// Compacted says what a compaction did.
	Compacted = control.Compacted
	// Image is a picture in a prompt: a media type, and base64.
	Image = event.Image
	// Prompt is what a person says.
	Prompt = control.Prompt
	// Delta is a piece of text as it arrives.
	Delta = control.Delta
	// Approver asks a person about a call. Only an answer that names the call's hash
	// counts.
	Approver = control.Approver
	// Question asks a person about one call.
	Question = control.Question
	// Decision is the answer.
	Decision = control.Decision
	// Asker asks a person what isn't about a call.
	Asker = control.Asker
	// Inquiry is such a question, Reply the answer.
	Inquiry = control.Inquiry
	// Reply is a person's answer to an Inquiry.
	Reply = control.Reply
)

// Options says what session to open. The zero value is a new session in the current
// directory, with the account's settings and nobody to ask.
type Options struct {
	// Workspace is the folder to work in, "" the current directory.
	Workspace string
	// Settings, if not nil, is JSON that takes the place of the user's settings file;
	// relative paths in it start at the workspace. ConfigFile is a file to read instead.
	Settings   []byte
	ConfigFile string
	// TrustWorkspace lets the workspace's own settings count in full.
	TrustWorkspace bool
	// Model is provider/model, Mode a permission mode; "" is what the settings say.
	Model, Mode string
	// Allow, Ask and Deny are further rules.
	Allow, Ask, Deny []string
	// SystemAppend is added to the system prompt.
	SystemAppend string
	// Output is a JSON Schema that the answers must fit, nil for none.
	Output []byte
	// Limits bounds each prompt.
	Limits Limits
	// Resume is the id of a session to go on with; Fork makes a new one of it, up to the
	// event ForkAt if that isn't 0.
	Resume string
	Fork   bool
	ForkAt int64

	// Tools are the program's own, Hooks judge calls beside the extensions.
	Tools []Tool
	Hooks []Hook
	// Store keeps the record; the zero Store is the account's own.
	Store Store
	// Approver and Asker ask a person; nil means that nobody can be asked.
	Approver Approver
	Asker    Asker
	// OnEvent is called with every event from the first, OnDelta with each piece of text
	// as it arrives: one call at a time, in order. A call that blocks makes the run wait.
	OnEvent func(Event)
	OnDelta func(Delta)
	// Environ holds the variables as NAME=value; nil means os.Environ().
	Environ []string
}

// Limits bounds one prompt with its sub-agents; a zero is the configured limit.
type Limits struct {
	Turns   int64
	Tokens  int64
	CostUSD float64
	Time    time.Duration
}

// Store is where records are kept.
type Store struct{ dir string }

// FileStore returns the store that keeps records, and the key that signs them, below
// dir, which is made when it is needed.
func FileStore(dir string) Store { return Store{dir} }

// Session is one session that is open. Its methods may be called from any goroutine.
// Every Session needs a Close.
type Session struct {
	c    control.Session
	sink *sink
}

// New opens a session. ctx bounds the start, not the session's life. The error is an
// *Error; nothing is left running then.
func New(ctx context.Context, o Options) (*Session, error) {
	sys := app.System{Stdout: io.Discard, Stderr: io.Discard, Environ: o.Environ, Version: Version}
	if sys.Environ == nil {
		sys.Environ = os.Environ()
	}
	if o.Store.dir != "" {
		dir, err := filepath.Abs(o.Store.dir)
		if err != nil {
			return nil, &Error{Code: control.CodeFailed, Msg: err.Error()}
		}
		sys.StateDir = dir
	}
	host := app.HostOptions{
		SettingsOptions: app.SettingsOptions{
			ConfigFile: o.ConfigFile, UserData: o.Settings, TrustWorkspace: o.TrustWorkspace,
			MaxTurns: o.Limits.Turns, MaxTokens: o.Limits.Tokens, MaxCost: o.Limits.CostUSD, MaxSeconds: app.Seconds(o.Limits.Time),
		},
	}
	for _, t := range o.Tools {
		host.Tools = append(host.Tools, tool.Tool(&embedded{t}))
	}
	for _, h := range o.Hooks {
		host.Hooks = append(host.Hooks, gate.Hook{Name: h.Name, Judge: h.judge})
	}
	s := &Session{sink: newSink(o.OnEvent, o.OnDelta)}
	c, err := app.NewHost(host, sys).Start(ctx, control.Start{
		Workspace: o.Workspace, Mode: o.Mode, Model: o.Model, Allow: o.Allow, Ask: o.Ask, Deny: o.Deny,
		Resume: o.Resume, Fork: o.Fork, ForkAt: o.ForkAt, SystemAppend: o.SystemAppend, Output: o.Output,
		Approver: o.Approver, Asker: o.Asker, Sink: s.sink,
	})
	if err != nil {
		return nil, err
	}
	s.c = c
	return s, nil
}

// Run runs one prompt to its end, of which every event has been heard when it returns.
// The end of ctx interrupts it. An Answer that isn't Completed says in Reason why; the
// error is an *Error if nothing was run. One prompt runs at a time.
func (s *Session) Run(ctx context.Context, prompt string) (Answer, error) {
	return s.RunPrompt(ctx, Prompt{Text: prompt})
}

// RunPrompt is Run for a prompt with pictures.
func (s *Session) RunPrompt(ctx context.Context, p Prompt) (Answer, error) {
	a := s.c.Prompt(ctx, p)
	if a.Err != nil {
		return a, a.Err
	}
	return a, nil
}

// Steer hands text to the running prompt, whose next model call has it, and reports
// true; where nothing runs the next prompt begins with it.
func (s *Session) Steer(text string) (running bool, err error) { return s.c.Steer(text) }

// Interrupt ends the running prompt and reports whether there was one. It doesn't wait.
func (s *Session) Interrupt() bool { return s.c.Interrupt() }

// Events returns the events from now on, in the order of the record, until Close or
// until the loop over them is left. Up to 10,000 events wait for a slow loop; then the
// run waits. A loop must not run in the goroutine that runs the prompt.
func (s *Session) Events() iter.Seq[Event] { return s.sink.follow() }

// Info describes the session as it is now.
func (s *Session) Info() Info { return s.c.Info() }

// Usage tells what the session used so far, over all its prompts and sub-agents.
func (s *Session) Usage() Usage { return s.c.Look().Usage() }

// Compact replaces the older part of the conversation by a summary.
func (s *Session) Compact(ctx context.Context) (Compacted, error) { return s.c.Tune().Compact(ctx) }

// SetModel changes the model for the calls that follow.
func (s *Session) SetModel(ctx context.Context, name string) error {
	return s.c.Tune().SetModel(ctx, name)
}

// SetMode changes the permission mode; it can only become stricter than, or again as
// strict as, what the session was started with.
func (s *Session) SetMode(ctx context.Context, mode string) error {
	return s.c.Tune().SetMode(ctx, mode)
}

// Export writes the record so far: format is jsonl or html.
func (s *Session) Export(ctx context.Context, w io.Writer, format string) error {
	return s.c.Look().Export(ctx, w, format)
}

// Close ends the running prompt, everything that the session started, and the record. A
// loop over Events that has fallen far behind may miss the last events.
func (s *Session) Close() error {
	s.sink.release()
	err := s.c.Close()
	s.sink.end()
	return err
}
