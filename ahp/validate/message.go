package validate

import (
	"fmt"
	"maps"
	"slices"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/elicitation"
	"github.com/abhed/abhed/internal/strictjson"
)

// Message judges data, which is one message or document, as kind. The error means
// that the options can't be used, such as a context in which kind has no meaning:
// nothing was judged then. data isn't kept.
func Message(data []byte, kind Kind, opts Options) (*Report, error) {
	if !slices.Contains(Kinds(), kind) {
		return nil, fmt.Errorf("validate: unknown kind %q", kind)
	}
	if kind == Any {
		found, f := dispatch(data)
		if f != nil {
			return &Report{Kind: Any, Findings: []Finding{*f}}, nil
		}
		kind = found
	}
	r := &Report{Kind: kind}
	switch {
	case opts.Response != nil && !kind.isInterceptReply():
		return nil, fmt.Errorf("validate: the context of a response, expected none for the kind %s", kind)
	case opts.Registration != nil && kind != Registration:
		return nil, fmt.Errorf("validate: the context of a registration, expected none for the kind %s", kind)
	}
	var err error
	switch {
	case kind == Registration:
		r.registration(data, opts.Registration)
	case kind.isInterceptReply():
		err = r.reply(data, opts.Response)
	default:
		r.other(data)
	}
	return r, err
}

// members returns the members of a JSON object by name.
func members(data []byte) (map[string]ahp.Raw, error) {
	var m map[string]ahp.Raw
	err := strictjson.Unmarshal(data, &m, strictjson.Options{MaxBytes: ahp.MaxMessageBytes, MaxDepth: ahp.MaxDepth})
	return m, err
}

// dispatch says what data is, by its members, or why it is nothing known.
func dispatch(data []byte) (Kind, *Finding) {
	const list = "a message with a method, a result or an error, a registration or an upload receipt"
	m, err := members(data)
	if err != nil {
		// The decoders say it better than this door does.
		if err := ahp.CheckMessage(data); err != nil {
			f := findingOf(data, err)
			return Any, &f
		}
		return Any, &Finding{Layer: "schema", Found: err.Error(), Expected: list}
	}
	has := func(m map[string]ahp.Raw, name string) bool { _, is := m[name]; return is }
	unknown := func(pointer, found, expected string) (Kind, *Finding) {
		return Any, &Finding{Layer: "schema", Pointer: pointer, Offset: ahp.Locate(data, pointer), Found: found, Expected: expected, Requirement: "AHP-RPC-002"}
	}
	switch {
	case has(m, "method"):
		methods := map[string]Kind{ahp.MethodIntercept: InterceptRequest, ahp.MethodObserve: ObserveNotification, ahp.MethodCapabilities: CapabilitiesRequest}
		p, err := ahp.Peek(data)
		if kind, is := methods[p.Method]; err == nil && is {
			return kind, nil
		}
		return unknown("/method", "an unknown method", "one of "+fmt.Sprint(slices.Sorted(maps.Keys(methods))))
	case has(m, "result"):
		result, err := members(m["result"])
		switch {
		case err == nil && has(result, "effects"):
			return InterceptResponse, nil
		case err == nil && has(result, "manifest"):
			return CapabilitiesResponse, nil
		}
		return unknown("/result", "neither effects nor a manifest", "a result with one of them")
	case has(m, "error"):
		return ErrorResponse, nil
	case has(m, "hooks"):
		return Registration, nil
	case has(m, "ref") && has(m, "size"):
		return UploadReceipt, nil
	case has(m, "type") && has(m, "source"):
		return unknown("", "an event alone", "the message that carries it, as params.event; ahp send reads an event alone")
	}
	return unknown("", "an object of no known kind", list)
}

// other judges everything but registrations and responses to intercepts.
func (r *Report) other(data []byte) {
	var err error
	switch r.Kind {
	case JSONRPCMessage:
		err = ahp.CheckMessage(data)
	case UploadReceipt:
		_, err = ahp.DecodeReceipt(data)
	case CapabilitiesResponse:
		p, _ := ahp.Peek(data)
		_, err = ahp.DecodeManifestReply(data, p.ID)
	case ErrorResponse:
		err = errorReply(data)
	default:
		r.request(data)
		return
	}
	if err != nil {
		r.fail(data, err)
	}
}

// errorReply judges a JSON-RPC error response.
func errorReply(data []byte) error {
	p, _ := ahp.Peek(data)
	_, err := ahp.DecodeEffectsReply(data, p.ID)
	if _, is := err.(*ahp.RPCError); is {
		return nil
	}
	if m, bad := members(data); err == nil || bad == nil && m["error"] == nil {
		return &ahp.Error{Kind: ahp.KindEnvelope, Offset: 0, Found: "no error", Expected: "an error response", Requirement: "AHP-RPC-001"}
	}
	return err
}

// request judges a message from a harness, and returns it if it is valid.
func (r *Report) request(data []byte) ahp.Request {
	q, err := ahp.DecodeRequest(data)
	if err != nil {
		r.fail(data, err)
		return nil
	}
	want := map[Kind]string{InterceptRequest: ahp.MethodIntercept, ObserveNotification: ahp.MethodObserve, CapabilitiesRequest: ahp.MethodCapabilities}[r.Kind]
	if q.Method() != want {
		r.fail(data, &ahp.Error{Kind: ahp.KindMethod, Pointer: "/method", Offset: -1, Found: "the method " + q.Method(), Expected: want, Requirement: "AHP-RPC-002"})
		return nil
	}
	switch q := q.(type) {
	case *ahp.Intercept:
		r.unknown(data, "/params", q.Unknown)
		r.event(data, q.Event)
	case *ahp.Observe:
		r.unknown(data, "/params", q.Unknown)
		r.event(data, q.Event)
	}
	if !r.Valid() {
		return nil
	}
	return q
}

// event judges what the decoder leaves alone: the texts of elicitations (§21).
func (r *Report) event(data []byte, e *ahp.Event) {
	r.unknown(data, "/params/event", e.Unknown)
	var (
		err    error
		member string
	)
	switch e.Type {
	case ahp.UserElicitationRequest:
		member = "request"
		_, err = elicitation.OfRequest(e)
	case ahp.UserElicitationResult:
		member = "result"
		_, err = elicitation.OfResult(e, nil)
	}
	if err == nil {
		return
	}
	f := findingOf(data, err)
	pointer := "/params/event/elicitation/" + member
	f.Found = "in the text of " + member + ", at " + or(f.Pointer, "the top") + ": " + f.Found
	f.Pointer, f.Offset = pointer, ahp.Locate(data, pointer)
	r.Findings = append(r.Findings, f)
}

// maxWarnings bounds the warnings about unknown members of one object.
const maxWarnings = 20

// unknown warns of members that are ignored: a misspelt one looks the same.
func (r *Report) unknown(data []byte, pointer string, u ahp.Unknown) {
	for i, name := range slices.Sorted(maps.Keys(u)) {
		if i == maxWarnings {
			return
		}
		at := pointer + "/" + escape(name)
		r.Warnings = append(r.Warnings, Finding{Layer: "schema", Pointer: at, Offset: ahp.Locate(data, at),
			Found: "a member that the protocol doesn't have here", Expected: "none: it is ignored", Requirement: "AHP-CORE-003"})
	}
}
