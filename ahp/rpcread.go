package ahp

import (
	"errors"
	"reflect"
	"slices"
	"strings"
)

// envelope collects the members of a JSON-RPC message while it is read.
type envelope struct {
	id              ID
	hasID           bool
	method          string
	version         bool
	result, failure bool
	params          bool
	waiting         []deferred
}

// DecodeRequest decodes and validates a message from a harness. The error is an
// *Error; its RPC method gives the answer to a request, and Peek tells whether it
// was one: a notification is never answered.
func DecodeRequest(data []byte) (Request, error) {
	var out Request
	err := open(data, func(r *reader) (err error) {
		out, err = r.request()
		return err
	})
	if err == nil {
		return out, nil
	}
	var e *Error
	if errors.As(err, &e) && e.Kind != KindSyntax && e.Kind != KindEnvelope && e.Kind != KindMethod {
		if v := versionOf(data, "/params/protocolVersion"); v != nil && !supported(*v) {
			return nil, unsupportedVersion("/params/protocolVersion", *v, data)
		}
	}
	return nil, err
}

// bad returns an Error of KindEnvelope at the value that was read last.
func (r *reader) bad(found, expected string) error {
	e := r.failed("AHP-RPC-001", found, expected)
	e.Kind = KindEnvelope
	return e
}

// asEnvelope gives a fault of the envelope's own members the kind KindEnvelope.
func asEnvelope(err error) error {
	if e, ok := err.(*Error); ok && e.Kind == KindShape {
		e.Kind = KindEnvelope
	}
	return err
}

func (r *reader) request() (Request, error) {
	var (
		env envelope
		out Request
	)
	err := r.envelope(&env, func(r *reader, name string) (known bool, err error) {
		if name != "params" {
			return false, nil
		}
		env.params = true
		if env.method == "" {
			env.waiting, err = r.later(env.waiting, 0)
			return true, err
		}
		out, err = r.params(env.method)
		return true, err
	})
	switch {
	case err != nil:
		return nil, err
	case env.method == "":
		return nil, r.bad("no method", "a method")
	case !env.params:
		return nil, r.bad("no params", "a params object")
	}
	if len(env.waiting) > 0 {
		if out, err = env.waiting[0].sub().params(env.method); err != nil {
			return nil, err
		}
	}
	return out, r.correlate(out, &env)
}

// correlate holds the rules between the envelope's id and the params.
func (r *reader) correlate(out Request, env *envelope) error {
	switch q := out.(type) {
	case *Observe:
		if env.hasID {
			return r.bad("an id in a notification", "none")
		}
	case *Intercept:
		if env.id.IsZero() {
			return r.bad("no usable id", "the event's id")
		}
		if env.id != StringID(q.Event.ID) {
			e := r.failed("AHP-RPC-002", "the id "+env.id.shown(), "the event's id "+quote(q.Event.ID)).at("/id")
			e.Kind = KindCorrelation
			return e
		}
	case *Discover:
		if env.id.IsZero() {
			return r.bad("no usable id", "a text that isn't empty, or an integer")
		}
		q.ID = env.id
	}
	return nil
}

// envelope reads the members of a JSON-RPC object; own handles those that it
// knows, and unknown ones are ignored (§2).
func (r *reader) envelope(env *envelope, own func(r *reader, name string) (known bool, err error)) error {
	if r.dec.PeekKind() != '{' {
		return asEnvelope(r.mismatch("AHP-RPC-001", "one JSON-RPC object; batches are forbidden"))
	}
	if _, err := r.dec.ReadToken(); err != nil {
		return err
	}
	for r.dec.PeekKind() == '"' {
		b, err := r.name()
		if err != nil {
			return err
		}
		switch string(b) {
		case "jsonrpc":
			env.version = true
			_, err = r.text("AHP-RPC-001", &field{enum: []string{"2.0"}})
			err = asEnvelope(err)
		case "id":
			err = r.readID(env)
		case "method":
			env.method, err = r.text("AHP-RPC-001", &field{min1: true})
			err = asEnvelope(err)
		default:
			var known bool
			if known, err = own(r, string(b)); !known && err == nil {
				err = r.dec.SkipValue()
			}
		}
		if err != nil {
			return err
		}
	}
	if _, err := r.dec.ReadToken(); err != nil {
		return err
	}
	if !env.version {
		return r.bad("no member \"jsonrpc\"", `"2.0"`)
	}
	return nil
}

