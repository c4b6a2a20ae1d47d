// Package control holds what a user surface may ask of the engine and what it
// hears back. A surface sees nothing of the engine but this package and
// internal/event.
//
// It guarantees that an Answer counts only for the call whose hash it names, and
// that whatever a surface does, a session's tools run only through its gate: no
// method here runs one.
//
// Do not assume that anybody can be asked: a headless run has no Approver.
package control

import (
	"context"
	"io"

	"github.com/abhed/abhed/internal/event"
)

// Engine starts sessions. It is safe for concurrent use.
type Engine interface {
	// Start opens a new session, or the one that o names. ctx bounds the start, not
	// the session's life. The error is an *Error.
	Start(ctx context.Context, o Start) (Session, error)
	// Providers lists the model providers that the settings of a session in
	// workspace ("" is the engine's own) know.
	Providers(workspace string) ([]Provider, error)
}

// Start says what session to open. The zero value means a new one in the engine's
// own workspace, with the settings as they are and nobody to ask.
type Start struct {
	// Workspace is the folder to work in, "" the engine's own.
	Workspace string
	// Mode and Model replace the configured ones where they aren't empty.
	Mode, Model string
	// Allow, Ask and Deny are further rules.
	Allow, Ask, Deny []string
	// Resume is the id of a session to go on with; Continue takes the newest of the
	// workspace.
	Resume   string
	Continue bool
	// Fork, with Resume or Continue, makes a new session of what the other one was, and
	// ForkAt, if not 0, of what it was up to that event.
	Fork   bool
	ForkAt int64
	// SystemAppend is added to the system prompt.
	SystemAppend string
	// Output is a JSON Schema that the answers must fit, nil for none.
	Output []byte
	// Approver and Asker ask a person; nil means that nobody can be asked.
	Approver Approver
	Asker    Asker
	// Sink hears what happens; nil drops it.
	Sink Sink
}

// Session is one session that is open. Its methods may be called from any
// goroutine, at any time.
type Session interface {
	// Info describes the session as it is now.
	Info() Info
	// Prompt runs one prompt to its end, of which every event has been heard by the
	// Sink when it returns. One prompt runs at a time; a second one is refused with
	// CodeBusy. The end of ctx interrupts the run; its cause may be an *Interrupted.
	Prompt(ctx context.Context, p Prompt) Answer
	// Steer hands text to the running prompt, whose next model call has it, and
	// reports true; where nothing runs, or the run ends before it could have it, the
	// next prompt begins with it.
	Steer(text string) (running bool, err error)
	// Interrupt ends the running prompt, and reports whether there was one. It doesn't
	// wait.
	Interrupt() bool
	// Tune returns what changes the session besides prompts.
	Tune() Tuner
	// Look returns what tells about the session.
	Look() Looker
	// Close ends everything that the session started and closes the record. The
	// running prompt ends first, with the reason shutdown.
	Close() error
}

// Tuner changes a session between or during prompts. Every error is an *Error.
type Tuner interface {
	// Compact replaces the older part of the context by a summary.
	Compact(ctx context.Context) (Compacted, error)
	// SetModel changes the model for the calls that follow.
	SetModel(ctx context.Context, name string) error
	// SetMode changes the permission mode; it can only become stricter than, or again
	// as strict as, what the session was started with.
	SetMode(ctx context.Context, mode string) error
	// CancelTask ends a background command or a sub-agent.
	CancelTask(id string) error
	// Note puts a line into the record.
	Note(level, text string) error
}

// Looker tells about a session. What it returns is the caller's.
type Looker interface {
	Usage() Usage
	Tools() []Tool
	// Tasks lists the background work, ended work of this session included.
	Tasks() []Task
	Extensions() []Extension
	Servers() []Server
	// Export writes the record so far: format is jsonl or html.
	Export(ctx context.Context, w io.Writer, format string) error
}

// Prompt is what a person says.
type Prompt struct {
	Text   string
	Images []event.Image
}

// Answer is the end of a prompt.
type Answer struct {
	// Text is the model's answer, "" if there is none.
	Text string
	// Reason is one of the reasons of abhed.md "Loop", Detail says more for a person.
	Reason, Detail string
	// Completed says that the model answered.
	Completed bool
	Turns     int
	Usage     event.Usage
	// CostUSD is nil if the price of a model that was used is unknown, or a reply came
	// without usage.
	CostUSD *float64
	// Err says why nothing was run; Reason is then "".
	Err *Error
}

// Interrupted is the cause to end a prompt's context with; Reason is
// "user_interrupt" or "shutdown".
type Interrupted struct{ Reason string }

// Error returns the reason.
func (i *Interrupted) Error() string { return "interrupted: " + i.Reason }

// Info describes a session.
type Info struct {
	SessionID    string      `json:"session_id"`
	Record       string      `json:"record"`
	Workspace    string      `json:"workspace"`
	Model        string      `json:"model"`
	Mode         string      `json:"mode"`
	Tools        []string    `json:"tools"`
	Extensions   []Extension `json:"extensions"`
	Servers      []Server    `json:"mcp,omitempty"`
	Trust        string      `json:"trust"`
	Sandbox      string      `json:"sandbox"`
	NotProtected []string    `json:"not_protected,omitempty"`
	Network      bool        `json:"network"`
	// Memory lists the instruction files that the model was given.
	Memory []string `json:"memory,omitempty"`
}

