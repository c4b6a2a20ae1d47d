package ahp

import "reflect"

// any decodes the value into v, a pointer to one of this package's structs.
func (r *reader) any(v any) error {
	rv := reflect.ValueOf(v).Elem()
	return r.object(planOf(rv.Type()), rv)
}

// any encodes v, a pointer to one of this package's structs.
func (w *writer) any(v any) {
	rv := reflect.ValueOf(v)
	if rv.IsNil() {
		w.fail("", "nil", "a value")
		return
	}
	w.object(planOf(rv.Type().Elem()), rv.Elem())
}

func decode[T any](data []byte) (*T, error) {
	out := new(T)
	if err := open(data, func(r *reader) error { return r.any(out) }); err != nil {
		return nil, err
	}
	return out, nil
}

// encodeChecked encodes v and refuses what would not decode.
func encodeChecked[T any](v *T) ([]byte, error) {
	w := &writer{}
	w.any(v)
	b, err := w.done()
	if err != nil {
		return nil, err
	}
	if _, err := decode[T](b); err != nil {
		return nil, withoutOffset(err)
	}
	return b, nil
}

// DecodeEvent decodes and validates an event of any type. An unknown event type
// gives an Error of KindEvent.
func DecodeEvent(data []byte) (*Event, error) {
	var e *Event
	err := open(data, func(r *reader) (err error) {
		e, err = r.event()
		return err
	})
	if err != nil {
		return nil, err
	}
	return e, nil
}

// Encode returns e as JSON, validated.
func (e *Event) Encode() ([]byte, error) {
	w := &writer{buf: make([]byte, 0, e.about())}
	w.event(e)
	b, err := w.done()
	if err != nil {
		return nil, err
	}
	if _, err := DecodeEvent(b); err != nil {
		return nil, withoutOffset(err)
	}
	return b, nil
}

// about returns roughly how long the text of e is, so that it needn't be moved as it
// grows.
func (e *Event) about() int {
	n := 768
	if e == nil {
		return n
	}
	n += len(e.Native) + len(e.Params)
	if e.Tool != nil {
		n += len(e.Tool.Input)
	}
	return n
}

// Validate reports how e breaks the rules of its event type, or nil. The error is
// an *Error.
func (e *Event) Validate() error {
	_, err := e.Encode()
	return err
}

// MarshalJSON is Encode.
func (e *Event) MarshalJSON() ([]byte, error) { return e.Encode() }

// UnmarshalJSON is DecodeEvent.
func (e *Event) UnmarshalJSON(data []byte) error {
	got, err := DecodeEvent(data)
	if err == nil {
		*e = *got
	}
	return err
}

// MarshalJSON returns m as JSON, validated: what an effect's value is made of.
func (m Message) MarshalJSON() ([]byte, error) { return encodeChecked(&m) }

// MarshalJSON returns p as JSON, validated.
func (p Part) MarshalJSON() ([]byte, error) { return encodeChecked(&p) }

// DecodeMessages decodes a list of canonical messages.
func DecodeMessages(data []byte) ([]Message, error) {
	var items Items
	err := open(data, func(r *reader) error { return r.items(true, &items) })
	return items.Messages, err
}

// DecodeTextParts decodes a list of text parts.
func DecodeTextParts(data []byte) ([]Part, error) {
	var parts []Part
	err := open(data, func(r *reader) error { return r.textParts(&parts) })
	return parts, err
}
