// Package mcp makes the tools of Model Context Protocol servers available as
// tools of the harness, by the official Go SDK.
//
// It guarantees:
//   - a server that can't start, is slow, crashes or offers nonsense costs its own
//     tools and nothing else; it is recorded, with the end of what it wrote on
//     standard error;
//   - the names of tools depend on the names of servers and tools alone, never on
//     the order in which servers answer, and have at most 64 characters;
//   - a tool is mutating unless the configuration lists it, whatever the server
//     says of it;
//   - what a tool was when the host started is what it is until the host is closed:
//     one that the server changed later is refused, one that it added isn't offered,
//     one that it took away answers with an error;
//   - one unusable schema leaves out or repairs one tool;
//   - every message, list, result and wait is bounded, and what was cut is said;
//   - after Close nothing of a server's process group is left running, as far as
//     package proc can find it;
//   - values of headers and of the environment appear in no error and no notice; what
//     a server puts into a result is its own text.
//
// Do not assume that a description or a result is honest: it is the server's text,
// cleaned of invisible characters and marked, nothing more. Nor that a tool listed
// as read-only is: the operator said so, nobody checked. A server may change what a
// tool does without changing how it describes it.
//
// The SDK does the handshake, numbers requests, cancels them and keeps HTTP
// sessions. What a server says passes screen first, on both transports.
package mcp

import (
	"context"
	"fmt"
	"time"

	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/proc"
)

// What zero values of Server and Options mean.
const (
	// DefaultStartTimeout bounds a server's start, up to its list of tools.
	DefaultStartTimeout = 30 * time.Second
	// DefaultCallTimeout bounds one call, without the time that a person is asked.
	DefaultCallTimeout = 2 * time.Minute
	// DefaultElicitTimeout bounds the wait for a person's answer.
	DefaultElicitTimeout = 5 * time.Minute
	// DefaultBudget is how many tokens of tool descriptions go with every request.
	DefaultBudget = 10_000
)

// Bounds of what one server may send or do.
const (
	// maxMessage is the size of one message in bytes.
	maxMessage = 16 << 20
	// maxOther is the size of one that is neither a list of tools nor the result of
	// one.
	maxOther = 1 << 20
	// maxTools and maxPages bound a list of tools, maxEntries what is looked at to find
	// them.
	maxTools   = 512
	maxEntries = 2048
	maxPages   = 64
	// maxFaults is how many faults of a list are said.
	maxFaults = 50
	// maxSchema is the size of one tool's schema in bytes.
	maxSchema = 128 << 10
	// maxSchemaDepth is the nesting of a schema.
	maxSchemaDepth = 48
	// maxDescription is what of a tool's description is kept, in bytes.
	maxDescription = 2 << 10
	// maxText is what of a result's text is kept, in bytes.
	maxText = 64 << 10
	// maxPieces is how many pieces of a result are looked at.
	maxPieces = 1024
	// maxImages and maxImage bound the images of a result; the latter in bytes of
	// base64 text.
	maxImages = 8
	maxImage  = 5 << 20
	// maxSending is how many messages may wait for a server to take them. One that asks
	// and doesn't read the answers gets here.
	maxSending = 128
	// maxRounds is how often one call may be answered with questions, maxInputs how many
	// those are each time.
	maxRounds = 10
	maxInputs = 16
	// maxAsking and maxAsked bound the questions of one server: at the same time, and in
	// a session.
	maxAsking = 4
	maxAsked  = 100
	// maxRestarts is how often a server that ended is started again, not counting what
	// was before a conversation that lasted steady.
	maxRestarts = 3
	steady      = 10 * time.Minute
	// maxNotices is how many remarks on one server are recorded.
	maxNotices = 200
	// maxNotice is the size of one of them in bytes.
	maxNotice = 2 << 10
	// stderrTail is how many of the last bytes of standard error go with an error.
	stderrTail = 2 << 10
	// closeGrace is how long a server may take to end once it is told to.
	closeGrace = time.Second
	// streamWait is how long a server over HTTP may take to open its own stream.
	streamWait = 5 * time.Second
	// deathWait is how long a failed call waits to learn that the server is dead.
	deathWait = 500 * time.Millisecond
	// restartPause is waited before the first restart, and twice as long before each
	// further one.
	restartPause = 200 * time.Millisecond
	// rereadPause lies between two readings of a list that keeps changing.
	rereadPause = 200 * time.Millisecond
)

