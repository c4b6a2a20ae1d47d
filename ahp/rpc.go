package ahp

import (
	"bytes"
	"reflect"

	"github.com/go-json-experiment/json/jsontext"
)

// The methods (§3).
const (
	MethodIntercept    = "hooks/intercept"
	MethodObserve      = "hooks/observe"
	MethodCapabilities = "hooks/capabilities"
)

// Request is a message from a harness: a closed set of *Intercept, *Observe and
// *Discover.
type Request interface {
	// Method returns the JSON-RPC method.
	Method() string
	// Encode returns the whole JSON-RPC message on one line. It refuses what can't
	// be JSON, and what is beyond the bounds of a message, which is more than its
	// event; the rules of the event and the capabilities are for Validate.
	Encode() ([]byte, error)
}

// Intercept asks a backend for a decision. Its JSON-RPC id is the event's id.
type Intercept struct {
	Event        *Event
	Capabilities Capabilities
	State        *State
	Extensions   Extensions
	// Unknown holds the members of params that this revision doesn't know.
	Unknown
}

// Observe tells a backend of an event. There is no reply.
type Observe struct {
	Event      *Event
	Extensions Extensions
	// Unknown holds the members of params that this revision doesn't know.
	Unknown
}

// Discover asks for the manifest.
type Discover struct {
	ID ID
}

// Method returns MethodIntercept.
func (*Intercept) Method() string { return MethodIntercept }

// Method returns MethodObserve.
func (*Observe) Method() string { return MethodObserve }

// Method returns MethodCapabilities.
func (*Discover) Method() string { return MethodCapabilities }

// Encode returns the request as one line without its newline.
func (q *Intercept) Encode() ([]byte, error) {
	if q.Event == nil {
		return nil, &Error{Kind: KindShape, Pointer: "/params/event", Offset: -1, Found: "nil", Expected: "an event"}
	}
	w := &writer{buf: make([]byte, 0, 1024)}
	return q.encode(w, func() { w.event(q.Event) })
}

// EncodeText is Encode with a text in place of the event's own encoding. The text
// must be what Event.Encode returned for q.Event as it is now: it isn't looked at,
// so that an event which was validated needn't be encoded once for every receiver.
func (q *Intercept) EncodeText(event Raw) ([]byte, error) {
	w := &writer{buf: make([]byte, 0, len(event)+1024)}
	return q.encode(w, func() { w.buf = append(w.buf, event...) })
}

func (q *Intercept) encode(w *writer, event func()) ([]byte, error) {
	w.start(StringID(q.Event.ID), MethodIntercept)
	w.lit(`,"event":`)
	event()
	w.lit(`,"capabilities":`)
	w.any(&q.Capabilities)
	if q.State != nil {
		w.lit(`,"state":`)
		w.any(q.State)
	}
	w.extensions(q.Extensions)
	w.unknown(q.Unknown, false, isInterceptParam)
	w.lit("}}")
	return w.message()
}

// Encode returns the notification as one line without its newline.
func (q *Observe) Encode() ([]byte, error) {
	if q.Event == nil {
		return nil, &Error{Kind: KindShape, Pointer: "/params/event", Offset: -1, Found: "nil", Expected: "an event"}
	}
	w := &writer{buf: make([]byte, 0, 1024)}
	w.start(ID{}, MethodObserve)
	w.lit(`,"event":`)
	w.event(q.Event)
	w.extensions(q.Extensions)
	w.unknown(q.Unknown, false, isObserveParam)
	w.lit("}}")
	return w.message()
}

func isObserveParam(name string) bool {
	return name == "protocolVersion" || name == "event" || name == "extensions"
}

func isInterceptParam(name string) bool {
	return isObserveParam(name) || name == "capabilities" || name == "state"
}

// Encode returns the request as one line without its newline.
func (q *Discover) Encode() ([]byte, error) {
	if q.ID.IsZero() {
		return nil, &Error{Kind: KindEnvelope, Pointer: "/id", Offset: -1, Found: "no id", Expected: "a text or an integer"}
	}
	w := &writer{}
	w.start(q.ID, MethodCapabilities)
	w.lit("}}")
	return w.done()
}