// Extension is the state of one extension.
type Extension struct {
	Name      string   `json:"name"`
	State     string   `json:"state"`
	Pid       int      `json:"pid,omitzero"`
	Tools     []string `json:"tools,omitempty"`
	Calls     int64    `json:"calls"`
	MedianMS  float64  `json:"median_ms"`
	WorstMS   float64  `json:"worst_ms"`
	LastError string   `json:"last_error,omitempty"`
}

// Server is the state of one MCP server.
type Server struct {
	Name  string   `json:"name"`
	State string   `json:"state"`
	Tools []string `json:"tools,omitempty"`
	Error string   `json:"error,omitempty"`
}

// Tool is a tool that the model can call.
type Tool struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	// Schema is the JSON Schema of the arguments.
	Schema event.Raw `json:"schema"`
}

// Task is background work.
type Task struct {
	ID string `json:"task_id"`
	// Kind is "command" or "agent".
	Kind string `json:"kind"`
	// Title is the command, or the sub-agent's description.
	Title string `json:"title"`
	// State is "running" or how it ended.
	State   string `json:"state"`
	AgentID string `json:"agent_id,omitempty"`
}

// Provider is a source of models.
type Provider struct {
	Name    string   `json:"name"`
	API     string   `json:"api"`
	BaseURL string   `json:"base_url"`
	KeyEnv  string   `json:"key_env,omitempty"`
	HasKey  bool     `json:"has_key"`
	Honours []string `json:"sampling"`
	// Missing says why it can't be used.
	Missing string `json:"missing,omitempty"`
}

// Usage is what a session used so far, over all its runs and sub-agents.
type Usage struct {
	Tokens event.Usage `json:"tokens"`
	// CostUSD is nil if a price is unknown or a reply came without usage.
	CostUSD *float64 `json:"cost_usd"`
	// ContextTokens estimates the next request, ContextWindow is 0 if unknown.
	ContextTokens int64 `json:"context_tokens"`
	ContextWindow int64 `json:"context_window"`
	Turns         int   `json:"turns"`
}

// Compacted says what a compaction did, in estimated tokens.
type Compacted struct {
	Done   bool   `json:"done"`
	Detail string `json:"detail,omitempty"`
	Before int64  `json:"before_tokens"`
	After  int64  `json:"after_tokens"`
}

// Question asks a person about one call. All text is ready to be shown: control,
// bidirectional and zero-width characters are written as escapes, and nothing is
// left out (gate.md §2 step 6).
type Question struct {
	// Request identifies the question; the approval.requested event has it too.
	Request string
	CallID  string
	Tool    string
	// Args holds the final arguments, every byte visible or escaped.
	Args string
	// Original holds the model's arguments if somebody rewrote them, else "".
	Original string
	WorkDir  string
	// Hash is the hash of the call; the answer must name it.
	Hash string
	// Why lists who asks and the reasons.
	Why []string
	// SessionOffered says whether the answer may have scope "session".
	SessionOffered bool
}

// Decision is a person's answer to a Question.
type Decision struct {
	Hash  string
	Allow bool
	// Scope is event.ScopeOnce or event.ScopeSession; read only with Allow.
	Scope string
	// By names who answered, for the record.
	By     string
	Reason string
}

// Approver asks a person. Approve blocks until there is an answer or ctx ends;
// any error is a denial. It is used by one goroutine at a time.
type Approver interface {
	Approve(ctx context.Context, q Question) (Decision, error)
}

// Inquiry is a question that isn't about a call: the agent's own, or an MCP
// server's.
type Inquiry struct {
	// Request identifies it; the question.requested event has it too.
	Request string
	// From says who asks: "agent", or "mcp " and the server's name.
	From string
	Text string
	// Choices are answers to choose from, empty for free text.
	Choices []string
	// Schema, if not nil, is the JSON Schema of the answer, a flat object's.
	Schema []byte
}

// Reply is a person's answer to an Inquiry.
type Reply struct {
	// Declined says that the person won't answer.
	Declined bool
	// Text is the answer, or with a Schema the object as JSON.
	Text string
}

// Asker asks a person. Ask blocks until there is an answer or ctx ends.
type Asker interface {
	Ask(ctx context.Context, q Inquiry) (Reply, error)
}

// Sink hears what happens while it happens. Calls come from several goroutines,
// one at a time, in the order of the record. A call that blocks makes the run
// wait.
type Sink interface {
	// Event is called for each recorded event, after it was accepted.
	Event(e event.Event)
	// Delta is called for each piece of text as soon as it has arrived. It is never
	// recorded: the whole reply is.
	Delta(d Delta)
}

// Delta is a piece of text.
type Delta struct {
	// Kind is "text", "reasoning" or "output" (of a running tool).
	Kind    string
	AgentID string
	CallID  string
	Text    string
}

// Code sorts errors for programs.
type Code string

// The codes of an Error.
const (
	CodeUsage    Code = "usage"     // the request can't be understood, or isn't possible now
	CodeConfig   Code = "config"    // the settings are at fault
	CodeBusy     Code = "busy"      // another prompt runs
	CodeNotFound Code = "not_found" // there is no such session, task or request
	CodeFailed   Code = "failed"    // the machine, the network or a model failed
	CodeClosed   Code = "closed"    // the session has ended
)

// Error is why something asked of the engine was not done.
type Error struct {
	Code Code
	Msg  string
}

// Error returns the message.
func (e *Error) Error() string { return e.Msg }
