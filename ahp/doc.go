// Package ahp holds the wire of the Agent Hooks Protocol: events, effects,
// capabilities, decision state, manifests, registrations, canonical content and
// the JSON-RPC messages that carry them, with strict decoding and validation.
//
// It guarantees that what a Decode or Parse function returns satisfies the shape
// rules of the protocol revision it names: exact member names, closed objects
// closed, no repeated name, strict UTF-8, bounded size (16 MiB) and depth (128),
// ids, times and URIs by grammar, and the conditions of each event type. A
// decoder refuses with an *Error that names the JSON pointer, the byte offset,
// what was found, what was expected and the requirement behind it. Encoding is
// strict as well: a value that would not decode is refused, so Validate and the
// wire can't drift apart.
//
// The package does no I/O, starts no goroutine and keeps no mutable state of its
// own. Values are plain data: safe to read concurrently, not safe to change while
// shared. Lineage alone remembers what it was given, for one connection.
//
// Do not assume that a valid message is trustworthy, that an id carries
// authority, or that an empty list of effects permits anything.
package ahp

// Version is the protocol revision that this package speaks. Matching is exact.
const Version = "draft"

// Versions returns every revision that this package accepts, newest first. The
// working line "draft" has no date; a published snapshot will be "YYYY-MM-DD"
// and join the list without leaving its predecessors.
func Versions() []string { return []string{Version} }

// supported reports whether the package accepts revision v.
func supported(v string) bool { return v == Version }

// Bounds on one message (spec §29, limits).
const (
	// MaxMessageBytes is the largest message that is accepted, in bytes.
	MaxMessageBytes = 16 << 20
	// MaxDepth is the deepest accepted nesting of arrays and objects.
	MaxDepth = 128
)

// Extensions holds namespaced data beside the protocol: the keys are reverse-DNS
// names, the values any JSON. Nothing in this package depends on one (§4).
type Extensions map[string]Raw
