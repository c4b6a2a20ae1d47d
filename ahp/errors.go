package ahp

import (
	"fmt"
	"strings"
)

// Kind says which rule of the protocol a message broke.
type Kind uint8

const (
	// KindSyntax is a text that isn't one strict JSON value within the bounds.
	KindSyntax Kind = iota + 1
	// KindEnvelope is a breach of JSON-RPC 2.0.
	KindEnvelope
	// KindMethod is a method that the protocol doesn't have.
	KindMethod
	// KindVersion is a protocol revision that isn't supported.
	KindVersion
	// KindEvent is an event type that is unknown, or can't be used in the method.
	KindEvent
	// KindShape is a member that is missing, unknown, of the wrong type or value.
	KindShape
	// KindEffect is an effect that is unknown or malformed.
	KindEffect
	// KindCorrelation is a reply to something else.
	KindCorrelation
	// KindCapability is an effect that the request didn't advertise, or whose value
	// has another shape than this boundary's.
	KindCapability
	// KindApplication is an advertised effect that can't be applied: there is no
	// continuation left, or the edited event would be invalid.
	KindApplication
	// KindLineage is an event whose parent can't be its parent, or an actual change
	// that changes nothing (§20).
	KindLineage
)

// String returns the kind's name in lower case.
func (k Kind) String() string {
	names := [...]string{"", "syntax", "envelope", "method", "version", "event", "shape", "effect", "correlation", "capability", "application", "lineage"}
	if int(k) < len(names) {
		return names[k]
	}
	return fmt.Sprintf("kind %d", k)
}

// Layer returns which layer refuses: "schema", "correlation", "capability",
// "application" or "lineage".
func (k Kind) Layer() string {
	switch k {
	case KindCorrelation:
		return "correlation"
	case KindCapability:
		return "capability"
	case KindApplication:
		return "application"
	case KindLineage:
		return "lineage"
	}
	return "schema"
}

// Error tells how a message breaks the protocol, and where.
type Error struct {
	Kind Kind
	// Pointer is the JSON pointer (RFC 6901) of the value at fault; "" is the
	// whole text.
	Pointer string
	// Offset is the byte offset of that value in the text that was decoded, from
	// 0; -1 where there is no text, as for a Go value that was to be encoded.
	Offset int64
	// Found and Expected describe both sides in a few words. Found quotes at most
	// 40 bytes of the message.
	Found, Expected string
	// Requirement is the id of the protocol requirement, such as "AHP-DEC-001".
	Requirement string
	// Err is the cause below this package, or nil.
	Err error
}

// Error returns one line with everything in e, of a long pointer the start.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("ahp: ")
	if e.Pointer == "" {
		b.WriteString("the whole text")
	} else {
		b.WriteString(shortPointer(e.Pointer))
	}
	if e.Offset >= 0 {
		fmt.Fprintf(&b, " (byte %d)", e.Offset)
	}
	fmt.Fprintf(&b, ": found %s, expected %s", e.Found, e.Expected)
	if e.Requirement != "" {
		b.WriteString(" [" + e.Requirement + "]")
	}
	return b.String()
}

// shortPointer returns at most some 400 bytes of a pointer: the names in it are a
// peer's, and may be as long as a message.
func shortPointer(p string) string {
	if len(p) <= 400 {
		return p
	}
	return strings.ToValidUTF8(p[:400], "") + "…"
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// The error codes of the protocol (§24) and of JSON-RPC 2.0.
const (
	CodeUnsupportedVersion = -32001
	CodeUnsupportedEvent   = -32002
	CodeUnavailable        = -32003
	CodeInternal           = -32004
	CodeParse              = -32700
	CodeInvalidRequest     = -32600
	CodeMethodNotFound     = -32601
	CodeInvalidParams      = -32602
)

// RPCError is the error member of a JSON-RPC response.
type RPCError struct {
	Code    int64  `json:"code" ahp:"req"`
	Message string `json:"message" ahp:"req"`
	// Data is any JSON, or nil. It must not hold secrets.
	Data Raw `json:"data"`
}

// Error returns code and message.
func (e *RPCError) Error() string { return fmt.Sprintf("JSON-RPC error %d: %s", e.Code, e.Message) }

// RPC returns the JSON-RPC error that answers a request which failed with e.
func (e *Error) RPC() *RPCError {
	out := &RPCError{Message: strings.TrimPrefix(e.Error(), "ahp: ")}
	switch e.Kind {
	case KindSyntax:
		out.Code = CodeParse
	case KindEnvelope:
		out.Code = CodeInvalidRequest
	case KindMethod:
		out.Code = CodeMethodNotFound
	case KindVersion:
		out.Code, out.Message = CodeUnsupportedVersion, "unsupported_protocol_version"
		out.Data = Raw(`{"supported":["` + strings.Join(Versions(), `","`) + `"]}`)
	case KindEvent:
		out.Code, out.Message = CodeUnsupportedEvent, "unsupported_event: "+out.Message
	default:
		out.Code = CodeInvalidParams
	}
	return out
}