func (w *writer) lit(s string) { w.buf = append(w.buf, s...) }

// start writes the envelope up to and with params.protocolVersion.
func (w *writer) start(id ID, method string) {
	w.lit(`{"jsonrpc":"2.0"`)
	if !id.IsZero() {
		w.lit(`,"id":` + id.text)
	}
	w.lit(`,"method":"` + method + `","params":{"protocolVersion":"` + Version + `"`)
}

func (w *writer) extensions(e Extensions) {
	if e != nil {
		w.lit(`,"extensions":`)
		w.mapping(&field{kind: isExtensions}, reflect.ValueOf(e))
	}
}

// Peeked is what can be told of a message without judging it.
type Peeked struct {
	// ID is the message's id, zero if it has none or an unusable one.
	ID ID
	// HasID tells that there is an id member, of whatever value.
	HasID bool
	// Method is "" in a response.
	Method string
}

// Peek reads id and method of a message. It fails with an *Error of KindSyntax
// for what isn't one strict JSON object, and checks nothing else.
func Peek(data []byte) (Peeked, error) {
	var p Peeked
	err := open(data, func(r *reader) error {
		if r.dec.PeekKind() != '{' {
			return r.mismatch("AHP-RPC-001", "one JSON-RPC object; batches are forbidden")
		}
		if _, err := r.dec.ReadToken(); err != nil {
			return err
		}
		for r.dec.PeekKind() == '"' {
			b, err := r.name()
			if err != nil {
				return err
			}
			name := string(b)
			v, err := r.dec.ReadValue()
			if err != nil {
				return err
			}
			switch name {
			case "id":
				p.HasID = true
				p.ID, _ = parseID(v)
			case "method":
				if v.Kind() == '"' {
					m, err := unquoted(v)
					if err != nil {
						return err
					}
					p.Method = string(m)
				}
			}
		}
		_, err := r.dec.ReadToken()
		return err
	})
	if err != nil {
		if e, ok := err.(*Error); ok && e.Kind == KindShape {
			e.Kind = KindEnvelope
		}
		return Peeked{}, err
	}
	return p, nil
}

// version returns the Error for revision v in the object that was read last.
func (r *reader) version(v string) error {
	e := r.failed("AHP-VER-001", "the revision "+quote(v), "revision "+Version).at("/protocolVersion")
	e.Kind = KindVersion
	return e
}

func (e *Error) at(suffix string) *Error {
	e.Pointer += suffix
	return e
}

func unsupportedVersion(pointer, v string, data []byte) *Error {
	return &Error{Kind: KindVersion, Pointer: pointer, Offset: locate(data, pointer), Found: "the revision " + quote(v),
		Expected: "revision " + Version, Requirement: "AHP-VER-001"}
}

// versionOf returns the text at pointer, or nil: a message of another revision
// may have any shape, so its revision is looked for when it doesn't decode.
func versionOf(data []byte, pointer string) *string {
	dec, _, exact := seek(data, pointer)
	if !exact {
		return nil
	}
	tok, err := dec.ReadToken()
	if err != nil || tok.Kind() != '"' {
		return nil
	}
	s := tok.String()
	return &s
}

// MessageID returns the id of a message, reading no further than it must: the
// rest of data may be no JSON at all. ok is false if no usable id was met.
func MessageID(data []byte) (id ID, ok bool) {
	dec := jsontext.NewDecoder(bytes.NewReader(data))
	if tok, err := dec.ReadToken(); err != nil || tok.Kind() != '{' {
		return ID{}, false
	}
	for dec.PeekKind() == '"' {
		raw, err := dec.ReadValue()
		if err != nil {
			return ID{}, false
		}
		name, err := unquoted(raw)
		if err != nil {
			return ID{}, false
		}
		isID := string(name) == "id"
		v, err := dec.ReadValue()
		if err != nil {
			return ID{}, false
		}
		if isID {
			return parseID(v)
		}
	}
	return ID{}, false
}
