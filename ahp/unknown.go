package ahp

import (
	"reflect"
	"slices"
)

// Unknown holds members of an open object that this revision doesn't know (§4).
// They grant nothing and this package never looks into them: they are kept so that
// a party that passes an event on passes on what it doesn't understand. Whoever
// makes an event leaves Unknown nil. A name that the object has a meaning for is
// refused when it is encoded.
//
// Members with no place in the event's type, such as an outcome in a turn.start,
// count as unknown. Not kept are what is beside params in a message, which belongs
// to the connection, and an unknown target in the modify block of capabilities,
// which no event could use.
type Unknown map[string]Raw

// keep reads the next value, that of an unknown member, into u, or skips it where
// u is nil.
func (r *reader) keep(u *Unknown, name string) error {
	if u == nil {
		return r.dec.SkipValue()
	}
	raw, err := r.raw("", "")
	if err != nil {
		return err
	}
	if *u == nil {
		*u = Unknown{}
	}
	(*u)[name] = raw
	return nil
}

// unknownOf returns where the unknown members of v are kept, nil for nowhere.
func (p *plan) unknownOf(v reflect.Value) *Unknown {
	if p.unknown < 0 {
		return nil
	}
	return v.Field(p.unknown).Addr().Interface().(*Unknown)
}

// unknown writes members in the order of their names, behind others unless first.
func (w *writer) unknown(u Unknown, first bool, known func(name string) bool) {
	if len(u) == 0 {
		return
	}
	names := make([]string, 0, len(u))
	for name := range u {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if known(name) {
			w.fail("/"+name, "a known member among the unknown ones", "it in its own field")
			return
		}
		if !first {
			w.buf = append(w.buf, ',')
		}
		first = false
		w.text(name)
		w.buf = append(w.buf, ':')
		w.raw(u[name])
	}
}
