// Package elicitation reads the two texts that the elicitation events of the
// Agent Hooks Protocol carry (§21): the complete params of an MCP
// elicitation/create request and the complete ElicitResult that answers it, both
// of MCP revision 2025-11-25. It also keeps the requests that wait for an answer.
//
// It guarantees that a form which ParseRequest returns is in the closed subset of
// JSON Schema that MCP publishes for forms; that content which ParseResult returns
// for such a form satisfies it; that an answer is matched with its request before
// any of it is read, and that an answer to another request consumes nothing. A text
// is at most MaxTextBytes long. Errors are *ahp.Error values; those of a text point
// into that text, by JSON pointer and byte offset.
//
// Values are plain data, safe to read from several goroutines; a Pending may be
// used from any goroutine. The package does no I/O and starts no goroutine.
//
// Do not assume that a form is honest about what it asks for: the protocol wants
// secrets to be asked for in url mode only, and nothing here can tell. Do not
// assume that an accepted url was visited: it is consent, not completion. Defaults
// are never filled in.
package elicitation

// MaxTextBytes is the largest request or result that is read, in bytes. A form is
// for a person to fill in; a longer one is refused.
const MaxTextBytes = 1 << 20

// Mode is how a person is asked.
type Mode string

// The modes.
const (
	// ModeForm asks for the fields of a form.
	ModeForm Mode = "form"
	// ModeURL asks a person to visit a URL; what they do there stays there.
	ModeURL Mode = "url"
)

// Action is what the person did.
type Action string

// The actions.
const (
	Accept  Action = "accept"
	Decline Action = "decline"
	Cancel  Action = "cancel"
)
