package elicitation

import (
	"github.com/abhed/abhed/ahp"
)

// Request is the params of an elicitation/create request.
type Request struct {
	Mode    Mode
	Message string
	// Form is the form to fill in, in form mode; nil where its text isn't known (see
	// OfRequest).
	Form *Form
	// URL and ElicitationID are of url mode.
	URL           string
	ElicitationID string
	// Meta is the object _meta, or nil.
	Meta ahp.Raw
	// Task is set where the request is to run as a task.
	Task *Task
}

// Task asks for the request to be run as an MCP task.
type Task struct {
	// TTL is a number of milliseconds for which the task is to be kept, or nil.
	TTL ahp.Raw
}

// ParseRequest reads the text of a user.elicitation.request: the complete params of
// an elicitation/create request. The error is an *ahp.Error of KindSyntax or
// KindShape that points into text.
func ParseRequest(text []byte) (*Request, error) {
	p := &parser{}
	v := p.open(text)
	o := p.object(v)
	q := &Request{Mode: ModeForm}
	if m := o.members["mode"]; m.there() {
		q.Mode = Mode(p.oneOf(m, string(ModeForm), string(ModeURL)))
	}
	if q.Mode == ModeURL {
		o = p.object(v, "mode", "message", "url", "elicitationId", "_meta", "task")
		url := p.need(o, "url")
		q.URL = p.text(url)
		q.ElicitationID = p.text(p.need(o, "elicitationId"))
		if p.err == nil && !FormatURI.Matches(q.URL) {
			p.refuse(url, quote(q.URL), "an absolute URI (RFC 3986)")
		}
	} else {
		o = p.object(v, "mode", "message", "requestedSchema", "_meta", "task")
		q.Form = p.form(p.need(o, "requestedSchema"))
	}
	q.Message = p.text(p.need(o, "message"))
	q.Meta, q.Task = p.meta(o.members["_meta"]), p.task(o.members["task"])
	if p.err != nil {
		return nil, p.err
	}
	return q, nil
}

// meta reads _meta; its progressToken is a string or an integer.
func (p *parser) meta(v value) ahp.Raw {
	if p.err != nil || !v.there() {
		return nil
	}
	o := p.object(v)
	if token := o.members["progressToken"]; token.there() && token.kind() != '"' {
		if d := p.number(token); d != nil && !d.integer() {
			p.refuse(token, quote(string(token.raw)), "a string or an integer")
		}
	}
	return v.copy()
}

func (p *parser) task(v value) *Task {
	if p.err != nil || !v.there() {
		return nil
	}
	ttl := p.object(v, "ttl").members["ttl"]
	p.number(ttl)
	return &Task{TTL: ttl.copy()}
}

// OfRequest reads the request of a user.elicitation.request event and holds it
// against the envelope: the modes are equal. Without a body, as where the text was
// left out, all that is known is the mode. The error is an *ahp.Error; one in the
// text points into the text.
func OfRequest(e *ahp.Event) (*Request, error) {
	if e == nil || e.Type != ahp.UserElicitationRequest || e.Elicitation == nil {
		return nil, envelope("/type", "another event", string(ahp.UserElicitationRequest))
	}
	text, err := textOf(e.Elicitation.Request, "/elicitation/request")
	if err != nil {
		return nil, err
	}
	if text == nil {
		return &Request{Mode: Mode(e.Elicitation.Mode)}, nil
	}
	q, err := ParseRequest([]byte(*text))
	if err != nil {
		return nil, err
	}
	if string(q.Mode) != e.Elicitation.Mode {
		return nil, envelope("/elicitation/mode", quote(e.Elicitation.Mode), quote(string(q.Mode))+", which is the request's")
	}
	return q, nil
}

// textOf returns the text of a part, nil if it isn't there.
func textOf(p *ahp.Part, pointer string) (*string, error) {
	if p == nil {
		return nil, nil
	}
	if p.Kind != ahp.KindText {
		return nil, envelope(pointer+"/kind", quote(string(p.Kind)), `"text": the JSON is never uploaded`)
	}
	return p.Text, nil
}

// envelope returns an error of an event; there is no text to point into.
func envelope(pointer, found, expected string) *ahp.Error {
	return &ahp.Error{Kind: ahp.KindShape, Pointer: pointer, Offset: -1, Found: found, Expected: expected}
}