func (r *reader) readID(env *envelope) error {
	v, err := r.dec.ReadValue()
	if err != nil {
		return err
	}
	env.hasID = true
	var ok bool
	if env.id, ok = parseID(v); !ok && v.Kind() != 'n' {
		return r.bad("the id "+quote(string(v)), "a text that isn't empty, or an integer")
	}
	return nil
}

// params decodes the params of a method.
func (r *reader) params(method string) (Request, error) {
	switch method {
	case MethodIntercept:
		return r.interceptParams()
	case MethodObserve:
		q := &Observe{}
		err := r.paramsObject("protocolVersion event", func(name string) (bool, error) {
			var err error
			switch name {
			case "event":
				q.Event, err = r.event()
			case "extensions":
				err = r.extensionsInto(&q.Extensions)
			default:
				err = r.keep(&q.Unknown, name)
			}
			return true, err
		})
		return q, err
	case MethodCapabilities:
		err := r.paramsObject("protocolVersion", func(name string) (bool, error) {
			return false, r.failed("AHP-RPC-001", "unknown member "+quote(name), "protocolVersion alone")
		})
		return &Discover{}, err
	}
	if err := r.dec.SkipValue(); err != nil {
		return nil, err
	}
	return nil, &Error{Kind: KindMethod, Pointer: "/method", Offset: -1, Found: "the method " + quote(method),
		Expected: MethodIntercept + ", " + MethodObserve + " or " + MethodCapabilities, Requirement: "AHP-RPC-002"}
}

func (r *reader) interceptParams() (Request, error) {
	q := &Intercept{}
	err := r.paramsObject("protocolVersion event capabilities", func(name string) (bool, error) {
		var err error
		switch name {
		case "event":
			q.Event, err = r.event()
		case "capabilities":
			err = r.any(&q.Capabilities)
		case "state":
			q.State = new(State)
			err = r.any(q.State)
		case "extensions":
			err = r.extensionsInto(&q.Extensions)
		default:
			err = r.keep(&q.Unknown, name)
		}
		return true, err
	})
	if err != nil {
		return nil, err
	}
	if t := q.Event.Type; !t.Interceptable() {
		e := r.failed("AHP-RPC-002", "the event type "+quote(string(t)), "an event that can be intercepted").at("/event/type")
		e.Kind = KindEvent
		return nil, e
	}
	if f := q.Capabilities.bounded(q.Event.Type); f != nil {
		f.at = "capabilities/" + f.at
		return nil, r.fault("AHP-CAP-001", f)
	}
	return q, nil
}

func (r *reader) extensionsInto(out *Extensions) error {
	return r.mapping("AHP-EXT-001", &field{kind: isExtensions}, reflect.ValueOf(out).Elem())
}

// paramsObject reads params or a result: protocolVersion, and what own knows;
// unknown members are ignored. need lists the members that must be there.
func (r *reader) paramsObject(need string, own func(name string) (known bool, err error)) error {
	if r.dec.PeekKind() != '{' {
		return r.mismatch("AHP-RPC-001", "an object")
	}
	if _, err := r.dec.ReadToken(); err != nil {
		return err
	}
	missing := strings.Fields(need)
	version := ""
	for r.dec.PeekKind() == '"' {
		b, err := r.name()
		if err != nil {
			return err
		}
		name := string(b)
		if i := slices.Index(missing, name); i >= 0 {
			missing = slices.Delete(missing, i, i+1)
		}
		if name == "protocolVersion" {
			version, err = r.text("AHP-VER-001", &field{})
		} else {
			var known bool
			if known, err = own(name); !known && err == nil {
				err = r.dec.SkipValue()
			}
		}
		if err != nil {
			return err
		}
	}
	if _, err := r.dec.ReadToken(); err != nil {
		return err
	}
	if len(missing) > 0 {
		return r.failed("AHP-VER-001", "no member "+quote(missing[0]), "that member")
	}
	if !supported(version) {
		return r.version(version)
	}
	return nil
}
