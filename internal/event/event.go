// Package event holds the closed set of things that can happen in a session,
// as the record keeps them, and one codec for them.
//
// It guarantees that an encoded event decodes to the same value, that a type
// from a newer version is kept byte for byte as Unknown and passed over, and
// that nothing outside this package can add a payload type.
//
// Do not assume that a decoded event is authentic: the chain (internal/chain)
// and the session store verify that.
package event

import (
	"time"
)

// Type names a kind of event; the table in kinds.go is the closed set.
type Type string

// Actor is who caused an event.
type Actor string

// The actors of record.md.
const (
	ActorUser   Actor = "user"
	ActorAgent  Actor = "agent"
	ActorTool   Actor = "tool"
	ActorGate   Actor = "gate"
	ActorSystem Actor = "system"
)

// Trust says how far the content of an event may be believed: what a tool or a
// model wrote is untrusted input, whoever reads it later.
type Trust string

const (
	// TrustOperator is what a person or the configuration said.
	TrustOperator Trust = "operator"
	// TrustHarness is what this program determined itself.
	TrustHarness Trust = "harness"
	// TrustUntrusted is what a model, a tool, an extension or a backend said.
	TrustUntrusted Trust = "untrusted"
)

// Payload is the body of one event. The set of payloads is closed by an
// unexported method; all of them are in this package.
type Payload interface {
	// Type returns the event type that the payload belongs to.
	Type() Type
	payload()
}

// Event is one entry of a record (record.md). Seq counts from 1 without gaps.
// Prev and Hash are lower-case hex SHA-256; Prev of the first event is "".
type Event struct {
	ID        string
	SessionID string
	Seq       int64
	Time      time.Time
	Actor     Actor
	Trust     Trust
	Payload   Payload
	Prev      string
	Hash      string
}

// Draft is an event before the record gives it id, number, time and hash.
type Draft struct {
	Actor   Actor
	Trust   Trust
	Payload Payload
}
