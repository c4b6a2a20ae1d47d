package ahp

// Locate returns the byte offset at which the value at a JSON pointer starts in
// data, or that of the nearest value around it where there is none. It takes time
// linear in data.
func Locate(data []byte, pointer string) int64 { return locate(data, pointer) }

// CheckMessage judges a JSON-RPC message by the rules of its envelope alone (§2):
// a request, a notification or a response of whatever method. The error is an
// *Error, of KindSyntax or KindEnvelope.
func CheckMessage(data []byte) error {
	return open(data, func(r *reader) error {
		var env envelope
		err := r.envelope(&env, func(r *reader, name string) (bool, error) {
			switch name {
			case "params":
				env.params = true
				return true, asEnvelope(r.anyObject())
			case "result":
				env.result = true
				return true, asEnvelope(r.anyObject())
			case "error":
				env.failure = true
				return true, asEnvelope(r.any(new(RPCError)))
			}
			return false, nil
		})
		if err != nil {
			return err
		}
		return r.oneRole(&env)
	})
}

// anyObject reads an object and doesn't look into it.
func (r *reader) anyObject() error {
	if r.dec.PeekKind() != '{' {
		return r.mismatch("AHP-RPC-001", "an object")
	}
	return r.dec.SkipValue()
}

// oneRole holds that a message is one of request, notification and response.
func (r *reader) oneRole(env *envelope) error {
	answer := env.result || env.failure
	switch {
	case env.method != "" && answer:
		return r.bad("a method beside a result or an error", "one of them")
	case env.method != "" && !env.params:
		return r.bad("no params", "a params object")
	case env.method != "" && env.hasID && env.id.IsZero():
		return r.bad("a null id", "a text that isn't empty, an integer, or no id in a notification")
	case env.method != "":
		return nil
	case !answer:
		return r.bad("none of method, result and error", "one of them")
	case env.result && env.failure:
		return r.bad("both result and error", "one of them")
	case !env.hasID:
		return r.bad("no member \"id\"", "the request's id")
	case env.result && env.id.IsZero():
		return r.bad("a null id", "the request's id")
	}
	return nil
}
