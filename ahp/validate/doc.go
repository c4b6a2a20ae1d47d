// Package validate judges AHP messages and documents for the people who write
// backends and harnesses: one at a time, or as a stream with its lineage.
//
// It guarantees that what it calls valid passes the decoders of package ahp, and
// where a context is given also the checks that a harness makes there: whether the
// edits of a response fit the event, and whether a registration can be kept. Each
// finding says where, what was found, what was expected, and which requirement
// asks for it. Nothing here does I/O or looks at the environment.
//
// Do not assume that all faults are found at once: the shape is judged up to its
// first fault, and the context only where the shape is valid. Do not assume that a
// valid message is safe to act on.
package validate

import (
	"errors"
	"fmt"
	"strings"

	"github.com/abhed/abhed/ahp"
)

// Kind says what a text is judged as.
type Kind string

// The kinds.
const (
	// InterceptRequest is a hooks/intercept request; its id is the event's.
	InterceptRequest Kind = "intercept-request"
	// InterceptResponse answers one with any list of effects.
	InterceptResponse Kind = "intercept-response"
	// InterceptDenyResponse answers one with exactly one deny.
	InterceptDenyResponse Kind = "intercept-deny-response"
	// InterceptNoEffectResponse answers one with an empty list of effects.
	InterceptNoEffectResponse Kind = "intercept-no-effect-response"
	// ObserveNotification is a hooks/observe notification.
	ObserveNotification Kind = "observe-notification"
	// CapabilitiesRequest is a hooks/capabilities request.
	CapabilitiesRequest Kind = "capabilities-request"
	// CapabilitiesResponse answers one with a manifest.
	CapabilitiesResponse Kind = "capabilities-response"
	// UploadReceipt is the body of a 201 of an upload receiver (§19).
	UploadReceipt Kind = "upload-receipt"
	// Registration is a registration document (§15).
	Registration Kind = "registration"
	// ErrorResponse is a JSON-RPC error.
	ErrorResponse Kind = "error-response"
	// JSONRPCMessage is any JSON-RPC message, judged by its envelope alone (§2).
	JSONRPCMessage Kind = "json-rpc-message"
	// Any is whatever the text says it is, by its members.
	Any Kind = "any"
)

// Kinds returns every kind, Any last.
func Kinds() []Kind {
	return []Kind{InterceptRequest, InterceptResponse, InterceptDenyResponse, InterceptNoEffectResponse, ObserveNotification,
		CapabilitiesRequest, CapabilitiesResponse, UploadReceipt, Registration, ErrorResponse, JSONRPCMessage, Any}
}

// isInterceptReply reports whether k is a response to an intercept.
func (k Kind) isInterceptReply() bool {
	return k == InterceptResponse || k == InterceptDenyResponse || k == InterceptNoEffectResponse
}

// Options is what is known beyond the text. The zero value is nothing.
type Options struct {
	// Response, if not nil, is where a response to an intercept is judged.
	Response *ResponseContext
	// Registration, if not nil, is where a registration is judged.
	Registration *RegistrationContext
}

// Finding is one fault, or one warning.
type Finding struct {
	// Line is the line of the message in a text of lines, from 1; 0 in any other.
	Line int `json:"line,omitzero"`
	// In is "context" for a fault of the context, "" for one of the text.
	In string `json:"in,omitzero"`
	// Layer is "schema", "correlation", "capability", "application" or "lineage".
	Layer string `json:"layer"`
	// Pointer is the JSON pointer of the value at fault; "" is the whole.
	Pointer string `json:"pointer"`
	// Offset is where that value starts in the text, in bytes from 0 and from the
	// start of all lines; -1 in a context.
	Offset int64 `json:"offset"`
	// Found and Expected describe both sides in a few words.
	Found    string `json:"found"`
	Expected string `json:"expected"`
	// Requirement is the protocol requirement that is broken, where there is one.
	Requirement string `json:"requirement,omitzero"`
}

// String returns one line with everything in f but the line.
func (f *Finding) String() string {
	var b strings.Builder
	switch {
	case f.In != "":
		fmt.Fprintf(&b, "%s of the context", or(f.Pointer, "the whole"))
	case f.Offset >= 0:
		fmt.Fprintf(&b, "%s (byte %d)", or(f.Pointer, "the whole text"), f.Offset)
	default:
		b.WriteString(or(f.Pointer, "the whole text"))
	}
	fmt.Fprintf(&b, ": found %s, expected %s", f.Found, f.Expected)
	if f.Requirement != "" {
		b.WriteString(" [" + f.Requirement + "]")
	}
	return b.String()
}

func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// Report is what was made of one text. The text is valid exactly if Findings is
// empty.
type Report struct {
	// Kind is what the text was judged as; Any becomes what the text turned out to
	// be, and stays where it is nothing known.
	Kind     Kind
	Findings []Finding
	Warnings []Finding
}

// Valid reports whether there is no finding.
func (r *Report) Valid() bool { return len(r.Findings) == 0 }

// fail adds err, which came of judging data. What isn't an *ahp.Error is put at
// the whole text.
func (r *Report) fail(data []byte, err error) {
	r.Findings = append(r.Findings, findingOf(data, err))
}

func findingOf(data []byte, err error) Finding {
	var (
		e   *ahp.Error
		rpc *ahp.RPCError
	)
	switch {
	case errors.As(err, &e):
		f := Finding{Layer: e.Kind.Layer(), Pointer: e.Pointer, Offset: e.Offset, Found: e.Found, Expected: e.Expected, Requirement: e.Requirement}
		if f.Offset < 0 {
			f.Offset = ahp.Locate(data, f.Pointer)
		}
		return f
	case errors.As(err, &rpc):
		return Finding{Layer: ahp.KindShape.Layer(), Pointer: "/error", Offset: ahp.Locate(data, "/error"), Found: "a JSON-RPC error",
			Expected: "a result", Requirement: "AHP-RPC-001"}
	}
	return Finding{Layer: ahp.KindShape.Layer(), Found: err.Error(), Expected: "something else"}
}
