package vectors

import (
	"fmt"
	"slices"
	"strconv"
)

// Layer is what an implementation refuses a message by, the first that does.
type Layer string

// The layers, in the order in which they are asked.
const (
	// LayerOK refuses nothing: the message is valid.
	LayerOK Layer = "ok"
	// LayerSyntax: the bytes aren't one strict JSON value within the bounds.
	LayerSyntax Layer = "syntax"
	// LayerShape: JSON that isn't the message's shape, its envelope included.
	LayerShape Layer = "shape"
	// LayerVersion: another revision.
	LayerVersion Layer = "version"
	// LayerCorrelation: an id that belongs to something else.
	LayerCorrelation Layer = "correlation"
	// LayerCapability: an effect that the request doesn't advertise.
	LayerCapability Layer = "capability"
	// LayerApplication: an advertised effect that can't be applied.
	LayerApplication Layer = "application"
)

// Kind says what a message is read as.
type Kind string

// The kinds.
const (
	// KindRequest is a message from a harness, a notification included.
	KindRequest Kind = "request"
	// KindReply is a response to Message.Request.
	KindReply Kind = "reply"
	// KindRegistration is a registration document.
	KindRegistration Kind = "registration"
)

// Message is one message and what is to be made of it.
type Message struct {
	ID, About string
	Kind      Kind
	Expect    Layer
	// Requirements are the ids of the rules that it shows.
	Requirements []string
	// Request is what a reply is to; nil for the other kinds.
	Request []byte
	Message []byte
	// Canonical is the value that a valid message has, as canonical JSON (RFC 8785):
	// what is to be ignored isn't in it. It is nil for an invalid message, and for a
	// reply.
	Canonical []byte
}

// ParseMessage reads a message vector; name is for errors.
func ParseMessage(name string, data []byte) (*Message, error) {
	a, err := parse(name, data,
		[]string{"id", "about", "kind", "expect", "encoding", "requirements"}, []string{"request", "message", "canonical"},
		[]string{"id", "about", "kind", "expect", "requirements", "message"})
	if err != nil {
		return nil, err
	}
	m := &Message{ID: a.header["id"], About: a.header["about"], Kind: Kind(a.header["kind"]), Expect: Layer(a.header["expect"])}
	m.Requirements = fields(a.header["requirements"])
	if !slices.Contains([]Kind{KindRequest, KindReply, KindRegistration}, m.Kind) {
		return nil, fmt.Errorf("vectors: %s: kind %q, expected request, reply or registration", name, m.Kind)
	}
	if !slices.Contains([]Layer{LayerOK, LayerSyntax, LayerShape, LayerVersion, LayerCorrelation, LayerCapability, LayerApplication}, m.Expect) {
		return nil, fmt.Errorf("vectors: %s: expect %q is no layer", name, m.Expect)
	}
	if a.has("request") != (m.Kind == KindReply) {
		return nil, fmt.Errorf("vectors: %s: a reply has a section \"request\", and nothing else has", name)
	}
	if wants := m.Expect == LayerOK && m.Kind != KindReply; a.has("canonical") != wants {
		return nil, fmt.Errorf("vectors: %s: the section \"canonical\" belongs to a valid message that is no reply", name)
	}
	if m.Message, err = a.bytes("message"); err != nil {
		return nil, err
	}
	if a.has("request") {
		m.Request = []byte(a.text("request"))
	}
	if a.has("canonical") {
		m.Canonical = []byte(a.text("canonical"))
	}
	return m, nil
}

// bytes returns a section, unquoted where the header says that it is quoted like a
// string of Go: for bytes that a text file can't hold.
func (a *archive) bytes(section string) ([]byte, error) {
	switch encoding, is := a.header["encoding"]; {
	case !is:
		return []byte(a.text(section)), nil
	case encoding != "quoted":
		return nil, fmt.Errorf("vectors: %s: encoding %q, expected quoted or none", a.name, encoding)
	}
	s, err := strconv.Unquote(a.text(section))
	if err != nil {
		return nil, fmt.Errorf("vectors: %s: the section %q isn't one quoted string", a.name, section)
	}
	return []byte(s), nil
}