// Server says how to reach one server: Command for a process that speaks on its
// standard streams, or URL for streamable HTTP. It is copied by Start.
type Server struct {
	// Name is the server's identity, unique in a host, without "__" inside and "_"
	// at its end.
	Name string
	// Command is the program, run directly and never through a shell.
	Command string
	Args    []string
	// Env is added to the small environment of proc.Environ, as NAME=value. The
	// values are taken for secrets.
	Env []string
	// Dir is the working directory; empty means that of this process.
	Dir string
	// URL is the endpoint, http or https.
	URL string
	// Headers go with every request to URL and to no other origin. The values are
	// secrets.
	Headers map[string]string
	// ReadOnly lists the tools, by the server's own names, that change nothing. All
	// others are mutating.
	ReadOnly []string
	// Only, if not empty, lists the tools to offer, by the server's own names.
	Only []string
	// StartTimeout and CallTimeout: zero means the default.
	StartTimeout, CallTimeout time.Duration
}

// Options are the host's surroundings. The zero value confines nothing, records
// nothing and asks nobody.
type Options struct {
	// Confine turns the process of a server into a confined one; nil runs it as it
	// is.
	Confine func(server string, spec proc.Spec) (proc.Spec, error)
	// Record stores notices; nil drops them. It is called from any goroutine, until
	// Close returns, and must not call the host. Its error is not acted on here: a
	// record that can't be written stops the gate at its own next write.
	Record func(event.Draft) error
	// Elicit puts a server's question to a person. It must return soon after ctx
	// ends, and may be called by several goroutines at once. nil tells servers that
	// nobody can be asked.
	Elicit func(ctx context.Context, q Elicitation) (ElicitAnswer, error)
	// ElicitTimeout bounds one question; zero means DefaultElicitTimeout.
	ElicitTimeout time.Duration
	// Roots are the absolute folders that a server is told of when it asks.
	Roots []string
	// BudgetTokens is how much of descriptions and schemas goes to the model from
	// the start, in tokens of four bytes; zero means DefaultBudget, a negative value
	// everything. Tools beyond it are deferred: see Host.Listed.
	BudgetTokens int
	// Taken lists the tool names that are in use already.
	Taken []string
	// Version is this program's version, which servers are told.
	Version string
	// CAFile is a PEM file of authorities trusted besides the system's; "" is none.
	CAFile string
}

// Elicitation is a question that a server puts to the person at the keyboard.
type Elicitation struct {
	// Server is the configured name of who asks.
	Server string
	// Message says what is wanted: the server's text, cleaned and bounded.
	Message string
	// Schema is the JSON Schema of the answer: an object of plain members, as
	// ahp/elicitation reads it.
	Schema []byte
	// Params is the JSON text of the complete elicitation/create params.
	Params []byte
}

// The actions of an ElicitAnswer.
const (
	ElicitAccept  = "accept"
	ElicitDecline = "decline"
	ElicitCancel  = "cancel"
)

// ElicitAnswer is what a person, or who answers for them, made of a question.
type ElicitAnswer struct {
	// Action is ElicitAccept, ElicitDecline or ElicitCancel.
	Action string
	// Content is the JSON object that fits the schema, with ElicitAccept only.
	Content []byte
}

// StartError says why a configuration of servers can't be used as it is. It is the
// configuration's fault; a server that doesn't start is no StartError.
type StartError struct {
	// Server is the name of the server at fault, "" if none is.
	Server string
	// Msg says what was found, what was expected and what to do.
	Msg string
}

// Error returns the message with the server's name.
func (e *StartError) Error() string {
	if e.Server == "" {
		return "MCP: " + e.Msg
	}
	return fmt.Sprintf("MCP server %q: %s", e.Server, e.Msg)
}

// The states of a server.
const (
	// StateReady is a server that runs, or a session that stands.
	StateReady = "ready"
	// StateFailed is a server that could not be started, or not again.
	StateFailed = "failed"
	// StateEnded is a server that ended by itself and is started again by a call.
	StateEnded = "ended"
	// StateClosed is a server of a closed host.
	StateClosed = "closed"
)

// State is what there is to know of one server at one moment.
type State struct {
	Name string
	// Transport is "stdio" or "http".
	Transport string
	// State is StateReady, StateFailed, StateEnded or StateClosed.
	State string
	// Pid is the process's id while it lives, else 0.
	Pid int
	// Tools are the names of the tools that it provides, as the model calls them.
	Tools []string
	// LeftOut says of each tool that isn't offered why.
	LeftOut []string
	// Error is the last failure, "" if there was none.
	Error string
	// Restarts counts how often it was started again.
	Restarts int
	// Latency is how long the last start took, up to the list of tools.
	Latency time.Duration
}
