package validate

import (
	"bytes"

	"github.com/abhed/abhed/ahp"
)

// Verdict is what a Stream makes of one line. Its JSON form is that of
// "ahp validate --stream".
type Verdict struct {
	Accepted bool `json:"accepted"`
	// ErrorKind is "schema" or "lineage", and nil for an accepted message. A fault of
	// correlation counts as one of the schema.
	ErrorKind *string `json:"errorKind"`
	// Finding says why; nil for an accepted message.
	Finding *Finding `json:"-"`
}

// Stream judges the wire messages of one connection, one after the other, with
// their lineage (§20). It isn't safe for concurrent use.
type Stream struct{ lineage *ahp.Lineage }

// NewStream returns a Stream that has seen nothing; opts bounds what it remembers.
func NewStream(opts ahp.LineageOptions) *Stream { return &Stream{ahp.NewLineage(opts)} }

// Judge judges one line, without its line feed. A refused message adds nothing to
// the lineage. data isn't kept.
func (s *Stream) Judge(data []byte) Verdict {
	if bytes.IndexByte(data, '\n') >= 0 {
		return refused("schema", Finding{Layer: "schema", Found: "a line feed in the message", Expected: "one message a line", Requirement: "AHP-STDIO-001"})
	}
	kind, f := dispatch(data)
	if f != nil {
		return refused("schema", *f)
	}
	if kind == Registration || kind == UploadReceipt {
		return refused("schema", Finding{Layer: "schema", Found: "a document of the kind " + string(kind), Expected: "a JSON-RPC message", Requirement: "AHP-RPC-001"})
	}
	r := &Report{Kind: kind}
	var q ahp.Request
	switch {
	case kind.isInterceptReply():
		_ = r.reply(data, nil) // only a context makes it fail
	case kind == InterceptRequest || kind == ObserveNotification:
		q = r.request(data)
	default:
		r.other(data)
	}
	if !r.Valid() {
		return refused("schema", r.Findings[0])
	}
	var e *ahp.Event
	switch q := q.(type) {
	case *ahp.Intercept:
		e = q.Event
	case *ahp.Observe:
		e = q.Event
	default:
		return Verdict{Accepted: true}
	}
	if err := s.lineage.Add(e); err != nil {
		f := findingOf(nil, err)
		f.Pointer = "/params/event" + f.Pointer
		f.Offset = ahp.Locate(data, f.Pointer)
		return refused("lineage", f)
	}
	return Verdict{Accepted: true}
}

func refused(kind string, f Finding) Verdict { return Verdict{ErrorKind: &kind, Finding: &f} }
