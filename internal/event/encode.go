package event

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/abhed/abhed/internal/strictjson"
)

const (
	// MaxLine bounds one encoded event, in bytes: 16 MiB. What is longer has to
	// be kept beside the record (Encoder.BlobOver).
	MaxLine = strictjson.DefaultMaxBytes
	// MaxRaw bounds one Raw value before long strings are taken out of it, in
	// bytes: 64 MiB.
	MaxRaw = 64 << 20
	// hashSize is the length of a SHA-256 in hex.
	hashSize = 64
)

// ErrUnclean is what an encoder reports for text that can't or may not be
// recorded as it is: a string that isn't UTF-8, a Raw value that isn't JSON, or
// text that Encoder.Check refuses. MapStrings makes a payload that can.
var ErrUnclean = errors.New("the text can't be recorded as it is")

// EncodeError tells which member of which event could not be encoded.
type EncodeError struct {
	Type    Type
	Pointer string // JSON pointer into the event
	Msg     string
	Err     error
}

// Error returns the message with the event's type and the pointer.
func (e *EncodeError) Error() string {
	return fmt.Sprintf("event %s: %s (at %s)", e.Type, e.Msg, e.Pointer)
}

// Unwrap returns the cause.
func (e *EncodeError) Unwrap() error { return e.Err }

// Encoder writes events in the one form that the record has. The zero Encoder
// keeps every string in the line and checks none. It is not safe for concurrent
// use.
type Encoder struct {
	// BlobOver is the length in bytes above which a string is replaced by
	// {"$blob":{"sha256":…,"size":…}} and handed out in Line.Blobs; 0 is never.
	BlobOver int
	// Check reports whether text may be recorded. It sees every string as it is,
	// every Raw value as canonical JSON, and each string in that which has escapes;
	// nil allows all.
	Check func(text string) bool

	blobs []Blob
}

// Line is an encoded event without its line end.
type Line struct {
	// Bytes is what was passed to Append with the event behind it.
	Bytes []byte
	// HashAt is the offset in Bytes of the member `"hash":"…",`, for
	// chain.Stamp.
	HashAt int
	// Blobs are the strings that stand outside the line, once for each use.
	Blobs []Blob
}

// Blob is a string that is kept beside the record.
type Blob struct {
	SHA256 string // lower-case hex
	Text   string
}

// Encode returns e as canonical JSON (gate.md §1) on one line, without line end.
// The member hash is left out if e.Hash is "": those bytes are what the hash is
// computed over.
func Encode(e Event) ([]byte, error) {
	var enc Encoder
	l, err := enc.Append(nil, &e)
	if err != nil || e.Hash != "" {
		return l.Bytes, err
	}
	end := l.HashAt + len(`"hash":"",`) + hashSize
	return slices.Delete(l.Bytes, l.HashAt, end), nil
}

// Append appends e to dst as canonical JSON, always with the member hash: an
// empty e.Hash leaves 64 zeros there, to be stamped over. On error dst is
// unchanged up to its length. Errors are of type *EncodeError and may wrap
// ErrUnclean.
func (c *Encoder) Append(dst []byte, e *Event) (Line, error) {
	c.blobs = nil
	if err := complete(e); err != nil {
		return Line{Bytes: dst}, err
	}
	b := append(dst, `{"actor":`...)
	b = appendString(b, string(e.Actor))
	b = append(b, ',')
	at := len(b)
	b = append(b, `"hash":"`...)
	if e.Hash == "" {
		b = append(b, zeroHash...)
	} else {
		b = append(b, e.Hash...)
	}
	b = append(b, `","id":`...)
	b = appendString(b, e.ID)
	b = append(b, `,"payload":`...)
	b, err := c.payload(b, e.Payload)
	if err != nil {
		return Line{Bytes: dst}, placed(e.Payload.Type(), "/payload", err)
	}
	b = append(b, `,"prev":`...)
	b = appendString(b, e.Prev)
	b = append(b, `,"seq":`...)
	b = strconv.AppendInt(b, e.Seq, 10)
	b = append(b, `,"session_id":`...)
	b = appendString(b, e.SessionID)
	b = append(b, `,"time":"`...)
	b = e.Time.UTC().AppendFormat(b, time.RFC3339Nano)
	b = append(b, `","trust":`...)
	b = appendString(b, string(e.Trust))
	b = append(b, `,"type":`...)
	b = appendString(b, string(e.Payload.Type()))
	b = append(b, '}')
	if n := len(b) - len(dst); n > MaxLine {
		return Line{Bytes: dst}, &EncodeError{Type: e.Payload.Type(), Msg: fmt.Sprintf("%d bytes, the limit of one event is %d", n, MaxLine)}
	}
	return Line{Bytes: b, HashAt: at, Blobs: c.blobs}, nil
}

