package event

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/abhed/abhed/internal/strictjson"
)

const (
	// maxDepth is the deepest nesting of a stored event: a Raw value of the
	// default depth stands three levels down.
	maxDepth = 128 + 8
	// maxLoaded bounds a payload after its blobs are back in place.
	maxLoaded = 256 << 20
)

// PayloadError says that an event's own members are sound and its payload isn't
// what its type asks for. The Event that Decode returns beside it holds the
// payload as Unknown.
type PayloadError struct {
	Type Type
	Err  error
}

// Error returns the cause with the event's type.
func (e *PayloadError) Error() string { return fmt.Sprintf("event %s: %v", e.Type, e.Err) }

// Unwrap returns the cause.
func (e *PayloadError) Unwrap() error { return e.Err }

// Decoder reads events. The zero Decoder is ready; it refuses events that refer
// to blobs. It is safe for concurrent use if Blob is.
type Decoder struct {
	// Blob returns a string that is kept beside the record; nil refuses
	// references. What it returns is trusted: it checks hash and size.
	Blob func(sha256 string, size int64) (string, error)
}

// Decode reads one line of a record. See Decoder.Decode.
func Decode(line []byte) (Event, error) { return (&Decoder{}).Decode(line) }

// wire has the members of an event as they are stored.
type wire struct {
	Actor     Actor     `json:"actor"`
	Hash      string    `json:"hash"`
	ID        string    `json:"id"`
	Payload   Raw       `json:"payload"`
	Prev      string    `json:"prev"`
	Seq       int64     `json:"seq"`
	SessionID string    `json:"session_id"`
	Time      time.Time `json:"time"`
	Trust     Trust     `json:"trust"`
	Type      Type      `json:"type"`
}

// Decode reads one line of a record, with or without its line end. Member names
// must match exactly; members that this version doesn't know are passed over,
// and so are payload types, which are kept as Unknown. It checks form, not the
// hash: chain does. The event shares no memory with line.
//
// Errors are of type *strictjson.Error, or *PayloadError if only the payload is
// at fault; the event is then usable but for its payload.
func (d *Decoder) Decode(line []byte) (Event, error) {
	var w wire
	o := strictjson.Options{MaxBytes: MaxLine, MaxDepth: maxDepth}
	if err := strictjson.Unmarshal(line, &w, o); err != nil {
		return Event{}, err
	}
	if err := w.check(); err != nil {
		return Event{}, err
	}
	e := Event{
		ID: w.ID, SessionID: w.SessionID, Seq: w.Seq, Time: w.Time.UTC(), Actor: w.Actor, Trust: w.Trust, Prev: w.Prev, Hash: w.Hash,
	}
	p, err := d.payload(w.Type, w.Payload)
	if err != nil {
		e.Payload = &Unknown{Kind: w.Type, Body: w.Payload}
		var je *strictjson.Error
		if errors.As(err, &je) {
			je.Pointer = "/payload" + je.Pointer
			je.Offset += int64(max(0, bytes.Index(line, w.Payload)))
		}
		return e, &PayloadError{Type: w.Type, Err: err}
	}
	e.Payload = p
	return e, nil
}

// check holds the decoded members against what every event has.
func (w *wire) check() error {
	bad := func(member, msg string) error { return &strictjson.Error{Pointer: "/" + member, Msg: msg} }
	for _, m := range []struct{ name, value string }{
		{"actor", string(w.Actor)}, {"id", w.ID}, {"session_id", w.SessionID}, {"trust", string(w.Trust)}, {"type", string(w.Type)},
	} {
		if m.value == "" {
			return bad(m.name, "missing or empty, expected text")
		}
	}
	switch {
	case len(w.Payload) == 0 || w.Payload[0] != '{':
		return bad("payload", "missing or no object, expected an object")
	case w.Seq < 1:
		return bad("seq", fmt.Sprintf("found %d, expected an integer of 1 or more", w.Seq))
	case w.Time.IsZero():
		return bad("time", "missing, expected a time as RFC 3339 has it")
	case !isHash(w.Hash):
		return bad("hash", "missing or malformed, expected 64 lower-case hexadecimal digits")
	case w.Prev != "" && !isHash(w.Prev):
		return bad("prev", "malformed, expected 64 lower-case hexadecimal digits, or nothing in the first event")
	}
	return nil
}

func (d *Decoder) payload(t Type, body Raw) (Payload, error) {
	p := New(t)
	if p == nil {
		return &Unknown{Kind: t, Body: body}, nil
	}
	if bytes.Contains(body, []byte(`$blob"`)) {
		load := d.Blob
		if load == nil {
			load = func(sha256 string, _ int64) (string, error) {
				return "", fmt.Errorf("the text is stored beside the record (blob %s) and was not to be loaded", sha256)
			}
		}
		var err error
		if body, err = putBlobs(body, load); err != nil {
			return nil, err
		}
	}
	return p, strictjson.Unmarshal(body, p, strictjson.Options{MaxBytes: maxLoaded, MaxDepth: maxDepth})
}
