package conformance

import (
	"errors"
	"fmt"
	"strings"

	"github.com/abhed/abhed/ahp"
)

// message is what the suite sends. The suite judges its own messages: one that is
// meant to be valid must be, and one that is meant to break a rule must break just
// that one.
type message struct {
	raw []byte
	// breaks is the rule that the message breaks on purpose; 0 if it is valid.
	breaks ahp.Kind
	// own tells that the message isn't judged: it breaks what the decoder can't
	// see, or a bound that is another one for the peer.
	own bool
	id  ahp.ID
}

// check returns why the message isn't what it is meant to be.
func (m *message) check() error {
	if m.own {
		return nil
	}
	_, err := ahp.DecodeRequest(m.raw)
	var e *ahp.Error
	switch {
	case m.breaks == 0 && err == nil:
		return nil
	case m.breaks != 0 && errors.As(err, &e) && e.Kind == m.breaks:
		return nil
	case m.breaks == 0:
		return fmt.Errorf("the suite's own message is invalid: %w", err)
	case err == nil:
		return fmt.Errorf("the suite's own message was to break a rule (%s) and doesn't", m.breaks)
	}
	return fmt.Errorf("the suite's own message was to break another rule (%s): %w", m.breaks, err)
}

// intercept returns the decoded decision request, or nil.
func (m *message) intercept() *ahp.Intercept {
	q, err := ahp.DecodeRequest(m.raw)
	if err != nil {
		return nil
	}
	i, _ := q.(*ahp.Intercept)
	return i
}

// edit changes a message before it is encoded.
type edit func(m object)

// set gives the member at a path such as "params.event.tool" a value; objects on
// the way that aren't there are made.
func set(path string, v any) edit {
	return func(m object) {
		o, name := at(m, path)
		o[name] = v
	}
}

// drop removes the member at a path.
func drop(path string) edit {
	return func(m object) {
		o, name := at(m, path)
		delete(o, name)
	}
}

func at(m object, path string) (object, string) {
	names := strings.Split(path, ".")
	for _, name := range names[:len(names)-1] {
		next, is := m[name].(object)
		if !is {
			next = object{}
			m[name] = next
		}
		m = next
	}
	return m, names[len(names)-1]
}

// intercepting returns a decision request about the event, with the given id.
func intercepting(id string, event object, caps object) object {
	event["id"] = id
	return object{"jsonrpc": "2.0", "id": id, "method": ahp.MethodIntercept,
		"params": object{"protocolVersion": ahp.Version, "event": event, "capabilities": caps}}
}

// observing returns an observation of the event, with the given event id.
func observing(id string, event object) object {
	event["id"] = id
	return object{"jsonrpc": "2.0", "method": ahp.MethodObserve, "params": object{"protocolVersion": ahp.Version, "event": event}}
}

// discovering returns a discovery; id is a string or an integer.
func discovering(id any) object {
	return object{"jsonrpc": "2.0", "id": id, "method": ahp.MethodCapabilities, "params": object{"protocolVersion": ahp.Version}}
}

// made encodes a message after the edits. An error is the suite's.
func made(m object, breaks ahp.Kind, edits ...edit) (message, error) {
	for _, e := range edits {
		e(m)
	}
	raw, err := encode(m)
	if err != nil {
		return message{}, fmt.Errorf("the suite's own message can't be encoded: %w", err)
	}
	out := message{raw: raw, breaks: breaks}
	switch id := m["id"].(type) {
	case string:
		out.id = ahp.StringID(id)
	case int:
		out.id = ahp.IntID(int64(id))
	case int64:
		out.id = ahp.IntID(id)
	}
	return out, nil
}