var zeroHash = strings.Repeat("0", hashSize)

// complete checks the members that don't depend on the payload.
func complete(e *Event) error {
	if e.Payload == nil || reflect.ValueOf(e.Payload).IsNil() {
		return &EncodeError{Pointer: "/payload", Msg: "there is no payload"}
	}
	bad := func(member, msg string) error {
		return &EncodeError{Type: e.Payload.Type(), Pointer: "/" + member, Msg: msg}
	}
	for _, m := range []struct{ name, value string }{
		{"actor", string(e.Actor)}, {"id", e.ID}, {"session_id", e.SessionID}, {"trust", string(e.Trust)}, {"type", string(e.Payload.Type())},
	} {
		switch {
		case m.value == "":
			return bad(m.name, "it is empty")
		case !utf8.ValidString(m.value):
			return bad(m.name, "it isn't valid UTF-8")
		}
	}
	switch {
	case e.Seq < 1:
		return bad("seq", fmt.Sprintf("it is %d, expected 1 or more", e.Seq))
	case e.Hash != "" && !isHash(e.Hash):
		return bad("hash", "expected 64 lower-case hexadecimal digits")
	case e.Prev != "" && !isHash(e.Prev):
		return bad("prev", "expected 64 lower-case hexadecimal digits or nothing")
	case e.Time.UTC().Year() < 0 || e.Time.UTC().Year() > 9999:
		return bad("time", "the year is outside 0 to 9999")
	}
	if u, ok := e.Payload.(*Unknown); ok && New(u.Kind) != nil {
		return bad("type", "the type is known, its payload can't be Unknown")
	}
	return nil
}

