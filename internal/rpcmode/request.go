package rpcmode

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/abhed/abhed/internal/control"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/strictjson"
)

// maxID bounds an id in bytes: 64 KiB. It is kept for as long as its request waits.
const maxID = 64 << 10

// request is one request, of which the fields have not been looked at.
type request struct {
	// id is as it came, nil if there was none.
	id     event.Raw
	method string
	text   []byte
	names  []string
}

// usagef returns the error that the request is wrong.
func usagef(format string, args ...any) *control.Error {
	return &control.Error{Code: control.CodeUsage, Msg: fmt.Sprintf(format, args...)}
}

// parse reads a line. On an error the request holds the id, if that could be read.
// The method is "" for a line that holds nothing.
func parse(l line) (request, *control.Error) {
	r := request{text: l.text}
	if l.long {
		r.id = looseID(l.text)
		return r, usagef("a line of %d bytes, the limit is %d: it was passed over", l.size, maxLine)
	}
	if len(bytes.Trim(l.text, " \t\r")) == 0 {
		return r, nil
	}
	members := map[string]event.Raw{}
	if err := strictjson.Unmarshal(l.text, &members, strictjson.Options{MaxBytes: maxLine}); err != nil {
		r.id = looseID(l.text)
		return r, usagef("the line is no request: %v; expected one JSON object on the line", err)
	}
	var fault *control.Error
	if r.id, fault = idOf(members["id"]); fault != nil {
		return r, fault
	}
	method, given := members["method"]
	if !given {
		return r, usagef(`there is no member "method"`)
	}
	if err := strictjson.Unmarshal(method, &r.method, strictjson.Options{}); err != nil {
		return r, usagef("%s (at /method)", message(err))
	}
	if r.method == "" {
		return r, usagef("the method is empty (at /method)")
	}
	for name := range members {
		if name != "id" && name != "method" {
			r.names = append(r.names, name)
		}
	}
	slices.Sort(r.names)
	return r, nil
}

// idOf judges an id; null is none.
func idOf(raw event.Raw) (event.Raw, *control.Error) {
	if raw == nil || raw.Kind() == 'n' {
		return nil, nil
	}
	if k := raw.Kind(); k != '"' && k != '0' {
		return nil, usagef("found %s, expected a string or a number (at /id)", strictjson.KindName(k))
	}
	if len(raw) > maxID {
		return nil, usagef("the id has %d bytes, the limit is %d (at /id)", len(raw), maxID)
	}
	return raw, nil
}

// message returns what was wrong, without the place.
func message(err error) string {
	if e := (*strictjson.Error)(nil); errors.As(err, &e) {
		return e.Msg
	}
	return err.Error()
}

// params decodes the fields of a request. T has a member for each field that the
// method knows.
func params[T any](r *request) (T, *control.Error) {
	var p T
	known := fieldsOf(reflect.TypeFor[T]())
	for _, name := range r.names {
		if !slices.Contains(known, name) {
			return p, usagef("%s: %s (at /%s)", r.method, unknown("field", name, known), pointerToken(name))
		}
	}
	err := strictjson.Unmarshal(r.text, &p, strictjson.Options{MaxBytes: maxLine})
	if e := (*strictjson.Error)(nil); errors.As(err, &e) {
		return p, usagef("%s: %s (at %s)", r.method, e.Msg, e.Pointer)
	}
	if err != nil {
		return p, usagef("%s: %v", r.method, err)
	}
	return p, nil
}

// fieldsOf returns the names of a struct's members as JSON has them.
func fieldsOf(t reflect.Type) []string {
	var names []string
	for i := range t.NumField() {
		names = append(names, t.Field(i).Tag.Get("json"))
	}
	return names
}

// pointerToken returns name as a part of a JSON pointer, and short enough to show.
func pointerToken(name string) string {
	if len(name) > maxGuessed {
		name = strings.ToValidUTF8(name[:maxGuessed], "") + "…"
	}
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

// quote shows a name that somebody sent, cut if it is long.
func quote(name string) string {
	if len(name) > maxGuessed {
		return strconv.Quote(strings.ToValidUTF8(name[:maxGuessed], "")) + "…"
	}
	return strconv.Quote(name)
}
