package ahp

import (
	"errors"
	"strings"
)

// EncodeEffects returns the response to the intercept with the given id. It
// refuses effects that are malformed.
func EncodeEffects(id ID, effects []Effect) ([]byte, error) {
	w := &writer{}
	w.reply(id)
	w.lit(`"result":{"protocolVersion":"` + Version + `","effects":[`)
	for i, e := range effects {
		if i > 0 {
			w.lit(",")
		}
		w.effect(e)
	}
	w.lit("]}}")
	b, err := w.done()
	if err != nil {
		return nil, err
	}
	if len(effects) > 0 {
		if _, err := DecodeEffectsReply(b, id); err != nil {
			return nil, withoutOffset(err)
		}
	}
	return b, nil
}

// EncodeManifest returns the response to the discovery with the given id.
func EncodeManifest(id ID, m *Manifest) ([]byte, error) {
	b, err := m.Encode()
	if err != nil {
		return nil, err
	}
	w := &writer{}
	w.reply(id)
	w.lit(`"result":{"protocolVersion":"` + Version + `","manifest":`)
	w.buf = append(w.buf, b...)
	w.lit("}}")
	return w.message()
}

// EncodeError returns the error response to the request with the given id; the
// zero ID gives a null id.
func EncodeError(id ID, e *RPCError) ([]byte, error) {
	w := &writer{}
	w.reply(id)
	w.lit(`"error":`)
	w.any(e)
	w.lit("}")
	return w.message()
}

func (w *writer) reply(id ID) { w.lit(`{"jsonrpc":"2.0","id":` + id.String() + `,`) }

// DecodeEffectsReply decodes the response to the intercept with the given id. The
// error is an *Error, or an *RPCError if that is what the backend answered.
func DecodeEffectsReply(data []byte, id ID) ([]Effect, error) {
	var effects []Effect
	err := decodeReply(data, id, "protocolVersion effects", func(r *reader, name string) (bool, error) {
		switch name {
		case "effects":
			return true, r.effects(&effects)
		case "manifest":
			return true, r.unexpected(name)
		case "extensions":
			var ext Extensions
			return true, r.extensionsInto(&ext)
		}
		return false, nil
	})
	if err != nil {
		return nil, err
	}
	return effects, nil
}

// DecodeManifestReply decodes the response to the discovery with the given id.
// The error is an *Error, or an *RPCError if that is what came back.
func DecodeManifestReply(data []byte, id ID) (*Manifest, error) {
	m := new(Manifest)
	err := decodeReply(data, id, "protocolVersion manifest", func(r *reader, name string) (bool, error) {
		switch name {
		case "manifest":
			return true, r.any(m)
		case "effects":
			return true, r.unexpected(name)
		}
		return false, nil
	})
	if err != nil {
		return nil, err
	}
	return m, nil
}

func (r *reader) unexpected(name string) error {
	if err := r.dec.SkipValue(); err != nil {
		return err
	}
	return r.failed("AHP-RPC-002", "member "+quote(name), "none in this result")
}

// decodeReply decodes a response whose result has the members that own knows.
// All of the shape is checked before the id, so that a malformed reply is called
// so whoever it was for.
func decodeReply(data []byte, id ID, need string, own func(r *reader, name string) (known bool, err error)) error {
	var (
		env    envelope
		answer RPCError
	)
	err := open(data, func(r *reader) error {
		err := r.envelope(&env, func(r *reader, name string) (bool, error) {
			switch name {
			case "result":
				env.result = true
				return true, r.paramsObject(need, func(name string) (bool, error) { return own(r, name) })
			case "error":
				env.failure = true
				return true, asEnvelope(r.any(&answer))
			case "params":
				return false, nil
			}
			return false, nil
		})
		switch {
		case err != nil:
			return err
		case env.result == env.failure:
			return r.bad("not exactly one of result and error", "one of them")
		case !env.hasID:
			return r.bad("no member \"id\"", "the request's id")
		case env.result && env.id.IsZero():
			return r.bad("a null id", "the request's id")
		case env.id != id && !(env.failure && env.id.IsZero()):
			e := r.failed("AHP-RPC-001", "a reply to "+env.id.shown(), "a reply to "+id.shown()).at("/id")
			e.Kind = KindCorrelation
			return e
		}
		return nil
	})
	if err != nil {
		var e *Error
		if errors.As(err, &e) && (e.Kind == KindShape || e.Kind == KindEffect) {
			if v := versionOf(data, "/result/protocolVersion"); v != nil && !supported(*v) {
				return unsupportedVersion("/result/protocolVersion", *v, data)
			}
		}
		return err
	}
	if env.failure {
		return &answer
	}
	return nil
}

// maxDetail bounds what a Failure repeats of a reply, in bytes: the text of an error
// and the names in a pointer may be as long as a message.
const maxDetail = 1 << 10

// ReplyFailure returns the operational failure that err, from a function that
// decodes a reply, stands for. Its Detail has about 1 KiB at most.
func ReplyFailure(err error) *Failure {
	detail := strings.TrimPrefix(err.Error(), "ahp: ")
	if len(detail) > maxDetail {
		detail = strings.ToValidUTF8(detail[:maxDetail], "") + "…"
	}
	f := &Failure{Class: FailMalformed, Detail: detail, Err: err}
	var (
		rpc *RPCError
		e   *Error
	)
	switch {
	case errors.As(err, &rpc):
		switch rpc.Code {
		case CodeUnsupportedVersion:
			f.Class = FailVersion
		case CodeUnsupportedEvent:
			f.Class = FailEvent
		default:
			f.Class = FailRPCError
		}
	case errors.As(err, &e):
		switch e.Kind {
		case KindVersion:
			f.Class = FailVersion
		case KindEffect, KindCapability, KindApplication:
			f.Class = FailEffect
		case KindCorrelation:
			f.Class = FailIDMismatch
		}
	}
	return f
}