func isHash(s string) bool {
	if len(s) != hashSize {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

func (c *Encoder) payload(b []byte, p Payload) ([]byte, error) {
	if u, ok := p.(*Unknown); ok {
		return c.unknown(b, u)
	}
	v := reflect.ValueOf(p).Elem()
	return plans()[v.Type()](c, b, v)
}

// unknown writes a body as it was read: it may hold references and escapes of
// its own, so none are made or resolved.
func (c *Encoder) unknown(b []byte, u *Unknown) ([]byte, error) {
	body, err := canonical(u.Body)
	if err != nil {
		return b, unclean(err.Error())
	}
	if len(body) == 0 || body[0] != '{' {
		return b, &EncodeError{Msg: "the body of an unknown event is not an object"}
	}
	if !c.allowed(body) {
		return b, unclean("it holds text that may not be recorded")
	}
	return append(b, body...), nil
}

// writer appends one Go value of a fixed type.
type writer func(c *Encoder, b []byte, v reflect.Value) ([]byte, error)

// plans returns a writer for each payload type. They are derived once from the
// same struct tags that the decoder follows, and write the members in canonical
// order, so that no second pass has to sort them.
var plans = sync.OnceValue(func() map[reflect.Type]writer {
	m := map[reflect.Type]writer{}
	for _, k := range kinds {
		t := reflect.TypeOf(k.make()).Elem()
		m[t] = writerOf(t)
	}
	return m
})

var rawType = reflect.TypeFor[Raw]()

func writerOf(t reflect.Type) writer {
	if t == rawType {
		return func(c *Encoder, b []byte, v reflect.Value) ([]byte, error) { return c.raw(b, v.Bytes()) }
	}
	switch t.Kind() {
	case reflect.String:
		return func(c *Encoder, b []byte, v reflect.Value) ([]byte, error) { return c.text(b, v.String()) }
	case reflect.Bool:
		return func(_ *Encoder, b []byte, v reflect.Value) ([]byte, error) {
			return strconv.AppendBool(b, v.Bool()), nil
		}
	case reflect.Int, reflect.Int64:
		return func(_ *Encoder, b []byte, v reflect.Value) ([]byte, error) {
			return strconv.AppendInt(b, v.Int(), 10), nil
		}
	case reflect.Pointer:
		elem := writerOf(t.Elem())
		return func(c *Encoder, b []byte, v reflect.Value) ([]byte, error) {
			if v.IsNil() {
				return append(b, "null"...), nil
			}
			return elem(c, b, v.Elem())
		}
	case reflect.Slice:
		return sliceWriter(writerOf(t.Elem()))
	case reflect.Struct:
		return structWriter(t)
	}
	panic("event: no encoding for " + t.String())
}

func sliceWriter(elem writer) writer {
	return func(c *Encoder, b []byte, v reflect.Value) ([]byte, error) {
		b = append(b, '[')
		for i := range v.Len() {
			if i > 0 {
				b = append(b, ',')
			}
			var err error
			if b, err = elem(c, b, v.Index(i)); err != nil {
				return b, placed("", "/"+strconv.Itoa(i), err)
			}
		}
		return append(b, ']'), nil
	}
}

type member struct {
	name      string
	quoted    string // `"name":`
	index     []int
	omitEmpty bool
	omitZero  bool
	write     writer
}

func structWriter(t reflect.Type) writer {
	members := membersOf(t, nil)
	slices.SortFunc(members, func(a, b member) int { return strings.Compare(a.name, b.name) })
	return func(c *Encoder, b []byte, v reflect.Value) ([]byte, error) {
		b = append(b, '{')
		first := true
		for i := range members {
			m := &members[i]
			f := v.Field(m.index[0])
			for _, j := range m.index[1:] {
				f = f.Field(j)
			}
			if m.omitEmpty && f.Len() == 0 || m.omitZero && f.IsZero() {
				continue
			}
			if !first {
				b = append(b, ',')
			}
			first = false
			b = append(b, m.quoted...)
			var err error
			if b, err = m.write(c, b, f); err != nil {
				return b, placed("", "/"+m.name, err)
			}
		}
		return append(b, '}'), nil
	}
}

// membersOf reads the struct tags; an embedded struct's members are the outer
// one's.
func membersOf(t reflect.Type, index []int) []member {
	var members []member
	for i := range t.NumField() {
		f := t.Field(i)
		at := append(slices.Clone(index), i)
		tag := f.Tag.Get("json")
		if f.Anonymous && tag == "" {
			members = append(members, membersOf(f.Type, at)...)
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		if name == "" {
			panic("event: no member name for " + t.String() + "." + f.Name)
		}
		members = append(members, member{
			name: name, quoted: string(appendString(nil, name)) + ":", index: at,
			omitEmpty: options == "omitempty", omitZero: options == "omitzero", write: writerOf(f.Type),
		})
	}
	return members
}

// placed puts pointer before where err happened.
func placed(t Type, pointer string, err error) error {
	e := &EncodeError{Type: t, Pointer: pointer, Msg: err.Error(), Err: err}
	var inner *EncodeError
	if errors.As(err, &inner) {
		e.Pointer, e.Msg, e.Err = pointer+inner.Pointer, inner.Msg, inner.Err
	}
	return e
}

func unclean(msg string) error { return &EncodeError{Msg: msg, Err: ErrUnclean} }
